//! The options of scheduling: policy, queues, map and search.

use pdawl::policy::NamedPolicy;
use pdawl::session::Queues;

use crate::failure::Failure;
use crate::integer::integer;

/// The policy of graphs by default.
const POLICY: &str = "adaptive";

/// How a graph is scheduled.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Scheduling")]
pub struct SchedulingArgs {
    /// The scheduling policy
    #[arg(long, value_name = "POLICY", default_value = POLICY, long_help = NamedPolicy::help())]
    pub policy: NamedPolicy,

    /// Place components by the times of earlier layers and runs (the default)
    #[arg(long, conflicts_with = "policy")]
    pub adaptive: bool,

    /// Command queues, by kind or by device: gpu=4,cpu=2 or opencl0.0=3
    ///
    /// [default: gpu=8,cpu=1; one of each for policies that place kernels]
    #[arg(long, value_name = "LIST")]
    pub queues: Option<Queues>,

    /// Queues that a component's kernels are spread over in turns
    ///
    /// [default: so many that all components of a layer have their own, at least one]
    #[arg(long, value_name = "N", value_parser = integer(1..=64_usize))]
    pub component_queues: Option<usize>,

    /// Components that a device has at once, whose data are loaded ahead
    ///
    /// [default: 16 for locality, dmdar, partition, mhfp and darts, 1 for eager, and all that
    /// are ready for auto-fit and round-robin]
    #[arg(long, value_name = "N", value_parser = integer(1..=1000_usize))]
    pub window: Option<usize>,

    /// Components of each layer on CPUs, as in h_cpu=1; with --policy clustering
    #[arg(long, value_name = "MAP", value_parser = h_cpu, conflicts_with = "search")]
    pub map: Option<usize>,

    /// Search for the best map and queues by running; with --policy clustering
    #[arg(long)]
    pub search: bool,

    /// Timed runs, after one that is not timed
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = integer(1..=u32::MAX))]
    pub repeats: u32,

    /// Leave input data on the devices from run to run
    #[arg(long)]
    pub keep_inputs: bool,
}

impl SchedulingArgs {
    /// The policy.
    ///
    /// # Errors
    /// When an option is given that is not for this policy.
    pub fn policy(&self) -> Result<NamedPolicy, Failure> {
        check_window(self.policy, self.window)?;
        let option = match (self.map, self.search) {
            (Some(_), _) => "--map",
            (_, true) => "--search",
            _ => return Ok(self.policy),
        };
        match self.policy.takes_map() {
            true => Ok(self.policy),
            false => Err(Failure::usage(
                format!("{option} is for --policy clustering"),
                format!("--policy clustering {option} ..."),
            )),
        }
    }
}

/// Checks that a window is for a policy that has one.
///
/// # Errors
/// When it is not.
pub fn check_window(policy: NamedPolicy, window: Option<usize>) -> Result<(), Failure> {
    match window {
        Some(_) if !policy.has_window() => Err(Failure::usage(
            format!("--window is not for --policy {policy}, whose devices get all that is ready"),
            format!("--policy {policy} without --window, or --policy locality with it"),
        )),
        _ => Ok(()),
    }
}

/// `h_cpu=1`.
fn h_cpu(text: &str) -> Result<usize, String> {
    let number = text.strip_prefix("h_cpu=").and_then(|n| n.parse().ok());
    number.ok_or_else(|| "a map is h_cpu=N: so many components of each layer on CPUs".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_is_h_cpu() {
        assert_eq!(h_cpu("h_cpu=3"), Ok(3));
        for text in ["3", "h_cpu=", "h_cpu=-1", "q_gpu=1"] {
            assert!(h_cpu(text).is_err(), "{text}");
        }
    }
}
