//! Running graphs: what the commands that do so share.
//!
//! * [`scheduling_args`] has the options: policy, queues, map, search;
//! * [`open_machine`] opens the devices, and [`memory`] checks that the data fit;
//! * [`run_job`] runs a [`GraphJob`] on them and reports.

mod memory;
mod run_job;
mod scheduling_args;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use pdawl::engine::graph::{GraphRunError, PreparedGraph};
use pdawl::graph::{Components, DatumId, TaskGraph};
use pdawl::policy::MapError;
use pdawl::report::Workload;
use pdawl::runtime::Runtime;

use super::args::{Format, MachineArgs};
use super::failure::{Failure, LOST, refused};
use super::files::TraceFiles;
use super::machine_session::{self, Needs};
use pdawl::session::OpenDevices;

pub use memory::{host_memory, in_host};
pub use run_job::{print, run};
pub use scheduling_args::{Queues, SchedulingArgs, check_window};

/// The options of commands that run graphs.
#[derive(Clone, Debug, clap::Args)]
pub struct GraphArgs {
    #[command(flatten)]
    pub scheduling: SchedulingArgs,

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
/// When there is no such machine or device.
pub fn open_machine(args: &MachineArgs, needs: Needs, levels: u32) -> Result<OpenDevices, Failure> {
    let mut machine = machine_session::open(args, machine_session::named(args)?, needs)?;
    machine_session::inject(&mut machine, &args.fault, levels)?;
    Ok(machine)
}

/// Compares the results of the last run with a reference. `None` if the flag was set
/// meanwhile.
pub type Verify<'a> =
    dyn FnMut(&PreparedGraph, &mut dyn Runtime, &AtomicBool) -> Result<Verified, Failure> + 'a;

/// Whether results are right, and the greatest error.
pub type Verified = Option<(bool, f64)>;

/// A graph to be run.
pub struct GraphJob<'a> {
    pub workload: Workload,
    pub graph: Arc<TaskGraph>,
    /// The components, for policies that do not place kernels one by one.
    pub components: Arc<Components>,
    /// Queues unless the user names some.
    pub queues: Option<Queues>,
    /// Whether any kernel needs double precision.
    pub fp64: bool,
    /// Seeds random data and simulations.
    pub seed: u64,
    /// Bytes of host memory that `--verify` needs beside the graph's data.
    pub verification: u64,
    /// The remedy when memory does not suffice.
    pub smaller: &'static str,
    /// Files that it was read from, which no output may overwrite.
    pub reads: Vec<PathBuf>,
    /// Results and their files, which are written unless they were found wrong.
    pub saves: Vec<(DatumId, PathBuf)>,
    /// Notes for its report.
    pub notes: Vec<String>,
    /// What `--verify` does.
    pub verify: Box<Verify<'a>>,
}

/// The failure of an engine's error.
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
