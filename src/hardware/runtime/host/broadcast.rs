//! A task that every worker thread runs once, between two tiles.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crossbeam_channel::{Receiver, Sender, bounded};

use crate::runtime::BroadcastTask;

/// A worker's copy of a task. The task is over when all copies are gone, run or
/// not.
pub struct TaskCopy {
    task: BroadcastTask,
    _until: Sender<()>,
}

/// Waits for the end of a task.
pub struct Barrier(Receiver<()>);

impl Barrier {
    /// Blocks until all copies are gone.
    pub fn wait(self) {
        // Nothing is ever sent: the last sender goes with the last copy.
        let _ = self.0.recv();
    }
}

impl TaskCopy {
    /// A copy of a task for each of so many workers.
    pub fn of(task: &BroadcastTask, workers: usize) -> (Vec<Self>, Barrier) {
        let (until, over) = bounded(0);
        let copy = || Self {
            task: Arc::clone(task),
            _until: until.clone(),
        };
        ((0..workers).map(|_| copy()).collect(), Barrier(over))
    }

    /// Runs the task. A panic, which standard error has reported, must not end the
    /// worker.
    pub fn run(self) {
        let _ = catch_unwind(AssertUnwindSafe(|| (self.task)()));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[test]
    fn a_task_is_over_when_every_copy_is_run_or_dropped() {
        let done = Arc::new(AtomicU32::new(0));
        let task: BroadcastTask = {
            let done = Arc::clone(&done);
            Arc::new(move || {
                assert_ne!(done.fetch_add(1, Ordering::Relaxed), 0, "a test's panic");
            })
        };
        let (mut copies, over) = TaskCopy::of(&task, 3);
        drop(copies.pop());
        copies.into_iter().for_each(TaskCopy::run);
        over.wait();
        assert_eq!(done.load(Ordering::Relaxed), 2);
        TaskCopy::of(&task, 0).1.wait();
    }
}
