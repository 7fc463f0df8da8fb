//! Series of commands: jobs like any others, of which only the last completes,
//! with the times, the bytes and the status of all.

use std::sync::Arc;

use super::Sim;
use crate::runtime::{
    Command, CommandGraph, CommandKind, Completion, EventId, QueueId, RuntimeError, Stages, Status,
};

/// A command's position in a series.
#[derive(Clone, Copy)]
pub(super) struct SeriesPart {
    series: u64,
    is_last: bool,
}

/// The commands of a series that have ended, as one completion. Its stages count
/// the bytes each way; they have kernels once a launch has ended.
pub(super) struct SeriesProgress {
    completion: Completion,
    stages: Stages,
    has_kernels: bool,
}

impl Sim {
    /// Enqueues commands one after the other; the event is the last one's.
    pub(super) fn submit_series(
        &mut self,
        queue: QueueId,
        commands: Vec<Command>,
        wait: &[EventId],
        event: EventId,
    ) -> Result<(), RuntimeError> {
        let series = self.events.len() as u64;
        let count = commands.len();
        for (i, command) in commands.into_iter().enumerate() {
            let part = SeriesPart {
                series,
                is_last: i + 1 == count,
            };
            let wait = if i == 0 { wait } else { &[] };
            let event = match part.is_last {
                true => event,
                false => EventId::fresh(),
            };
            self.start(queue, command, wait, event, Some(part))?;
        }
        Ok(())
    }

    /// The completion to deliver when a command has ended: none for a part of a
    /// series but the last, which completes the whole series.
    pub(super) fn joined(
        &mut self,
        part: Option<SeriesPart>,
        ended: Completion,
    ) -> Option<Completion> {
        let Some(SeriesPart { series, is_last }) = part else {
            return Some(ended);
        };
        let mut progress = SeriesProgress::of(ended);
        if let Some(before) = self.series.remove(&series) {
            progress = before.and(progress);
        }
        if is_last {
            return Some(progress.completion());
        }
        self.series.insert(series, progress);
        None
    }
}

impl SeriesProgress {
    /// A single command.
    fn of(completion: Completion) -> Self {
        let bytes = |kind| match completion.kind == kind {
            true => completion.bytes,
            false => 0,
        };
        Self {
            stages: Stages {
                written: bytes(CommandKind::Write),
                kernels: (completion.started, completion.ended),
                read: bytes(CommandKind::Read),
            },
            has_kernels: completion.kind == CommandKind::Launch,
            completion,
        }
    }

    /// This, and then the next command.
    fn and(self, next: Self) -> Self {
        let kernels = match (self.has_kernels, next.has_kernels) {
            (true, true) => (self.stages.kernels.0, next.stages.kernels.1),
            (true, false) => self.stages.kernels,
            (false, _) => next.stages.kernels,
        };
        Self {
            stages: Stages {
                written: self.stages.written + next.stages.written,
                kernels,
                read: self.stages.read + next.stages.read,
            },
            has_kernels: self.has_kernels || next.has_kernels,
            completion: Completion {
                event: next.completion.event,
                ended: next.completion.ended,
                bytes: self.completion.bytes + next.completion.bytes,
                status: match self.completion.status {
                    Status::Done => next.completion.status,
                    failed => failed,
                },
                ..self.completion
            },
        }
    }

    /// The completion of the whole series.
    fn completion(self) -> Completion {
        let mut completion = self.completion;
        if self.has_kernels {
            completion.kind = CommandKind::Launch;
            completion.stages = (completion.bytes > 0).then_some(self.stages);
        }
        completion
    }
}

// Command graphs: their launches one after the other, as a series.
//
// Of the launches that may be next, the one that comes last in the graph is next. Most
// graphs so run in another order than the one in which they are listed, and one that lacks
// a precedence gives a wrong result.

impl Sim {
    /// Enqueues the launches of a graph; the event is the last one's.
    pub(super) fn submit_graph(
        &mut self,
        queue: QueueId,
        graph: &CommandGraph,
        wait: &[EventId],
        event: EventId,
    ) -> Result<(), RuntimeError> {
        let launches = graph.launches();
        let repeat = |index: usize| Command::Repeat(Arc::clone(&launches[index].launch));
        let commands = late_order(graph).into_iter().map(repeat).collect();
        self.submit_series(queue, commands, wait, event)
    }
}

/// The launches of a graph in an order that its precedences allow.
fn late_order(graph: &CommandGraph) -> Vec<usize> {
    let launches = graph.launches();
    let mut order = Vec::with_capacity(launches.len());
    let mut left: Vec<usize> = (0..launches.len()).collect();
    while !left.is_empty() {
        let is_free = |index: &usize| !launches[*index].after.iter().any(|b| left.contains(b));
        // The first one that is left comes after none that is.
        let next = left.iter().rposition(is_free).unwrap_or(0);
        order.push(left.remove(next));
    }
    order
}
