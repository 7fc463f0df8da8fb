//! `pdawl bench tasks`: compares policies on tasks that share data in small memories.

mod compare;
mod set;

use pdawl::policy::NamedPolicy;

use super::args::{Format, MachineArgs};
use super::integer::integer;
use set::SetArgs;

pub use compare::run;
pub use set::OrderName;

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
    ///
    /// locality (by expected time), eager, auto-fit (the map of the least predicted time),
    /// round-robin, dmdar, partition (the tasks divided before), mhfp (packages made
    /// before) and darts. The last four take +luf: the datum that is least used in the
    /// future leaves a full memory, not the least recently used. darts also takes +3inputs
    /// and +opti.
    #[arg(long, value_name = "LIST", value_parser = policies,
          default_value = "eager,dmdar,partition,mhfp,darts,darts+luf,locality")]
    policies: Policies,

    /// Tasks that a device has at once, whose data are loaded ahead [default: 16]
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

#[derive(Clone, Debug)]
struct Policies(Vec<NamedPolicy>);

/// Parses a list of policies.
fn policies(text: &str) -> Result<Policies, String> {
    let mut list: Vec<NamedPolicy> = Vec::new();
    for name in text.split(',') {
        let policy: NamedPolicy = name.parse().map_err(|error| format!("{error}"))?;
        if list.contains(&policy) {
            return Err(format!("{policy} is named twice"));
        }
        list.push(policy);
    }
    Ok(Policies(list))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_are_a_list_of_different_ones() {
        let list = policies("eager, darts+lru,darts+luf").unwrap();
        let names: Vec<String> = list.0.iter().map(NamedPolicy::to_string).collect();
        assert_eq!(names, ["eager", "darts", "darts+luf"]);
        assert!(policies("darts,darts+lru").unwrap_err().contains("twice"));
        assert!(policies("").unwrap_err().contains("known are"));
    }
}
