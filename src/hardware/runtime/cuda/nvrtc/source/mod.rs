//! Writes OpenCL C so that NVRTC, whose language is C++, means the same by it. Most of OpenCL
//! C is what the header declares (`../header`); what needs another text is here:
//!
//! * `__local float tile[8];` declares memory of the group, so that the word becomes
//!   `__shared__`; in `__local float *from` it says what is pointed to, which C++ does not
//!   tell, and is taken out.
//! * An argument of a kernel in local memory is an offset, of which the kernel makes a
//!   pointer at its begin.
//! * `(float4)(a, b, c, d)` is a cast of the last number in C++, and becomes
//!   `float4(a, b, c, d)`.
//! * Words that OpenCL C has without underscores (`kernel`, `global`) get them, and names
//!   that C++ has taken (`new`, `class`) a prefix.
//!
//! Lines stay where they are, for messages. Pure: text in, text out.

mod local;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::codelet::opencl_c::{Token, behind, lines, parts};

/// A source as NVRTC gets it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Rewritten {
    pub text: String,
    /// The names in it that may be those of several components of a vector, such as `zyx`.
    pub swizzles: Vec<String>,
    /// Whether multiplications and additions must not be fused.
    pub keeps_operations_separate: bool,
}

/// What a name is replaced with.
struct Macro<'t> {
    name: Token<'t>,
    /// Behind the name and its parameters.
    body: Vec<Token<'t>>,
}

impl<'t> Macro<'t> {
    /// Of the tokens of a `#define`.
    fn of(tokens: &[Token<'t>]) -> Option<Self> {
        let [_, name, rest @ ..] = tokens else {
            return None;
        };
        // A macro has parameters where the parenthesis follows its name at once.
        let is_called = |next: &Token| next.word == "(" && name.at.end == next.at.start;
        let body = match rest.first().is_some_and(is_called) {
            true => behind(tokens, 2),
            false => 2,
        };
        Some(Self {
            name: name.clone(),
            body: tokens[body..].to_vec(),
        })
    }
}

/// Writes a source for NVRTC.
///
/// # Errors
/// What cannot be carried, with its line.
pub(super) fn rewrite(text: &str) -> Result<Rewritten, String> {
    let mut edits = Edits::new(text);
    let (mut code, mut macros) = (Vec::new(), Vec::new());
    let mut keeps_operations_separate = false;
    for line in lines(text) {
        if line.directive.is_none() {
            code.extend(line.tokens);
            continue;
        }
        let words: Vec<&str> = line.tokens.iter().map(|token| token.word).collect();
        match words[..] {
            ["define", _, ..] => macros.extend(Macro::of(&line.tokens)),
            ["include" | "include_next", ..] => {
                return Err(format!(
                    "line {} includes a file, whose text is not read here; put the text in its \
                     place",
                    line.tokens[0].line
                ));
            }
            ["pragma", _, "FP_CONTRACT", "OFF"] => keeps_operations_separate = true,
            _ => {}
        }
    }
    let bodies = macros.iter().map(|one| &one.body);
    let streams = || std::iter::once(&code).chain(bodies.clone());
    let lists = lists(&macros);
    local::local_arguments(&code, &mut edits);
    for stream in streams() {
        local::qualifiers(stream, &mut edits)?;
        literals(stream, &lists, &mut edits);
        for token in stream.iter().filter(|token| token.is_name()) {
            if let Some(other) = other_name(token.word) {
                edits.replace(token.at.clone(), other);
            }
        }
    }
    let mut swizzles: Vec<String> = streams()
        .flatten()
        .map(|token| token.word)
        .filter(|word| components(word).is_some())
        .map(str::to_owned)
        .collect();
    swizzles.sort_unstable();
    swizzles.dedup();
    Ok(Rewritten {
        text: edits.done(),
        swizzles,
        keeps_operations_separate,
    })
}

/// The declarations of several components of a vector, for the header: one macro for each
/// number of components that a vector may have.
pub(super) fn swizzle_macros(names: &[String]) -> String {
    let mut macros = String::new();
    for width in [2, 3, 4, 8, 16] {
        macros.push_str(&format!("#define PDAWL_SWIZZLES_{width}"));
        for name in names {
            let Some(places) = components(name) else {
                continue;
            };
            let is_within = places.iter().all(|place| *place < width);
            // The letters x, y, z and w are for vectors of at most four.
            if is_within && (width <= 4 || !name.starts_with(['x', 'y', 'z', 'w'])) {
                let places: Vec<String> = places.iter().map(usize::to_string).collect();
                macros.push_str(&format!(" swizzle<T, {}> {name};", places.join(", ")));
            }
        }
        macros.push('\n');
    }
    macros
}

/// What is written for a name, where it is another one.
fn other_name(name: &str) -> Option<&'static str> {
    Some(match name {
        "kernel" => "__kernel",
        "global" => "__global",
        "constant" => "__constant",
        "private" => "__private",
        "restrict" => "__restrict__",
        "and" => "pdawl_and",
        "and_eq" => "pdawl_and_eq",
        "bitand" => "pdawl_bitand",
        "bitor" => "pdawl_bitor",
        "catch" => "pdawl_catch",
        "class" => "pdawl_class",
        "compl" => "pdawl_compl",
        "delete" => "pdawl_delete",
        "explicit" => "pdawl_explicit",
        "export" => "pdawl_export",
        "friend" => "pdawl_friend",
        "mutable" => "pdawl_mutable",
        "namespace" => "pdawl_namespace",
        "new" => "pdawl_new",
        "not" => "pdawl_not",
        "not_eq" => "pdawl_not_eq",
        "operator" => "pdawl_operator",
        "or" => "pdawl_or",
        "or_eq" => "pdawl_or_eq",
        "protected" => "pdawl_protected",
        "public" => "pdawl_public",
        "template" => "pdawl_template",
        "this" => "pdawl_this",
        "throw" => "pdawl_throw",
        "try" => "pdawl_try",
        "typename" => "pdawl_typename",
        "using" => "pdawl_using",
        "virtual" => "pdawl_virtual",
        "xor" => "pdawl_xor",
        "xor_eq" => "pdawl_xor_eq",
        _ => return None,
    })
}

