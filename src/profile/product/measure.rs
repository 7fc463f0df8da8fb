//! One run of a product, from its configuration to a row of a dataset.

use std::sync::atomic::AtomicBool;

use pdawl_profiler::Sample;
use pdawl_profiler::dataset::Key;

use crate::engine::Outcome;
use crate::engine::corun::{Control, Corun, Options, Stream};
use crate::model::{Case, Descriptors, DevicePart, StepWork, prior, record};
use crate::profile::configuration::{DeviceUse, ModelKind, Setting};
use crate::profile::error::ProfileError;
use crate::profile::instruments::RunInstruments;
use crate::profile::machine::ProfiledMachine;
use crate::profile::run::planned;
use crate::profile::sums::sums;
use crate::workload::Divisible;
use crate::workload::spmv::Spmv;

/// Steps of a simulated run: its noise is drawn anew for every command.
const SIMULATED_STEPS: u32 = 10;

/// Seconds that the steps of a real run should take, and how many they may be.
const LASTING: f64 = 0.08;
const FEWEST: u32 = 3;
const MOST: u32 = 100;

/// A product on a device, and which run of it.
#[derive(Clone, Debug)]
pub struct ProfileRun {
    pub kind: ModelKind,
    pub device_use: DeviceUse,
    pub repeat: u32,
}

/// A matrix to measure with.
pub struct Subject<'a> {
    /// As users say it, with its seed.
    pub name: &'a str,
    pub spmv: &'a Spmv,
    pub work: &'a StepWork,
}

impl Subject<'_> {
    /// All that is asked for, so that equal names mean equal runs.
    pub fn configuration(&self, device_use: &DeviceUse) -> String {
        let precision = self.spmv.options().precision.name();
        let irregular = self.spmv.options().irregular;
        let (name, device) = (self.name, device_use.selection());
        let mut text = format!("{name} {precision}; irregular {irregular}; {device}");
        match device_use.setting {
            Setting::Host { chunk, .. } | Setting::Shared { chunk, .. } => {
                text += &format!("; chunk {chunk}");
            }
            Setting::Discrete {
                memory,
                held,
                chunk,
                queues,
                ahead,
            } => {
                text += &format!("; memory {memory}; held {held}; chunk {chunk}; queues {queues}");
                text += if ahead { "; ahead" } else { "" };
            }
        }
        text
    }

    /// What tells a run from others in a dataset.
    pub fn key(&self, profiled: &ProfiledMachine, run: &ProfileRun) -> Key {
        Key {
            machine: profiled.machine().name.clone(),
            device: run.device_use.selection(),
            codelet: self.work.codelet.clone(),
            configuration: self.configuration(&run.device_use),
            repeat: run.repeat,
        }
    }

    /// The part of a step that a device does: all of it.
    fn case(&self, device_use: &DeviceUse) -> Case {
        let units = self.spmv.units();
        let part = match device_use.setting {
            Setting::Host {
                workers,
                sockets,
                chunk,
                ..
            } => DevicePart::Host {
                workers,
                sockets,
                units,
                chunk,
            },
            Setting::Shared { workers, chunk } => DevicePart::Host {
                workers,
                sockets: 1,
                units,
                chunk,
            },
            Setting::Discrete {
                held,
                chunk,
                queues,
                ahead,
                ..
            } => DevicePart::Discrete {
                held,
                slots: 2 * held + 3,
                streamed: units - held,
                chunk,
                queues,
                solo: held == units && ahead,
            },
        };
        Case {
            work: self.work.clone(),
            part,
        }
    }

    /// What is known of a run before it begins: the case, the machine, and how
    /// many steps it should have.
    pub fn expected(
        &self,
        profiled: &ProfiledMachine,
        device_use: &DeviceUse,
        steps: Option<u32>,
    ) -> (Case, Descriptors, u32) {
        let case = self.case(device_use);
        let (machine, device) = (profiled.machine(), profiled.spec(&device_use.device));
        let descriptors = Descriptors::of(machine, device, &case.work.codelet, device_use.fp64);
        let steps = steps.unwrap_or_else(|| match profiled.is_simulated() {
            true => SIMULATED_STEPS,
            false => {
                let step = prior::seconds(&case, &descriptors);
                ((LASTING / step) as u32).clamp(FEWEST, MOST)
            }
        });
        (case, descriptors, steps)
    }

    /// Does a run. `None` if it was interrupted: a part of a run is no row.
    ///
    /// # Errors
    /// When the device cannot be opened, or the run fails.
    pub fn measure(
        &self,
        profiled: &mut ProfiledMachine,
        run: &ProfileRun,
        (steps, seed): (Option<u32>, u64),
        stop: &AtomicBool,
    ) -> Result<Option<Sample>, ProfileError> {
        let (case, descriptors, steps) = self.expected(profiled, &run.device_use, steps);
        let configuration = self.configuration(&run.device_use);
        let (gpu_memory, stream) = match run.device_use.setting {
            Setting::Discrete {
                memory,
                chunk,
                queues,
                ..
            } => {
                let stream = Stream {
                    chunk: Some(chunk),
                    queues: Some(queues),
                };
                (Some(memory), stream)
            }
            _ => (None, Stream::default()),
        };
        let options = Options {
            steps,
            gpu_memory,
            stream,
            verify: false,
            trace: true,
        };
        let mut watch = RunInstruments::over(profiled, &run.device_use);
        let outcome = profiled.with(&run.device_use, seed, |runtime| {
            watch.open(runtime);
            let mut control = Control {
                stop,
                progress: &mut |done, steps| match done {
                    0 => watch.begin(),
                    done if done == steps => watch.end(),
                    _ => {}
                },
            };
            let corun = Corun::open(runtime, self.spmv, &options)?;
            let balancer = Box::new(planned(corun.setup(), case.part));
            corun.run(balancer, &mut control)
        })?;
        let outcome = outcome.map_err(|source| ProfileError::Run {
            configuration: configuration.clone(),
            source,
        })?;
        if outcome.interrupted {
            return Ok(None);
        }
        let (source, seen, notes) = watch.close();
        for note in notes {
            profiled.note(note);
        }
        let mut features = record::features(&case, &descriptors);
        features.extend(named(&outcome));
        features.extend(seen);
        Ok(Some(Sample {
            machine: profiled.machine().name.clone(),
            simulated: profiled.is_simulated(),
            device: run.device_use.selection(),
            kind: run.kind.to_string(),
            codelet: case.work.codelet,
            configuration,
            repeat: run.repeat,
            counters: source.to_string(),
            steps,
            seconds: outcome.seconds,
            features,
        }))
    }
}

fn named(outcome: &Outcome) -> impl Iterator<Item = (String, f64)> {
    let sums = sums(outcome).into_iter();
    sums.map(|(name, seconds)| (name.to_owned(), seconds))
}
