//! Every balancer divides kernels, on devices with and without device memory.

use pdawl_api::balance::Strategy;
use pdawl_api::workload::Divisible;

use super::harness::{corun, examined, open, seed, undivided};
use super::suite;

#[test]
fn every_strategy_gives_the_results_of_the_undivided_launch() {
    const STEPS: u32 = 4;
    let seed = seed();
    let mut first = open(&[false]);
    let wanted = [
        "vadd",
        "axpy in place",
        "matmul in tiles",
        "reverse",
        "rows times two",
    ];
    let cases: Vec<_> = suite::cases()
        .into_iter()
        .filter(|c| wanted.contains(&c.name))
        .collect();
    assert_eq!(cases.len(), wanted.len());
    let references: Vec<_> = cases
        .iter()
        .map(|case| undivided(&mut first, case, seed, STEPS))
        .collect();
    drop(first);
    let sets = [[false, false], [true, true], [false, true]];
    for (set, own) in sets.into_iter().enumerate() {
        let mut runtime = open(&own);
        for (number, (case, reference)) in cases.iter().zip(&references).enumerate() {
            let found = examined(&mut runtime, case, seed);
            // Every other one, so that each meets each kernel and each set of devices.
            let strategies = ["guided", "dawl", "cpu", "fixed:0.3,0.7"];
            for strategy in strategies.into_iter().skip((number + set) % 2).step_by(2) {
                let strategy: Strategy = strategy.parse().expect("a strategy");
                let (outcome, results) = corun(&mut runtime, &found.user, &strategy, STEPS)
                    .unwrap_or_else(|e| panic!("{} {strategy} on {own:?}: {e}", case.name));
                assert!(results == *reference, "{} {strategy} on {own:?}", case.name);
                assert_eq!(outcome.steps.len(), STEPS as usize);
                for step in &outcome.steps {
                    let units: u64 = step.devices.iter().map(|d| d.units).sum();
                    assert_eq!(units, found.user.units());
                }
            }
        }
    }
}
