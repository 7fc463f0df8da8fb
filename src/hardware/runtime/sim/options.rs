//! The options of a simulation: which devices of the machine take part, noise,
//! data, and faults.

use std::ops::RangeInclusive;

use super::RuntimeError;
use super::device_model::pool_name;
use crate::machine::MachineFile;
use crate::machine::host::Placement;
use crate::runtime::select::SelectionError;

/// A device of a simulated run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SimDevice {
    /// A pool of this many of the host's cores, or of all of them.
    Host { cores: Option<u32> },
    /// The device of this name in the machine file.
    Named(String),
}

impl SimDevice {
    /// The devices that a list such as `host:8,gpu0` names. The simulator ignores the placement
    /// of cores.
    ///
    /// # Errors
    /// An item that no simulated device can be.
    pub fn list(list: &str) -> Result<Vec<Self>, SelectionError> {
        list.split(',').map(|item| Self::of(item.trim())).collect()
    }

    fn of(item: &str) -> Result<Self, SelectionError> {
        let (device, placement) = match item.split_once('@') {
            Some((device, placement)) => (device, Some(placement)),
            None => (item, None),
        };
        let (name, cores) = match device.split_once(':') {
            Some((name, cores)) => (name, Some(cores)),
            None => (device, None),
        };
        let wrong = |why: String| Err(SelectionError::Simulated(why));
        match (placement, cores) {
            (Some(_), _) if name != "host" => wrong(format!(
                "`{item}`: only the host's cores are placed, as in host:8@spread"
            )),
            (Some(word), _) if word.parse::<Placement>().is_err() => wrong(format!(
                "`{item}`: `{word}` is no placement of cores; write @compact or @spread"
            )),
            (_, None) if name == "host" => Ok(Self::Host { cores: None }),
            (_, None) => Ok(Self::Named(name.to_owned())),
            (_, Some(cores)) if name == "host" => match cores.parse() {
                Ok(cores) => Ok(Self::Host { cores: Some(cores) }),
                Err(_) => wrong(format!("`{cores}` is not a number of cores")),
            },
            (_, Some(_)) => wrong(format!(
                "a simulated {name} cannot be divided; only the host's cores can, as in host:8"
            )),
        }
    }
}

/// The factors by which a device can be slowed. Beyond them the virtual time of a command
/// would exceed what [`crate::time::Nanos`] can hold.
pub const SLOWDOWNS: RangeInclusive<f64> = 1e-3..=1e6;

/// The seconds of virtual time at which a fault can happen.
pub const FAULT_SECONDS: RangeInclusive<f64> = 0.0..=1e9;

/// When a fault happens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum At {
    /// Seconds of virtual time after the first phase has begun.
    Seconds(f64),
    /// With the first command of this phase; see [`crate::runtime::Notice::PhaseBegins`].
    Phase(u32),
}

/// What a fault does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FaultEffect {
    /// The device is gone, with the contents of its memory: its commands end as
    /// `DeviceLost`, and so does every later one.
    Lost,
    /// Its compute, its memory, its link and the direct links from it are this many
    /// times slower than described.
    Slowed(f64),
    /// The device is back, at full speed and with all its cores; its memory is
    /// undefined if it was lost.
    Restored,
    /// A host pool keeps only this many of its cores.
    Cores(u32),
    /// Its next commands, this many, fail when they would begin.
    FailNext(u32),
}

/// A scheduled fault.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fault {
    /// Index of the device in [`crate::runtime::Devices::devices`].
    pub device: usize,
    pub at: At,
    pub what: FaultEffect,
}

/// The options of a simulation. The default is every device of the machine, the
/// machine file's noise, no data and no faults.
#[derive(Clone, Debug, Default)]
pub struct SimOptions {
    /// Equal seeds give equal runs.
    pub seed: u64,
    /// Relative standard deviation of a command's time; `None` leaves the
    /// machine file's.
    pub noise: Option<f64>,
    /// Whether memory is real and commands have their effect when they end.
    /// Without, nothing is allocated.
    pub data: bool,
    /// Whether devices with memory of their own run command graphs, as CUDA's do; their
    /// costs are those of their launches in order.
    pub graphs: bool,
    pub faults: Vec<Fault>,
    /// The devices in their order; `None` for one pool of all cores and every
    /// other device of the machine.
    pub devices: Option<Vec<SimDevice>>,
}

