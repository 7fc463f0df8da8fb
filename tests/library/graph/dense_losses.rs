//! Real devices that are lost in the middle of a product or a factorisation in little
//! memory: the others end it right, and compute again what only the lost device had.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use pdawl::codelet::{Element, Precision};
use pdawl::engine::graph::{Control, GraphOutcome};
use pdawl::experiment::tasks::{KernelSeconds, PolicyChoice, TaskExperiment};
use pdawl::runtime::union::Union;
use pdawl::runtime::union::faults::{Effect, Fault, When};
use pdawl::runtime::{DeviceId, Runtime};
use pdawl::verify::numbers;
use pdawl::workload::dense::{DenseTask, Inputs, Operation};
use pdawl::workload::task_set::{Order, TiledGraph};

use crate::pocl::open;

/// Devices of which the last one is lost, and which have their own memory.
const DEVICES: [&str; 2] = ["host:1,cpu:1=own", "cpu:1=own,cpu:1=own"];

const OPERATIONS: [Operation; 2] = [
    Operation::Product {
        rows: 60,
        columns: 50,
        depth: 90,
    },
    Operation::Factorisation { rows: 110 },
];

/// An operation on tiles, and what policies know of its tasks.
struct Case {
    task: DenseTask,
    tiled: TiledGraph,
    experiment: TaskExperiment,
    seconds: KernelSeconds,
}

impl Case {
    fn new(runtime: &mut dyn Runtime, operation: Operation) -> Self {
        let task = DenseTask {
            operation,
            tile: 16,
            precision: Precision::F64.into(),
            order: Order::Natural,
            seed: 3,
        };
        let inputs = Arc::new(Inputs::generated(operation, task.seed));
        let tiled = task
            .tiled(&inputs, &AtomicBool::new(false))
            .expect("a graph");
        let graph = Arc::new(tiled.graph.clone());
        let stop = AtomicBool::new(false);
        let seconds = KernelSeconds::measure(runtime, &graph, &stop).expect("times");
        Self {
            task,
            tiled,
            experiment: TaskExperiment::new(graph),
            seconds,
        }
    }

    /// Runs it with a fault, in the memory of three tasks, and checks the result.
    fn run(&self, runtime: &mut Union, policy: &str, fault: Fault, what: &str) -> GraphOutcome {
        let (_, bytes) = self.experiment.largest_task().expect("a task");
        let mut open = (self.experiment)
            .open(runtime, &self.seconds, Some(3 * bytes))
            .expect("memory");
        let choice = PolicyChoice {
            policy: policy.parse().expect("a policy"),
            window: Some(3),
            seed: 1,
        };
        let stop = AtomicBool::new(false);
        let mut control = Control {
            stop: &stop,
            progress: &mut |_, _| {},
        };
        runtime.inject(vec![fault]);
        let run = open.run(runtime, &choice, false, &mut control);
        let run = run.unwrap_or_else(|error| panic!("{what}: {error}"));
        let read = |datum, element: Element| {
            let bytes = open.prepared().bytes(runtime, datum);
            bytes.map(|bytes| numbers(bytes, element))
        };
        let verified = self.task.verify(&self.tiled, read, &stop);
        let verified = verified.expect("numbers").expect("a verification");
        assert!(verified.right(), "{what}: {verified:?}");
        open.release(runtime);
        run.outcome
    }
}

/// Loses the second device in each of these moments; returns how many tasks that had ended
/// ran again.
fn survives(case: &Case, runtime: &mut Union, policy: &str, moments: &[When], what: &str) -> usize {
    let mut repeated = 0;
    for when in moments {
        let what = format!("{what}, {policy}, {when:?}");
        let fault = Fault {
            device: DeviceId(1),
            when: *when,
            effect: Effect::Lose,
        };
        let outcome = case.run(runtime, policy, fault, &what);
        // None if it had fewer launches, or ended sooner.
        assert!(outcome.losses.len() <= 1, "{what}");
        for loss in &outcome.losses {
            assert_eq!((loss.device, loss.why.as_str()), (1, "lost on purpose"));
            repeated += loss.repeated.len();
        }
        let tasks = case.experiment.tasks();
        assert_eq!(outcome.placements.len(), tasks, "{what}");
        let on_lost = (outcome.placements.iter())
            .filter(|placed| placed.device == 1)
            .count();
        assert!(outcome.losses.is_empty() || on_lost < tasks, "{what}");
    }
    repeated
}

/// Loses the second device under each policy, with each operation on each list of devices.
/// Per operation and policy, some tasks that had ended run again if `repeats`.
fn all_survive(moments: &[When], repeats: bool) {
    for operation in OPERATIONS {
        let mut repeated = [0; 2];
        for devices in DEVICES {
            let mut runtime = open(devices);
            let case = Case::new(&mut runtime, operation);
            let what = format!("{devices}, {operation:?}");
            for (policy, sum) in ["locality", "darts+luf"].iter().zip(&mut repeated) {
                *sum += survives(&case, &mut runtime, policy, moments, &what);
            }
        }
        assert!(
            !repeats || !repeated.contains(&0),
            "{operation:?}: {repeated:?}"
        );
    }
}

#[test]
fn what_only_the_lost_device_had_is_computed_again() {
    all_survive(&[2, 7, 12].map(When::Launch), true);
}

#[test]
fn a_device_is_lost_with_its_commands_in_flight() {
    all_survive(&[0, 1_000_000].map(When::Time), false);
}
