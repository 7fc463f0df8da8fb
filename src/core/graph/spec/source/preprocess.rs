//! The preprocessor: files are included, `#if` is evaluated, macros are replaced.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::macros::{Macro, Macros, Room, defined_as, expanded, is_compilers};
use super::{Token, is_name, tokens, word};
use crate::codelet::opencl_c::{Line, lines};

/// What asks in a condition whether a macro is defined.
const DEFINED: &str = "defined";

/// Most levels of macros that ask so, and most tokens of a condition with them.
const LEVELS: usize = 16;
const LONGEST: usize = 10_000;

/// The state of an `#if`.
struct Branch {
    /// Whether its present branch is compiled.
    taken: bool,
    /// Whether one of its branches has been compiled.
    any: bool,
    /// Whether the text around it is compiled.
    around: bool,
}

/// A source after the preprocessor.
#[derive(Default)]
pub(super) struct Seen {
    pub tokens: Vec<Token>,
    /// By token: its line, counted from 1.
    pub lines: Vec<usize>,
    /// Whether the name of a macro that could not be replaced is among the tokens.
    pub has_macros: bool,
    /// Whether files are included, which are not read.
    pub includes: bool,
    /// Whether a condition could not be evaluated, or asks for a macro of the compiler that
    /// nobody knows.
    pub uncertain: bool,
    /// What may still be added in place of names.
    pub room: Room,
}

/// The tokens of a source with these macros (of `-D` and of the compiler). Conditions that
/// cannot be evaluated count as true.
pub(super) fn preprocess(text: &str, given: &BTreeMap<String, String>) -> Seen {
    let mut macros: Macros = (given.iter())
        .map(|(name, value)| (name.clone(), Macro::Plain(tokens(value))))
        .collect();
    let mut branches: Vec<Branch> = Vec::new();
    let mut seen = Seen::default();
    // The tokens since the last directive, with their lines. A macro's arguments may
    // extend over several lines.
    let mut since: Vec<(Token, usize)> = Vec::new();
    let lines = lines(text);
    let own = defined_in(&lines);
    for line in &lines {
        let taken = branches.last().is_none_or(|branch| branch.taken);
        let words = line.tokens.iter().map(|token| (word(token), token.line));
        if line.directive.is_none() {
            if taken {
                since.extend(words);
            }
            continue;
        }
        expanded(&std::mem::take(&mut since), &macros, &mut seen);
        let words: Vec<Token> = words.map(|(word, _)| word).collect();
        let rest = words.get(1..).unwrap_or_default();
        let defined = || rest.first().is_some_and(|name| macros.contains_key(name));
        let first = words.first().map(String::as_str);
        let asks = match first {
            Some("if" | "ifdef" | "ifndef") => taken,
            Some("elif") => branches.last().is_some_and(Branch::is_open),
            _ => false,
        };
        let unknown =
            |name: &Token| is_compilers(name) && !macros.contains_key(name) && !own.contains(name);
        seen.uncertain |= asks && rest.iter().any(unknown);
        match first {
            Some("if") => {
                let holds = asks && holds(rest, &macros, &mut seen);
                branches.push(Branch::open(taken, holds));
            }
            Some("ifdef") => branches.push(Branch::open(taken, defined())),
            Some("ifndef") => branches.push(Branch::open(taken, !defined())),
            Some("elif") => {
                let holds = asks && holds(rest, &macros, &mut seen);
                if let Some(branch) = branches.last_mut() {
                    branch.turn(holds);
                }
            }
            Some("else") => {
                if let Some(branch) = branches.last_mut() {
                    branch.turn(true);
                }
            }
            Some("endif") => {
                branches.pop();
            }
            Some("include") if taken => seen.includes = true,
            Some("define") if taken => macros.extend(defined_as(&line.tokens, rest)),
            Some("undef") if taken => {
                if let Some(name) = rest.first() {
                    macros.remove(name);
                }
            }
            _ => {}
        }
    }
    expanded(&since, &macros, &mut seen);
    seen
}

/// The names of the macros that a text defines.
fn defined_in(lines: &[Line]) -> BTreeSet<Token> {
    let directives = lines.iter().filter(|line| line.directive.is_some());
    let defines = directives.filter_map(|line| match &line.tokens[..] {
        [define, name, ..] if define.word == "define" => Some(word(name)),
        _ => None,
    });
    defines.collect()
}

/// Whether a condition holds, as far as is known.
fn holds(condition: &[Token], macros: &Macros, seen: &mut Seen) -> bool {
    let holds =
        replaced(condition, macros, seen).and_then(|tokens| condition_holds(&tokens, macros));
    seen.uncertain |= holds.is_none();
    holds.unwrap_or(true)
}

