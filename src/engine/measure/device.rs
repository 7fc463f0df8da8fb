//! Measures a device other than the host's cores, its link, and copies from its memory to another
//! one's.

use std::collections::BTreeMap;

use super::MeasureError;
use super::probe::{HostMemory, Probe, median, rounded, seconds};
use crate::codelet::{BufferId, HostMemoryId, Memory, NumberFormat, ProductPrecision};
use crate::machine::{DeviceSpec, LinkSpec, PeerSpec};
use crate::runtime::{
    Command, CommandKind, Completion, DeviceId, Location, PeerPath, QueueId, Rows, RuntimeError,
};

/// Transfers each way that meet on the link.
const MEETING: usize = 4;

/// What is assumed where nothing measures it.
const CONCURRENT_KERNELS: u32 = 16;

/// The device's memory, its overheads, and its link if it has one. Of one that is `like` another
/// that was measured only the link is: it may be in a slower slot.
pub fn measure(
    probe: &mut Probe,
    id: DeviceId,
    like: Option<&DeviceSpec>,
    memory: &HostMemory,
    progress: &mut dyn FnMut(&str, &str),
) -> Result<DeviceSpec, MeasureError> {
    let device = probe.device(id).clone();
    let queue = probe.queue(id)?;
    let bytes = probe.size(id, 8)?.min(memory.bytes);

    if let Some(like) = like.filter(|_| device.shares_host_memory) {
        return Ok(DeviceSpec {
            name: device.name,
            ..like.clone()
        });
    }
    let mut link = None;
    let mut copy_engines = 1;
    let (from, to) = if device.shares_host_memory {
        (Memory::Host(memory.from), Memory::Host(memory.to))
    } else {
        let buffer = probe.buffer(id, bytes)?;
        let second = probe.buffer(id, bytes)?;
        progress(&device.name, "transfers");
        let (found, engines) = measure_link(probe, id, memory, buffer, bytes)?;
        if let Some(like) = like {
            probe.free_buffers();
            return Ok(DeviceSpec {
                name: device.name,
                link: Some(LinkSpec {
                    launch_delay_ns: like.link.as_ref().map_or(0, |link| link.launch_delay_ns),
                    ..found
                }),
                ..like.clone()
            });
        }
        (link, copy_engines) = (Some(found), engines);
        (Memory::Device(buffer), Memory::Device(second))
    };

    progress(&device.name, "copy in its memory");
    let (copy, traffic) = probe.large_copy(from, to, bytes);
    let memory_bandwidth = rounded(probe.rate(queue, &copy, traffic)?);

    let mut efficiency = BTreeMap::new();
    if device.fp64 {
        progress(&device.name, "stencils");
        efficiency = probe.efficiencies(queue, (from, to), bytes, memory_bandwidth)?;
    }
    let products = probe.options().products;
    if products {
        progress(&device.name, "products");
    }
    let mut product = |precision: ProductPrecision, is_wanted: bool| {
        let wanted = is_wanted.then_some(precision);
        (wanted.map(|precision| probe.product(queue, (from, to), bytes, precision))).transpose()
    };
    let flops_f32 = product(NumberFormat::F32.into(), products)?;
    let flops_f16 = product(NumberFormat::F16.into(), products)?;
    let flops_tf32 = product(NumberFormat::Tf32.into(), products)?;
    let flops_f64 = product(ProductPrecision::Double, products && device.fp64)?;

    progress(&device.name, "launch overhead and completion latency");
    let short = probe.copy(from, to, device.compute_units.into(), 16);
    let row = probe.row(queue, &copy, &short)?;
    if let Some(link) = &mut link {
        let write = Command::write(memory.from, 0..bytes, probe.buffer(id, bytes)?, 0);
        let other = (probe.queue(id)?, &write);
        let beside = probe.row_beside(Some(other), queue, &copy, &short)?;
        link.launch_delay_ns = beside.period.saturating_sub(row.period);
    }
    let completion_latency_ns = probe.completion(queue, &short)?;
    probe.free_buffers();

    Ok(DeviceSpec {
        name: device.name,
        model: device.model,
        kind: device.kind,
        compute_units: device.compute_units,
        clock_mhz: device.clock_mhz,
        memory: device.memory,
        memory_bandwidth,
        fp64: device.fp64,
        flops_f64,
        flops_f32,
        flops_f16,
        flops_tf32,
        copy_engines,
        queues: device.queues,
        concurrent_kernels: CONCURRENT_KERNELS,
        launch_overhead_ns: row.period,
        enqueue_ns: row.enqueue,
        completion_latency_ns,
        shares_host_memory: device.shares_host_memory,
        efficiency,
        seconds: BTreeMap::new(),
        link,
    })
}

