//! A machine that the user names: its file, and whether it is simulated.

use super::Error;
use crate::machine::{self, Fingerprint, MachineFile, MachineStore};
use crate::runtime::select::fingerprint_beside;

/// A machine with a machine file.
#[derive(Clone, Debug)]
pub struct NamedMachine {
    pub file: MachineFile,
    /// What the user has called it.
    pub called: String,
    here: Fingerprint,
    /// Why it is simulated even if it is this machine.
    simulated: Option<String>,
}

impl NamedMachine {
    /// The machine of a name, or of a path of a machine file. It is simulated unless it is this
    /// one.
    ///
    /// # Errors
    /// When there is no such file, or it is wrong.
    pub fn find(name: &str) -> Result<Self, Error> {
        let machine = Self::of_file(machine::find(name)?);
        Ok(Self {
            called: name.to_owned(),
            ..machine
        })
    }

    /// This machine, if there is a machine file of it.
    pub fn here() -> Option<Self> {
        let found = MachineStore::of_user().of_fingerprint(fingerprint_beside);
        found.map(Self::of_file)
    }

    fn of_file(file: MachineFile) -> Self {
        Self {
            here: fingerprint_beside(file.fingerprint.as_deref()),
            called: file.name.clone(),
            file,
            simulated: None,
        }
    }

    /// The same, simulated whatever machine this is, since it is this.
    pub fn simulated(self, why: String) -> Self {
        Self {
            simulated: Some(why),
            ..self
        }
    }

    /// A node of a described cluster or the machine of a recording, which is simulated whatever
    /// machine this is.
    pub fn node(file: MachineFile) -> Self {
        let why = format!("{} is described by a cluster or a recording", file.name);
        Self::of_file(file).simulated(why)
    }

    /// Whether it is another machine than this one, or is to be simulated anyway.
    pub fn is_simulated(&self) -> bool {
        self.simulated.is_some() || !self.here.is(self.file.fingerprint.as_deref())
    }

    /// The note in every report of a simulation.
    pub fn simulated_note(&self) -> String {
        let name = &self.file.name;
        match &self.simulated {
            Some(why) => format!("every time is simulated: {why}"),
            None => format!(
                "every time is simulated: machine {name} is not this one, which is {}",
                self.here
            ),
        }
    }
}
