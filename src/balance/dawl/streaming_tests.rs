//! What steps with and without streams took, remembered and used: DAWL on a
//! machine whose GPU holds a quarter of the units, and could stream some of the
//! others through the host memory that the cores compute on.

use super::Dawl;
use crate::balance::fixtures::{Machine, real_cpu, real_gpu};
use crate::balance::tests::{late, mean, oracle};

/// Steps of a long run.
const STEPS: u32 = 100;

/// The cores do 0.45 units a microsecond while nobody streams. With streams
/// beside them they do less, and together with the GPU `host_limit`.
fn contended(host_limit: f64) -> Machine {
    let mut machine = Machine::new(16384, vec![real_cpu(0.45), real_gpu(4000, 12.0, 0.09)]);
    machine.host_limit = host_limit;
    machine.steps = STEPS;
    machine
}

/// Each step's microseconds, and the steps in which the GPU streamed.
fn dawl(machine: &Machine) -> (Vec<f64>, Vec<usize>) {
    let steps = machine.watch(&mut Dawl::new(&machine.setup()));
    let times = steps.iter().map(|(micros, _)| *micros).collect();
    let streamed = (0..steps.len()).filter(|step| steps[*step].1).collect();
    (times, streamed)
}

#[test]
fn streams_that_looked_bad_for_a_moment_are_gone_back_to() {
    let mut machine = contended(0.48);
    let best = oracle(&machine, 0);
    // For three steps the cores are slower, by too little to count as a change
    // for good. By the rates it is the streams that slow them, so nobody is to
    // stream any more; and then no rate could tell that streams pay again. But
    // steps were shorter with them, and that is remembered.
    machine.speeds = vec![(30, 33, 0, 0.8)];
    let (times, streamed) = dawl(&machine);
    assert!((45..100).all(|s| streamed.contains(&s)), "{streamed:?}");
    assert!(streamed.len() >= 85, "{streamed:?}");
    assert_eq!(late(&times, 45, best, 1.01), []);
}

#[test]
fn streams_that_promise_a_little_are_tried_and_given_up_where_they_cost_more() {
    // With this noise rates alone would call for streams from step 39 to the end.
    // What was tried is remembered for 64 steps.
    for (noise, seed) in [(0.0, 1), (0.01, 5)] {
        let mut machine = contended(0.4515);
        (machine.noise, machine.seed) = (noise, seed);
        machine.steps = 75;
        // By the rates streams gain 0.3 %. What they cost besides is 5 %: so
        // little that the rates are still believed.
        machine.streaming = 1500.0;
        let best = oracle(&machine, 0);
        let (times, streamed) = dawl(&machine);
        // The first step has equal shares, and so it streams in any case.
        let tried: Vec<usize> = streamed.into_iter().filter(|step| *step >= 3).collect();
        let message = format!("noise {noise}: {tried:?}");
        assert!((1..=10).contains(&tried.len()), "{message}");
        assert!(tried.iter().all(|step| *step < 30), "{message}");
        let ratio = mean(&times[30..]) / best;
        assert!(ratio < 1.01, "{message}, then {ratio:.3}");
    }
}

#[test]
fn a_short_run_tries_no_streams_that_promise_a_little() {
    let mut machine = contended(0.4515);
    // As above, but too few steps are left to make up for a trial that fails.
    machine.steps = STEPS / 3;
    let (_, streamed) = dawl(&machine);
    assert!(streamed.iter().all(|step| *step < 3), "{streamed:?}");
}
