//! The pipeline of streamed units: chunks are written over the link, computed and read
//! back, on several queues at once.
//!
//! One chunk after the other is limited by the slowest of
//!
//! * the link each way: latency, and bytes at the rate that both directions at
//!   once leave, or one after the other with a single copy engine;
//! * the queues: a chunk occupies its queue from the enqueueing of its write
//!   until the driver knows that it has been read, and `queues` chunks are
//!   under way at once;
//! * the driver, which enqueues a write, kernels and a read a chunk;
//! * the kernels, of which none runs during the first write and the last read, and whose
//!   launches take longer while a write is under way.
//!
//! The first write and the last kernel and read do not overlap with other chunks, and
//! are added once.

use crate::model::descriptors::{DeviceFigures, LinkFigures};

/// The device, link and memory that units are streamed through.
pub struct Pipeline<'a> {
    pub device: &'a DeviceFigures,
    pub link: &'a LinkFigures,
    /// Bytes a second of the host's memory and bus.
    pub host_bandwidth: f64,
    /// The fraction of their own rate that transfers get of the host's memory.
    pub flow: f64,
    pub queues: f64,
}

/// The units that are streamed in a step.
pub struct Stream {
    pub chunks: f64,
    /// Units of a chunk, of the last one, and of all.
    pub chunk: f64,
    pub last: f64,
    pub units: f64,
    /// Bytes of a unit, and of the neighbours that each chunk needs besides.
    pub unit_bytes: f64,
    pub halo_bytes: f64,
    /// Kernels of a chunk, and their seconds a unit if they have the device to themselves.
    pub kernels: f64,
    pub unit_kernel: f64,
    /// Seconds of other kernels that are on the device from the begin, and of one of
    /// them with its launch.
    pub beside: f64,
    pub window: f64,
    /// Other commands that the driver enqueues meanwhile, and the number of them
    /// between two polls of the queues.
    pub others: f64,
    pub lead: f64,
}

impl Stream {
    fn bytes_in(&self, units: f64) -> f64 {
        units * self.unit_bytes + self.halo_bytes
    }

    fn bytes_out(&self, units: f64) -> f64 {
        units * self.unit_bytes
    }

    /// Commands of a chunk: a write, its kernels, and a read.
    fn commands(&self) -> f64 {
        2.0 + self.kernels
    }

    fn all_bytes_in(&self) -> f64 {
        self.units * self.unit_bytes + self.chunks * self.halo_bytes
    }
}

/// Bytes a second to and from a device.
#[derive(Clone, Copy)]
struct Rates {
    up: f64,
    down: f64,
}

