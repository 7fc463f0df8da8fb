//! Lists the OpenCL devices of every platform, and knows the threads that drivers start for it.

use std::ffi::CStr;
use std::sync::{Mutex, PoisonError};

use opencl3::device::{
    CL_DEVICE_AFFINITY_DOMAIN_NUMA, CL_DEVICE_PARTITION_BY_AFFINITY_DOMAIN,
    CL_DEVICE_PARTITION_BY_COUNTS, CL_DEVICE_PARTITION_EQUALLY, CL_DEVICE_TYPE_ALL,
    CL_DEVICE_TYPE_CPU, CL_DEVICE_TYPE_GPU, Device as ClDevice,
};
use opencl3::error_codes::{CL_DEVICE_NOT_FOUND, CL_PLATFORM_NOT_FOUND_KHR, ClError};
use opencl3::platform::{Platform, get_platforms};
use rustix::process::Pid;
use rustix::thread::{gettid, name, set_name};

use super::{Discovery, FoundDevice, loader, warnings};
use crate::machine::{Device, DeviceKind, RuntimeKind, SubDeviceSupport};
use crate::runtime::host::affinity;
use crate::runtime::ids::GpuIdentity;
use crate::runtime::process::StartedIn;

/// The driver's handles of a device found.
#[derive(Clone, Copy, Debug)]
pub(super) struct Handles {
    pub platform: Platform,
    pub device: ClDevice,
}

/// Lists every device of every platform. Never fails: a missing or broken driver
/// becomes a warning.
pub fn discover() -> Discovery {
    let (found, mut warnings) = find();
    let devices: Vec<FoundDevice> = found.into_iter().map(|(found, _)| found).collect();
    let gpu = devices.iter().any(|d| d.info.kind == DeviceKind::Gpu);
    warnings.extend(warnings::surroundings(gpu));
    warnings.extend(devices.iter().filter_map(warnings::ignored_affinity));
    Discovery { devices, warnings }
}

/// The devices, and the errors of the loader and the drivers.
pub(super) fn find() -> (Vec<(FoundDevice, Handles)>, Vec<String>) {
    if !cl3::is_opencl_runtime_available() {
        return (Vec::new(), vec![warnings::no_loader()]);
    }
    if let Some(hazard) = loader::hazard(&loader::vendors()) {
        return (Vec::new(), vec![hazard]);
    }
    static STARTED: StartedIn = StartedIn::nobody();
    if let Err(forked) = STARTED.start("OpenCL") {
        return (Vec::new(), vec![forked]);
    }
    // Loaders and drivers initialise on the first call, and not all of them survive
    // two concurrent first calls: PoCL then lists no devices.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    remember_started(list)
}

fn list() -> (Vec<(FoundDevice, Handles)>, Vec<String>) {
    let mut complaints = Vec::new();
    let platforms = match get_platforms() {
        Ok(platforms) => platforms,
        Err(ClError(code)) => {
            complaints.push(if code == CL_PLATFORM_NOT_FOUND_KHR {
                warnings::NO_PLATFORM.to_owned()
            } else {
                format!("the OpenCL loader lists no platforms: {}", ClError(code))
            });
            Vec::new()
        }
    };
    let mut found = Vec::new();
    let mut idle = Vec::new();
    for (index, platform) in platforms.into_iter().enumerate() {
        let name = platform.name().unwrap_or_else(|_| "unnamed".to_owned());
        match platform.get_devices(CL_DEVICE_TYPE_ALL) {
            Ok(ids) if !ids.is_empty() => {
                found.extend(ids.into_iter().enumerate().map(|(device, id)| {
                    let id = ClDevice::new(id);
                    let info = describe(format!("opencl{index}.{device}"), &name, id);
                    let identity = match info.kind {
                        DeviceKind::Gpu => identity(id),
                        DeviceKind::Cpu | DeviceKind::Accelerator => GpuIdentity::default(),
                    };
                    let found = FoundDevice {
                        platform: index,
                        device,
                        info,
                        identity,
                    };
                    let device = id;
                    (found, Handles { platform, device })
                }))
            }
            Ok(_) | Err(ClError(CL_DEVICE_NOT_FOUND)) => {
                let why = warnings::no_devices(&name);
                let all = match warnings::MESA.contains(&name.as_str()) {
                    true => &mut idle,
                    false => &mut complaints,
                };
                all.push(format!(
                    "OpenCL platform {index} ({name}) has no devices{why}"
                ));
            }
            Err(error) => complaints.push(format!(
                "OpenCL platform {index} ({name}) lists no devices: {error}; its driver may be \
                 broken or not match the kernel's module"
            )),
        }
    }
    if found.is_empty() {
        complaints.append(&mut idle);
    }
    (found, complaints)
}

