//! Opens the devices that a user selects.
//!
//! `selection` reads `host:8,opencl0.0,cuda0`; `choice` has the choice between CUDA
//! and OpenCL for GPUs that are not named, and that between our kernels alone and
//! CUDA's libraries beside them; `plan` checks both against
//! the devices that exist, without opening anything, so that no core is given to
//! two devices; [`open`] opens the planned devices.

mod choice;
mod plan;
mod selection;

use std::sync::OnceLock;
use std::time::Instant;

use crossbeam_channel::unbounded;

pub use choice::{
    GpuRuntime, Libraries, choose_gpu_runtime, choose_libraries, gpu_runtime, libraries,
};
pub use plan::{Existing, HostCores, OpenPlan, plan};
pub use selection::{DeviceSpec, Selection, SelectionError, Source};

use super::host::HostBackend;
use super::union::Union;
use super::{Backend, Runtime, RuntimeError, cuda, opencl};
use crate::machine::host::{Topology, allowed_cores, granted_cores};
use crate::machine::{Device, DeviceKind, Fingerprint, Host};

/// Opens the selected devices as one runtime; without a selection the host
/// with every core that the process may use, and every GPU, through CUDA or OpenCL as
/// [`choose_gpu_runtime`] says. `fp64` says whether the work needs double precision. The texts
/// returned name the devices left out and other deviations from the request.
///
/// # Errors
/// [`RuntimeError::Selection`] for an impossible selection; otherwise the errors of
/// the backends.
pub fn open(
    selection: Option<&Selection>,
    fp64: bool,
) -> Result<(Box<dyn Runtime>, Vec<String>), RuntimeError> {
    let (union, notes) = open_union(selection, fp64)?;
    Ok((Box::new(union), notes))
}

/// The fingerprint of this machine, to be compared with one that a file has. Without GPUs where
/// the CPU is another one: no driver is loaded then.
pub fn fingerprint_beside(recorded: Option<&str>) -> Fingerprint {
    static CPU: OnceLock<Fingerprint> = OnceLock::new();
    let cpu = CPU.get_or_init(|| {
        let host = Host::detect();
        Fingerprint::of(&host.model, host.online, [])
    });
    match cpu.begins(recorded) {
        true => fingerprint(),
        false => cpu.clone(),
    }
}

/// The fingerprint of this machine: its CPU and its GPUs.
pub fn fingerprint() -> Fingerprint {
    let host = Host::detect();
    let discovery = opencl::discover();
    let gpus = (discovery.devices.iter())
        .filter(|found| found.info.kind != DeviceKind::Cpu)
        .map(|found| found.info.model.as_str());
    Fingerprint::of(&host.model, host.online, gpus)
}

/// As [`open`], with the concrete type.
///
/// # Errors
/// As [`open`].
pub fn open_union(
    selection: Option<&Selection>,
    fp64: bool,
) -> Result<(Union, Vec<String>), RuntimeError> {
    // Drivers take a while to load, so they are not for the host alone.
    let runtime = gpu_runtime();
    let names_opencl = selection.is_none_or(Selection::names_opencl);
    let names_cuda = selection.map_or(runtime.asks_cuda(), Selection::names_cuda);
    let existing = Existing {
        opencl: names_opencl.then(opencl::discover).unwrap_or_default(),
        cuda: names_cuda.then(cuda::discover).unwrap_or_default(),
        runtime,
    };
    let allowed = allowed_cores(None);
    let topology = Topology::detect(&allowed);
    let cores = HostCores {
        allowed: &allowed,
        topology: &topology,
        granted: granted_cores(),
    };
    let plan = plan(selection, &existing, cores, fp64)?;
    let mut notes = plan.notes;
    let (completions, receiver) = unbounded();
    let epoch = Instant::now();
    let mut backends: Vec<Box<dyn Backend>> = Vec::new();
    if !plan.pools.is_empty() {
        let host = HostBackend::open(&plan.pools, completions.clone(), epoch)?.sparing(plan.spare);
        notes.extend_from_slice(host.warnings());
        backends.push(Box::new(host));
    }
    if !plan.opencl.is_empty() {
        let is_taken = |core: &usize| plan.pools.iter().any(|pool| pool.cores.contains(core));
        let free: Vec<usize> = allowed.into_iter().filter(|c| !is_taken(c)).collect();
        if !free.is_empty() {
            opencl::confine(&free);
        }
        match opencl::open(&plan.opencl, completions.clone(), epoch) {
            Ok(opencl) => backends.push(opencl),
            // The user did not name these devices, and the host suffices.
            Err(error) if selection.is_none() => {
                notes.push(format!("every OpenCL device is left out: {error}"));
            }
            Err(error) => return Err(error),
        }
    }
    if !plan.cuda.is_empty() {
        let uses_libraries = libraries() == Libraries::Auto;
        backends.push(cuda::open(&plan.cuda, uses_libraries, completions, epoch)?);
    }
    Ok((Union::new(backends, receiver, epoch), notes))
}

/// The devices of drivers, a GPU through the one that opens it where no devices are named and
/// `runtime` is the choice.
///
/// # Errors
/// [`RuntimeError::Selection`] when CUDA was chosen and there is none.
pub fn driver_devices(runtime: GpuRuntime) -> Result<Vec<Device>, RuntimeError> {
    let existing = Existing {
        opencl: opencl::discover(),
        cuda: runtime.asks_cuda().then(cuda::discover).unwrap_or_default(),
        runtime,
    };
    existing.check()?;
    let through_cuda = existing.through_cuda();
    let is_opencl = |found: &&opencl::FoundDevice| {
        let mut gpus = through_cuda.iter();
        !gpus.any(|gpu| gpu.identity.is(&found.identity))
    };
    let others = existing.opencl.devices.iter().filter(is_opencl);
    let others = others.map(|found| found.info.clone());
    Ok(others
        .chain(through_cuda.iter().map(|gpu| gpu.info.clone()))
        .collect())
}

#[cfg(test)]
mod tests;