/// A condition with its macros replaced; `None` if one cannot be.
fn replaced(condition: &[Token], macros: &Macros, seen: &mut Seen) -> Option<Vec<Token>> {
    let asks = |token: &Token| match macros.get(token) {
        Some(Macro::Plain(text)) => Some(text).filter(|text| text.iter().any(|t| t == DEFINED)),
        _ => None,
    };
    // What asks for a name is answered before names are replaced, also within macros.
    let mut plain = answered(condition, macros)?;
    for _ in 0..LEVELS {
        if !plain.iter().any(|token| asks(token).is_some()) {
            break;
        }
        let tokens = plain.iter().flat_map(|token| match asks(token) {
            Some(text) => text.clone(),
            None => vec![token.clone()],
        });
        plain = answered(&tokens.take(LONGEST).collect::<Vec<_>>(), macros)?;
    }
    let plain: Vec<(Token, usize)> = plain.into_iter().map(|token| (token, 0)).collect();
    let (from, had) = (seen.tokens.len(), std::mem::take(&mut seen.has_macros));
    expanded(&plain, macros, seen);
    seen.lines.truncate(from);
    let made = seen.tokens.split_off(from);
    let whole = !std::mem::replace(&mut seen.has_macros, had);
    whole.then_some(made)
}

/// A condition whose questions for names have answers.
fn answered(condition: &[Token], macros: &Macros) -> Option<Vec<Token>> {
    let mut answered = Vec::new();
    let mut at = 0;
    while let Some(token) = condition.get(at) {
        at += 1;
        if token != DEFINED {
            answered.push(token.clone());
            continue;
        }
        let bracket = usize::from(condition.get(at).is_some_and(|sign| sign == "("));
        let name = condition.get(at + bracket)?;
        answered.push(u8::from(macros.contains_key(name)).to_string());
        at += 1 + 2 * bracket;
    }
    Some(answered)
}

impl Branch {
    /// Whether its next condition is asked.
    fn is_open(&self) -> bool {
        self.around && !self.any
    }

    fn open(around: bool, holds: bool) -> Self {
        let taken = around && holds;
        Self {
            taken,
            any: taken,
            around,
        }
    }

    fn turn(&mut self, holds: bool) {
        self.taken = self.is_open() && holds;
        self.any |= self.taken;
    }
}

/// Files within files, at most: a file may include itself.
const DEPTH: usize = 32;

/// Bytes of a source with all that it includes, at most.
const MOST: usize = 16 << 20;

/// Files that are included, at most: a file may include another one twice, and so on.
const MOST_FILES: usize = 4096;

/// A source with the files that it includes in place of the directives; `None` if it includes
/// none.
///
/// Files are looked for in the folder of the file that names them, in the folders of the
/// options `-I`, and in the present one. Compilers differ in that order, so a name for
/// which there are files of unlike contents stays as it is, and so does one without a
/// file. `read` returns the contents of a file that exists.
pub fn with_included(
    text: &str,
    options: &str,
    read: &dyn Fn(&Path) -> Option<String>,
) -> Option<String> {
    let is_include = |line: &Line| directive(text, line).starts_with("include");
    if !lines(text).iter().any(is_include) {
        return None;
    }
    let mut reader = Reader {
        folders: folders(options),
        read,
        once: BTreeSet::new(),
        left: MOST_FILES,
        made: String::with_capacity(text.len()),
    };
    reader.add(text, None, 0);
    Some(reader.made)
}

/// The folders of `-I`, and the present one.
fn folders(options: &str) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    let mut words = options.split_whitespace();
    while let Some(word) = words.next() {
        let folder = match word.strip_prefix("-I") {
            Some("") => words.next(),
            other => other,
        };
        folders.extend(folder.map(PathBuf::from));
    }
    folders.push(PathBuf::from("."));
    folders
}

struct Reader<'a> {
    folders: Vec<PathBuf>,
    read: &'a dyn Fn(&Path) -> Option<String>,
    /// Contents that ask to be included once, and have been.
    once: BTreeSet<String>,
    /// How many more files may be included.
    left: usize,
    made: String,
}

