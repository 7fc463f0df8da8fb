//! Splitting OpenCL C into tokens, line by line, without comments.
//!
//! Names that a source gives to types: each is replaced by its type, so that whatever
//! reads the source knows the types of OpenCL C alone.
//!
//! Checks that all brackets close; otherwise the source is truncated or a character
//! is missing. Tells for each token of a body what is around it, in one pass: texts that
//! programs write have very long bodies.

use std::collections::BTreeMap;

use thiserror::Error;

use super::macros::Room;
use super::preprocess::Seen;

/// A token: a word, a number, or an operator of one or more characters.
pub(super) type Token = String;

/// Operators of several characters, the longest first.
const SIGNS: [&str; 24] = [
    "<<=", ">>=", "...", "->", "++", "--", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||", "+=",
    "-=", "*=", "/=", "%=", "&=", "|=", "^=", "##", "::",
];

/// Marks a line that continues in the next one, so that lines can be counted.
pub(super) const JOINED: char = '\u{b}';

/// What becomes of string literals.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Strings {
    /// They are empty, as they are not code.
    Emptied,
    Kept,
}

/// The text without comments and with continued lines joined. A line break within a
/// comment ends the line.
pub(super) fn without_comments(text: &str, strings: Strings) -> String {
    let joined = JOINED.to_string();
    let text = (text.replace("\r\n", "\n").replace(JOINED, " ")).replace("\\\n", &joined);
    let breaks = |c: &char| matches!(*c, '\n' | JOINED);
    let mut plain = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some(c) = rest.chars().next() {
        let passed = if rest.starts_with("//") {
            let end = rest.find('\n').unwrap_or(rest.len());
            plain.extend(rest[..end].chars().filter(breaks));
            end
        } else if rest.starts_with("/*") {
            let end = rest.find("*/").map_or(rest.len(), |end| end + 2);
            plain.push(' ');
            plain.extend(rest[..end].chars().filter(breaks));
            end
        } else if strings == Strings::Kept && (c == '"' || c == '\'') {
            let end = quoted(rest, c);
            plain.push_str(&rest[..end]);
            end
        } else if c == '"' || c == '\'' {
            plain.push_str(if c == '"' { "\"\"" } else { "0" });
            let end = quoted(rest, c);
            plain.extend(rest[..end].chars().filter(breaks));
            end
        } else {
            plain.push(c);
            c.len_utf8()
        };
        rest = &rest[passed..];
    }
    plain
}

/// Bytes of the string literal at the begin of `text`; it ends with its line at the
/// latest.
fn quoted(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (index, c) in text.char_indices().skip(1) {
        match c {
            '\n' => return index,
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return index + c.len_utf8(),
            _ => {}
        }
    }
    text.len()
}

/// The tokens of a line.
pub(super) fn tokens(line: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        let length = if first.is_whitespace() {
            first.len_utf8()
        } else if first.is_alphanumeric() || first == '_' || starts_number(rest) {
            word(rest)
        } else {
            let sign = SIGNS.iter().find(|sign| rest.starts_with(**sign));
            sign.map_or(first.len_utf8(), |sign| sign.len())
        };
        if !first.is_whitespace() {
            tokens.push(rest[..length].to_owned());
        }
        rest = &rest[length..];
    }
    tokens
}

