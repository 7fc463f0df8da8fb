use super::*;
use crate::codelet::{HostMemoryId, Memory};
use crate::graph::Contents;
use crate::graph::fixtures::{figure_6, given, kernel, step};

#[test]
fn edges_follow_from_who_reads_what() {
    let graph = figure_6();
    let edges: Vec<_> = graph.edges().map(|e| (e.from.0, e.to.0)).collect();
    assert_eq!(
        edges,
        [
            (0, 1),
            (0, 1),
            (1, 2),
            (1, 3),
            (2, 4),
            (3, 5),
            (4, 6),
            (5, 6)
        ]
    );
    assert_eq!(graph.order(), (0..7).map(KernelId).collect::<Vec<_>>());
    assert_eq!(graph.predecessors(KernelId(6)), [KernelId(4), KernelId(5)]);
}

#[test]
fn what_is_overwritten_has_been_read_by_all() {
    let mut graph = GraphBuilder::default();
    let (make, x) = step(&mut graph, "make", &[]);
    let y = graph.datum(Datum::new("y", 8));
    let replace = graph.kernel(kernel("replace", vec![Argument::InOut { from: x, to: y }]));
    let (late, _) = step(&mut graph, "late", &[x]);
    let (last, _) = step(&mut graph, "last", &[y]);
    let graph = graph.build().expect("a graph");
    assert_eq!(graph.order(), [make, late, replace, last]);
    assert_eq!(graph.overwriter(x), Some(replace));
    assert_eq!(graph.predecessors(replace), [make, late]);
}

/// What a graph is refused with.
fn refusal(make: impl FnOnce(&mut GraphBuilder)) -> String {
    let mut graph = GraphBuilder::default();
    make(&mut graph);
    graph.build().expect_err("refused").to_string()
}

#[test]
fn every_mistake_is_named() {
    let nothing = refusal(|_| {});
    assert!(nothing.contains("no kernels"), "{nothing}");
    for (text, parts) in [
        (
            refusal(|g| {
                let x = g.datum(Datum::new("x", 8));
                step(g, "k", &[x]);
            }),
            &["`k`", "`x`", "argument 0", "no kernel makes"][..],
        ),
        (
            refusal(|g| {
                let (_, x) = step(g, "first", &[]);
                g.kernel(kernel("second", vec![Argument::Output(x)]));
            }),
            &["`first`", "`second`", "`first.out`", "argument 0"],
        ),
        (
            refusal(|g| {
                let x = given(g, "x");
                g.kernel(kernel("k", vec![Argument::Output(x)]));
            }),
            &["`x`", "`k`", "in-out"],
        ),
        (
            refusal(|g| {
                let x = given(g, "x");
                let y = g.datum(Datum::new("y", 9));
                g.kernel(kernel("k", vec![Argument::InOut { from: x, to: y }]));
            }),
            &["`k`", "`x`", "8", "`y`", "9"],
        ),
        (
            refusal(|g| {
                let x = given(g, "x");
                for name in ["one", "two"] {
                    let y = g.datum(Datum::new(name, 8));
                    g.kernel(kernel(name, vec![Argument::InOut { from: x, to: y }]));
                }
            }),
            &["`x`", "`one`", "`two`"],
        ),
        (
            refusal(|g| {
                let memory = Memory::Host(HostMemoryId::fresh());
                let value = Argument::Value(Value::Memory(memory));
                g.kernel(kernel("k", vec![value]));
            }),
            &["`k`", "argument 0", "memory by value"],
        ),
        (
            refusal(|g| {
                g.kernel(kernel("k", vec![Argument::Input(DatumId(3))]));
            }),
            &["datum number 3"],
        ),
        (
            refusal(|g| {
                let (k, _) = step(g, "k", &[]);
                g.order(k, KernelId(9));
            }),
            &["kernel number 9"],
        ),
        (
            refusal(|g| {
                g.datum(Datum::new("x", 0));
                step(g, "k", &[]);
            }),
            &["`x`", "no bytes"],
        ),
        (
            refusal(|g| {
                g.datum(Datum::new("x", 8).with(Contents::bytes([1, 2, 3])));
                step(g, "k", &[]);
            }),
            &["`x`", "8", "3"],
        ),
        (
            refusal(|g| {
                g.datum(Datum::new("x", 8).wanted());
                step(g, "k", &[]);
            }),
            &["`x`", "wanted"],
        ),
    ] {
        for part in parts {
            assert!(text.contains(part), "{part} in {text}");
        }
    }
}

#[test]
fn a_circle_is_reported_from_end_to_end() {
    let text = refusal(|g| {
        step(g, "before", &[]);
        let (a, x) = step(g, "a", &[]);
        let (_, y) = step(g, "b", &[x]);
        let (c, _) = step(g, "c", &[y]);
        step(g, "after", &[y]);
        g.order(c, a);
    });
    assert!(text.contains("`a` -> `b` -> `c` -> `a`"), "{text}");
    let text = refusal(|g| {
        let x = g.datum(Datum::new("x", 8));
        let both = vec![Argument::Input(x), Argument::Output(x)];
        g.kernel(kernel("k", both));
    });
    assert!(text.contains("`k` -> `k`"), "{text}");
}

/// A graph that grows kernel by kernel is the one that was built at once.
#[test]
fn a_grown_graph_is_the_built_one() {
    let built = figure_6();
    let (mut grown, mut components) = (TaskGraph::empty(), Components::none());
    for (id, datum) in built.datum_ids().zip(built.data()) {
        match built.first_version(id) {
            first if first == id => grown.grow(datum.clone()),
            first => grown.grow_version(first, datum.clone()),
        };
    }
    for kernel in built.order() {
        grown.grow_kernel(built.kernel(*kernel).clone());
        components.grow(&grown, 0);
    }
    assert_eq!(built.order(), &built.kernel_ids().collect::<Vec<_>>()[..]);
    for kernel in built.kernel_ids() {
        assert_eq!(grown.predecessors(kernel), built.predecessors(kernel));
        assert_eq!(grown.successors(kernel), built.successors(kernel));
    }
    let singles = Components::single_kernels(&built);
    for datum in built.datum_ids() {
        assert_eq!(grown.producer(datum), built.producer(datum));
        assert_eq!(grown.readers(datum), built.readers(datum));
        assert_eq!(grown.first_version(datum), built.first_version(datum));
        assert_eq!(components.readers(datum), singles.readers(datum));
    }
    for (one, other) in components.list().iter().zip(singles.list()) {
        assert_eq!(one.predecessors, other.predecessors);
        assert_eq!(one.successors, other.successors);
    }
}
