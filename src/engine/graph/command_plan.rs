//! The command plan of a component on a device, kept from run to run: the command
//! queues follow from the copies that are needed, and these are mostly the same.

use super::command_graphs::GraphPlan;
use pdawl_core::graph::{
    CommandQueues, Components, DatumId, QueueCommand, QueueSlot, TaskGraph, Transfers,
};
use std::cell::RefCell;

/// A component's command queues, with what follows from them.
pub(super) struct CommandPlan {
    pub queues: CommandQueues,
    /// By command, in the order of [`CommandQueues::order`]: what it waits for,
    /// and whether it notifies the host of its end.
    pub waits: Vec<Vec<QueueSlot>>,
    pub notifies: Vec<bool>,
    /// Whether there are no copies, on a device with memory of its own.
    pub launches_only: bool,
    /// How it is a command graph, if it may be one.
    pub as_graph: Option<GraphPlan>,
    /// Queues of a device that the component is spread over.
    width: usize,
    /// The questions to [`Transfers`] that the queues follow from, and the
    /// answers.
    answers: Vec<(Question, bool)>,
}

/// A question to [`Transfers`].
#[derive(Clone, Copy)]
enum Question {
    Write(DatumId),
    Read(DatumId),
}

impl Question {
    fn answer(self, transfers: &dyn Transfers) -> bool {
        match self {
            Self::Write(datum) => transfers.write(datum),
            Self::Read(datum) => transfers.read(datum),
        }
    }
}

/// Records what is asked, with the answers.
struct RecordedTransfers<'a> {
    transfers: &'a dyn Transfers,
    answers: RefCell<Vec<(Question, bool)>>,
}

impl RecordedTransfers<'_> {
    fn ask(&self, question: Question) -> bool {
        let answer = question.answer(self.transfers);
        self.answers.borrow_mut().push((question, answer));
        answer
    }
}

impl Transfers for RecordedTransfers<'_> {
    fn write(&self, datum: DatumId) -> bool {
        self.ask(Question::Write(datum))
    }

    fn read(&self, datum: DatumId) -> bool {
        self.ask(Question::Read(datum))
    }
}

impl CommandPlan {
    /// The plan of a component over `width` queues.
    pub fn new(
        graph: &TaskGraph,
        components: &Components,
        component: usize,
        width: usize,
        ranks: &[f64],
        shares: bool,
        transfers: &dyn Transfers,
    ) -> Self {
        let recorded = RecordedTransfers {
            transfers,
            answers: RefCell::default(),
        };
        let queues = CommandQueues::new(graph, components, component, width, ranks, &recorded);
        let waits = queues.waits();
        let launch = |command: &QueueCommand| matches!(command, QueueCommand::NdRange(_));
        let launches_only = !shares && queues.queues.iter().flatten().all(launch);
        let as_graph = || GraphPlan::new(graph, components, component, &queues, &waits);
        Self {
            as_graph: (!shares).then(as_graph).flatten(),
            launches_only,
            notifies: notifying_commands(graph, components, &queues, &waits),
            waits,
            queues,
            width,
            answers: recorded.answers.into_inner(),
        }
    }

    /// A plan of these queues alone.
    #[cfg(test)]
    pub fn of(queues: CommandQueues) -> Self {
        Self {
            queues,
            waits: Vec::new(),
            notifies: Vec::new(),
            launches_only: true,
            as_graph: None,
            width: 1,
            answers: Vec::new(),
        }
    }

    /// Whether this is the plan for these copies, too: as long as the answers are
    /// the same, the same questions follow.
    pub fn fits(&self, width: usize, transfers: &dyn Transfers) -> bool {
        let mut answers = self.answers.iter();
        self.width == width
            && answers.all(|(question, answer)| question.answer(transfers) == *answer)
    }
}

/// By command, in the order of [`CommandQueues::order`]: whether it has an event.
/// Every copy has one; a kernel has one if another queue or another component
/// waits for it, or if it is the last of its queue.
fn notifying_commands(
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

    /// This datum, and no other, is written.
    struct OneWrite(Option<DatumId>);

    impl Transfers for OneWrite {
        fn write(&self, datum: DatumId) -> bool {
            self.0 == Some(datum)
        }

        fn read(&self, _datum: DatumId) -> bool {
            false
        }
    }

    #[test]
    fn a_plan_fits_the_copies_it_was_made_for() {
        let graph = figure_6();
        let parts = [0..1, 1..6, 6..7].map(|range| range.map(KernelId).collect());
        let components = Components::new(&graph, &parts).unwrap();
        let of = |one: &OneWrite| CommandPlan::new(&graph, &components, 1, 2, &[], false, one);
        // b5, the fourth datum, comes from the host.
        let (plain, copying) = (OneWrite(None), OneWrite(Some(DatumId(3))));
        let (plan, other) = (of(&plain), of(&copying));
        assert!(plan.fits(2, &plain) && !plan.fits(3, &plain));
        assert!(!plan.fits(2, &copying));
        assert!(other.fits(2, &copying) && !other.fits(2, &plain));
        assert!(plan.launches_only && !other.launches_only);
        // A datum that the component neither reads nor makes does not matter.
        assert!(plan.fits(2, &OneWrite(Some(DatumId(graph.data().len())))));
    }

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
