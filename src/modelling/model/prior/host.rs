//! The step of devices that compute in host memory: pools of cores, and devices that
//! share it.

use crate::model::case::{Case, Superstep};
use crate::model::derived::tiles;
use crate::model::descriptors::{DeviceFigures, HostFigures};

/// Chunks that are under way at once: one runs, one follows.
const LANES: f64 = 2.0;

/// The busy workers of a pool while a chunk of `units` runs by itself. A superstep is not cut
/// at units, and all of them take part.
fn busy(case: &Case, units: u64, workers: u32) -> f64 {
    if case.work.superstep.is_some() {
        return f64::from(workers);
    }
    tiles(&case.work, units, workers).busy(workers as usize) as f64
}

/// The busy workers while chunks run: of one chunk or, if it leaves half of them idle,
/// of two.
pub(super) fn at_work(case: &Case, workers: u32) -> f64 {
    let one = busy(case, case.part.chunk().min(case.part.units()), workers);
    match 2.0 * one <= f64::from(workers) && case.part.chunks() > 1 {
        true => 2.0 * one,
        false => one,
    }
}

/// Compute, memory, link, and total seconds of a pool of `workers` cores.
///
/// A launch is cut into tiles, so a small one leaves some workers idle; if half
/// are, two chunks run at once. So many `busy` ones compute at
/// `busy / cores` of all cores' rate, and reach the bandwidth
/// `min(busy * a core's, all cores') * efficiency`.
pub fn pool(case: &Case, workers: u32, host: &HostFigures, flow: f64) -> (f64, f64, f64, f64) {
    let (units, chunk) = (case.part.units(), case.part.chunk());
    let chunks = case.part.chunks() as f64;
    let last = units - (chunks as u64).saturating_sub(1) * chunk;
    // Operations of a unit.
    let flops = match case.work.superstep {
        Some(Superstep { steps, flops }) => f64::from(steps) * flops * case.work.unit_flops,
        None => case.work.unit_flops,
    };
    // Two chunks both compute what lies beside the cut between them.
    let twice = match chunks > 1.0 {
        true => case.work.computed(chunk, 2) as f64 / case.work.computed(chunk, 0) as f64,
        false => 1.0,
    };
    let compute = |units: f64, busy: f64| {
        let part = busy / f64::from(host.cores.max(1));
        (host.flops).map_or(0.0, |all| twice * units * flops / (all * part))
    };
    let memory = |units: f64, busy: f64| {
        let reached = (busy * host.core_bandwidth).min(host.bandwidth) * host.efficiency;
        units * case.work.unit_traffic / (reached * flow)
    };
    let kernel = |units: u64, busy: f64| {
        let units = units as f64;
        // A superstep reads and computes by turns.
        match case.work.superstep {
            Some(_) => compute(units, busy) + memory(units, busy),
            None => compute(units, busy).max(memory(units, busy)),
        }
    };
    let one = busy(case, chunk.min(units), workers);
    let both = at_work(case, workers);
    let each = host.launch_seconds + host.completion_seconds;
    let end = each + kernel(last, busy(case, last, workers));
    let total = if both > one {
        // Both lanes' chunks begin together and end together, but for the last.
        let beside = |other: u64| kernel(chunk, one).max(kernel(chunk + other, both));
        let full_pairs = ((chunks - 1.0) / 2.0).floor();
        let rest = match chunks % 2.0 == 0.0 {
            true => each + beside(last),
            false => end,
        };
        full_pairs * (each + beside(chunk)) + rest
    } else {
        // One chunk after the other: each after its overhead, or when the driver has
        // seen the end of the chunk whose lane it takes.
        let full = kernel(chunk, one);
        let period = (host.launch_seconds + full).max((each + full) / LANES);
        (chunks - 1.0).max(0.0) * period + end
    };
    let all = units as f64;
    (compute(all, both), memory(all, both), 0.0, total)
}

/// Compute, memory, link, and total seconds of a device that shares the host's memory.
pub fn shared(
    case: &Case,
    device: &DeviceFigures,
    host: &HostFigures,
    flow: f64,
) -> (f64, f64, f64, f64) {
    let chunks = case.part.chunks() as f64;
    // It computes in host memory, step by step.
    let computed = case
        .work
        .computed(case.part.units(), 2 * case.part.chunks()) as f64;
    let compute = device
        .flops
        .map_or(0.0, |rate| computed * case.work.unit_flops / rate);
    let reached = (device.bandwidth * device.efficiency).min(host.bandwidth);
    let memory = computed * case.work.unit_traffic / (reached * flow);
    // Kernels of both lanes share the device: they run at once, end at once,
    // and nothing runs until the next two have begun.
    let idle = device.enqueue_seconds + device.launch_seconds + device.completion_seconds;
    let rounds = (chunks / LANES).ceil();
    (compute, memory, 0.0, compute.max(memory) + rounds * idle)
}
