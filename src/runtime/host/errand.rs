//! What every worker does once, beside its tiles.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crossbeam_channel::{Receiver, Sender, bounded};

use crate::runtime::BroadcastTask;

/// A worker's part in an errand. The errand is over when all parts are gone,
/// done or not.
pub struct Part {
    errand: BroadcastTask,
    _until: Sender<()>,
}

/// Tells when an errand is over.
pub struct Over(Receiver<()>);

impl Over {
    /// Waits for that.
    pub fn wait(self) {
        // Nothing is ever sent: the last sender goes with the last part.
        let _ = self.0.recv();
    }
}

impl Part {
    /// An errand's parts for so many workers.
    pub fn of(errand: &BroadcastTask, workers: usize) -> (Vec<Part>, Over) {
        let (until, over) = bounded(0);
        let part = || Part {
            errand: Arc::clone(errand),
            _until: until.clone(),
        };
        ((0..workers).map(|_| part()).collect(), Over(over))
    }

    /// Does it. A panic has been told on standard error, and must not take the
    /// worker away.
    pub fn run(self) {
        let _ = catch_unwind(AssertUnwindSafe(|| (self.errand)()));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[test]
    fn it_is_over_when_every_part_is_done_or_dropped() {
        let done = Arc::new(AtomicU32::new(0));
        let errand: BroadcastTask = {
            let done = Arc::clone(&done);
            Arc::new(move || {
                assert_ne!(done.fetch_add(1, Ordering::Relaxed), 0, "a test's panic");
            })
        };
        let (mut parts, over) = Part::of(&errand, 3);
        drop(parts.pop());
        parts.into_iter().for_each(Part::run);
        over.wait();
        assert_eq!(done.load(Ordering::Relaxed), 2);
        Part::of(&errand, 0).1.wait();
    }
}
