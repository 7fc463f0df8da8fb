//! One run: what is known of it beforehand, and its measurement, which gives a row
//! of a dataset.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use pdawl_profiler::Sample;
use pdawl_profiler::dataset::Key;

use super::configuration::DeviceUse;
use super::error::ProfileError;
use super::instruments::{RunInstruments, sums};
use super::machine::ProfiledMachine;
use crate::balance::{Planned, Setup, StepPlan};
use crate::engine::corun::{Control, Corun, Options, Tracing};
use crate::model::{Case, Descriptors, DevicePart, StepWork, prior, record};
use crate::workload::{Divisible, Supersteps};

/// Steps of a simulated run: its noise is drawn anew for every command.
const SIMULATED_STEPS: u32 = 10;

/// The least and the greatest number of steps of a run on a real device.
const FEWEST_STEPS: u32 = 3;
const MOST_STEPS: u32 = 100;

/// Settings of all runs of a session.
#[derive(Clone, Copy, Debug, Default)]
pub struct Settings {
    /// Steps of each run; `None` for as many as the measurement needs.
    pub steps: Option<u32>,
    /// The seed of the noise of simulated runs.
    pub seed: u64,
}

/// What runs compute.
#[derive(Clone)]
pub(super) struct Subject {
    /// What users call it: the begin of a configuration's name.
    pub name: String,
    pub workload: Arc<dyn Divisible>,
    pub work: StepWork,
    /// Seconds that the steps of a run on a real device should take together.
    pub lasting: f64,
}

/// A workload on one device, ready to be measured.
pub struct PreparedRun {
    pub device_use: DeviceUse,
    /// Everything that was asked for, so that equal names mean equal runs.
    pub configuration: String,
    /// The number of the repeat, from 0.
    pub repeat: u32,
    pub case: Case,
    pub descriptors: Descriptors,
    pub steps: u32,
    workload: Arc<dyn Divisible>,
}

impl PreparedRun {
    /// A run of this part of a step, with as many steps as `settings` say or, on a real
    /// device, as many as last as long as wanted.
    pub(super) fn new(
        profiled: &ProfiledMachine,
        subject: &Subject,
        device_use: DeviceUse,
        part: DevicePart,
        repeat: u32,
        settings: Settings,
    ) -> Self {
        let workload = &subject.workload;
        let case = Case {
            work: subject.work,
            part,
        };
        let descriptors = Descriptors::of(
            profiled.machine(),
            profiled.spec(&device_use.device),
            &workload.codelet().name,
            workload.fp64(),
        );
        let steps = settings
            .steps
            .unwrap_or_else(|| match profiled.is_simulated() {
                true => SIMULATED_STEPS,
                false => {
                    let step = prior::seconds(&case, &descriptors);
                    ((subject.lasting / step) as u32).clamp(FEWEST_STEPS, MOST_STEPS)
                }
            });
        Self {
            configuration: format!("{}; {device_use}", subject.name),
            device_use,
            repeat,
            case,
            descriptors,
            steps,
            workload: Arc::clone(workload),
        }
    }

    /// What distinguishes the run from others in a dataset.
    pub fn key(&self, profiled: &ProfiledMachine) -> Key {
        Key {
            machine: profiled.machine().name.clone(),
            device: self.device_use.selection(),
            codelet: self.workload.codelet().name.to_string(),
            configuration: self.configuration.clone(),
            repeat: self.repeat,
        }
    }

    /// The device and what it computes, for people.
    pub fn title(&self) -> String {
        let what = self.configuration.split(';').next().unwrap_or_default();
        format!("{}, {what}", self.device_use.selection())
    }

    /// Measures the run. `None` if it was interrupted: a part of a run is no row.
    /// `seed` is the session's.
    ///
    /// # Errors
    /// When the device cannot be opened, or the run fails.
    pub fn measure(
        &self,
        profiled: &mut ProfiledMachine,
        seed: u64,
        stop: &AtomicBool,
    ) -> Result<Option<Sample>, ProfileError> {
        let key = self.key(profiled);
        let mut instruments = RunInstruments::over(profiled, &self.device_use);
        let outcome = profiled.with(&self.device_use, seed_of(&key, seed), |runtime| {
            instruments.open();
            let options = Options {
                tolerance: None,
                supersteps: Supersteps::new(self.steps, 1),
                gpu_memory: self.device_use.setting.memory(),
                stream: self.device_use.setting.stream(),
                verify: false,
                trace: Tracing::Commands,
            };
            let mut control = Control {
                stop,
                progress: &mut |done, steps| match done {
                    0 => instruments.begin(),
                    done if done == steps => instruments.end(),
                    _ => {}
                },
            };
            let corun = Corun::open(runtime, &*self.workload, &options)?;
            let balancer = Box::new(planned(corun.setup(), self.case.part));
            corun.run(balancer, &mut control)
        })?;
        let outcome = outcome.map_err(|source| ProfileError::Run {
            configuration: self.configuration.clone(),
            source,
        })?;
        if outcome.interrupted {
            return Ok(None);
        }
        let (source, readings, notes) = instruments.close();
        for note in notes {
            profiled.note(note);
        }
        let mut features = record::features(&self.case, &self.descriptors);
        let sums = sums(&outcome).into_iter();
        features.extend(sums.map(|(name, seconds)| (name.to_owned(), seconds)));
        features.extend(readings);
        Ok(Some(Sample {
            machine: key.machine,
            simulated: profiled.is_simulated(),
            device: key.device,
            kind: self.device_use.kind.to_string(),
            codelet: key.codelet,
            configuration: key.configuration,
            repeat: self.repeat,
            counters: source.to_string(),
            steps: self.steps,
            seconds: outcome.seconds,
            features,
        }))
    }
}

/// A balancer that gives a part to the only device.
fn planned(setup: &Setup, part: DevicePart) -> Planned {
    let (held, pooled, chunk) = match part {
        DevicePart::Host { units, chunk, .. } => (0, units, chunk),
        DevicePart::Discrete {
            held,
            streamed,
            chunk,
            ..
        } => (held, streamed, chunk),
    };
    let plan = StepPlan {
        held: vec![held],
        pooled: vec![pooled],
    };
    let planned = Planned::new(setup, plan, vec![chunk]);
    match part {
        DevicePart::Discrete { solo: true, .. } => planned,
        _ => planned.with_barriers(),
    }
}

/// The seed of a run's noise, equal whenever the run is repeated: an interruption
/// must not change what a profile measures.
fn seed_of(key: &Key, seed: u64) -> u64 {
    // FNV-1a, which stays the same from release to release.
    let text = format!(
        "{}; {}; {}; {seed}",
        key.machine, key.configuration, key.repeat
    );
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_have_seeds_of_their_own() {
        let key = |machine: &str, repeat| Key {
            machine: machine.into(),
            device: "gpu0".into(),
            codelet: "stencil5-f64".into(),
            configuration: "3x3 f64; gpu0; chunk 1".into(),
            repeat,
        };
        let seed = seed_of(&key("k40", 0), 1);
        // The rows of the stored datasets were drawn with this seed.
        assert_eq!(seed, 15_375_302_962_951_293_356);
        assert_ne!(seed, seed_of(&key("k40", 1), 1));
        assert_ne!(seed, seed_of(&key("k40", 0), 2));
        assert_ne!(seed, seed_of(&key("k20", 0), 1));
    }
}
