//! Opens the devices of a command as its options say, and tells why a session fails.

use pdawl::engine::corun::CorunError;
use pdawl::machine::{self, MachineFile};
use pdawl::session::{self, DeviceOptions, FaultSpec, NamedMachine, OpenDevices, UnfitFault};

use super::args::MachineArgs;
use super::cluster::of_run;
use super::failure::{Failure, LOST, OTHER_STRATEGY, refused, wrong_devices};

/// What a command needs of its devices.
#[derive(Clone, Copy, Debug)]
pub struct Needs {
    /// Double precision.
    pub fp64: bool,
    /// Results, if the machine is simulated.
    pub data: bool,
    /// Of the simulation's noise.
    pub seed: u64,
}

/// Which devices are opened: those of `named` if there is such a machine.
pub fn options(args: &MachineArgs, named: Option<NamedMachine>, needs: Needs) -> DeviceOptions {
    DeviceOptions {
        machine: named,
        list: args.devices.clone(),
        fp64: needs.fp64,
        data: needs.data,
        seed: needs.seed,
        noise: args.noise,
    }
}

/// Opens them.
///
/// # Errors
/// When there is no such device, or it cannot be opened.
pub fn open(
    args: &MachineArgs,
    named: Option<NamedMachine>,
    needs: Needs,
) -> Result<OpenDevices, Failure> {
    Ok(OpenDevices::open(options(args, named, needs))?)
}

/// Injects faults into the runs to come, which have so many steps.
///
/// # Errors
/// A device that takes no part, and a step that never comes.
pub fn inject(devices: &mut OpenDevices, faults: &[FaultSpec], steps: u32) -> Result<(), Failure> {
    let of = devices.machine.devices.clone();
    let injected = devices.inject(faults, &of, steps);
    injected.map_err(|unfit| unfit_fault(&unfit))
}

/// The failure of a fault that cannot be.
pub fn unfit_fault(unfit: &UnfitFault) -> Failure {
    let remedy = match unfit {
        UnfitFault::NoDevice { devices, .. } => format!("one of {}", devices.join(", ")),
        UnfitFault::Never { last, .. } => format!("a step from 0 to {last}, or more steps"),
        UnfitFault::Real { device } => {
            format!("{device}:lost@0.5s, or --machine NAME of another machine")
        }
    };
    Failure::usage(format!("--fault: {unfit}"), remedy)
}

/// The machine of `--machine`, if there is one. A simulated one has at most
/// the memory of `--host-memory`.
///
/// # Errors
/// When there is no such machine.
pub fn named(args: &MachineArgs) -> Result<Option<NamedMachine>, Failure> {
    let mut named = match (&args.node, args.machine.as_deref()) {
        (Some(file), _) => Some(NamedMachine::node((**file).clone())),
        (None, name) => name.map(NamedMachine::find).transpose()?,
    };
    if let Some(named) = named.as_mut().filter(|named| named.is_simulated())
        && let Some(limit) = args.host_memory
    {
        named.file.host.memory = named.file.host.memory.min(limit.0);
    }
    Ok(named)
}

/// The machine file of a name, or of a path: what has a separator or ends in
/// `.toml`.
///
/// # Errors
/// When there is no such file, or it is wrong.
pub fn machine_file(name: &str) -> Result<MachineFile, Failure> {
    machine::find(name).map_err(Failure::of)
}

impl From<session::Error> for Failure {
    fn from(error: session::Error) -> Self {
        match error {
            session::Error::Devices(why) => wrong_devices(why),
            session::Error::Runtime(error) | session::Error::Corun(CorunError::Runtime(error)) => {
                refused(error)
            }
            session::Error::Corun(CorunError::Interrupted) | session::Error::Stopped => {
                Self::Interrupted
            }
            session::Error::Cluster(error) => of_run(error, 0),
            error @ session::Error::Tiles { .. } => Self::usage(error, "a larger --tile"),
            session::Error::Corun(error @ CorunError::AllLost { .. }) => Self::failed(error, LOST),
            session::Error::Fault(unfit) => unfit_fault(&unfit),
            error @ (session::Error::Strategy(_) | session::Error::LeftOut(..)) => {
                Self::usage(error, OTHER_STRATEGY)
            }
            other => Self::of(other),
        }
    }
}
