//! What a session knows of earlier runs of the same kind, and what a run adds to it.

use serde_json::Value;
use twox_hash::xxhash3_128::Hasher;

use super::parts::{self, Chosen, Expected};
use crate::machine::Device;
use crate::profile::kernels::{KernelProfiles, RunRecord};
use crate::report::Workload;

/// A kind of runs, and the devices that could take part.
pub struct Row {
    /// What they are.
    kind: String,
    devices: Vec<Device>,
}

/// What a run begins with.
#[derive(Clone, Debug, PartialEq)]
pub struct KnownRun {
    pub part: Vec<usize>,
    /// Of steps: the units that each device held and took from the pool; 0 if the part is tried.
    pub units: Vec<[u64; 2]>,
    /// The part and all devices, with measured seconds or expected ones.
    pub seconds: [Option<f64>; 2],
    /// Runs on the part, and in all.
    pub runs: [u64; 2],
}

impl Row {
    /// Runs of a workload. Its steps count by their order of magnitude, and its data not at all.
    pub fn of(workload: &Workload, besides: &str, devices: &[Device]) -> Self {
        let mut parameters = serde_json::to_value(&workload.parameters).unwrap_or_default();
        for (name, value) in parameters.as_object_mut().into_iter().flatten() {
            match name.as_str() {
                "seed" | "input" => *value = Value::Null,
                "steps" => {
                    let steps = value.as_u64().unwrap_or(0);
                    *value = steps.checked_next_power_of_two().into();
                }
                _ => {}
            }
        }
        Self::named(&workload.title, &format!("{parameters} {besides}"), devices)
    }

    /// Runs that are called so and differ in details.
    pub fn named(title: &str, details: &str, devices: &[Device]) -> Self {
        let details = Hasher::oneshot(details.as_bytes());
        Self {
            kind: format!("{title} {details:032x}"),
            devices: devices.to_vec(),
        }
    }

    /// A part of the devices as rows name it. Devices with memory of their own are first.
    fn name(&self, part: &[usize]) -> String {
        let names = part.iter().map(|device| named(&self.devices[*device]));
        let mut names: Vec<String> = names.collect();
        names.sort();
        names.join(",")
    }

    /// The devices of a part, if all are there.
    fn part(&self, name: &str) -> Option<Vec<usize>> {
        let names: Vec<String> = self.devices.iter().map(named).collect();
        let of = |name: &str| names.iter().position(|known| known == name);
        let mut part: Vec<usize> = name.split(',').map(of).collect::<Option<_>>()?;
        part.sort_unstable();
        Some(part)
    }

    fn all(&self) -> Vec<usize> {
        (0..self.devices.len()).collect()
    }

    /// What a run begins with, if one of its kind was measured.
    pub fn known(&self, profiles: &KernelProfiles) -> Option<KnownRun> {
        let row = profiles.run(&self.kind)?;
        let choice = row.choice(|name| self.part(name).is_some())?;
        let all = row.parts.get(&self.name(&self.all()));
        let of_all = all.and_then(|all| all.least().or(all.expected));
        Some(KnownRun {
            part: self.part(choice.part)?,
            units: (self.devices.iter())
                .map(|device| choice.row.units.get(&named(device)).copied())
                .map(Option::unwrap_or_default)
                .collect(),
            seconds: [Some(choice.seconds), of_all],
            runs: [choice.row.count(), row.runs],
        })
    }

    /// Whether it is of runs on these devices.
    pub fn is_on(&self, devices: &[Device]) -> bool {
        self.devices.iter().map(named).eq(devices.iter().map(named))
    }

    /// Its tasks on a part, in the tiles that suit it.
    pub fn of_tasks(&self, part: &[usize]) -> String {
        format!("{} on {}", self.kind, self.name(part))
    }

    /// Notes a run that ended on a part, and the one on which it began if that is another one.
    pub fn note(
        &self,
        profiles: &mut KernelProfiles,
        chosen: &Chosen,
        (seconds, units): (f64, Vec<[u64; 2]>),
        began: Option<&[usize]>,
    ) {
        // More devices that are expected to gain nothing are not worth a trial.
        let gains = |of: &&Expected| {
            let is_in = |other: &Expected| other.part.iter().all(|d| of.part.contains(d));
            let mut fewer =
                (chosen.expected.iter()).filter(|other| other.part.len() < of.part.len());
            !fewer.any(|other| other.seconds <= of.seconds && is_in(other))
        };
        let expected = chosen.expected.iter().filter(gains);
        let began = began.filter(|began| *began != chosen.part);
        let record = RunRecord {
            part: self.name(&chosen.part),
            seconds,
            units: (self.devices.iter().map(named).zip(units))
                .filter(|(_, units)| *units != [0, 0])
                .collect(),
            expected: expected
                .map(|of| (self.name(&of.part), of.seconds))
                .collect(),
            left: began.map(|part| self.name(part)),
        };
        profiles.record_run(&self.kind, record);
    }
}

/// A device as rows name it: a pool has a number of cores.
fn named(device: &Device) -> String {
    match device.shares_host_memory {
        true => {
            let name = device.name.split(':').next().unwrap_or_default();
            format!("{name}:{}", device.compute_units)
        }
        false => device.name.clone(),
    }
}

impl KnownRun {
    /// Its part.
    pub fn chosen(&self, devices: &[Device]) -> Chosen {
        Chosen {
            part: self.part.clone(),
            expected: Vec::new(),
            note: Some(self.note(devices, "")),
        }
    }

    /// What a report says of it; `a_step` if the seconds are those of steps.
    pub fn note(&self, devices: &[Device], a_step: &str) -> String {
        let [on_part, in_all] = self.runs;
        let how = match on_part {
            0 => format!("{a_step} expected, less than in earlier runs,"),
            _ => format!("{a_step} in {on_part} of {in_all} earlier runs"),
        };
        let how = how.trim_start();
        let [best, all] = self.seconds;
        parts::note(devices, &self.part, [best, all], how)
    }
}
