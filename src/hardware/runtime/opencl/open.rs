//! From a selection to open devices, divided into sub-devices, and their contexts.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use cl3::context::{CL_CONTEXT_PLATFORM, create_context};
use cl3::types::cl_device_id;
use opencl3::device::{
    CL_DEVICE_PARTITION_BY_COUNTS, CL_DEVICE_PARTITION_BY_COUNTS_LIST_END,
    CL_DEVICE_PARTITION_EQUALLY, Device as ClDevice,
};

use super::device::OpenDevice;
use super::discover::{Handles, find};
use super::failure::call_error;
use super::handle::Context;
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

/// How to divide one device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Partition {
    /// Not at all.
    Whole,
    /// Into parts of these compute units.
    Counts(Vec<u32>),
    /// Into as many parts as there are of this many compute units.
    Equally(u32),
}

/// Decides how to divide `root` so that every selection of it gets compute
/// units of its own. `wanted` holds one entry a selection.
fn partition(root: &Device, wanted: &[Option<u32>]) -> Result<Partition, RuntimeError> {
    let refuse = |why: String| Err(RuntimeError::Selection(format!("{}: {why}", root.name)));
    let total = root.compute_units;
    if let [only] = wanted
        && only.is_none_or(|units| units == total)
    {
        return Ok(Partition::Whole);
    }
    let Some(counts) = wanted.iter().copied().collect::<Option<Vec<u32>>>() else {
        return refuse(format!(
            "it is named {} times, once as a whole, so that compute units would be given out \
             twice; give every one a number of units, as in `{}:N`",
            wanted.len(),
            root.name
        ));
    };
    let sum: u64 = counts.iter().map(|n| u64::from(*n)).sum();
    if counts.contains(&0) || sum > u64::from(total) {
        return refuse(format!(
            "sub-devices of {counts:?} compute units were asked for; each needs at least 1, \
             and together they may have {total}"
        ));
    }
    let units = counts[0];
    if root.sub_devices.by_counts {
        Ok(Partition::Counts(counts))
    } else if !root.sub_devices.equally {
        refuse("it cannot be divided into sub-devices; take it whole".to_owned())
    } else if counts.iter().all(|n| *n == units) && total.is_multiple_of(units) {
        Ok(Partition::Equally(units))
    } else {
        refuse(format!(
            "it can only be divided equally; {counts:?} is not {total} compute units divided \
             by a whole number"
        ))
    }
}

/// The sub-devices of one partition of a device, in its order. The process keeps them:
/// PoCL's queues hold no reference to their device, and its threads read it once more
/// after a command's last callback, so a sub-device that is released after its queue may be
/// read when it is freed.
#[derive(Debug)]
pub(super) struct Division {
    /// The divided device, as an address.
    root: usize,
    partition: Partition,
    /// The sub-devices, as addresses.
    parts: Vec<usize>,
}

impl Division {
    /// The `nth` sub-device.
    pub(super) fn part(&self, nth: usize) -> Option<ClDevice> {
        (self.parts.get(nth)).map(|part| ClDevice::new(*part as cl_device_id))
    }
}

