use super::*;
use crate::graph::fixtures::{figure_6, given, kernel, step};
use crate::graph::{Argument, Datum, GraphBuilder};

fn ids(numbers: &[usize]) -> Vec<KernelId> {
    numbers.iter().copied().map(KernelId).collect()
}

#[test]
fn figure_6_has_the_papers_front_in_and_end() {
    let graph = figure_6();
    let parts = [ids(&[0]), ids(&[1, 2, 3, 4, 5]), ids(&[6])];
    let components = Components::new(&graph, &parts).expect("components");
    let t = &components.list()[1];
    assert_eq!(t.front, ids(&[1]), "k0");
    assert_eq!(t.inner, ids(&[2, 3]), "k1, k2");
    assert_eq!(t.end, ids(&[4, 5]), "k3, k4");
    assert_eq!(
        (&t.predecessors[..], &t.successors[..]),
        (&[0][..], &[2][..])
    );
    let levels: Vec<_> = components.list().iter().map(|c| c.level).collect();
    assert_eq!(levels, [0, 1, 2]);
    assert_eq!(components.readers(DatumId(0)), [1]);
}

#[test]
fn a_kernel_may_be_front_and_end_at_once() {
    let graph = figure_6();
    let components = Components::single_kernels(&graph);
    assert_eq!(components.len(), 7);
    for component in components.list() {
        assert_eq!(component.front, component.kernels);
        assert_eq!(component.end, component.kernels);
        assert!(component.inner.is_empty());
    }
}

#[test]
fn a_kernel_with_inputs_of_both_kinds_is_front() {
    let mut graph = GraphBuilder::default();
    let (a, x) = step(&mut graph, "a", &[]);
    let (b, y) = step(&mut graph, "b", &[]);
    let (c, _) = step(&mut graph, "c", &[x, y]);
    let graph = graph.build().expect("a graph");
    let components = Components::new(&graph, &[vec![a], vec![b, c]]).expect("components");
    assert_eq!(components.list()[1].front, [b, c]);
}

#[test]
fn what_cannot_be_divided_so_is_named() {
    let graph = figure_6();
    let whole = |parts: &[&[usize]]| {
        let parts: Vec<_> = parts.iter().map(|part| ids(part)).collect();
        Components::new(&graph, &parts)
            .map(|_| ())
            .map_err(|e| e.to_string())
    };
    for (parts, names) in [
        (&[&[0, 1, 2, 3, 4, 5][..]][..], &["`after`"][..]),
        (&[&[0, 1, 2, 3, 4, 5, 6], &[6]], &["`after`", "0", "1"]),
        (&[&[0, 1, 2, 3, 4, 5, 6], &[]], &["component 1"]),
        (&[&[0, 1, 2, 3, 4, 5, 6, 7]], &["kernel number 7"]),
        // k1 and k3 wait for k0, which is with k3.
        (&[&[0], &[1, 4], &[2], &[3, 5], &[6]], &["1 -> 2 -> 1"]),
    ] {
        let error = whole(parts).expect_err("refused");
        for name in names {
            assert!(error.contains(name), "{name} in {error}");
        }
    }
}

#[test]
fn kernels_for_different_kinds_are_not_mixed() {
    let mut graph = GraphBuilder::default();
    let x = given(&mut graph, "x");
    let mut ids = Vec::new();
    for (name, prefers) in [
        ("any", None),
        ("one", Some(DeviceKind::Gpu)),
        ("other", Some(DeviceKind::Cpu)),
    ] {
        let out = graph.datum(Datum::new(name, 8));
        let arguments = vec![Argument::Input(x), Argument::Output(out)];
        let mut kernel = kernel(name, arguments);
        kernel.prefers = prefers;
        ids.push(graph.kernel(kernel));
    }
    let graph = graph.build().expect("a graph");
    let error = Components::new(&graph, &[ids.clone()]).expect_err("mixed");
    let text = error.to_string();
    for part in ["`one`", "gpu", "`other`", "cpu", "component 0"] {
        assert!(text.contains(part), "{part} in {text}");
    }
    let by_kind = Components::by(&graph, |kernel| graph.kernel(kernel).prefers).expect("by kind");
    let kinds: Vec<_> = by_kind.list().iter().map(|c| c.prefers).collect();
    assert_eq!(kinds, [None, Some(DeviceKind::Gpu), Some(DeviceKind::Cpu)]);
}
