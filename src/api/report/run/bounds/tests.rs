//! Bounds of runs whose least time is known.

use super::super::fixtures;
use super::*;
use crate::graph::{GraphBuilder, KernelId};
use crate::graphs::{given, step};

#[test]
fn a_corun_at_full_speed_reaches_its_bound() {
    // 170 units take the host 0.36 s. 230 units take the GPU 0.32 s, without the quarter of
    // its copies that no kernel hides.
    let outcome = fixtures::outcome();
    let bounds = Bounds::of_corun(&outcome).expect("bounds");
    let gpu = 4.0 * (0.09 - 0.04 + 0.03);
    let rates = 170.0 / 0.36 + 230.0 / gpu;
    assert!(
        (bounds.area_seconds / (400.0 / rates) - 1.0).abs() < 0.005,
        "{bounds:?}"
    );
    assert!(bounds.area_seconds <= outcome.seconds);
    assert_eq!(bounds.critical_path_seconds, None);
    assert_eq!(Bounds::of_corun(&Outcome::default()), None);
}

fn launched(kernel: usize, device: usize, started: u64, ended: u64) -> Launched {
    Launched {
        kernel: KernelId(kernel),
        device,
        queue: 0,
        started,
        ended,
    }
}

/// Two kernels one after the other, and one beside them, all of a codelet.
fn graph() -> TaskGraph {
    let mut graph = GraphBuilder::default();
    let given = given(&mut graph, "given");
    let (_, first) = step(&mut graph, "first", &[given]);
    step(&mut graph, "second", &[first]);
    step(&mut graph, "beside", &[given]);
    graph.build().expect("a graph")
}

fn of(launches: Vec<Launched>) -> Option<Bounds> {
    let outcome = GraphOutcome {
        devices: vec!["host".into(), "gpu0".into()],
        launches,
        ..GraphOutcome::default()
    };
    Bounds::of_graph(&outcome, &graph())
}

#[test]
fn a_graphs_bounds_follow_from_its_launches() {
    let bounds = of(vec![
        launched(0, 0, 0, 100),
        launched(1, 0, 150, 300),
        launched(2, 1, 0, 400),
    ]);
    let bounds = bounds.expect("bounds");
    let area = 3.0 / (1.0 / 125.0 + 1.0 / 400.0);
    assert!(
        (bounds.area_seconds * 1e9 / area - 1.0).abs() < 0.005,
        "{bounds:?}"
    );
    let path = bounds.critical_path_seconds.expect("a path");
    assert!((path * 1e9 - 200.0).abs() < 1e-6, "{path}");
}

#[test]
fn kernels_at_once_share_a_devices_time() {
    let bounds = of(vec![
        launched(0, 0, 0, 100),
        launched(2, 0, 0, 100),
        launched(1, 0, 100, 200),
    ]);
    // In 200 ns it ran 300 ns of kernels.
    let area = bounds.expect("bounds").area_seconds;
    assert!((area * 1e9 - 200.0).abs() < 1e-6, "{area}");
}

#[test]
fn a_class_of_kernels_that_never_ran_has_no_bounds() {
    assert_eq!(of(vec![]), None);
    assert_eq!(of(vec![launched(9, 0, 0, 1)]), None);
}
