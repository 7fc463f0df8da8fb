//! Why a session, or one of its runs, is not possible.

use thiserror::Error as ThisError;

use super::UnfitFault;
use crate::balance::StrategyError;
use crate::engine::cluster::ClusterError;
use crate::engine::cluster::simulate::SimulateError;
use crate::engine::corun::CorunError;
use crate::engine::graph::GraphRunError;
use crate::engine::measure::MeasureError;
use crate::graph::GraphError;
use crate::graph::spec::SpecError;
use crate::machine::MachineError;
use crate::matrix::CsrError;
use crate::policy::{MapError, PolicyNameError};
use crate::quantity::Bytes;
use crate::runtime::RuntimeError;
use crate::runtime::select::SelectionError;
use crate::workload::cluster::graph::WorkloadGraphError;
use crate::workload::spmv::SpmvError;
use crate::workload::stencil::StencilError;
use crate::workload::task_set::TaskSetError;

/// Why a session, or one of its runs, is not possible. Its text names the thing and what to do.
#[derive(Debug, ThisError)]
pub enum Error {
    /// A call with wrong arguments.
    #[error("{0}")]
    Arguments(String),
    /// A matrix that has no such factors: it is singular, or not positive definite.
    #[error("{0}")]
    NoResult(String),
    #[error(transparent)]
    Devices(#[from] SelectionError),
    #[error("{0}")]
    Fault(#[from] UnfitFault),
    #[error(transparent)]
    Machine(#[from] MachineError),
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    #[error(transparent)]
    Strategy(#[from] StrategyError),
    /// A strategy that the devices do not allow which are left for a run, and why the others were
    /// left out.
    #[error("{0}; {1}")]
    LeftOut(StrategyError, String),
    /// The search for the best shares found none.
    #[error("the oracle found no shares; take another strategy, such as dawl")]
    NoShares,
    #[error(transparent)]
    Matrix(#[from] CsrError),
    #[error(transparent)]
    Product(#[from] SpmvError),
    #[error(transparent)]
    Stencil(#[from] StencilError),
    #[error(transparent)]
    Corun(#[from] CorunError),
    #[error(transparent)]
    Graph(#[from] GraphError),
    #[error(transparent)]
    Policy(#[from] PolicyNameError),
    #[error(transparent)]
    Map(#[from] MapError),
    /// Queues of a device that takes no part.
    #[error("{place}: no device `{key}` takes part; there are {}", devices.join(", "))]
    Queues {
        place: String,
        /// Whether a graph's file names it.
        of_file: bool,
        key: String,
        devices: Vec<String>,
    },
    #[error(transparent)]
    GraphRun(#[from] GraphRunError),
    #[error(transparent)]
    Tasks(#[from] TaskSetError),
    #[error("with tiles of {tile}: {error}; of larger ones there are fewer")]
    Tiles { tile: u64, error: GraphError },
    #[error(transparent)]
    Spaces(#[from] WorkloadGraphError),
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// The memory of the host does not suffice.
    #[error("{what}: it needs {needed} of host memory, and {here} are free; a smaller size fits")]
    Memory {
        what: String,
        needed: Bytes,
        here: Bytes,
    },
    /// The memory of a device does not suffice for a task.
    #[error(
        "task `{task}` needs {needed} of the memory of {device} at once, which has {has}; smaller \
         tiles need less, and a greater limit of GPU memory or other devices have more"
    )]
    TaskMemory {
        task: String,
        needed: Bytes,
        device: String,
        has: Bytes,
    },
    /// A kernel of the user's leaves its buffers, or ends the process that runs it.
    #[error(
        "{0}; give larger buffers or fewer work-items, or mend the kernel's indices (nothing of \
         this process was touched)"
    )]
    Kernel(String),
    /// A kernel that cannot be on several nodes.
    #[error("{0}")]
    NotDivided(String),
    /// Too many subtasks for a simulation.
    #[error("{0}")]
    TooMany(String),
    #[error(transparent)]
    Simulate(#[from] SimulateError),
    /// Devices that run no kernels in OpenCL C.
    #[error("{0}")]
    KernelDevices(String),
    /// No device runs a kernel in OpenCL C.
    #[error("{what}; {remedy}")]
    NoKernelDevice { what: String, remedy: String },
    #[error(transparent)]
    Measure(#[from] MeasureError),
    #[error(transparent)]
    Specification(#[from] SpecError),
    /// A kernel of the user's was not examined, so it is not known what it touches.
    #[error(
        "{0}; a kernel that is known to stay within its buffers runs unexamined \
         (`Session::launch_unchecked`; in Python `unchecked=True`), and devices that protect \
         their memory need no examination"
    )]
    Unexamined(String),
    /// A result that is compared with a reference is not that.
    #[error(
        "{0} numbers of the result are wrong; the same on single devices finds the one that \
         computes wrongly"
    )]
    Wrong(u64),
    /// No cost model plans the run.
    #[error("{0}")]
    Model(String),
    /// An earlier run of the session has panicked.
    #[error(
        "a run of this session has panicked, so it runs nothing more; open another session, and \
         report the panic"
    )]
    Panicked,
    /// The process was forked from the one that opened the session.
    #[error(
        "this session was opened in process {opened}, and this process was forked from it without \
         its threads; open another session here"
    )]
    Forked { opened: u32 },
    /// The stop of the session was set before the run had a result.
    #[error("the run was stopped before it had a result")]
    Stopped,
}

impl Error {
    /// Refuses what needs more bytes of host memory than are free.
    pub(super) fn unless_free(what: String, needed: u64, free: u64) -> Result<(), Self> {
        match needed <= free {
            true => Ok(()),
            false => Err(Self::Memory {
                what,
                needed: Bytes(needed),
                here: Bytes(free),
            }),
        }
    }
}
