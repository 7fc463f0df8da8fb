//! The first launch of users' kernels, in a process of its own.
//!
//! The driver of a CPU compiles and runs kernels in the process that uses it: a kernel that
//! leaves its buffers writes over that process's memory, or ends it without a word, and so
//! does a compiler that fails. So the kernels are first launched, whole, in a second
//! process of this program, on memory between guard zones ([`examine`]): once with buffers that
//! end where a zone begins, and once with buffers that begin where one ends.
//!
//! The second process is this executable again, which is caught before its `main` begins
//! (`child`, [`crate::runtime::own_process`]).
//! So it has the version of the first, and nothing needs to be installed.
//! It receives the kernels as a `job`, and answers what they do. `parent` says what the
//! answers mean.
//!
//! What it cannot see: accesses beyond the guard zones that reach other memory, and what a
//! kernel does with other data where these decide what it touches
//! ([`pdawl_core::graph::spec::source::touches_by_data`]).

mod child;
mod job;
mod parent;

use serde::{Deserialize, Serialize};
use thiserror::Error;

pub use job::Words;
pub use parent::{Examined, Tried, Verdict, examine, runs_here};

use crate::codelet::KernelArgument;

/// What the process of the first launches answers, a line each, in JSON. Kernels are counted
/// in the order in which they are launched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Answer {
    /// It was caught, and takes the job.
    Ready,
    /// A kernel has compiled. Its arguments are these, as the compiler reports them.
    Compiled(usize, Vec<KernelArgument>),
    /// A launch of this kernel begins. The region with this number is its first buffer; the
    /// others follow.
    Launches { kernel: usize, first: u64 },
    /// It has ended.
    Launched,
    /// All kernels were launched, on buffers that begin or end at a zone. They may be launched
    /// once more, on others.
    Ended,
    /// The zone behind or before a region was touched, so many bytes from the region.
    Outside {
        region: u64,
        after: bool,
        bytes: u64,
    },
    /// Another address was touched that has no memory.
    Elsewhere,
    /// Bytes just behind or before a region have changed.
    Overwritten {
        region: u64,
        after: bool,
        bytes: u64,
    },
    /// The launches were not made.
    Refused(String),
    /// All launches have ended well.
    Well,
}

/// Why kernels are not examined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum FirstLaunchError {
    /// The stop was set.
    #[error("the run was stopped before the kernel was examined")]
    Interrupted,
}
