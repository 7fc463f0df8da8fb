//! Measures a machine through a [`Runtime`], into a [`MachineFile`].
//!
//! Each figure is measured as the simulator uses it: measuring the simulator of a
//! machine returns that machine's figures.
//!
//! * `probe` runs commands and times them, and computes figures from times;
//! * `host` measures the pool of host cores, and host memory under cores and links, `device` every
//!   other device, its link, and copies between devices, and `stencils` the bandwidth of real
//!   kernels relative to a copy, and operations a second;
//! * this file combines the figures.
//!
//! Every figure is the median of several runs after a warm-up run.
//! Data is random, since some memories and links are faster on zeros.

mod device;
mod host;
mod probe;
mod stencils;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use thiserror::Error;

use crate::codelet::Codelet;
use crate::machine::file::FORMAT;
use crate::machine::{Device, DeviceKind, DeviceSpec, MachineFile, Noise, RuntimeKind};
use crate::runtime::{DeviceId, Runtime, RuntimeError};
use crate::workload::FirstVersionError;
use probe::Probe;

/// Why a machine could not be measured.
#[derive(Debug, Error)]
pub enum MeasureError {
    #[error(transparent)]
    Runtime(#[from] RuntimeError),

    #[error(transparent)]
    FirstVersion(#[from] FirstVersionError),

    #[error("no pool of host cores to measure; add `host` to the devices")]
    NoHost,

    #[error("{device}: {bytes} bytes of memory are too few to measure; free some memory")]
    TooSmall { device: String, bytes: u64 },
}

/// The parts of the file that are not measured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MachineDescription {
    pub name: String,
    pub title: String,
    pub description: String,
    pub fingerprint: Option<String>,
    pub sockets: u32,
    /// Bytes of a core's L2 and of a socket's L3 cache, where known.
    pub l2: Option<u64>,
    pub l3: Option<u64>,
}

/// How to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MeasureOptions {
    /// Bytes of the largest copies; much more than any cache. A device gets
    /// less if its memory is small.
    pub bytes: u64,
    /// Runs of which the median counts.
    pub repeats: u32,
    /// Whether the operations a second of products are measured, for which libraries are loaded.
    pub products: bool,
}

impl MeasureOptions {
    /// For a first run: what divided steps and copies take, by fewer and shorter copies.
    pub const FIRST: Self = Self {
        bytes: 256 << 20,
        repeats: 3,
        products: false,
    };
}

impl Default for MeasureOptions {
    fn default() -> Self {
        Self {
            bytes: 1 << 30,
            repeats: 7,
            products: true,
        }
    }
}

/// The largest pool of host cores; OpenCL's have no stencils of several steps.
fn pool(devices: &[Device]) -> Option<DeviceId> {
    let is_pool = |d: &Device| d.kind == DeviceKind::Cpu && d.runtime != RuntimeKind::Opencl;
    let pools = devices.iter().enumerate();
    pools
        .filter(|(_, d)| is_pool(d) && d.shares_host_memory)
        .max_by_key(|(i, d)| (d.compute_units, std::cmp::Reverse(*i)))
        .map(|(i, _)| DeviceId(i))
}

/// Measures the machine behind a runtime: its largest pool of host cores, and
/// every device that is no CPU (a CPU under OpenCL is the same cores again).
///
/// `copy` is the copying codelet, with arguments `from`, `to` and `unit_bytes`
/// (u32). `progress` gets, before each measurement, the device's name and
/// what is measured.
///
/// # Errors
/// No host pool, too little memory, a command that fails, or what the runtime
/// refuses.
pub fn measure(
    runtime: &mut dyn Runtime,
    copy: &Arc<Codelet>,
    about: MachineDescription,
    options: MeasureOptions,
    progress: &mut dyn FnMut(&str, &str),
) -> Result<MachineFile, MeasureError> {
    let devices = runtime.devices().to_vec();
    let pool = pool(&devices).ok_or(MeasureError::NoHost)?;
    let simulated = runtime.simulated();

    let mut probe = Probe::on(runtime, Arc::clone(copy), options);
    let memory = probe.allocate(pool)?;
    let mut host = host::measure(&mut probe, pool, &memory, &about, progress)?;
    let others: Vec<(DeviceId, &Device)> = (devices.iter().enumerate())
        .filter(|(_, d)| d.kind != DeviceKind::Cpu)
        .map(|(i, d)| (DeviceId(i), d))
        .collect();
    let linked = others.iter().filter(|(_, d)| !d.shares_host_memory);
    let linked: Vec<DeviceId> = linked.map(|(id, _)| *id).collect();
    let alone = host.memory_bandwidth;
    host.shared_bandwidth =
        host::measure_shared(&mut probe, pool, &linked, &memory, alone, progress)?;
    let peers = device::measure_peers(&mut probe, &linked, progress)?;
    let mut devices: Vec<DeviceSpec> = Vec::new();
    for (id, own) in &others {
        let like = (others.iter().zip(&devices)).find(|((_, other), _)| own.is_like(other));
        let like = like.map(|(_, measured)| measured);
        let measured = device::measure(&mut probe, *id, like, &memory, progress)?;
        devices.push(measured);
    }

    Ok(MachineFile {
        format: FORMAT.to_owned(),
        name: about.name,
        title: about.title,
        description: about.description,
        fingerprint: about.fingerprint,
        host,
        devices,
        peers,
        noise: Noise::default(),
        source: sources(simulated, options),
    })
}

/// The sources of the figures of a measured file.
fn sources(simulated: bool, options: MeasureOptions) -> BTreeMap<String, String> {
    let how = if simulated {
        "measured in a simulation"
    } else {
        "measured"
    };
    let of = |key: &str, text: String| (key.to_owned(), text);
    BTreeMap::from([
        of(
            "bandwidths, operations a second, efficiencies, overheads and latencies",
            format!(
                "{how} by pdawl {}, medians of {} runs of up to {} bytes",
                env!("CARGO_PKG_VERSION"),
                options.repeats,
                options.bytes
            ),
        ),
        of("device.concurrent_kernels", "assumed".into()),
        of(
            "models, cores, clocks and memory sizes",
            "what the system and the drivers say".into(),
        ),
    ])
}
