//! The step of devices that compute in host memory: pools of cores, and devices that
//! share it; and the terms of a grid's step on cores that no machine file gives: how the
//! bandwidth of several cores grows, what caches keep, and what chunks and tiles cost.
//!
//! These are of memory-bound kernels, as stencils are: there is no term for a core's
//! operations. Simulated machines have none of these effects. A model learns the weight of
//! each term (`prior x parts`), so the figures here only need the right proportion to the
//! case.

use super::discrete::lost;
use crate::model::case::{Case, Derived, DevicePart, HALO, Superstep, tiles};
use crate::model::descriptors::{Descriptors, DeviceFigures, HostFigures};

/// Chunks that are under way at once: one runs, one follows.
pub const LANES: u32 = 2;

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
        let period = (host.launch_seconds + full).max((each + full) / f64::from(LANES));
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
    let rounds = (chunks / f64::from(LANES)).ceil();
    (compute, memory, 0.0, compute.max(memory) + rounds * idle)
}

/// How smoothly the bandwidth of `n` cores of bandwidth `b` saturates at `c`:
/// `(n b)^-p + c^-p = reached^-p`. (1, 2, 4, 8 and 15 cores of a Sapphire Rapids
/// reach 21, 38, 70, 105 and 139 GB/s, which is this law within 3 %; the least of
/// `n b` and what all reach is 30 % too much for 8.)
const SMOOTH: f64 = 1.5;

/// Bandwidth of a last cache over memory's.
const CACHE: f64 = 1.5;

/// Rows that a stencil works on at once: three, and the result's.
const ROWS_AT_ONCE: f64 = 4.0;
/// The part of a core's own cache that these rows may take before some are read again
/// ...
const ROOM: f64 = 0.25;
/// ... and the part at which all are read again.
const FULL: f64 = 0.5;

/// Seconds of a core to begin a unit: a row or a plane.
const ROW: f64 = 20e-9;

/// Seconds to wake a worker for a chunk.
const WAKE: f64 = 0.3e-6;

/// Seconds of a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GridTerms {
    /// Bytes that the last cache does not keep from step to step, and those
    /// that it does.
    pub memory: f64,
    pub cache: f64,
    /// The bytes of `memory` at the bandwidth of all cores: a part of the time that
    /// more cores do not shorten.
    pub shared: f64,
    /// The bytes again, as far as rows are too wide for a core's own cache.
    pub wide_rows: f64,
    /// Rows at tiles' borders, which two workers read.
    pub borders: f64,
    pub rows: f64,
    /// Chunks begun and heard of, and workers that take part in them.
    pub chunks: f64,
    pub wakes: f64,
    /// The end of a step.
    pub end: f64,
}

impl GridTerms {
    /// The terms of a grid's units on a host's own cores; `None` for anything else.
    pub(in crate::model) fn of(
        case: &Case,
        descriptors: &Descriptors,
        derived: &Derived,
    ) -> Option<Self> {
        let DevicePart::Host { workers, .. } = case.part else {
            return None;
        };
        if case.work.matrix.is_some() || descriptors.device.is_some() {
            return None;
        }
        let host = &descriptors.host;
        let lanes = at_work(case, workers);
        let alone = lanes * host.core_bandwidth;
        let seconds = derived.traffic_bytes / smooth(alone, ceiling(host));
        let lost_to_memory = derived.over_l3.map_or(1.0, lost);
        let row = case.work.unit_bytes as f64;
        let wide = host.l2.filter(|bytes| *bytes > 0).map_or(0.0, |bytes| {
            (ROWS_AT_ONCE * row / bytes as f64 - ROOM) / (FULL - ROOM)
        });
        let tiles = derived.chunks * derived.tiles.unwrap_or(0.0);
        let each = host.launch_seconds + host.completion_seconds;
        Some(Self {
            memory: lost_to_memory * seconds,
            cache: (1.0 - lost_to_memory) * seconds / CACHE,
            shared: lost_to_memory * derived.traffic_bytes / host.bandwidth,
            wide_rows: wide.clamp(0.0, 1.0) * lost_to_memory * derived.traffic_bytes / alone,
            borders: tiles * 2.0 * HALO as f64 * row / alone,
            rows: case.part.units() as f64 / f64::from(workers.max(1)) * ROW,
            chunks: derived.chunks * each,
            wakes: derived.chunks * f64::from(workers) * WAKE,
            end: each,
        })
    }
}

