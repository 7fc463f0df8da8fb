//! DAWL on the six shipped machines, simulated: how near it comes to the best
//! fixed shares, from equal first shares or from probes, and how it follows
//! changes.

use pdawl_api::balance::Dawl;
use pdawl_api::engine::Outcome;
use pdawl_api::runtime::sim::{At, Fault, FaultEffect};

use crate::simulated_machines::{CASES, Case, STEPS, Start, late};

fn dawl(case: &Case, faults: &[Fault]) -> Outcome {
    case.run(Start::with(faults), STEPS, |setup| {
        Box::new(Dawl::new(setup).from_equal_shares())
    })
}

#[test]
fn from_equal_shares_dawl_is_within_3_percent_from_the_fourth_step_on() {
    let mut all = Vec::new();
    for case in &CASES {
        let oracle = case.oracle(&[]);
        all.extend(late(&case.name(), &dawl(case, &[]), oracle, 3, 1.03));
    }
    assert!(all.is_empty(), "{all:#?}");
}

#[test]
fn with_probes_dawl_is_within_5_percent_from_the_first_step_on() {
    let mut all = Vec::new();
    for case in &CASES {
        let oracle = case.oracle(&[]);
        let outcome = case.run(Start::default(), STEPS, |setup| Box::new(Dawl::new(setup)));
        all.extend(late(&case.name(), &outcome, oracle, 0, 1.05));
    }
    assert!(all.is_empty(), "{all:#?}");
}

#[test]
fn a_device_that_becomes_half_as_fast_is_followed_within_4_steps() {
    let mut all = Vec::new();
    for case in &CASES {
        for device in 0..=case.file().devices.len() {
            let slow = |step| Fault {
                device,
                at: At::Phase(step),
                what: FaultEffect::Slowed(2.0),
            };
            let oracle = case.oracle(&[slow(0)]);
            let name = format!("{}, device {device} slow", case.name());
            all.extend(late(&name, &dawl(case, &[slow(10)]), oracle, 14, 1.05));
        }
    }
    assert!(all.is_empty(), "{all:#?}");
}
