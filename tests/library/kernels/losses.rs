//! Devices that fail or vanish while a kernel is divided: the results still equal
//! those of the undivided launch.

use pdawl_api::balance::Strategy;
use pdawl_api::runtime::DeviceId;
use pdawl_api::runtime::union::faults::{Effect, Fault, When};

use super::harness::{examined, open, run, seed, undivided};
use super::suite;

#[test]
fn results_are_right_without_the_device_that_was_lost() {
    const STEPS: u32 = 4;
    let seed = seed();
    let mut first = open(&[false]);
    // Slices; a buffer updated in every step, divided in one and two dimensions;
    // whole images.
    let names = ["vadd", "axpy in place", "rows times two", "reverse"];
    for (number, name) in names.into_iter().enumerate() {
        let cases = suite::cases();
        let case = cases
            .iter()
            .find(|case| case.name == name)
            .expect("the case");
        let reference = undivided(&mut first, case, seed, STEPS);
        let sets = [[false, false], [true, true], [false, true]];
        for (set, own) in sets.into_iter().enumerate() {
            let found = examined(&mut open(&own), case, seed);
            let losses = [
                ("fixed:0.5,0.5", 0, Effect::Lose, 0),
                ("fixed:0.5,0.5", 1, Effect::Lose, 2),
                ("fixed:0.5,0.5", 1, Effect::Fail, 1),
                ("dawl", 0, Effect::Fail, 2),
                ("guided", 1, Effect::Lose, STEPS - 1),
            ];
            // Every other one, so that each meets each kernel and each set of devices.
            let chosen = losses.into_iter().skip((number + set) % 2).step_by(2);
            for (strategy, victim, effect, step) in chosen {
                let fault = Fault {
                    device: DeviceId(victim),
                    when: When::Phase(step),
                    effect,
                };
                let mut runtime = open(&own);
                runtime.inject(vec![fault]);
                let strategy: Strategy = strategy.parse().expect("a strategy");
                let what = format!("{name}, {own:?}, {strategy}, {fault:?}");
                let (outcome, results) = run(&mut runtime, &found.user, &strategy, STEPS, false)
                    .unwrap_or_else(|e| panic!("{what}: {e}"));
                assert!(results == reference, "{what}");
                assert!(outcome.losses.len() <= 1, "{what}: {:?}", outcome.losses);
                if matches!(strategy, Strategy::Fixed(_)) {
                    assert_eq!(outcome.losses[0].device, victim, "{what}");
                }
            }
        }
    }
}
