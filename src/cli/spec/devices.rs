//! The devices of users' kernels: those that run OpenCL C.

use std::thread;

use pdawl::machine::{Device, DeviceKind};
use pdawl::runtime::select::{self, GpuRuntime, Selection, Source};
use pdawl::runtime::{RuntimeError, opencl};

use super::compile::Compiler;
use super::described::Described;
use crate::args::MachineArgs;
use crate::failure::{Failure, refused, wrong_devices};

/// The arguments with devices that run these kernels: those named, or all, the CPU's
/// included, but each core once. GPUs are opened through OpenCL where CUDA refuses a kernel
/// and the user left the choice; a note tells it.
///
/// # Errors
/// When there is none, the embedded runtime is named, or another machine, on
/// which kernels would have to be simulated.
pub fn running(
    kernels: &[&Described],
    args: &MachineArgs,
) -> Result<(MachineArgs, Vec<String>), Failure> {
    let Some(list) = &args.devices else {
        let mut notes = Vec::new();
        let mut devices = every()?;
        if let Some(why) = refused_by_cuda(kernels, &devices)? {
            notes.push(format!("GPUs are opened through OpenCL: {why}"));
            select::choose_gpu_runtime(GpuRuntime::Opencl);
            devices = every()?;
        }
        let args = MachineArgs {
            devices: Some(devices),
            ..args.clone()
        };
        return Ok((args, notes));
    };
    let selection: Selection = list.parse().map_err(wrong_devices)?;
    let host = |source: Source| source == Source::Host;
    if selection.devices().iter().any(|spec| host(spec.source)) {
        return Err(wrong_devices(
            "the embedded runtime (host) runs no OpenCL C; the CPU takes part as an OpenCL device",
        ));
    }
    Ok((args.clone(), Vec::new()))
}

/// Why CUDA does not run one of these kernels, where a list has a GPU that is opened through
/// it and the user left the choice.
fn refused_by_cuda(kernels: &[&Described], devices: &str) -> Result<Option<String>, Failure> {
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

/// Notes of the devices that are not among the default ones, and why; none where the user
/// names devices.
pub fn left_out(args: &MachineArgs) -> Vec<String> {
    match args.devices {
        // Where there are none because of an error, `running` has reported it.
        None => default_devices(&select::driver_devices().unwrap_or_default(), cores()).1,
        Some(_) => Vec::new(),
    }
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

/// The default OpenCL devices.
fn every() -> Result<String, Failure> {
    let found = select::driver_devices().map_err(refused)?;
    let (names, _) = default_devices(&found, cores());
    if !names.is_empty() {
        return Ok(names.join(","));
    }
    let what = "there is no OpenCL device here, and kernels in OpenCL C run on nothing else";
    // Warnings of the loader, with their remedies.
    let of_loader = |warning: &String| warning.contains("OpenCL") || warning.contains("OCL_");
    let warnings: Vec<String> = opencl::discover()
        .warnings
        .into_iter()
        .filter(of_loader)
        .collect();
    Err(match warnings.as_slice() {
        [] => Failure::failed(
            what,
            "an OpenCL driver; for the CPU, PoCL (apt-get install pocl-opencl-icd)",
        ),
        warnings => Failure::failed(what, warnings.join("; ")),
    })
}

#[cfg(test)]
mod tests {
    use pdawl::machine::{RuntimeKind, SubDeviceSupport};

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
}
