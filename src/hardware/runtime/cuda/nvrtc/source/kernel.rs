//! Arguments of kernels in local memory.

use super::Token;
use super::edit::Edits;
use super::local::is_local;
use crate::codelet::opencl_c::{behind, parts};

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
