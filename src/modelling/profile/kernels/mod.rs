//! Times of single kernels on each device, kept from run to run: the kernel profiles of
//! MultiCL (Aji, Peña, Balaji and Feng, Parallel Computing 58, 2016, section 5.3.1).
//!
//! "We cache the kernel profiles in memory as key-value pairs, where the key is the kernel
//! name and the value is its performance vector on the devices." Here, a [`KernelKey`] also
//! has the program, its build options, the launch's shape and the sizes of the arguments,
//! on which the time depends as well. The profile of an epoch is the sum over its kernels.
//!
//! [`KernelProfiles`] keeps [`KernelTimes`] by key and device, in a file of a machine. A
//! kernel whose times change is reported ([`Recorded::Changed`]), so that the queues that
//! launch it can be mapped again. The paper leaves this to the user: "the user can set a
//! program environment flag to denote the iterative scheduler frequency".
//!
//! The file also has the times of codelets' implementations, of which a GPU uses
//! the faster one, and those of whole runs by the devices that took part ([`RunRow`]).
//!
//! What a device can do is in the machine file
//! ([`DeviceRates`](pdawl_core::policy::auto_fit::DeviceRates)).

mod file;
mod runs;
mod times;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::PathBuf;

pub use file::{Agreeing, Division, FORMAT, KernelProfilesError, KernelsFile, path_of_user};
pub use runs::{KnownPart, PartRow, RunRecord, RunRow};
pub use times::{KernelKey, KernelTimes, Program, Recorded};

use self::times::CODELET;
use crate::machine::{Device, Fingerprint, MachineFile};
use crate::runtime::Comparison;

/// Kernels of a file at most. Beyond, those with the fewest records are left out.
const MOST: usize = 20_000;
/// Kinds of runs at most.
const MOST_RUNS: usize = 2000;

/// By key and device.
type Profiles = BTreeMap<String, BTreeMap<String, KernelTimes>>;

/// By key, and what else decides which bytes a launch writes.
type Divisions = BTreeMap<String, Division>;

/// The kernel profiles of a machine.
///
/// A device is named by the caller. A name that says model and driver lets devices of one
/// model share their profiles and keeps those of another driver apart.
#[derive(Debug)]
pub struct KernelProfiles {
    path: PathBuf,
    /// With the records of this process.
    kept: KernelsFile,
    /// What the file does not have yet.
    unsaved: Unsaved,
}

/// Records of this process.
#[derive(Debug, Default, PartialEq)]
struct Unsaved {
    /// Seconds by key and device.
    times: BTreeMap<String, BTreeMap<String, Vec<f64>>>,
    divisions: Divisions,
    /// By key: the seconds that launches have taken.
    spent: BTreeMap<String, f64>,
    machine: Option<MachineFile>,
    runs: Vec<(String, RunRecord)>,
}

impl KernelsFile {
    /// Adds records. Of too many kernels those with the fewest are left out.
    fn add(&mut self, records: &Unsaved) {
        for (key, devices) in &records.times {
            let kernel = self.kernels.entry(key.clone()).or_default();
            for (device, records) in devices {
                let times = kernel.entry(device.clone()).or_default();
                for seconds in records {
                    times.record(*seconds);
                }
            }
        }
        for (key, seconds) in &records.spent {
            *self.spent.entry(key.clone()).or_default() += seconds;
        }
        self.divisions.append(&mut records.divisions.clone());
        while self.divisions.len() > MOST {
            self.divisions.pop_first();
        }
        limit(&mut self.kernels, MOST, records_of);
        self.spent.retain(|key, _| self.kernels.contains_key(key));
        if records.machine.is_some() {
            self.machine.clone_from(&records.machine);
        }
        for (key, record) in &records.runs {
            self.add_run(key, record);
        }
    }
}

impl KernelsFile {
    /// Adds a run. Of too many kinds the one that was not measured for longest is left out.
    fn add_run(&mut self, key: &str, record: &RunRecord) {
        let latest = self.runs.values().map(|row| row.latest).max().unwrap_or(0);
        let row = self.runs.entry(key.to_owned()).or_default();
        row.latest = latest.saturating_add(1);
        row.record(record);
        limit(&mut self.runs, MOST_RUNS, |row| row.latest);
    }
}

