//! Opens the devices of a command as its options say, and tells why a session fails.

use pdawl_api::engine::corun::CorunError;
use pdawl_api::engine::graph::GraphRunError;
use pdawl_api::machine::{self, MachineFile};
use pdawl_api::policy::MapError;
use pdawl_api::session::{self, DeviceOptions, NamedMachine, UnfitFault};

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
        kept: None,
        fresh: args.fresh,
        arrays_on: None,
    }
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
            session::Error::KernelDevices(why) => wrong_devices(why),
            session::Error::Runtime(error) | session::Error::Corun(CorunError::Runtime(error)) => {
                refused(error)
            }
            session::Error::Corun(CorunError::Interrupted) | session::Error::Stopped => {
                Self::Interrupted
            }
            session::Error::Cluster(error) => of_run(error, 0),
            error @ session::Error::Tiles { .. } => Self::usage(error, "a larger --tile"),
            session::Error::GraphRun(error) => of_graph(error),
            session::Error::Map(error) => of_graph(error.into()),
            error @ session::Error::Queues { of_file: false, .. } => {
                Self::usage(error, "gpu, cpu, or one of these")
            }
            error @ session::Error::Queues { .. } => {
                Self::failed(error, "gpu, cpu, r1 for the first device, or one of these")
            }
            session::Error::NoKernelDevice { what, remedy } => Self::failed(what, remedy),
            session::Error::TaskMemory {
                task,
                needed,
                device,
                has,
            } => Self::failed(
                format!(
                    "task `{task}` needs {needed} of the memory of {device} at once, which has {has}"
                ),
                "a greater --gpu-memory, a smaller --tile, or devices with more memory",
            ),
            error @ session::Error::TooMany(_) => {
                Self::failed(error, "a greater --tile, or a smaller size")
            }
            session::Error::Corun(error @ CorunError::AllLost { .. }) => Self::failed(error, LOST),
            session::Error::Fault(unfit) => unfit_fault(&unfit),
            error @ (session::Error::Strategy(_) | session::Error::LeftOut(..)) => {
                Self::usage(error, OTHER_STRATEGY)
            }
            other => Self::of(other),
        }
    }
}

/// The failure of an error of a graph's run.
pub fn of_graph(error: GraphRunError) -> Failure {
    match error {
        GraphRunError::Runtime(error) => refused(error),
        error @ GraphRunError::Map(MapError::Nowhere { .. }) => Failure::usage(
            error,
            "other --devices; `pdawl devices` shows which are there",
        ),
        error @ GraphRunError::Map(MapError::Wide { .. }) => {
            Failure::usage(format!("--map {error}"), "as many at most")
        }
        error @ GraphRunError::Lost { .. } => Failure::failed(error, LOST),
        other => Failure::of(other),
    }
}
