//! One run of a product, from its seat to a row of a dataset.

use std::sync::atomic::AtomicBool;

use pdawl_profiler::Sample;
use pdawl_profiler::dataset::Key;

use crate::balance::{Balancer, Setup};
use crate::engine::Outcome;
use crate::engine::corun::{self, Control, Options, Stream};
use crate::model::{Case, Descriptors, Part, Work, prior, record};
use crate::profile::configuration::{Kind, Seat, Setting};
use crate::profile::error::ProfileError;
use crate::profile::ground::Ground;
use crate::profile::run::planned;
use crate::profile::sums::sums;
use crate::profile::watch::Watch;
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
pub struct Run {
    pub kind: Kind,
    pub seat: Seat,
    pub repeat: u32,
}

/// A matrix to measure with.
pub struct Subject<'a> {
    /// As users say it, with its seed.
    pub name: &'a str,
    pub spmv: &'a Spmv,
    pub work: &'a Work,
}

impl Subject<'_> {
    /// All that is asked for, so that equal names mean equal runs.
    pub fn configuration(&self, seat: &Seat) -> String {
        let precision = self.spmv.options().precision.name();
        let irregular = self.spmv.options().irregular;
        let (name, device) = (self.name, seat.selection());
        let mut text = format!("{name} {precision}; irregular {irregular}; {device}");
        match seat.setting {
            Setting::Host { chunk, .. } | Setting::Shared { chunk, .. } => {
                text += &format!("; chunk {chunk}");
            }
            Setting::Own {
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
    pub fn key(&self, ground: &Ground, run: &Run) -> Key {
        Key {
            machine: ground.machine().name.clone(),
            device: run.seat.selection(),
            codelet: self.work.codelet.clone(),
            configuration: self.configuration(&run.seat),
            repeat: run.repeat,
        }
    }

    /// The part of a step that a seat does: all of it.
    fn case(&self, seat: &Seat) -> Case {
        let units = self.spmv.units();
        let part = match seat.setting {
            Setting::Host {
                workers,
                sockets,
                chunk,
                ..
            } => Part::Host {
                workers,
                sockets,
                units,
                chunk,
            },
            Setting::Shared { workers, chunk } => Part::Host {
                workers,
                sockets: 1,
                units,
                chunk,
            },
            Setting::Own {
                held,
                chunk,
                queues,
                ahead,
                ..
            } => Part::Own {
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
        ground: &Ground,
        seat: &Seat,
        steps: Option<u32>,
    ) -> (Case, Descriptors, u32) {
        let case = self.case(seat);
        let (machine, device) = (ground.machine(), ground.spec(&seat.device));
        let descriptors = Descriptors::of(machine, device, &case.work.codelet, seat.fp64);
        let steps = steps.unwrap_or_else(|| match ground.is_simulated() {
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
        ground: &mut Ground,
        run: &Run,
        (steps, seed): (Option<u32>, u64),
        stop: &AtomicBool,
    ) -> Result<Option<Sample>, ProfileError> {
        let (case, descriptors, steps) = self.expected(ground, &run.seat, steps);
        let configuration = self.configuration(&run.seat);
        let (gpu_memory, stream) = match run.seat.setting {
            Setting::Own {
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
        let mut watch = Watch::over(ground, &run.seat);
        let outcome = ground.with(&run.seat, seed, |runtime| {
            watch.open(runtime);
            let mut control = Control {
                stop,
                progress: &mut |done, steps| match done {
                    0 => watch.begin(),
                    done if done == steps => watch.end(),
                    _ => {}
                },
            };
            let make = &mut |setup: &Setup| -> Result<Box<dyn Balancer>, String> {
                Ok(Box::new(planned(setup, case.part)))
            };
            corun::run(runtime, self.spmv, make, &options, &mut control)
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
            ground.note(note);
        }
        let mut features = record::features(&case, &descriptors);
        features.extend(named(&outcome));
        features.extend(seen);
        Ok(Some(Sample {
            machine: ground.machine().name.clone(),
            simulated: ground.is_simulated(),
            device: run.seat.selection(),
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