/// Where the bandwidth saturates, so that all cores reach what the machine file
/// says; infinity where they reach all that they could.
fn ceiling(host: &HostFigures) -> f64 {
    let alone = f64::from(host.cores) * host.core_bandwidth;
    let rest = host.bandwidth.powf(-SMOOTH) - alone.powf(-SMOOTH);
    match rest > 0.0 {
        true => rest.powf(-1.0 / SMOOTH),
        false => f64::INFINITY,
    }
}

fn smooth(alone: f64, ceiling: f64) -> f64 {
    (alone.powf(-SMOOTH) + ceiling.powf(-SMOOTH)).powf(-1.0 / SMOOTH)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::StepWork;
    use crate::model::fixtures::{grid, machine};
    use crate::model::training::fixtures::CODELET;

    fn host() -> HostFigures {
        HostFigures {
            cores: 15,
            bandwidth: 139e9,
            core_bandwidth: 21e9,
            ..HostFigures::default()
        }
    }

    /// What a step of a square grid on some of an h200's cores is made of.
    fn grid_terms(size: u64, workers: u32, chunk: u64) -> GridTerms {
        let work = StepWork::of(&grid(size));
        let descriptors = Descriptors::of(&machine("h200"), None, CODELET, true);
        let part = DevicePart::Host {
            workers,
            sockets: 1,
            units: size,
            chunk,
        };
        let case = Case { work, part };
        let derived = Derived::of(&case, &descriptors);
        GridTerms::of(&case, &descriptors, &derived).unwrap()
    }

    #[test]
    fn each_part_goes_with_what_it_is_of() {
        let (small, large) = (grid_terms(2000, 4, 2000), grid_terms(13_000, 4, 13_000));
        assert!(small.memory == 0.0 && small.shared == 0.0 && small.cache > 0.0);
        assert!(large.cache == 0.0 && large.memory > large.shared);
        // All cores need as long as memory lets them, a few take longer.
        let all = grid_terms(13_000, 15, 13_000);
        assert!((all.memory / all.shared - 1.0).abs() < 1e-9);
        assert!(all.memory < large.memory && all.shared == large.shared);
        // Rows of a quarter of a megabyte, and of a tenth.
        let wide = grid_terms(30_000, 4, 30_000);
        assert!(wide.wide_rows > 0.0 && large.wide_rows == 0.0);
        let cut = grid_terms(13_000, 4, 130);
        assert_eq!(cut.chunks, 100.0 * large.chunks);
        assert_eq!(cut.wakes, 100.0 * large.wakes);
        assert!(cut.borders > 2.0 * large.borders && cut.end == large.end);
        let of_all = 15.0 * all.rows / (4.0 * large.rows);
        assert!((of_all - 1.0).abs() < 1e-12, "{of_all}");
    }

    #[test]
    fn only_grids_on_cores_have_passes() {
        let machine = machine("h200");
        let work = StepWork::of(&grid(1000));
        let device = Some(&machine.devices[0]);
        let on_device = Descriptors::of(&machine, device, CODELET, true);
        let part = DevicePart::Host {
            workers: 4,
            sockets: 1,
            units: 1000,
            chunk: 1000,
        };
        let case = Case { work, part };
        let derived = Derived::of(&case, &on_device);
        assert_eq!(GridTerms::of(&case, &on_device, &derived), None);
    }

    #[test]
    fn bandwidth_saturates_as_measured() {
        let host = host();
        for (cores, measured) in [
            (1.0, 21e9),
            (2.0, 38e9),
            (4.0, 70e9),
            (8.0, 105e9),
            (15.0, 139e9),
        ] {
            let reached = smooth(cores * host.core_bandwidth, ceiling(&host));
            let error = reached / measured - 1.0;
            assert!(error.abs() < 0.03, "{cores}: {reached}");
        }
    }

    #[test]
    fn cores_that_do_not_disturb_each_other_have_no_ceiling() {
        let host = HostFigures {
            bandwidth: 400e9,
            ..host()
        };
        assert_eq!(ceiling(&host), f64::INFINITY);
        let reached = smooth(42e9, ceiling(&host));
        assert!((reached / 42e9 - 1.0).abs() < 1e-12, "{reached}");
    }
}
