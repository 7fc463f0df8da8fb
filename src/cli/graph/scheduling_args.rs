//! The options of scheduling: policy, queues, map and search.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use pdawl::engine::graph::Options;
use pdawl::graph::Components;
use pdawl::machine::{Device, DeviceKind};
use pdawl::policy::NamedPolicy;

use crate::failure::Failure;
use crate::integer::integer;

/// The policy of graphs by default.
const POLICY: &str = "adaptive";

/// Queues of a GPU by default.
const GPU_QUEUES: usize = 8;

/// Most queues of a device.
const MOST_QUEUES: usize = 64;

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
    #[arg(long, value_name = "N", value_parser = integer(1..=64u64))]
    pub component_queues: Option<u64>,

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

    /// The options of a run on these devices. `given` are the queues unless the user
    /// names some.
    ///
    /// # Errors
    /// When --queues names a device that takes no part.
    pub fn options(
        &self,
        policy: NamedPolicy,
        given: Option<&Queues>,
        components: &Components,
        devices: &[Device],
    ) -> Result<Options, Failure> {
        let single = policy.places_kernels();
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

/// Queues by kind, number or name of device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Queues {
    list: Vec<(String, usize)>,
    /// The file that says so; `None`: the user, with --queues.
    file: Option<PathBuf>,
}

impl Queues {
    /// The queues that a graph's file gives, in its field `cq`.
    pub fn of_file(file: &Path, queues: &[(String, u32)]) -> Self {
        let list = queues
            .iter()
            .map(|(key, count)| (key.clone(), *count as usize));
        Self {
            list: list.collect(),
            file: Some(file.to_owned()),
        }
    }

    /// The queues of each device; what names it most exactly takes precedence.
    fn of(&self, devices: &[Device], single: bool) -> Result<Vec<usize>, Failure> {
        for (key, _) in &self.list {
            let matches = |(index, device)| rank(key, index, device).is_some();
            // A file may name more devices than there are.
            let may_lack = kind_of(key).is_some() || (self.file.is_some() && number(key).is_some());
            if !may_lack && !devices.iter().enumerate().any(matches) {
                return Err(self.unknown(key, devices));
            }
        }
        let of = |(index, device): (usize, &Device)| {
            let named = self.list.iter();
            let named = named.filter_map(|(key, count)| Some((rank(key, index, device)?, count)));
            let default = match device.kind {
                DeviceKind::Cpu => 1,
                _ if single => 1,
                _ => GPU_QUEUES,
            };
            named.min().map_or(default, |(_, count)| *count)
        };
        Ok(devices.iter().enumerate().map(of).collect())
    }

    fn unknown(&self, key: &str, devices: &[Device]) -> Failure {
        let names: Vec<&str> = devices.iter().map(|d| d.name.as_str()).collect();
        let names = names.join(", ");
        let what = format!("no device `{key}` takes part");
        match &self.file {
            Some(file) => Failure::failed(
                format!("{}, cq: {what}", file.display()),
                format!("gpu, cpu, r1 for the first device, or one of {names}"),
            ),
            None => Failure::usage(
                format!("--queues: {what}"),
                format!("gpu, cpu, or one of {names}"),
            ),
        }
    }
}

/// How exactly a key names a device, 0 the most: by its name, by its number, by the
/// device of which it is a part, by its kind.
fn rank(key: &str, index: usize, device: &Device) -> Option<u8> {
    // opencl0.0 of opencl0.0:1=own#2.
    let whole = device.name.split([':', '=', '@', '#']).next();
    let fits = [
        key == device.name,
        number(key) == Some(index + 1),
        whole == Some(key),
        kind_of(key) == Some(device.kind),
    ];
    (0..)
        .zip(fits)
        .find_map(|(rank, fits)| fits.then_some(rank))
}

/// A device's number, as in the paper: `r1` is the first one.
fn number(key: &str) -> Option<usize> {
    key.strip_prefix('r')?.parse().ok()
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
            // A device's name may have the sign, too.
            let (key, count) = item.trim().rsplit_once('=').ok_or_else(wrong)?;
            let count: usize = count.trim().parse().map_err(|_| wrong())?;
            let key = key.trim();
            if key.is_empty() || !(1..=MOST_QUEUES).contains(&count) {
                return Err(wrong());
            }
            if list.iter().any(|(other, _)| other == key) {
                return Err(format!("`{key}` is named twice"));
            }
            list.push((key.to_owned(), count));
        }
        Ok(Self { list, file: None })
    }
}

