//! Commands, which a driver enqueues, and completions, which report their ends.

use std::ops::Range;
use std::sync::Arc;

use super::{DeviceId, EventId, Nanos, QueueId, RuntimeError};
use crate::codelet::{BufferId, Codelet, Cost, HostMemoryId, Memory, Value};

/// Part of a host allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostSpan {
    pub memory: HostMemoryId,
    /// Offset in bytes.
    pub offset: u64,
    pub bytes: u64,
    /// Whether it may be written.
    pub is_written: bool,
}

impl HostSpan {
    /// The bytes of a range, which may be written.
    pub fn new(memory: HostMemoryId, range: Range<u64>) -> Self {
        Self {
            memory,
            offset: range.start,
            bytes: range.end - range.start,
            is_written: true,
        }
    }

    /// The bytes from a place on, if it is in host memory.
    fn of(location: &Location, bytes: u64, is_written: bool) -> Option<Self> {
        match location.memory {
            Memory::Host(memory) => Some(Self {
                memory,
                offset: location.offset,
                bytes,
                is_written,
            }),
            Memory::Device(_) => None,
        }
    }

    /// Whether both have a byte in common.
    pub fn overlaps(&self, other: &Self) -> bool {
        let end = |span: &Self| span.offset.saturating_add(span.bytes);
        self.memory == other.memory && self.offset < end(other) && other.offset < end(self)
    }
}

/// A place in memory: the host's, or a buffer of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Location {
    pub memory: Memory,
    /// Offset in bytes.
    pub offset: u64,
}

impl Location {
    /// A place in host memory.
    pub fn host(memory: HostMemoryId, offset: u64) -> Self {
        let memory = Memory::Host(memory);
        Self { memory, offset }
    }

    /// A place in a buffer.
    pub fn device(buffer: BufferId, offset: u64) -> Self {
        let memory = Memory::Device(buffer);
        Self { memory, offset }
    }
}

/// What a copy moves: rows of equal length, at a pitch of their own in each memory. Rows
/// that follow one another without a gap in both memories are one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rows {
    pub count: u64,
    /// Bytes of a row.
    pub bytes: u64,
    /// Bytes from the begin of a row to that of the next one, where they are read and where
    /// they are written; at least the bytes of a row.
    pub from_pitch: u64,
    pub to_pitch: u64,
}

impl Rows {
    /// Bytes that follow one another.
    pub fn one(bytes: u64) -> Self {
        Self::new(1, bytes, bytes, bytes)
    }

    /// Rows at these pitches.
    pub fn new(count: u64, bytes: u64, from_pitch: u64, to_pitch: u64) -> Self {
        let (count, bytes) = match from_pitch == bytes && to_pitch == bytes {
            true => (1, count * bytes),
            false => (count, bytes),
        };
        match count {
            1 => Self {
                count,
                bytes,
                from_pitch: bytes,
                to_pitch: bytes,
            },
            _ => Self {
                count,
                bytes,
                from_pitch,
                to_pitch,
            },
        }
    }

    /// The copy in the other direction.
    pub fn reversed(self) -> Self {
        Self {
            from_pitch: self.to_pitch,
            to_pitch: self.from_pitch,
            ..self
        }
    }

    /// All bytes that are copied.
    pub fn total(&self) -> u64 {
        self.count.saturating_mul(self.bytes)
    }

    /// Bytes from the begin of the first row to the end of the last one, where they are read
    /// and where they are written.
    pub fn spans(&self) -> [u64; 2] {
        [self.from_pitch, self.to_pitch].map(|pitch| match self.count {
            0 => 0,
            count => (count - 1).saturating_mul(pitch).saturating_add(self.bytes),
        })
    }
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
        self.args.iter().filter_map(|value| value.memory())
    }

    /// The host memory among the arguments.
    pub(super) fn host_spans(&self) -> impl Iterator<Item = HostSpan> + '_ {
        self.args.iter().filter_map(|value| match value.memory()? {
            Memory::Host(memory) => Some(HostSpan {
                is_written: matches!(value, Value::Memory(_)),
                ..HostSpan::new(memory, 0..u64::MAX)
            }),
            Memory::Device(_) => None,
        })
    }
}

