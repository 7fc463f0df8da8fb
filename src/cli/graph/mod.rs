//! Running graphs: what the commands that do so share.
//!
//! * [`scheduling_args`] has the options: policy, queues, map, search;
//! * [`run_job`] runs a [`GraphJob`] in a session and reports.

mod run_job;
mod scheduling_args;

use std::path::PathBuf;

use pdawl::graph::DatumId;
use pdawl::session::{GraphJob, Queues};

use super::args::{Format, MachineArgs};
use super::files::TraceFiles;

pub use run_job::{print, run, shown};
pub use scheduling_args::{SchedulingArgs, check_window};

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

/// A graph that a command runs.
pub struct GraphRequest {
    pub job: GraphJob,
    /// Queues unless the user names some.
    pub queues: Option<Queues>,
    /// Whether any kernel needs double precision.
    pub fp64: bool,
    /// Seeds random data and simulations.
    pub seed: u64,
    /// The remedy when memory does not suffice.
    pub smaller: &'static str,
    /// Files that it was read from, which no output may overwrite.
    pub reads: Vec<PathBuf>,
    /// Results and their files, which are written unless they were found wrong.
    pub saves: Vec<(DatumId, PathBuf)>,
    /// Notes for its report.
    pub notes: Vec<String>,
}
