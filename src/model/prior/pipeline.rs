//! Units that flow through a device's memory, chunk by chunk: written over the
//! link, computed, read back, on several queues at once.
//!
//! One chunk after the other is limited by the slowest of
//!
//! * the link each way: latency, and bytes at the rate that both directions at
//!   once leave, or one after the other with a single copy engine;
//! * the queues: a chunk occupies its queue from the enqueueing of its write
//!   until the driver knows that it has been read, and `queues` chunks are
//!   under way at once;
//! * the driver, which enqueues three commands a chunk;
//! * the kernels.
//!
//! To that comes once what no other chunk hides: the first write, and the last
//! kernel and read.

use crate::model::descriptors::{DeviceFigures, LinkFigures};

/// What the units flow through.
pub struct Pipeline<'a> {
    pub device: &'a DeviceFigures,
    pub link: &'a LinkFigures,
    pub host_bandwidth: f64,
    /// The fraction of their own rate that transfers get of the host's memory.
    pub flow: f64,
    pub queues: f64,
}

/// What flows in a step.
pub struct Stream {
    pub chunks: f64,
    pub bytes_in: f64,
    pub bytes_out: f64,
    /// Seconds of the kernels if they have the device to themselves.
    pub kernels: f64,
    /// The last chunk's part of all units.
    pub last: f64,
}

/// Bytes a second to and from a device.
#[derive(Clone, Copy)]
struct Rates {
    up: f64,
    down: f64,
}

impl Pipeline<'_> {
    /// While only one direction is busy.
    fn alone(&self) -> Rates {
        let at = |rate: f64| rate.min(self.host_bandwidth) * self.flow;
        Rates {
            up: at(self.link.h2d),
            down: at(self.link.d2h),
        }
    }

    /// While both are. What they share slows both by the same factor, on a
    /// full link or on a full memory.
    fn both(&self) -> Rates {
        let LinkFigures {
            h2d,
            d2h,
            both_ways,
            ..
        } = *self.link;
        let level = (2.0 * both_ways).min(self.host_bandwidth) / (h2d + d2h);
        let level = level.min(self.flow);
        let alone = self.alone();
        Rates {
            up: (level * h2d).min(alone.up),
            down: (level * d2h).min(alone.down),
        }
    }

    /// Seconds that each direction is busy with these bytes when both begin
    /// together: the one that is left has the link to itself.
    fn duplex(&self, bytes_in: f64, bytes_out: f64) -> (f64, f64) {
        let (alone, both) = (self.alone(), self.both());
        let (up, down) = (bytes_in / both.up, bytes_out / both.down);
        if up > down {
            (down + (bytes_in - down * both.up) / alone.up, down)
        } else {
            (up, up + (bytes_out - up * both.down) / alone.down)
        }
    }

    /// Whether both directions are ever busy at once.
    fn is_duplex(&self, stream: &Stream) -> bool {
        self.device.copy_engines != 1 && self.queues >= 2.0 && stream.chunks >= 2.0
    }

    /// Seconds that the link is busy with everything.
    pub fn transfers(&self, stream: &Stream) -> f64 {
        if self.is_duplex(stream) {
            let (up, down) = self.duplex(stream.bytes_in, stream.bytes_out);
            return up.max(down);
        }
        let alone = self.alone();
        stream.bytes_in / alone.up + stream.bytes_out / alone.down
    }

    /// Seconds from the first enqueue until the driver knows of the last read;
    /// it enqueues `others` other commands meanwhile.
    pub fn seconds(&self, stream: &Stream, others: f64) -> f64 {
        self.by_link(stream)
            .max(self.by_queues(stream))
            .max(self.by_driver(stream, others))
    }

    /// As long as the driver takes to enqueue; what it enqueues last is still
    /// to be done.
    fn by_driver(&self, stream: &Stream, others: f64) -> f64 {
        let (latency, alone) = (self.link.latency_seconds, self.alone());
        let enqueues = (3.0 * stream.chunks - 2.0 + others) * self.device.enqueue_seconds;
        enqueues
            + latency
            + stream.bytes_in * stream.last / alone.up
            + self.device.launch_seconds
            + stream.kernels * stream.last
            + latency
            + stream.bytes_out * stream.last / alone.down
            + self.device.completion_seconds
    }

    /// As long as the link takes, filled without a pause.
    fn by_link(&self, stream: &Stream) -> f64 {
        let (latency, alone) = (self.link.latency_seconds, self.alone());
        let latencies = stream.chunks * latency;
        let last_kernel = self.device.launch_seconds + stream.kernels * stream.last;
        let transfers = if self.is_duplex(stream) {
            let first = stream.bytes_in / stream.chunks;
            let last = stream.bytes_out * stream.last;
            let (up, down) = self.duplex(stream.bytes_in - first, stream.bytes_out - last);
            latencies + first / alone.up + up.max(down) + latency + last / alone.down
        } else {
            2.0 * latencies + self.transfers(stream)
        };
        self.device.enqueue_seconds + transfers + last_kernel + self.device.completion_seconds
    }

    /// As long as the queues take: each gets its next chunk when the driver
    /// knows that the one before has been read.
    fn by_queues(&self, stream: &Stream) -> f64 {
        let (alone, both) = (self.alone(), self.both());
        let each = |bytes: f64, alone: f64, both: f64, meeting: f64| {
            bytes / stream.chunks * ((1.0 - meeting) / alone + meeting / both)
        };
        // A write, a kernel and a read: each after the one before, and after
        // the driver has enqueued it. Also how much of that are transfers.
        let cycle = |meeting: f64| {
            let write = each(stream.bytes_in, alone.up, both.up, meeting);
            let read = each(stream.bytes_out, alone.down, both.down, meeting);
            let enqueue = self.device.enqueue_seconds;
            let kernel = self.device.launch_seconds + stream.kernels / stream.chunks;
            let written = enqueue + self.link.latency_seconds + write;
            let computed = written.max(2.0 * enqueue) + kernel;
            let done = computed.max(3.0 * enqueue) + self.link.latency_seconds + read;
            let seconds = done + self.device.completion_seconds;
            (seconds, (write + read) / seconds)
        };
        // The more of a chunk's time are transfers, the more often they meet
        // those of the other queues.
        let seconds = match self.is_duplex(stream) {
            true => {
                let (_, busy) = cycle(0.5);
                cycle(((self.queues - 1.0) * busy).min(1.0)).0
            }
            false => cycle(0.0).0,
        };
        let rounds = (stream.chunks / self.queues).ceil();
        let first_write = self.link.latency_seconds + each(stream.bytes_in, alone.up, both.up, 0.0);
        let stagger = ((stream.chunks - 1.0) % self.queues) * first_write;
        stagger + rounds * seconds
    }
}
