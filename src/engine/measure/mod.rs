//! Measuring a machine, only through a [`Runtime`], into a [`MachineFile`].
//!
//! What is measured means what the simulator makes of it: measuring the
//! simulator of a machine gives that machine's figures back.
//!
//! * `probe` runs commands and times them, `figures` makes figures of times;
//! * `host` measures the pool of host cores, `device` everything else, and
//!   `stencils` how near real kernels come to a copy;
//! * this file puts the figures together.
//!
//! Every figure is the median of several runs after one that is not counted.
//! Data is random, since some memories and links are faster on zeros.

mod device;
mod figures;
mod host;
mod probe;
mod shared;
mod stencils;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use thiserror::Error;

use crate::codelet::Codelet;
use crate::machine::file::FORMAT;
use crate::machine::{Device, DeviceKind, MachineFile, Noise};
use crate::runtime::{DeviceId, Runtime, RuntimeError};
use probe::Probe;

/// Why a machine could not be measured.
#[derive(Debug, Error)]
pub enum MeasureError {
    #[error(transparent)]
    Runtime(#[from] RuntimeError),

    #[error("no pool of host cores to measure; add `host` to the devices")]
    NoHost,

    #[error("{device}: a {what} failed while its speed was measured: {why}")]
    Failed {
        device: String,
        what: &'static str,
        why: String,
    },

    #[error("{device}: {bytes} bytes of memory are too few to measure; free some memory")]
    TooSmall { device: String, bytes: u64 },
}

/// What the file says of the machine beside measured figures.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct About {
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
}

impl Default for MeasureOptions {
    fn default() -> Self {
        Self {
            bytes: 1 << 30,
            repeats: 7,
        }
    }
}

/// Measures the machine behind a runtime: its largest pool of host cores, and
/// every device that is no CPU (a CPU under OpenCL is the same cores again).
///
/// `copy` is the copying codelet, with arguments `from`, `to` and `unit_bytes`
/// (u32). `progress` is told, before each measurement, the device's name and
/// what is measured. Operations a second are not measured; the file leaves
/// them out, and kernels are then limited by memory alone.
///
/// # Errors
/// No host pool, too little memory, a command that fails, or what the runtime
/// refuses.
pub fn measure(
    runtime: &mut dyn Runtime,
    copy: &Arc<Codelet>,
    about: About,
    options: MeasureOptions,
    progress: &mut dyn FnMut(&str, &str),
) -> Result<MachineFile, MeasureError> {
    let devices = runtime.devices().to_vec();
    let pool = devices
        .iter()
        .enumerate()
        .filter(|(_, d)| d.kind == DeviceKind::Cpu && d.shares_host_memory)
        .max_by_key(|(i, d)| (d.compute_units, std::cmp::Reverse(*i)))
        .map(|(i, _)| DeviceId(i))
        .ok_or(MeasureError::NoHost)?;
    let simulated = runtime.simulated();

    let mut probe = Probe::new(runtime, Arc::clone(copy), options);
    let result = probe.allocate(pool).and_then(|memory| {
        probe.begin();
        let mut host = host::measure(&mut probe, pool, &memory, &about, progress)?;
        let linked = |(i, d): (usize, &Device)| {
            let is_linked = d.kind != DeviceKind::Cpu && !d.shares_host_memory;
            is_linked.then_some(DeviceId(i))
        };
        let linked: Vec<DeviceId> = devices.iter().enumerate().filter_map(linked).collect();
        let alone = host.memory_bandwidth;
        host.shared_bandwidth =
            shared::measure(&mut probe, pool, &linked, &memory, alone, progress)?;
        let others = devices
            .iter()
            .enumerate()
            .filter(|(_, d)| d.kind != DeviceKind::Cpu)
            .map(|(i, _)| device::measure(&mut probe, DeviceId(i), &memory, progress))
            .collect::<Result<Vec<_>, _>>()?;
        Ok((host, others))
    });
    probe.free_all();
    let (host, devices) = result?;

    Ok(MachineFile {
        format: FORMAT.to_owned(),
        name: about.name,
        title: about.title,
        description: about.description,
        fingerprint: about.fingerprint,
        host,
        devices,
        noise: Noise::default(),
        source: sources(simulated, options),
    })
}

/// Bytes a second that a copy by a pool of host cores reads and writes: what
/// bounds every kernel there.
///
/// # Errors
/// As [`measure`].
pub fn copy_bandwidth(
    runtime: &mut dyn Runtime,
    copy: &Arc<Codelet>,
    pool: DeviceId,
    options: MeasureOptions,
) -> Result<f64, MeasureError> {
    let mut probe = Probe::new(runtime, Arc::clone(copy), options);
    let result = probe.allocate(pool).and_then(|memory| {
        probe.begin();
        host::copy_bandwidth(&mut probe, pool, &memory)
    });
    probe.free_all();
    result
}

/// Where the figures of a measured file come from.
fn sources(simulated: bool, options: MeasureOptions) -> BTreeMap<String, String> {
    let how = if simulated {
        "measured in a simulation"
    } else {
        "measured"
    };
    let of = |key: &str, text: String| (key.to_owned(), text);
    BTreeMap::from([
        of(
            "bandwidths, efficiencies, overheads and latencies",
            format!(
                "{how} by pdawl {}, medians of {} runs of up to {} bytes",
                env!("CARGO_PKG_VERSION"),
                options.repeats,
                options.bytes
            ),
        ),
        of("flops", "not measured, therefore no limit".into()),
        of("device.concurrent_kernels", "assumed".into()),
        of(
            "models, cores, clocks and memory sizes",
            "what the system and the drivers say".into(),
        ),
    ])
}
