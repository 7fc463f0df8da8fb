//! The commands of a run as a trace: a span each, and which waited for which.

use std::collections::HashMap;

use super::Launched;
use super::dispatch::Destination;
use super::run::GraphRun;
use crate::codelet::Name;
use crate::in_flight::Tag;
use crate::runtime::EventId;
use crate::time::Nanos;
use crate::trace::Span;
use pdawl_core::graph::{DatumId, KernelId};

/// What a command is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    Write(DatumId),
    /// A write for a component that waits in a device's window.
    Load(DatumId),
    /// One of several copies that bring a view to a device, but the last.
    Piece(DatumId),
    /// The last of several copies that put a view together in host memory.
    Together(DatumId),
    /// Zeros for an output that a kernel may write only in part.
    Zeros(KernelId),
    /// A copy in host memory, before a kernel works on it in place.
    Copy(KernelId),
    Launch(KernelId),
    /// All launches of a component.
    Graph,
    Read(KernelId, DatumId),
    /// A copy from the memory of another device, for a component that waits in a
    /// device's window.
    PeerLoad(DatumId, usize),
    /// A read of a datum that had stayed on a device: for another device, for the
    /// host, or to make room.
    Fetch(DatumId),
}

impl Purpose {
    /// Whether a component has ended only when the command has.
    pub fn is_part_of_component(self) -> bool {
        !matches!(
            self,
            Self::Load(_) | Self::Piece(_) | Self::PeerLoad(..) | Self::Fetch(_)
        )
    }
}

/// A submitted command.
pub(super) struct Submission {
    pub component: usize,
    pub device: usize,
    /// Index of the queue within the device.
    pub queue: usize,
    pub purpose: Purpose,
    /// The events that it waits for, where a trace is kept.
    pub waits: Vec<EventId>,
}

/// Commands that ended well, in the order of their completions.
#[derive(Default)]
pub(super) struct Timeline(Vec<(EventId, Submission, Span)>);

/// The spans in the order of their starts, pairs of spans of which the second
/// waited for the first, and the launches among the spans.
type Parts = (Vec<Span>, Vec<(usize, usize)>, Vec<Launched>);

impl Timeline {
    pub fn add(&mut self, event: EventId, submission: Submission, span: Span) {
        self.0.push((event, submission, span));
    }

    /// What the commands make up.
    pub fn into_parts(mut self) -> Parts {
        (self.0).sort_by_key(|(event, _, span)| (span.started, *event));
        let ends = self.0.iter().enumerate();
        let ends: HashMap<EventId, (usize, Nanos)> = ends
            .map(|(at, (event, _, span))| (*event, (at, span.ended)))
            .collect();
        let (mut spans, mut edges, mut launches) = (Vec::new(), Vec::new(), Vec::new());
        for (at, (_, submission, mut span)) in self.0.into_iter().enumerate() {
            // Completions of one time may come in any order.
            for (before, ended) in submission.waits.iter().filter_map(|wait| ends.get(wait)) {
                span.ready = span.ready.max(*ended);
                edges.push((*before, at));
            }
            if let Purpose::Launch(kernel) = submission.purpose {
                launches.push(Launched {
                    kernel,
                    device: span.device,
                    queue: span.queue,
                    started: span.started,
                    ended: span.ended,
                });
            }
            spans.push(span);
        }
        (spans, edges, launches)
    }
}

impl GraphRun<'_> {
    pub(super) fn tag(&self, component: usize, purpose: Purpose) -> Tag {
        let (label, units) = match purpose {
            Purpose::Launch(kernel) => {
                let kernel = self.graph.kernel(kernel);
                (kernel.name.clone(), kernel.units.clone())
            }
            Purpose::Graph => (Name::from("graph"), 0..0),
            Purpose::Copy(_) => (Name::from("copy"), 0..0),
            Purpose::Zeros(_) => (Name::from("zeros"), 0..0),
            Purpose::Write(d)
            | Purpose::Load(d)
            | Purpose::PeerLoad(d, _)
            | Purpose::Piece(d)
            | Purpose::Read(_, d)
            | Purpose::Together(d)
            | Purpose::Fetch(d) => (self.graph.datum(d).name.clone(), 0..0),
        };
        let codelet = match purpose {
            Purpose::Launch(kernel) => Some(self.graph.kernel(kernel).codelet.name.clone()),
            _ => None,
        };
        Tag {
            codelet,
            step: (self.components.list().get(component))
                .map_or(0, |component| component.level as u32),
            label,
            units,
        }
    }

    /// Counts a submitted command among what its device did.
    pub(super) fn count(&mut self, to: Destination, purpose: Purpose) {
        let used = &mut self.known.uses[to.device];
        used.queues = used.queues.max(to.queue + 1);
        match purpose {
            Purpose::Launch(_) => used.kernels += 1,
            Purpose::Graph => {
                used.kernels += self.components.list()[to.component].kernels.len() as u64;
                used.graphs += 1;
            }
            Purpose::Write(_) | Purpose::Load(_) => {
                if let Purpose::Load(_) = purpose {
                    self.known.windows[to.device].loads += 1;
                }
                used.writes += 1;
            }
            Purpose::Read(_, datum) | Purpose::Fetch(datum) => {
                used.reads += 1;
                used.bytes_d2h += self.graph.datum(datum).bytes;
            }
            Purpose::PeerLoad(datum, _) => {
                self.known.windows[to.device].loads += 1;
                used.bytes_peer += self.graph.datum(datum).bytes;
            }
            Purpose::Copy(_) | Purpose::Zeros(_) | Purpose::Piece(_) | Purpose::Together(_) => {}
        }
    }
}
