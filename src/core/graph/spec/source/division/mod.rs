//! Whether the groups of a kernel may run separately, on several devices, as far as its text
//! tells, and on what it depends which bytes they write.
//!
//! Parts of a launch run on copies of its memory. That is not right for groups that talk to
//! one another, by atomic operations or volatile memory, and for kernels with results
//! besides their buffers. Such kernels are refused ([`Indivisible`]).
//!
//! Of other kernels it is asked whether the address of each store to global memory, and
//! whether it happens, depends on data that the kernel loads. Where it does not, what
//! one launch writes is what all launches with the same shape and the same scalars write,
//! so a trial tells it for all of them. All assignments to a variable count wherever they
//! stand, with the conditions around them. What is not understood counts as data.
//!
//! * `statements` reads a function's body and finds where in expressions names
//!   stand, and `body` adds a function to the graph of values.

mod body;
mod statements;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use thiserror::Error;

use super::function::{Function, Parameter};
use super::preprocess::Seen;
use super::usage::{Known, follow};
use super::{function, usage};
use crate::codelet::AddressSpace;

/// Why the groups of a kernel must not run separately, by its text.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Indivisible {
    #[error("its program's text has no such kernel that can be read")]
    NoKernel,
    #[error("its program includes files, whose text is not known")]
    Includes,
    #[error("what its program asks in a condition (#if) is not known of the compiler")]
    Condition,
    #[error("its program has macros that join tokens or take any number of arguments")]
    Macros,
    #[error("its program has volatile memory")]
    Volatile,
    #[error("its program has types with pointers to global memory in them")]
    PointerTypes,
    #[error("function `{0}` has atomic operations on global memory")]
    Atomics(String),
    #[error("function `{0}` prints")]
    Prints(String),
    #[error("argument {0} is an image, a sampler or a pipe")]
    Image(usize),
    #[error("function `{0}` asks for the number of dimensions")]
    Dimensions(String),
    #[error("the pointer of argument {0} cannot be followed")]
    Argument(usize),
    #[error("function `{0}` has a pointer that cannot be followed")]
    Pointer(String),
    #[error("it calls `{0}`, which is not known, with a pointer or with other work-items")]
    UnknownFunction(String),
    #[error("function `{0}` cannot be read")]
    Unreadable(String),
}

/// A kernel whose groups may run separately. Parameters are indices.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Divisible {
    /// Pointers whose data decide which bytes are written.
    pub deciding: BTreeSet<usize>,
    /// Whether the order in which work-items run decides it.
    pub by_chance: bool,
    /// Plain parameters that decide it.
    pub scalars: BTreeSet<usize>,
    /// By parameter: the type of what it is or points to.
    pub types: Vec<String>,
    /// Parameters whose contents decide what is loaded, how often a loop runs, or what
    /// whole numbers are divided by. A trial must leave them as they are.
    pub fixed: BTreeSet<usize>,
    /// Whether data decide which memory is touched, how often a loop runs, or what whole
    /// numbers are divided by. Otherwise all launches with the same shape and the same scalars
    /// touch the same memory.
    pub touches_by_data: bool,
}

impl Divisible {
    /// Whether which bytes are written depends on data.
    pub fn is_by_data(&self) -> bool {
        self.by_chance || !self.deciding.is_empty()
    }
}

/// What a text tells of a kernel. There are no functions if a bracket is not closed.
pub(super) fn divisible(
    seen: &Seen,
    functions: Option<&[Function]>,
    kernel: &str,
) -> Result<Divisible, Indivisible> {
    if seen.includes {
        return Err(Indivisible::Includes);
    }
    if seen.uncertain {
        return Err(Indivisible::Condition);
    }
    let functions = functions.ok_or(Indivisible::NoKernel)?;
    check_text(seen)?;
    let known: Known = (functions.iter())
        .map(|function| (function.name.as_str(), function))
        .collect();
    if known.len() < functions.len() {
        // Overloaded functions, or one for each branch of a condition.
        return Err(Indivisible::Unreadable("with several bodies".to_owned()));
    }
    let root = functions.iter().find(|f| f.is_kernel && f.name == kernel);
    let root = root.ok_or(Indivisible::NoKernel)?;
    check_parameters(root, &known)?;
    let mut flow = Flow::default();
    for function in reached(root, &known) {
        check_function(function)?;
        body::add(function, &known, &mut flow)?;
    }
    Ok(division(root, &flow))
}

