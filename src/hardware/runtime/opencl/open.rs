//! From a selection to open devices and their contexts.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use cl3::context::{CL_CONTEXT_PLATFORM, create_context};
use cl3::types::cl_device_id;
use opencl3::device::Device as ClDevice;

use super::device::OpenDevice;
use super::discover::{Handles, find};
use super::failure::call_error;
use super::handle::Context;
use super::partition::{Division, divide, partition};
use super::program::Programs;
use super::{FoundDevice, OWN, Selected};
use crate::machine::Device;
use crate::runtime::RuntimeError;
use crate::runtime::device_clock::Clock;

/// A selected device, or the part of it that was selected.
struct Chosen {
    info: Device,
    id: ClDevice,
    division: Option<Arc<Division>>,
    platform: usize,
}

/// Opens what was selected, in that order, with one context for each platform.
pub(super) fn open_devices(
    selection: &[Selected],
    epoch: Instant,
) -> Result<(Vec<OpenDevice>, Vec<Programs>), RuntimeError> {
    let (found, complaints) = find();
    if found.is_empty() && !selection.is_empty() {
        return Err(RuntimeError::NoOpenCl(complaints.join("; ")));
    }
    let chosen = choose(selection, &found)?;
    let mut by_platform: BTreeMap<usize, Vec<cl_device_id>> = BTreeMap::new();
    for device in &chosen {
        by_platform
            .entry(device.platform)
            .or_default()
            .push(device.id.id());
    }
    let mut contexts = Vec::new();
    let mut context_of = BTreeMap::new();
    for (platform, ids) in &by_platform {
        context_of.insert(*platform, contexts.len());
        contexts.push(new_context(*platform, ids, &found)?);
    }
    let devices = chosen
        .into_iter()
        .map(|device| {
            let context = context_of[&device.platform];
            OpenDevice::open(
                device.info,
                device.id,
                device.division,
                (context, &contexts[context]),
                Clock::new(epoch),
            )
        })
        .collect::<Result<Vec<OpenDevice>, _>>()?;
    let programs = contexts.into_iter().enumerate().map(|(index, context)| {
        let own = devices.iter().filter(|device| device.context == index);
        let able = own.map(|device| (device.id.id(), device.info.fp64));
        Programs::new(context, able.collect())
    });
    let programs = programs.collect();
    Ok((devices, programs))
}

/// Finds and divides the selected devices; in the order of the selection.
fn choose(
    selection: &[Selected],
    found: &[(FoundDevice, Handles)],
) -> Result<Vec<Chosen>, RuntimeError> {
    let mut by_root: BTreeMap<(usize, usize), Vec<usize>> = BTreeMap::new();
    for (position, selected) in selection.iter().enumerate() {
        by_root
            .entry((selected.platform, selected.device))
            .or_default()
            .push(position);
    }
    let mut chosen: BTreeMap<usize, Chosen> = BTreeMap::new();
    for ((platform, device), positions) in by_root {
        let (root, handles) = found
            .iter()
            .find(|(f, _)| (f.platform, f.device) == (platform, device))
            .ok_or_else(|| no_such_device(platform, device, found))?;
        let wanted: Vec<Selected> = positions.iter().map(|p| selection[*p]).collect();
        let units: Vec<_> = wanted.iter().map(|w| w.units).collect();
        let partition = partition(&root.info, &units)?;
        let division = divide(&root.info.name, handles.device, &partition)?;
        for (nth, position) in positions.into_iter().enumerate() {
            let (mut info, id) = match &division {
                None => (root.info.clone(), handles.device),
                Some(division) => {
                    let id = division.part(nth).ok_or_else(|| {
                        RuntimeError::Selection(format!(
                            "{}: the driver made fewer sub-devices than it was asked for",
                            root.info.name
                        ))
                    })?;
                    (part_info(&root.info, wanted[nth], id), id)
                }
            };
            if wanted[nth].own_memory {
                info.shares_host_memory = false;
                info.name.push_str(OWN);
            }
            // Equal parts are numbered from the second on: names are unique.
            let before = wanted[..nth].iter().filter(|w| **w == wanted[nth]).count();
            if before > 0 {
                info.name.push_str(&format!("#{}", before + 1));
            }
            chosen.insert(
                position,
                Chosen {
                    info,
                    id,
                    division: division.clone(),
                    platform,
                },
            );
        }
    }
    Ok(chosen.into_values().collect())
}

/// The properties of a part of a device.
fn part_info(root: &Device, wanted: Selected, id: ClDevice) -> Device {
    let units = wanted.units.unwrap_or(root.compute_units);
    Device {
        name: format!("{}:{units}", root.name),
        compute_units: id.max_compute_units().unwrap_or(units),
        ..root.clone()
    }
}

pub(super) fn new_context(
    platform: usize,
    ids: &[cl_device_id],
    found: &[(FoundDevice, Handles)],
) -> Result<Context, RuntimeError> {
    let name = format!("opencl{platform}");
    let handle = found
        .iter()
        .find(|(f, _)| f.platform == platform)
        .map(|(_, handles)| handles.platform)
        .ok_or_else(|| no_such_device(platform, 0, found))?;
    let properties = [CL_CONTEXT_PLATFORM, handle.id() as isize, 0];
    create_context(ids, properties.as_ptr(), None, std::ptr::null_mut())
        .map(Context::new)
        .map_err(|code| call_error(&name, "clCreateContext", code))
}

fn no_such_device(
    platform: usize,
    device: usize,
    found: &[(FoundDevice, Handles)],
) -> RuntimeError {
    let names: Vec<&str> = found.iter().map(|(f, _)| f.info.name.as_str()).collect();
    RuntimeError::Selection(format!(
        "there is no device opencl{platform}.{device}; OpenCL has {}",
        names.join(", ")
    ))
}
