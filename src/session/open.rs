//! Opens the devices of a session: those of this machine, or simulated ones.

use super::Error;
use crate::machine::{self, Host, MachineFile};
use crate::report::Machine;
use crate::runtime::Runtime;
use crate::runtime::select::{self, Selection};
use crate::runtime::sim::{Sim, SimOptions};

/// Open devices.
pub struct Devices {
    pub runtime: Box<dyn Runtime>,
    /// What was left out, and why.
    pub notes: Vec<String>,
    /// The machine and how it is simulated, if it is.
    simulation: Option<(Box<MachineFile>, SimOptions)>,
}

impl Devices {
    /// The devices of a list, or all of this machine.
    pub fn real(list: Option<&str>) -> Result<Self, Error> {
        let selection = list.map(str::parse::<Selection>).transpose()?;
        let (runtime, notes) = select::open(selection.as_ref(), false)?;
        Ok(Self {
            runtime,
            notes,
            simulation: None,
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
            simulation: Some((Box::new(file), options)),
        })
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
                let here = select::fingerprint();
                store.of_fingerprint(&here).map(Cow::Owned)
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
