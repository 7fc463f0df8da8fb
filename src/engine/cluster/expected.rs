//! What a device is expected to do, before it has done anything.

use super::subtasks::DEPTH;
use crate::machine::{Device, DeviceKind};
use crate::runtime::Devices;
use pdawl_core::cluster::info::{DeviceInfo, share_bus};

/// Operations a clock and core in single precision: two vectors of eight of a CPU, and the
/// lanes of a GPU's multiprocessor, each a multiplication and an addition.
const CPU_FLOPS: f64 = 32.0;
const GPU_FLOPS: f64 = 256.0;

/// Bytes a second of memory for each CPU core, and of a GPU's memory for each
/// multiprocessor.
const CPU_BYTES: f64 = 8e9;
const GPU_BYTES: f64 = 20e9;

/// Bytes a second of a link whose speed is not known.
const LINK: f64 = 12e9;

/// The clock where a driver does not tell it.
const CLOCK: f64 = 2e9;

/// What all devices of a runtime are expected to do.
pub fn all_expected(runtime: &dyn Devices) -> Vec<DeviceInfo> {
    let mut devices: Vec<DeviceInfo> = runtime.devices().iter().map(expected).collect();
    share_bus(&mut devices, runtime.bus_bandwidth());
    devices
}

/// A rough expectation by cores and clock, right within a factor of three. It sizes the
/// first subtasks that a node gets; after that, what was measured counts.
pub fn expected(device: &Device) -> DeviceInfo {
    let clock = device.clock_mhz.map_or(CLOCK, |mhz| f64::from(mhz) * 1e6);
    let units = f64::from(device.compute_units.max(1));
    let (flops, bytes) = match device.kind {
        DeviceKind::Cpu => (CPU_FLOPS, CPU_BYTES),
        _ => (GPU_FLOPS, GPU_BYTES),
    };
    let (link, depth) = match device.shares_host_memory {
        true => (f64::MAX, 1),
        false => (device.link_bandwidth.unwrap_or(LINK), DEPTH),
    };
    DeviceInfo {
        name: device.name.clone(),
        flops: units * clock * flops,
        memory_bandwidth: units * bytes,
        link_bandwidth: link,
        depth,
    }
}
