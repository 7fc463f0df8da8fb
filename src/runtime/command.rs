//! Commands, which a driver enqueues, and completions, which report their ends.

use std::ops::Range;
use std::sync::Arc;

use super::{DeviceId, EventId, Nanos, QueueId};
use crate::codelet::{BufferId, Codelet, Cost, HostMemoryId, Memory, Name, Value};

/// Part of a host allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostSpan {
    pub memory: HostMemoryId,
    /// Offset in bytes.
    pub offset: u64,
    pub bytes: u64,
}

impl HostSpan {
    /// The bytes of a range.
    pub fn new(memory: HostMemoryId, range: Range<u64>) -> Self {
        Self {
            memory,
            offset: range.start,
            bytes: range.end - range.start,
        }
    }
}

/// Where in a device's buffer a transfer begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceSpan {
    pub buffer: BufferId,
    /// Offset in bytes.
    pub offset: u64,
}

/// A kernel on a range of a workload's units.
#[derive(Clone, Debug)]
pub struct Launch {
    pub codelet: Arc<Codelet>,
    /// The units (rows, say) to compute.
    pub units: Range<u64>,
    /// Arguments in the codelet's order.
    pub args: Vec<Value>,
    /// Operations and bytes of memory traffic.
    pub cost: Cost,
}

impl Launch {
    /// The memory among the arguments.
    pub fn memories(&self) -> impl Iterator<Item = Memory> + '_ {
        self.args.iter().filter_map(|value| match value {
            Value::Memory(memory) => Some(*memory),
            _ => None,
        })
    }
}

/// A command for a queue.
#[derive(Clone, Debug)]
pub enum Command {
    /// Host to device (H2D).
    Write { from: HostSpan, to: DeviceSpan },
    /// An NDRange, or its host equivalent.
    Launch(Launch),
    /// A launch that is repeated without a change. The runtime may keep what it
    /// prepares for it, until its memory is freed or nobody else holds it.
    Repeat(Arc<Launch>),
    /// Commands that follow one another, at least one and none of them a series.
    /// They share one completion, from the start of the first to the end of the
    /// last, so that a driver saves most of their events. Host pools refuse it.
    Series(Vec<Command>),
    /// Device to host (D2H).
    Read { from: DeviceSpan, to: HostSpan },
}

impl Command {
    /// Writes a range of host memory into a buffer, from byte `offset` on.
    pub fn write(from: HostMemoryId, range: Range<u64>, to: BufferId, offset: u64) -> Self {
        Self::Write {
            from: HostSpan::new(from, range),
            to: DeviceSpan { buffer: to, offset },
        }
    }

    /// Reads a buffer, from byte `offset` on, into a range of host memory.
    pub fn read(from: BufferId, offset: u64, to: HostMemoryId, range: Range<u64>) -> Self {
        Self::Read {
            from: DeviceSpan {
                buffer: from,
                offset,
            },
            to: HostSpan::new(to, range),
        }
    }

    /// What kind of command this is.
    pub fn kind(&self) -> CommandKind {
        match self {
            Self::Write { .. } => CommandKind::Write,
            Self::Launch(_) | Self::Repeat(_) => CommandKind::Launch,
            Self::Read { .. } => CommandKind::Read,
            Self::Series(commands) => match (self.launches().next(), commands.first()) {
                (None, Some(transfer)) => transfer.kind(),
                _ => CommandKind::Launch,
            },
        }
    }

    /// The commands of a series; else the command itself.
    pub fn parts(&self) -> &[Self] {
        match self {
            Self::Series(commands) => commands,
            single => std::slice::from_ref(single),
        }
    }

    /// Its launches; none of a transfer.
    pub fn launches(&self) -> impl Iterator<Item = &Launch> {
        self.parts().iter().filter_map(|part| match part {
            Self::Launch(launch) => Some(launch),
            Self::Repeat(launch) => Some(launch.as_ref()),
            Self::Write { .. } | Self::Read { .. } | Self::Series(_) => None,
        })
    }

