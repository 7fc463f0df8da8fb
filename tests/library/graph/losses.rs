//! Devices that fail or vanish during a run: the others compute right results, or
//! an error names what is lost; never a wrong result, never a hang.

use std::sync::Arc;

use fastrand::Rng;
use pdawl_api::codelet::mix::Mix;
use pdawl_api::codelet::{Cost, Value};
use pdawl_api::engine::graph::{GraphRunError, Options};
use pdawl_api::graph::{Argument, Components, Contents, Datum, GraphBuilder, Kernel};
use pdawl_api::policy::{Clustering, Finished, Policy, Problem};
use pdawl_api::runtime::sim::{self, At, FaultEffect, Sim, SimOptions};
use pdawl_api::runtime::union::faults::{Effect, Fault, When};
use pdawl_api::runtime::{DeviceId, Runtime};
use pdawl_api::time::Nanos;

use super::mix_reference::mix_reference;
use super::random::{Case, case};
use super::run::{
    check_memory, check_order, check_results, connect, limit_memory, numbers, once, options,
    policy, prepared,
};
use super::simulated::{devices, machine, machine_of, seeds};
use crate::pocl::open;
use belady::Belady;

// Devices compute given orders.
#[path = "../../../src/core/policy/fixtures/belady.rs"]
mod belady;

/// Bytes of the data of checking kernels.
const BYTES: u64 = 64;

/// Runs a case three times on a runtime that loses a device; returns whether all runs
/// succeeded.
fn survives(
    rng: &mut Rng,
    runtime: &mut dyn Runtime,
    case: &Case,
    (slack, may_return): (u64, bool),
    what: &str,
) -> bool {
    let mut policy = policy(rng, numbers(runtime, case));
    let options = options(rng, runtime.devices().len());
    let mut prepared = prepared(runtime, case);
    let limit = limit_memory(rng, &mut prepared);
    let what = format!("{what}, {}, {options:?}, {limit} bytes", policy.name());
    let mut well = true;
    for run in 0..3 {
        match once(&mut prepared, runtime, policy.as_mut(), &options) {
            Ok(outcome) => {
                assert!(
                    run == 0 || well || may_return,
                    "{what}: a lost device is back"
                );
                check_order(&outcome, &options, case, slack, &what);
                check_results(&prepared, runtime, case, &what);
                check_memory(&prepared, limit, runtime.devices().len(), &what);
            }
            Err(error @ GraphRunError::Lost { .. }) => {
                let text = error.to_string();
                assert!(
                    text.contains("component") && text.contains("lost: "),
                    "{text}"
                );
                well = false;
            }
            Err(GraphRunError::Runtime(error)) => {
                // The device was lost before the run began.
                let text = error.to_string();
                assert!(text.contains("lost"), "{what}: {text}");
                well = false;
            }
            Err(error) => panic!("{what}: {error}"),
        }
    }
    prepared.release(runtime);
    well
}

#[test]
fn in_the_simulator_at_any_time() {
    let mut well = 0;
    for seed in seeds() {
        let mut rng = Rng::with_seed(seed);
        let devices = devices(&mut rng);
        let device = rng.usize(0..devices.len());
        let struck = 10f64.powf(-5.5 + 3.0 * rng.f64());
        let mut faults = vec![sim::Fault {
            device,
            at: At::Seconds(struck),
            what: if rng.bool() {
                FaultEffect::Lost
            } else {
                FaultEffect::FailNext(rng.u32(1..4))
            },
        }];
        if rng.bool() {
            faults.push(sim::Fault {
                device,
                at: At::Seconds(struck + 10f64.powf(-7.0 + 4.0 * rng.f64())),
                what: FaultEffect::Restored,
            });
        }
        let may_return = faults.len() > 1;
        let what = format!("seed {seed}, {devices:?}, {faults:?}");
        let mut sim = Sim::new(
            &machine_of(seed),
            SimOptions {
                seed,
                noise: Some(0.3),
                data: true,
                graphs: rng.bool(),
                devices: Some(devices),
                faults,
            },
        )
        .expect("a simulator");
        let case = case(&mut rng, 14);
        let allowed = (0, may_return);
        well += usize::from(survives(&mut rng, &mut sim, &case, allowed, &what));
    }
    assert!(well > 0);
}

#[test]
fn on_real_devices_at_any_launch() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut rng = Rng::with_seed(seed);
    for devices in ["host:1,cpu:1=own", "host:1,host:1", "cpu:1=own,cpu:1=own"] {
        for number in 0..6 {
            let fault = Fault {
                device: DeviceId(rng.usize(0..2)),
                when: When::Launch(rng.u64(0..8)),
                effect: if rng.bool() {
                    Effect::Lose
                } else {
                    Effect::Fail
                },
            };
            let mut runtime = open(devices);
            runtime.inject(vec![fault]);
            connect(&mut rng, &mut runtime);
            let case = case(&mut rng, 10);
            let what = format!("{devices}, seed {seed}, case {number}, {fault:?}");
            survives(&mut rng, &mut runtime, &case, (100_000, false), &what);
        }
    }
}

