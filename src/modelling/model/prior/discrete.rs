//! The step of a device with device memory, also that of a product.

use super::pipeline::{Pipeline, Stream};
use crate::engine::corun;
use crate::model::case::{Case, Derived, DevicePart, StepWork};
use crate::model::descriptors::{Descriptors, DeviceFigures, HostFigures, LinkFigures};

/// Commands of a streamed chunk beside its kernels: a write, and a read.
const COPIES: f64 = 2.0;

/// Launches that the engine enqueues before the commands of the first chunk, and
/// between those of later chunks.
const LEAD: f64 = corun::grid::LEAD as f64;
const SERIES: f64 = corun::grid::SERIES as f64;

/// Compute, memory, link, and total seconds.
///
/// What is held is computed window after window, each after the device's
/// launch overhead, or as quickly as the driver enqueues them. Alone (`solo`)
/// that is the step. Otherwise the driver first writes the halo, and at the end
/// has to hear of the last completion. What is streamed flows meanwhile, and
/// the kernels of both share the device.
pub fn step(
    case: &Case,
    device: &DeviceFigures,
    host: &HostFigures,
    flow: f64,
) -> (f64, f64, f64, f64) {
    let DevicePart::Discrete { solo, .. } = case.part else {
        return (0.0, 0.0, 0.0, 0.0);
    };
    let own = DiscreteStep::of(case, device);
    let units = own.held_computed + own.streamed_computed;
    let (compute, memory) = (own.compute(units), own.memory(units));
    if solo {
        return (compute, memory, 0.0, own.launches());
    }
    let (Some(stream), Some(link)) = (own.stream(), &device.link) else {
        return (compute, memory, 0.0, own.held_end());
    };
    let pipeline = Pipeline {
        device,
        link,
        host_bandwidth: host.bandwidth.min(host.transfers()),
        flow,
        queues: own.queues,
    };
    let before = own.before_streams();
    let flowing = before + pipeline.seconds(&stream);
    let kernels = before + own.all_kernels(units, pipeline.writes(&stream), link);
    let total = own.held_end().max(flowing).max(kernels);
    let total = total.max(own.enqueueing() + device.completion_seconds);
    (compute, memory, pipeline.transfers(&stream), total)
}

/// Seconds that the driver takes to enqueue the launches on held units, and the
/// commands of streamed chunks.
pub fn enqueues(case: &Case, device: &DeviceFigures) -> (f64, f64) {
    let own = DiscreteStep::of(case, device);
    let enqueue = device.enqueue_seconds;
    (own.windows * enqueue, own.commands() * own.chunks * enqueue)
}

/// A part of a step on a device with device memory.
struct DiscreteStep<'a> {
    work: &'a StepWork,
    device: &'a DeviceFigures,
    link: LinkFigures,
    steps: f64,
    held: f64,
    /// Units computed in all steps of what is held, and of what is streamed.
    held_computed: f64,
    streamed_computed: f64,
    /// Launches on what is held.
    windows: f64,
    /// Borders of the held units with other units: a halo to write, an edge to read.
    borders: f64,
    streamed: f64,
    chunks: f64,
    /// Units of a chunk, and of the last one.
    chunk: f64,
    last: f64,
    queues: f64,
}

impl<'a> DiscreteStep<'a> {
    fn of(case: &'a Case, device: &'a DeviceFigures) -> Self {
        let (held, streamed, chunk, queues) = match case.part {
            DevicePart::Host { .. } => (0, 0, 1, 1),
            DevicePart::Discrete {
                held,
                streamed,
                chunk,
                queues,
                ..
            } => (held, streamed, chunk.max(1), queues.max(1)),
        };
        let (chunks, work) = (case.part.chunks(), &case.work);
        // What it streams lies on one side of what it holds.
        let beyond = work.units.saturating_sub(held + streamed).min(2);
        let borders = match held {
            0 => 0,
            _ => beyond.max(u64::from(streamed > 0)),
        };
        let steps = f64::from(work.steps());
        Self {
            steps,
            held_computed: work.computed(held, borders) as f64,
            streamed_computed: work.computed(streamed, 2 * chunks) as f64,
            work,
            device,
            link: device.link.unwrap_or_default(),
            held: held as f64,
            windows: steps * case.part.windows() as f64,
            borders: borders as f64,
            streamed: streamed as f64,
            chunks: chunks as f64,
            chunk: chunk as f64,
            last: (streamed - chunks.saturating_sub(1) * chunk) as f64,
            queues: f64::from(queues),
        }
    }