fn division(root: &Function, flow: &Flow) -> Divisible {
    let parameters = &root.parameters;
    let index = |name: &str| parameters.iter().position(|p| p.name == name);
    let reached = |values: &BTreeSet<Node>| {
        let all = flow.all(values);
        let data = all.iter().any(|node| matches!(node, Node::Data(..)));
        let chance = all.contains(&Node::Chance);
        let own = all.iter().filter_map(|node| match node {
            Node::Value(function, name) if *function == root.name => index(name),
            _ => None,
        });
        (own.collect::<BTreeSet<usize>>(), data, chance)
    };
    let (decides, by_data, by_chance) = reached(&flow.stores);
    let is_global = |index: &usize| {
        let address = parameters[*index].address;
        matches!(address, AddressSpace::Global | AddressSpace::Constant)
    };
    let is_plain = |index: &usize| !parameters[*index].pointer;
    let is_float = |index: &usize| {
        let name = &parameters[*index].type_name;
        ["float", "double", "half"]
            .iter()
            .any(|float| name.starts_with(float))
    };
    let data = |values: &BTreeSet<Node>| -> BTreeSet<usize> {
        // Of pointers, those that something was loaded through.
        let all = flow.all(values);
        let loaded = all
            .iter()
            .filter(|node| matches!(node, Node::Data(..)))
            .copied()
            .collect();
        let through = flow.all(&loaded);
        let own = through.iter().filter_map(|node| match node {
            Node::Value(function, name) if *function == root.name => index(name),
            _ => None,
        });
        own.filter(is_global).collect()
    };
    let plain = |all: &BTreeSet<usize>| all.iter().copied().filter(is_plain).collect();
    let scalars: BTreeSet<usize> = plain(&decides);
    let mut fixed: BTreeSet<usize> = data(&flow.fixed);
    let mut touches_by_data = by_data || by_chance || reached(&flow.touches).1;
    fixed.extend(plain(&reached(&flow.fixed).0));
    let mut divisors = data(&flow.divisors);
    touches_by_data |= divisors.iter().any(|index| !is_float(index));
    divisors.extend::<BTreeSet<usize>>(plain(&reached(&flow.divisors).0));
    fixed.extend(divisors.into_iter().filter(|index| !is_float(index)));
    fixed.extend(&scalars);
    Divisible {
        deciding: match by_data {
            true => data(&flow.stores),
            false => BTreeSet::new(),
        },
        by_chance,
        scalars,
        fixed,
        types: parameters.iter().map(|p| p.type_name.clone()).collect(),
        touches_by_data,
    }
}

/// The functions that a kernel calls, itself included.
fn reached<'a>(root: &'a Function, known: &Known<'a>) -> Vec<&'a Function> {
    let mut found: Vec<&Function> = vec![root];
    let mut at = 0;
    while at < found.len() {
        for token in &found[at].body {
            if let Some(called) = known.get(token.as_str())
                && found.iter().all(|function| function.name != called.name)
            {
                found.push(called);
            }
        }
        at += 1;
    }
    found
}

fn check_text(seen: &Seen) -> Result<(), Indivisible> {
    if seen.has_macros {
        return Err(Indivisible::Macros);
    }
    let is = |token: &String, names: &[&str]| names.contains(&token.as_str());
    let tokens = &seen.tokens;
    if tokens
        .iter()
        .any(|token| is(token, &["volatile", "__volatile__"]))
    {
        return Err(Indivisible::Volatile);
    }
    for (at, token) in tokens.iter().enumerate() {
        let end = match () {
            () if token == "typedef" => tokens[at..].iter().position(|token| token == ";"),
            () if is(token, &["struct", "union"]) => {
                let open = tokens[at..].iter().take(3).position(|token| token == "{");
                open.and_then(|open| function::close(tokens, at + open))
                    .map(|end| end - at)
            }
            () => None,
        };
        let inside = end.map_or(&[][..], |end| &tokens[at..at + end]);
        if inside
            .iter()
            .any(|token| is(token, &["*", "__global", "global"]))
        {
            return Err(Indivisible::PointerTypes);
        }
    }
    Ok(())
}

