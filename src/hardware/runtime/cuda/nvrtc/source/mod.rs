//! Writes OpenCL C so that NVRTC, whose language is C++, means the same by it. Most of OpenCL
//! C is what the header declares (`../header`); what needs another text is here:
//!
//! * `__local float tile[8];` declares memory of the group, so that the word becomes
//!   `__shared__`; in `__local float *from` it says what is pointed to, which C++ does not
//!   tell, and is taken out.
//! * An argument of a kernel in local memory is an offset, of which the kernel makes a
//!   pointer at its begin.
//! * `(float4)(a, b, c, d)` is a cast of the last number in C++, and becomes
//!   `float4(a, b, c, d)`.
//! * Words that OpenCL C has without underscores (`kernel`, `global`) get them, and names
//!   that C++ has taken (`new`, `class`) a prefix.
//!
//! Lines stay where they are, for messages. Pure: text in, text out.

mod edit;
mod kernel;
mod local;
mod token;
mod vector;

#[cfg(test)]
mod tests;

use edit::Edits;
use token::{Token, tokens};

/// A source as NVRTC gets it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Rewritten {
    pub text: String,
    /// The names in it that may be those of several components of a vector, such as `zyx`.
    pub swizzles: Vec<String>,
    /// Whether multiplications and additions must not be fused.
    pub keeps_operations_separate: bool,
}

/// Writes a source for NVRTC.
///
/// # Errors
/// What cannot be carried, with its line.
pub(super) fn rewrite(text: &str) -> Result<Rewritten, String> {
    let tokens = tokens(text);
    let mut edits = Edits::new(text);
    let mut keeps_operations_separate = false;
    for line in &tokens.others {
        let words: Vec<&str> = line.iter().map(|token| edits.word(token)).collect();
        match words[..] {
            ["include" | "include_next", ..] => {
                let line = edits.line(&line[0]);
                return Err(format!(
                    "line {line} includes a file, whose text is not read here; put the text in \
                     its place"
                ));
            }
            ["pragma", _, "FP_CONTRACT", "OFF"] => keeps_operations_separate = true,
            _ => {}
        }
    }
    let bodies = tokens.macros.iter().map(|one| &one.body);
    let streams = || std::iter::once(&tokens.code).chain(bodies.clone());
    let lists = vector::lists(&tokens.macros, &edits);
    kernel::local_arguments(&tokens.code, &mut edits);
    for stream in streams() {
        local::qualifiers(stream, &mut edits)?;
        vector::literals(stream, &lists, &mut edits);
        for token in stream.iter().filter(|token| token.is_name) {
            if let Some(other) = other_name(edits.word(token)) {
                edits.replace(token.at.clone(), other);
            }
        }
    }
    let mut swizzles: Vec<String> = streams()
        .flatten()
        .map(|token| edits.word(token))
        .filter(|word| vector::components(word).is_some())
        .map(str::to_owned)
        .collect();
    swizzles.sort_unstable();
    swizzles.dedup();
    Ok(Rewritten {
        text: edits.done(),
        swizzles,
        keeps_operations_separate,
    })
}

/// The declarations of several components of a vector, for the header: one macro for each
/// number of components that a vector may have.
pub(super) fn swizzle_macros(names: &[String]) -> String {
    let mut macros = String::new();
    for width in [2, 3, 4, 8, 16] {
        macros.push_str(&format!("#define PDAWL_SWIZZLES_{width}"));
        for name in names {
            let Some(places) = vector::components(name) else {
                continue;
            };
            let is_within = places.iter().all(|place| *place < width);
            // The letters x, y, z and w are for vectors of at most four.
            if is_within && (width <= 4 || !name.starts_with(['x', 'y', 'z', 'w'])) {
                let places: Vec<String> = places.iter().map(usize::to_string).collect();
                macros.push_str(&format!(" swizzle<T, {}> {name};", places.join(", ")));
            }
        }
        macros.push('\n');
    }
    macros
}

/// What is written for a name, where it is another one.
fn other_name(name: &str) -> Option<&'static str> {
    Some(match name {
        "kernel" => "__kernel",
        "global" => "__global",
        "constant" => "__constant",
        "private" => "__private",
        "restrict" => "__restrict__",
        "and" => "pdawl_and",
        "and_eq" => "pdawl_and_eq",
        "bitand" => "pdawl_bitand",
        "bitor" => "pdawl_bitor",
        "catch" => "pdawl_catch",
        "class" => "pdawl_class",
        "compl" => "pdawl_compl",
        "delete" => "pdawl_delete",
        "explicit" => "pdawl_explicit",
        "export" => "pdawl_export",
        "friend" => "pdawl_friend",
        "mutable" => "pdawl_mutable",
        "namespace" => "pdawl_namespace",
        "new" => "pdawl_new",
        "not" => "pdawl_not",
        "not_eq" => "pdawl_not_eq",
        "operator" => "pdawl_operator",
        "or" => "pdawl_or",
        "or_eq" => "pdawl_or_eq",
        "protected" => "pdawl_protected",
        "public" => "pdawl_public",
        "template" => "pdawl_template",
        "this" => "pdawl_this",
        "throw" => "pdawl_throw",
        "try" => "pdawl_try",
        "typename" => "pdawl_typename",
        "using" => "pdawl_using",
        "virtual" => "pdawl_virtual",
        "xor" => "pdawl_xor",
        "xor_eq" => "pdawl_xor_eq",
        _ => return None,
    })
}
