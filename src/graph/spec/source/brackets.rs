//! Brackets that are never closed: the source was cut off, or a sign is missing.

use thiserror::Error;

use super::preprocess::Seen;

/// A bracket without its other half.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("`{bracket}` is never closed; every bracket needs its other half in the source itself")]
pub struct Unclosed {
    pub bracket: char,
    /// Of the source, counted from 1.
    pub line: usize,
}

/// Refuses tokens with a bracket that is not closed by its like. One that
/// closes nothing is left to the compiler.
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
