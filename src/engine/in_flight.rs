//! Commands that were submitted and have not completed.
//!
//! For each command a caller keeps what it needs to know at the completion. Of
//! what a command waits for, the latest end is noted, so that a trace can tell
//! when the command could have started.

use std::collections::VecDeque;
use std::ops::Range;

use crate::codelet::Name;
use crate::runtime::{Completion, EventId};
use crate::time::Nanos;
use crate::trace::Span;

/// What a command is for, as its span says.
#[derive(Clone, Debug)]
pub(super) struct Tag {
    /// The step it belongs to, or the level, counted from 0.
    pub step: u32,
    /// What it does, in a word or two: `resident`, `halo`, `chunk` ...
    pub label: Name,
    /// The codelet of a graph's kernel.
    pub codelet: Option<Name>,
    /// The units concerned.
    pub units: Range<u64>,
}

#[derive(Debug)]
struct Command<T> {
    event: EventId,
    note: T,
    /// The latest end of the commands that it waits for, of those that were in
    /// flight at its submission; the others had ended by then.
    ready: Nanos,
    /// Commands that wait for it.
    followers: Vec<EventId>,
}

/// Commands in flight, each with a note of its submitter.
#[derive(Debug)]
pub(super) struct InFlight<T> {
    /// In the order of their events, which is the order of submission. They are
    /// few, and most of them complete in that order.
    commands: VecDeque<Command<T>>,
}

impl<T> Default for InFlight<T> {
    fn default() -> Self {
        Self {
            commands: VecDeque::new(),
        }
    }
}

impl<T> InFlight<T> {
    /// Whether no command is in flight.
    pub fn is_empty(&self) -> bool {
        self.commands.is_empty()
    }

    /// Adds a command that waits for `waits`.
    pub fn insert(&mut self, event: EventId, note: T, waits: &[EventId]) {
        for awaited in waits {
            if let Ok(index) = self.find(*awaited) {
                self.commands[index].followers.push(event);
            }
        }
        let (Ok(index) | Err(index)) = self.find(event);
        let command = Command {
            event,
            note,
            ready: 0,
            followers: Vec::new(),
        };
        self.commands.insert(index, command);
    }

    /// Removes a completed command. Returns its note, and when it was ready to
    /// start: when it was queued, or when the last command that it waited for
    /// had ended. `None` for a command that is not in flight.
    pub fn remove(&mut self, completion: &Completion) -> Option<(T, Nanos)> {
        let index = self.find(completion.event).ok()?;
        let command = self.commands.remove(index)?;
        for follower in command.followers {
            if let Ok(index) = self.find(follower) {
                let ready = &mut self.commands[index].ready;
                *ready = completion.ended.max(*ready);
            }
        }
        Some((command.note, command.ready.max(completion.queued)))
    }

    /// Whether a command has not completed.
    pub fn is_pending(&self, event: EventId) -> bool {
        self.find(event).is_ok()
    }

    /// A command's index, or where it belongs.
    fn find(&self, event: EventId) -> Result<usize, usize> {
        match self.commands.back() {
            Some(last) if last.event < event => Err(self.commands.len()),
            _ => (self.commands).binary_search_by_key(&event, |command| command.event),
        }
    }
}

/// The span of a completed command, on a queue of a device, both by index.
pub(super) fn span(
    completion: &Completion,
    (device, queue): (usize, usize),
    tag: Tag,
    ready: Nanos,
) -> Span {
    Span {
        device,
        queue,
        kind: completion.kind,
        label: tag.label,
        codelet: tag.codelet,
        step: tag.step,
        units: tag.units,
        ready,
        queued: completion.queued,
        submitted: completion.submitted,
        started: completion.started,
        ended: completion.ended,
        bytes: completion.bytes,
        workers: completion.workers,
    }
}
