//! Measures the pool of host cores, and host memory while cores and links both use it.

use super::probe::{HostMemory, Probe, rounded, seconds};
use super::{MachineDescription, MeasureError};
use crate::codelet::Memory;
use crate::machine::{HostSpec, file};
use crate::runtime::{Command, CommandKind, Completion, DeviceId};

/// Most bytes that one core copies by itself.
const ONE_CORE: u64 = 256 << 20;

/// Copies by all cores and by one, and what a launch costs.
pub fn measure(
    probe: &mut Probe,
    pool: DeviceId,
    memory: &HostMemory,
    about: &MachineDescription,
    progress: &mut dyn FnMut(&str, &str),
) -> Result<HostSpec, MeasureError> {
    let device = probe.device(pool).clone();
    let queue = probe.queue(pool)?;
    let (from, to) = (Memory::Host(memory.from), Memory::Host(memory.to));

    progress(&device.name, "copy by all cores");
    let (copy, traffic) = probe.large_copy(from, to, memory.bytes);
    let memory_bandwidth = rounded(probe.rate(queue, &copy, traffic)?);

    progress(&device.name, "copy by one core");
    // One unit is never divided, so one core copies it.
    let bytes = memory.bytes.min(ONE_CORE);
    let by_one = probe.copy(from, to, 1, bytes as u32);
    let core_bandwidth = rounded(probe.rate(queue, &by_one, 2.0 * bytes as f64)?);

    progress(&device.name, "stencils");
    let efficiency = probe.efficiencies(queue, (from, to), memory.bytes, memory_bandwidth)?;

    let reached = memory_bandwidth * file::efficiency(&efficiency, "stencil5");
    let flops = probe.superstep(queue, (from, to), memory.bytes, reached)?;

    progress(&device.name, "launch overhead and completion latency");
    let short = probe.copy(from, to, device.compute_units.into(), 16);
    let launch_overhead_ns = probe.row(queue, &copy, &short)?.period;
    let completion_latency_ns = probe.completion(queue, &short)?;

    Ok(HostSpec {
        model: device.model,
        sockets: about.sockets.max(1),
        cores: device.compute_units,
        clock_mhz: device.clock_mhz,
        l2: about.l2,
        l3: about.l3,
        memory: device.memory,
        memory_bandwidth,
        shared_bandwidth: None,
        // A single core beats all of them only by a measurement's error.
        core_bandwidth: core_bandwidth.min(memory_bandwidth),
        bus_bandwidth: None,
        flops,
        launch_overhead_ns,
        completion_latency_ns,
        efficiency,
    })
}

/// Transfers each way, and copies by the cores, that meet in host memory.
const MEETING: usize = 4;

/// Bytes a second that host memory sustains for a copy by all cores of `pool`
/// and transfers both ways with each of `devices`, which have memory of their
/// own; at least `alone`, what the cores reach by themselves. `None` without
/// such devices.
pub fn measure_shared(
    probe: &mut Probe,
    pool: DeviceId,
    devices: &[DeviceId],
    memory: &HostMemory,
    alone: f64,
    progress: &mut dyn FnMut(&str, &str),
) -> Result<Option<f64>, MeasureError> {
    if devices.is_empty() {
        return Ok(None);
    }
    progress(
        &probe.device(pool).name.clone(),
        "copy by all cores beside transfers",
    );
    // Cores have the first half of the memory, links the second.
    let half = memory.bytes / 2;
    let (from, to) = (Memory::Host(memory.from), Memory::Host(memory.to));
    let (copy, traffic) = probe.large_copy(from, to, half);
    let mut commands = vec![(probe.queue(pool)?, copy)];
    for device in devices {
        let bytes = probe.size(*device, 8)?.min(half);
        let (there, back) = (probe.buffer(*device, bytes)?, probe.buffer(*device, bytes)?);
        let write = Command::write(memory.from, half..half + bytes, there, 0);
        let read = Command::read(back, 0, memory.to, half..half + bytes);
        commands.push((probe.queue(*device)?, write));
        commands.push((probe.queue(*device)?, read));
    }
    let together = probe.median(|probe| {
        for _ in 0..MEETING {
            for (queue, command) in &commands {
                probe.submit(*queue, command.clone())?;
            }
        }
        let done = probe.completions(MEETING * commands.len())?;
        Ok(while_all_run(&done, traffic))
    })?;
    probe.free_buffers();
    Ok(Some(rounded(together.max(alone))))
}

/// Bytes a second in host memory from when cores, writes and reads all run
/// until one kind is through. A copy by the cores makes this `traffic`, in
/// bytes; 0 if the kinds took turns.
fn while_all_run(done: &[Completion], traffic: f64) -> f64 {
    let kinds = [CommandKind::Launch, CommandKind::Write, CommandKind::Read];
    let of = |kind| done.iter().filter(move |c: &&Completion| c.kind == kind);
    let begin = kinds.map(|kind| of(kind).map(|c| c.started).min().unwrap_or(0));
    let end = kinds.map(|kind| of(kind).map(|c| c.ended).max().unwrap_or(0));
    let (begin, end) = (
        begin.into_iter().fold(0, u64::max),
        end.into_iter().fold(u64::MAX, u64::min),
    );
    if end <= begin {
        return 0.0;
    }
    let within = |c: &Completion| {
        let (from, to) = (c.started.max(begin), c.ended.min(end));
        let part = seconds(from.min(to), to) / seconds(c.started, c.ended);
        match c.kind {
            CommandKind::Launch => traffic * part,
            CommandKind::Write | CommandKind::Read | CommandKind::Copy => c.bytes as f64 * part,
        }
    };
    done.iter().map(within).sum::<f64>() / seconds(begin, end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::{EventId, QueueId, Status};

    fn completion(kind: CommandKind, started: u64, ended: u64, bytes: u64) -> Completion {
        Completion {
            event: EventId::fresh(),
            device: DeviceId(0),
            queue: QueueId::fresh(),
            kind,
            queued: 0,
            submitted: 0,
            started,
            ended,
            bytes,
            stages: None,
            workers: None,
            status: Status::Done,
        }
    }

    #[test]
    fn only_the_time_in_which_all_run_counts() {
        let done = [
            completion(CommandKind::Launch, 0, 200, 0),
            completion(CommandKind::Write, 100, 200, 50),
            completion(CommandKind::Read, 100, 300, 80),
        ];
        // From 100 to 200 ns: half of 400 bytes, 50, and half of 80.
        let rate = while_all_run(&done, 400.0);
        assert!((rate - 290.0 / 100e-9).abs() < 1.0);
    }

    #[test]
    fn kinds_that_take_turns_show_nothing() {
        let done = [
            completion(CommandKind::Launch, 0, 100, 0),
            completion(CommandKind::Write, 100, 200, 50),
            completion(CommandKind::Read, 200, 300, 80),
        ];
        assert_eq!(while_all_run(&done, 400.0), 0.0);
    }
}
