//! Components whose commands are enqueued in turns.
//!
//! Enqueueing takes the host's time, often longer than the device needs for a
//! kernel. If one component is enqueued after the other, the last queue begins
//! late, and the last component's chain of kernels runs on alone when all is
//! enqueued. So components that are ready together, on queues of their own, get
//! one command each in turns. What each queue gets, and in which order, stays the
//! same.

use std::sync::Arc;

use super::score::Score;
use crate::runtime::EventId;

/// A component that was handed to a device, and what of it is enqueued.
pub(super) struct Begun {
    pub component: usize,
    pub device: usize,
    pub level: usize,
    pub score: Arc<Score>,
    /// The device's queue that is the first of the score's, and of how many.
    pub turn: usize,
    pub count: usize,
    /// By queue of the score and position, as far as it is enqueued: the event,
    /// if there is one.
    pub events: Vec<Vec<Option<EventId>>>,
    /// How many commands are enqueued.
    pub enqueued: usize,
}

impl Begun {
    /// The device's queue that stands for one of the score's.
    pub fn queue(&self, of_score: usize) -> usize {
        (self.turn + of_score) % self.count
    }

    /// Whether it may take turns with others. Which copies another one needs
    /// depends on those that were enqueued before, so it must have none.
    pub fn takes_turns(&self) -> bool {
        self.score.launches_only
    }

    /// Whether nothing is left to be enqueued.
    pub fn complete(&self) -> bool {
        self.enqueued == self.score.queues.order.len()
    }

    /// The device's queues that it uses.
    fn queues(&self) -> impl Iterator<Item = usize> + '_ {
        let used = self.score.queues.queues.iter().enumerate();
        let used = used.filter(|(_, commands)| !commands.is_empty());
        used.map(|(queue, _)| self.queue(queue))
    }
}

/// Components that take turns.
#[derive(Default)]
pub(super) struct Wave(Vec<Begun>);

impl Wave {
    /// Whether a component may take turns with these: no queue may be another's,
    /// too.
    pub fn admits(&self, begun: &Begun) -> bool {
        self.0.iter().all(|other| {
            other.level == begun.level
                && (other.device != begun.device
                    || !other
                        .queues()
                        .any(|queue| begun.queues().any(|q| q == queue)))
        })
    }

    pub fn add(&mut self, begun: Begun) {
        self.0.push(begun);
    }

    /// The components, of which none is left.
    pub fn take(&mut self) -> Vec<Begun> {
        std::mem::take(&mut self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{CommandQueues, KernelId, Planned};

    /// A component of kernels on these queues of a device of four.
    fn begun(device: usize, turn: usize, queues: usize) -> Begun {
        let queues = CommandQueues {
            queues: vec![vec![Planned::NdRange(KernelId(0))]; queues],
            ..CommandQueues::default()
        };
        Begun {
            component: 0,
            device,
            level: 0,
            score: Arc::new(Score::of(queues)),
            turn,
            count: 4,
            events: Vec::new(),
            enqueued: 0,
        }
    }

    #[test]
    fn components_on_queues_of_their_own_take_turns() {
        let mut wave = Wave::default();
        assert!(wave.admits(&begun(0, 0, 2)));
        wave.add(begun(0, 0, 2));
        assert!(wave.admits(&begun(0, 2, 2)));
        assert!(!wave.admits(&begun(0, 3, 2)), "queue 0 is the other's");
        assert!(wave.admits(&begun(1, 0, 4)), "another device");
        let later = Begun {
            level: 1,
            ..begun(0, 2, 1)
        };
        assert!(!wave.admits(&later));
        assert_eq!(wave.take().len(), 1);
        assert!(wave.admits(&later), "the wave is empty");
    }
}
