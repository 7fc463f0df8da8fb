//! The physics of a step: what a case should take by a machine's descriptors.

use super::case::{Case, Part};
use super::descriptors::{Descriptors, DeviceFigures, HostFigures};

/// A step's time and what it is made of, in seconds. The parts overlap, so
/// their sum is not the total.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Terms {
    /// Operations at their greatest rate.
    pub compute: f64,
    /// Memory traffic of whoever computes, at the bandwidth that it reaches.
    pub memory: f64,
    /// Transfers over the link, each way at once where that can be.
    pub link: f64,
    /// Starting, enqueueing, and waiting for the driver to know.
    pub overhead: f64,
    /// The whole step.
    pub total: f64,
}

/// Seconds of a step of `case`.
pub fn seconds(case: &Case, descriptors: &Descriptors) -> f64 {
    terms(case, descriptors).total
}

/// The terms of a step of `case`.
pub fn terms(case: &Case, descriptors: &Descriptors) -> Terms {
    match (case.part, &descriptors.device) {
        (Part::Host { workers, .. }, None) => on_host(case, workers, &descriptors.host),
        (Part::Host { .. }, Some(device)) => on_shared(case, device, &descriptors.host),
        (Part::Own { .. }, device) => on_own(case, &device.unwrap_or_default()),
    }
}

fn on_host(case: &Case, workers: u32, host: &HostFigures) -> Terms {
    let (units, chunks) = (case.part.units() as f64, case.part.chunks() as f64);
    let longest = (units / chunks.max(1.0)).max(1.0);
    let workers = f64::from(workers.max(1));
    let busy = workers.min(longest);
    let cores = f64::from(host.cores.max(1));
    let compute = host.flops.map_or(0.0, |rate| {
        units * case.work.unit_flops * cores / (rate * busy)
    });
    let reached = (busy * host.core_bandwidth).min(host.bandwidth) * host.efficiency;
    let memory = units * case.work.unit_traffic / reached;
    let overhead = chunks * host.launch_seconds + host.completion_seconds;
    Terms {
        compute,
        memory,
        link: 0.0,
        overhead,
        total: compute.max(memory) + overhead,
    }
}

fn on_shared(case: &Case, device: &DeviceFigures, host: &HostFigures) -> Terms {
    let (units, chunks) = (case.part.units() as f64, case.part.chunks() as f64);
    let compute = device
        .flops
        .map_or(0.0, |rate| units * case.work.unit_flops / rate);
    let reached = (device.bandwidth * device.efficiency).min(host.bandwidth);
    let memory = units * case.work.unit_traffic / reached;
    let overhead =
        chunks * device.launch_seconds + device.enqueue_seconds + device.completion_seconds;
    Terms {
        compute,
        memory,
        link: 0.0,
        overhead,
        total: compute.max(memory) + overhead,
    }
}

fn on_own(case: &Case, device: &DeviceFigures) -> Terms {
    let link = device.link.unwrap_or_default();
    let units = case.part.units() as f64;
    let compute = device
        .flops
        .map_or(0.0, |rate| units * case.work.unit_flops / rate);
    let memory = units * case.work.unit_traffic / (device.bandwidth * device.efficiency);
    let Part::Own { streamed, .. } = case.part else {
        return Terms::default();
    };
    let transfers = match streamed {
        0 => 0.0,
        _ => streamed as f64 * case.work.unit_bytes as f64 / link.both_ways,
    };
    let launches = case.part.windows() + case.part.chunks();
    let overhead = launches as f64 * device.launch_seconds + device.completion_seconds;
    Terms {
        compute,
        memory,
        link: transfers,
        overhead,
        total: compute.max(memory).max(transfers) + overhead,
    }
}
