//! The order in which a device's chunks end. Cores that have finished their part of
//! a chunk begin the next one, so a small chunk can end while a late core still
//! works on the one before. The overtaken chunk is then nearly done.

use crate::balance::ChunkDone;
use crate::time::Nanos;

/// Chunks that were handed out and that ended.
#[derive(Clone, Copy, Debug, Default)]
pub struct Order {
    /// Units handed out, and those of them that are done.
    handed: u64,
    done: u64,
    /// When the last chunk was handed out, and whether that was later than the
    /// one before.
    latest: Nanos,
    is_later: bool,
    /// Units in flight that the last chunk has overtaken, and when that was
    /// issued.
    overtaken: u64,
    overtaker: Nanos,
}

impl Order {
    /// A chunk is handed out at `now`.
    pub fn hand(&mut self, units: u64, now: Nanos) {
        self.handed += units;
        self.is_later = now > self.latest;
        self.latest = now;
    }

    /// A chunk has ended.
    pub fn end(&mut self, done: &ChunkDone) {
        self.done += done.units;
        if done.issued < self.overtaker {
            self.overtaken = self.overtaken.saturating_sub(done.units);
        } else if self.is_later && done.issued >= self.latest {
            self.overtaken = self.handed.saturating_sub(self.done);
            self.overtaker = done.issued;
        }
    }

    /// Units handed out so far.
    pub fn handed(&self) -> u64 {
        self.handed
    }

    /// Units in flight that are nearly done, as a later chunk shows.
    pub fn overtaken(&self) -> u64 {
        self.overtaken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(units: u64, issued: Nanos) -> ChunkDone {
        ChunkDone {
            step: 0,
            device: 0,
            units,
            held: false,
            issued,
            started: issued,
            ended: issued + 100,
        }
    }

    #[test]
    fn what_a_later_chunk_has_overtaken_is_nearly_done() {
        let mut order = Order::default();
        order.hand(700, 1);
        order.hand(20, 5);
        order.end(&chunk(20, 6));
        assert_eq!(order.overtaken(), 700);
        order.hand(30, 50);
        assert_eq!(order.overtaken(), 700);
        order.end(&chunk(700, 2));
        assert_eq!(order.overtaken(), 0);
        order.end(&chunk(30, 51));
        assert_eq!((order.overtaken(), order.handed()), (0, 750));
    }

    #[test]
    fn chunks_that_end_in_their_order_overtake_nothing() {
        let mut order = Order::default();
        order.hand(10, 1);
        order.hand(10, 3);
        order.end(&chunk(10, 2));
        assert_eq!(order.overtaken(), 0);
        order.end(&chunk(10, 4));
        assert_eq!(order.overtaken(), 0);
        // Nor do those that were handed out at the same time.
        let mut order = Order::default();
        order.hand(10, 1);
        order.hand(10, 1);
        order.end(&chunk(10, 1));
        assert_eq!(order.overtaken(), 0);
    }
}
