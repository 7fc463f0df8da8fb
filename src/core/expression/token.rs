//! Splitting a text into tokens, each with its position.

use super::error::{At, Cause};
use super::excerpt::excerpt;
use super::value::Number;

/// The kinds of tokens.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    Number(Number),
    Name(String),
    /// An operator, a bracket or a comma.
    Sign(&'static str),
}

/// A token, with its begin in characters, for messages, and its range in bytes.
#[derive(Clone, Debug)]
pub(super) struct Placed {
    pub token: Token,
    pub at: usize,
    pub bytes: std::ops::Range<usize>,
}

/// The longest operators first.
const SIGNS: [&str; 12] = ["**", "//", "+", "-", "*", "/", "%", "(", ")", "[", "]", ","];

/// Splits the whole text.
pub(super) fn tokens(text: &str) -> Result<Vec<Placed>, At> {
    let mut tokens = Vec::new();
    let mut rest = text;
    let mut at = 0;
    while let Some(first) = rest.chars().next() {
        let begin = text.len() - rest.len();
        let (token, length) = if first.is_whitespace() {
            (None, first.len_utf8())
        } else if first.is_ascii_digit() || first == '.' {
            let length = number_length(rest);
            let digits = &rest[..length];
            let number = number(digits).ok_or(At(at, Cause::Number(excerpt(digits, 0))))?;
            (Some(Token::Number(number)), length)
        } else if first.is_alphabetic() || first == '_' {
            let end = |c: char| !(c.is_alphanumeric() || c == '_');
            let length = rest.find(end).unwrap_or(rest.len());
            (Some(Token::Name(rest[..length].to_owned())), length)
        } else {
            let sign = SIGNS.into_iter().find(|sign| rest.starts_with(sign));
            let sign = sign.ok_or(At(at, Cause::Character(first)))?;
            (Some(Token::Sign(sign)), sign.len())
        };
        if let Some(token) = token {
            tokens.push(Placed {
                token,
                at,
                bytes: begin..begin + length,
            });
        }
        at += rest[..length].chars().count();
        rest = &rest[length..];
    }
    Ok(tokens)
}

/// Digits, a point, an exponent with its sign, and letters, so that an error names
/// all of `1x`.
fn number_length(text: &str) -> usize {
    let mut before = ' ';
    let end = |c: char| {
        let sign = (c == '+' || c == '-') && matches!(before, 'e' | 'E');
        let goes_on = c.is_alphanumeric() || c == '.' || c == '_' || sign;
        before = c;
        !goes_on
    };
    text.find(end).unwrap_or(text.len())
}

fn number(digits: &str) -> Option<Number> {
    if digits.bytes().all(|b| b.is_ascii_digit()) {
        return digits.parse().ok().map(Number::Int);
    }
    // `0.5f` is common in files with arguments of C functions.
    let plain = digits.strip_suffix(['f', 'F']).unwrap_or(digits);
    let spelled = |c: char| c.is_ascii_digit() || matches!(c, '.' | 'e' | 'E' | '+' | '-');
    if !plain.chars().all(spelled) {
        return None;
    }
    plain
        .parse()
        .ok()
        .filter(|x: &f64| x.is_finite())
        .map(Number::Float)
}
