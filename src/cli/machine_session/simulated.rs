//! Parses the devices and the faults that users name for a simulated machine.

use pdawl::machine::Device;
use pdawl::machine::host::Placement;
use pdawl::runtime::sim::{At, Fault, SimDevice};

use crate::failure::{Failure, wrong_devices};
use crate::fault::FaultSpec;

/// Reads a list of devices as the simulator knows them.
///
/// # Errors
/// An item that no simulated device can be.
pub fn sim_devices(list: &str) -> Result<Vec<SimDevice>, Failure> {
    list.split(',')
        .map(|item| sim_device(item.trim()))
        .collect()
}

/// Parses one device. The simulator ignores the placement of cores.
fn sim_device(item: &str) -> Result<SimDevice, Failure> {
    let (device, placement) = match item.split_once('@') {
        Some((device, placement)) => (device, Some(placement)),
        None => (item, None),
    };
    let (name, cores) = match device.split_once(':') {
        Some((name, cores)) => (name, Some(cores)),
        None => (device, None),
    };
    let wrong = |why: String| Err(wrong_devices(why));
    match (placement, cores) {
        (Some(_), _) if name != "host" => wrong(format!(
            "`{item}`: only the host's cores are placed, as in host:8@spread"
        )),
        (Some(word), _) if word.parse::<Placement>().is_err() => wrong(format!(
            "`{item}`: `{word}` is no placement of cores; write @compact or @spread"
        )),
        (_, None) if name == "host" => Ok(SimDevice::Host { cores: None }),
        (_, None) => Ok(SimDevice::Named(name.to_owned())),
        (_, Some(cores)) if name == "host" => match cores.parse() {
            Ok(cores) => Ok(SimDevice::Host { cores: Some(cores) }),
            Err(_) => wrong(format!("`{cores}` is not a number of cores")),
        },
        (_, Some(_)) => wrong(format!(
            "a simulated {name} cannot be divided; only the host's cores can, as in host:8"
        )),
    }
}

/// Faults by the index of their device, in a run of `steps` steps.
/// `steps_option` is the option that makes a run longer.
///
/// # Errors
/// A device that takes no part, and a step that the run does not reach.
pub fn faults(
    specs: &[FaultSpec],
    devices: &[Device],
    (steps, steps_option): (u32, &str),
) -> Result<Vec<Fault>, Failure> {
    let last = steps.saturating_sub(1);
    specs
        .iter()
        .map(|spec| {
            if let At::Phase(step) = spec.at
                && step > last
            {
                let device = &spec.device;
                return Err(Failure::usage(
                    format!("--fault: step {step}, of {device}, never comes: the last is {last}"),
                    format!("a step from 0 to {last}, or more {steps_option}"),
                ));
            }
            Ok(Fault {
                device: spec.index(devices)?,
                at: spec.at,
                what: spec.what,
            })
        })
        .collect()
}
