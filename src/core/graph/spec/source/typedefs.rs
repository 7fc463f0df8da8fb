//! Names that a source gives to types: each is replaced by its type, so that whatever
//! reads the source knows the types of OpenCL C alone.

use std::collections::BTreeMap;

use super::macros::Room;
use super::preprocess::Seen;
use super::token::{Token, is_name};

/// Words of a type that takes no room.
const FEW: usize = 8;

/// Replaces the names of types from where they are given on. Those of structures,
/// functions and arrays stay.
pub(super) fn resolve(seen: &mut Seen) {
    if !seen.tokens.iter().any(|token| token == "typedef") {
        return;
    }
    let mut types: BTreeMap<Token, Vec<Token>> = BTreeMap::new();
    let mut made = Vec::with_capacity(seen.tokens.len());
    let mut lines = Vec::with_capacity(seen.lines.len());
    let mut at = 0;
    while at < seen.tokens.len() {
        if seen.tokens[at] == "typedef"
            && let Some((name, of, next)) = defined(&seen.tokens, at, &types, &mut seen.room)
        {
            types.insert(name, of);
            at = next;
            continue;
        }
        let member = made
            .last()
            .is_some_and(|before: &Token| before == "." || before == "->");
        match types.get(&seen.tokens[at]) {
            // Most types are few words, of which a long source has many.
            Some(of) if !member && (of.len() <= FEW || seen.room.takes(of)) => {
                made.extend_from_slice(of)
            }
            _ => made.push(seen.tokens[at].clone()),
        }
        lines.resize(made.len(), seen.lines[at]);
        at += 1;
    }
    seen.tokens = made;
    seen.lines = lines;
}

/// The name that a `typedef` at `at` gives, its type, and the index of what follows.
fn defined(
    tokens: &[Token],
    at: usize,
    types: &BTreeMap<Token, Vec<Token>>,
    room: &mut Room,
) -> Option<(Token, Vec<Token>, usize)> {
    let end = at + tokens[at..].iter().position(|token| token == ";")?;
    let (name, of) = tokens[at + 1..end].split_last()?;
    let plain = |token: &Token| is_name(token) || token == "*";
    let structure = ["struct", "union", "enum", "__attribute__"];
    let allowed = of
        .iter()
        .all(|token| plain(token) && !structure.contains(&token.as_str()));
    if of.is_empty() || !is_name(name) || !allowed {
        return None;
    }
    let mut whole = Vec::new();
    for token in of {
        let known = types
            .get(token)
            .map_or(std::slice::from_ref(token), Vec::as_slice);
        if !room.takes(known) {
            return None;
        }
        whole.extend_from_slice(known);
    }
    Some((name.clone(), whole, end + 1))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fmt::Write;

    use crate::graph::spec::source::kernels;

    #[test]
    fn parameters_and_bodies_have_the_types_that_names_stand_for() {
        let text = "typedef double DATA_TYPE;\ntypedef DATA_TYPE real_t;\n\
                    typedef __global const unsigned int *indices;\ntypedef float4 vec;\n\
                    typedef struct { float x; DATA_TYPE y; } pair;\n\
                    kernel void k(global real_t *o, indices i, vec v, global pair *p, int n) {\n\
                    o[i[0]] = v.x + p->y; }";
        let kernel = &kernels(text, &BTreeMap::new()).unwrap()[0];
        let types: Vec<&str> = kernel
            .parameters
            .iter()
            .map(|p| p.type_name.as_str())
            .collect();
        assert_eq!(types, ["double", "unsigned int", "float4", "pair", "int"]);
        assert!(kernel.fp64);
        assert!(kernel.parameters[1].pointer && kernel.parameters[1].read_only);
        assert!(kernel.accesses[0].written && !kernel.accesses[1].written);
        let mut doubling = String::new();
        for i in 1..60 {
            writeln!(doubling, "typedef T{0} T{0} T{i};", i - 1).unwrap();
        }
        let text = doubling + "kernel void k(global T59 *o) { o[0] = 1; }";
        let kernel = &kernels(&text, &BTreeMap::new()).unwrap()[0];
        assert!(kernel.parameters[0].type_name.len() < 1000);
        let fields = "typedef float x;\nkernel void k(global float2 *o) { o[0].x = 1; }";
        let kernel = &kernels(fields, &BTreeMap::new()).unwrap()[0];
        assert!(kernel.accesses[0].written);
    }
}
