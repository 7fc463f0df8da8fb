//! Commands told of as one: jobs like any others, of which only the last
//! completes, with what became of all.

use super::Sim;
use crate::runtime::{
    Command, CommandKind, Completion, EventId, QueueId, RuntimeError, Stages, Status, Tag,
};
use crate::time::Nanos;

/// What a command is of a series.
#[derive(Clone, Copy)]
pub(super) struct Member {
    series: u64,
    is_last: bool,
}

/// What became so far of a series.
pub(super) struct SoFar {
    whole: Completion,
    written: u64,
    read: u64,
    kernels: Option<(Nanos, Nanos)>,
}

impl Sim {
    /// Enqueues commands one after the other; the event is the last one's.
    pub(super) fn submit_series(
        &mut self,
        queue: QueueId,
        commands: Vec<Command>,
        wait: &[EventId],
        tag: &Tag,
    ) -> Result<EventId, RuntimeError> {
        let series = self.events.len() as u64;
        let count = commands.len();
        let mut last = Err(RuntimeError::Unknown { what: "command" });
        for (i, command) in commands.into_iter().enumerate() {
            let member = Member {
                series,
                is_last: i + 1 == count,
            };
            let wait = if i == 0 { wait } else { &[] };
            last = Ok(self.enqueue(queue, command, wait, tag.clone(), Some(member))?);
        }
        last
    }

    /// What is told when a command has ended: nothing of a member of a series but
    /// the last, and of that what became of all.
    pub(super) fn told(&mut self, member: Option<Member>, ended: Completion) -> Option<Completion> {
        let Some(Member { series, is_last }) = member else {
            return Some(ended);
        };
        let so_far = match self.series.remove(&series) {
            None => SoFar::of(ended),
            Some(before) => before.and(ended),
        };
        if is_last {
            return Some(so_far.told());
        }
        self.series.insert(series, so_far);
        None
    }
}

impl SoFar {
    /// The first command of a series.
    fn of(first: Completion) -> Self {
        let times = (first.started, first.ended);
        let bytes = |kind| if first.kind == kind { first.bytes } else { 0 };
        Self {
            written: bytes(CommandKind::Write),
            read: bytes(CommandKind::Read),
            kernels: (first.kind == CommandKind::Launch).then_some(times),
            whole: first,
        }
    }

    /// And the next.
    fn and(self, next: Completion) -> Self {
        let next = Self::of(next);
        let kernels = match (self.kernels, next.kernels) {
            (Some((started, _)), Some((_, ended))) => Some((started, ended)),
            (one, other) => one.or(other),
        };
        Self {
            written: self.written + next.written,
            read: self.read + next.read,
            kernels,
            whole: Completion {
                event: next.whole.event,
                ended: next.whole.ended,
                bytes: self.whole.bytes + next.whole.bytes,
                status: match self.whole.status {
                    Status::Done => next.whole.status,
                    failed => failed,
                },
                ..self.whole
            },
        }
    }

    /// What is told of them.
    fn told(self) -> Completion {
        let Self {
            whole,
            written,
            read,
            kernels,
        } = self;
        let kind = kernels.map_or(whole.kind, |_| CommandKind::Launch);
        let mixed = kernels.filter(|_| whole.bytes > 0);
        let stages = mixed.map(|kernels| Stages {
            written,
            kernels,
            read,
        });
        Completion {
            kind,
            stages,
            ..whole
        }
    }
}
