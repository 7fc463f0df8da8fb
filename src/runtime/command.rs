//! What can be enqueued, and what comes back when it has ended.

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

/// Where in a device's buffer a transfer begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceSpan {
    pub buffer: BufferId,
    /// Offset in bytes.
    pub offset: u64,
}

/// A kernel over a range of a workload's units.
#[derive(Clone, Debug)]
pub struct Launch {
    pub codelet: Arc<Codelet>,
    /// The units (rows, say) to compute.
    pub units: Range<u64>,
    /// Arguments in the codelet's order.
    pub args: Vec<Value>,
    /// What the launch costs: operations and bytes of memory traffic.
    pub cost: Cost,
}

impl Launch {
    /// The memory among its arguments.
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
    /// A launch that is made again and again just as it is: what makes it ready
    /// may be kept, until its memory is freed or nobody else holds it.
    Repeat(Arc<Launch>),
    /// Commands that follow one another, at least one and none of them a series,
    /// told of as one: from the start of the first to the end of the last. For
    /// what a driver enqueues, which is spared an event for most of them; a host
    /// pool has none, and refuses it.
    Series(Vec<Command>),
    /// Device to host (D2H).
    Read { from: DeviceSpan, to: HostSpan },
}

impl Command {
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

/// How a pool's workers divided a kernel: how long they worked on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Workers {
    pub mean: Nanos,
    /// Of the one that worked longest.
    pub most: Nanos,
}

/// What is known of the parts of a series of transfers and launches. What it is
/// at while no kernel runs is taken for its transfers.
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
    /// Those of a command whose kernels run at a time.
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
    /// Of a series of transfers and launches.
    pub stages: Option<Stages>,
    /// Of a kernel on a pool that counts its workers' time.
    pub workers: Option<Workers>,
    pub status: Status,
}
