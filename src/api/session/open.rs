//! Opens the devices of a session: those of this machine, or simulated ones.

use std::process;
use std::time::Instant;

use crossbeam_channel::unbounded;

use super::Error;
use crate::machine::{self, Device, Host, MachineFile, RuntimeKind};
use crate::report::Machine;
use crate::runtime::Runtime;
use crate::runtime::select::{self, Selection};
use crate::runtime::sim::{Sim, SimOptions};
use crate::runtime::union::Union;

/// Open devices.
pub struct Devices {
    pub runtime: Box<dyn Runtime>,
    /// What was left out, and why.
    pub notes: Vec<String>,
    /// Whether the user has named them.
    is_listed: bool,
    /// The machine and how it is simulated, if it is.
    simulation: Option<(Box<MachineFile>, SimOptions)>,
    /// The process that has opened them, and has their threads.
    process: u32,
}

impl Drop for Devices {
    fn drop(&mut self) {
        if self.check().is_err() {
            // A forked process has no threads to wait for, and its drivers do not work.
            let nothing = Union::new(Vec::new(), unbounded().1, Instant::now());
            std::mem::forget(std::mem::replace(&mut self.runtime, Box::new(nothing)));
        }
    }
}

impl Devices {
    /// The devices of a list, or all of this machine.
    pub fn real(list: Option<&str>) -> Result<Self, Error> {
        let selection = list.map(str::parse::<Selection>).transpose()?;
        let (runtime, notes) = select::open(selection.as_ref(), false)?;
        Ok(Self {
            runtime,
            notes,
            is_listed: list.is_some(),
            simulation: None,
            process: process::id(),
        })
    }

    /// Those of a machine file, simulated, with data.
    pub fn simulated(machine: &str) -> Result<Self, Error> {
        let file = machine::find(machine)?;
        let options = SimOptions {
            data: true,
            ..SimOptions::default()
        };
        Ok(Self {
            runtime: Box::new(Sim::new(&file, options.clone())?),
            notes: Vec::new(),
            is_listed: true,
            simulation: Some((Box::new(file), options)),
            process: process::id(),
        })
    }

    /// Refuses a process that was forked from the one that has opened them.
    pub fn check(&self) -> Result<(), Error> {
        match self.process == process::id() {
            true => Ok(()),
            false => Err(Error::Forked {
                opened: self.process,
            }),
        }
    }

    /// The devices that run kernels in OpenCL C: of a list those that do, otherwise all that
    /// drivers offer.
    pub fn of_kernels(&self) -> Result<Self, Error> {
        let names: Vec<String> = match self.is_listed {
            true => self
                .runtime
                .devices()
                .iter()
                .filter(runs_kernels)
                .map(name)
                .collect(),
            false => select::driver_devices()?
                .iter()
                .filter(runs_kernels)
                .map(name)
                .collect(),
        };
        match names.is_empty() {
            true => Err(Error::Arguments(
                "no device of the session runs kernels in OpenCL C; name one (`pdawl devices` \
                 shows them), or install PoCL for the CPU"
                    .to_owned(),
            )),
            false => Self::real(Some(&names.join(","))),
        }
    }

    /// Whether all devices run kernels in OpenCL C, or are simulated.
    pub fn are_of_kernels(&self) -> bool {
        self.is_simulated()
            || self
                .runtime
                .devices()
                .iter()
                .all(|device| runs_kernels(&device))
    }

    /// The machine, for reports.
    pub fn machine(&self) -> Machine {
        let devices = self.runtime.devices().to_vec();
        match &self.simulation {
            Some((file, _)) => Machine::simulated(file, devices),
            None => Machine::real("this machine".to_owned(), Host::detect(), devices),
        }
    }

    pub fn is_simulated(&self) -> bool {
        self.simulation.is_some()
    }

    /// The file of the simulated machine, or that of this one if there is one.
    #[cfg(feature = "models")]
    pub fn file(&self) -> Option<std::borrow::Cow<'_, MachineFile>> {
        use std::borrow::Cow;
        match &self.simulation {
            Some((file, _)) => Some(Cow::Borrowed(file)),
            None => {
                let store = machine::MachineStore::of_user();
                let found = store.of_fingerprint(select::fingerprint_beside);
                found.map(Cow::Owned)
            }
        }
    }

    /// A run begins: that of a simulation on a simulator of its own, at time 0, with data unless
    /// nothing is computed.
    pub fn begin(&mut self, data: bool) -> Result<(), Error> {
        if let Some((file, options)) = &self.simulation {
            let options = SimOptions {
                data,
                ..options.clone()
            };
            self.runtime = Box::new(Sim::new(file, options)?);
        }
        Ok(())
    }
}

/// Whether a device runs kernels in OpenCL C.
fn runs_kernels(device: &&Device) -> bool {
    device.runtime != RuntimeKind::Host
}

fn name(device: &Device) -> String {
    device.name.clone()
}
