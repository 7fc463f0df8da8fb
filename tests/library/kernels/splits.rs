//! Every kernel of the suite, at every share, over two and three devices: in host
//! memory, in device memory, and in both. Each share needs programs that take long to
//! compile, so no two sets of devices have the same shares, and each kernel is left out
//! on one set.

use std::collections::HashMap;

use pdawl_api::balance::Strategy;
use pdawl_api::balance::strategy::Shares;

use super::harness::{Results, corun, examined, open, seed, undivided};
use super::suite::{self, Case};
use crate::own_process::in_own_process;

fn shares(first: u32, devices: usize) -> Strategy {
    let first = f64::from(first) / 100.0;
    let mut shares = vec![(1.0 - first) / (devices - 1) as f64; devices];
    shares[0] = first;
    Strategy::Fixed(Shares::new(shares).expect("shares"))
}

fn steps(case: &Case) -> u32 {
    // Buffers that are read and written change in every step.
    if case.io.is_empty() { 1 } else { 3 }
}

/// Runs every case on each set of devices, with each of its shares of the first device,
/// in percent, and compares the results with the undivided launch.
fn check(sets: &[(&[bool], &[u32])]) {
    let seed = seed();
    let mut first = open(&[false]);
    let references: HashMap<&str, Results> = (suite::cases().iter())
        .map(|case| (case.name, undivided(&mut first, case, seed, steps(case))))
        .collect();
    drop(first);
    for (set, (own, percents)) in sets.iter().enumerate() {
        let mut runtime = open(own);
        for (number, case) in suite::cases().into_iter().enumerate() {
            if (number + set) % sets.len() == 0 {
                continue;
            }
            let found = examined(&mut runtime, &case, seed);
            assert_eq!(found.refusal, None, "{} on {own:?}", case.name);
            for percent in *percents {
                let strategy = shares(*percent, own.len());
                let (outcome, results) = corun(&mut runtime, &found.user, &strategy, steps(&case))
                    .unwrap_or_else(|e| panic!("{} {strategy} on {own:?}: {e}", case.name));
                let what = || format!("{} at {strategy} on {own:?}", case.name);
                assert!(results == references[case.name], "{} differs", what());
                assert_eq!(outcome.verified, Some(true), "{}", what());
                assert_eq!(outcome.max_abs_error, Some(0.0), "{}", what());
                for step in &outcome.steps {
                    let units: u64 = step.devices.iter().map(|device| device.units).sum();
                    let whole = pdawl_api::workload::Divisible::units(&found.user);
                    assert_eq!(units, whole, "{}: every unit once a step", what());
                }
            }
        }
    }
}

#[test]
fn over_two_devices_results_are_those_of_the_undivided_launch() {
    check(&[
        (&[false, false], &[0, 50]),
        (&[true, true], &[1, 99]),
        (&[false, true], &[33, 100]),
    ]);
}

#[test]
fn over_three_devices_results_are_those_of_the_undivided_launch() {
    // More compute units than the machine has, so that three sub-devices exist.
    let name = "kernels::splits::over_three_devices_results_are_those_of_the_undivided_launch";
    if !in_own_process(name, &[("POCL_MAX_PTHREAD_COUNT", "3")]) {
        return;
    }
    check(&[
        (&[false, false, false], &[33]),
        (&[true, false, true], &[0, 50]),
    ]);
}

#[test]
fn what_is_divided_with_the_work_is_found_out() {
    let mut runtime = open(&[false]);
    let seed = seed();
    for case in suite::cases() {
        let found = examined(&mut runtime, &case, seed);
        let slices = found.user.slices();
        let expected = case.sliced.to_vec();
        let all = [slices.read.clone(), slices.written.clone()].concat();
        let mut found_slices = all;
        found_slices.sort_unstable();
        found_slices.dedup();
        assert_eq!(
            found_slices, expected,
            "{}: {:?} {:?}",
            case.name, slices, found.notes
        );
    }
}
