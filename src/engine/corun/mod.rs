//! Co-running: a divisible workload, a balancer, and the devices of a runtime.
//!
//! A co-run has two phases. [`Corun::open`] allocates memory and queues for a
//! workload on every device and says what a balancer has to know of them (its
//! [`Setup`](crate::balance::Setup)). [`Corun::run`] computes the steps as a
//! balancer divides them.
//!
//! What units are made of, and how they are kept and moved, is a form of data
//! (`form`): a [`grid`], a sparse matrix's [`product`], or the buffers of a user's
//! [`kernel`]. A step (`step`) is the same for all: ask the balancer for a plan,
//! lay it out ([`layout`]), relocate what changes hands, launch what is held, hand
//! out the pool in chunks as devices become free, and wait for everything: the
//! barrier. `run` is the state of a run, `context` what it shares with the form,
//! `in_flight` the submitted commands, `probe` what is measured before the first
//! step. Devices that hold everything and copy directly need no barrier with the host
//! (`ahead`).
//!
//! A node of several computes some of the units as a [`session`], which gives the runtime
//! back between two steps.
//!
//! A device that fails gives its chunks back. If it held units, their present
//! version is lost with it, and the run begins again from the first version on
//! the devices that are left. A lost device that is back takes part again from the
//! next barrier on, with memory and queues of its new generation.

mod ahead;
mod context;
mod form;
mod jobs;
pub mod layout;
pub mod memory;
mod open;
mod probe;
mod run;
pub mod session;
mod step;

use std::sync::atomic::AtomicBool;

use thiserror::Error;

use crate::outcome::StepRecord;
use crate::runtime::RuntimeError;
use crate::workload::{FirstVersionError, Supersteps};

pub use form::{Later, When, grid, kernel, product};
pub use open::Corun;

/// Label of launches on held units.
pub const HELD: &str = "held";
/// Label of commands for pool units.
pub const CHUNK: &str = "chunk";
/// Label of writes of neighbours' units.
pub const HALO: &str = "halo";
/// Label of reads of a held range's first and last unit.
pub const EDGE: &str = "edge";
/// Label of transfers of units that change hands.
pub const MOVE: &str = "move";
/// Label of writes of the vector, and of tables, to devices.
pub const VECTOR: &str = "vector";
/// Label of reads of the result into host memory.
pub const GATHER: &str = "gather";
/// Label of writes of a kernel's buffers.
pub const INPUT: &str = "input";
/// Label of the first commands, whose results are thrown away.
pub const WARM: &str = "warm-up";
/// Label of the probes' commands, whose results are thrown away too.
pub const PROBE: &str = "probe";

/// What a co-run is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The steps to compute, at least 1, and how they are divided by barriers; more than one
    /// step between two of them with grids only.
    pub supersteps: Supersteps,
    /// End when a step changes at most this, where the workload finds its change
    /// ([`Outcome::change`](crate::Outcome)): page ranks in each step, a grid in the
    /// last step of each period.
    pub tolerance: Option<f64>,
    /// Most bytes to use of a device's own memory; `None`: what it has.
    pub gpu_memory: Option<u64>,
    /// How devices with memory of their own stream what they do not hold.
    pub stream: Stream,
    /// Compare the result with the sequential reference.
    pub verify: bool,
    /// What is kept of the commands' times.
    pub trace: Tracing,
    /// Gets each step when it has ended.
    pub each_step: Option<fn(&StepRecord)>,
}

impl Options {
    /// All of so many steps, in all of the memory, neither compared nor traced.
    pub fn of_steps(steps: u32) -> Self {
        Self::of(Supersteps::new(steps, 1))
    }

    /// The same in supersteps.
    pub fn of(supersteps: Supersteps) -> Self {
        Self {
            supersteps,
            tolerance: None,
            gpu_memory: None,
            stream: Stream::default(),
            verify: false,
            trace: Tracing::None,
            each_step: None,
        }
    }
}

/// What a run keeps of the times of its commands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tracing {
    /// The figures of each step.
    #[default]
    None,
    /// And how long commands waited, summed over the run.
    Sums,
    /// And the span of every command. Commands are submitted one by one for it,
    /// which takes longer than in series.
    Commands,
}

/// How pool units pass through a device's own memory. What is asked for is
/// given as far as the memory allows; see [`grid::GridDivision::of`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stream {
    /// Most units of a chunk; `None`: what hides the commands' overhead.
    pub chunk: Option<u64>,
    /// Queues, 1 to [`memory::MOST_QUEUES`]; `None`: 3, so that one chunk is
    /// written, one computed and one read at a time, and 2 of a product, of which
    /// little is read.
    pub queues: Option<u32>,
}

/// How a run is watched and stopped.
pub struct Control<'a> {
    /// Set from outside: end at the next barrier.
    pub stop: &'a AtomicBool,
    /// Receives the steps done and the steps asked for: first 0, as the first step
    /// is about to begin and the setup is over, and all of them before the
    /// result is gathered. What it does before the first step is not timed.
    pub progress: &'a mut dyn FnMut(u32, u32),
}

/// An error of a [`Corun`].
#[derive(Debug, Error)]
pub enum CorunError {
    #[error(transparent)]
    Runtime(#[from] RuntimeError),

    #[error(transparent)]
    FirstVersion(#[from] FirstVersionError),

    #[error("there is no device to run on")]
    NoDevice,

    #[error("a run of 0 steps computes nothing; ask for at least 1")]
    NoSteps,

    #[error(
        "{device} computes in single precision only, and `{workload}` needs double; \
         leave it out of the devices, or choose single precision"
    )]
    NoDouble {
        device: String,
        workload: &'static str,
    },

    #[error(
        "{device}: {limit} bytes of its memory are too few; streaming alone needs {needed} \
         bytes at this size; raise the memory limit or leave the device out"
    )]
    DeviceMemory {
        device: String,
        limit: u64,
        needed: u64,
    },

    #[error("the kernel has no buffer, so that nothing of it is left when it has ended")]
    NoBuffer,

    #[error("interrupted while trying parts of the kernel")]
    Interrupted,

    #[error("{device}: the kernel fails there: {why}")]
    Trial { device: String, why: String },

    #[error(
        "kernel `{kernel}` writes past the end of buffer `{name}` (argument {argument}, {bytes} \
         bytes) on {device}; give the buffer or the work another size in the kernel's file, or \
         the kernel other indices"
    )]
    PastEnd {
        kernel: String,
        name: String,
        argument: usize,
        bytes: u64,
        device: String,
    },

    #[error("no device is left; the last, {device}: {why}")]
    AllLost { device: String, why: String },

    #[error("device {device} has no memory of its own for held units (a fault of the engine)")]
    NoMemory { device: usize },

    #[error("balancer `{balancer}`: {what} in step {step} (a fault of the balancer)")]
    Balancer {
        balancer: String,
        step: u32,
        what: &'static str,
    },
}