/// Both directions alone and together, the latency, and the copy engines.
fn measure_link(
    probe: &mut Probe,
    id: DeviceId,
    memory: &HostMemory,
    buffer: BufferId,
    bytes: u64,
) -> Result<(LinkSpec, u32), MeasureError> {
    let (up, down) = (probe.queue(id)?, probe.queue(id)?);
    let write = |bytes| Command::write(memory.from, 0..bytes, buffer, 0);
    let read = Command::read(buffer, 0, memory.to, 0..bytes);
    let h2d = probe.rate(up, &write(bytes), bytes as f64)?;
    let d2h = probe.rate(down, &read, bytes as f64)?;

    // Each direction has its half of the buffer.
    let half = bytes / 2;
    let away = Command::read(buffer, half, memory.to, half..bytes);
    let mut overlaps = Vec::new();
    let both_ways = probe.median(|probe| {
        let done = meet(probe, (up, &write(half)), (down, &away))?;
        let meeting = Meeting::of(&done);
        overlaps.push(meeting.overlap);
        Ok(meeting.each_way)
    })?;
    // Directions that took turns hardly overlap.
    let copy_engines = if median(overlaps) > 0.5 { 2 } else { 1 };
    let latency_ns = probe.row(up, &write(bytes), &write(64))?.period;
    let link = LinkSpec {
        h2d: rounded(h2d),
        d2h: rounded(d2h),
        both_ways: rounded(both_ways.min(h2d.max(d2h))),
        latency_ns,
        launch_delay_ns: 0,
    };
    Ok((link, copy_engines))
}

/// Several transfers each way, enqueued in turn.
fn meet(
    probe: &mut Probe,
    up: (QueueId, &Command),
    down: (QueueId, &Command),
) -> Result<Vec<Completion>, MeasureError> {
    for _ in 0..MEETING {
        for (queue, command) in [up, down] {
            probe.submit(queue, command.clone())?;
        }
    }
    probe.completions(2 * MEETING)
}

/// What transfers in both directions at once show.
struct Meeting {
    /// Bytes a second each way, from when both directions run until one ends.
    each_way: f64,
    /// Fraction of that time in which a write and a read ran together.
    overlap: f64,
}

impl Meeting {
    fn of(done: &[Completion]) -> Self {
        let of = |kind| move |c: &&Completion| c.kind == kind;
        let span = |kind| {
            let begin = done.iter().filter(of(kind)).map(|c| c.started).min();
            let end = done.iter().filter(of(kind)).map(|c| c.ended).max();
            (begin.unwrap_or(0), end.unwrap_or(0))
        };
        let (up, down) = (span(CommandKind::Write), span(CommandKind::Read));
        let (begin, end) = (up.0.max(down.0), up.1.min(down.1));
        let within = |a: &Completion, begin, end| {
            let (begin, end) = (a.started.max(begin), a.ended.min(end));
            end.saturating_sub(begin) as f64 * 1e-9
        };
        let moved: f64 = done
            .iter()
            .map(|c| c.bytes as f64 * within(c, begin, end) / seconds(c.started, c.ended))
            .sum();
        let together: f64 = done
            .iter()
            .filter(of(CommandKind::Write))
            .flat_map(|write| {
                let reads = done.iter().filter(of(CommandKind::Read));
                reads.map(move |read| within(read, write.started, write.ended))
            })
            .sum();
        let window = seconds(begin, end);
        Self {
            each_way: moved / window / 2.0,
            overlap: together / window,
        }
    }
}

