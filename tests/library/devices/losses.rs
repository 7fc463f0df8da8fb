//! Devices that fail or vanish during a run, with and without device memory: the
//! result is right, and the loss is reported.

use pdawl_api::balance::Strategy;
use pdawl_api::codelet::stencil::Precision::F64;
use pdawl_api::engine::corun::CorunError;
use pdawl_api::runtime::DeviceId;
use pdawl_api::runtime::union::faults::{Effect, Fault, When};
use pdawl_api::workload::Divisible;

use super::harness::{Grid, STEPS, by, corun, run};
use crate::pocl::open;

const GRID: fn() -> Grid = || Grid::new(97, 101, None, F64);

/// The steps in which a device is lost. Step 0 begins with the setup.
const LOSS_STEPS: [u32; 4] = [0, 1, 3, STEPS - 1];

/// Which of two devices is lost, and how.
const VICTIMS: [(usize, Effect); 4] = [
    (0, Effect::Lose),
    (0, Effect::Fail),
    (1, Effect::Lose),
    (1, Effect::Fail),
];

/// Loses each of two devices in turn, in both ways. Every way meets two of the steps
/// (`shift` says which), and every step two of the ways.
fn survives(devices: &str, strategy: &str, units: Option<u64>, shift: usize) {
    for (v, victim) in VICTIMS.into_iter().enumerate() {
        for s in [v + shift, v + shift + 1] {
            let step = LOSS_STEPS[s % LOSS_STEPS.len()];
            survives_loss(devices, strategy, units, victim, step);
        }
    }
}

/// Loses one of two devices in a step, and checks the result.
fn survives_loss(
    devices: &str,
    strategy: &str,
    units: Option<u64>,
    (victim, effect): (usize, Effect),
    step: u32,
) {
    let fault = Fault {
        device: DeviceId(victim),
        when: When::Phase(step),
        effect,
    };
    let mut runtime = open(devices);
    runtime.inject(vec![fault]);
    let limit = units.map(|units| units * GRID().stencil().unit_bytes());
    let outcome = run(&mut runtime, GRID(), strategy, limit);
    let what = format!("{devices}, {strategy}, {units:?}, {fault:?}");
    let loss = match outcome.losses.as_slice() {
        [loss] => loss,
        // The strategy did not use the device.
        [] if !strategy.starts_with("fixed") => return,
        losses => panic!("{what}: {losses:?}"),
    };
    assert_eq!(loss.device, victim, "{what}");
    assert!(loss.why.contains("on purpose"), "{what}: {}", loss.why);
    assert!(loss.repeated <= STEPS, "{what}");
    // The other device does the work after the loss.
    let last = outcome.steps.last().map(|step| &step.devices[1 - victim]);
    assert!(last.is_some_and(|other| other.units > 0), "{what}");
}

#[test]
fn of_two_on_host_memory() {
    survives("host:1,cpu:1", "fixed:0.5,0.5", None, 0);
}

#[test]
fn of_a_pool_and_a_device_that_holds_units() {
    survives("host:1,cpu:1=own", "fixed:0.5,0.5", None, 1);
}

#[test]
fn of_a_pool_and_a_device_that_streams() {
    survives("host:1,cpu:1=own", "fixed:0.5,0.5", Some(20), 2);
}

#[test]
fn of_two_that_hold_units() {
    survives("cpu:1=own,cpu:1=own", "fixed:0.5,0.5", None, 3);
}

#[test]
fn of_two_that_hold_some_and_stream_the_rest() {
    survives("cpu:1=own,cpu:1=own", "fixed:0.3,0.7", Some(50), 0);
}

#[test]
fn under_strategies_that_move_units() {
    let setups = [
        ("host:1,cpu:1", None),
        ("host:1,cpu:1=own", None),
        ("host:1,cpu:1=own", Some(60)),
        ("cpu:1=own,cpu:1=own", Some(60)),
    ];
    // Each setup loses every victim and has a loss in every step; all setups
    // together have every combination of victim and step.
    for strategy in ["guided", "dawl"] {
        for (s, (devices, units)) in setups.into_iter().enumerate() {
            for (v, victim) in VICTIMS.into_iter().enumerate() {
                let step = LOSS_STEPS[(s + v) % LOSS_STEPS.len()];
                survives_loss(devices, strategy, units, victim, step);
            }
        }
    }
}

#[test]
fn of_the_only_device_is_the_end() {
    for (effect, step) in [(Effect::Lose, 0), (Effect::Lose, 2), (Effect::Fail, 2)] {
        let fault = Fault {
            device: DeviceId(0),
            when: When::Phase(step),
            effect,
        };
        let mut runtime = open("cpu:1=own");
        runtime.inject(vec![fault]);
        let ended = corun(&mut runtime, &GRID().stencil(), None, by(&Strategy::Dawl));
        assert!(
            matches!(&ended, Err(CorunError::AllLost { why, .. }) if why.contains("on purpose")),
            "{ended:?}"
        );
    }
}
