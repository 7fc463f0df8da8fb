//! Runs of stencils, from a configuration to a run that can be measured.

use std::sync::Arc;

use super::configuration::{Configuration, Setting};
use super::error::ProfileError;
use super::machine::ProfiledMachine;
use super::run::{PreparedRun, Settings, expected};
use super::schedule::ProfileRun;
use super::session::ProfilingSession;
use crate::engine::corun::CorunError;
use crate::engine::corun::grid::GridDivision;
use crate::model::{Case, DevicePart, StepWork};

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
    let configuration = &run.configuration;
    let stencil = (configuration.grid.stencil(DATA_SEED)).map_err(|source| ProfileError::Grid {
        configuration: configuration.to_string(),
        source,
    })?;
    let case = Case {
        part: part(configuration)?,
        work: StepWork::of(&stencil),
    };
    let wanted = (settings.steps, LASTING);
    let (descriptors, steps) = expected(profiled, &stencil, &case, &configuration.device, wanted);
    Ok(PreparedRun {
        kind: configuration.kind,
        device_use: configuration.device_use(),
        configuration: configuration.to_string(),
        repeat: run.repeat,
        case,
        descriptors,
        steps,
        workload: Arc::new(stencil),
    })
}

/// The part of a step that a configuration's device does: all of it.
fn part(configuration: &Configuration) -> Result<DevicePart, ProfileError> {
    let (units, unit_bytes) = (configuration.grid.units(), configuration.grid.unit_bytes());
    let setting = configuration.setting;
    let Setting::Discrete { memory, .. } = setting else {
        return Ok(setting.part(units, 0));
    };
    let division = GridDivision::of(units, unit_bytes, memory, u64::MAX, setting.stream());
    let division = division.map_err(|needed| ProfileError::Run {
        configuration: configuration.to_string(),
        source: CorunError::DeviceMemory {
            device: configuration.device.clone(),
            limit: memory,
            needed,
        },
    })?;
    let setting = setting.with_chunk(division.chunk);
    Ok(setting.part(units, division.slots))
}