/// A plan that has lost a device runs under another policy whose map still uses
/// that device.
#[test]
fn a_plan_remembers_who_is_gone() {
    let mut rng = Rng::with_seed(8);
    let case = case(&mut rng, 8);
    let options = SimOptions {
        data: true,
        devices: Some(vec![
            sim::SimDevice::Named("gpu0".into()),
            sim::SimDevice::Named("gpu1".into()),
        ]),
        // With its first commands.
        faults: vec![sim::Fault {
            device: 0,
            at: At::Seconds(1e-9),
            what: FaultEffect::Lost,
        }],
        ..SimOptions::default()
    };
    let mut runtime = Sim::new(&machine(), options).expect("a simulator");
    let problem = numbers(&runtime, &case);
    let mut prepared = prepared(&mut runtime, &case);
    let options = Options::queues(vec![2, 2]);
    for run in 0..2 {
        let map = vec![0; case.components.len()];
        let mut policy = Clustering::new(problem.clone(), map).expect("a map");
        let outcome = once(&mut prepared, &mut runtime, &mut policy, &options).expect("a run");
        assert_eq!(outcome.losses.len(), usize::from(run == 0));
        assert!(outcome.placements.iter().all(|placed| placed.device == 1));
        check_results(&prepared, &mut runtime, &case, "after a loss");
    }
}

/// Devices are lost and back between runs that keep given data, and while others work.
#[test]
fn a_device_that_is_back_gets_tasks_again_and_has_no_data_of_before() {
    for (lost, back) in [(1e-9, 2e-9), (2e-5, 4e-5), (2e-5, 2e-3)] {
        let mut rng = Rng::with_seed(8);
        let case = case(&mut rng, 12);
        let fault = |seconds, what| sim::Fault {
            device: 0,
            at: At::Seconds(seconds),
            what,
        };
        let options = SimOptions {
            data: true,
            devices: Some(vec![
                sim::SimDevice::Named("gpu0".into()),
                sim::SimDevice::Named("gpu1".into()),
            ]),
            faults: vec![
                fault(lost, FaultEffect::Lost),
                fault(back, FaultEffect::Restored),
            ],
            ..SimOptions::default()
        };
        let mut runtime = Sim::new(&machine(), options).expect("a simulator");
        let problem = numbers(&runtime, &case);
        let mut prepared = prepared(&mut runtime, &case);
        let options = Options {
            keep: true,
            ..Options::queues(vec![2, 2])
        };
        let (mut losses, mut placed) = (Vec::new(), 0);
        for _ in 0..40 {
            let map = vec![0; case.components.len()];
            let mut policy = Clustering::new(problem.clone(), map).expect("a map");
            let ran = once(&mut prepared, &mut runtime, &mut policy, &options);
            let outcome = ran.expect("a run");
            check_results(&prepared, &mut runtime, &case, "after a loss");
            losses.extend(outcome.losses.iter().map(|loss| loss.device));
            placed = outcome
                .placements
                .iter()
                .filter(|placed| placed.device == 0)
                .count();
        }
        assert_eq!(losses, [0], "lost at {lost} s, back at {back} s");
        assert_eq!(
            placed,
            case.components.len(),
            "as the map says, in the last run"
        );
    }
}

/// A checking kernel, which takes three milliseconds on a GPU and more on a host.
fn mix(number: u64, memories: &[Argument]) -> Kernel {
    let count = |kind: fn(&Argument) -> bool| memories.iter().filter(|m| kind(m)).count() as u32;
    let mix = Mix {
        reads: count(|memory| matches!(memory, Argument::Input(_))),
        updates: count(|memory| matches!(memory, Argument::InOut { .. })),
        writes: count(|memory| matches!(memory, Argument::FullOutput(_))),
    };
    let values = mix.values(number).into_iter().map(Argument::Value);
    let memories = memories.iter().flat_map(|memory| {
        let bytes = Argument::Value(Value::U64(BYTES));
        [*memory, bytes]
    });
    Kernel {
        name: format!("mix {number}").into(),
        codelet: Arc::new(mix.codelet()),
        units: 0..mix.units(),
        arguments: values.chain(memories).collect(),
        cost: Cost {
            flops: 1e10,
            bytes: 0.0,
        },
        prefers: None,
    }
}

