//! The runs to learn from: those of a file, those measured before, or new ones from a
//! profile.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use pdawl::codelet::spmv;
use pdawl::machine::{DeviceKind, DeviceSpec, MachineFile};
use pdawl::model::DatasetStore;
use pdawl::profile::ModelKind;
use pdawl_profiler::dataset::{self, Dataset};

use super::{Args, Workload};
use crate::failure::Failure;
use crate::machine_session::machine_file;
use crate::profile::{ProductProfileOptions, ProfileOptions};
use pdawl::session::NamedMachine;

/// The part of a budget that is kept for fitting, and its most.
const FITTING: f64 = 0.4;
const LONGEST_FITTING: Duration = Duration::from_secs(60);

/// Runs of a machine.
pub struct Runs {
    pub machine: MachineFile,
    pub path: PathBuf,
    pub dataset: Dataset,
    pub measured_now: usize,
    /// The part of the budget that measuring them took.
    pub took: Duration,
    /// Whether a signal has ended the measuring.
    pub interrupted: bool,
    /// The codelet that was asked for; `None` for all that there are.
    pub codelet: Option<&'static str>,
    /// The kinds of device that it was asked for on.
    pub kinds: Vec<ModelKind>,
    pub notes: Vec<String>,
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
        let runs = match args.no_profile {
            true => measured_before(args)?,
            false => profiled(args, stop)?,
        };
        Ok(runs)
    }

    /// What the user asked for, of the runs in this file.
    fn asked(args: &Args, machine: MachineFile, path: PathBuf) -> Result<Self, Failure> {
        Ok(Self {
            dataset: dataset::read(&path).map_err(Failure::of)?,
            codelet: Some(asked_codelet(args)),
            kinds: asked_kinds(&args.wanted, &machine),
            machine,
            path,
            measured_now: 0,
            took: Duration::ZERO,
            interrupted: false,
            notes: Vec::new(),
        })
    }

    /// Whether the times are virtual.
    pub fn simulated(&self) -> bool {
        self.dataset
            .samples
            .first()
            .is_some_and(|sample| sample.simulated)
    }
}

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
    let name = dataset
        .samples
        .first()
        .map(|sample| sample.machine.as_str());
    let machine = machine_file(
        wanted
            .session
            .machine
            .as_deref()
            .or(name)
            .unwrap_or_default(),
    )?;
    Ok(Runs {
        machine,
        path: path.to_owned(),
        dataset,
        measured_now: 0,
        took: Duration::ZERO,
        interrupted: false,
        codelet: None,
        kinds: Vec::new(),
        notes: Vec::new(),
    })
}

fn measured_before(args: &Args) -> Result<Runs, Failure> {
    let wanted = &args.wanted;
    let machine = match &wanted.session.machine {
        Some(name) => machine_file(name)?,
        None => this_machine()?,
    };
    let path = match &wanted.session.out {
        Some(path) => path.clone(),
        None => DatasetStore::of_user()
            .path(&machine.name)
            .map_err(Failure::of)?,
    };
    if !path.exists() {
        return Err(Failure::failed(
            format!(
                "nothing was measured on {}: there is no {}",
                machine.name,
                path.display()
            ),
            "leave out --no-profile, or name a file with --dataset",
        ));
    }
    Runs::asked(args, machine, path)
}

fn profiled(args: &Args, stop: &AtomicBool) -> Result<Runs, Failure> {
    let mut wanted = args.wanted.clone();
    wanted.session.fitting = wanted
        .session
        .budget
        .0
        .mul_f64(FITTING)
        .min(LONGEST_FITTING);
    let report = match args.workload() {
        Workload::Stencil => wanted.carry_out(args.format, stop)?,
        Workload::Spmv => ProductProfileOptions::of(&wanted).carry_out(args.format, stop)?,
    };
    let machine = machine_file(wanted.session.machine.as_ref().unwrap_or(&report.machine))?;
    let path = PathBuf::from(&report.dataset);
    let mut notes = report.notes;
    if report.rows.left > 0 {
        let why = match report.interrupted {
            true => "the interruption",
            false => "the budget",
        };
        notes.push(format!(
            "{why} left out {} runs; the same command goes on with them",
            report.rows.left
        ));
    }
    if let Some(why) = report.failed.first() {
        notes.push(format!(
            "{} runs failed; the first: {why}",
            report.failed.len()
        ));
    }
    Ok(Runs {
        measured_now: report.rows.measured,
        took: Duration::try_from_secs_f64(report.seconds).unwrap_or_default(),
        interrupted: report.interrupted,
        notes,
        ..Runs::asked(args, machine, path)?
    })
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
