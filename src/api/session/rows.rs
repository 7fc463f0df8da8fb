//! What a session knows of earlier runs of the same kind, and what a run adds to it.

use serde_json::Value;
use twox_hash::xxhash3_128::Hasher;

use super::parts::{self, Chosen, Expected};
use crate::machine::Device;
use crate::profile::kernels::{KernelProfiles, PartRow, RunRecord};
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

    /// The steps between two barriers, at most `longest`, with which the next run begins: those that
    /// took least, or others near them that were not tried and may take less. Only where devices
    /// share what none of them holds may others do so. `None` if nothing is known; `is_planned` if
    /// what is known of single steps alone is nothing, too.
    pub fn next_superstep(
        &self,
        profiles: &KernelProfiles,
        longest: u32,
        is_planned: bool,
    ) -> Option<u32> {
        let run = profiles.run(&self.kind)?;
        let known = run
            .parts
            .iter()
            .filter_map(|(name, row)| Some((self.part(name)?.1, row)));
        let measured = known
            .clone()
            .filter_map(|(steps, row)| Some((row.least()?, steps, row)));
        let (least, best, row) = measured.min_by(|one, other| one.0.total_cmp(&other.0))?;
        if is_planned && known.clone().all(|(steps, _)| steps == 1) {
            return None;
        }
        let pools = row.units.values().any(|[_, pooled]| *pooled > 0);
        let mut near = near(best, longest).into_iter().filter(|_| pools);
        let pays = run.pays();
        let may_gain = |row: &PartRow| row.expected.is_none_or(|expected| expected < pays * least);
        let is_open = |steps: &u32| {
            let mut of = known.clone().filter(|(known, _)| known == steps);
            of.all(|(_, row)| row.count() == 0 && may_gain(row))
        };
        Some(near.find(is_open).unwrap_or(best.min(longest)))
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

/// Steps between two barriers, at most `longest`, that are compared with so many.
pub fn near(steps: u32, longest: u32) -> [u32; 4] {
    let all = [
        1,
        steps.saturating_mul(4),
        steps.saturating_mul(2),
        steps / 2,
    ];
    all.map(|steps| steps.clamp(1, longest))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::{Fingerprint, RuntimeKind};

    /// The steps between two barriers of so many runs, of which each takes what `seconds` says and
    /// the first one was expected to take what `plan` says.
    fn chosen(seconds: impl Fn(u32) -> f64, first: u32, plan: &[(u32, f64)]) -> Vec<u32> {
        let pool = Device::host_pool(RuntimeKind::Host, "host:1".into(), String::new(), 1, 1);
        let mut profiles = KernelProfiles::empty("", &Fingerprint::of("here", 0, []));
        let expected = plan.iter().map(|(steps, of)| (*steps, vec![0], *of));
        let expected: Vec<_> = expected.collect();
        let row = |superstep, others| {
            let row = Row::named("stencil", "", std::slice::from_ref(&pool));
            row.with_superstep(superstep, others)
        };
        let run = |_| {
            let known = row(0, Vec::new()).next_superstep(&profiles, 30, !plan.is_empty());
            let others = match known {
                None => expected.clone(),
                Some(_) => Vec::new(),
            };
            let superstep = known.unwrap_or(first);
            let took = (seconds(superstep), vec![[0, 9]]);
            row(superstep, others).note(&mut profiles, &Chosen::all(1), took, None);
            superstep
        };
        (0..8).map(run).collect()
    }

    #[test]
    fn other_steps_between_barriers_are_tried_near_those_that_took_least() {
        let least = |at: f64| move |steps: u32| 1.0 + (f64::from(steps) / at).ln().abs();
        assert_eq!(chosen(least(100.0), 1, &[])[..5], [1, 4, 16, 30, 15]);
        assert_eq!(chosen(least(100.0), 1, &[])[5..], [30; 3]);
        assert_eq!(chosen(least(9.0), 1, &[]), [1, 4, 16, 30, 8, 8, 8, 8]);
        assert_eq!(chosen(least(1.0), 1, &[]), [1, 4, 2, 1, 1, 1, 1, 1]);
        // Single steps are compared with those that were asked for.
        assert_eq!(chosen(least(1.0), 8, &[])[..2], [8, 1]);
    }

    #[test]
    fn a_plan_that_errs_is_left() {
        let plan = [(1, 1.4), (4, 1.2), (16, 1.0)];
        let seconds = |steps: u32| if steps == 1 { 1.36 } else { 2.2 };
        assert_eq!(chosen(seconds, 16, &plan), [16, 1, 4, 2, 1, 1, 1, 1]);
        let right = [(1, 9.0), (8, 3.0), (16, 2.0), (30, 2.6)];
        assert_eq!(chosen(|_| 2.0, 16, &right), [16; 8]);
    }
}
