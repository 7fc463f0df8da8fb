//! The functions of a source, kernels and helpers, with their parameters, and what a kernel
//! requires of the device.

use std::collections::BTreeSet;

use super::usage::Known;
use super::{Token, is_name, preprocess};
use crate::codelet::AddressSpace;
pub(super) use crate::codelet::opencl_c::{behind, close, parts};

/// A parameter of a function.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    pub name: String,
    /// The type without qualifiers and stars: `float`, `unsigned int`.
    pub type_name: String,
    pub address: AddressSpace,
    pub pointer: bool,
    /// Whether it points to `const`.
    pub read_only: bool,
}

/// A function with a body.
#[derive(Clone, Debug)]
pub(super) struct Function {
    pub name: String,
    pub is_kernel: bool,
    pub parameters: Vec<Parameter>,
    pub body: Vec<Token>,
    pub required_local: Option<Vec<u64>>,
}

/// All functions with bodies, in their order. All brackets of the tokens must close.
pub(super) fn functions(tokens: &[Token]) -> Vec<Function> {
    let mut all = Vec::new();
    let (mut at, mut begin) = (0, 0);
    while at < tokens.len() {
        match tokens[at].as_str() {
            ";" | "}" => {
                at += 1;
                begin = at;
            }
            "{" => at = behind(tokens, at),
            "(" => {
                let Some(end) = close(tokens, at) else {
                    return all;
                };
                let name = at.checked_sub(1).map(|before| &tokens[before]);
                match (name, body_after(tokens, end)) {
                    (Some(name), Some((body, last)))
                        if is_name(name) && name != "__attribute__" =>
                    {
                        let head = [&tokens[begin..at - 1], &tokens[end..body]].concat();
                        all.push(Function {
                            name: name.clone(),
                            is_kernel: head.iter().any(|t| t == "__kernel" || t == "kernel"),
                            required_local: required_local(&head),
                            parameters: parameters(&tokens[at + 1..end]),
                            body: tokens[body + 1..last].to_vec(),
                        });
                        at = last + 1;
                        begin = at;
                    }
                    _ => at = end + 1,
                }
            }
            _ => at += 1,
        }
    }
    all
}

/// The range of the body after a list of parameters. Attributes in between are
/// skipped.
fn body_after(tokens: &[Token], end: usize) -> Option<(usize, usize)> {
    let mut at = end + 1;
    while tokens.get(at).is_some_and(|token| token == "__attribute__") {
        at = behind(tokens, at + 1);
    }
    match tokens.get(at)?.as_str() {
        "{" => Some((at, close(tokens, at)?)),
        _ => None,
    }
}

fn required_local(head: &[Token]) -> Option<Vec<u64>> {
    let at = head
        .iter()
        .position(|token| token == "reqd_work_group_size" || token == "__reqd_work_group_size__")?;
    let open = at + 1;
    let inside = head.get(open + 1..close(head, open)?)?;
    let sizes = parts(inside).into_iter().map(constant);
    let sizes: Vec<u64> = sizes.collect::<Option<_>>()?;
    (sizes.len() == 3 && !sizes.contains(&0)).then_some(sizes)
}

/// The value of a constant expression.
fn constant(tokens: &[Token]) -> Option<u64> {
    preprocess::value(tokens).and_then(|value| u64::try_from(value).ok())
}

fn parameters(tokens: &[Token]) -> Vec<Parameter> {
    let given = parts(tokens);
    if let [[only]] = given.as_slice()
        && only == "void"
    {
        return Vec::new();
    }
    given.into_iter().map(parameter).collect()
}

fn parameter(tokens: &[Token]) -> Parameter {
    let mut address = AddressSpace::Private;
    let (mut pointer, mut read_only) = (false, false);
    let mut words: Vec<&str> = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        match tokens[at].as_str() {
            "__global" | "global" => address = AddressSpace::Global,
            "__constant" | "constant" => address = AddressSpace::Constant,
            "__local" | "local" => address = AddressSpace::Local,
            "__private" | "private" | "restrict" | "__restrict" | "__restrict__" | "volatile"
            | "struct" | "__read_only" | "__write_only" | "__read_write" | "register" => {}
            // After the star it is the pointer itself that is constant.
            "const" => read_only |= !pointer,
            "*" => pointer = true,
            "[" => {
                pointer = true;
                at = behind(tokens, at) - 1;
            }
            "__attribute__" => at = behind(tokens, at + 1) - 1,
            word => words.push(word),
        }
        at += 1;
    }
    let name = if words.len() > 1 { words.pop() } else { None };
    Parameter {
        name: name.unwrap_or_default().to_owned(),
        type_name: words.join(" "),
        read_only: read_only || address == AddressSpace::Constant,
        address,
        pointer,
    }
}

// What a kernel requires of the device: dimensions, work-groups, atomic operations,
// double precision.

/// The requirements of a kernel and of the functions that it calls.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Facts {
    pub dimension: usize,
    pub any_dimension: bool,
    pub uses_groups: bool,
    pub atomics: bool,
    pub fp64: bool,
}

const IDS: [&str; 8] = [
    "get_global_id",
    "get_global_size",
    "get_global_offset",
    "get_group_id",
    "get_num_groups",
    "get_local_id",
    "get_local_size",
    "get_enqueued_local_size",
];

const GROUPS: [&str; 10] = [
    "get_group_id",
    "get_num_groups",
    "get_local_id",
    "get_local_size",
    "get_local_linear_id",
    "get_enqueued_local_size",
    "barrier",
    "work_group_barrier",
    "__local",
    "local",
];

/// Finds the requirements of a kernel.
pub(super) fn facts(kernel: &Function, known: &Known) -> Facts {
    let mut facts = Facts::default();
    let mut seen = BTreeSet::new();
    let mut open = vec![kernel];
    while let Some(function) = open.pop() {
        if !seen.insert(function.name.as_str()) {
            continue;
        }
        let doubles = |name: &str| name.starts_with("double");
        facts.fp64 |= function.parameters.iter().any(|p| doubles(&p.type_name));
        facts.uses_groups |= (function.parameters.iter()).any(|p| p.address == AddressSpace::Local);
        for (at, token) in function.body.iter().enumerate() {
            let name = token.as_str();
            facts.uses_groups |= GROUPS.contains(&name)
                || name.starts_with("work_group_")
                || name.starts_with("sub_group_")
                || name.starts_with("get_sub_group");
            facts.atomics |= name.starts_with("atomic_") || name.starts_with("atom_");
            facts.fp64 |= doubles(name) || name.starts_with("convert_double");
            if IDS.contains(&name)
                && function.body.get(at + 1).is_some_and(|t| t == "(")
                && let Some(end) = close(&function.body, at + 1)
            {
                match &function.body[at + 2..end] {
                    [one] if one.parse::<usize>().is_ok_and(|d| d < 3) => {
                        let asked = one.parse::<usize>().unwrap_or(0) + 1;
                        facts.dimension = facts.dimension.max(asked);
                    }
                    _ => facts.any_dimension = true,
                }
            }
            if let Some(called) = known.get(name) {
                open.push(called);
            }
        }
    }
    facts
}
