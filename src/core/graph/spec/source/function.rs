//! The functions of a source, kernels and helpers, with their parameters.

use super::condition;
use super::token::{Token, is_name};
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
    condition::value(tokens).and_then(|value| u64::try_from(value).ok())
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
