//! One run, from its configuration to a row of a dataset.

use std::sync::atomic::AtomicBool;

use pdawl_profiler::Sample;
use pdawl_profiler::dataset::Key;

use super::configuration::{Configuration, Setting};
use super::error::ProfileError;
use super::instruments::RunInstruments;
use super::machine::ProfiledMachine;
use super::schedule::ProfileRun;
use super::sums::sums;
use crate::balance::{Planned, Setup, StepPlan};
use crate::codelet::stencil::{self, Dimensions, Precision};
use crate::engine::Outcome;
use crate::engine::corun::place::Division;
use crate::engine::corun::{Control, Corun, CorunError, Options, Stream};
use crate::model::{Case, Descriptors, DevicePart, StepWork, prior, record};
use crate::workload::Divisible;
use crate::workload::stencil::Stencil;

/// Steps of a simulated run: its noise is drawn anew for every command.
const SIMULATED_STEPS: u32 = 10;

/// Seconds that the steps of a real run should take, and how many they may be.
const LASTING: f64 = 0.3;
const FEWEST: u32 = 3;
const MOST: u32 = 100;

/// The seed of the grids' first version: times do not depend on it.
const DATA_SEED: u64 = 1;

/// What is asked of every run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Settings {
    /// Steps of each run; `None` for as many as tell enough.
    pub steps: Option<u32>,
    /// Of the noise of simulated runs.
    pub seed: u64,
}

/// What is known of a run before it begins.
#[derive(Clone, Debug)]
pub struct Prepared {
    pub stencil: Stencil,
    pub case: Case,
    pub descriptors: Descriptors,
    pub steps: u32,
}

impl Prepared {
    /// Prepares a configuration's run on a machine.
    ///
    /// # Errors
    /// When there is no such grid, or its device's memory is too small.
    pub fn new(
        profiled: &ProfiledMachine,
        configuration: &Configuration,
        settings: Settings,
    ) -> Result<Self, ProfileError> {
        let grid = &configuration.grid;
        let stencil = grid
            .stencil(DATA_SEED)
            .map_err(|source| ProfileError::Grid {
                configuration: configuration.to_string(),
                source,
            })?;
        let case = Case {
            part: part(configuration)?,
            work: StepWork::of(&stencil),
        };
        let descriptors = Descriptors::of(
            profiled.machine(),
            profiled.spec(&configuration.device),
            &case.work.codelet,
            grid.precision == Precision::F64,
        );
        let steps = settings.steps.unwrap_or_else(|| {
            if profiled.is_simulated() {
                return SIMULATED_STEPS;
            }
            let step = prior::seconds(&case, &descriptors);
            ((LASTING / step) as u32).clamp(FEWEST, MOST)
        });
        Ok(Self {
            stencil,
            case,
            descriptors,
            steps,
        })
    }
}

/// The part of a step that a configuration is: all of it.
fn part(configuration: &Configuration) -> Result<DevicePart, ProfileError> {
    let (units, unit_bytes) = (configuration.grid.units(), configuration.grid.unit_bytes());
    match configuration.setting {
        Setting::Host {
            workers,
            sockets,
            chunk,
            ..
        } => Ok(DevicePart::Host {
            workers,
            sockets,
            units,
            chunk,
        }),
        Setting::Shared { chunk, workers } => Ok(DevicePart::Host {
            workers,
            sockets: 1,
            units,
            chunk,
        }),
        Setting::Discrete {
            memory,
            held,
            queues,
            ahead,
            ..
        } => {
            let stream = stream(configuration);
            let division =
                Division::of(units, unit_bytes, memory, u64::MAX, stream).map_err(|needed| {
                    ProfileError::Run {
                        configuration: configuration.to_string(),
                        source: CorunError::DeviceMemory {
                            device: configuration.device.clone(),
                            limit: memory,
                            needed,
                        },
                    }
                })?;
            Ok(DevicePart::Discrete {
                held,
                slots: division.slots,
                streamed: units - held,
                chunk: division.chunk,
                queues,
                solo: held == units && ahead,
            })
        }
    }
}

