//! Layers on toy machines.

use super::*;
use crate::policy::fixtures::{layers, run};

/// The least seconds of a layer of 16 over all divisions.
fn best(seconds: &dyn Fn(usize, usize) -> f64) -> f64 {
    let whole = |device, count| (1..=count).map(|n| seconds(device, n)).sum::<f64>();
    (0..=16)
        .map(|cpu| whole(0, cpu).max(whole(1, 16 - cpu)))
        .fold(f64::INFINITY, f64::min)
}

/// Whatever the devices are like, and however wrong what is known at first:
/// three layers later a layer takes at most 5 % longer than the best one.
#[test]
fn three_layers_teach_the_best_division() {
    let machines: [&dyn Fn(usize, usize) -> f64; 6] = [
        // Equal; a CPU of a tenth; one not worth anything; a faster one.
        &|_, _| 1.0,
        &|d, _| [1.0, 0.1][d],
        &|d, _| [9.0, 0.1][d],
        &|d, _| [0.3, 1.0][d],
        // A GPU that fills up: the first component costs most.
        &|d, n| [0.8, if n == 1 { 1.0 } else { 0.1 }][d],
        // A CPU with a start that is worth it only for several.
        &|d, n| [if n == 1 { 2.0 } else { 0.2 }, 1.0][d],
    ];
    for (index, seconds) in machines.iter().enumerate() {
        for guess in [[1.0, 1.0], [1.0, 0.1], [0.1, 1.0]] {
            let problem = layers(6, 16, guess);
            let mut policy = Adaptive::new(problem.clone());
            let levels = run(&mut policy, &problem, seconds);
            let best = best(*seconds);
            for (level, (took, had)) in levels.iter().enumerate().skip(3) {
                assert!(
                    *took <= best * 1.05,
                    "machine {index}, {guess:?}: layer {level} takes {took} with {had:?}, \
                     at best {best}; {levels:?}"
                );
            }
        }
    }
}

/// A component on the CPU takes from the GPU what it needs to be driven: nothing
/// that was measured of both together tells what the GPU takes alone.
#[test]
fn a_device_that_others_slow_down_is_tried_alone() {
    let problem = layers(6, 16, [1.0, 1.0]);
    let mut policy = Adaptive::new(problem.clone());
    let (begun, beside) = (std::cell::Cell::new(false), std::cell::Cell::new(false));
    let seconds = |device: usize, number: usize| {
        // Of a layer the CPU is given something first.
        match (device, number) {
            (0, 1) => begun.set(true),
            (1, 1) => beside.set(begun.take()),
            _ => {}
        }
        match device {
            0 => 0.3,
            _ if beside.get() => 0.065,
            _ => 0.05,
        }
    };
    let levels = run(&mut policy, &problem, seconds);
    for (took, had) in levels.iter().skip(3) {
        assert_eq!((had[0], had[1]), (0, 16), "{levels:?}");
        assert!((took - 0.8).abs() < 1e-6, "{levels:?}");
    }
}

#[test]
fn what_was_learned_serves_the_next_run() {
    let problem = layers(1, 16, [1.0, 1.0]);
    let mut policy = Adaptive::new(problem.clone());
    let seconds = |d: usize, _| [1.0, 0.1][d];
    for _ in 0..3 {
        run(&mut policy, &problem, seconds);
    }
    let levels = run(&mut policy, &problem, seconds);
    assert!(levels[0].0 <= best(&seconds) * 1.05, "{levels:?}");
    assert_eq!(policy.division(16), Some(&levels[0].1[..]));
}

/// Estimates without what a launch costs: the device that was measured takes ten times as long.
#[test]
fn a_device_is_not_better_for_being_unknown() {
    for (estimates, best) in [([2.0, 1.0], 1), ([1.0, 1.5], 0), ([1.0, 1.0], 0)] {
        let problem = layers(3, 1, estimates);
        let mut policy = Adaptive::new(problem.clone());
        let seconds = |device: usize, _| if device == best { 10.0 } else { 50.0 };
        for (took, had) in run(&mut policy, &problem, seconds) {
            assert_eq!((took, had[best]), (10.0, 1), "{estimates:?}");
        }
    }
    // One that is better by the same estimates is tried.
    let problem = layers(3, 1, [1.0, 0.5]);
    let mut policy = Adaptive::new(problem.clone());
    policy.lost(1);
    run(&mut policy, &problem, |_, _| 10.0);
    policy.returned(1);
    let levels = run(&mut policy, &problem, |device, _| [10.0, 5.0][device]);
    assert_eq!(levels[2].1[1], 1, "{levels:?}");
}

