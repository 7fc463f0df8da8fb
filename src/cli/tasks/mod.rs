//! `pdawl bench tasks`: compares policies on tasks that share data in small memories.

mod compare;
mod set;

use super::args::{Format, MachineArgs};
use super::integer::integer;
use super::policies::{Policies, help, policies};
use set::SetArgs;

pub use compare::run;
pub use set::OrderName;

/// What --policies is for.
const COMPARED: &str = "The policies to compare, run in turns";

const EXAMPLES: &str = "Examples:\n  pdawl bench tasks --set matmul2d --n 5,10,40,75 --machine \
                        v100x2 --gpu-memory 500MiB\n  \
                        pdawl bench tasks --set matmul2d --n 40 --machine v100x2 --gpu-memory \
                        500MiB --order random --policies dmdar,darts+luf,locality\n  \
                        pdawl bench tasks --set cholesky --n 20 --dependencies --machine v100x4 \
                        --format json";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    set: SetArgs,

    /// The policies to compare, run in turns
    #[arg(long, value_name = "LIST", value_parser = policies, long_help = help(COMPARED),
          default_value = "eager,dmdar,partition,mhfp,darts,darts+luf,locality")]
    policies: Policies,

    /// Tasks that a device has at once, whose data are loaded ahead [default: 16]
    ///
    /// Under adaptive, clustering and heft, devices get all tasks that are ready.
    #[arg(long, value_name = "N", value_parser = integer(1..=1000_usize))]
    window: Option<usize>,

    /// Seed of the random order, the random tasks and the policies' random choices
    ///
    /// Each repeat has the next one for policies and for simulated noise.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = integer(0..=u64::MAX))]
    seed: u64,

    /// Runs of each policy
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = integer(1..=u32::MAX))]
    repeats: u32,

    #[command(flatten)]
    machine: MachineArgs,

    /// How the comparison is printed
    #[arg(long, value_enum, default_value_t, help_heading = "Output")]
    format: Format,
}