impl Reader<'_> {
    fn add(&mut self, text: &str, folder: Option<&Path>, depth: usize) {
        let mut from = 0;
        for line in lines(text) {
            let found = included(directive(text, &line));
            let found = found.filter(|_| depth < DEPTH && self.left > 0);
            let Some((contents, of)) = found.and_then(|name| self.find(name, folder)) else {
                continue;
            };
            let is_known = self.once.contains(&contents);
            if !is_known && self.made.len() + contents.len() > MOST {
                continue;
            }
            let (begin, end) = (line.directive.unwrap_or(from), line.end());
            self.made.push_str(&text[from..begin]);
            from = end;
            if is_known {
                continue;
            }
            if lines(&contents).iter().any(|line| is_once(&contents, line)) {
                self.once.insert(contents.clone());
            }
            self.left -= 1;
            self.add(&contents, of.as_deref(), depth + 1);
        }
        self.made.push_str(&text[from..]);
        self.made.push('\n');
    }

    /// The contents of the file with this name, and its folder.
    fn find(&self, name: &str, folder: Option<&Path>) -> Option<(String, Option<PathBuf>)> {
        let folders = folder
            .into_iter()
            .chain(self.folders.iter().map(PathBuf::as_path));
        let mut found: BTreeMap<String, PathBuf> = BTreeMap::new();
        for folder in folders {
            let path = folder.join(name);
            if let Some(contents) = (self.read)(&path) {
                found.entry(contents).or_insert(path);
            }
        }
        match found.len() {
            1 => found
                .pop_first()
                .map(|(contents, path)| (contents, path.parent().map(Path::to_owned))),
            _ => None,
        }
    }
}

/// The text of a directive behind its sign; empty if a line is none.
fn directive<'a>(text: &'a str, line: &Line) -> &'a str {
    match (line.directive, line.tokens.first()) {
        (Some(_), Some(first)) => &text[first.at.start..line.end()],
        _ => "",
    }
}

/// The name in an `#include`.
fn included(directive: &str) -> Option<&str> {
    let name = directive.strip_prefix("include")?.trim();
    let quoted = name
        .strip_prefix('"')
        .and_then(|name| name.strip_suffix('"'));
    quoted.or_else(|| name.strip_prefix('<')?.strip_suffix('>'))
}

fn is_once(text: &str, line: &Line) -> bool {
    directive(text, line)
        .split_whitespace()
        .eq(["pragma", "once"])
}

/// Most levels of nesting; the limit protects the stack.
const DEEPEST: usize = 64;

/// The value of an expression without macros; `None` when it cannot be evaluated.
pub(super) fn value(tokens: &[Token]) -> Option<i64> {
    let named = tokens.iter().any(|token| is_name(token));
    if named {
        return None;
    }
    evaluated(tokens, &Macros::new())
}

/// Whether a condition holds; `None` when it cannot be evaluated.
fn condition_holds(tokens: &[Token], macros: &Macros) -> Option<bool> {
    evaluated(tokens, macros).map(|value| value != 0)
}

fn evaluated(tokens: &[Token], macros: &Macros) -> Option<i64> {
    let mut reader = ConditionReader {
        tokens,
        at: 0,
        macros,
        depth: 0,
    };
    let value = reader.chosen()?;
    (reader.at == tokens.len()).then_some(value)
}

struct ConditionReader<'a> {
    tokens: &'a [Token],
    at: usize,
    macros: &'a Macros,
    depth: usize,
}

/// Operators by precedence, the lowest first.
const OPERATORS: [&[&str]; 10] = [
    &["||"],
    &["&&"],
    &["|"],
    &["^"],
    &["&"],
    &["==", "!="],
    &["<", ">", "<=", ">="],
    &["<<", ">>"],
    &["+", "-"],
    &["*", "/", "%"],
];

