//! A reader of OpenCL C, as far as specifications need it: the kernels of a source,
//! their arguments, whether they read or write each buffer, and their dimensions. It
//! is the counterpart of the compiler pass of the PySchedCL paper (section 4.A),
//! without a compiler: a buffer is written if it is on the left of an assignment.
//!
//! * `token` has the tokens of the text as words, `preprocess`
//!   evaluates `#if` and replaces plain macros, `brackets` checks that all close,
//!   `function` finds functions and their parameters, `usage` what a body does with
//!   its pointers, `facts` what it requires of the device.
//!
//! `division` tells whether a kernel's groups may run separately, and what their stores depend
//! on. `predefined` has the macros of compilers, `macros` replaces macros, and `typedefs` names
//! of types. `include` puts files in place
//! of directives.
//!
//! A pointer that cannot be followed (into an unknown function, or a macro that is not replaced) counts as
//! read and written.

mod brackets;
mod condition;
mod division;
mod facts;
mod function;
mod include;
mod macros;
mod predefined;
mod preprocess;
mod token;
mod typedefs;
mod usage;

use std::collections::BTreeMap;

pub use brackets::Unclosed;
pub use division::{Divisible, Indivisible};
pub use function::Parameter;
pub use include::with_included;
pub use predefined::{Target, macros_of};
pub use usage::Access;

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
        typedefs::resolve(&mut seen);
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
            let facts = facts::facts(kernel, &known);
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
