//! The devices of users' kernels: those that run OpenCL C.

use std::thread;

use super::Compiler;
use crate::graph::spec::Described;
use crate::machine::{Device, DeviceKind};
use crate::runtime::select::{self, GpuRuntime};
use crate::runtime::{RuntimeError, cuda, opencl};
use crate::session::Error;

/// The default devices that run these kernels, as a list, and notes: all, the CPU's included,
/// but each core once. GPUs are opened through OpenCL where CUDA refuses a kernel and the user
/// left the choice.
///
/// # Errors
/// When there is none, or one cannot be opened.
pub fn running(kernels: &[&Described]) -> Result<(String, Vec<String>), Error> {
    let (devices, left_out) = every()?;
    let Some(why) = refused_by_cuda(kernels, &devices)? else {
        return Ok((devices, left_out));
    };
    let (devices, left_out) = through(GpuRuntime::Opencl)?;
    let note = format!("GPUs are opened through OpenCL: {why}");
    Ok((devices, std::iter::once(note).chain(left_out).collect()))
}

/// Why CUDA does not run one of these kernels, where a list has a GPU that is opened through
/// it and the user left the choice.
fn refused_by_cuda(kernels: &[&Described], devices: &str) -> Result<Option<String>, Error> {
    let mut names = devices.split(',');
    let Some(gpu) = names.find(|name| name.starts_with("cuda")) else {
        return Ok(None);
    };
    if select::gpu_runtime() != GpuRuntime::Auto {
        return Ok(None);
    }
    let Some(mut compiler) = Compiler::first_of(gpu)? else {
        return Ok(None);
    };
    let mut loaded = kernels
        .iter()
        .map(|described| compiler.load(&described.kernel));
    Ok(loaded.find_map(Result::err).map(|error| match error {
        RuntimeError::Build { kernel, log, .. } => {
            let log = log.lines().next().unwrap_or_default();
            format!("kernel {kernel}: {log}")
        }
        other => other.to_string(),
    }))
}

/// The cores that this process may use.
fn cores() -> u32 {
    thread::available_parallelism().map_or(u32::MAX, |cores| cores.get() as u32)
}

/// The names of the devices that take part by default, and notes of the others. CPU
/// devices whose cores are too many together are the same CPU through several drivers;
/// the first ones that fit take part.
fn default_devices(found: &[Device], cores: u32) -> (Vec<String>, Vec<String>) {
    let mut names = Vec::new();
    let mut notes = Vec::new();
    // The CPU devices that take part.
    let mut cpus: Vec<&Device> = Vec::new();
    for device in found {
        let taken: u32 = cpus.iter().map(|cpu| cpu.compute_units).sum();
        let is_cpu = device.kind == DeviceKind::Cpu;
        if is_cpu && taken > 0 && taken.saturating_add(device.compute_units) > cores {
            let others: Vec<&str> = cpus.iter().map(|cpu| cpu.name.as_str()).collect();
            notes.push(format!(
                "{} ({}) is left out: its cores are those of {}; --devices names others",
                device.name,
                device.driver,
                others.join(", ")
            ));
            continue;
        }
        if is_cpu {
            cpus.push(device);
        }
        names.push(device.name.clone());
    }
    (names, notes)
}

/// The devices that run kernels by default, as a list, and notes of the others.
pub fn every() -> Result<(String, Vec<String>), Error> {
    through(select::gpu_runtime())
}

/// The same, with NVIDIA's GPUs through this driver.
fn through(runtime: GpuRuntime) -> Result<(String, Vec<String>), Error> {
    let (names, notes) = default_devices(&select::driver_devices(runtime)?, cores());
    if !names.is_empty() {
        return Ok((names.join(","), notes));
    }
    let what = "there is no OpenCL device here, and kernels in OpenCL C run on nothing else";
    // Warnings of the loader, with their remedies.
    let mut warnings = opencl::discover().warnings;
    warnings.retain(|warning| warning.contains("OpenCL") || warning.contains("OCL_"));
    Err(Error::NoKernelDevice {
        what: what.to_owned(),
        remedy: match warnings.is_empty() {
            true => {
                "an OpenCL driver; for the CPU, PoCL (apt-get install pocl-opencl-icd)".to_owned()
            }
            false => warnings.join("; "),
        },
    })
}

/// The kinds of the devices of a list.
pub fn kinds(list: &str) -> Vec<DeviceKind> {
    let listed = |name: &str| list.split(',').any(|item| of(item) == name);
    let opencl = opencl::discover().devices.into_iter();
    let cuda = match list.contains("cuda") {
        true => cuda::discover().devices,
        false => Vec::new(),
    };
    let found = opencl.map(|found| found.info);
    found
        .chain(cuda.into_iter().map(|found| found.info))
        .filter(|device| listed(&device.name))
        .map(|device| device.kind)
        .collect()
}

/// The device of an item of a list: opencl0.1 of `opencl0.1:4=own`.
fn of(item: &str) -> &str {
    item.trim()
        .split([':', '=', '@'])
        .next()
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use crate::machine::{RuntimeKind, SubDeviceSupport};

    use super::*;

    fn device(name: &str, kind: DeviceKind, compute_units: u32) -> Device {
        Device {
            name: name.to_owned(),
            model: "a device".to_owned(),
            kind,
            runtime: RuntimeKind::Opencl,
            compute_units,
            memory: 1 << 30,
            max_allocation: 1 << 30,
            clock_mhz: None,
            shares_host_memory: kind == DeviceKind::Cpu,
            fp64: true,
            sub_devices: SubDeviceSupport::default(),
            queues: 2,
            driver: "a driver".to_owned(),
            link_bandwidth: None,
            one_way: None,
        }
    }

    #[test]
    fn each_core_takes_part_once() {
        use DeviceKind::{Cpu, Gpu};
        let pocl = device("opencl0.0", Cpu, 8);
        let gpu = device("opencl1.0", Gpu, 132);
        let intel = device("opencl2.0", Cpu, 8);
        for (found, cores, expected, noted) in [
            (vec![&pocl, &gpu, &intel], 8, "opencl0.0,opencl1.0", 1),
            (vec![&intel, &pocl], 8, "opencl2.0", 1),
            // Parts of the cores each, and a device that is alone.
            (vec![&pocl, &intel], 16, "opencl0.0,opencl2.0", 0),
            (vec![&pocl], 2, "opencl0.0", 0),
            (vec![&gpu, &gpu], 2, "opencl1.0,opencl1.0", 0),
        ] {
            let found: Vec<Device> = found.into_iter().cloned().collect();
            let (names, notes) = default_devices(&found, cores);
            assert_eq!(names.join(","), expected);
            assert_eq!(notes.len(), noted);
            assert!(notes.iter().all(|note| note.contains("--devices")));
        }
    }

    #[test]
    fn a_device_is_distinguished_from_one_with_a_longer_name() {
        assert_eq!(of("opencl0.1"), "opencl0.1");
        assert_eq!(of(" opencl0.10:4=own"), "opencl0.10");
        assert_eq!(of("host@spread"), "host");
    }
}
