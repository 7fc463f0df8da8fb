//! Real devices that are lost in the middle of a product or a factorisation in little
//! memory: the others end it right, and compute again what only the lost device had.

use std::sync::atomic::AtomicBool;

use pdawl_api::cluster::space::Extent;
use pdawl_api::codelet::{Element, Precision};
use pdawl_api::engine::cluster::{Alone, Control};
use pdawl_api::engine::graph::kernel_seconds::KernelSeconds;
use pdawl_api::engine::graph::{GraphOutcome, largest_kernel};
use pdawl_api::runtime::union::Union;
use pdawl_api::runtime::union::faults::{Effect, Fault, When};
use pdawl_api::runtime::{DeviceId, Devices};
use pdawl_api::workload::cluster::{
    Cholesky, Lone, Operation, Place, Placed, Placement, Product, definite, generated_as,
};

use crate::pocl::open;
use crate::run_alone::run_alone;

/// Devices of which the last one is lost, and which have their own memory.
const DEVICES: [&str; 2] = ["host:1,cpu:1=own", "cpu:1=own,cpu:1=own"];

fn operations() -> [Operation; 2] {
    let uniform = |rows, columns, seed| {
        let extent = Extent {
            rows,
            columns,
            element: 8,
        };
        generated_as(Element::F64, extent, seed)
    };
    let product = Product {
        rows: 60,
        columns: 50,
        depth: 90,
        precision: Precision::F64.into(),
        a: uniform(60, 90, 3),
        b: uniform(90, 50, 4),
    };
    let factorisation = Cholesky {
        size: 110,
        precision: Precision::F64,
        matrix: definite(Precision::F64, 110, 3),
    };
    [
        product.operation(Placement::Rows),
        factorisation.operation(),
    ]
}

/// An operation on tiles, and what policies know of its tasks.
struct Case<'a> {
    alone: Alone<'a>,
    seconds: KernelSeconds,
}

impl<'a> Case<'a> {
    fn new(runtime: &mut Union, placed: &'a Placed) -> Self {
        let stop = AtomicBool::new(false);
        let alone = Alone::new(&*placed.workload, [], None, &stop).expect("a graph");
        let few = alone.probe(runtime.devices()).expect("a graph");
        let few = few.expect("several devices");
        let seconds = KernelSeconds::measure(runtime, &few, &stop).expect("times");
        Self { alone, seconds }
    }

    /// Runs it with a fault, in the memory of three tasks, and checks the result.
    fn run(&self, runtime: &mut Union, policy: &str, fault: Fault, what: &str) -> GraphOutcome {
        let (_, bytes) = largest_kernel(self.alone.graph(), &runtime.devices()[1]).expect("a task");
        let mut control = Control {
            tile: 16,
            verify: Some(3),
            outputs: Vec::new(),
            progress: &mut |_| {},
        };
        runtime.inject(vec![fault]);
        let by = (policy, 3, Some(3 * bytes));
        let ran = run_alone(&self.alone, runtime, &self.seconds, by, &mut control);
        let (outcome, ran) = ran.unwrap_or_else(|error| panic!("{what}: {error}"));
        let checked = outcome.checked().expect("a comparison");
        assert!(
            checked.numbers > 0 && checked.wrong == 0,
            "{what}: {checked:?}"
        );
        ran
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
        let tasks = case.alone.graph().kernels().len();
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
    for operation in operations() {
        let mut repeated = [0; 2];
        for devices in DEVICES {
            let mut runtime = open(devices);
            let place = Place::Alone(Lone::on(runtime.devices(), None));
            let placed = operation.at(place, Some(16)).expect("a workload");
            let case = Case::new(&mut runtime, &placed);
            let what = format!("{devices}, {}", operation.title);
            for (policy, sum) in ["locality", "darts+luf"].iter().zip(&mut repeated) {
                *sum += survives(&case, &mut runtime, policy, moments, &what);
            }
        }
        assert!(
            !repeats || !repeated.contains(&0),
            "{}: {repeated:?}",
            operation.title
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
