//! Granularity: the length of a device's chunks of the pool (the paper's step 6).

use super::chunks::Progress;
use super::rates::{Estimate, NEVER_SUDDEN};

/// A chunk should take this many times as long as it takes to start one.
const WORTH_STARTING: f64 = 20.0;

/// And this many times what a chunk costs at the end of a step, where little is
/// left for all.
const WORTH_ENDING: f64 = 2.0;

/// Part of a step that starting chunks may take.
const COSTLY: f64 = 0.04;

/// Most chunks a step of a device that computes in host memory.
pub const POOL_CHUNKS: u64 = 8;

/// A device's granularity: several chunks a step, fewer where earlier steps show that
/// starting a chunk takes long beside its work.
#[derive(Clone, Debug)]
pub struct Granularity {
    /// Most and fewest chunks a step.
    most: u64,
    fewest: u64,
    min_chunk: u64,
    streams: bool,
    /// Seconds to start a chunk.
    start: Estimate,
    /// Seconds that a chunk costs beyond what its units do: beside an H200, 50
    /// units took 15 workers 45 us, and 600 took 90, though each began within 10.
    cost: Estimate,
}

impl Granularity {
    /// A device that computes on host memory needs a few chunks, so that a wrong plan
    /// can be corrected within the step. A device that streams gains from many small
    /// ones: the first chunk's write and the last one's read overlap with nothing.
    pub fn new(streams: bool, min_chunk: u64) -> Self {
        let (most, fewest) = if streams { (24, 6) } else { (POOL_CHUNKS, 2) };
        Self {
            most,
            fewest,
            min_chunk: min_chunk.max(1),
            streams,
            start: Estimate::default(),
            cost: Estimate::default(),
        }
    }

    /// Units of a chunk where the device should compute about `units` in the step, at
    /// `rate` units a second where known.
    pub fn chunk(&self, units: u64, rate: Option<f64>) -> u64 {
        let (finest, coarsest) = (units.div_ceil(self.most), units.div_ceil(self.fewest));
        let worth = WORTH_STARTING * rate.unwrap_or(0.0) * self.start.value().unwrap_or(0.0);
        (worth.round() as u64)
            .clamp(finest, coarsest)
            .max(self.min_chunk)
    }

    /// Whether starting its many chunks takes a part worth saving of the
    /// `seconds` that the device works.
    pub fn is_costly(&self, seconds: f64) -> bool {
        self.most as f64 * self.cost() > COSTLY * seconds
    }

    /// Whether so many seconds are worth another chunk.
    pub fn is_worth_a_chunk(&self, seconds: f64) -> bool {
        seconds >= self.cost()
    }

    /// Seconds that a chunk costs at least.
    fn cost(&self) -> f64 {
        let start = self.start.value().unwrap_or(0.0);
        self.cost.value().map_or(start, |cost| cost.max(start))
    }

    /// Units of the least chunk that there is.
    pub fn min_chunk(&self) -> u64 {
        self.min_chunk
    }

    /// Units below which a chunk is mostly overhead, when the device should do
    /// about `units` in the step: as far as its metrics say so half of what is
    /// cut finest. Of streams they say little: what takes long to start is
    /// under way beside others.
    pub fn least(&self, units: u64, rate: Option<f64>) -> u64 {
        if self.streams {
            return self.min_chunk;
        }
        let worth = WORTH_ENDING * rate.unwrap_or(0.0) * self.cost();
        (worth.round() as u64)
            .min(units / (2 * self.most))
            .max(self.min_chunk)
    }

    /// Supposes the seconds of a chunk's start until they are measured.
    pub fn suppose(&mut self, start: Option<f64>) {
        self.start.suppose(start);
    }

    /// Updates the costs of a chunk by a step that has ended.
    pub fn adapt(&mut self, progress: &Progress) {
        if let Some(start) = progress.latency() {
            self.start.observe(start);
        }
        if let Some(cost) = progress.chunk_cost().filter(|_| !self.streams) {
            self.cost.observe_within(cost, NEVER_SUDDEN);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::balance::ChunkDone;

    /// A step with one chunk that took `latency` nanoseconds to start.
    fn step(latency: u64) -> Progress {
        let mut progress = Progress::default();
        progress.completed(
            &ChunkDone {
                step: 0,
                device: 0,
                units: 10,
                held: false,
                issued: 0,
                started: latency,
                ended: latency + 1000,
            },
            None,
        );
        progress
    }

    #[test]
    fn chunks_that_would_be_over_too_soon_are_coarsened() {
        let mut granularity = Granularity::new(false, 4);
        assert_eq!(granularity.chunk(800, Some(1e6)), 100);
        granularity.adapt(&step(10_000));
        assert_eq!(granularity.chunk(800, Some(1e6)), 200);
        assert_eq!(granularity.chunk(800, Some(1e7)), 400);
        assert_eq!(granularity.chunk(8000, Some(1e6)), 1000);
    }

    #[test]
    fn chunks_are_costly_where_starting_them_takes_a_while() {
        let mut granularity = Granularity::new(false, 4);
        assert!(!granularity.is_costly(1e-3));
        granularity.adapt(&step(10_000));
        assert!(granularity.is_costly(1e-3));
        assert!(!granularity.is_costly(1e-2));
    }

    #[test]
    fn the_last_chunks_are_worth_their_start() {
        let mut granularity = Granularity::new(false, 4);
        assert_eq!(granularity.least(8000, Some(1e6)), 4);
        granularity.adapt(&step(10_000));
        assert_eq!(granularity.least(8000, Some(1e6)), 20);
        assert_eq!(granularity.least(8000, Some(1e9)), 500, "of 16 parts one");
        assert_eq!(granularity.least(0, Some(1e9)), 4);
        let mut streams = Granularity::new(true, 4);
        streams.adapt(&step(10_000));
        assert_eq!(streams.least(8000, Some(1e6)), 4);
    }

    #[test]
    fn no_chunk_is_below_the_least() {
        let granularity = Granularity::new(true, 4);
        assert_eq!(granularity.chunk(2400, None), 100);
        assert_eq!(granularity.chunk(24, None), 4);
        assert_eq!(granularity.chunk(0, Some(1.0)), 4);
    }
}