/// `h_cpu=1`.
fn h_cpu(text: &str) -> Result<usize, String> {
    let number = text.strip_prefix("h_cpu=").and_then(|n| n.parse().ok());
    number.ok_or_else(|| "a map is h_cpu=N: so many components of each layer on CPUs".to_owned())
}

#[cfg(test)]
mod tests {
    use pdawl::machine::RuntimeKind;

    use super::*;

    fn devices(names: &[&str]) -> Vec<Device> {
        let device = |name: &&str| {
            let name = (*name).to_owned();
            Device::host_pool(RuntimeKind::Opencl, name, String::new(), 1, 1)
        };
        names.iter().map(device).collect()
    }

    fn queues(text: &str, names: &[&str]) -> Result<Vec<usize>, String> {
        let queues: Queues = text.parse()?;
        queues
            .of(&devices(names), false)
            .map_err(|failure| format!("{failure:?}"))
    }

    #[test]
    fn queues_are_by_kind_or_name() {
        for (text, names, counts) in [
            ("gpu=4, cpu=2", &["opencl0.0", "opencl1.0"][..], &[2, 2][..]),
            ("opencl0.0:1=own=2", &["opencl0.0:1=own"], &[2]),
            (
                "opencl0.0=own=2,cpu=3",
                &["opencl0.0=own", "opencl0.0:1"],
                &[2, 3],
            ),
            ("opencl0.0=4", &["opencl0.0:1=own", "opencl0.1:1"], &[4, 1]),
            (
                "opencl0.0:1=4,opencl0.0:1#2=5",
                &["opencl0.0:1", "opencl0.0:1#2"],
                &[4, 5],
            ),
            (
                "cpu=7,r2=6,opencl0.0=5",
                &["opencl0.0:1", "opencl0.0:1#2"],
                &[5, 6],
            ),
        ] {
            assert_eq!(queues(text, names).unwrap(), counts, "{text}");
        }
        for text in [
            "",
            "gpu",
            "gpu=0",
            "gpu=x",
            "=3",
            "gpu=65",
            "gpu=1,gpu=2",
            "opencl0.0=own",
            "opencl0.0:1=own=0",
            "==2x",
        ] {
            assert!(text.parse::<Queues>().is_err(), "{text}");
        }
        for text in ["opencl0.1=2", "opencl0.0:2=2", "opencl0.0:1=own=2", "r2=1"] {
            let error = queues(text, &["opencl0.0:1"]).unwrap_err();
            assert!(error.contains("takes part"), "{text}: {error}");
        }
    }

    #[test]
    fn a_file_names_devices_by_number_too() {
        let file = Path::new("g.dag");
        let queues = |list: &[(&str, u32)], names: &[&str]| {
            let list: Vec<_> = list.iter().map(|(k, n)| ((*k).to_owned(), *n)).collect();
            let queues = Queues::of_file(file, &list);
            let counts = queues.of(&devices(names), false);
            counts.map_err(|failure| format!("{failure:?}"))
        };
        let own = ["opencl0.0:1=own", "opencl0.0:1"];
        assert_eq!(
            queues(&[("r1", 2), ("r2", 3), ("r3", 4)], &own),
            Ok(vec![2, 3])
        );
        assert_eq!(
            queues(&[("opencl0.0:1=own", 2), ("opencl0.0", 5)], &own),
            Ok(vec![2, 5])
        );
        assert_eq!(
            queues(&[("r1", 2), ("gpu", 9)], &["opencl0.0=own"]),
            Ok(vec![2])
        );
        let error = queues(&[("opencl0.1", 2)], &own).unwrap_err();
        assert!(
            error.contains("g.dag, cq: no device `opencl0.1` takes part"),
            "{error}"
        );
    }

    #[test]
    fn a_map_is_h_cpu() {
        assert_eq!(h_cpu("h_cpu=3"), Ok(3));
        for text in ["3", "h_cpu=", "h_cpu=-1", "q_gpu=1"] {
            assert!(h_cpu(text).is_err(), "{text}");
        }
    }
}
