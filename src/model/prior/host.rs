//! Who computes in host memory: pools of cores, and devices that share it.

use crate::model::case::Case;
use crate::model::descriptors::{DeviceFigures, HostFigures};

/// Chunks that are under way at once: one runs, one follows.
const LANES: f64 = 2.0;

/// Compute, memory, link, and total seconds of a pool of `workers` cores.
///
/// A launch is divided among the workers by units, so few units leave some
/// idle: `busy = min(workers, units of a chunk)`. These compute at
/// `busy / cores` of all cores' rate, and reach the bandwidth
/// `min(busy * a core's, all cores') * efficiency`.
pub fn pool(case: &Case, workers: u32, host: &HostFigures, flow: f64) -> (f64, f64, f64, f64) {
    let units = case.part.units() as f64;
    let chunks = case.part.chunks() as f64;
    let busy = f64::from(workers.max(1)).min((units / chunks.max(1.0)).max(1.0));
    let rate = |all: f64| all * busy / f64::from(host.cores.max(1));
    let compute = host
        .flops
        .map_or(0.0, |all| units * case.work.unit_flops / rate(all));
    let reached = (busy * host.core_bandwidth).min(host.bandwidth) * host.efficiency;
    let memory = units * case.work.unit_traffic / (reached * flow);
    // One after the other: each after its overhead, or when the driver knows of
    // the one whose lane it takes.
    let one = compute.max(memory) / chunks.max(1.0);
    let (launch, completion) = (host.launch_seconds, host.completion_seconds);
    let period = (launch + one).max((launch + one + completion) / LANES);
    let total = (chunks - 1.0).max(0.0) * period + launch + one + completion;
    (compute, memory, 0.0, total)
}

/// The same of a device that shares the host's memory.
pub fn shared(
    case: &Case,
    device: &DeviceFigures,
    host: &HostFigures,
    flow: f64,
) -> (f64, f64, f64, f64) {
    let units = case.part.units() as f64;
    let chunks = case.part.chunks() as f64;
    let compute = device
        .flops
        .map_or(0.0, |rate| units * case.work.unit_flops / rate);
    let reached = (device.bandwidth * device.efficiency).min(host.bandwidth);
    let memory = units * case.work.unit_traffic / (reached * flow);
    // Kernels of both lanes share the device: they run at once, end at once,
    // and nothing runs until the next two have begun.
    let idle = device.enqueue_seconds + device.launch_seconds + device.completion_seconds;
    let rounds = (chunks / LANES).ceil();
    (compute, memory, 0.0, compute.max(memory) + rounds * idle)
}
