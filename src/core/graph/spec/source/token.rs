//! Splitting OpenCL C into tokens, line by line, without comments.

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
