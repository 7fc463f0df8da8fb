//! The step of a device with device memory.

use super::pipeline::{Pipeline, Stream};
use crate::engine::corun;
use crate::model::case::{Case, DevicePart, StepWork};
use crate::model::descriptors::{DeviceFigures, HostFigures, LinkFigures};

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
