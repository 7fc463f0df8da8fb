//! The step of a product on a device with device memory.

use crate::model::case::{Case, Derived, DevicePart};
use crate::model::descriptors::{Descriptors, DeviceFigures, HostFigures};

/// Commands of a streamed chunk: writes of columns, values and rows' ends, the
/// launch, and the result's read.
const COMMANDS: f64 = 5.0;
const WRITES: f64 = 3.0;

/// Compute, memory, link, and total seconds.
///
/// What is held is one launch; alone (`solo`) that is the step, or the time in
/// which it is enqueued. Otherwise the driver has to hear of its end. Chunks
/// follow one another as fast as the slowest of the driver, the link, the
/// device and the queues lets them; `flow` is left of the link's rate.
pub fn step(
    case: &Case,
    device: &DeviceFigures,
    host: &HostFigures,
    flow: f64,
) -> (f64, f64, f64, f64) {
    let DevicePart::Discrete {
        held,
        streamed,
        chunk,
        queues,
        solo,
        ..
    } = case.part
    else {
        return (0.0, 0.0, 0.0, 0.0);
    };
    let work = &case.work;
    let kernels = |units: f64| {
        let compute = device
            .flops
            .map_or(0.0, |rate| units * work.unit_flops / rate);
        let memory = units * work.unit_traffic / (device.bandwidth * device.efficiency);
        (compute, memory)
    };
    let (enqueue, launch) = (device.enqueue_seconds, device.launch_seconds);
    let (compute, memory) = kernels((held + streamed) as f64);
    let on_held = match held {
        0 => 0.0,
        units => {
            let (compute, memory) = kernels(units as f64);
            launch + compute.max(memory)
        }
    };
    if solo {
        return (compute, memory, 0.0, on_held.max(enqueue));
    }
    let first = if held > 0 { enqueue } else { 0.0 };
    let held_end = match held {
        0 => 0.0,
        _ => first + on_held + device.completion_seconds,
    };
    let (Some(link), true) = (&device.link, streamed > 0) else {
        return (compute, memory, 0.0, held_end);
    };
    let chunks = case.part.chunks() as f64;
    let each = streamed as f64 / chunks;
    let unit = work.unit_bytes as f64;
    let results = work
        .matrix
        .map_or(0.0, |m| (m.rows * work.number_bytes()) as f64);
    let result = results * each / work.units.max(1) as f64;
    let rate = link.h2d.min(host.bandwidth) * flow;
    let up = each * unit / rate;
    let down = result / (link.d2h * flow);
    let (one_compute, one_memory) = kernels(each);
    let kernel = one_compute.max(one_memory);
    let delay = link.launch_delay_seconds;
    let path =
        WRITES * link.latency_seconds + up + launch + delay + kernel + link.latency_seconds + down;
    let lanes = f64::from(queues.max(1))
        .min(chunk.max(1) as f64)
        .min(chunks);
    let period = (COMMANDS * enqueue)
        .max(up)
        .max(path / lanes)
        .max(kernel + launch);
    let flowing =
        first + COMMANDS * enqueue + path + (chunks - 1.0) * period + device.completion_seconds;
    let both = first + on_held + chunks * (kernel + launch) + device.completion_seconds;
    let transfers = streamed as f64 * unit / rate;
    (compute, memory, transfers, held_end.max(flowing).max(both))
}

/// An entry: two loads, a gather and a product of one core.
const ENTRY: f64 = 1e-9;
/// A row's end: its sum, its store, and a branch that was not foreseen.
const ROW: f64 = 5e-9;
/// A line from a shared cache, while several are loaded at once ...
const NEAR: f64 = 6e-9;
/// ... and a line from memory.
const FAR: f64 = 30e-9;

/// The part of a shared cache up to which a working set stays in it: other programs use
/// the cache as well ...
const KEPT: f64 = 0.5;
/// ... and the part from which nothing of it stays.
const LOST: f64 = 0.75;

/// Seconds of a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProductTerms {
    pub entries: f64,
    pub rows: f64,
    /// Lines that a core's own cache misses, and a shared one.
    pub near_jumps: f64,
    pub far_jumps: f64,
    /// Bytes that the host's last cache does not keep from step to step, at a core's
    /// bandwidth each. `None` for devices.
    pub beyond_cache: Option<f64>,
    /// The end of a step, which the driver must see.
    pub barrier: f64,
}