fn stream(configuration: &Configuration) -> Stream {
    match configuration.setting {
        Setting::Discrete { chunk, queues, .. } => Stream {
            chunk: Some(chunk),
            queues: Some(queues),
        },
        _ => Stream::default(),
    }
}

/// Does a run. `None` if it was interrupted: a part of a run is no row.
///
/// # Errors
/// When the device cannot be opened, or the run fails.
pub fn measure(
    profiled: &mut ProfiledMachine,
    run: &ProfileRun,
    settings: Settings,
    stop: &AtomicBool,
) -> Result<Option<Sample>, ProfileError> {
    let configuration = &run.configuration;
    let prepared = Prepared::new(profiled, configuration, settings)?;
    let seed = run.seed(&profiled.machine().name, settings.seed);
    let mut watch = RunInstruments::over(profiled, &configuration.device_use());
    let outcome = profiled.with(&configuration.device_use(), seed, |runtime| {
        watch.open(runtime);
        let options = Options {
            steps: prepared.steps,
            gpu_memory: memory(configuration),
            stream: stream(configuration),
            verify: false,
            trace: true,
        };
        let mut control = Control {
            stop,
            progress: &mut |done, steps| match done {
                0 => watch.begin(),
                done if done == steps => watch.end(),
                _ => {}
            },
        };
        let corun = Corun::open(runtime, &prepared.stencil, &options)?;
        let balancer = Box::new(planned(corun.setup(), prepared.case.part));
        corun.run(balancer, &mut control)
    })?;
    let outcome = outcome.map_err(|source| ProfileError::Run {
        configuration: configuration.to_string(),
        source,
    })?;
    if outcome.interrupted {
        return Ok(None);
    }
    let (source, seen, notes) = watch.close();
    for note in notes {
        profiled.note(note);
    }
    let mut sample = sample(profiled, run, &prepared, &outcome);
    sample.counters = source.to_string();
    sample.features.extend(seen);
    Ok(Some(sample))
}

/// What tells a run from others in a dataset.
pub fn key(profiled: &ProfiledMachine, run: &ProfileRun) -> Key {
    let grid = &run.configuration.grid;
    let dimensions = match grid.nz {
        None => Dimensions::Two,
        Some(_) => Dimensions::Three,
    };
    Key {
        machine: profiled.machine().name.clone(),
        device: run.configuration.selection(),
        codelet: stencil::codelet(dimensions, grid.precision)
            .name
            .to_string(),
        configuration: run.configuration.to_string(),
        repeat: run.repeat,
    }
}

fn memory(configuration: &Configuration) -> Option<u64> {
    match configuration.setting {
        Setting::Discrete { memory, .. } => Some(memory),
        _ => None,
    }
}

/// A balancer that does a part, on the only device.
pub(super) fn planned(setup: &Setup, part: DevicePart) -> Planned {
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

fn sample(
    profiled: &ProfiledMachine,
    run: &ProfileRun,
    prepared: &Prepared,
    outcome: &Outcome,
) -> Sample {
    let configuration = &run.configuration;
    let mut features = record::features(&prepared.case, &prepared.descriptors);
    let sums = sums(outcome).into_iter();
    features.extend(sums.map(|(name, seconds)| (name.to_owned(), seconds)));
    Sample {
        machine: profiled.machine().name.clone(),
        simulated: profiled.is_simulated(),
        device: configuration.selection(),
        kind: configuration.kind.to_string(),
        codelet: prepared.stencil.codelet().name.to_string(),
        configuration: configuration.to_string(),
        repeat: run.repeat,
        counters: String::new(),
        steps: prepared.steps,
        seconds: outcome.seconds,
        features,
    }
}
