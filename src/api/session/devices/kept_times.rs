//! The times of codelets' implementations on this machine's GPUs, kept from run to run.

use crate::machine::{Device, RuntimeKind};
use crate::profile::kernels::{KernelProfiles, KernelProfilesError, path_of_user};
use crate::runtime::select::{Libraries, fingerprint, libraries};
use crate::runtime::{Comparison, Runtime};

/// What the user's file of this machine knows, and what runs have added.
pub struct KeptTimes {
    profiles: KernelProfiles,
    /// What was read or noted.
    known: Vec<Comparison>,
}

impl KeptTimes {
    /// Reads the file, if a device has several implementations of a codelet. A file that cannot
    /// be used is noted; runs then measure, and keep nothing.
    pub fn of(devices: &[Device], notes: &mut Vec<String>) -> Option<Self> {
        let is_cuda = |device: &&Device| device.runtime == RuntimeKind::Cuda;
        let mut devices = devices.iter().filter(is_cuda).peekable();
        devices.peek().filter(|_| libraries() == Libraries::Auto)?;
        let here = fingerprint();
        let path = path_of_user(&here).map_err(KernelProfilesError::from);
        match path.and_then(|path| KernelProfiles::open(path, &here)) {
            Ok(profiles) => Some(Self {
                known: devices
                    .flat_map(|device| profiles.comparisons(device))
                    .collect(),
                profiles,
            }),
            Err(error) => {
                notes.push(not_kept(&error));
                None
            }
        }
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
        if let Err(error) = self.profiles.save() {
            let note = not_kept(&error);
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
    }
}

fn not_kept(error: &KernelProfilesError) -> String {
    format!("the times of codelets' implementations are not kept: {error}")
}