impl Pipeline<'_> {
    /// The rates while only one direction is busy.
    fn alone(&self) -> Rates {
        let at = |rate: f64| rate.min(self.host_bandwidth) * self.flow;
        Rates {
            up: at(self.link.h2d),
            down: at(self.link.d2h),
        }
    }

    /// The rates while both directions are busy. A full link or a full memory slows
    /// both by the same factor.
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

    /// Whether both directions can be busy at once.
    fn is_duplex(&self, stream: &Stream) -> bool {
        self.device.copy_engines != 1 && self.queues >= 2.0 && stream.chunks >= 2.0
    }

    /// Seconds that the link is busy with everything.
    pub fn transfers(&self, stream: &Stream) -> f64 {
        let (bytes_in, bytes_out) = (stream.all_bytes_in(), stream.bytes_out(stream.units));
        if self.is_duplex(stream) {
            let (up, down) = self.duplex(bytes_in, bytes_out);
            return up.max(down);
        }
        let alone = self.alone();
        bytes_in / alone.up + bytes_out / alone.down
    }

    /// Seconds from the first enqueue until the driver knows of the last read.
    pub fn seconds(&self, stream: &Stream) -> f64 {
        self.by_link(stream)
            .max(self.by_queues(stream))
            .max(self.by_kernels(stream))
            .max(self.by_driver(stream))
    }

    /// Seconds that writes are under way.
    pub fn writes(&self, stream: &Stream) -> f64 {
        let rates = match self.is_duplex(stream) {
            true => self.both(),
            false => self.alone(),
        };
        stream.chunks * self.link.latency_seconds + stream.all_bytes_in() / rates.up
    }

    /// Seconds of a kernel on `units`, while others run for `sharing` of its time and
    /// other chunks are written for `writing` of it. Where kernels take turns, it waits
    /// for half of another on average.
    fn kernel(&self, stream: &Stream, units: f64, sharing: f64, writing: f64) -> f64 {
        let delay = writing * self.link.launch_delay_seconds;
        let others = match self.device.turns {
            true => 0.5 * (stream.window + delay),
            false => units * stream.unit_kernel,
        };
        let launches = stream.kernels * self.device.launch_seconds;
        launches + delay + units * stream.unit_kernel + sharing * others
    }

    /// The time if the link is the bottleneck.
    fn by_link(&self, stream: &Stream) -> f64 {
        let (latency, alone) = (self.link.latency_seconds, self.alone());
        let latencies = stream.chunks * latency;
        let transfers = if self.is_duplex(stream) {
            let first = stream.bytes_in(stream.chunk);
            let last = stream.bytes_out(stream.last);
            let bytes_out = stream.bytes_out(stream.units) - last;
            let (up, down) = self.duplex(stream.all_bytes_in() - first, bytes_out);
            latencies + first / alone.up + up.max(down) + latency + last / alone.down
        } else {
            2.0 * latencies + self.transfers(stream)
        };
        let before = self.device.enqueue_seconds + transfers;
        let sharing = f64::from(u8::from(stream.beside > before));
        before + self.kernel(stream, stream.last, sharing, 0.0) + self.device.completion_seconds
    }

    /// The time if the kernels are the bottleneck.
    fn by_kernels(&self, stream: &Stream) -> f64 {
        let (latency, alone) = (self.link.latency_seconds, self.alone());
        // Where kernels share the device, launches overlap with other chunks' kernels.
        let chunks = if self.device.turns {
            stream.chunks
        } else {
            1.0
        };
        self.device.enqueue_seconds
            + latency
            + stream.bytes_in(stream.chunk) / alone.up
            + chunks * stream.kernels * self.device.launch_seconds
            + stream.units * stream.unit_kernel
            + latency
            + stream.bytes_out(stream.last) / alone.down
            + self.device.completion_seconds
    }

    /// The time if the queues are the bottleneck: each gets its next chunk when the
    /// driver sees that its previous one has been read.
    fn by_queues(&self, stream: &Stream) -> f64 {
        let (alone, both) = (self.alone(), self.both());
        let enqueue = self.device.enqueue_seconds;
        let latency = self.link.latency_seconds;
        let rounds = (stream.chunks / self.queues).ceil();
        // A write, a kernel and a read: each after the one before, and after
        // the driver has enqueued it. Also how much of that are transfers.
        let cycle = |units: f64, meeting: f64, sharing: f64, writing: f64| {
            let at = |alone: f64, both: f64| (1.0 - meeting) / alone + meeting / both;
            let write = stream.bytes_in(units) * at(alone.up, both.up);
            let read = stream.bytes_out(units) * at(alone.down, both.down);
            let written = enqueue + latency + write;
            let computed =
                written.max(2.0 * enqueue) + self.kernel(stream, units, sharing, writing);
            let done = computed.max(stream.commands() * enqueue) + latency + read;
            let seconds = done + self.device.completion_seconds;
            (
                seconds,
                (write + read) / seconds,
                (latency + write) / seconds,
            )
        };
        // The longer the transfers of a chunk, the more often they overlap with those
        // of the other queues.
        let (rough, busy, writes) = cycle(stream.chunk, 0.5, 0.0, 0.0);
        let meeting = match self.is_duplex(stream) {
            true => ((self.queues - 1.0) * busy).min(1.0),
            false => 0.0,
        };
        let sharing = (stream.beside / (rounds * rough)).min(1.0);
        let writing = ((self.queues - 1.0) * writes).min(1.0);
        let (full, ..) = cycle(stream.chunk, meeting, sharing, writing);
        let (last, ..) = cycle(stream.last, meeting, sharing, 0.0);
        // Each queue begins when the previous one has written. The last chunk is on the
        // queue after those that have one more full chunk.
        let stagger = latency + stream.bytes_in(stream.chunk) / alone.up;
        let queue = (stream.chunks - 1.0) % self.queues;
        let with_last = queue * stagger + (rounds - 1.0) * full + last;
        let before_it = match queue > 0.0 {
            true => (queue - 1.0) * stagger + rounds * full,
            false => 0.0,
        };
        with_last.max(before_it) + self.looked_after(stream, full, rounds)
    }

    /// The total time that queues wait while the driver enqueues other commands. The
    /// driver polls the queues after every `lead` commands and gives each idle queue
    /// its next chunk, whose commands it enqueues. A chunk that takes `full` seconds therefore
    /// occupies its queue for a whole number of polls.
    fn looked_after(&self, stream: &Stream, full: f64, rounds: f64) -> f64 {
        let (enqueue, chunk) = (self.device.enqueue_seconds, stream.commands());
        if stream.others == 0.0 || enqueue == 0.0 {
            return 0.0;
        }
        let cycle = |looks: f64| (looks * stream.lead + chunk * self.queues) * enqueue;
        // The last of the queues that one poll serves must be idle in time, too.
        let fits = |looks: &f64| {
            let before_it = (self.queues / looks).ceil() - 1.0;
            cycle(*looks) - before_it * chunk * enqueue >= full
        };
        let mut few = (1..=self.queues as u32).map(f64::from);
        let looks = few.find(fits).unwrap_or_else(|| {
            let commands = full / enqueue - chunk * self.queues;
            (commands / stream.lead).ceil()
        });
        let meanwhile = (stream.others / stream.lead / looks).min(rounds);
        meanwhile * (cycle(looks) - full).max(0.0)
    }

    /// The time if enqueueing is the bottleneck; the last chunk is still to be done
    /// then.
    fn by_driver(&self, stream: &Stream) -> f64 {
        let (latency, alone) = (self.link.latency_seconds, self.alone());
        let rounds = (stream.chunks / self.queues).ceil();
        let others = stream.others.min(stream.lead * (rounds - 1.0));
        let commands = stream.commands() * stream.chunks;
        let enqueues = (commands - 2.0 + others) * self.device.enqueue_seconds;
        enqueues
            + latency
            + stream.bytes_in(stream.last) / alone.up
            + self.kernel(stream, stream.last, 0.0, 0.0)
            + latency
            + stream.bytes_out(stream.last) / alone.down
            + self.device.completion_seconds
    }
}
