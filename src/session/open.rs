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

    /// A run begins: that of a simulation on a simulator of its own, at time 0.
    pub fn begin(&mut self) -> Result<(), Error> {
        if let Some((file, options)) = &self.simulation {
            self.runtime = Box::new(Sim::new(file, options.clone())?);
        }
        Ok(())
    }
}
