//! A machine that the user names: its file, and whether it is this machine.

use pdawl::machine::{self, Fingerprint, MachineFile, MachineStore};
use pdawl::runtime::select::fingerprint_beside;

use crate::args::MachineArgs;
use crate::failure::Failure;

/// A machine with a machine file.
pub struct NamedMachine {
    pub file: MachineFile,
    here: Fingerprint,
    /// Whether it is a node of a described cluster.
    is_node: bool,
}

impl NamedMachine {
    /// The machine of a name, or of a path of a machine file.
    ///
    /// # Errors
    /// When there is no such file, or it is wrong.
    pub fn find(name: &str) -> Result<Self, Failure> {
        Ok(Self::of_file(machine_file(name)?))
    }

    fn of_file(file: MachineFile) -> Self {
        Self {
            here: fingerprint_beside(file.fingerprint.as_deref()),
            file,
            is_node: false,
        }
    }

    /// This machine, if there is a machine file of it.
    pub fn here() -> Option<Self> {
        let found = MachineStore::of_user().of_fingerprint(fingerprint_beside);
        found.map(Self::of_file)
    }

    /// A node of a described cluster, which is simulated whatever machine this is.
    fn node(file: MachineFile) -> Self {
        Self {
            file,
            here: fingerprint_beside(None),
            is_node: true,
        }
    }

    /// The machine of `--machine`, if there is one. A simulated one has at most
    /// the memory of `--host-memory`.
    ///
    /// # Errors
    /// As [`Self::find`], and options for simulated machines with a real one.
    pub fn of(args: &MachineArgs) -> Result<Option<Self>, Failure> {
        let named = Self::of_losses(args)?;
        match named.as_ref().is_some_and(Self::is_simulated) || args.fault.is_empty() {
            true => Ok(named),
            false => Err(only_simulated("--fault is", "run is")),
        }
    }

    /// As [`Self::of`], for commands that may lose real devices on purpose.
    ///
    /// # Errors
    /// As [`Self::of`], but faults of real devices are none.
    pub fn of_losses(args: &MachineArgs) -> Result<Option<Self>, Failure> {
        let mut named = match &args.node {
            Some(file) => Some(Self::node((**file).clone())),
            None => args.machine.as_deref().map(Self::find).transpose()?,
        };
        match named.as_mut().filter(|named| named.is_simulated()) {
            Some(named) => {
                if let Some(limit) = args.host_memory {
                    named.file.host.memory = named.file.host.memory.min(limit.0);
                }
            }
            None if args.noise.is_some() => return Err(only_simulated("--noise is", "run is")),
            None => {}
        }
        Ok(named)
    }

    /// Whether it is another machine than this one, or a described node, and so is simulated.
    pub fn is_simulated(&self) -> bool {
        self.is_node || !self.here.is(self.file.fingerprint.as_deref())
    }

    /// The note in every report of a simulation.
    pub fn simulated_note(&self) -> String {
        if self.is_node {
            return format!(
                "every time is simulated: {} is a node of a described cluster",
                self.file.name
            );
        }
        format!(
            "every time is simulated: machine {} is not this one, which is {}",
            self.file.name, self.here
        )
    }
}

/// The failure of options for simulated machines on this machine.
pub fn only_simulated(options: &str, command: &str) -> Failure {
    Failure::usage(
        format!("{options} for simulated machines, and this {command} on real devices"),
        "--machine NAME of another machine; `pdawl machine list` shows them",
    )
}

/// The machine file of a name, or of a path: what has a separator or ends in
/// `.toml`.
///
/// # Errors
/// When there is no such file, or it is wrong.
pub fn machine_file(name: &str) -> Result<MachineFile, Failure> {
    machine::find(name).map_err(Failure::of)
}