    /// Bytes written to a device, and read from it.
    pub fn moved(&self) -> [u64; 2] {
        (self.parts().iter()).fold([0, 0], |[written, read], part| match part {
            Self::Write { from, .. } => [written + from.bytes, read],
            Self::Read { to, .. } => [written, read + to.bytes],
            Self::Launch(_) | Self::Repeat(_) | Self::Series(_) => [written, read],
        })
    }

    /// Bytes moved between host and device; 0 for a launch.
    pub fn bytes(&self) -> u64 {
        self.moved().iter().sum()
    }

    /// Whether it is a series of launches and transfers.
    pub fn is_mixed(&self) -> bool {
        self.kind() == CommandKind::Launch && self.bytes() > 0
    }
}

/// The three kinds of command, by OpenCL's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CommandKind {
    Write,
    Launch,
    Read,
}

impl CommandKind {
    /// The name in traces: `write`, `ndrange` or `read`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Write => "write",
            Self::Launch => "ndrange",
            Self::Read => "read",
        }
    }
}

/// What a command is for; carried through to its completion and the trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tag {
    /// The step it belongs to, counted from 0.
    pub step: u32,
    /// What it does, in a word or two: `resident`, `halo`, `chunk` ...
    pub label: Name,
    /// The units concerned.
    pub units: Range<u64>,
}

impl Tag {
    /// A label alone, for a command that belongs to no step.
    pub fn named(label: &'static str) -> Self {
        Self {
            step: 0,
            label: label.into(),
            units: 0..0,
        }
    }
}

/// How a command ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    Done,
    /// The command failed; the device may still work.
    Failed(String),
    /// Not run, because a command that it waited for did not end well.
    Skipped,
    /// The device is gone, with what its memory held.
    DeviceLost(String),
}

/// How long the workers of a host pool worked on a kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Workers {
    pub mean: Nanos,
    /// The time of the worker that worked longest.
    pub most: Nanos,
}

/// The parts of a series of transfers and launches. The time in which none of its
/// kernels runs counts as its transfers'.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stages {
    /// Bytes written to the device.
    pub written: u64,
    /// From the start of the first kernel to the end of the last.
    pub kernels: (Nanos, Nanos),
    /// Bytes read from the device.
    pub read: u64,
}

impl Stages {
    /// The bytes of a command, with times still to be set.
    pub fn around(command: &Command, at: Nanos) -> Self {
        let [written, read] = command.moved();
        Self {
            written,
            kernels: (at, at),
            read,
        }
    }
}

/// The end of a command.
#[derive(Clone, Debug)]
pub struct Completion {
    pub event: EventId,
    pub device: DeviceId,
    pub queue: QueueId,
    pub kind: CommandKind,
    pub tag: Tag,
    /// Handed to the queue.
    pub queued: Nanos,
    /// Handed to the device.
    pub submitted: Nanos,
    pub started: Nanos,
    pub ended: Nanos,
    /// Bytes moved between host and device.
    pub bytes: u64,
    /// Only for a series of transfers and launches.
    pub stages: Option<Stages>,
    /// Only for a kernel on a pool that measures its workers' time.
    pub workers: Option<Workers>,
    pub status: Status,
}

impl Completion {
    /// The completion of a command that was enqueued, and did nothing, at
    /// `queued`. The runtime sets its times and its status when it has run.
    pub fn of(
        command: &Command,
        event: EventId,
        (device, queue): (DeviceId, QueueId),
        tag: Tag,
        queued: Nanos,
    ) -> Self {
        Self {
            event,
            device,
            queue,
            kind: command.kind(),
            tag,
            queued,
            submitted: queued,
            started: queued,
            ended: queued,
            bytes: command.bytes(),
            stages: None,
            workers: None,
            status: Status::Done,
        }
    }

    /// The same command, which did not run: it ends at `now` with this status.
    pub fn not_run(self, now: Nanos, status: Status) -> Self {
        Self {
            submitted: now,
            started: now,
            ended: now,
            status,
            ..self
        }
    }
}
