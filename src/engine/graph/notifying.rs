//! Which of a component's commands notify the host of their end.
//!
//! An event costs time to make and to wait for. Queues are in order, so the end
//! of a command implies the end of all before it in its queue, and most kernels
//! need no event. This file alone decides which commands have one.

use pdawl_core::graph::{CommandQueues, Components, QueueCommand, QueueSlot, TaskGraph};

/// By command, in the order of [`CommandQueues::order`]: whether it has an event.
/// Every copy has one; a kernel has one if another queue or another component
/// waits for it, or if it is the last of its queue.
pub(super) fn notifying_commands(
    graph: &TaskGraph,
    components: &Components,
    queues: &CommandQueues,
    waits: &[Vec<QueueSlot>],
) -> Vec<bool> {
    let waited_for = |slot: &QueueSlot| waits.iter().flatten().any(|before| before == slot);
    let notifies = |slot: &QueueSlot| match queues.at(*slot) {
        QueueCommand::Write(..) | QueueCommand::Read(..) => true,
        QueueCommand::NdRange(kernel) => {
            let own = components.of(kernel);
            let mut after = graph.successors(kernel).iter();
            slot.position + 1 == queues.queues[slot.queue].len()
                || after.any(|next| components.of(*next) != own)
                || waited_for(slot)
        }
    };
    queues.order.iter().map(notifies).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graphs::{figure_6, given, step};
    use pdawl_core::graph::{DatumId, GraphBuilder, KernelId, Transfers};

    /// No copy is needed.
    struct NoTransfers;

    impl Transfers for NoTransfers {
        fn write(&self, _datum: DatumId) -> bool {
            false
        }

        fn read(&self, _datum: DatumId) -> bool {
            false
        }
    }

    /// By kernel of the second component of the paper's Figure 6: whether it has an
    /// event.
    fn figure(queues: usize) -> Vec<(usize, bool)> {
        let graph = figure_6();
        let parts = [0..1, 1..6, 6..7].map(|range| range.map(KernelId).collect());
        let components = Components::new(&graph, &parts).unwrap();
        let queues = CommandQueues::new(&graph, &components, 1, queues, &[], &NoTransfers);
        let waits = queues.waits();
        let notifying = notifying_commands(&graph, &components, &queues, &waits);
        for slot in waits.iter().flatten() {
            let at = queues.order.iter().position(|other| other == slot);
            assert!(notifying[at.unwrap()], "{slot:?} is waited for");
        }
        let kernels = queues.order.iter().map(|slot| match queues.at(*slot) {
            QueueCommand::NdRange(kernel) => kernel.0,
            other => panic!("{other:?}"),
        });
        let mut all: Vec<_> = kernels.zip(notifying).collect();
        all.sort_unstable();
        all
    }

    #[test]
    fn in_one_queue_only_kernels_that_other_components_wait_for_notify() {
        // k3 and k4 make what another component reads.
        let expected = [(1, false), (2, false), (3, false), (4, true), (5, true)];
        assert_eq!(figure(1), expected);
    }

    #[test]
    fn over_several_queues_the_last_and_those_that_are_waited_for_notify() {
        // k0 k2 k4 | k1 k3: another queue waits for k0, which nobody reads outside.
        let expected = [(1, true), (2, false), (3, false), (4, true), (5, true)];
        assert_eq!(figure(2), expected);
        let all = figure(3);
        assert!(all.iter().all(|(_, notifies)| *notifies), "E_Q has all");
    }

    #[test]
    fn the_last_of_a_component_that_nobody_reads_notifies() {
        let mut graph = GraphBuilder::default();
        let mut last = given(&mut graph, "given");
        for name in ["a", "b", "c"] {
            last = step(&mut graph, name, &[last]).1;
        }
        let graph = graph.build().unwrap();
        let components = Components::by(&graph, |_| ()).unwrap();
        let queues = CommandQueues::new(&graph, &components, 0, 1, &[], &NoTransfers);
        let notifying = notifying_commands(&graph, &components, &queues, &queues.waits());
        assert_eq!(notifying, [false, false, true]);
    }
}