// Measures copies from one device's memory to another one's: directly, where that is
// possible, and through host memory. The faster way is the machine's.

/// Bytes of the largest copy at most. Some drivers copy directly at a fiftieth of the
/// links' speed, and machines with many devices have many pairs.
const MOST: u64 = 256 << 20;
/// Bytes of a copy that takes as long as one of nothing.
const LITTLE: u64 = 64;

/// The ways between these devices, which have memory of their own. The runtime uses
/// them from then on.
pub fn measure_peers(
    probe: &mut Probe,
    devices: &[DeviceId],
    progress: &mut dyn FnMut(&str, &str),
) -> Result<Vec<PeerSpec>, MeasureError> {
    let mut peers = Vec::new();
    for from in devices {
        for to in devices.iter().filter(|to| *to != from) {
            let source = probe.device(*from).name.clone();
            let target = probe.device(*to).name.clone();
            progress(&source, &format!("copies to {target}"));
            let mut best: Option<PeerSpec> = None;
            for through_host in [false, true] {
                let found = measure_way(probe, (*from, *to), through_host)?;
                best = found
                    .filter(|found| best.as_ref().is_none_or(|b| b.bandwidth < found.bandwidth))
                    .or(best);
            }
            if let Some(best) = best {
                probe.set_peer_path(*from, *to, PeerPath::from(&best))?;
                peers.push(best);
            }
        }
    }
    Ok(peers)
}

/// The figures of copies that go so; `None` where they cannot.
fn measure_way(
    probe: &mut Probe,
    (from, to): (DeviceId, DeviceId),
    through_host: bool,
) -> Result<Option<PeerSpec>, MeasureError> {
    let path = PeerPath {
        bandwidth: 0.0,
        through_host,
    };
    match probe.set_peer_path(from, to, path) {
        Ok(()) => {}
        Err(RuntimeError::Unsupported { .. }) => return Ok(None),
        Err(error) => return Err(error.into()),
    }
    let bytes = probe.size(from, 8)?.min(probe.size(to, 8)?).min(MOST);
    let (source, target) = (probe.buffer(from, bytes)?, probe.buffer(to, bytes)?);
    let host = probe.host(LITTLE)?;
    let queues = (probe.queue(from)?, probe.queue(to)?);
    let mut seconds = |bytes| {
        let copy = (bytes > 0).then(|| Command::Copy {
            from: Location::device(source, 0),
            to: Location::device(target, 0),
            rows: Rows::one(bytes),
        });
        probe.median(|probe| once(probe, queues, (source, target), host, copy.as_ref()))
    };
    let (none, little, whole) = (seconds(0)?, seconds(LITTLE)?, seconds(bytes)?);
    // The clock counts nanoseconds.
    let bandwidth = (bytes - LITTLE) as f64 / (whole - little).max(1e-9);
    probe.free_queues();
    probe.free_buffers();
    Ok(Some(PeerSpec {
        from: probe.device(from).name.clone(),
        to: probe.device(to).name.clone(),
        bandwidth: rounded(bandwidth),
        latency_ns: (1e9 * (little - none).max(0.0)) as u64,
        through_host,
    }))
}

/// Seconds of a copy of which the target reads something afterwards, by the host's clock.
/// The source wrote something before. A driver that keeps one memory for all devices moves
/// a buffer only where it is used: without these two, nothing moves, and no time is right.
fn once(
    probe: &mut Probe,
    (source_queue, target_queue): (QueueId, QueueId),
    (source, target): (BufferId, BufferId),
    host: HostMemoryId,
    copy: Option<&Command>,
) -> Result<f64, MeasureError> {
    let little = |to| Command::write(host, 0..LITTLE, to, 0);
    probe.submit(source_queue, little(source))?;
    probe.submit(target_queue, little(target))?;
    probe.completions(2)?;
    let begin = probe.now();
    if let Some(copy) = copy {
        probe.submit(target_queue, copy.clone())?;
    }
    let read = Command::read(target, 0, host, 0..LITTLE);
    probe.submit(target_queue, read)?;
    probe.completions(1 + usize::from(copy.is_some()))?;
    Ok(seconds(begin, probe.now()))
}
