//! What is kept from run to run: the times of codelets' implementations on this machine's GPUs, and
//! those of runs.

use std::path::Path;
use std::time::{Duration, Instant};
use std::{env, process};

use crate::engine::measure::MeasureError;
use crate::machine::{Device, DeviceKind, Fingerprint, MachineFile, RuntimeKind};
use crate::profile::kernels::{KernelProfiles, KernelProfilesError, path_of_user};
use crate::runtime::select::{Libraries, fingerprint, libraries};
use crate::runtime::{Comparison, Runtime};
use crate::session::{Error, this_machine};

/// Names what is to be kept of runs: nothing if it is `off`, and those of the host alone, too, if it
/// is [`ALL_ROWS`].
const ROWS: &str = "PDAWL_ROWS";
const ALL_ROWS: &str = "all";

/// A file is written at most so often while a session runs, and at its end.
const EVERY: Duration = Duration::from_secs(10);

/// What the user's file of this machine knows, and what runs have added.
pub struct KeptTimes {
    profiles: KernelProfiles,
    /// What was read or noted of implementations.
    known: Vec<Comparison>,
    /// Whether runs begin with what earlier ones took, whether they add to it, and whether there is
    /// a file of it.
    reads_rows: bool,
    notes_rows: bool,
    saves: bool,
    /// When the file was last written; `None` before.
    saved: Option<Instant>,
    /// The process that saves: not one that was forked from it.
    process: u32,
}

impl KeptTimes {
    /// Reads the user's file of this machine, or `file`, if a device has memory of its own or all
    /// runs are to be kept. A file that cannot be used is noted; runs then measure, and keep
    /// nothing. `fresh` runs read nothing of earlier ones.
    pub fn of(
        devices: &[Device],
        file: Option<&Path>,
        fresh: bool,
        notes: &mut Vec<String>,
    ) -> Option<Self> {
        let rows = env::var_os(ROWS);
        let is = |value: &str| rows.as_ref().is_some_and(|rows| rows == value);
        // The file's name has the GPUs, whose drivers the host alone does not load.
        if devices.iter().all(|device| device.shares_host_memory) && !is(ALL_ROWS) {
            return None;
        }
        let here = fingerprint();
        let path = match file {
            Some(file) => Ok(file.to_owned()),
            None => path_of_user(&here).map_err(KernelProfilesError::from),
        };
        let is_cuda = |device: &&Device| device.runtime == RuntimeKind::Cuda;
        let compared = devices.iter().filter(is_cuda);
        let keeps_rows = !is("off");
        match path.and_then(|path| KernelProfiles::open(path, &here)) {
            Ok(profiles) => {
                let mut kept = Self::from(profiles);
                if libraries() == Libraries::Auto {
                    let compared = compared.flat_map(|device| kept.profiles.comparisons(device));
                    kept.known = compared.collect();
                }
                kept.reads_rows = keeps_rows && !fresh;
                kept.notes_rows = keeps_rows;
                Some(kept)
            }
            Err(error) => {
                notes.push(not_kept(&error));
                None
            }
        }
    }

    /// What a session alone knows of a simulated machine, or what `file` has of it, too.
    pub fn simulated(
        machine: &str,
        file: Option<&Path>,
        fresh: bool,
        notes: &mut Vec<String>,
    ) -> Self {
        let here = Fingerprint::of(&format!("simulated {machine}"), 0, []);
        let opened = file.map(|file| KernelProfiles::open(file, &here));
        let saves = matches!(opened, Some(Ok(_)));
        let profiles = match opened {
            Some(Ok(profiles)) => profiles,
            broken => {
                notes.extend(broken.and_then(Result::err).as_ref().map(not_kept));
                KernelProfiles::empty("", &here)
            }
        };
        let mut kept = Self::from(profiles);
        (kept.saves, kept.reads_rows) = (saves, !fresh);
        kept
    }

    /// What is known of earlier runs.
    pub fn earlier(&self) -> Option<&KernelProfiles> {
        self.reads_rows.then_some(&self.profiles)
    }

