//! Devices that fail or vanish during a run: the others compute right results, or
//! an error names what is lost; never a wrong result, never a hang.

use fastrand::Rng;
use pdawl::engine::graph::{GraphRunError, Options};
use pdawl::policy::Clustering;
use pdawl::runtime::sim::{self, At, Sim, SimOptions, What};
use pdawl::runtime::union::faults::{Effect, Fault, When};
use pdawl::runtime::{DeviceId, Runtime};

use super::random::{Case, case};
use super::run::{
    check_memory, check_order, check_results, connect, limit_memory, numbers, once, options,
    policy, prepared,
};
use super::simulated::{devices, machine, machine_of, seeds};
use crate::pocl::open;

/// Runs a case twice on a runtime that loses a device; returns whether both runs
/// succeeded.
fn survives(rng: &mut Rng, runtime: &mut dyn Runtime, case: &Case, slack: u64, what: &str) -> bool {
    let mut policy = policy(rng, numbers(runtime, case));
    let options = options(rng, runtime.devices().len());
    let mut prepared = prepared(runtime, case);
    let limit = limit_memory(rng, &mut prepared);
    let what = format!("{what}, {}, {options:?}, {limit} bytes", policy.name());
    let mut well = true;
    for run in 0..2 {
        match once(&mut prepared, runtime, policy.as_mut(), &options) {
            Ok(outcome) => {
                assert!(run == 0 || well, "{what}: a lost device is back");
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
        let fault = sim::Fault {
            device: rng.usize(0..devices.len()),
            at: At::Seconds(10f64.powf(-5.5 + 3.0 * rng.f64())),
            what: if rng.bool() {
                What::Lost
            } else {
                What::FailNext(rng.u32(1..4))
            },
        };
        let what = format!("seed {seed}, {devices:?}, {fault:?}");
        let mut sim = Sim::new(
            &machine_of(seed),
            SimOptions {
                seed,
                noise: Some(0.3),
                data: true,
                devices: Some(devices),
                faults: vec![fault],
            },
        )
        .expect("a simulator");
        let case = case(&mut rng, 14);
        well += usize::from(survives(&mut rng, &mut sim, &case, 0, &what));
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
            let mut runtime = open(devices).with_faults(vec![fault]);
            connect(&mut rng, &mut runtime);
            let case = case(&mut rng, 10);
            let what = format!("{devices}, seed {seed}, case {number}, {fault:?}");
            survives(&mut rng, &mut runtime, &case, 100_000, &what);
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
            what: What::Lost,
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
