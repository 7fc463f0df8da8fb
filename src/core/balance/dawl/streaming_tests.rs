//! Tests of DAWL's choice between steps with and without streams, by their measured
//! times. The machine's GPU holds a quarter of the units. It can stream others
//! from host memory, which it then shares with the cores.

use super::Dawl;
use crate::balance::fixtures::{Machine, real_cpu, real_gpu};
use crate::balance::tests::{late, mean, oracle};

/// Steps of a long run.
const STEPS: u32 = 100;

/// The cores compute 0.45 units a microsecond while no device streams. With streams,
/// the cores and the GPU together compute `host_limit`.
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
fn devices_stream_again_after_cores_were_slow_for_a_few_steps() {
    let mut machine = contended(0.48);
    let best = oracle(&machine, 0);
    // The cores are slower for three steps, by too little to count as a lasting
    // change. The rates attribute this to the streams, so streaming stops, and no rate
    // shows that it pays again. DAWL has recorded that steps with streams were shorter.
    machine.speeds = vec![(30, 33, 0, 0.8)];
    let (times, streamed) = dawl(&machine);
    assert!((45..100).all(|s| streamed.contains(&s)), "{streamed:?}");
    assert!(streamed.len() >= 85, "{streamed:?}");
    assert_eq!(late(&times, 45, best, 1.01), []);
}

#[test]
fn streams_of_small_predicted_gain_are_tried_and_end_if_they_cost_more() {
    // With this noise, the rates alone request streams from step 39 to the end. DAWL
    // remembers the result of a trial for 64 steps.
    for (noise, seed) in [(0.0, 1), (0.01, 5)] {
        let mut machine = contended(0.4515);
        (machine.noise, machine.seed) = (noise, seed);
        machine.steps = 75;
        // The rates predict a gain of 0.3 %. The additional cost is 5 %, which is too
        // little to make the rates implausible.
        machine.streaming = 1500.0;
        let best = oracle(&machine, 0);
        let (times, streamed) = dawl(&machine);
        // The first step has equal shares, so it streams in any case.
        let tried: Vec<usize> = streamed.into_iter().filter(|step| *step >= 3).collect();
        let message = format!("noise {noise}: {tried:?}");
        assert!((1..=10).contains(&tried.len()), "{message}");
        assert!(tried.iter().all(|step| *step < 30), "{message}");
        let ratio = mean(&times[30..]) / best;
        assert!(ratio < 1.01, "{message}, then {ratio:.3}");
    }
}

#[test]
fn a_short_run_tries_no_streams_of_small_predicted_gain() {
    let mut machine = contended(0.4515);
    // Too few steps are left to make up for a trial that fails.
    machine.steps = STEPS / 3;
    let (_, streamed) = dawl(&machine);
    assert!(streamed.iter().all(|step| *step < 3), "{streamed:?}");
}

#[test]
fn cores_that_become_slow_during_a_trial_of_streams_undo_its_decision() {
    // Some of these steps are of the trial, which then seems not to pay.
    for step in 5..30 {
        let mut machine = contended(0.4515);
        machine.streaming = 1500.0;
        machine.speeds = vec![(step, STEPS, 0, 0.3)];
        let best = oracle(&machine, step);
        let (times, _) = dawl(&machine);
        let ratio = mean(&times[step as usize + 10..]) / best;
        assert!(ratio < 1.05, "slow from step {step} on: {ratio:.3}");
    }
}
