//! Checks that all brackets close; otherwise the source is truncated or a character
//! is missing.

use thiserror::Error;

use super::preprocess::Seen;

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
