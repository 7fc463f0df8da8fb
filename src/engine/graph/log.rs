//! Every command of a run, from being submitted to its end; and the trace that
//! comes of it.

use std::collections::HashMap;

use super::Launched;
use crate::graph::{DatumId, KernelId};
use crate::runtime::{Completion, EventId};
use crate::time::Nanos;
use crate::trace::Span;

/// What a command is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    Write(DatumId),
    Launch(KernelId),
    /// A copy in host memory, before a kernel works on it in place.
    Copy(KernelId),
    Read(KernelId, DatumId),
    /// A read for another device, of what had stayed here.
    Fetch(DatumId),
}

/// A command.
pub(super) struct Entry {
    pub component: usize,
    pub device: usize,
    /// Index of the queue within the device.
    pub queue: usize,
    pub purpose: Purpose,
    /// What it waits for, of earlier entries.
    pub waits: Vec<EventId>,
}

/// The commands of a run.
#[derive(Default)]
pub(super) struct Log {
    flying: HashMap<EventId, Entry>,
    /// Kept for a trace: entries that ended well, with their ends.
    kept: Vec<(Entry, Completion)>,
    keep: bool,
}

impl Log {
    /// An empty log, which keeps entries for a trace if that is wanted.
    pub fn new(keep: bool) -> Self {
        Self {
            keep,
            ..Self::default()
        }
    }

    pub fn submitted(&mut self, event: EventId, entry: Entry) {
        self.flying.insert(event, entry);
    }

    /// The entry of a command that has ended; [`Log::keep`] takes it back.
    pub fn ended(&mut self, event: EventId) -> Option<Entry> {
        self.flying.remove(&event)
    }

    /// Keeps an entry that ended well, if there is to be a trace.
    pub fn keep(&mut self, entry: Entry, completion: Completion) {
        if self.keep {
            self.kept.push((entry, completion));
        }
    }

    /// Whether nothing is in flight.
    pub fn idle(&self) -> bool {
        self.flying.is_empty()
    }

    /// Spans in the order of their starts; who waited for whom, as indices of
    /// spans; and which of them are launches of what.
    pub fn close(mut self) -> (Vec<Span>, Vec<(usize, usize)>, Vec<Launched>) {
        self.kept.sort_by_key(|(_, c)| (c.started, c.event));
        let by_event: HashMap<EventId, usize> = self
            .kept
            .iter()
            .enumerate()
            .map(|(index, (_, c))| (c.event, index))
            .collect();
        let mut launches = Vec::new();
        let mut edges = Vec::new();
        let mut spans = Vec::with_capacity(self.kept.len());
        for (index, (entry, completion)) in self.kept.iter().enumerate() {
            let mut ready: Nanos = completion.queued;
            for wait in &entry.waits {
                if let Some(before) = by_event.get(wait) {
                    ready = ready.max(self.kept[*before].1.ended);
                    edges.push((*before, index));
                }
            }
            if let Purpose::Launch(kernel) = entry.purpose {
                launches.push(Launched {
                    kernel,
                    device: entry.device,
                    queue: entry.queue,
                    started: completion.started,
                    ended: completion.ended,
                });
            }
            spans.push(Span {
                device: entry.device,
                queue: entry.queue,
                kind: completion.kind,
                label: completion.tag.label.clone(),
                step: completion.tag.step,
                units: completion.tag.units.clone(),
                ready,
                queued: completion.queued,
                submitted: completion.submitted,
                started: completion.started,
                ended: completion.ended,
                bytes: completion.bytes,
                workers: completion.workers,
            });
        }
        (spans, edges, launches)
    }
}