impl KernelProfiles {
    /// Reads the profiles of the machine with this fingerprint. There are none if the file
    /// does not exist.
    ///
    /// # Errors
    /// When the file cannot be read, is damaged, or is of another version or machine.
    /// [`Self::empty`] goes on without it.
    pub fn open(
        path: impl Into<PathBuf>,
        fingerprint: &Fingerprint,
    ) -> Result<Self, KernelProfilesError> {
        let mut profiles = Self::empty(path, fingerprint);
        profiles.kept = file::read(&profiles.path, &profiles.kept.fingerprint)?;
        Ok(profiles)
    }

    /// No profiles. [`Self::save`] adds to those of the file, and fails while the file is
    /// one that [`Self::open`] refuses. With an empty path they are those of this process alone.
    pub fn empty(path: impl Into<PathBuf>, fingerprint: &Fingerprint) -> Self {
        Self {
            path: path.into(),
            kept: KernelsFile::empty(&fingerprint.to_string()),
            unsaved: Unsaved::default(),
        }
    }

    /// What is known of a kernel on a device.
    pub fn times(&self, key: &KernelKey, device: &str) -> Option<&KernelTimes> {
        self.kept.kernels.get(key.as_str())?.get(device)
    }

    /// Notes that a kernel took so many seconds on a device, and tells whether its times
    /// have changed. What is no time (NaN, negative, infinite) is ignored.
    pub fn record(&mut self, key: &KernelKey, device: &str, seconds: f64) -> Recorded {
        if !(seconds >= 0.0 && seconds.is_finite()) {
            return Recorded::Ignored;
        }
        let kernel = self
            .unsaved
            .times
            .entry(key.as_str().to_owned())
            .or_default();
        kernel.entry(device.to_owned()).or_default().push(seconds);
        let kernel = self
            .kept
            .kernels
            .entry(key.as_str().to_owned())
            .or_default();
        let times = kernel.entry(device.to_owned()).or_default();
        times.record(seconds)
    }

    /// What is known of dividing launches with this key: a [`KernelKey`], and what else
    /// decides which bytes they write.
    pub fn division(&self, key: &str) -> Option<&Division> {
        self.kept.divisions.get(key)
    }

    /// What is known of dividing launches with keys that begin so.
    pub fn divisions<'a>(&'a self, begin: &'a str) -> impl Iterator<Item = &'a Division> {
        let from = self.kept.divisions.range(begin.to_owned()..);
        from.take_while(move |(key, _)| key.starts_with(begin))
            .map(|(_, division)| division)
    }

    /// Notes what was found out about dividing launches.
    pub fn record_division(&mut self, key: &str, division: &Division) {
        let maps = [&mut self.kept.divisions, &mut self.unsaved.divisions];
        for map in maps {
            map.insert(key.to_owned(), division.clone());
        }
    }

    /// The seconds that all launches of a kernel have taken.
    pub fn spent(&self, key: &KernelKey) -> f64 {
        self.kept.spent.get(key.as_str()).copied().unwrap_or(0.0)
    }

    /// Notes that launches of a kernel have taken so many seconds.
    pub fn spend(&mut self, key: &KernelKey, seconds: f64) {
        if seconds > 0.0 && seconds.is_finite() {
            for map in [&mut self.kept.spent, &mut self.unsaved.spent] {
                *map.entry(key.as_str().to_owned()).or_default() += seconds;
            }
        }
    }

    /// What is known of runs of this kind.
    pub fn run(&self, key: &str) -> Option<&RunRow> {
        self.kept.runs.get(key)
    }

    /// All that is known, as the file has it.
    pub fn file(&self) -> &KernelsFile {
        &self.kept
    }

    /// Notes what a first run has measured of the machine. Devices that it did not have stay as
    /// they were.
    pub fn record_machine(&mut self, mut machine: MachineFile) {
        if let Some(mut known) = self.kept.machine.take() {
            let is_new = |name: &str| machine.devices.iter().any(|device| device.name == name);
            known.devices.retain(|of| !is_new(&of.name));
            (known.peers).retain(|way| !is_new(&way.from) || !is_new(&way.to));
            machine.devices.append(&mut known.devices);
            machine.peers.append(&mut known.peers);
        }
        self.kept.machine = Some(machine.clone());
        self.unsaved.machine = Some(machine);
    }