/// A device's properties as its driver reports them; missing ones are zero.
pub(super) fn describe(name: String, platform: &str, id: ClDevice) -> Device {
    let kinds = id.dev_type().unwrap_or(0);
    let kind = if kinds & CL_DEVICE_TYPE_CPU != 0 {
        DeviceKind::Cpu
    } else if kinds & CL_DEVICE_TYPE_GPU != 0 {
        DeviceKind::Gpu
    } else {
        DeviceKind::Accelerator
    };
    let shares_host_memory = kind == DeviceKind::Cpu || id.host_unified_memory().unwrap_or(false);
    let driver = id.driver_version().unwrap_or_default();
    Device {
        name,
        model: id.name().unwrap_or_default().trim().to_owned(),
        kind,
        runtime: RuntimeKind::Opencl,
        compute_units: id.max_compute_units().unwrap_or(0),
        memory: id.global_mem_size().unwrap_or(0),
        max_allocation: id.max_mem_alloc_size().unwrap_or(0),
        clock_mhz: id.max_clock_frequency().ok().filter(|mhz| *mhz > 0),
        shares_host_memory,
        fp64: id.double_fp_config().is_ok_and(|config| config != 0),
        sub_devices: sub_device_support(id),
        // Two copy engines and the compute units overlap on a discrete GPU; on other
        // devices a second queue hides the gap between commands.
        queues: if kind == DeviceKind::Gpu && !shares_host_memory {
            3
        } else {
            2
        },
        driver: format!("{platform} {}", driver.trim()),
        link_bandwidth: None,
        one_way: None,
    }
}

fn sub_device_support(id: ClDevice) -> SubDeviceSupport {
    // A divisible device reports into how many parts it can be divided.
    if id.partition_max_sub_devices().unwrap_or(0) < 2 {
        return SubDeviceSupport::default();
    }
    let ways = id.partition_properties().unwrap_or_default();
    let domains = id
        .partition_affinity_domain()
        .unwrap_or_default()
        .into_iter()
        .fold(0, |all, domain| all | domain);
    SubDeviceSupport {
        equally: ways.contains(&CL_DEVICE_PARTITION_EQUALLY),
        by_counts: ways.contains(&CL_DEVICE_PARTITION_BY_COUNTS),
        by_affinity: ways.contains(&CL_DEVICE_PARTITION_BY_AFFINITY_DOMAIN)
            && domains & CL_DEVICE_AFFINITY_DOMAIN_NUMA != 0,
    }
}

/// A device's identity; nothing where its driver does not say.
fn identity(device: ClDevice) -> GpuIdentity {
    // NVIDIA has the number of the device on its bus in the upper five of eight bits.
    let slot = device.pci_slot_id_nv().ok().map(|slot| slot >> 3);
    GpuIdentity {
        uuid: device.uuid_khr().ok().filter(|uuid| *uuid != [0; 16]),
        pci: device.pci_bus_id_nv().ok().zip(slot),
    }
}

// The threads that drivers start. PoCL computes on threads that it starts when it
// is loaded and binds to no core. One of them may run on a core where a worker of
// a host pool is bound, and both then run at half speed.

/// Threads that drivers started.
static DRIVERS: Mutex<Vec<Pid>> = Mutex::new(Vec::new());

/// Threads inherit the name of the thread that starts them, so this name
/// identifies drivers' threads among others that start at the same time.
const MARK: &CStr = c"pdawl-driver";

/// Calls `work`, and remembers the drivers' threads that it starts.
fn remember_started<T>(work: impl FnOnce() -> T) -> T {
    let own = name();
    if own.is_err() || set_name(MARK).is_err() {
        return work();
    }
    let result = work();
    let myself = gettid();
    let mut drivers = DRIVERS.lock().unwrap_or_else(PoisonError::into_inner);
    let started = (tasks().into_iter())
        .filter(|task| *task != myself && is_marked(*task) && !drivers.contains(task));
    let started: Vec<Pid> = started.collect();
    drivers.extend(started);
    if let Ok(own) = own {
        // The system accepts a name that it reported itself.
        let _ = set_name(&own);
    }
    result
}

/// Whether a thread has inherited [`MARK`].
fn is_marked(task: Pid) -> bool {
    let path = format!("/proc/self/task/{}/comm", task.as_raw_nonzero());
    std::fs::read(path).is_ok_and(|name| name.trim_ascii_end() == MARK.to_bytes())
}

/// Binds the drivers' threads to these cores, which no host pool uses. Where the
/// system refuses, they keep their cores.
pub fn confine(cores: &[usize]) {
    let drivers = DRIVERS.lock().unwrap_or_else(PoisonError::into_inner);
    for task in drivers.iter() {
        affinity::confine(*task, cores);
    }
}

/// The process's threads; none where the system does not list them.
fn tasks() -> Vec<Pid> {
    let Ok(entries) = std::fs::read_dir("/proc/self/task") else {
        return Vec::new();
    };
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter_map(Pid::from_raw)
        .collect()
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use rustix::thread::sched_getaffinity;

    use super::*;
    use crate::machine::host::allowed_cores;

    #[test]
    fn threads_started_meanwhile_are_confined() {
        let allowed = allowed_cores(None);
        let (stop, stopped) = channel::<()>();
        let (sender, receiver) = channel();
        let thread = remember_started(|| {
            let thread = std::thread::spawn(move || {
                sender.send(gettid()).unwrap();
                let _ = stopped.recv();
            });
            (thread, receiver.recv().unwrap())
        });
        confine(&allowed[..1]);
        let set = sched_getaffinity(Some(thread.1)).unwrap();
        assert_eq!(set.count(), 1);
        assert!(set.is_set(allowed[0]));
        // Others may be drivers' threads that tests beside this one use.
        confine(&allowed);
        drop(stop);
        thread.0.join().unwrap();
    }
}
