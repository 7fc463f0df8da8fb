//! The tokens of OpenCL C, each with its place in the text. Pure.

use std::ops::Range;

/// Operators of several characters, the longest first.
const SIGNS: [&str; 24] = [
    "<<=", ">>=", "...", "->", "++", "--", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||", "+=",
    "-=", "*=", "/=", "%=", "&=", "|=", "^=", "##", "::",
];

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Name,
    Number,
    /// An operator or a bracket.
    Sign,
    /// A text or a character in quotes.
    Quoted,
}

/// A token of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token<'t> {
    pub word: &'t str,
    /// Its bytes.
    pub at: Range<usize>,
    /// Its line, counted from 1.
    pub line: usize,
    pub kind: Kind,
}

impl Token<'_> {
    pub fn is_name(&self) -> bool {
        self.kind == Kind::Name
    }
}

impl AsRef<str> for Token<'_> {
    fn as_ref(&self) -> &str {
        self.word
    }
}

/// A line with tokens, and the lines that continue it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Line<'t> {
    /// Of a directive, where its sign `#` is, which is not among the tokens.
    pub directive: Option<usize>,
    pub tokens: Vec<Token<'t>>,
}

impl Line<'_> {
    /// Where its last token ends.
    pub fn end(&self) -> usize {
        self.tokens.last().map_or(0, |token| token.at.end)
    }
}

/// The lines of a text that have tokens. Comments have none.
pub fn lines(text: &str) -> Vec<Line<'_>> {
    let mut lines = vec![Line::default()];
    let (mut at, mut number) = (0, 1);
    while let Some(first) = text[at..].chars().next() {
        let rest = &text[at..];
        let last = lines.len() - 1;
        let is_empty = lines[last] == Line::default();
        let length = if let Some(length) = blank(rest) {
            length
        } else if first == '\n' {
            if !is_empty {
                lines.push(Line::default());
            }
            1
        } else if first == '#' && is_empty {
            lines[last].directive = Some(at);
            1
        } else {
            let (kind, length) = token(rest, first);
            lines[last].tokens.push(Token {
                word: &rest[..length],
                at: at..at + length,
                line: number,
                kind,
            });
            length
        };
        number += rest[..length].matches('\n').count();
        at += length;
    }
    lines.retain(|line| *line != Line::default());
    lines
}

/// The index of the bracket that closes the one at `open`; `None` if no bracket is
/// there or nothing closes it.
pub fn close<T: AsRef<str>>(tokens: &[T], open: usize) -> Option<usize> {
    let mut depth = 0usize;
    for (index, token) in tokens.iter().enumerate().skip(open) {
        match token.as_ref() {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth = depth.checked_sub(1)?,
            _ => {}
        }
        if depth == 0 {
            return (index > open).then_some(index);
        }
    }
    None
}

/// The index after the bracket that closes the one at `open`, or after `open` if no
/// bracket is there.
pub fn behind<T: AsRef<str>>(tokens: &[T], open: usize) -> usize {
    close(tokens, open).unwrap_or(open) + 1
}

/// The parts of a list, separated by its own commas.
pub fn parts<T: AsRef<str>>(tokens: &[T]) -> Vec<&[T]> {
    let mut all = Vec::new();
    let (mut begin, mut at) = (0, 0);
    while at < tokens.len() {
        match tokens[at].as_ref() {
            "(" | "[" | "{" => at = behind(tokens, at) - 1,
            "," => {
                all.push(&tokens[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
        at += 1;
    }
    if begin < tokens.len() {
        all.push(&tokens[begin..]);
    }
    all
}

/// What the token at the begin of a text is, and its bytes.
fn token(text: &str, first: char) -> (Kind, usize) {
    let is_fraction = first == '.' && text[1..].starts_with(|c: char| c.is_ascii_digit());
    match first {
        '"' | '\'' => (Kind::Quoted, quoted(text, first)),
        c if c.is_alphabetic() || c == '_' => (Kind::Name, word(text, false)),
        c if c.is_alphanumeric() || is_fraction => (Kind::Number, word(text, true)),
        c => {
            let sign = SIGNS.iter().find(|sign| text.starts_with(**sign));
            (Kind::Sign, sign.map_or(c.len_utf8(), |sign| sign.len()))
        }
    }
}

/// Bytes of the blank, comment or continued line at the begin of a text.
fn blank(text: &str) -> Option<usize> {
    if text.starts_with("//") {
        // A continued line continues the comment.
        let mut end = 0;
        for line in text.split_inclusive('\n') {
            end += line.len();
            let line = line.strip_suffix('\n').map(|l| l.trim_end_matches('\r'));
            match line {
                Some(line) if line.ends_with('\\') => {}
                Some(_) => return Some(end - 1),
                None => {}
            }
        }
        return Some(end);
    }
    if let Some(comment) = text.strip_prefix("/*") {
        return Some(comment.find("*/").map_or(text.len(), |end| end + 4));
    }
    for joined in ["\\\n", "\\\r\n"] {
        if text.starts_with(joined) {
            return Some(joined.len());
        }
    }
    let first = text.chars().next()?;
    (first.is_whitespace() && first != '\n').then(|| first.len_utf8())
}

/// Bytes of what is quoted at the begin of a text; it ends with its line at the latest.
fn quoted(text: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            '\n' if !is_escaped => return at,
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            c if c == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Bytes of the name or number at the begin of a text; a number may have a point and a signed
/// exponent.
fn word(text: &str, is_number: bool) -> usize {
    let is_hexadecimal = text.starts_with("0x") || text.starts_with("0X");
    let mut before = ' ';
    let ends = |c: char| {
        let is_exponent = !is_hexadecimal && matches!(c, '+' | '-') && matches!(before, 'e' | 'E');
        before = c;
        !(c.is_alphanumeric() || c == '_' || (is_number && (c == '.' || is_exponent)))
    };
    text.find(ends).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<Vec<&str>> {
        let of = |line: &Line| line.tokens.iter().map(|t| &text[t.at.clone()]).collect();
        lines(text).iter().map(of).collect()
    }

    #[test]
    fn lines_are_joined_and_have_no_comments() {
        let text = "a /* b\n c */ d // e \\\n f\n\n # define \\\r\nX\t\"//\\\"\" '#'\n'x\ng";
        assert_eq!(
            words(text),
            [
                vec!["a", "d"],
                vec!["define", "X", "\"//\\\"\"", "'#'"],
                vec!["'x"],
                vec!["g"]
            ]
        );
        let lines = lines(text);
        let numbers: Vec<usize> = lines.iter().map(|line| line.tokens[0].line).collect();
        assert_eq!(numbers, [1, 5, 7, 8]);
        assert_eq!(lines[0].tokens[1].line, 2);
        let directives: Vec<bool> = lines.iter().map(|line| line.directive.is_some()).collect();
        assert_eq!(directives, [false, true, false, false]);
    }

    #[test]
    fn numbers_and_signs_are_whole() {
        assert_eq!(
            words("x+=1.5e-3f-.5>>0x1e+y.z s->t##u/*"),
            [vec![
                "x", "+=", "1.5e-3f", "-", ".5", ">>", "0x1e", "+", "y", ".", "z", "s", "->", "t",
                "##", "u"
            ]]
        );
    }
}
