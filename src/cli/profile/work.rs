//! Doing a profile.

use std::sync::atomic::AtomicBool;

use pdawl::machine::Host;
use pdawl::profile::design::{DesignRequest, SpaceError};
use pdawl::profile::run::key;
use pdawl::profile::{
    Configuration, ModelKind, ProfileError, ProfileRun, ProfiledMachine, ProfilingSession,
    SessionProgress, SessionSummary, Settings, Space, design, schedule,
};
use pdawl::quantity::Seconds;
use pdawl::report::profile::{KindReport, ProfileReport, Rows, SCHEMA};
use pdawl_profiler::counters::availability;
use pdawl_profiler::dataset::Appender;

use super::{ProfileOptions, file, machine};
use crate::cli::args::Format;
use crate::cli::failure::Failure;
use crate::cli::terminal;

/// Measures what is wanted and not yet there, with a bar for people.
///
/// # Errors
/// When there is no such machine, nothing to run on it, no time for it, or no
/// place to keep it.
pub fn carry_out(
    wanted: &ProfileOptions,
    format: Format,
    stop: &AtomicBool,
) -> Result<ProfileReport, Failure> {
    let (mut profiled, mut notes) = machine::find(wanted)?;
    let designs = designs(wanted, &profiled, &mut notes)?;
    let all = schedule(&designs, wanted.repeats, wanted.seed);
    let (path, mut appender) = file::open(wanted, &profiled)?;
    let (kept, runs): (Vec<ProfileRun>, Vec<ProfileRun>) =
        (all.into_iter()).partition(|run| appender.contains(&key(&profiled, run)));
    let summary = measured(wanted, &mut profiled, &runs, &mut appender, format, stop)?;
    notes.extend_from_slice(profiled.notes());
    let rows = Rows {
        measured: summary.measured,
        kept: kept.len(),
        left: summary.left,
        failed: summary.failed.len(),
    };
    if rows.measured + rows.kept == 0
        && let Some(why) = summary.failed.first()
    {
        return Err(Failure::failed(
            format!("every run failed; the first: {why}"),
            "other --sizes, --kinds or --gpu-memory",
        ));
    }
    let codelet =
        (kept.iter().chain(&runs).next()).map_or(String::new(), |run| key(&profiled, run).codelet);
    Ok(ProfileReport {
        schema: SCHEMA,
        version: env!("CARGO_PKG_VERSION"),
        machine: profiled.machine().name.clone(),
        simulated: profiled.is_simulated(),
        dataset: path.display().to_string(),
        rows,
        seconds: summary.seconds,
        budget_seconds: wanted.budget.0.as_secs_f64(),
        interrupted: summary.interrupted,
        kinds: KindReport::of(appender.samples(), &codelet),
        codelet,
        counters: (!profiled.is_simulated()).then(availability),
        failed: summary.failed,
        notes,
    })
}

/// A design for each kind of device that is wanted and there.
///
/// # Errors
/// Devices that are not there, and sizes that do not fit.
pub fn designs(
    wanted: &ProfileOptions,
    profiled: &ProfiledMachine,
    notes: &mut Vec<String>,
) -> Result<Vec<Vec<Configuration>>, Failure> {
    let precision = wanted.precision();
    let limit = wanted.gpu_memory.map(|size| size.0);
    let gpus = profiled.gpus(limit, precision.bytes() == 8);
    let (mut kinds, named) = wanted.kinds();
    if gpus.is_empty() && kinds.contains(&ModelKind::Gpu) {
        let machine = &profiled.machine().name;
        let none = format!(
            "machine {machine} has no GPU that computes in {} and can be profiled",
            precision.name()
        );
        if named {
            let remedy = "--kinds cpu; `pdawl devices` shows what there is";
            return Err(Failure::usage(none, remedy));
        }
        notes.push(none);
        kinds.retain(|kind| *kind != ModelKind::Gpu);
    }
    let request = DesignRequest {
        dimensions: wanted.dims,
        precision,
        sizes: wanted.sizes.clone(),
        most: wanted.max_size,
    };
    let memory = match profiled.is_simulated() {
        true => profiled.machine().host.memory,
        false => Host::detect().memory.obtainable(0),
    };
    let memory = match wanted.host_memory {
        Some(limit) if profiled.is_simulated() => limit.0.min(memory),
        Some(limit) => limit.0,
        None => memory,
    };
    let space = Space::of(
        &profiled.machine().host,
        profiled.topology().clone(),
        gpus,
        memory,
        !profiled.is_simulated(),
        &request,
    );
    let space = space.map_err(|error| match error {
        SpaceError::TooSmall(_) => {
            Failure::usage(error, "--sizes 500,4000 or --max-size 4000, say")
        }
        SpaceError::TooLarge { .. } => Failure::of(error),
    })?;
    let count = wanted.configurations as usize;
    let designs: Vec<_> = (kinds.into_iter())
        .map(|kind| design(&space, kind, count))
        .collect();
    match designs.iter().all(Vec::is_empty) {
        true => Err(Failure::failed(
            "nothing can be profiled: no configuration fits into the memory of the devices",
            "smaller --sizes, or a larger --gpu-memory",
        )),
        false => Ok(designs),
    }
}

fn measured(
    wanted: &ProfileOptions,
    profiled: &mut ProfiledMachine,
    runs: &[ProfileRun],
    appender: &mut Appender,
    format: Format,
    stop: &AtomicBool,
) -> Result<SessionSummary, Failure> {
    let bar = terminal::progress(format, runs.len() as u64, "");
    let summary = ProfilingSession {
        profiled,
        settings: Settings {
            steps: wanted.steps,
            seed: wanted.seed,
        },
        budget: wanted.budget.0,
        stop,
        watch: &mut |progress: &SessionProgress| {
            bar.set_position(progress.over as u64);
            let Configuration { grid, .. } = progress.run.configuration;
            let device = progress.run.configuration.selection();
            let left = Seconds(progress.left);
            bar.set_message(format!("{device}, {grid}, {left} left"));
        },
        keep: &mut |sample| appender.append(sample).map_err(ProfileError::from),
    }
    .carry_out(runs);
    bar.finish_and_clear();
    summary.map_err(Failure::of)
}
