//! Task sets on the simulated machine of the paper.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use pdawl_api::engine::graph::kernel_seconds::KernelSeconds;
use pdawl_api::engine::graph::{
    Control, DeviceUse, Division, GraphRunError, GraphRuns, Options, Repetition, least_seconds,
};
use pdawl_api::graph::Components;
use pdawl_api::machine::{MachineFile, MachineStore};
use pdawl_api::policy::{NamedPolicy, PolicyOptions, WINDOW};
use pdawl_api::runtime::Devices;
use pdawl_api::runtime::sim::{Sim, SimDevice, SimOptions};
use pdawl_api::workload::task_set::{
    Cholesky, Matmul2d, Matmul3d, RandomTasks, TILE, TaskSet, Tasks,
};

fn machine() -> MachineFile {
    let store = MachineStore::at("/nonexistent");
    store.find("v100x2").expect("a machine")
}

fn gpus() -> Sim {
    let named = |name: &str| SimDevice::Named(name.into());
    let options = SimOptions {
        devices: Some(vec![named("gpu0"), named("gpu1")]),
        noise: Some(0.0),
        ..SimOptions::default()
    };
    Sim::new(&machine(), options).expect("a simulator")
}

fn seconds(set: &TaskSet) -> KernelSeconds {
    let graph = Arc::new(set.sample().graph().expect("a graph"));
    let stop = AtomicBool::new(false);
    KernelSeconds::measure(&mut gpus(), &graph, &stop).expect("times")
}

fn run(set: &TaskSet, policy: &str, memory: Option<u64>) -> Result<GraphRuns, GraphRunError> {
    let graph = Arc::new(set.graph().expect("a graph"));
    let policy: NamedPolicy = policy.parse().expect("a policy");
    let stop = AtomicBool::new(false);
    let mut control = Control {
        stop: &stop,
        progress: &mut |_, _| {},
    };
    let mut gpus = gpus();
    let kernels = Arc::new(Components::single_kernels(&graph));
    let times = seconds(set).of(&graph);
    let mut division = Division::new(&gpus, &graph, kernels, &times, memory)?;
    let of_policy = PolicyOptions {
        window: Some(WINDOW),
        seed: 1,
        ..PolicyOptions::default()
    };
    let make = |problem| policy.policy(problem, &of_policy);
    let options = Options::of_tasks(&graph, gpus.devices());
    division.repeat(&mut gpus, make, &options, &Repetition::ONCE, &mut control)
}

/// A figure of all devices together.
fn sum(run: &GraphRuns, figure: fn(&DeviceUse) -> u64) -> u64 {
    run.last.uses.iter().map(figure).sum()
}

#[test]
fn a_sample_has_every_kind_of_task() {
    for tasks in [
        Tasks::Matmul2d(Matmul2d::sparse(40)),
        Tasks::Matmul3d(Matmul3d {
            sum: true,
            ..Matmul3d::paper(5)
        }),
        Tasks::Cholesky(Cholesky::paper(6)),
    ] {
        let set = TaskSet::paper(tasks);
        let seconds = seconds(&set);
        let graph = set.graph().expect("a graph");
        for kernel in graph.kernels() {
            let times = seconds.alike(kernel).expect("a kind");
            assert!(times.iter().all(Option::is_some), "{}", kernel.name);
        }
    }
}

#[test]
fn random_tasks_take_time_by_their_operations() {
    let set = TaskSet::paper(Tasks::Random(RandomTasks {
        flops: 1e12,
        ..RandomTasks::small(100)
    }));
    let graph = set.graph().expect("a graph");
    for (kernel, times) in graph.kernels().iter().zip(seconds(&set).of(&graph)) {
        let expected = kernel.cost.flops / 12.799075e12;
        let found = times[0].expect("seconds");
        assert!(
            (found - expected).abs() < 1e-5 + 1e-3 * expected,
            "{}",
            kernel.name
        );
    }
}

#[test]
fn every_datum_is_loaded_at_least_once_and_no_run_is_faster_than_the_bound() {
    let set = TaskSet::paper(Tasks::Matmul2d(Matmul2d {
        outputs: true,
        ..Matmul2d::paper(8)
    }));
    let graph = set.graph().expect("a graph");
    let given = 2 * 8 * u64::from(TILE) * u64::from(4 * TILE) * 4;
    let wanted = 64 * u64::from(TILE) * u64::from(TILE) * 4;
    let bound = least_seconds(&graph, &machine(), gpus().devices()).expect("a bound");
    let copies = (given + wanted) as f64 / 12.39e9;
    assert!((bound - copies).abs() < 1e-9, "{bound} {copies}");
    for policy in ["eager", "dmdar", "partition", "mhfp", "darts", "darts+luf"] {
        let run = run(&set, policy, Some(100_000_000)).expect("a run");
        assert!(sum(&run, |of| of.bytes_h2d) >= given, "{policy}");
        assert_eq!(sum(&run, |of| of.bytes_d2h), wanted, "{policy}");
        assert!(sum(&run, |of| of.evictions) > 0, "{policy}");
        let seconds = run.last.seconds;
        assert!(seconds >= bound, "{policy}: {seconds}");
        assert!(run.deciding_seconds > 0.0, "{policy}");
    }
}

#[test]
fn a_task_that_does_not_fit_is_named() {
    let set = TaskSet::paper(Tasks::Matmul2d(Matmul2d::paper(2)));
    let error = run(&set, "eager", Some(1 << 20)).err();
    assert!(
        matches!(&error, Some( GraphRunError::Memory { kernels, .. }) if kernels == "`gemm.0.0`")
    );
}

/// Requests fill the room of rows that are done with the next rows, so the block columns
/// that are there serve several rows. Without requests the loads have 11.7 GiB.
#[test]
fn dmdar_loads_ahead_into_room_that_nobody_needs() {
    let set = TaskSet::paper(Tasks::Matmul2d(Matmul2d::paper(75)));
    let run = run(&set, "dmdar", Some(500 << 20)).expect("a run");
    let loaded = sum(&run, |of| of.bytes_h2d);
    assert!(loaded < 9 << 30, "{loaded}");
}