/// Whether a token can be a name.
pub(super) fn is_name(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

fn starts_number(text: &str) -> bool {
    text.starts_with('.') && text[1..].starts_with(|c: char| c.is_ascii_digit())
}

/// Bytes of a name or a number; a number may have a point and a signed exponent.
fn word(text: &str) -> usize {
    let number = text.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    let hexadecimal = text.starts_with("0x") || text.starts_with("0X");
    let mut before = ' ';
    let end = |c: char| {
        let exponent =
            number && !hexadecimal && matches!(c, '+' | '-') && matches!(before, 'e' | 'E');
        let goes_on = c.is_alphanumeric() || c == '_' || (number && c == '.') || exponent;
        before = c;
        !goes_on
    };
    text.find(end).unwrap_or(text.len())
}

/// Words of a type that takes no room.
const FEW: usize = 8;

/// Replaces the names of types from where they are given on. Those of structures,
/// functions and arrays stay.
pub(super) fn resolve(seen: &mut Seen) {
    if !seen.tokens.iter().any(|token| token == "typedef") {
        return;
    }
    let mut types: BTreeMap<Token, Vec<Token>> = BTreeMap::new();
    let mut made = Vec::with_capacity(seen.tokens.len());
    let mut lines = Vec::with_capacity(seen.lines.len());
    let mut at = 0;
    while at < seen.tokens.len() {
        if seen.tokens[at] == "typedef"
            && let Some((name, of, next)) = defined(&seen.tokens, at, &types, &mut seen.room)
        {
            types.insert(name, of);
            at = next;
            continue;
        }
        let member = made
            .last()
            .is_some_and(|before: &Token| before == "." || before == "->");
        match types.get(&seen.tokens[at]) {
            // Most types are few words, of which a long source has many.
            Some(of) if !member && (of.len() <= FEW || seen.room.takes(of)) => {
                made.extend_from_slice(of)
            }
            _ => made.push(seen.tokens[at].clone()),
        }
        lines.resize(made.len(), seen.lines[at]);
        at += 1;
    }
    seen.tokens = made;
    seen.lines = lines;
}

/// The name that a `typedef` at `at` gives, its type, and the index of what follows.
fn defined(
    tokens: &[Token],
    at: usize,
    types: &BTreeMap<Token, Vec<Token>>,
    room: &mut Room,
) -> Option<(Token, Vec<Token>, usize)> {
    let end = at + tokens[at..].iter().position(|token| token == ";")?;
    let (name, of) = tokens[at + 1..end].split_last()?;
    let plain = |token: &Token| is_name(token) || token == "*";
    let structure = ["struct", "union", "enum", "__attribute__"];
    let allowed = of
        .iter()
        .all(|token| plain(token) && !structure.contains(&token.as_str()));
    if of.is_empty() || !is_name(name) || !allowed {
        return None;
    }
    let mut whole = Vec::new();
    for token in of {
        let known = types
            .get(token)
            .map_or(std::slice::from_ref(token), Vec::as_slice);
        if !room.takes(known) {
            return None;
        }
        whole.extend_from_slice(known);
    }
    Some((name.clone(), whole, end + 1))
}

/// A bracket that is not closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("`{bracket}` is never closed; every bracket must be closed in the source itself")]
pub struct Unclosed {
    pub bracket: char,
    /// The line of the source, counted from 1.
    pub line: usize,
}

/// Checks that every bracket is closed by one of its kind. A closing bracket too many
/// is left to the compiler.
pub(super) fn closed(seen: &Seen) -> Result<(), Unclosed> {
    let mut open: Vec<(char, usize)> = Vec::new();
    for (token, line) in seen.tokens.iter().zip(&seen.lines) {
        let opens = match token.as_str() {
            "(" | "[" | "{" => {
                open.extend(token.chars().next().map(|bracket| (bracket, *line)));
                continue;
            }
            ")" => '(',
            "]" => '[',
            "}" => '{',
            _ => continue,
        };
        match open.pop() {
            Some((bracket, line)) if bracket != opens => return Err(Unclosed { bracket, line }),
            _ => {}
        }
    }
    match open.pop() {
        Some((bracket, line)) => Err(Unclosed { bracket, line }),
        None => Ok(()),
    }
}

/// What is around the tokens of a body whose brackets all close.
pub(super) struct Nesting {
    /// By token: the innermost bracket that is open there.
    around: Vec<Option<usize>>,
    /// By bracket: the one that belongs to it.
    partner: Vec<usize>,
    /// By token: the commas before it in its bracket.
    commas: Vec<usize>,
    /// By token: the last `=` before it in its statement.
    assignment: Vec<Option<usize>>,
    /// By token: where casts in front of it begin, perhaps: brackets with words, stars,
    /// brackets and the sizes of arrays alone.
    casts: Vec<usize>,
}

/// A bracket that is open.
struct Open {
    at: usize,
    commas: usize,
    /// Whether what it has may name a type, such as `float (*)[4]`.
    is_type: bool,
}

impl Nesting {
    /// Of a body. A bracket is that of a call where `is_call` says so.
    pub fn of(body: &[Token], is_call: impl Fn(usize) -> bool) -> Self {
        let mut nesting = Self {
            around: Vec::with_capacity(body.len()),
            partner: (0..body.len()).collect(),
            commas: Vec::with_capacity(body.len()),
            assignment: Vec::with_capacity(body.len()),
            casts: Vec::with_capacity(body.len() + 1),
        };
        let mut open: Vec<Open> = Vec::new();
        let (mut commas, mut assignment) = (0, None);
        nesting.casts.push(0);
        for (at, token) in body.iter().enumerate() {
            let closes = matches!(token.as_str(), ")" | "]" | "}");
            let inner = if closes { open.pop() } else { None };
            if let Some(inner) = &inner {
                (nesting.partner[at], nesting.partner[inner.at]) = (inner.at, at);
                commas = inner.commas;
            }
            nesting.around.push(open.last().map(|open| open.at));
            nesting.commas.push(commas);
            nesting.assignment.push(assignment);
            let mut casts = at + 1;
            let may_be_type = match (token.as_str(), &inner) {
                ("]", _) => true,
                (")", Some(inner)) => {
                    if inner.is_type && inner.at + 1 < at && !is_call(inner.at) {
                        casts = nesting.casts[inner.at];
                    }
                    inner.is_type
                }
                ("(" | "[" | "*", _) => true,
                (word, _) => is_name(word),
            };
            nesting.casts.push(casts);
            if let Some(open) = open.last_mut() {
                open.is_type &= may_be_type;
            }
            match token.as_str() {
                "(" | "[" | "{" => open.push(Open {
                    at,
                    commas: std::mem::take(&mut commas),
                    is_type: true,
                }),
                "," => commas += 1,
                "=" => assignment = Some(at),
                _ => {}
            }
            if matches!(token.as_str(), ";" | "{" | "}") {
                assignment = None;
            }
        }
        nesting
    }

    /// The innermost bracket that is open at `at`.
    pub fn around(&self, at: usize) -> Option<usize> {
        self.around.get(at).copied().flatten()
    }

    /// The index behind the bracket that closes the one at `open`, or behind `open` if no
    /// bracket is there.
    pub fn behind(&self, open: usize) -> usize {
        self.partner
            .get(open)
            .map_or(open, |close| (*close).max(open))
            + 1
    }

    /// The commas before `at` in its bracket.
    pub fn commas(&self, at: usize) -> usize {
        self.commas.get(at).copied().unwrap_or(0)
    }

    /// The last `=` before `at` in its statement.
    pub fn assignment(&self, at: usize) -> Option<usize> {
        self.assignment.get(at).copied().flatten()
    }

    /// The position before what may be casts in front of `at`.
    pub fn casts(&self, at: usize) -> usize {
        self.casts.get(at).copied().unwrap_or(at)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fmt::Write;

    use crate::graph::spec::source::kernels;

    #[test]
    fn parameters_and_bodies_have_the_types_that_names_stand_for() {
        let text = "typedef double DATA_TYPE;\ntypedef DATA_TYPE real_t;\n\
                    typedef __global const unsigned int *indices;\ntypedef float4 vec;\n\
                    typedef struct { float x; DATA_TYPE y; } pair;\n\
                    kernel void k(global real_t *o, indices i, vec v, global pair *p, int n) {\n\
                    o[i[0]] = v.x + p->y; }";
        let kernel = &kernels(text, &BTreeMap::new()).unwrap()[0];
        let types: Vec<&str> = kernel
            .parameters
            .iter()
            .map(|p| p.type_name.as_str())
            .collect();
        assert_eq!(types, ["double", "unsigned int", "float4", "pair", "int"]);
        assert!(kernel.fp64);
        assert!(kernel.parameters[1].pointer && kernel.parameters[1].read_only);
        assert!(kernel.accesses[0].written && !kernel.accesses[1].written);
        let mut doubling = String::new();
        for i in 1..60 {
            writeln!(doubling, "typedef T{0} T{0} T{i};", i - 1).unwrap();
        }
        let text = doubling + "kernel void k(global T59 *o) { o[0] = 1; }";
        let kernel = &kernels(&text, &BTreeMap::new()).unwrap()[0];
        assert!(kernel.parameters[0].type_name.len() < 1000);
        let fields = "typedef float x;\nkernel void k(global float2 *o) { o[0].x = 1; }";
        let kernel = &kernels(fields, &BTreeMap::new()).unwrap()[0];
        assert!(kernel.accesses[0].written);
    }
}
