//! A profiling session of the command line: devices, rows and the report.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::{Instant, SystemTime};

use pdawl_api::machine::host::Memory;
use pdawl_api::model::store::dataset_to_write;
use pdawl_api::profile::design::Gpu;
use pdawl_api::profile::{
    Budget, ModelKind, ProfileError, ProfiledMachine, ProfilingSession, SessionProgress, Settings,
};
use pdawl_api::report::profile::{KindReport, ProfileReport, Rows};
use pdawl_profiler::atomic_file::target;
use pdawl_profiler::counters::availability;
use pdawl_profiler::dataset::{Appender, Provenance};

use super::{SessionOptions, machine};
use crate::failure::Failure;
use crate::{saved_report, terminal};

/// A machine that can be profiled as asked.
pub struct Opened {
    pub profiled: ProfiledMachine,
    pub kinds: Vec<ModelKind>,
    pub gpus: Vec<Gpu>,
    /// What the user should know of it.
    pub notes: Vec<String>,
    /// When the budget's time began: measuring the machine does not count.
    began: Instant,
}

/// The devices of a machine that are wanted and present.
///
/// # Errors
/// When the user named GPUs and there is none.
pub fn devices(
    options: &SessionOptions,
    profiled: &ProfiledMachine,
    notes: &mut Vec<String>,
) -> Result<(Vec<ModelKind>, Vec<Gpu>), Failure> {
    let limit = options.gpu_memory.map(|size| size.0);
    let gpus = profiled.gpus(limit, options.fp64());
    let mut kinds = options.kinds(true);
    if gpus.is_empty() && kinds.contains(&ModelKind::Gpu) {
        let none = format!(
            "machine {} has no GPU that computes in {} and can be profiled",
            profiled.machine().name,
            options.precision().name()
        );
        if !options.kinds.is_empty() {
            let remedy = "--kinds cpu; `pdawl devices` shows what there is";
            return Err(Failure::usage(none, remedy));
        }
        notes.push(none);
        kinds.retain(|kind| *kind != ModelKind::Gpu);
    }
    Ok((kinds, gpus))
}

/// Bytes of this computer's memory that are free.
pub fn free_memory() -> u64 {
    Memory::obtainable_now()
}

impl Opened {
    /// Finds the machine and its devices.
    ///
    /// # Errors
    /// When there is no such machine or device.
    pub fn find(options: &SessionOptions) -> Result<Self, Failure> {
        let (profiled, mut notes) = machine::find(options)?;
        let began = Instant::now();
        let (kinds, gpus) = devices(options, &profiled, &mut notes)?;
        Ok(Self {
            profiled,
            kinds,
            gpus,
            notes,
            began,
        })
    }

    /// Opens the dataset, measures, and reports what was done. `remedy` helps when
    /// every run fails.
    ///
    /// # Errors
    /// No time for a run, no place to keep rows, or no run that succeeds.
    pub fn profile(
        mut self,
        options: &SessionOptions,
        codelet: &str,
        remedy: &str,
        stop: &AtomicBool,
        watch: &mut dyn FnMut(&SessionProgress),
        measure: impl FnOnce(&mut ProfilingSession) -> Result<(), ProfileError>,
    ) -> Result<ProfileReport, Failure> {
        let (path, mut appender) = open(options, &self.profiled)?;
        let settings = Settings {
            steps: options.steps,
            seed: options.seed,
        };
        let budget = options.budget.0;
        let allowed = Budget {
            whole: budget,
            elsewhere: options.fitting + self.began.elapsed(),
        };
        let profiled = &mut self.profiled;
        let mut session =
            ProfilingSession::begin(profiled, settings, allowed, stop, &mut appender, watch);
        let done = measure(&mut session);
        let summary = done.and_then(|()| session.finish()).map_err(Failure::of)?;
        let rows = Rows {
            measured: summary.measured,
            kept: summary.kept,
            left: summary.left,
            failed: summary.failed.len(),
        };
        if rows.measured + rows.kept == 0
            && let Some(why) = summary.failed.first()
        {
            let what = format!("every run failed; the first: {why}");
            return Err(Failure::failed(what, remedy));
        }
        self.notes.extend_from_slice(self.profiled.notes());
        let simulated = self.profiled.is_simulated();
        Ok(ProfileReport {
            machine: self.profiled.machine().name.clone(),
            simulated,
            codelet: codelet.to_owned(),
            dataset: path.display().to_string(),
            rows,
            seconds: summary.seconds,
            budget_seconds: budget.as_secs_f64(),
            interrupted: summary.interrupted,
            kinds: KindReport::of(appender.samples(), codelet),
            counters: (!simulated).then(availability),
            failed: summary.failed,
            notes: self.notes,
        })
    }
}

/// Opens the dataset of a profile, and returns its path.
///
/// # Errors
/// When it cannot be written, and when it is of another machine.
fn open(
    options: &SessionOptions,
    profiled: &ProfiledMachine,
) -> Result<(PathBuf, Appender), Failure> {
    let machine = profiled.machine();
    let path = match &options.out {
        Some(path) => path.clone(),
        None => dataset_to_write(&machine.name).map_err(Failure::of)?,
    };
    if options.fresh {
        set_aside(&path)?;
    }
    let appender = Appender::open(&path, &provenance(profiled)).map_err(Failure::of)?;
    for note in appender.notes() {
        terminal::warn(note);
    }
    let samples = appender.samples();
    let remedy = "--out FILE for another one, or --fresh to begin anew";
    if let Some(other) = samples.iter().find(|s| s.machine != machine.name) {
        return Err(Failure::failed(
            format!(
                "{} has runs of machine {}, and this profile is of {}",
                path.display(),
                other.machine,
                machine.name
            ),
            remedy,
        ));
    }
    let origin = |simulated| if simulated { "simulated" } else { "measured" };
    let simulated = profiled.is_simulated();
    if samples.iter().any(|s| s.simulated != simulated) {
        return Err(Failure::failed(
            format!(
                "{} has {} runs, and those of this profile are {}",
                path.display(),
                origin(!simulated),
                origin(simulated)
            ),
            remedy,
        ));
    }
    Ok((path, appender))
}

/// Renames an existing regular file; leaves folders and devices alone.
fn set_aside(path: &Path) -> Result<(), Failure> {
    if !path.is_file() {
        return Ok(());
    }
    let path = &target(path).unwrap_or_else(|_| path.to_owned());
    let mut aside = path.as_os_str().to_owned();
    aside.push(".bak");
    std::fs::rename(path, &aside).map_err(|error| {
        Failure::failed(
            format!("{} cannot be set aside: {error}", path.display()),
            "--out FILE for another one",
        )
    })
}

/// The provenance of the rows.
pub fn provenance(profiled: &ProfiledMachine) -> Provenance {
    let machine = profiled.machine();
    let mut provenance = Provenance::default();
    let host = &machine.host;
    let hardware = std::iter::once(format!("{}, {} cores", host.model, host.cores));
    let devices = machine.devices.iter().map(|device| device.model.clone());
    let hardware: Vec<String> = hardware.chain(devices).collect();
    provenance.add("hardware", &hardware.join("; "));
    if profiled.is_simulated() {
        provenance.add("origin", "simulated; no such machine was measured");
    }
    let now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    provenance.add("date", now.split('T').next().unwrap_or(&now));
    provenance.add("version", concat!("pdawl ", env!("CARGO_PKG_VERSION")));
    provenance.add("command", &saved_report::command_line());
    provenance
}
