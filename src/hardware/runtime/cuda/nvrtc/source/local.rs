//! Local memory that is declared, and pointers to it.

use super::Token;
use super::edit::Edits;
use crate::codelet::opencl_c::behind;

/// Whether a word is the qualifier of local memory.
pub(super) fn is_local(word: &str) -> bool {
    matches!(word, "__local" | "local")
}

/// Replaces the qualifier of local memory. One whose meaning is not seen, as a macro has the
/// rest of the declaration, stays, and NVRTC does not know it.
///
/// # Errors
/// A declaration that NVRTC would take for another one, with its line.
pub(super) fn qualifiers(tokens: &[Token], edits: &mut Edits) -> Result<(), String> {
    let mut depth = 0usize;
    for (index, token) in tokens.iter().enumerate() {
        match token.word {
            "(" => depth += 1,
            ")" => depth = depth.saturating_sub(1),
            // Branches of `#if` may open a parenthesis twice.
            ";" | "{" | "}" => depth = 0,
            word if is_local(word) => {
                let by = match declared(&tokens[index + 1..], depth) {
                    Some(Declared::Pointer) => "",
                    Some(Declared::Memory) => "__shared__",
                    Some(Declared::Both) => {
                        let line = token.line;
                        return Err(format!(
                            "line {line} declares local memory and a pointer to it at once; \
                             declare them separately"
                        ));
                    }
                    None => "__local",
                };
                edits.replace(token.at.clone(), by);
            }
            _ => {}
        }
    }
    Ok(())
}

enum Declared {
    /// Something that points to local memory.
    Pointer,
    /// Local memory itself.
    Memory,
    /// One after the other.
    Both,
}

/// What the tokens behind a qualifier declare, in so many parentheses.
fn declared(tokens: &[Token], depth: usize) -> Option<Declared> {
    let word = |at: usize| tokens.get(at).map(|token| token.word);
    let mut at = 0;
    // The type and its qualifiers, then a name.
    while let Some(token) = tokens.get(at) {
        match token.word {
            "__attribute__" => at = behind(tokens, at + 1),
            _ if token.is_name() => at += 1,
            _ => break,
        }
    }
    match word(at)? {
        "*" => return Some(Declared::Pointer),
        "(" if word(at + 1) == Some("*") => return Some(Declared::Pointer),
        "[" if depth > 0 => return Some(Declared::Pointer),
        "[" | ";" | "," | "=" if depth == 0 => {}
        _ => return None,
    }
    let is_pointer = |at: usize| word(at) == Some(",") && word(at + 1) == Some("*");
    let ends = |at: &usize| word(*at).is_none_or(|word| word == ";");
    let end = (at..).find(ends)?;
    match (at..end).any(is_pointer) {
        true => Some(Declared::Both),
        false => Some(Declared::Memory),
    }
}
