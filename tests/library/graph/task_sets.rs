//! Task sets in the simulator and on real devices: checking tasks leave the right
//! bytes under every policy, in limited memory too, and the paper's tasks take the
//! paper's time.

use std::sync::Arc;

use fastrand::Rng;
use pdawl_api::engine::graph::Options;
use pdawl_api::graph::{Components, DatumId};
use pdawl_api::machine::MachineStore;
use pdawl_api::policy::Eager;
use pdawl_api::runtime::Runtime;
use pdawl_api::runtime::sim::{Sim, SimDevice, SimOptions};
use pdawl_api::workload::task_set::{
    Body, Cholesky, Matmul2d, Matmul3d, Order, RandomTasks, TaskSet, Tasks,
};

use super::mix_reference::mix_reference;
use super::random::Case;
use super::run::{
    check_memory, check_order, limit_memory, numbers, once, options, policy, prepared,
};
use super::simulated::{devices, machine_of, seeds};
use crate::pocl::open;

/// A random small set of checking tasks.
fn checking(rng: &mut Rng) -> TaskSet {
    let n = rng.u32(1..5);
    let tasks = match rng.u8(0..8) {
        0 => Tasks::Matmul2d(Matmul2d {
            outputs: rng.bool(),
            ..Matmul2d::paper(n)
        }),
        1 => Tasks::Matmul2d(Matmul2d::sparse(30)),
        2 => Tasks::Matmul3d(Matmul3d {
            sum: rng.bool(),
            ..Matmul3d::paper(n)
        }),
        3 => Tasks::Cholesky(Cholesky {
            dependencies: rng.bool(),
            ..Cholesky::paper(n)
        }),
        _ => Tasks::Random(RandomTasks {
            dependencies: rng.u8(0..4) > 0,
            outputs: rng.u8(0..4) > 0,
            ..RandomTasks::small(rng.u32(1..40))
        }),
    };
    TaskSet {
        order: match rng.bool() {
            true => Order::Natural,
            false => Order::Random,
        },
        body: Body::Mix,
        seed: rng.u64(..),
        ..TaskSet::paper(tasks)
    }
}

/// A set as a case with a component a task. Its results are compared here, since
/// their bytes are no multiple of a number.
fn case(set: &TaskSet) -> Case {
    let graph = Arc::new(set.graph().expect("a graph"));
    Case {
        components: Arc::new(Components::single_kernels(&graph)),
        graph,
        expected: Vec::new(),
    }
}

/// Runs random sets twice each under random policies, and compares every result.
fn holds(runtime: &mut dyn Runtime, rng: &mut Rng, slack: u64, what: &str) {
    let set = checking(rng);
    let case = case(&set);
    let right = mix_reference(&case.graph).expect("checking tasks");
    let mut policy = policy(rng, numbers(runtime, &case));
    let options = options(rng, runtime.devices().len());
    let mut prepared = prepared(runtime, &case);
    let limit = limit_memory(rng, &mut prepared);
    for run in 0..2 {
        let what = format!(
            "{what}, run {run}, {}, {set:?}, {options:?}, {limit} bytes",
            policy.name()
        );
        let outcome = once(&mut prepared, runtime, policy.as_mut(), &options)
            .unwrap_or_else(|error| panic!("{what}: {error}"));
        check_order(&outcome, &options, &case, slack, &what);
        check_memory(&prepared, limit, runtime.devices().len(), &what);
        let wanted = |datum: &DatumId| case.graph.datum(*datum).wanted;
        for datum in case.graph.datum_ids().filter(wanted) {
            let found = prepared.bytes(runtime, datum).expect("its bytes");
            let name = &case.graph.datum(datum).name;
            assert_eq!(found, right[datum.0], "{name}, {what}");
        }
    }
    prepared.release(runtime);
}

#[test]
fn checking_tasks_are_right_in_the_simulator() {
    for seed in seeds() {
        let mut rng = Rng::with_seed(seed);
        let options = SimOptions {
            seed,
            noise: Some(0.3),
            data: true,
            devices: Some(devices(&mut rng)),
            ..SimOptions::default()
        };
        let mut sim = Sim::new(&machine_of(seed), options).expect("a simulator");
        holds(&mut sim, &mut rng, 0, &format!("seed {seed}"));
    }
}

#[test]
fn checking_tasks_are_right_on_real_devices() {
    let mut runtime = open("host:1,cpu:1=own");
    let seed = fastrand::u64(..);
    let mut rng = Rng::with_seed(seed);
    for number in 0..3 {
        let what = format!("seed {seed}, set {number}");
        // The clocks of devices and host differ slightly.
        holds(&mut runtime, &mut rng, 100_000, &what);
    }
}

/// The nanoseconds of every launch on the paper's GPU.
fn launches(tasks: Tasks) -> Vec<(String, u64)> {
    let machine = MachineStore::at("/nonexistent").find("v100x1");
    let options = SimOptions {
        devices: Some(vec![SimDevice::Named("gpu0".into())]),
        noise: Some(0.0),
        ..SimOptions::default()
    };
    let mut sim = Sim::new(&machine.expect("a machine"), options).expect("a simulator");
    let case = case(&TaskSet::paper(tasks));
    let mut policy = Eager::new(numbers(&sim, &case));
    let options = Options {
        trace: true,
        ..Options::queues(vec![1])
    };
    let mut prepared = prepared(&mut sim, &case);
    let outcome = once(&mut prepared, &mut sim, &mut policy, &options).expect("an outcome");
    let launched = outcome.launches.iter().map(|launch| {
        let name = case.graph.kernel(launch.kernel).name.to_string();
        (name, launch.ended - launch.started)
    });
    launched.collect()
}

#[test]
fn a_task_takes_the_time_of_the_papers_gpu() {
    let product = launches(Tasks::Matmul2d(Matmul2d::paper(2)));
    assert_eq!(product.len(), 4);
    for (name, nanos) in product {
        assert!(nanos.abs_diff(553_000) < 100, "{name}: {nanos}");
    }
    // A quarter of the depth.
    for (name, nanos) in launches(Tasks::Matmul3d(Matmul3d::paper(2))) {
        assert!(nanos.abs_diff(553_000 / 4) < 100, "{name}: {nanos}");
    }
}
