//! The runs to learn from: those of a file, those measured before, or new ones from a
//! profile.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use pdawl_api::codelet::spmv;
use pdawl_api::machine::{DeviceKind, DeviceSpec, MachineFile};
use pdawl_api::model::store;
use pdawl_api::profile::ModelKind;
use pdawl_api::report::profile::ProfileReport;
use pdawl_profiler::dataset::{self, Dataset};

use super::{Args, Workload};
use crate::failure::Failure;
use crate::machine_session::machine_file;
use crate::profile::{ProductProfileOptions, ProfileOptions};
use pdawl_api::session::NamedMachine;

/// The part of a budget that is kept for fitting, and its most.
const FITTING: f64 = 0.4;
const LONGEST_FITTING: Duration = Duration::from_secs(60);

/// Runs of a machine.
pub struct Runs {
    pub machine: MachineFile,
    pub path: PathBuf,
    pub dataset: Dataset,
    /// The profile that has just made the last of them, if one did.
    pub made: Option<ProfileReport>,
    /// The codelet that was asked for; `None` for all that there are.
    pub codelet: Option<&'static str>,
    /// The kinds of device that it was asked for on.
    pub kinds: Vec<ModelKind>,
}

impl Runs {
    /// Finds the runs, or makes them.
    ///
    /// # Errors
    /// No such machine or file; a file that is no dataset; everything that
    /// keeps a profile from being made.
    pub fn find(args: &Args, stop: &AtomicBool) -> Result<Self, Failure> {
        if let Some(path) = &args.dataset {
            return of_file(args, path);
        }
        let session = &args.wanted.session;
        let made = match args.no_profile {
            true => None,
            false => Some(profiled(args, stop)?),
        };
        let machine = match (&session.machine, &made) {
            (Some(name), _) => machine_file(name)?,
            (None, Some(made)) => machine_file(&made.machine)?,
            (None, None) => this_machine()?,
        };
        let path = match (&made, &session.out) {
            (Some(made), _) => PathBuf::from(&made.dataset),
            (None, Some(path)) => path.clone(),
            (None, None) => store::dataset(&machine.name).map_err(Failure::of)?,
        };
        if made.is_none() && !path.exists() {
            return Err(Failure::failed(
                format!(
                    "nothing was measured on {}: there is no {}",
                    machine.name,
                    path.display()
                ),
                "leave out --no-profile, or name a file with --dataset",
            ));
        }
        Ok(Self {
            dataset: dataset::read(&path).map_err(Failure::of)?,
            codelet: Some(asked_codelet(args)),
            kinds: asked_kinds(&args.wanted, &machine),
            machine,
            path,
            made,
        })
    }

    /// Whether the times are virtual.
    pub fn simulated(&self) -> bool {
        self.dataset
            .samples
            .first()
            .is_some_and(|sample| sample.simulated)
    }

    /// The part of the budget that measuring them took.
    pub fn took(&self) -> Duration {
        let seconds = self.made.as_ref().map_or(0.0, |made| made.seconds);
        Duration::try_from_secs_f64(seconds).unwrap_or_default()
    }

    /// Whether a signal has ended the measuring.
    pub fn interrupted(&self) -> bool {
        self.made.as_ref().is_some_and(|made| made.interrupted)
    }

    /// What the user should know of how they were made.
    pub fn notes(&self) -> Vec<String> {
        let Some(made) = &self.made else {
            return Vec::new();
        };
        let mut notes = made.notes.clone();
        if made.rows.left > 0 {
            let why = match made.interrupted {
                true => "the interruption",
                false => "the budget",
            };
            notes.push(format!(
                "{why} left out {} runs; the same command goes on with them",
                made.rows.left
            ));
        }
        if let Some(why) = made.failed.first() {
            notes.push(format!(
                "{} runs failed; the first: {why}",
                made.failed.len()
            ));
        }
        notes
    }
}

/// All runs of a file.
fn of_file(args: &Args, path: &Path) -> Result<Runs, Failure> {
    let wanted = &args.wanted;
    let mut dataset = dataset::read(path).map_err(Failure::of)?;
    if let Some(workload) = args.workload {
        let of = match workload {
            Workload::Stencil => "stencil",
            Workload::Spmv => "spmv",
        };
        let before = dataset.samples.len();
        (dataset.samples).retain(|sample| sample.codelet.starts_with(of));
        if dataset.samples.is_empty() && before > 0 {
            return Err(Failure::usage(
                format!(
                    "{}: none of its {before} runs is of --workload {of}",
                    path.display()
                ),
                "the other workload, or no --workload for all that there is",
            ));
        }
    }
    let first = dataset.samples.first();
    let name = first.map(|sample| sample.machine.as_str());
    let named = wanted.session.machine.as_deref().or(name);
    let machine = machine_file(named.unwrap_or_default())?;
    Ok(Runs {
        machine,
        path: path.to_owned(),
        dataset,
        made: None,
        codelet: None,
        kinds: Vec::new(),
    })
}

/// Makes runs, in the part of the budget that fitting leaves.
fn profiled(args: &Args, stop: &AtomicBool) -> Result<ProfileReport, Failure> {
    let mut wanted = args.wanted.clone();
    let fitting = wanted.session.budget.0.mul_f64(FITTING);
    wanted.session.fitting = fitting.min(LONGEST_FITTING);
    match args.workload() {
        Workload::Stencil => wanted.carry_out(args.format, stop),
        Workload::Spmv => ProductProfileOptions::of(&wanted).carry_out(args.format, stop),
    }
}

fn asked_codelet(args: &Args) -> &'static str {
    match args.workload() {
        Workload::Spmv => spmv::name(args.wanted.session.precision()),
        Workload::Stencil => args.wanted.codelet(),
    }
}

/// The kinds that the user named, else those that the machine has.
fn asked_kinds(wanted: &ProfileOptions, machine: &MachineFile) -> Vec<ModelKind> {
    let fp64 = wanted.session.fp64();
    let is_gpu = |device: &DeviceSpec| device.kind != DeviceKind::Cpu && (device.fp64 || !fp64);
    wanted.session.kinds(machine.devices.iter().any(is_gpu))
}

/// The file of this machine.
fn this_machine() -> Result<MachineFile, Failure> {
    let here = NamedMachine::here().map(|machine| machine.file);
    here.ok_or_else(|| {
        Failure::failed(
            "nothing was measured on this machine, of which there is no file",
            "leave out --no-profile, or name a machine with --machine",
        )
    })
}
