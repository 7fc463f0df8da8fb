//! The first launch of users' kernels, in a process of its own.
//!
//! The driver of a CPU compiles and runs kernels in the process that uses it: a kernel
//! that leaves its buffers, or a compiler that fails, ends all of it without a word. So
//! this program first starts itself again for each such device, with the same arguments
//! and `--try-on`. That process (`child`) launches every kernel once, whole, on memory
//! between guard zones, and answers what it does. This one (`parent`) reads the answers,
//! and `verdict` says what they mean.

mod child;
mod parent;
mod verdict;

use clap::Args;
use serde::{Deserialize, Serialize};

pub use child::{launch_graph, launch_kernel};
pub use parent::{Tried, survivors};

/// The option with which this program starts itself.
#[derive(Clone, Debug, Args)]
pub struct FirstLaunch {
    /// Launch each kernel once on this device, between guard zones, and print what happens
    #[arg(long, hide = true, value_name = "DEVICE")]
    pub try_on: Option<String>,
}

/// What the process of the first launches prints, a line each, in JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Answer {
    /// The files are read. Kernels are compiled next.
    Compiles,
    /// A launch begins.
    Launches(Launch),
    /// It has ended. Another kernel may be compiled next.
    Launched,
    /// The zone behind or before a region was touched.
    Outside { region: u64, after: bool },
    /// Another address was touched that has no memory.
    Elsewhere,
    /// Bytes just behind or before a region have changed.
    Overwritten { region: u64, after: bool },
    /// The launches were not made.
    Refused(String),
    /// All launches have ended well.
    Well,
}

/// A kernel that is launched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Launch {
    kernel: String,
    /// The number of the region that is the first buffer; the others follow.
    first: u64,
    /// The buffers, described.
    buffers: Vec<String>,
}
