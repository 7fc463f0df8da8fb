//! `pdawl run tasks`: a set of tasks that share data, under a policy for small memories.

mod run;
mod set;

use pdawl::policy::NamedPolicy;

use super::args::{Format, MachineArgs};
use super::files::TraceFiles;
use super::integer::integer;
use super::operation::POLICY;
use set::SetArgs;

pub use run::run;

const EXAMPLES: &str = "Examples:\n  pdawl run tasks --set matmul2d --n 40 --machine v100x2 \
                        --gpu-memory 500MiB\n  \
                        pdawl run tasks --set cholesky --n 20 --dependencies --machine v100x4 \
                        --policy dmdar\n  \
                        pdawl bench --vary n=5,10,40,75 --vary policy=dmdar,darts+luf,locality \
                        \\\n      run tasks --set matmul2d --machine v100x2 --gpu-memory 500MiB";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    set: SetArgs,

    /// Seed of the random order, the random tasks and the policy's random choices
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = integer(0..=u64::MAX))]
    seed: u64,

    /// The scheduling policy
    #[arg(
        long,
        value_name = "POLICY",
        default_value = POLICY,
        long_help = NamedPolicy::help(),
        help_heading = "Scheduling"
    )]
    policy: NamedPolicy,

    /// Tasks that a device has at once, whose data are loaded ahead [default: 16]
    ///
    /// Under adaptive, clustering and heft, devices get all tasks that are ready.
    #[arg(long, value_name = "N", value_parser = integer(1..=1000_usize),
          help_heading = "Scheduling")]
    window: Option<usize>,

    #[command(flatten)]
    machine: MachineArgs,

    /// How the report is printed
    #[arg(long, value_enum, default_value_t, help_heading = "Output")]
    format: Format,

    #[command(flatten)]
    files: TraceFiles,
}
