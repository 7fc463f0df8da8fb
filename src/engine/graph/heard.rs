//! Of which of a component's commands the host hears the end.
//!
//! E_Q says what waits for what; what it costs to be waited for is another
//! matter. In a queue commands are in order, so the end of one tells of all
//! before it, and most kernels need no event of their own. This is the one place
//! that decides which do.

use crate::graph::{CommandQueues, Components, Place, Planned, TaskGraph};

/// By command, in the order of [`CommandQueues::order`]: whether its end is heard
/// of. That is every copy; and a kernel that another queue waits for, that
/// another component waits for, or that is the last in its queue.
pub(super) fn heard(
    graph: &TaskGraph,
    components: &Components,
    made: &CommandQueues,
    waits: &[Vec<Place>],
) -> Vec<bool> {
    let waited = |place: &Place| waits.iter().flatten().any(|before| before == place);
    let heard = |place: &Place| match made.at(*place) {
        Planned::Write(..) | Planned::Read(..) => true,
        Planned::NdRange(kernel) => {
            let own = components.of(kernel);
            let mut after = graph.successors(kernel).iter();
            place.position + 1 == made.queues[place.queue].len()
                || after.any(|next| components.of(*next) != own)
                || waited(place)
        }
    };
    made.order.iter().map(heard).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::testbed::{figure_6, given, step};
    use crate::graph::{DatumId, GraphBuilder, KernelId, Transfers};

    /// Everything is where it is needed.
    struct Nothing;

    impl Transfers for Nothing {
        fn write(&self, _datum: DatumId) -> bool {
            false
        }

        fn read(&self, _datum: DatumId) -> bool {
            false
        }
    }

    /// By kernel of the second component of the paper's Figure 6: whether its end
    /// is heard of.
    fn figure(queues: usize) -> Vec<(usize, bool)> {
        let graph = figure_6();
        let parts = [0..1, 1..6, 6..7].map(|range| range.map(KernelId).collect());
        let components = Components::new(&graph, &parts).unwrap();
        let made = CommandQueues::new(&graph, &components, 1, queues, &[], &Nothing);
        let waits = made.waits();
        let heard = heard(&graph, &components, &made, &waits);
        for place in waits.iter().flatten() {
            let at = made.order.iter().position(|other| other == place);
            assert!(heard[at.unwrap()], "{place:?} is waited for");
        }
        let kernels = made.order.iter().map(|place| match made.at(*place) {
            Planned::NdRange(kernel) => kernel.0,
            other => panic!("{other:?}"),
        });
        let mut all: Vec<_> = kernels.zip(heard).collect();
        all.sort_unstable();
        all
    }

    #[test]
    fn in_one_queue_only_what_others_wait_for_is_heard_of() {
        // k3 and k4 make what another component reads.
        let expected = [(1, false), (2, false), (3, false), (4, true), (5, true)];
        assert_eq!(figure(1), expected);
    }

    #[test]
    fn over_several_queues_their_ends_and_what_they_wait_for_are_heard_of() {
        // k0 k2 k4 | k1 k3: of those that nobody reads outside k0 is waited for.
        let expected = [(1, true), (2, false), (3, false), (4, true), (5, true)];
        assert_eq!(figure(2), expected);
        assert!(figure(3).iter().all(|(_, heard)| *heard), "E_Q has all");
    }

    #[test]
    fn the_last_of_a_component_that_nobody_reads_is_heard_of() {
        let mut graph = GraphBuilder::default();
        let mut last = given(&mut graph, "given");
        for name in ["a", "b", "c"] {
            last = step(&mut graph, name, &[last]).1;
        }
        let graph = graph.build().unwrap();
        let components = Components::by(&graph, |_| ()).unwrap();
        let made = CommandQueues::new(&graph, &components, 0, 1, &[], &Nothing);
        let heard = heard(&graph, &components, &made, &made.waits());
        assert_eq!(heard, [false, false, true]);
    }
}