impl ConditionReader<'_> {
    fn binary(&mut self, level: usize) -> Option<i64> {
        let Some(operators) = OPERATORS.get(level) else {
            return self.unary();
        };
        let mut left = self.binary(level + 1)?;
        while let Some(operator) = self.tokens.get(self.at).map(String::as_str)
            && operators.contains(&operator)
        {
            self.at += 1;
            let right = self.binary(level + 1)?;
            left = match operator {
                "||" => i64::from(left != 0 || right != 0),
                "&&" => i64::from(left != 0 && right != 0),
                "|" => left | right,
                "^" => left ^ right,
                "&" => left & right,
                "<<" => left.checked_shl(u32::try_from(right).ok()?)?,
                ">>" => left.checked_shr(u32::try_from(right).ok()?)?,
                "==" => i64::from(left == right),
                "!=" => i64::from(left != right),
                "<" => i64::from(left < right),
                ">" => i64::from(left > right),
                "<=" => i64::from(left <= right),
                ">=" => i64::from(left >= right),
                "+" => left.checked_add(right)?,
                "-" => left.checked_sub(right)?,
                "*" => left.checked_mul(right)?,
                "/" => left.checked_div(right)?,
                _ => left.checked_rem(right)?,
            };
        }
        Some(left)
    }

    /// A value, or one of two by a condition.
    fn chosen(&mut self) -> Option<i64> {
        let condition = self.binary(0)?;
        if !self.take("?") {
            return Some(condition);
        }
        let then = self.deeper(Self::chosen)?;
        let other = self.take(":").then(|| self.deeper(Self::chosen))??;
        Some(if condition != 0 { then } else { other })
    }

    fn unary(&mut self) -> Option<i64> {
        self.deeper(Self::atom)
    }

    fn deeper(&mut self, read: fn(&mut Self) -> Option<i64>) -> Option<i64> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return None;
        }
        let value = read(self);
        self.depth -= 1;
        value
    }

    fn atom(&mut self) -> Option<i64> {
        let token = self.tokens.get(self.at)?;
        self.at += 1;
        match token.as_str() {
            "!" => self.unary().map(|value| i64::from(value == 0)),
            "-" => self.unary()?.checked_neg(),
            "+" => self.unary(),
            "~" => self.unary().map(|value| !value),
            "(" => {
                let value = self.chosen()?;
                self.take(")").then_some(value)
            }
            name if is_name(name) => match self.macros.get(name) {
                Some(Macro::Plain(text)) => match text.as_slice() {
                    [one] => number(one),
                    _ => None,
                },
                Some(Macro::Function(..) | Macro::Opaque) => None,
                // As in C, a name that is not defined is 0.
                None => Some(0),
            },
            digits => number(digits),
        }
    }

    fn take(&mut self, sign: &str) -> bool {
        let there = self.tokens.get(self.at).is_some_and(|token| token == sign);
        self.at += usize::from(there);
        there
    }
}

fn number(token: &str) -> Option<i64> {
    let plain = token.trim_end_matches(['u', 'U', 'l', 'L']);
    match plain.strip_prefix("0x").or(plain.strip_prefix("0X")) {
        Some(hexadecimal) => i64::from_str_radix(hexadecimal, 16).ok(),
        None => plain.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::spec::source::tokens;

    fn read(text: &str, files: &[(&str, &str)]) -> String {
        let found = |path: &Path| {
            let file = files.iter().find(|(name, _)| Path::new(name) == path);
            file.map(|(_, contents)| (*contents).to_owned())
        };
        with_included(text, "-DA=1 -Iinc -I more", &found).expect("it includes files")
    }

    #[test]
    fn files_stand_where_they_are_included() {
        let files = [
            ("inc/a.h", "int a; // of a\n#include \"b.h\"\n"),
            ("inc/b.h", "int b;"),
            ("more/c.h", "/* of c */ int c;"),
            ("./d.h", "int d;"),
        ];
        let made = read(
            "first\n#include \"a.h\" // here\n # include <c.h>\n#include \"d.h\"\nlast",
            &files,
        );
        assert_eq!(
            tokens(&made).join(" "),
            "first int a ; int b ; int c ; int d ; last"
        );
        assert_eq!(with_included("int a; // include", "", &|_| None), None);
    }

    #[test]
    fn what_is_not_certain_stays() {
        let files = [
            ("inc/a.h", "one"),
            ("more/a.h", "another"),
            ("inc/b.h", "same"),
            ("./b.h", "same"),
        ];
        let made = read(
            "#include \"a.h\"\n#include \"b.h\"\n#include \"none.h\"\n#include NAME\n",
            &files,
        );
        assert_eq!(made.matches("#include").count(), 3);
        assert!(made.contains("\"a.h\"") && made.contains("same") && made.contains("\"none.h\""));
        // In a comment and in a string there are no directives.
        let plain = read(
            "/*\n#include \"b.h\"\n*/\nx = \"\\\n#include\";\n#include \"no.h\"\n",
            &files,
        );
        assert!(!plain.contains("same"));
    }

    #[test]
    fn files_that_include_themselves_end() {
        let made = read(
            "#include \"a.h\"\n",
            &[("inc/a.h", "a\n#include \"a.h\"\n")],
        );
        assert_eq!(made.matches("#include").count(), 1);
        let twice = |name: &str| format!("#include \"{name}\"\n").repeat(2);
        let names: Vec<String> = (0..30).map(|i| format!("inc/{i}.h")).collect();
        let texts: Vec<String> = (1..30).map(|i| twice(&format!("{i}.h"))).collect();
        let files = names
            .iter()
            .zip(texts.iter().map(String::as_str).chain([""]));
        let files: Vec<(&str, &str)> = files.map(|(name, text)| (&**name, text)).collect();
        assert!(read(&twice("0.h"), &files).len() < 1 << 20);
        let once = [("inc/a.h", "# pragma once\na\n#include \"a.h\"\n")];
        let made = read("#include \"a.h\"\n#include \"a.h\"\n", &once);
        assert_eq!(
            made.split_whitespace().filter(|word| *word == "a").count(),
            1
        );
    }
}
