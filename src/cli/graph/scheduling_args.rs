//! The options of scheduling: policy, queues, map and search.

use std::str::FromStr;

use clap::ValueEnum;
use pdawl::engine::graph::Options;
use pdawl::graph::Components;
use pdawl::machine::{Device, DeviceKind};

use crate::cli::failure::Failure;
use crate::cli::integer::integer;

/// Queues of a GPU by default.
const GPU_QUEUES: usize = 8;

/// Most queues of a device.
const MOST_QUEUES: usize = 64;

/// The policies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum PolicyName {
    /// Components on given devices: --map or --search
    Clustering,
    /// Single kernels, each on any idle device
    Eager,
    /// Single kernels, each on the device that finishes it first
    Heft,
    /// Components, on the devices of the least predicted time
    AutoFit,
    /// Components, on devices in turns
    RoundRobin,
    /// Components, placed by the times of earlier layers and runs
    #[default]
    Adaptive,
}

/// How a graph is scheduled.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Scheduling")]
pub struct SchedulingArgs {
    /// The scheduling policy
    #[arg(long, value_enum, value_name = "POLICY", default_value_t)]
    pub policy: PolicyName,

    /// Place components by the times of earlier layers and runs (the default)
    #[arg(long, conflicts_with = "policy")]
    pub adaptive: bool,

    /// Command queues, by kind or by device: gpu=4,cpu=2 or opencl0.0=3
    ///
    /// [default: gpu=8,cpu=1; one of each for eager and heft]
    #[arg(long, value_name = "LIST")]
    pub queues: Option<Queues>,

    /// Queues that a component's kernels are spread over in turns
    ///
    /// [default: so many that all components of a layer have their own, at least one]
    #[arg(long, value_name = "N", value_parser = integer(1..=64u64))]
    pub component_queues: Option<u64>,

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
    /// When --map or --search is given for another policy than clustering.
    pub fn policy(&self) -> Result<PolicyName, Failure> {
        let option = match (self.map, self.search) {
            (Some(_), _) => "--map",
            (_, true) => "--search",
            _ => return Ok(self.policy),
        };
        match self.policy {
            PolicyName::Clustering => Ok(PolicyName::Clustering),
            _ => Err(Failure::usage(
                format!("{option} is for --policy clustering"),
                format!("--policy clustering {option} ..."),
            )),
        }
    }

    /// The options of a run on these devices. `given` are the queues unless the user
    /// names some.
    ///
    /// # Errors
    /// When --queues names a device that takes no part.
    pub fn options(
        &self,
        policy: PolicyName,
        given: Option<&Queues>,
        components: &Components,
        devices: &[Device],
    ) -> Result<Options, Failure> {
        let single = matches!(policy, PolicyName::Eager | PolicyName::Heft);
        let queues = match self.queues.as_ref().or(given.filter(|_| !single)) {
            Some(queues) => queues.of(devices, single)?,
            None => Queues::default().of(devices, single)?,
        };
        let levels = components.list().iter().map(|c| c.level);
        let mut sizes = vec![0usize; components.len()];
        levels.for_each(|level| sizes[level] += 1);
        let widest = sizes.into_iter().max().unwrap_or(1).max(1);
        let width = |queues: &usize| match self.component_queues {
            Some(width) => width as usize,
            None => queues.div_ceil(widest),
        };
        Ok(Options {
            widths: queues.iter().map(width).collect(),
            queues,
            trace: false,
            keep: self.keep_inputs,
            trial: false,
        })
    }
}

/// Queues by kind or name of device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Queues(Vec<(String, usize)>);

impl Queues {
    /// The queues of each device; its name takes precedence over its kind.
    fn of(&self, devices: &[Device], single: bool) -> Result<Vec<usize>, Failure> {
        for (key, _) in &self.0 {
            let known = kind_of(key).is_some() || devices.iter().any(|d| d.name == *key);
            if !known {
                let names: Vec<&str> = devices.iter().map(|d| d.name.as_str()).collect();
                return Err(Failure::usage(
                    format!("--queues: no device `{key}` takes part"),
                    format!("gpu, cpu, or one of {}", names.join(", ")),
                ));
            }
        }
        let of = |device: &Device| {
            let named = self.0.iter().find(|(key, _)| *key == device.name);
            let kind = || {
                self.0
                    .iter()
                    .find(|(key, _)| kind_of(key) == Some(device.kind))
            };
            let default = match device.kind {
                DeviceKind::Cpu => 1,
                _ if single => 1,
                _ => GPU_QUEUES,
            };
            named.or_else(kind).map_or(default, |(_, count)| *count)
        };
        Ok(devices.iter().map(of).collect())
    }
}

fn kind_of(key: &str) -> Option<DeviceKind> {
    match key {
        "gpu" => Some(DeviceKind::Gpu),
        "cpu" => Some(DeviceKind::Cpu),
        "accelerator" => Some(DeviceKind::Accelerator),
        _ => None,
    }
}

impl FromStr for Queues {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut list: Vec<(String, usize)> = Vec::new();
        for item in text.split(',') {
            let wrong = || format!("`{item}` is no DEVICE=N with N from 1 to {MOST_QUEUES}");
            let (key, count) = item.trim().split_once('=').ok_or_else(wrong)?;
            let count: usize = count.trim().parse().map_err(|_| wrong())?;
            if key.is_empty() || !(1..=MOST_QUEUES).contains(&count) {
                return Err(wrong());
            }
            if list.iter().any(|(other, _)| other == key) {
                return Err(format!("`{key}` is named twice"));
            }
            list.push((key.to_owned(), count));
        }
        Ok(Self(list))
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
    fn queues_are_by_kind_or_name() {
        let queues: Queues = "gpu=4, cpu=2".parse().unwrap();
        assert_eq!(queues.0, [("gpu".to_owned(), 4), ("cpu".to_owned(), 2)]);
        for text in ["", "gpu", "gpu=0", "gpu=x", "=3", "gpu=65", "gpu=1,gpu=2"] {
            assert!(text.parse::<Queues>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_map_is_h_cpu() {
        assert_eq!(h_cpu("h_cpu=3"), Ok(3));
        for text in ["3", "h_cpu=", "h_cpu=-1", "q_gpu=1"] {
            assert!(h_cpu(text).is_err(), "{text}");
        }
    }
}