    /// What is known of the machine, measured now if a GPU of these or copies between two are not
    /// known yet and runs are kept.
    pub fn machine(
        &mut self,
        runtime: &mut dyn Runtime,
        notes: &mut Vec<String>,
    ) -> Option<&MachineFile> {
        let known = self.measured();
        let devices = runtime.devices();
        let is_known =
            known.is_some_and(|known| has_all(known, devices) && has_ways(known, devices));
        if !is_known && self.notes_rows {
            match this_machine::measure_open(runtime) {
                Ok(machine) => self.profiles.record_machine(machine),
                Err(Error::Measure(MeasureError::NoHost)) => {}
                Err(error) => notes.push(format!("the machine is not measured: {error}")),
            }
        }
        let devices = runtime.devices();
        self.measured().filter(|known| has_all(known, devices))
    }

    /// What a first run has measured of the machine.
    pub fn measured(&self) -> Option<&MachineFile> {
        self.profiles.file().machine.as_ref()
    }

    /// Where runs are noted.
    pub fn rows(&mut self) -> Option<&mut KernelProfiles> {
        self.notes_rows.then_some(&mut self.profiles)
    }

    /// Hands what is known to a runtime.
    pub fn hand_to(&self, runtime: &mut dyn Runtime) {
        runtime.know_implementations(&self.known);
    }

    /// Keeps what a runtime has measured. What cannot be kept is noted.
    pub fn keep(&mut self, runtime: &mut dyn Runtime, notes: &mut Vec<String>) {
        let same = |one: &Comparison, other: &Comparison| {
            (&one.device, &one.codelet, &one.sizes, &one.library)
                == (&other.device, &other.codelet, &other.sizes, &other.library)
        };
        for measured in runtime.implementations() {
            if measured.serves.is_none() || self.known.iter().any(|known| same(known, &measured)) {
                continue;
            }
            let mut devices = runtime.devices().iter();
            if let Some(device) = devices.find(|device| device.name == measured.device) {
                self.profiles.record_comparison(device, &measured);
                self.known.push(measured);
            }
        }
        if self.saved.is_none_or(|saved| saved.elapsed() >= EVERY) {
            self.save(notes);
        }
    }

    fn save(&mut self, notes: &mut Vec<String>) {
        self.saved = Some(Instant::now());
        if self.saves
            && let Err(error) = self.profiles.save()
        {
            let note = not_kept(&error);
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
    }
}

impl From<KernelProfiles> for KeptTimes {
    fn from(profiles: KernelProfiles) -> Self {
        Self {
            profiles,
            known: Vec::new(),
            reads_rows: true,
            notes_rows: true,
            saves: true,
            saved: None,
            process: process::id(),
        }
    }
}

impl Drop for KeptTimes {
    fn drop(&mut self) {
        if self.process == process::id() {
            self.save(&mut Vec::new());
        }
    }
}

/// Whether a file has all of these devices that have a link, those of drivers for the CPU apart.
pub fn has_all(file: &MachineFile, devices: &[Device]) -> bool {
    let mut linked = devices.iter().filter(|device| is_linked(device));
    linked.all(|device| file.devices.iter().any(|spec| spec.name == device.name))
}

/// Whether a file has a way between two of these devices that have a link, if they are several.
fn has_ways(file: &MachineFile, devices: &[Device]) -> bool {
    let is_open = |name: &str| devices.iter().any(|of| is_linked(of) && of.name == name);
    let mut ways = file.peers.iter();
    devices.iter().filter(|device| is_linked(device)).count() < 2
        || ways.any(|way| is_open(&way.from) && is_open(&way.to))
}

/// Whether a device is a GPU with memory of its own.
pub fn is_linked(device: &Device) -> bool {
    device.kind != DeviceKind::Cpu && !device.shares_host_memory
}

fn not_kept(error: &KernelProfilesError) -> String {
    format!("the times of runs and kernels are not kept: {error}")
}