/// Divides a device, or takes an equal division that nobody holds any more; none for a whole
/// device. The division is in use as long as the caller holds it.
fn divide(
    name: &str,
    root: ClDevice,
    partition: &Partition,
) -> Result<Option<Arc<Division>>, RuntimeError> {
    static KEPT: Mutex<Vec<Arc<Division>>> = Mutex::new(Vec::new());
    let properties = match partition {
        Partition::Whole => return Ok(None),
        Partition::Equally(units) => vec![CL_DEVICE_PARTITION_EQUALLY, *units as isize, 0],
        Partition::Counts(counts) => {
            let mut list = vec![CL_DEVICE_PARTITION_BY_COUNTS];
            list.extend(counts.iter().map(|n| *n as isize));
            list.extend([CL_DEVICE_PARTITION_BY_COUNTS_LIST_END, 0]);
            list
        }
    };
    let key = root.id() as usize;
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    let free = kept.iter().find(|division| {
        division.root == key && division.partition == *partition && Arc::strong_count(division) == 1
    });
    if let Some(division) = free {
        return Ok(Some(Arc::clone(division)));
    }
    let parts = cl3::device::create_sub_devices(root.id(), &properties)
        .map_err(|code| call_error(name, "clCreateSubDevices", code))?;
    let division = Arc::new(Division {
        root: key,
        partition: partition.clone(),
        parts: parts.into_iter().map(|part| part as usize).collect(),
    });
    kept.push(Arc::clone(&division));
    Ok(Some(division))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::{DeviceKind, RuntimeKind, SubDeviceSupport};

    fn cpu(by_counts: bool, equally: bool) -> Device {
        Device {
            name: "opencl0.0".to_owned(),
            model: String::new(),
            kind: DeviceKind::Cpu,
            runtime: RuntimeKind::Opencl,
            compute_units: 12,
            memory: 0,
            max_allocation: 0,
            clock_mhz: None,
            shares_host_memory: true,
            fp64: true,
            sub_devices: SubDeviceSupport {
                equally,
                by_counts,
                by_affinity: false,
            },
            queues: 2,
            driver: String::new(),
            link_bandwidth: None,
            one_way: None,
        }
    }

    #[test]
    fn selections_of_one_device_never_share_units() {
        let any = cpu(true, true);
        assert_eq!(partition(&any, &[None]).ok(), Some(Partition::Whole));
        assert_eq!(partition(&any, &[Some(12)]).ok(), Some(Partition::Whole));
        assert_eq!(
            partition(&any, &[Some(3), Some(9)]).ok(),
            Some(Partition::Counts(vec![3, 9]))
        );
        for twice in [
            &[None, Some(3)][..],
            &[None, None],
            &[Some(6), Some(7)],
            &[Some(0)],
            &[Some(13)],
        ] {
            let message = partition(&any, twice).unwrap_err().to_string();
            assert!(message.contains("opencl0.0"), "{message}");
        }
    }

    #[test]
    fn equal_parts_serve_where_counts_do_not() {
        let equal = cpu(false, true);
        assert_eq!(
            partition(&equal, &[Some(4), Some(4)]).ok(),
            Some(Partition::Equally(4))
        );
        assert!(partition(&equal, &[Some(5)]).is_err());
        assert!(partition(&equal, &[Some(4), Some(6)]).is_err());
        let whole = cpu(false, false);
        let message = partition(&whole, &[Some(4)]).unwrap_err().to_string();
        assert!(message.contains("cannot be divided"), "{message}");
    }

    #[test]
    fn a_division_serves_again_once_nobody_holds_it() {
        let (found, _) = crate::runtime::opencl::discover::find();
        let (device, handles) = (found.iter())
            .find(|(device, _)| device.info.sub_devices.by_counts)
            .expect("these tests need an OpenCL CPU device: apt-get install pocl-opencl-icd");
        let parts = || {
            let counts = Partition::Counts(vec![1]);
            let division = divide(&device.info.name, handles.device, &counts).unwrap();
            let division = division.expect("sub-devices");
            (division.part(0).unwrap().id(), division)
        };
        let whole = divide(&device.info.name, handles.device, &Partition::Whole);
        assert!(whole.unwrap().is_none());
        // Tests beside this one may take the division that it lets go.
        let held: Vec<_> = (0..50).map(|_| parts()).collect();
        let distinct: std::collections::BTreeSet<_> = held.iter().map(|(id, _)| *id).collect();
        assert_eq!(distinct.len(), held.len());
        drop(held);
        let again: Vec<_> = (0..50).map(|_| parts()).collect();
        assert!(again.iter().any(|(id, _)| distinct.contains(id)));
    }
}
