//! Splits OpenCL C into tokens that know where they are.

use std::ops::Range;

/// A word, a number or a sign of one character. Comments and literals of text are none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub at: Range<usize>,
    /// Whether it begins like a name.
    pub is_name: bool,
}

/// The tokens of a source: its code, and apart from it what each `#define` replaces a name
/// with, and the other directives.
#[derive(Debug, Default)]
pub(super) struct Tokens {
    pub code: Vec<Token>,
    pub macros: Vec<Macro>,
    /// Behind the sign `#`.
    pub others: Vec<Vec<Token>>,
}

/// What a name is replaced with.
#[derive(Debug)]
pub(super) struct Macro {
    pub name: Token,
    /// Behind the name and its parameters.
    pub body: Vec<Token>,
}

/// The tokens of a text.
pub(super) fn tokens(text: &str) -> Tokens {
    let mut all = Tokens::default();
    let mut directive: Option<Vec<Token>> = None;
    let mut begins_line = true;
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        let rest = &text[at..];
        if let Some(length) = blank(rest) {
            at += length;
            continue;
        }
        if first == '\n' {
            if let Some(line) = directive.take() {
                all.add_directive(text, line);
            }
            begins_line = true;
            at += 1;
            continue;
        }
        if first == '#' && begins_line && directive.is_none() {
            directive = Some(Vec::new());
            at += 1;
            continue;
        }
        begins_line = false;
        let length = match first {
            '"' | '\'' => quoted(rest, first),
            c if is_part(c) => word(rest),
            c => c.len_utf8(),
        };
        if !matches!(first, '"' | '\'') {
            let token = Token {
                at: at..at + length,
                is_name: is_part(first) && !first.is_ascii_digit(),
            };
            directive.as_mut().unwrap_or(&mut all.code).push(token);
        }
        at += length;
    }
    if let Some(line) = directive.take() {
        all.add_directive(text, line);
    }
    all
}

impl Tokens {
    fn add_directive(&mut self, text: &str, line: Vec<Token>) {
        let words: Vec<&str> = line.iter().map(|token| &text[token.at.clone()]).collect();
        let ["define", _, ..] = words[..] else {
            self.others.push(line);
            return;
        };
        let mut body = 2;
        // A macro has parameters where the parenthesis follows its name at once.
        if words.get(2) == Some(&"(") && line[1].at.end == line[2].at.start {
            let end = words.iter().position(|word| *word == ")");
            body = end.map_or(words.len(), |end| end + 1);
        }
        self.macros.push(Macro {
            name: line[1].clone(),
            body: line[body..].to_vec(),
        });
    }
}

/// Bytes of blanks, comments and continued lines at the begin of a text.
fn blank(text: &str) -> Option<usize> {
    let first = text.chars().next()?;
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
    (first.is_whitespace() && first != '\n').then(|| first.len_utf8())
}

/// Bytes of the literal at the begin of a text; it ends with its line at the latest.
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

fn is_part(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Bytes of a name or a number at the begin of a text. Where a number has a point or a signed
/// exponent, its parts are tokens of their own.
fn word(text: &str) -> usize {
    text.find(|c| !is_part(c)).unwrap_or(text.len())
}