#[test]
fn noise_does_not_move_a_good_division() {
    let problem = layers(40, 16, [1.0, 1.0]);
    let mut policy = Adaptive::new(problem.clone());
    let rng = std::cell::RefCell::new(fastrand::Rng::with_seed(3));
    let noisy = |d: usize, _| [1.0, 0.25][d] * (0.9 + 0.2 * rng.borrow_mut().f64());
    let levels = run(&mut policy, &problem, noisy);
    let odd = levels
        .iter()
        .skip(5)
        .filter(|(_, had)| had[0].abs_diff(3) > 1);
    assert_eq!(odd.count(), 0, "{levels:?}");
}

#[test]
fn where_the_next_layer_goes_is_foreseen_once_the_layer_before_is_divided() {
    let problem = layers(2, 4, [1.0, 1.0]);
    let mut policy = Adaptive::new(problem.clone());
    // A CPU that is not worth anything: after some layers it gets nothing.
    for _ in 0..3 {
        run(&mut policy, &problem, |d, _| [9.0, 0.1][d]);
    }
    policy.begin();
    assert!((0..8).all(|component| policy.certain(component).is_none()));
    (0..4).for_each(|component| policy.ready(component, 0));
    assert_eq!(policy.next(0, 0), None);
    assert_eq!(policy.next(1, 0), Some(0));
    assert!((0..8).all(|component| policy.certain(component) == Some(1)));
    policy.lost(1);
    assert!((0..8).all(|component| policy.certain(component).is_none()));
}

#[test]
fn a_lost_device_gets_nothing() {
    let problem = layers(1, 4, [1.0, 1.0]);
    let mut policy = Adaptive::new(problem);
    policy.lost(0);
    (0..4).for_each(|component| policy.ready(component, 0));
    assert_eq!(policy.next(0, 0), None);
    let all = std::iter::from_fn(|| policy.next(1, 0));
    assert_eq!(all.count(), 4);
}

#[test]
fn one_measurement_is_in_proportion() {
    let mut learned = LearnedTimes::default();
    assert_eq!(learned.expect(3.0), None);
    learned.learn(2.0, 4.0, false);
    assert_eq!(learned.expect(3.0), Some(6.0));
    assert_eq!(learned.expect(0.0), Some(0.0));
}

#[test]
fn a_fixed_part_is_learned_from_two() {
    let mut learned = LearnedTimes::default();
    learned.learn(10.0, 6.0, false);
    learned.learn(2.0, 2.0, false);
    assert_eq!(learned.expect(6.0), Some(4.0));
    assert_eq!(learned.expect(14.0), Some(8.0));
    assert_eq!(learned.expect(1.0), Some(1.5));
}

#[test]
fn invalid_measurements_are_ignored() {
    let mut learned = LearnedTimes::default();
    for (amount, seconds) in [(0.0, 1.0), (f64::NAN, 1.0), (1.0, f64::INFINITY)] {
        learned.learn(amount, seconds, false);
    }
    assert!(!learned.knows());
    // More work in less time: noise, and never a negative prediction.
    learned.learn(1.0, 5.0, false);
    learned.learn(2.0, 4.0, false);
    assert!(learned.expect(9.0).is_some_and(|s| s >= 4.0));
    assert_eq!(
        (learned.expect(1.0), learned.expect(2.0)),
        (Some(5.0), Some(4.0))
    );
}

#[test]
fn one_outlier_has_no_effect() {
    let mut learned = LearnedTimes::default();
    for seconds in [1.0, 1.0, 90.0, 1.0] {
        learned.learn(4.0, seconds, false);
    }
    assert_eq!(learned.expect(4.0), Some(1.0));
    assert!(learned.measured(4.0) && !learned.measured(5.0));
}

#[test]
fn a_first_run_with_its_copies_is_forgotten_when_there_are_others() {
    let near = |learned: &LearnedTimes, seconds: f64| {
        let expected = learned.expect(14.0);
        expected.is_some_and(|expected| (expected - seconds).abs() < 1e-9)
    };
    let mut learned = LearnedTimes::default();
    learned.learn(15.0, 9.0, true);
    learned.learn(1.0, 0.5, false);
    assert_eq!(learned.expect(15.0), Some(9.0), "nothing else is alike");
    learned.learn(14.0, 1.4, false);
    assert!(learned.expect(15.0).is_some_and(|s| s < 1.6), "{learned:?}");
    // Some more copies change nothing; always some, and they are the rule.
    for _ in 0..3 {
        learned.learn(14.0, 3.0, true);
        assert!(near(&learned, 1.4), "{learned:?}");
    }
    learned.learn(14.0, 3.0, true);
    assert!(near(&learned, 3.0), "{learned:?}");
}