/// A command for a queue.
#[derive(Clone, Debug)]
pub enum Command {
    /// A copy between two memories, at least one of them a device's.
    Copy {
        from: Location,
        to: Location,
        rows: Rows,
    },
    /// An NDRange, or its host equivalent.
    Launch(Launch),
    /// A launch that is repeated without a change. The runtime may keep what it
    /// prepares for it, until its memory is freed or nobody else holds it.
    Repeat(Arc<Launch>),
    /// Commands that follow one another, at least one and none of them a series or a
    /// graph. They share one completion, from the start of the first to the end of the
    /// last, so that a driver saves most of their events. Host pools refuse it.
    Series(Vec<Command>),
    /// Launches with precedences among them that are repeated without a change, so that a
    /// driver gets all of them with one call. They share one completion, from the start of
    /// the first to the end of the last. The runtime may keep what it prepares for it, until
    /// memory of it is freed or nobody else holds it. Devices refuse it that do not run
    /// graphs; see [`super::Devices::runs_graphs`].
    Graph(Arc<CommandGraph>),
}

impl Command {
    /// Writes a range of host memory into a buffer, from byte `offset` on.
    pub fn write(from: HostMemoryId, range: Range<u64>, to: BufferId, offset: u64) -> Self {
        Self::Copy {
            from: Location::host(from, range.start),
            to: Location::device(to, offset),
            rows: Rows::one(range.end - range.start),
        }
    }

    /// Reads a buffer, from byte `offset` on, into a range of host memory.
    pub fn read(from: BufferId, offset: u64, to: HostMemoryId, range: Range<u64>) -> Self {
        Self::Copy {
            from: Location::device(from, offset),
            to: Location::host(to, range.start),
            rows: Rows::one(range.end - range.start),
        }
    }

    /// What kind of command this is.
    pub fn kind(&self) -> CommandKind {
        match self {
            Self::Copy { from, to, .. } => match (from.memory, to.memory) {
                (Memory::Host(_), _) => CommandKind::Write,
                (Memory::Device(_), Memory::Host(_)) => CommandKind::Read,
                (Memory::Device(_), Memory::Device(_)) => CommandKind::Copy,
            },
            Self::Launch(_) | Self::Repeat(_) | Self::Graph(_) => CommandKind::Launch,
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
        self.parts().iter().flat_map(|part| {
            let (one, several) = match part {
                Self::Launch(launch) => (Some(launch), &[][..]),
                Self::Repeat(launch) => (Some(launch.as_ref()), &[][..]),
                Self::Graph(graph) => (None, graph.launches()),
                Self::Copy { .. } | Self::Series(_) => (None, &[][..]),
            };
            let several = several.iter().map(|of| of.launch.as_ref());
            one.into_iter().chain(several)
        })
    }

    /// Bytes of its copies of one kind.
    pub fn copied(&self, kind: CommandKind) -> u64 {
        let parts = self.parts().iter();
        let bytes = parts.map(|part| match part {
            Self::Copy { rows, .. } if part.kind() == kind => rows.total(),
            _ => 0,
        });
        bytes.sum()
    }

    /// Bytes of all its copies; 0 for a launch.
    pub fn bytes(&self) -> u64 {
        let parts = self.parts().iter();
        let bytes = parts.map(|part| match part {
            Self::Copy { rows, .. } => rows.total(),
            _ => 0,
        });
        bytes.sum()
    }

    /// The host memory that it reads or writes.
    pub fn host_spans(&self) -> impl Iterator<Item = HostSpan> {
        self.parts().iter().flat_map(|part| {
            let (copied, launch, of_graph) = match part {
                Self::Copy { from, to, rows } => {
                    let [read, written] = rows.spans();
                    let copied = [
                        HostSpan::of(from, read, false),
                        HostSpan::of(to, written, true),
                    ];
                    (copied, None, &[][..])
                }
                Self::Launch(launch) => ([None, None], Some(launch), &[][..]),
                Self::Repeat(launch) => ([None, None], Some(launch.as_ref()), &[][..]),
                Self::Graph(graph) => ([None, None], None, graph.host_spans()),
                Self::Series(_) => ([None, None], None, &[][..]),
            };
            let worked_on = launch.into_iter().flat_map(Launch::host_spans);
            (copied.into_iter().flatten())
                .chain(worked_on)
                .chain(of_graph.iter().copied())
        })
    }

    /// Whether it is a series of launches and copies.
    pub fn is_mixed(&self) -> bool {
        self.kind() == CommandKind::Launch && self.bytes() > 0
    }
}

/// The kinds of command, by OpenCL's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CommandKind {
    /// From host to device.
    Write,
    Launch,
    /// From device to host.
    Read,
    /// From device to device.
    Copy,
}

