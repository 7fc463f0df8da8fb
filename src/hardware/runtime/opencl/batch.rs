//! Batches of commands, which are flushed together.

use std::sync::Arc;

use super::handle::Queue;

/// A queue is flushed after so many commands of a batch, so that a device need not
/// wait for the whole of a long batch.
const MOST: usize = 16;

/// The queues with commands that have not been flushed.
#[derive(Default)]
pub(super) struct Batch {
    open: bool,
    /// Queue, index of its device, commands.
    waiting: Vec<(Arc<Queue>, usize, usize)>,
}

impl Batch {
    /// Defers flushing from now on.
    pub(super) fn begin(&mut self) {
        self.open = true;
    }

    /// A command was enqueued; true if its queue is to be flushed now.
    pub(super) fn add(&mut self, queue: &Arc<Queue>, device: usize) -> bool {
        if !self.open {
            return true;
        }
        let own = self
            .waiting
            .iter()
            .position(|(q, ..)| Arc::ptr_eq(q, queue));
        let Some(own) = own else {
            self.waiting.push((Arc::clone(queue), device, 1));
            return false;
        };
        self.waiting[own].2 += 1;
        let full = self.waiting[own].2 >= MOST;
        if full {
            self.waiting.swap_remove(own);
        }
        full
    }

    /// Ends the batch; these queues are to be flushed.
    pub(super) fn end(&mut self) -> impl Iterator<Item = (Arc<Queue>, usize)> + use<> {
        self.open = false;
        let waiting = std::mem::take(&mut self.waiting);
        waiting
            .into_iter()
            .map(|(queue, device, _)| (queue, device))
    }
}