    /// Commands of a streamed chunk.
    fn commands(&self) -> f64 {
        COPIES + self.steps
    }

    fn compute(&self, units: f64) -> f64 {
        let rate = self.device.flops;
        rate.map_or(0.0, |rate| units * self.work.unit_flops / rate)
    }

    fn memory(&self, units: f64) -> f64 {
        units * self.work.unit_traffic / (self.device.bandwidth * self.device.efficiency)
    }

    /// Seconds of kernels that have the device to themselves.
    fn kernels(&self, units: f64) -> f64 {
        self.compute(units).max(self.memory(units))
    }

    /// Seconds of the launches on held units.
    fn launches(&self) -> f64 {
        let kernels = self.windows * self.device.launch_seconds + self.kernels(self.held_computed);
        kernels.max(self.windows * self.device.enqueue_seconds)
    }

    /// Seconds of all kernels, one after the other, until the driver sees the last,
    /// while writes are active for `writes` seconds.
    fn all_kernels(&self, units: f64, writes: f64, link: &LinkFigures) -> f64 {
        let device = self.device;
        // Kernels that share the device start concurrently.
        let of_chunks = if device.turns {
            self.steps * self.chunks
        } else {
            0.0
        };
        let launches = self.windows + of_chunks;
        let alone = launches * device.launch_seconds + self.kernels(units);
        // A delayed launch overlaps with more of the writes.
        let delay = link.launch_delay_seconds;
        let delayed = launches.min(writes * launches / (alone + launches * delay));
        alone + delayed * delay + device.completion_seconds
    }

    /// When the driver knows that the held units are done; 0 without any.
    fn held_end(&self) -> f64 {
        if self.held == 0.0 {
            return 0.0;
        }
        let enqueue = self.device.enqueue_seconds;
        let unit = self.steps * self.work.unit_bytes as f64;
        let halo = self.borders * (self.link.latency_seconds + unit / self.link.h2d);
        let begin = enqueue + halo.max(self.borders * enqueue);
        // The edges' reads overlap with later windows, if there are any.
        let edge = match self.windows == self.steps && self.borders > 0.0 {
            true => self.link.latency_seconds + unit / self.link.d2h,
            false => 0.0,
        };
        begin + self.launches() + edge + self.device.completion_seconds
    }

    /// When the driver reaches the first chunk: after the halo's write and some
    /// launches, and after the edges' reads if these are all launches.
    fn before_streams(&self) -> f64 {
        let edges = if self.windows < LEAD {
            self.borders
        } else {
            0.0
        };
        (self.borders + self.windows.min(LEAD) + edges) * self.device.enqueue_seconds
    }

    /// Seconds that the driver is busy: it enqueues halos and edges, launches
    /// on held units and the commands of chunks one after the other.
    fn enqueueing(&self) -> f64 {
        let commands = 2.0 * self.borders + self.windows + self.commands() * self.chunks;
        commands * self.device.enqueue_seconds
    }

    /// The stream of the step, if units are streamed.
    fn stream(&self) -> Option<Stream> {
        let unit_bytes = self.work.unit_bytes as f64;
        (self.streamed > 0.0).then(|| Stream {
            chunks: self.chunks,
            chunk: self.chunk.min(self.streamed),
            last: self.last,
            units: self.streamed,
            unit_bytes,
            halo_bytes: 2.0 * self.steps * unit_bytes,
            kernels: self.steps,
            unit_kernel: self.kernels(self.streamed_computed / self.streamed),
            window: match self.windows > 0.0 {
                true => self.launches() / self.windows,
                false => 0.0,
            },
            beside: self.launches(),
            others: (self.windows - LEAD).max(0.0),
            lead: SERIES,
        })
    }
}

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
pub fn product_step(
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
        product_step(case, &DEVICE, &host, 1.0).3
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
