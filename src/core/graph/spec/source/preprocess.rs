//! The preprocessor: `#if` is evaluated, macros are replaced.
//!
//! Files that a source includes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::condition::{self, is_compilers};
use super::macros::{Macro, Macros, Room, defined_as, expanded};
use super::token::{JOINED, Strings, Token, tokens, without_comments};

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
    let mut number = 1;
    let plain = without_comments(text, Strings::Emptied);
    let own = defined_in(&plain);
    for line in plain.split('\n') {
        let here = number;
        number += 1 + line.matches(JOINED).count();
        let taken = branches.last().is_none_or(|branch| branch.taken);
        let Some(directive) = line.trim_start().strip_prefix('#') else {
            if taken {
                since.extend(tokens(line).into_iter().map(|token| (token, here)));
            }
            continue;
        };
        expanded(&std::mem::take(&mut since), &macros, &mut seen);
        let words = tokens(directive);
        let rest = words.get(1..).unwrap_or_default();
        let defined = || rest.first().is_some_and(|name| macros.contains_key(name));
        let word = words.first().map(String::as_str);
        let asks = match word {
            Some("if" | "ifdef" | "ifndef") => taken,
            Some("elif") => branches.last().is_some_and(Branch::is_open),
            _ => false,
        };
        let unknown =
            |name: &Token| is_compilers(name) && !macros.contains_key(name) && !own.contains(name);
        seen.uncertain |= asks && rest.iter().any(unknown);
        match word {
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
            Some("define") if taken => macros.extend(defined_as(directive, rest)),
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

/// The names of the macros that a text without comments defines.
fn defined_in(text: &str) -> BTreeSet<Token> {
    let directives = text
        .split('\n')
        .filter_map(|line| line.trim_start().strip_prefix('#'));
    let defines = directives.filter_map(|line| line.trim_start().strip_prefix("define"));
    defines
        .filter_map(|rest| tokens(rest).into_iter().next())
        .collect()
}

/// Whether a condition holds, as far as is known.
fn holds(condition: &[Token], macros: &Macros, seen: &mut Seen) -> bool {
    let holds =
        replaced(condition, macros, seen).and_then(|tokens| condition::holds(&tokens, macros));
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

/// A source with the files that it includes in place of the directives, without comments.
///
/// Files are looked for in the folder of the file that names them, in the folders of the
/// options `-I`, and in the present one. Compilers differ in that order, so a name for
/// which there are files of unlike contents stays as it is, and so does one without a
/// file. `read` returns the contents of a file that exists.
pub fn with_included(text: &str, options: &str, read: &dyn Fn(&Path) -> Option<String>) -> String {
    let mut reader = Reader {
        folders: folders(options),
        read,
        once: BTreeSet::new(),
        left: MOST_FILES,
        made: String::with_capacity(text.len()),
    };
    reader.add(text, None, 0);
    reader.made
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
        for line in without_comments(text, Strings::Kept).split('\n') {
            let found = included(line).filter(|_| depth < DEPTH && self.left > 0);
            let found = found.and_then(|name| self.find(name, folder));
            match found {
                Some((contents, _)) if self.once.contains(&contents) => {}
                Some((contents, of)) if self.made.len() + contents.len() <= MOST => {
                    if contents.lines().any(is_once) {
                        self.once.insert(contents.clone());
                    }
                    self.left -= 1;
                    self.add(&contents, of.as_deref(), depth + 1);
                }
                _ => {
                    self.made.push_str(line);
                    self.made.push('\n');
                }
            }
        }
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

/// The name in an `#include` line.
fn included(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix('#')?.trim_start();
    let name = rest.strip_prefix("include")?.trim();
    let quoted = name
        .strip_prefix('"')
        .and_then(|name| name.strip_suffix('"'));
    quoted.or_else(|| name.strip_prefix('<')?.strip_suffix('>'))
}

fn is_once(line: &str) -> bool {
    let words = line.trim_start().strip_prefix('#');
    words.is_some_and(|words| words.split_whitespace().eq(["pragma", "once"]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, files: &[(&str, &str)]) -> String {
        let found = |path: &Path| {
            let file = files.iter().find(|(name, _)| Path::new(name) == path);
            file.map(|(_, contents)| (*contents).to_owned())
        };
        with_included(text, "-DA=1 -Iinc -I more", &found)
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
        let words: Vec<&str> = made.split_whitespace().collect();
        assert_eq!(
            words,
            [
                "first", "int", "a;", "int", "b;", "int", "c;", "int", "d;", "last"
            ]
        );
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
        let plain = read("/*\n#include \"b.h\"\n*/\nx = \"\\\n#include\";\n", &files);
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
