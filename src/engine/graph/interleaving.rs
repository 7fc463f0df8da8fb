//! Interleaving: the commands of several components are enqueued in turns.
//!
//! Enqueueing takes the host's time, often more than the device needs for a
//! kernel. If one component is enqueued after the other, the last queue starts
//! late, and the last component's kernels run on alone when all is enqueued. So
//! components that are ready together and use different queues get one command
//! each in turns. What each queue gets, and in which order, stays the same.

use std::sync::Arc;

use super::command_plan::CommandPlan;
use crate::runtime::{CommandGraph, EventId};

/// A component that was dispatched to a device, and what of it is enqueued.
pub(super) struct Dispatch {
    pub component: usize,
    pub device: usize,
    pub level: usize,
    pub plan: Arc<CommandPlan>,
    /// The one command that it is, until that is enqueued.
    pub graph: Option<Arc<CommandGraph>>,
    /// The device's queue that is the plan's first one, and how many queues the
    /// device has.
    pub first_queue: usize,
    pub queue_count: usize,
    /// By queue of the plan and position, as far as it is enqueued: the event, if
    /// there is one.
    pub events: Vec<Vec<Option<EventId>>>,
    /// How many commands are enqueued.
    pub enqueued: usize,
}

impl Dispatch {
    /// The device's queue that stands for one of the plan's.
    pub fn queue(&self, of_plan: usize) -> usize {
        (self.first_queue + of_plan) % self.queue_count
    }

    /// Whether it may be interleaved with others. Which copies a component needs
    /// depends on those that were enqueued before, so it must have none. One command
    /// need not be enqueued in turns.
    pub fn can_interleave(&self) -> bool {
        self.plan.launches_only && self.graph.is_none()
    }

    /// Whether everything is enqueued.
    pub fn complete(&self) -> bool {
        self.enqueued == self.plan.queues.order.len()
    }

    /// The device's queues that it uses.
    fn queues(&self) -> impl Iterator<Item = usize> + '_ {
        let queues = self.plan.queues.queues.iter().enumerate();
        let used = queues.filter(|(_, commands)| !commands.is_empty());
        used.map(|(queue, _)| self.queue(queue))
    }
}

/// Components that are enqueued in turns.
#[derive(Default)]
pub(super) struct Interleaving(Vec<Dispatch>);

impl Interleaving {
    /// Whether a component may join: it must share no queue with another.
    pub fn admits(&self, dispatch: &Dispatch) -> bool {
        let shares = |queue: usize| dispatch.queues().any(|own| own == queue);
        self.0.iter().all(|other| {
            other.level == dispatch.level
                && (other.device != dispatch.device || !other.queues().any(shares))
        })
    }

    pub fn add(&mut self, dispatch: Dispatch) {
        self.0.push(dispatch);
    }

    /// Takes all components out.
    pub fn take(&mut self) -> Vec<Dispatch> {
        std::mem::take(&mut self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pdawl_core::graph::{CommandQueues, KernelId, QueueCommand};

    /// A component of kernels on these queues of a device of four.
    fn dispatch(device: usize, first_queue: usize, queues: usize) -> Dispatch {
        let queues = CommandQueues {
            queues: vec![vec![QueueCommand::NdRange(KernelId(0))]; queues],
            ..CommandQueues::default()
        };
        Dispatch {
            component: 0,
            device,
            level: 0,
            plan: Arc::new(CommandPlan::of(queues)),
            graph: None,
            first_queue,
            queue_count: 4,
            events: Vec::new(),
            enqueued: 0,
        }
    }

    #[test]
    fn components_on_different_queues_are_interleaved() {
        let mut interleaving = Interleaving::default();
        assert!(interleaving.admits(&dispatch(0, 0, 2)));
        interleaving.add(dispatch(0, 0, 2));
        assert!(interleaving.admits(&dispatch(0, 2, 2)));
        let shared = dispatch(0, 3, 2);
        assert!(!interleaving.admits(&shared), "queue 0 is the other's");
        assert!(interleaving.admits(&dispatch(1, 0, 4)), "another device");
        let later = Dispatch {
            level: 1,
            ..dispatch(0, 2, 1)
        };
        assert!(!interleaving.admits(&later));
        assert_eq!(interleaving.take().len(), 1);
        assert!(interleaving.admits(&later), "it is empty");
    }
}
