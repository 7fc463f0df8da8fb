//! What a session knows of earlier runs of the same kind, and what a run adds to it.

use serde_json::Value;
use twox_hash::xxhash3_128::Hasher;

use super::parts::{self, Chosen, Expected};
use crate::machine::{Device, DeviceKind};
use crate::profile::kernels::{KernelProfiles, RunRecord};
use crate::report::Workload;

/// A kind of runs, and the devices that could take part.
pub struct Row {
    /// What they are.
    kind: String,
    devices: Vec<Device>,
    /// Steps between two barriers; 0 while they are open.
    superstep: u32,
    /// What others should take.
    others: Others,
}

/// Steps between two barriers, the devices that would take part, and the seconds of a step that are
/// expected.
pub type Others = Vec<(u32, Vec<usize>, f64)>;

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
    /// Runs of a workload. Its steps count by their order of magnitude, and its data and the steps
    /// between two barriers not at all.
    pub fn of(workload: &Workload, besides: &str, devices: &[Device]) -> Self {
        let mut parameters = serde_json::to_value(&workload.parameters).unwrap_or_default();
        for (name, value) in parameters.as_object_mut().into_iter().flatten() {
            match name.as_str() {
                "seed" | "input" | "superstep" => *value = Value::Null,
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
            superstep: 1,
            others: Vec::new(),
        }
    }

    /// Runs with so many steps between two barriers, or any number if it is 0; and what `others`
    /// should take.
    pub fn with_superstep(self, superstep: u32, others: Others) -> Self {
        Self {
            superstep,
            others,
            ..self
        }
    }

    /// A part of the devices with so many steps between two barriers, as rows name it. Devices with
    /// memory of their own are first.
    fn name(&self, part: &[usize], superstep: u32) -> String {
        let names = part.iter().map(|device| named(&self.devices[*device]));
        let mut names: Vec<String> = names.collect();
        names.sort();
        match superstep {
            1 => names.join(","),
            steps => format!("{} x{steps}", names.join(",")),
        }
    }

    /// The devices of a part and its steps between two barriers, if all are there and these are
    /// meant.
    fn part(&self, name: &str) -> Option<(Vec<usize>, u32)> {
        let (devices, steps) = name.split_once(" x").unwrap_or((name, "1"));
        let names: Vec<String> = self.devices.iter().map(named).collect();
        let of = |name: &str| names.iter().position(|known| known == name);
        let mut part: Vec<usize> = devices.split(',').map(of).collect::<Option<_>>()?;
        part.sort_unstable();
        let steps = steps.parse().ok()?;
        [0, steps]
            .contains(&self.superstep)
            .then_some((part, steps))
    }

    /// The steps between two barriers with which the next run begins. `None` if nothing is known, or
    /// nothing but single steps.
    pub fn next_superstep(&self, profiles: &KernelProfiles) -> Option<u32> {
        let run = profiles.run(&self.kind)?;
        let steps = |name: &str| Some(self.part(name)?.1);
        run.parts.keys().find(|name| steps(name) > Some(1))?;
        let choice = run.choice(|name| steps(name).is_some())?;
        steps(choice.part)
    }

    fn all(&self) -> Vec<usize> {
        (0..self.devices.len()).collect()
    }

    /// What a run begins with, if one of its kind was measured.
    pub fn known(&self, profiles: &KernelProfiles) -> Option<KnownRun> {
        let row = profiles.run(&self.kind)?;
        let choice = row.choice(|name| self.part(name).is_some())?;
        let all = row.parts.get(&self.name(&self.all(), self.superstep));
        let of_all = all.and_then(|all| all.least().or(all.expected));
        Some(KnownRun {
            part: self.part(choice.part)?.0,
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
        format!("{} on {}", self.kind, self.name(part, 1))
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
            part: self.name(&chosen.part, self.superstep),
            seconds,
            units: (self.devices.iter().map(named).zip(units))
                .filter(|(_, units)| *units != [0, 0])
                .collect(),
            expected: expected
                .map(|of| (self.name(&of.part, self.superstep), of.seconds))
                .chain((self.others.iter()).map(|(steps, part, of)| (self.name(part, *steps), *of)))
                .collect(),
            left: began.map(|part| self.name(part, self.superstep)),
        };
        profiles.record_run(&self.kind, record);
    }
}

/// A device as rows name it: a pool has a number of cores.
pub fn named(device: &Device) -> String {
    match device.kind == DeviceKind::Cpu {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::{Fingerprint, RuntimeKind};

    /// The steps between two barriers of runs of which each takes what `seconds` says; the first one
    /// was planned with 16, and single steps are expected to take so long.
    fn chosen(seconds: impl Fn(u32) -> f64, expected: [f64; 2]) -> Vec<u32> {
        let pool = Device::host_pool(RuntimeKind::Host, "host:1".into(), String::new(), 1, 1);
        let mut profiles = KernelProfiles::empty("", &Fingerprint::of("here", 0, []));
        let row = |superstep, others| {
            let row = Row::named("stencil", "", std::slice::from_ref(&pool));
            row.with_superstep(superstep, others)
        };
        let run = |_| {
            let known = row(0, Vec::new()).next_superstep(&profiles);
            let others = [(1, expected[0]), (16, expected[1])];
            let others = others.map(|(steps, of)| (steps, vec![0], of));
            let superstep = known.unwrap_or(16);
            let took = (seconds(superstep), vec![[0, 9]]);
            row(superstep, others.to_vec()).note(&mut profiles, &Chosen::all(1), took, None);
            superstep
        };
        (0..6).map(run).collect()
    }

    #[test]
    fn a_plan_that_errs_is_left() {
        let seconds = |steps: u32| if steps == 1 { 1.36 } else { 2.2 };
        assert_eq!(chosen(seconds, [1.4, 1.0]), [16, 1, 1, 1, 1, 1]);
        assert_eq!(chosen(|_| 2.0, [9.0, 2.0]), [16; 6]);
    }

    #[test]
    fn single_steps_alone_tell_nothing_of_others() {
        let pool = Device::host_pool(RuntimeKind::Host, "host:1".into(), String::new(), 1, 1);
        let mut profiles = KernelProfiles::empty("", &Fingerprint::of("here", 0, []));
        let row = Row::named("stencil", "", std::slice::from_ref(&pool));
        let took = (1.0, vec![[0, 9]]);
        row.note(&mut profiles, &Chosen::all(1), took, None);
        let any = row.with_superstep(0, Vec::new());
        assert_eq!(any.next_superstep(&profiles), None);
    }
}
