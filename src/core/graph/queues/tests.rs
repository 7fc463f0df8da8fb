use super::*;
use crate::graph::fixtures::{figure_6, given, kernel, step};
use crate::graph::{Argument, Datum, GraphBuilder};

/// As the paper has it: what comes in is written, what goes out is read.
struct Everything<'a>(&'a TaskGraph, &'a Components, usize);

impl Transfers for Everything<'_> {
    fn write(&self, datum: DatumId) -> bool {
        let producer = self.0.producer(datum);
        producer.is_none_or(|producer| self.1.of(producer) != self.2)
    }

    fn read(&self, datum: DatumId) -> bool {
        let readers = self.0.readers(datum);
        readers.is_empty() || readers.iter().any(|reader| self.1.of(*reader) != self.2)
    }
}

fn figure(queues: usize) -> CommandQueues {
    let graph = figure_6();
    let parts = [0..1, 1..6, 6..7].map(|range| range.map(KernelId).collect());
    let components = Components::new(&graph, &parts).expect("components");
    let transfers = Everything(&graph, &components, 1);
    CommandQueues::new(&graph, &components, 1, queues, &[], &transfers)
}

fn slot(queue: usize, position: usize) -> QueueSlot {
    QueueSlot { queue, position }
}

/// Figure 9: three queues. Written with the paper's names, w1 w2 e1 | w3 e2 |
/// w4 e3 are the first round and e4 r1 | e5 r2 the second.
#[test]
fn figure_9_has_exactly_the_papers_queues_and_precedences() {
    use QueueCommand::{NdRange, Read, Write};
    let [k0, k1, k2, k3, k4] = [1, 2, 3, 4, 5].map(KernelId);
    let [b2, b3, b5, b8, b13, b14] = [0, 1, 3, 5, 7, 8].map(DatumId);
    let made = figure(3);
    assert_eq!(
        made.queues,
        [
            vec![
                Write(b2, k0),
                Write(b3, k0),
                NdRange(k0),
                NdRange(k3),
                Read(k3, b13)
            ],
            vec![Write(b5, k1), NdRange(k1), NdRange(k4), Read(k4, b14)],
            vec![Write(b8, k2), NdRange(k2)],
        ]
    );
    let (e1, e2, e3) = (slot(0, 2), slot(1, 1), slot(2, 1));
    let (e4, e5) = (slot(0, 3), slot(1, 2));
    assert_eq!(
        made.precedences,
        [(e1, e2), (e1, e3), (e2, e4), (e3, e5)],
        "E_Q"
    );
}

#[test]
fn one_queue_needs_no_precedence() {
    let made = figure(1);
    assert_eq!(made.queues.len(), 1);
    assert_eq!(made.queues[0].len(), 4 + 5 + 2);
    assert!(made.precedences.is_empty());
    assert!(made.waits().iter().all(Vec::is_empty));
}

/// With two queues k0, k2, k4 are in the first and k1, k3 in the second.
#[test]
fn two_queues_meet_where_a_kernel_changes_sides() {
    let made = figure(2);
    let (e1, e2, e4) = (slot(0, 2), slot(1, 1), slot(1, 2));
    assert_eq!(made.at(e4), QueueCommand::NdRange(KernelId(4)));
    assert_eq!(made.precedences, [(e1, e2)]);
}

#[test]
fn every_parent_is_waited_for() {
    let mut graph = GraphBuilder::default();
    let parents: Vec<_> = ["p", "q", "r"].map(|n| step(&mut graph, n, &[])).to_vec();
    let inputs: Vec<_> = parents.iter().map(|(_, out)| *out).collect();
    step(&mut graph, "child", &inputs);
    let graph = graph.build().expect("a graph");
    let components = Components::by(&graph, |_| ()).expect("one component");
    let transfers = Everything(&graph, &components, 0);
    let made = CommandQueues::new(&graph, &components, 0, 4, &[], &transfers);
    let child = slot(3, 0);
    let parents = [0, 1, 2].map(|queue| (slot(queue, 0), child));
    assert_eq!(made.precedences, parents);
}

#[test]
fn a_datum_is_written_once_and_all_readers_wait_for_it() {
    let mut graph = GraphBuilder::default();
    let x = given(&mut graph, "x");
    for name in ["a", "b", "c"] {
        step(&mut graph, name, &[x]);
    }
    let graph = graph.build().expect("a graph");
    let components = Components::by(&graph, |_| ()).expect("one component");
    let transfers = Everything(&graph, &components, 0);
    let made = CommandQueues::new(&graph, &components, 0, 3, &[], &transfers);
    let writes = made.queues.iter().flatten();
    let writes = writes
        .filter(|c| matches!(c, QueueCommand::Write(..)))
        .count();
    assert_eq!(writes, 1);
    let written = slot(0, 0);
    assert_eq!(
        made.precedences,
        [(written, slot(1, 0)), (written, slot(2, 0))]
    );
}

#[test]
fn what_is_read_back_is_not_overwritten_before() {
    let mut graph = GraphBuilder::default();
    let (_, x) = step(&mut graph, "make", &[]);
    let y = graph.datum(Datum::new("y", 8));
    let replace = Argument::InOut { from: x, to: y };
    graph.kernel(kernel("replace", vec![replace]));
    let graph = graph.build().expect("a graph");
    struct ReadAll;
    impl Transfers for ReadAll {
        fn write(&self, _: DatumId) -> bool {
            false
        }
        fn read(&self, _: DatumId) -> bool {
            true
        }
    }
    let components = Components::by(&graph, |_| ()).expect("one component");
    let made = CommandQueues::new(&graph, &components, 0, 2, &[], &ReadAll);
    let (launch, read, replace) = (slot(0, 0), slot(0, 1), slot(1, 0));
    assert_eq!(made.precedences, [(launch, replace), (read, replace)]);
    // The read ends after the launch, in one queue.
    assert_eq!(made.waits()[2], [read]);
}

#[test]
fn of_equal_kernels_that_of_the_highest_rank_goes_first() {
    let mut graph = GraphBuilder::default();
    for name in ["a", "b", "c"] {
        step(&mut graph, name, &[]);
    }
    let graph = graph.build().expect("a graph");
    let components = Components::by(&graph, |_| ()).expect("one component");
    let transfers = Everything(&graph, &components, 1);
    let made = CommandQueues::new(&graph, &components, 0, 1, &[1.0, 3.0, 2.0], &transfers);
    let launches = made.order.iter().map(|slot| made.at(*slot));
    let launches: Vec<_> = launches
        .filter(|c| matches!(c, QueueCommand::NdRange(_)))
        .collect();
    assert_eq!(
        launches,
        [1, 2, 0].map(|k| QueueCommand::NdRange(KernelId(k)))
    );
}