fn check_parameters<'a>(root: &'a Function, known: &Known<'a>) -> Result<(), Indivisible> {
    let opaque = |parameter: &Parameter| {
        let name = &parameter.type_name;
        name.contains("image") || name.contains("sampler_t") || name.contains("pipe")
    };
    if let Some(index) = root.parameters.iter().position(opaque) {
        return Err(Indivisible::Image(index));
    }
    let accesses = follow(root, known, &mut usage::Followed::default());
    let guessed = accesses.iter().zip(&root.parameters);
    let mut guessed = guessed
        .map(|(access, parameter)| access.guessed && parameter.address == AddressSpace::Global);
    match guessed.position(|guessed| guessed) {
        Some(index) => Err(Indivisible::Argument(index)),
        None => Ok(()),
    }
}

fn check_function(function: &Function) -> Result<(), Indivisible> {
    let name = || function.name.clone();
    let global = |p: &Parameter| p.address == AddressSpace::Global;
    for (at, token) in function.body.iter().enumerate() {
        match token.as_str() {
            "printf" => return Err(Indivisible::Prints(name())),
            "get_work_dim" => return Err(Indivisible::Dimensions(name())),
            word if word.starts_with("atomic_") || word.starts_with("atom_") => {
                // On local memory they stay within the group.
                let open = function.body.get(at + 1).is_some_and(|token| token == "(");
                let end = function::close(&function.body, at + 1).filter(|_| open);
                let given = end.map_or(&[][..], |end| &function.body[at + 2..end]);
                let words = function::parts(given).first().copied().unwrap_or_default();
                let local = words.iter().any(|word| is_local(function, word));
                let shared = words.iter().any(|word| {
                    let mut parameters = function.parameters.iter();
                    parameters.any(|p| global(p) && p.name == *word)
                });
                if !local || shared {
                    return Err(Indivisible::Atomics(name()));
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// Whether a word names local memory of a function, in which it is declared as such.
fn is_local(function: &Function, word: &str) -> bool {
    let local = |p: &Parameter| p.address == AddressSpace::Local;
    if function
        .parameters
        .iter()
        .any(|p| local(p) && p.name == word)
    {
        return true;
    }
    let mut statements = function
        .body
        .split(|token| matches!(token.as_str(), ";" | "{" | "}"));
    statements.any(|statement| {
        let declares = matches!(
            statement.first().map(String::as_str),
            Some("__local" | "local")
        );
        declares && statement.iter().any(|token| token == word)
    })
}

// What the values of a kernel are made of: a graph from each value to those that it may
// depend on, wherever and whenever in the kernel they arise.

/// A value, by function and name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Node<'a> {
    /// A variable with all that is in it. Of a pointer to global memory, the address.
    Value(&'a str, &'a str),
    /// The address in a pointer to local or private memory.
    Address(&'a str, &'a str),
    /// What was loaded from global memory through a pointer.
    Data(&'a str, &'a str),
    /// What a function returns.
    Returned(&'a str),
    /// A condition of a function. The first one is that it was called, and has not
    /// returned.
    Guard(&'a str, usize),
    /// Something that depends on the order in which work-items run.
    Chance,
}

/// The graph, and the values that matter.
#[derive(Default)]
struct Flow<'a> {
    from: BTreeMap<Node<'a>, BTreeSet<Node<'a>>>,
    /// What the addresses of stores to global memory are made of, and the conditions on
    /// which they happen.
    pub stores: BTreeSet<Node<'a>>,
    /// What must not be changed for a trial: what addresses and conditions are made of.
    pub fixed: BTreeSet<Node<'a>>,
    /// What decides which memory is touched, and how often a loop runs.
    pub touches: BTreeSet<Node<'a>>,
    /// What may divide a whole number.
    pub divisors: BTreeSet<Node<'a>>,
}

impl<'a> Flow<'a> {
    /// A value may depend on others.
    pub fn depends(&mut self, value: Node<'a>, on: impl IntoIterator<Item = Node<'a>>) {
        self.from.entry(value).or_default().extend(on);
    }

    /// All that some values depend on, themselves included.
    pub fn all(&self, values: &BTreeSet<Node<'a>>) -> BTreeSet<Node<'a>> {
        let mut found = values.clone();
        let mut open: Vec<Node<'a>> = values.iter().copied().collect();
        while let Some(node) = open.pop() {
            let address = match node {
                // Where something was loaded depends on the pointer.
                Node::Data(function, name) => Some(Node::Value(function, name)),
                _ => None,
            };
            let from = self.from.get(&node).into_iter().flatten().copied();
            for next in from.chain(address) {
                if found.insert(next) {
                    open.push(next);
                }
            }
        }
        found
    }
}