/// Runs a graph of such kernels, divided into `parts`, on a GPU, a host and another GPU.
/// After the fault these components run again, of those that had ended, and the results
/// are right.
fn survives_fault(
    graph: GraphBuilder,
    parts: &[usize],
    fault: sim::Fault,
    repeated: &[usize],
    policy: impl FnOnce(Problem) -> Box<dyn Policy>,
) {
    let graph = Arc::new(graph.build().expect("a graph"));
    let case = Case {
        components: Arc::new(Components::by(&graph, |k| parts[k.0]).expect("components")),
        graph,
        expected: Vec::new(),
    };
    let gpu = |name: &str| sim::SimDevice::Named(name.into());
    let options = SimOptions {
        data: true,
        noise: Some(0.0),
        devices: Some(vec![
            gpu("gpu0"),
            sim::SimDevice::Host { cores: Some(2) },
            gpu("gpu1"),
        ]),
        faults: vec![fault],
        ..SimOptions::default()
    };
    let mut runtime = Sim::new(&machine(), options).expect("a simulator");
    let mut policy = policy(numbers(&runtime, &case));
    let mut prepared = prepared(&mut runtime, &case);
    let options = Options {
        // The host learns of every kernel's end.
        trace: true,
        ..Options::queues(vec![1, 1, 1])
    };
    let outcome = once(&mut prepared, &mut runtime, policy.as_mut(), &options).expect("a run");
    assert_eq!(outcome.losses.len(), 1);
    assert_eq!(outcome.losses[0].repeated, repeated);
    let right = mix_reference(&case.graph).expect("checking kernels");
    for datum in case.graph.datum_ids() {
        if case.graph.datum(datum).wanted {
            let found = prepared.bytes(&mut runtime, datum).expect("its bytes");
            assert_eq!(found, right[datum.0], "{}", case.graph.datum(datum).name);
        }
    }
}

/// The host wants what a device makes and another one loads from there. The copy to the
/// host fails, and the other device's copy is then the only one.
#[test]
fn what_only_another_device_has_gets_to_the_host() {
    let mut graph = GraphBuilder::default();
    let given = graph.datum(Datum::new("given", BYTES).with(Contents::zeros()));
    let first = graph.datum(Datum::new("first", BYTES).wanted());
    let second = graph.datum(Datum::new("second", BYTES).wanted());
    graph.kernel(mix(
        0,
        &[Argument::Input(given), Argument::FullOutput(first)],
    ));
    graph.kernel(mix(
        1,
        &[Argument::Input(first), Argument::FullOutput(second)],
    ));
    let fault = sim::Fault {
        device: 0,
        // The first kernel runs.
        at: At::Seconds(1e-3),
        what: FaultEffect::FailNext(1),
    };
    survives_fault(graph, &[0, 1], fault, &[], |problem| {
        Box::new(Belady::new(problem, vec![vec![0], vec![], vec![1]], 2))
    });
}

/// A host overwrites a datum with its next version, and fails in the same component. A
/// GPU that repeats the component gets the datum from another GPU, through the host memory
/// of the next version, so the one that the host made is gone.
#[test]
fn a_result_of_a_component_that_failed_is_made_again() {
    let mut graph = GraphBuilder::default();
    let from = graph.datum(Datum::new("first", BYTES));
    let to = graph.datum(Datum::new("next", BYTES).wanted());
    let other = graph.datum(Datum::new("other", BYTES).wanted());
    graph.kernel(mix(0, &[Argument::FullOutput(from)]));
    graph.kernel(mix(1, &[Argument::InOut { from, to }]));
    graph.kernel(mix(2, &[Argument::Input(to), Argument::FullOutput(other)]));
    let fault = sim::Fault {
        device: 1,
        // The second kernel runs.
        at: At::Seconds(8e-3),
        what: FaultEffect::FailNext(1),
    };
    survives_fault(graph, &[0, 1, 1], fault, &[], |problem| {
        Box::new(Clustering::new(problem, vec![2, 1]).expect("a map"))
    });
}

/// A lost device made a datum, of which another device has a later version. The datum is
/// made again, and the later version stays.
#[test]
fn a_version_that_is_made_again_removes_no_later_one() {
    let mut graph = GraphBuilder::default();
    let given = graph.datum(Datum::new("given", BYTES).with(Contents::zeros()));
    let first = graph.datum(Datum::new("first", BYTES).wanted());
    let beside = graph.datum(Datum::new("beside", BYTES));
    let next = graph.datum(Datum::new("next", BYTES));
    let last = graph.datum(Datum::new("last", BYTES).wanted());
    let update = |from, to| Argument::InOut { from, to };
    graph.kernel(mix(
        0,
        &[update(given, first), Argument::FullOutput(beside)],
    ));
    graph.kernel(mix(1, &[update(first, next)]));
    graph.kernel(mix(
        2,
        &[
            Argument::Input(beside),
            Argument::Input(next),
            Argument::FullOutput(last),
        ],
    ));
    let fault = sim::Fault {
        device: 0,
        // The second kernel runs.
        at: At::Seconds(4e-3),
        what: FaultEffect::Lost,
    };
    survives_fault(graph, &[0, 1, 2], fault, &[0], |problem| {
        Box::new(Belady::new(problem, vec![vec![0], vec![], vec![1, 2]], 2))
    });
}
