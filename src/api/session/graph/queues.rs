//! The command queues of devices, as users name them.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::machine::{Device, DeviceKind};
use crate::session::Error;

/// Queues of a GPU by default.
const GPU_QUEUES: usize = 8;

/// Most queues of a device.
const MOST_QUEUES: usize = 64;

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
    pub(super) fn of(&self, devices: &[Device], single: bool) -> Result<Vec<usize>, Error> {
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

    fn unknown(&self, key: &str, devices: &[Device]) -> Error {
        Error::Queues {
            place: match &self.file {
                Some(file) => format!("{}, cq", file.display()),
                None => "--queues".to_owned(),
            },
            of_file: self.file.is_some(),
            key: key.to_owned(),
            devices: devices.iter().map(|d| d.name.clone()).collect(),
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

#[cfg(test)]
mod tests {
    use crate::machine::RuntimeKind;

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
            .map_err(|error| error.to_string())
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
            counts.map_err(|error| error.to_string())
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
}