impl CommandKind {
    /// The name in traces: `write`, `ndrange`, `read` or `copy`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Write => "write",
            Self::Launch => "ndrange",
            Self::Read => "read",
            Self::Copy => "copy",
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
        Self {
            written: command.copied(CommandKind::Write),
            kernels: (at, at),
            read: command.copied(CommandKind::Read),
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
    /// Handed to the queue.
    pub queued: Nanos,
    /// Handed to the device.
    pub submitted: Nanos,
    pub started: Nanos,
    pub ended: Nanos,
    /// Bytes copied between memories.
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
        queued: Nanos,
    ) -> Self {
        Self {
            event,
            device,
            queue,
            kind: command.kind(),
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

    /// What a driver's thread sends, so that the backend is asked for what has ended: the event
    /// is nobody's.
    #[cfg(feature = "opencl")]
    pub(super) fn wake_up(&self) -> Self {
        Self {
            event: EventId::NOBODYS,
            ..self.clone()
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

/// A launch of a [`CommandGraph`].
#[derive(Clone, Debug)]
pub struct GraphLaunch {
    pub launch: Arc<Launch>,
    /// Indices of the launches that end before this one starts. They are before it.
    pub after: Vec<usize>,
}

/// Launches with precedences among them, which are repeated without a change. Launches
/// without a precedence between them may run in any order and at the same time.
#[derive(Clone, Debug)]
pub struct CommandGraph {
    launches: Vec<GraphLaunch>,
    /// The host memory among the arguments.
    host_spans: Vec<HostSpan>,
}

impl CommandGraph {
    /// A graph of these launches, at least one.
    ///
    /// # Errors
    /// [`RuntimeError::Call`] for no launches, and for one that is to come after itself or
    /// after a later one.
    pub fn new(launches: Vec<GraphLaunch>) -> Result<Self, RuntimeError> {
        let refuse = |why: String| RuntimeError::Call {
            device: "every device".to_owned(),
            call: "making a command graph",
            why,
        };
        if launches.is_empty() {
            return Err(refuse(
                "it has no launches; give it at least one".to_owned(),
            ));
        }
        for (index, launch) in launches.iter().enumerate() {
            if let Some(later) = launch.after.iter().find(|before| **before >= index) {
                return Err(refuse(format!(
                    "launch {index} is to come after launch {later}, which is not before it; \
                     list launches in an order in which they may run"
                )));
            }
        }
        let host_spans = launches.iter().flat_map(|of| of.launch.host_spans());
        Ok(Self {
            host_spans: host_spans.collect(),
            launches,
        })
    }

    /// Its launches, each after all that it comes after.
    pub fn launches(&self) -> &[GraphLaunch] {
        &self.launches
    }

    /// The host memory among the arguments.
    pub(super) fn host_spans(&self) -> &[HostSpan] {
        &self.host_spans
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codelet::{Cost, HostMemoryId, Memory, Value, zeros};
    use crate::runtime::{Command, CommandKind};

    fn launch(args: Vec<Value>, after: &[usize]) -> GraphLaunch {
        GraphLaunch {
            launch: Arc::new(Launch {
                codelet: Arc::new(zeros::codelet()),
                units: 0..1,
                args,
                cost: Cost::default(),
            }),
            after: after.to_vec(),
        }
    }

    #[test]
    fn launches_come_after_earlier_ones() {
        let graph = |after: &[&[usize]]| {
            let launches = after.iter().map(|after| launch(Vec::new(), after));
            CommandGraph::new(launches.collect())
        };
        assert!(graph(&[&[], &[0], &[0, 1]]).is_ok());
        for (after, part) in [
            (&[][..], "it has no launches"),
            (&[&[0][..]], "launch 0 is to come after launch 0"),
            (&[&[], &[2], &[]], "launch 1 is to come after launch 2"),
        ] {
            let error = graph(after).expect_err(part).to_string();
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn the_command_has_the_launches_and_their_host_memory() {
        let memory = HostMemoryId::fresh();
        let launches = vec![
            launch(vec![Value::Memory(Memory::Host(memory))], &[]),
            launch(vec![Value::U32(1)], &[0]),
        ];
        let command = Command::Graph(Arc::new(CommandGraph::new(launches).expect("a graph")));
        assert_eq!(command.kind(), CommandKind::Launch);
        assert_eq!((command.launches().count(), command.bytes()), (2, 0));
        assert!(!command.is_mixed());
        let spans: Vec<HostSpan> = command.host_spans().collect();
        assert_eq!(spans, [HostSpan::new(memory, 0..u64::MAX)]);
    }
}
