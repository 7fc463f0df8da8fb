//! A device's progress on the pool in the running step, and the rates and costs of
//! chunks that follow from it.

use super::{Order, seconds};
use crate::balance::ChunkDone;
use crate::time::Nanos;

/// A device's progress on the pool in this step.
#[derive(Clone, Copy, Debug, Default)]
pub struct Progress {
    pub done: u64,
    pub(super) chunks: u64,
    /// Nanoseconds during which it had pool work, its start not counted.
    span: Nanos,
    /// Units and nanoseconds of chunks that followed another: a stream's rate without
    /// the time of filling its pipeline.
    paced_units: u64,
    paced_span: Nanos,
    /// Units and nanoseconds of the first chunk.
    first: (u64, Nanos),
    /// Units and nanoseconds of chunks during which no device streamed.
    alone_units: u64,
    alone_span: Nanos,
    /// Since when the span has had no gap.
    opened: Nanos,
    /// End of its last chunk.
    pub(super) mark: Nanos,
    /// When it was last given work while it had none.
    pub(super) busy_from: Nanos,
    /// Whether it streams. Where the engine enqueues its chunks late, the gaps count
    /// as the stream's time.
    streams: bool,
    /// It was told to wait; and when it was last given work after that.
    pub(super) waits: bool,
    resumed: Nanos,
    /// Least time from being handed out to starting.
    latency: Option<Nanos>,
    pub(super) held_left: u64,
    pub(super) order: Order,
}

impl Progress {
    /// The progress at the begin of a step, with `held` units.
    pub(super) fn of_step(held: u64, streams: bool) -> Self {
        Self {
            held_left: held,
            streams,
            ..Self::default()
        }
    }

    /// It was given work.
    pub(super) fn given(&mut self, units: u64, now: Nanos) {
        if std::mem::take(&mut self.waits) {
            self.resumed = now;
        }
        self.order.hand(units, now);
    }

    /// A piece of work has ended. `unstreamed_since` is the end of the last stream, if none
    /// runs.
    pub fn completed(&mut self, done: &ChunkDone, unstreamed_since: Option<Nanos>) {
        if done.held {
            self.held_left = self.held_left.saturating_sub(done.units);
            return;
        }
        // A chunk that waited for the one before it continues its span, and so does
        // a stream's chunk that was enqueued late.
        let is_late = self.streams && self.resumed < self.mark;
        let continues = self.chunks > 0 && (done.issued < self.mark || is_late);
        // A chunk that was overtaken began before the span.
        let early = match self.chunks > 0 {
            true => self.opened.saturating_sub(done.started),
            false => 0,
        };
        let since = if continues { self.mark } else { done.started };
        let took = early + done.ended.saturating_sub(since);
        let from = if early > 0 { done.started } else { since };
        if early > 0 || !continues {
            self.opened = done.started;
        }
        self.order.end(done);
        self.span += took;
        if self.chunks == 0 {
            self.first = (done.units, took);
        }
        if continues {
            self.paced_units += done.units;
            self.paced_span += took;
        }
        if unstreamed_since.is_some_and(|since| since <= from) {
            self.alone_units += done.units;
            self.alone_span += took;
        }
        self.mark = self.mark.max(done.ended);
        self.done += done.units;
        self.chunks += 1;
        let latency = done.started.saturating_sub(done.issued);
        self.latency = Some(self.latency.map_or(latency, |least| least.min(latency)));
    }

    /// Pieces of the pool done in this step.
    pub fn chunks(&self) -> u64 {
        self.chunks
    }

    /// Pool units a second in this step.
    pub fn rate(&self) -> Option<f64> {
        (self.done > 0 && self.span > 0).then(|| self.done as f64 / seconds(self.span))
    }

    /// Pool units a second in this step while no device streamed, if those were at
    /// least `enough` units.
    pub fn alone_rate(&self, enough: u64) -> Option<f64> {
        (self.alone_units >= enough.max(1) && self.alone_span > 0)
            .then(|| self.alone_units as f64 / seconds(self.alone_span))
    }

    /// The same while another device streamed.
    pub fn beside_rate(&self, enough: u64) -> Option<f64> {
        let (units, span) = (self.done - self.alone_units, self.span - self.alone_span);
        (units >= enough.max(1) && span > 0).then(|| units as f64 / seconds(span))
    }

    /// Its rate in this step and that of the steps `before`, which weighs as much as
    /// `units` of this step; 0 if neither is known.
    pub(super) fn pace(&self, before: Option<f64>, units: f64) -> f64 {
        match before.filter(|rate| *rate > 0.0) {
            None => self.rate().unwrap_or(0.0),
            Some(before) => {
                let span = seconds(self.paced_span) + units / before;
                (self.paced_units as f64 + units) / span
            }
        }
    }

    /// Seconds of a chunk beyond those of its units, from the first chunk and the
    /// smaller ones behind it. `None` where the step does not show it.
    pub fn chunk_cost(&self) -> Option<f64> {
        let (units, span) = self.first;
        let (others, other_span) = (self.done - units, self.span.saturating_sub(span));
        let part = others as f64 / units.max(1) as f64;
        // The number of costs that the first chunk's rate attributes to the others.
        let between = self.chunks.saturating_sub(1) as f64 - part;
        let cost = (seconds(other_span) - part * seconds(span)) / between;
        // A step in which others streamed for a part has two rates.
        let is_even = self.alone_units == 0 || self.alone_units == self.done;
        (self.chunks > 2 && between >= 1.0 && is_even).then_some(cost.max(0.0))
    }

    /// Least time to start a chunk.
    pub fn latency(&self) -> Option<f64> {
        self.latency.map(seconds)
    }
}
