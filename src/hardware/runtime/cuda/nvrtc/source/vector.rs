//! Literals of vectors, and names of their components.

use std::collections::BTreeSet;

use super::{Edits, Macro, Token};
use crate::codelet::opencl_c::parts;

/// Takes the parentheses from the type of a literal, `(float4)(a, b, c, d)` or
/// `(float4){a, b, c, d}`. With a type of another name, `(pair)(a, b)`, only a literal has
/// several values; with one value the cast means the same. `lists` are the macros that stand
/// for several values.
pub(super) fn literals(tokens: &[Token], lists: &BTreeSet<&str>, edits: &mut Edits) {
    for (index, window) in tokens.windows(4).enumerate() {
        let [open, name, close, next] = window else {
            continue;
        };
        let next = next.word;
        if open.word != "(" || !name.is_name() || close.word != ")" || !matches!(next, "(" | "{") {
            continue;
        }
        let before = index.checked_sub(1).map(|before| &tokens[before]);
        let is_literal = is_type(name.word)
            || (begins_value(before) && (next == "{" || has_several(&tokens[index + 3..], lists)));
        if is_literal {
            edits.replace(open.at.clone(), " ");
            edits.replace(close.at.clone(), " ");
        }
    }
}

/// Whether a name is that of a vector's type.
fn is_type(name: &str) -> bool {
    let digits = name.find(|c: char| c.is_ascii_digit());
    let (element, count) = name.split_at(digits.unwrap_or(name.len()));
    let elements = [
        "char", "uchar", "short", "ushort", "int", "uint", "long", "ulong", "float", "double",
    ];
    elements.contains(&element) && matches!(count, "2" | "3" | "4" | "8" | "16")
}

/// Whether what follows a token is a value, and not the arguments of a function or the
/// statement of a condition.
fn begins_value(before: Option<&Token>) -> bool {
    let Some(before) = before else {
        return true;
    };
    match before.word {
        "return" | "else" | "case" => true,
        ")" | "]" => false,
        _ => !before.is_name(),
    }
}

/// The names of macros with commas of their own.
pub(super) fn lists<'t>(macros: &[Macro<'t>]) -> BTreeSet<&'t str> {
    let mut lists = BTreeSet::from(["__VA_ARGS__"]);
    let is_list =
        |body: &[Token]| parts(body).len() > 1 || body.last().is_some_and(|last| last.word == ",");
    let several = macros.iter().filter(|one| is_list(&one.body));
    lists.extend(several.map(|one| one.name.word));
    lists
}

/// Whether the parenthesis that begins here has several parts.
fn has_several(tokens: &[Token], lists: &BTreeSet<&str>) -> bool {
    let mut depth = 0usize;
    for token in tokens {
        match token.word {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return false;
                }
            }
            "," if depth == 1 => return true,
            word if depth == 1 && lists.contains(word) => return true,
            _ => {}
        }
    }
    false
}

/// The places of the components that a name may stand for, if they are several: `zyx`, `s01`.
pub(super) fn components(name: &str) -> Option<Vec<usize>> {
    let letters = |c: char| "xyzw".find(c);
    let digits = |c: char| c.to_digit(16).map(|digit| digit as usize);
    let places: Option<Vec<usize>> = match name.strip_prefix(['s', 'S']) {
        Some(rest) => rest.chars().map(digits).collect(),
        None => name.chars().map(letters).collect(),
    };
    let places = places?;
    matches!(places.len(), 2 | 3 | 4 | 8 | 16).then_some(places)
}