/// A text, and what is to be changed in it.
struct Edits<'a> {
    text: &'a str,
    /// By where each begins: where it ends, and what comes there. The first change of a place
    /// holds.
    changes: BTreeMap<usize, (usize, String)>,
}

impl<'a> Edits<'a> {
    fn new(text: &'a str) -> Self {
        Self {
            text,
            changes: BTreeMap::new(),
        }
    }

    /// The text of some bytes.
    fn text(&self, range: Range<usize>) -> &'a str {
        &self.text[range]
    }

    /// Puts another text in the place of some bytes, unless they were changed before. Line
    /// breaks among them stay.
    fn replace(&mut self, range: Range<usize>, by: &str) {
        let mut before = self.changes.range(..range.end);
        if before
            .next_back()
            .is_some_and(|(_, (end, _))| *end > range.start)
        {
            return;
        }
        let breaks: String = self.text[range.clone()]
            .split_inclusive('\n')
            .filter(|line| line.ends_with('\n'))
            .map(|line| {
                if line.trim_end().ends_with('\\') {
                    "\\\n"
                } else {
                    "\n"
                }
            })
            .collect();
        self.changes
            .insert(range.start, (range.end, format!("{by}{breaks}")));
    }

    /// The changed text.
    fn done(self) -> String {
        let mut text = String::with_capacity(self.text.len() + 256);
        let mut from = 0;
        for (begin, (end, by)) in self.changes {
            text.push_str(&self.text[from..begin]);
            text.push_str(&by);
            from = end;
        }
        text.push_str(&self.text[from..]);
        text
    }
}

/// Takes the parentheses from the type of a literal, `(float4)(a, b, c, d)` or
/// `(float4){a, b, c, d}`. With a type of another name, `(pair)(a, b)`, only a literal has
/// several values; with one value the cast means the same. `lists` are the macros that stand
/// for several values.
fn literals(tokens: &[Token], lists: &BTreeSet<&str>, edits: &mut Edits) {
    for (index, window) in tokens.windows(4).enumerate() {
        let [open, name, close, next] = window else {
            continue;
        };
        let next = next.word;
        if open.word != "(" || !name.is_name() || close.word != ")" || !matches!(next, "(" | "{") {
            continue;
        }
        let before = index.checked_sub(1).map(|before| &tokens[before]);
        let is_literal = is_type(name.word)
            || (begins_value(before) && (next == "{" || has_several(&tokens[index + 3..], lists)));
        if is_literal {
            edits.replace(open.at.clone(), " ");
            edits.replace(close.at.clone(), " ");
        }
    }
}

/// Whether a name is that of a vector's type.
fn is_type(name: &str) -> bool {
    let digits = name.find(|c: char| c.is_ascii_digit());
    let (element, count) = name.split_at(digits.unwrap_or(name.len()));
    let elements = [
        "char", "uchar", "short", "ushort", "int", "uint", "long", "ulong", "float", "double",
    ];
    elements.contains(&element) && matches!(count, "2" | "3" | "4" | "8" | "16")
}

/// Whether what follows a token is a value, and not the arguments of a function or the
/// statement of a condition.
fn begins_value(before: Option<&Token>) -> bool {
    let Some(before) = before else {
        return true;
    };
    match before.word {
        "return" | "else" | "case" => true,
        ")" | "]" => false,
        _ => !before.is_name(),
    }
}

/// The names of macros with commas of their own.
fn lists<'t>(macros: &[Macro<'t>]) -> BTreeSet<&'t str> {
    let mut lists = BTreeSet::from(["__VA_ARGS__"]);
    let is_list =
        |body: &[Token]| parts(body).len() > 1 || body.last().is_some_and(|last| last.word == ",");
    let several = macros.iter().filter(|one| is_list(&one.body));
    lists.extend(several.map(|one| one.name.word));
    lists
}

/// Whether the parenthesis that begins here has several parts.
fn has_several(tokens: &[Token], lists: &BTreeSet<&str>) -> bool {
    let mut depth = 0usize;
    for token in tokens {
        match token.word {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return false;
                }
            }
            "," if depth == 1 => return true,
            word if depth == 1 && lists.contains(word) => return true,
            _ => {}
        }
    }
    false
}

/// The places of the components that a name may stand for, if they are several: `zyx`, `s01`.
fn components(name: &str) -> Option<Vec<usize>> {
    let letters = |c: char| "xyzw".find(c);
    let digits = |c: char| c.to_digit(16).map(|digit| digit as usize);
    let places: Option<Vec<usize>> = match name.strip_prefix(['s', 'S']) {
        Some(rest) => rest.chars().map(digits).collect(),
        None => name.chars().map(letters).collect(),
    };
    let places = places?;
    matches!(places.len(), 2 | 3 | 4 | 8 | 16).then_some(places)
}