    /// Notes a run of this kind. What took no possible time is ignored.
    pub fn record_run(&mut self, key: &str, record: RunRecord) {
        if record.seconds > 0.0 && record.seconds.is_finite() {
            self.kept.add_run(key, &record);
            if !self.path.as_os_str().is_empty() {
                self.unsaved.runs.push((key.to_owned(), record));
            }
        }
    }

    /// Adds the records of this process to the file, and takes over those that other
    /// processes have added since. A lock beside the file keeps processes apart; readers
    /// see the file before or after. Nothing is written if there are no new records.
    ///
    /// # Errors
    /// As [`Self::open`], and when the file or the lock cannot be written. The records are
    /// kept for the next attempt.
    pub fn save(&mut self) -> Result<(), KernelProfilesError> {
        if self.unsaved == Unsaved::default() {
            return Ok(());
        }
        let _lock = file::lock(&self.path)?;
        let mut kept = file::read(&self.path, &self.kept.fingerprint)?;
        kept.add(&self.unsaved);
        file::write(&self.path, &kept)?;
        self.kept = kept;
        self.unsaved = Unsaved::default();
        Ok(())
    }
}

/// Leaves out the entries with the least numbers.
fn limit<T>(entries: &mut BTreeMap<String, T>, most: usize, number: impl Fn(&T) -> u64) {
    if entries.len() <= most {
        return;
    }
    let mut counts: Vec<(u64, String)> = (entries.iter())
        .map(|(key, entry)| (number(entry), key.clone()))
        .collect();
    counts.sort();
    for (_, key) in &counts[..counts.len() - most] {
        entries.remove(key);
    }
}

fn records_of(kernel: &BTreeMap<String, KernelTimes>) -> u64 {
    kernel.values().map(KernelTimes::count).sum()
}

/// The implementation that is ours, in keys; a library has its name and version.
const OWN: &str = "own";

/// A device as files name it: devices of one model share their times, and another driver has
/// its own.
fn name(device: &Device) -> String {
    format!("{} ({})", device.model, device.driver)
}

impl KernelProfiles {
    /// Notes what was measured of a codelet's implementations, if both were.
    pub fn record_comparison(&mut self, device: &Device, comparison: &Comparison) {
        let (Some(library), Some(own_seconds), Some(library_seconds)) = (
            &comparison.library,
            comparison.own_seconds,
            comparison.library_seconds,
        ) else {
            return;
        };
        for (implementation, seconds) in [(OWN, own_seconds), (library, library_seconds)] {
            let (codelet, sizes) = (&comparison.codelet, &comparison.sizes);
            let key = KernelKey::of_codelet(codelet, sizes, implementation);
            self.record(&key, &name(device), seconds);
        }
    }

    /// What is known of codelets' implementations on a device.
    pub fn comparisons(&self, device: &Device) -> Vec<Comparison> {
        let name = name(device);
        // By codelet and sizes: the seconds by implementation.
        let mut known: BTreeMap<(&str, Vec<u64>), BTreeMap<&str, f64>> = BTreeMap::new();
        let of_codelets = (self.kept.kernels.range(CODELET.to_owned()..))
            .take_while(|(key, _)| key.starts_with(CODELET));
        for (key, devices) in of_codelets {
            if let (Some((codelet, sizes, implementation)), Some(times)) =
                (KernelKey::codelet_of(key), devices.get(&name))
            {
                let of_both = known.entry((codelet, sizes)).or_default();
                of_both.insert(implementation, times.median());
            }
        }
        let mut comparisons = Vec::new();
        for ((codelet, sizes), of_both) in known {
            let Some(own) = of_both.get(OWN) else {
                continue;
            };
            let libraries = of_both
                .iter()
                .filter(|(implementation, _)| **implementation != OWN);
            comparisons.extend(libraries.map(|(library, seconds)| Comparison {
                device: device.name.clone(),
                codelet: codelet.to_owned(),
                sizes: sizes.clone(),
                library: Some((*library).to_owned()),
                own_seconds: Some(*own),
                library_seconds: Some(*seconds),
                serves: None,
                refusal: None,
            }));
        }
        comparisons
    }
}
