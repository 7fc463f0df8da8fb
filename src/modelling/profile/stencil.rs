//! Runs of stencils, from a configuration to a run that can be measured.

use std::sync::Arc;

use fastrand::Rng;

use super::configuration::{Configuration, Setting};
use super::error::ProfileError;
use super::machine::ProfiledMachine;
use super::run::{PreparedRun, Settings, Subject};
use super::session::ProfilingSession;
use crate::engine::corun::CorunError;
use crate::engine::corun::grid::GridDivision;
use crate::model::{DevicePart, StepWork};

/// Seconds that the steps of a run on a real device should take together.
const LASTING: f64 = 0.3;

/// The seed of the first version of the grids, on which times do not depend.
const DATA_SEED: u64 = 1;

/// Measures `runs` in their order; a run that cannot be prepared counts as failed.
///
/// # Errors
/// As [`ProfilingSession::measure`].
pub fn profile(session: &mut ProfilingSession, runs: &[ProfileRun]) -> Result<(), ProfileError> {
    let mut prepared = Vec::with_capacity(runs.len());
    for run in runs {
        match prepare(session.profiled, run, session.settings) {
            Ok(run) => prepared.push(run),
            Err(error) => session.summary.failed.push(error.to_string()),
        }
    }
    session.measure(prepared)
}

/// Prepares a run on a machine.
///
/// # Errors
/// When there is no such grid, or the memory of its device is too small.
pub fn prepare(
    profiled: &ProfiledMachine,
    run: &ProfileRun,
    settings: Settings,
) -> Result<PreparedRun, ProfileError> {
    let Configuration { grid, device_use } = &run.configuration;
    let stencil = (grid.stencil(DATA_SEED)).map_err(|source| ProfileError::Grid {
        configuration: run.configuration.to_string(),
        source,
    })?;
    let subject = Subject {
        name: grid.to_string(),
        work: StepWork::of(&stencil),
        workload: Arc::new(stencil),
        lasting: LASTING,
    };
    let (part, device_use) = (part(&run.configuration)?, device_use.clone());
    Ok(PreparedRun::new(
        profiled, &subject, device_use, part, run.repeat, settings,
    ))
}

/// The part of a step that a configuration's device does: all of it.
fn part(configuration: &Configuration) -> Result<DevicePart, ProfileError> {
    let (units, unit_bytes) = (configuration.grid.units(), configuration.grid.unit_bytes());
    let setting = configuration.device_use.setting;
    let Setting::Discrete { memory, .. } = setting else {
        return Ok(setting.part(units, 0));
    };
    let division = GridDivision::of(units, unit_bytes, memory, u64::MAX, setting.stream());
    let division = division.map_err(|needed| ProfileError::Run {
        configuration: configuration.to_string(),
        source: CorunError::DeviceMemory {
            device: configuration.device_use.device.clone(),
            limit: memory,
            needed,
        },
    })?;
    let setting = setting.with_chunk(division.chunk);
    Ok(setting.part(units, division.slots))
}

/// A run of a configuration.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ProfileRun {
    pub configuration: Configuration,
    /// The number of the repeat, from 0.
    pub repeat: u32,
}

/// Configurations of each design in the first block; each next block is twice
/// as long.
const FIRST: usize = 8;

/// Every configuration of the designs `repeats` times.
///
/// The order is shuffled, so that drifts with time, such as clocks and other users, do
/// not look like an effect of the configuration. It is shuffled within blocks that each
/// continue the prefix of every design, so that the measured rows span the space
/// whenever the time is up.
pub fn schedule(designs: &[Vec<Configuration>], repeats: u32, seed: u64) -> Vec<ProfileRun> {
    let mut random = Rng::with_seed(seed);
    let longest = designs.iter().map(Vec::len).max().unwrap_or(0);
    let mut runs = Vec::new();
    let (mut from, mut length) = (0, FIRST);
    while from < longest {
        let block = (designs.iter()).flat_map(|design| design.iter().skip(from).take(length));
        let mut block: Vec<ProfileRun> = block
            .flat_map(|configuration| {
                (0..repeats).map(|repeat| ProfileRun {
                    configuration: configuration.clone(),
                    repeat,
                })
            })
            .collect();
        random.shuffle(&mut block);
        runs.append(&mut block);
        from += length;
        length *= 2;
    }
    runs
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::codelet::stencil::Precision;
    use crate::profile::configuration::{Grid, ModelKind, Setting};

    fn configurations(kind: ModelKind, count: u64) -> Vec<Configuration> {
        (0..count)
            .map(|n| {
                let grid = Grid {
                    nx: 3 + n,
                    ny: 3,
                    nz: None,
                    precision: Precision::F64,
                };
                let setting = Setting::Shared {
                    workers: 1,
                    chunk: 1,
                };
                Configuration::new(grid, kind, "gpu0", setting)
            })
            .collect()
    }

    #[test]
    fn every_run_comes_once_and_every_block_continues_the_prefix() {
        let designs = [
            configurations(ModelKind::Cpu, 30),
            configurations(ModelKind::Gpu, 11),
        ];
        let runs = schedule(&designs, 3, 1);
        assert_eq!(runs.len(), 3 * 41);
        assert_eq!(runs.iter().collect::<HashSet<_>>().len(), runs.len());
        let mut at = 0;
        for (from, to) in [(0, 8), (8, 24), (24, 30)] {
            let wanted: HashSet<&Configuration> = (designs.iter())
                .flat_map(|design| design.iter().take(to).skip(from))
                .collect();
            let block = &runs[at..at + 3 * wanted.len()];
            let found: HashSet<&Configuration> = block.iter().map(|r| &r.configuration).collect();
            assert_eq!(found, wanted);
            at += block.len();
        }
        assert_eq!(at, runs.len());
    }

    #[test]
    fn the_seed_decides_the_order_and_nothing_else() {
        let designs = [configurations(ModelKind::Cpu, 8)];
        let [a, b, c] = [1, 1, 2].map(|seed| schedule(&designs, 3, seed));
        assert_eq!(a, b);
        assert_ne!(a, c);
        let as_set = |runs: &[ProfileRun]| runs.iter().cloned().collect::<HashSet<_>>();
        assert_eq!(as_set(&a), as_set(&c));
        assert_eq!(schedule(&[], 3, 1), []);
    }
}
