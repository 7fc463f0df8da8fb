//! What a rehearsal expects of a run, judged by the simulator.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use pdawl_api::engine::graph::kernel_seconds::KernelSeconds;
use pdawl_api::engine::graph::{Control, Division, Options, Repetition};
use pdawl_api::graph::{Components, TaskGraph};
use pdawl_api::machine::MachineStore;
use pdawl_api::policy::{NamedPolicy, PolicyOptions, WINDOW, rehearse};
use pdawl_api::runtime::Devices;
use pdawl_api::runtime::sim::{Sim, SimDevice, SimOptions};
use pdawl_api::workload::task_set::{Cholesky, Matmul2d, Matmul3d, TaskSet, Tasks};

/// Components that have begun on a device at once, as sessions rehearse.
const DEPTH: usize = 8;

/// Expected and simulated seconds of a graph on devices of a machine.
fn both(machine: &str, devices: &str, graph: &Arc<TaskGraph>, few: &Arc<TaskGraph>) -> [f64; 2] {
    let file = MachineStore::at("/nonexistent")
        .find(machine)
        .expect("a machine");
    let opened = || {
        let options = SimOptions {
            devices: Some(SimDevice::list(devices).expect("a list")),
            noise: Some(0.0),
            ..SimOptions::default()
        };
        Sim::new(&file, options).expect("a simulator")
    };
    let stop = AtomicBool::new(false);
    let times = KernelSeconds::measure(&mut opened(), few, &stop).expect("times");
    let mut sim = opened();
    let kernels = Arc::new(Components::single_kernels(graph));
    let mut division =
        Division::new(&sim, graph, kernels, &times.of(graph), None).expect("it fits");
    let policy = NamedPolicy::LOCALITY;
    let of_policy = PolicyOptions {
        window: Some(WINDOW),
        seed: 1,
        ..PolicyOptions::default()
    };
    let mut rehearsed = policy
        .policy(division.problem.clone(), &of_policy)
        .expect("no map");
    let expected = rehearse(rehearsed.as_mut(), &division.problem, DEPTH).expect("it can run");
    let mut control = Control {
        stop: &stop,
        progress: &mut |_, _| {},
    };
    let make = |problem| policy.policy(problem, &of_policy);
    let options = Options::of_tasks(graph, sim.devices());
    let runs = division.repeat(&mut sim, make, &options, &Repetition::ONCE, &mut control);
    [expected, runs.expect("it runs").last.seconds]
}

#[test]
fn a_rehearsal_expects_what_the_simulator_takes() {
    let sets = [
        Tasks::Matmul2d(Matmul2d {
            outputs: true,
            ..Matmul2d::paper(9)
        }),
        Tasks::Matmul3d(Matmul3d {
            sum: true,
            ..Matmul3d::paper(6)
        }),
        Tasks::Cholesky(Cholesky {
            dependencies: true,
            ..Cholesky::paper(10)
        }),
    ];
    let mut errors = Vec::new();
    for tasks in sets {
        let set = TaskSet::paper(tasks);
        let graph = Arc::new(set.graph().expect("a graph"));
        let few = Arc::new(set.sample().graph().expect("a graph"));
        for (machine, devices) in [
            ("k40", "host"),
            ("k40", "gpu0"),
            ("k20-40", "host,gpu0"),
            ("titan", "gpu0"),
            ("v100x2", "gpu0"),
            ("v100x2", "gpu0,gpu1"),
            ("v100x2", "host,gpu0,gpu1"),
            ("v100x4", "gpu0,gpu1,gpu2,gpu3"),
            ("h200", "host"),
            ("h200", "gpu0"),
        ] {
            let [expected, took] = both(machine, devices, &graph, &few);
            let error = (expected / took).ln().abs();
            println!(
                "{:.3} {machine} {devices} {:?}: {expected}, {took}",
                expected / took,
                set.tasks
            );
            errors.push(error);
        }
    }
    errors.sort_by(f64::total_cmp);
    let (median, worst) = (errors[errors.len() / 2], errors[errors.len() - 1]);
    assert!(
        median < 0.005 && worst < 0.06,
        "median {median}, worst {worst}"
    );
}