impl ProductTerms {
    /// The terms of a product; `None` for other work.
    pub fn of(case: &Case, descriptors: &Descriptors) -> Option<Self> {
        let matrix = case.work.matrix.as_ref()?;
        let part = case.part.units() as f64 / case.work.units.max(1) as f64;
        let workers = match case.part {
            DevicePart::Host { workers, .. } => workers,
            DevicePart::Discrete { .. } => descriptors.device?.compute_units,
        };
        let each = part / f64::from(workers.max(1));
        let entries = matrix.nonzeros as f64 * each;
        let host = &descriptors.host;
        let beyond_cache = match descriptors.device {
            Some(_) => None,
            None => {
                let derived = Derived::of(case, descriptors);
                let lost = derived.over_l3.map_or(1.0, lost);
                let rate = f64::from(workers.max(1)) * host.core_bandwidth;
                Some(lost * derived.traffic_bytes / rate)
            }
        };
        Some(Self {
            entries: entries * ENTRY,
            rows: matrix.rows as f64 * each * ROW,
            near_jumps: entries * matrix.near_jumps * NEAR,
            far_jumps: entries * matrix.far_jumps * FAR,
            beyond_cache,
            barrier: match &descriptors.device {
                Some(device) => device.enqueue_seconds + device.completion_seconds,
                None => host.launch_seconds + host.completion_seconds,
            },
        })
    }
}

/// The part of a working set of `over` times the cache that is loaded again in each
/// step.
pub(super) fn lost(over: f64) -> f64 {
    ((over - KEPT) / (LOST - KEPT)).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::descriptors::LinkFigures;
    use crate::model::{MatrixFigures, StepWork};

    const DEVICE: DeviceFigures = DeviceFigures {
        compute_units: 100,
        clock_mhz: None,
        memory: 1 << 30,
        bandwidth: 1e12,
        flops: None,
        copy_engines: 2,
        turns: false,
        launch_seconds: 2e-6,
        enqueue_seconds: 1e-5,
        completion_seconds: 3e-5,
        efficiency: 1.0,
        link: Some(LinkFigures {
            h2d: 5e10,
            d2h: 5e10,
            both_ways: 4e10,
            latency_seconds: 0.0,
            launch_delay_seconds: 0.0,
        }),
    };

    fn case(held: u64, streamed: u64, chunk: u64, solo: bool) -> Case {
        Case {
            work: StepWork {
                superstep: None,
                units: 1000,
                unit_bytes: 24_000,
                unit_points: 2000,
                element_bytes: 12,
                dimensions: 1,
                unit_flops: 4000.0,
                unit_traffic: 25_000.0,
                matrix: Some(MatrixFigures {
                    rows: 100_000,
                    columns: 100_000,
                    nonzeros: 2_000_000,
                    mean: 20.0,
                    variation: 0.0,
                    most: 20,
                    bandwidth: 100,
                    irregular: 0.3,
                    near_lines: 0.1,
                    far_lines: 0.1,
                    near_jumps: 0.1,
                    far_jumps: 0.0,
                }),
            },
            part: DevicePart::Discrete {
                held,
                slots: 2 * held + 3,
                streamed,
                chunk,
                queues: 3,
                solo,
            },
        }
    }

    fn total(case: &Case) -> f64 {
        let host = HostFigures {
            bandwidth: 1e11,
            ..HostFigures::default()
        };
        step(case, &DEVICE, &host, 1.0).3
    }

    #[test]
    fn what_is_held_takes_a_launch_and_barriers_take_the_driver() {
        // 25 MB at 1 TB/s.
        assert!((total(&case(1000, 0, 1, true)) - 27e-6).abs() < 1e-12);
        assert!((total(&case(1000, 0, 1, false)) - 67e-6).abs() < 1e-12);
        // Ten units take less than it takes to enqueue them.
        assert!((total(&case(10, 0, 1, true)) - 1e-5).abs() < 1e-12);
    }

    #[test]
    fn chunks_flow_at_the_pace_of_the_link_or_of_the_driver() {
        // 24 MB at 50 GB/s are 480 us.
        let large = total(&case(0, 1000, 250, false));
        assert!((480e-6..680e-6).contains(&large), "{large}");
        // A thousand chunks of five commands of 10 us.
        let small = total(&case(0, 1000, 1, false));
        assert!((0.05..0.0502).contains(&small), "{small}");
    }
}