impl SimOptions {
    /// The devices asked for, each pool with its number of cores.
    pub(super) fn selection(&self, machine: &MachineFile) -> Result<Vec<Selected>, RuntimeError> {
        let all = || {
            let named = machine.devices.iter().map(|d| d.name.clone());
            std::iter::once(SimDevice::Host { cores: None })
                .chain(named.map(SimDevice::Named))
                .collect()
        };
        let asked: Vec<SimDevice> = self.devices.clone().unwrap_or_else(all);
        let mut selected = Vec::new();
        let mut cores_left = machine.host.cores;
        for device in asked {
            let next = match device {
                SimDevice::Host { cores } => {
                    let cores = cores.unwrap_or(machine.host.cores);
                    cores_left = cores_left.checked_sub(cores).filter(|_| cores > 0).ok_or_else(|| {
                        refuse(format!(
                            "machine {}: a pool of {cores} cores is not possible: {cores_left} of its {} \
                             cores are not yet taken; a core can be in one pool only",
                            machine.name, machine.host.cores
                        ))
                    })?;
                    Selected::Pool(cores)
                }
                SimDevice::Named(name) => {
                    let index = machine.devices.iter().position(|d| d.name == name);
                    let index = index.ok_or_else(|| {
                        let known: Vec<&str> =
                            machine.devices.iter().map(|d| d.name.as_str()).collect();
                        refuse(format!(
                            "machine {} has no device `{name}`; it has host, {}",
                            machine.name,
                            known.join(", ")
                        ))
                    })?;
                    if selected.contains(&Selected::Device(index)) {
                        return Err(refuse(format!("device `{name}` is named twice")));
                    }
                    Selected::Device(index)
                }
            };
            selected.push(next);
        }
        if selected.is_empty() {
            return Err(refuse("no device is selected; name at least one".into()));
        }
        Ok(selected)
    }

    /// Refuses impossible noise and faults.
    pub(super) fn check(
        &self,
        machine: &MachineFile,
        devices: &[Selected],
    ) -> Result<(), RuntimeError> {
        if let Some(noise) = self.noise.filter(|n| !(0.0..=1.0).contains(n)) {
            return Err(refuse(format!(
                "noise is {noise}; it is a relative standard deviation from 0 to 1"
            )));
        }
        for fault in &self.faults {
            let Some(device) = devices.get(fault.device) else {
                return Err(refuse(format!(
                    "a fault is for device {}, but there are {}; they are counted from 0",
                    fault.device,
                    devices.len()
                )));
            };
            if let Some(why) = impossible(fault, *device) {
                let name = match device {
                    Selected::Pool(cores) => pool_name(machine, *cores),
                    Selected::Device(index) => machine.devices[*index].name.clone(),
                };
                return Err(refuse(format!("{name} cannot be {why}")));
            }
        }
        Ok(())
    }
}

/// Why a fault cannot happen to a device, if so, and what can.
fn impossible(fault: &Fault, device: Selected) -> Option<String> {
    match (fault.at, fault.what, device) {
        (At::Seconds(s), ..) if !FAULT_SECONDS.contains(&s) => {
            Some(format!("struck at {s} s; times are from 0 to 1e9 s"))
        }
        (_, FaultEffect::Slowed(factor), _) if !SLOWDOWNS.contains(&factor) => Some(format!(
            "slowed by a factor of {factor}; factors are from 0.001 to 1e6, 2 for half the speed"
        )),
        (_, FaultEffect::Cores(cores), Selected::Pool(all)) if !(1..=all).contains(&cores) => Some(
            format!("left {cores} cores; it has {all}, so leave it 1 to {all}"),
        ),
        (_, FaultEffect::Cores(cores), Selected::Device(_)) => Some(format!(
            "left {cores} cores, since it is no pool of host cores; any device can be slowed"
        )),
        _ => None,
    }
}

/// A device asked for: a pool of so many cores, or the machine's device of
/// this index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selected {
    Pool(u32),
    Device(usize),
}

fn refuse(why: String) -> RuntimeError {
    RuntimeError::Selection(why)
}
