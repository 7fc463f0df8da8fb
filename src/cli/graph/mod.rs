//! What commands that run graphs share.
//!
//! * [`sharing`] is what users type: policy, queues, map, search;
//! * [`open_machine`] opens the devices; [`memory`] checks that the data fit;
//! * [`conduct`] runs a [`Job`] on them as asked, and reports.

mod conduct;
mod memory;
mod sharing;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use pdawl::engine::graph::{GraphRunError, Plan};
use pdawl::graph::{Components, TaskGraph};
use pdawl::policy::MapError;
use pdawl::runtime::Runtime;
use serde_json::Value;

use super::args::{Format, MachineArgs};
use super::failure::{Failure, LOST, refused};
use super::files::TraceFiles;
use super::machine_session::{MachineSession, NamedMachine, Needs};

pub use conduct::run;
pub use sharing::{Queues, Sharing};

/// Where a graph runs, how, and what comes of it.
#[derive(Clone, Debug, clap::Args)]
pub struct GraphArgs {
    #[command(flatten)]
    pub sharing: Sharing,

    #[command(flatten)]
    pub machine: MachineArgs,

    /// Compare the results with the sequential reference
    #[arg(long, help_heading = "Output")]
    pub verify: bool,

    /// How the report is printed
    #[arg(long, value_enum, default_value_t, help_heading = "Output")]
    pub format: Format,

    #[command(flatten)]
    pub files: TraceFiles,
}

/// Opens the devices that a graph runs on. `levels` are the steps at which faults
/// of a simulation may happen.
///
/// # Errors
/// When there is no such machine or device, and limits of memory, which graphs
/// do not keep.
pub fn open_machine(
    args: &MachineArgs,
    needs: Needs,
    levels: u32,
) -> Result<MachineSession, Failure> {
    if args.gpu_memory.is_some() || args.host_memory.is_some() {
        return Err(Failure::usage(
            "--gpu-memory and --host-memory are for workloads that are streamed; a graph takes \
             the memory that its data need",
            "it without them",
        ));
    }
    let mut machine = MachineSession::open(args, NamedMachine::of(args)?, needs)?;
    machine.inject(&args.fault, (levels, "--layers"))?;
    Ok(machine)
}

/// Compares what a plan's last run left with a reference: whether it is right,
/// and the greatest error; `None` if the flag was set meanwhile.
pub type Verify<'a> =
    dyn FnMut(&Plan, &mut dyn Runtime, &AtomicBool) -> Result<Verified, Failure> + 'a;

/// What a comparison says.
pub type Verified = Option<(bool, f64)>;

/// A graph to be run.
pub struct Job<'a> {
    /// `transformer`, `dag` ...
    pub name: &'static str,
    /// One line for people.
    pub title: String,
    /// For the report.
    pub parameters: Value,
    pub graph: Arc<TaskGraph>,
    /// The components of clustering and adaptive; eager and heft take every
    /// kernel by itself.
    pub components: Arc<Components>,
    /// Queues where the user names none.
    pub queues: Option<Queues>,
    /// Whether any kernel needs double precision.
    pub fp64: bool,
    /// Of random data, and of a simulation.
    pub seed: u64,
    /// Bytes of host memory that `--verify` takes beside the graph's data.
    pub verification: u64,
    /// What makes it smaller.
    pub smaller: &'static str,
    /// Files that it was made of, which no output may go over.
    pub reads: Vec<PathBuf>,
    /// What `--verify` does.
    pub verify: Box<Verify<'a>>,
}

/// An engine's error as the user's failure.
pub fn failure(error: GraphRunError) -> Failure {
    match error {
        GraphRunError::Runtime(error) => refused(error),
        error @ GraphRunError::Map(MapError::Nowhere { .. }) => Failure::usage(
            error,
            "other --devices; `pdawl devices` shows which are there",
        ),
        error @ GraphRunError::Lost { .. } => Failure::failed(error, LOST),
        other => Failure::of(other),
    }
}
