//! A reader of OpenCL C, as far as specifications need it: the kernels of a source,
//! their arguments, whether they read or write each buffer, and their dimensions. It
//! is the counterpart of the compiler pass of the PySchedCL paper (section 4.A),
//! without a compiler: a buffer is written if it is on the left of an assignment.
//!
//! * `preprocess` puts files in place of directives, evaluates
//!   `#if` and replaces plain macros, `brackets` checks that all close,
//!   `function` finds functions and their parameters, `usage` what a body does with
//!   its pointers.
//!
//! `division` tells whether a kernel's groups may run separately, and what their stores depend
//! on. `macros` has those of compilers, too, and replaces macros.
//!
//! A pointer that cannot be followed (into an unknown function, or a macro that is not replaced) counts as
//! read and written.

mod brackets;
mod division;
mod function;
mod macros;
mod preprocess;
mod usage;

use std::collections::BTreeMap;

pub use brackets::Unclosed;
pub use division::{Divisible, Indivisible};
pub use function::Parameter;
pub use macros::{Target, macros_of};
pub use preprocess::with_included;
pub use usage::Access;

use self::macros::Room;
use crate::codelet::opencl_c;
use crate::codelet::opencl_c::{Kind, lines};
use function::Function;
use preprocess::Seen;

/// A kernel of a source.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelInfo {
    pub name: String,
    pub parameters: Vec<Parameter>,
    /// By parameter: what the kernel does with it.
    pub accesses: Vec<Access>,
    /// Dimensions that it uses, 1 to 3.
    pub dimension: usize,
    /// Whether the dimension is a guess, since a variable selects it.
    pub dimension_guessed: bool,
    /// Whether it uses its work-group, so that the local size may change its result.
    pub uses_groups: bool,
    /// `reqd_work_group_size`.
    pub required_local: Option<Vec<u64>>,
    /// Whether it uses atomic operations on memory that all work-groups share.
    pub atomics: bool,
    /// Whether it computes in double precision.
    pub fp64: bool,
}

/// A source that has been read. Reading takes longer than what is asked of one kernel.
pub struct Source {
    seen: Seen,
    functions: Result<Vec<Function>, Unclosed>,
}

impl Source {
    /// Reads a text with these macros (of `-D`) defined, and those of the compilers of common
    /// devices ([`Target::common`]).
    pub fn new(text: &str, macros: &BTreeMap<String, String>) -> Self {
        Self::with_macros(text, &Target::common().macros(macros))
    }

    /// Reads a text with these macros alone, those of the compiler among them.
    pub fn with_macros(text: &str, macros: &BTreeMap<String, String>) -> Self {
        let mut seen = preprocess::preprocess(text, macros);
        resolve(&mut seen);
        let closed = brackets::closed(&seen);
        let functions = closed.map(|()| function::functions(&seen.tokens));
        Self { seen, functions }
    }

    /// Whether nothing that a compiler may see otherwise decides what is compiled: no macro of
    /// its own that is not known, no file that was not read.
    pub fn is_certain(&self) -> bool {
        !self.seen.uncertain && !self.seen.includes
    }

    /// The kernels, in their order.
    ///
    /// # Errors
    /// When a bracket is not closed, since what follows it cannot be understood.
    pub fn kernels(&self) -> Result<Vec<KernelInfo>, Unclosed> {
        self.functions
            .as_deref()
            .map(infos)
            .map_err(|unclosed| *unclosed)
    }

    /// What the text tells of running the groups of a kernel separately.
    ///
    /// # Errors
    /// Why they must not run separately.
    pub fn divisible(&self, kernel: &str) -> Result<Divisible, Indivisible> {
        division::divisible(&self.seen, self.functions.as_deref().ok(), kernel)
    }
}

/// Whether the data of a kernel decide which memory it touches, or whether it ends, as far as
/// its text tells; also where the text does not tell. All launches of another kernel with the
/// same shape and the same scalars touch the same memory.
pub fn touches_by_data(text: &str, macros: &BTreeMap<String, String>, kernel: &str) -> bool {
    (Source::new(text, macros).divisible(kernel)).map_or(true, |division| division.touches_by_data)
}

/// The kernels of a source, in their order, with these macros (of `-D`) defined.
///
/// # Errors
/// When a bracket is not closed, since what follows it cannot be understood.
pub fn kernels(text: &str, macros: &BTreeMap<String, String>) -> Result<Vec<KernelInfo>, Unclosed> {
    Source::new(text, macros).kernels()
}

fn infos(functions: &[Function]) -> Vec<KernelInfo> {
    let known: BTreeMap<&str, &Function> = (functions.iter())
        .map(|function| (function.name.as_str(), function))
        .collect();
    let mut followed = usage::Followed::default();
    (functions.iter().filter(|f| f.is_kernel))
        .map(|kernel| {
            let facts = function::facts(kernel, &known);
            let asked = match facts.any_dimension {
                true => 3,
                false => facts.dimension.max(1),
            };
            KernelInfo {
                name: kernel.name.clone(),
                accesses: usage::follow(kernel, &known, &mut followed),
                dimension: asked,
                dimension_guessed: facts.any_dimension,
                uses_groups: facts.uses_groups,
                required_local: kernel.required_local.clone(),
                atomics: facts.atomics,
                fp64: facts.fp64,
                parameters: kernel.parameters.clone(),
            }
        })
        .collect()
}

/// A token: a word, a number, or an operator of one or more characters.
type Token = String;

/// The word of a token. What is quoted is no code, and is empty.
fn word(token: &opencl_c::Token) -> Token {
    match token.kind {
        Kind::Quoted if token.word.starts_with('"') => "\"\"".to_owned(),
        Kind::Quoted => "0".to_owned(),
        _ => token.word.to_owned(),
    }
}

/// The tokens of a text without directives.
fn tokens(text: &str) -> Vec<Token> {
    let lines = lines(text);
    lines
        .iter()
        .flat_map(|line| &line.tokens)
        .map(word)
        .collect()
}

/// Whether a token can be a name.
fn is_name(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

// Names that a source gives to types: each is replaced by its type, so that whatever
// reads the source knows the types of OpenCL C alone.

/// Words of a type that takes no room.
const FEW: usize = 8;

/// Replaces the names of types from where they are given on. Those of structures,
/// functions and arrays stay.
fn resolve(seen: &mut Seen) {
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
