//! How fine a device's part of the pool is cut.

use super::handout::Progress;

/// Chunks a step of a device that computes on host memory: few, since it
/// gains nothing from more, but enough to correct what turned out wrong.
const ON_HOST: Range = Range {
    first: 8,
    fewest: 2,
    most: 16,
};
/// Of one that streams: the first chunk's write and the last one's read
/// overlap with nothing, so more and smaller ones cost less.
const STREAMED: Range = Range {
    first: 24,
    fewest: 6,
    most: 64,
};
/// A chunk should take this many times as long as it takes to start one.
const WORTH_STARTING: f64 = 20.0;

#[derive(Clone, Copy, Debug)]
struct Range {
    first: u64,
    fewest: u64,
    most: u64,
}

/// A device's granularity.
#[derive(Clone, Copy, Debug)]
pub struct Granularity {
    range: Range,
    pieces: u64,
    min_chunk: u64,
}

impl Granularity {
    pub fn new(streams: bool, min_chunk: u64) -> Self {
        let range = if streams { STREAMED } else { ON_HOST };
        Self {
            range,
            pieces: range.first,
            min_chunk: min_chunk.max(1),
        }
    }

    /// Units a chunk when the device should do about `units`.
    pub fn chunk(&self, units: u64) -> u64 {
        units.div_ceil(self.pieces).max(self.min_chunk)
    }

    /// Units below which a chunk is mostly overhead.
    pub fn min_chunk(&self) -> u64 {
        self.min_chunk
    }

    /// Coarsens chunks that were over too soon after they started, and
    /// refines those that were far longer than that.
    pub fn adapt(&mut self, progress: &Progress) {
        let (Some(chunk), Some(start)) = (progress.seconds_a_chunk(), progress.latency()) else {
            return;
        };
        if chunk < WORTH_STARTING * start {
            self.pieces = (self.pieces / 2).max(self.range.fewest);
        } else if chunk > 4.0 * WORTH_STARTING * start {
            self.pieces = (self.pieces + self.pieces / 2).min(self.range.most);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::balance::ChunkDone;

    /// A step of eight chunks.
    fn step(latency: u64, duration: u64) -> Progress {
        let mut progress = Progress::default();
        for i in 0..8 {
            let issued = i * (latency + duration);
            progress.completed(&ChunkDone {
                step: 0,
                device: 0,
                units: 10,
                held: false,
                issued,
                started: issued + latency,
                ended: issued + latency + duration,
            });
        }
        progress
    }

    #[test]
    fn short_chunks_are_coarsened_down_to_the_fewest() {
        let mut granularity = Granularity::new(false, 4);
        let before = granularity.chunk(800);
        granularity.adapt(&step(10_000, 50_000));
        assert_eq!(granularity.chunk(800), 2 * before);
        for _ in 0..10 {
            granularity.adapt(&step(10_000, 50_000));
        }
        assert_eq!(granularity.chunk(800), 400);
    }

    #[test]
    fn long_chunks_are_refined_up_to_the_most() {
        let mut granularity = Granularity::new(true, 4);
        for _ in 0..10 {
            granularity.adapt(&step(10_000, 5_000_000));
        }
        assert_eq!(granularity.chunk(6400), 100);
        assert_eq!(granularity.chunk(64), 4);
    }
}
