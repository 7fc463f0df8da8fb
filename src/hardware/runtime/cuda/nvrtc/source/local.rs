//! Local memory: what is declared, pointers to it, and arguments of kernels.

use super::{Edits, Token};
use crate::codelet::opencl_c::{behind, parts};

/// Whether a word is the qualifier of local memory.
fn is_local(word: &str) -> bool {
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

/// Makes an offset of each parameter of a kernel that points to local memory, and declares
/// the pointer at the begin of the kernel. A parameter that is not understood stays.
pub(super) fn local_arguments(code: &[Token], edits: &mut Edits) {
    let mut at = 0;
    while at < code.len() {
        if matches!(code[at].word, "__kernel" | "kernel") {
            at = kernel(code, at + 1, edits);
        } else {
            at += 1;
        }
    }
}

/// Changes the kernel whose head begins at a token; returns where its body begins. Branches
/// of `#if` may give it several lists of parameters.
fn kernel(code: &[Token], begin: usize, edits: &mut Edits) -> usize {
    let mut pointers: Vec<String> = Vec::new();
    let mut at = begin;
    while let Some(token) = code.get(at) {
        match token.word {
            "{" => {
                if !pointers.is_empty() {
                    let text = format!("{{ {}", pointers.join(" "));
                    edits.replace(token.at.clone(), &text);
                }
                return at;
            }
            ";" => return at,
            "__attribute__" => at = behind(code, at + 1),
            "(" => {
                let end = behind(code, at);
                let inside = code.get(at + 1..end - 1).unwrap_or_default();
                for parameter in parts(inside) {
                    if let Some(pointer) = local_argument(parameter, edits)
                        && !pointers.contains(&pointer)
                    {
                        pointers.push(pointer);
                    }
                }
                at = end;
            }
            _ => at += 1,
        }
    }
    at
}

/// Changes a parameter that points to local memory, and returns the declaration of its
/// pointer.
fn local_argument(parameter: &[Token], edits: &mut Edits) -> Option<String> {
    let words: Vec<&str> = parameter.iter().map(|token| token.word).collect();
    let is_plain = |word: &&str| !matches!(*word, "(" | ")" | "[" | "]");
    if !words.iter().any(|word| is_local(word))
        || !words.contains(&"*")
        || !words.iter().all(is_plain)
    {
        return None;
    }
    let (first, last) = (parameter.first()?, parameter.last()?);
    let whole = first.at.start..last.at.end;
    // A directive in between would be lost.
    if !last.is_name() || edits.text(whole.clone()).contains('#') {
        return None;
    }
    let name = last.word;
    let kind: Vec<&str> = words[..words.len() - 1]
        .iter()
        .filter(|word| !is_local(word))
        .map(|word| super::other_name(word).unwrap_or(word))
        .collect();
    edits.replace(whole, &format!("PDAWL_LOCAL_ARGUMENT({name})"));
    Some(format!("PDAWL_LOCAL_POINTER({name}, {})", kind.join(" ")))
}
