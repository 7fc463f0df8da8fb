//! Maps compared with all others, on random situations.

use proptest::prelude::*;

use super::iteration::Plan;
use super::search::fit_by;
use super::*;
use crate::policy::fixtures::layers;

/// Random situations: devices of which some are alike, epochs that wait for one another,
/// data in any places, and missing ways.
fn random(seed: u64, queues: usize, devices: usize) -> Situation {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut costs = TransferCosts::new(devices);
    for from in 0..=devices {
        for to in 0..=devices {
            let through_host = from == devices || to == devices;
            if through_host || random.bool() {
                costs.set(from, to, 0.1 * random.f64(), 10.0 * (0.1 + random.f64()));
            }
        }
    }
    if random.bool() {
        // All links are the same.
        for device in 0..devices {
            costs.set(device, devices, 0.1, 5.0);
            costs.set(devices, device, 0.1, 5.0);
        }
    }
    let data = 6;
    let some = |random: &mut fastrand::Rng, most: usize, of: usize| {
        let count = random.usize(0..=most);
        let mut all: Vec<usize> = (0..count)
            .filter(|_| of > 0)
            .map(|_| random.usize(..of))
            .collect();
        all.sort_unstable();
        all.dedup();
        all
    };
    let alike = random.bool();
    let pins = random.bool();
    let epochs = (0..queues).map(|queue| {
        let common = random.f64();
        let mut seconds: Vec<f64> = (0..devices)
            .map(|_| match random.u8(0..8) {
                0 => f64::INFINITY,
                _ if alike => common,
                _ => random.f64() * 2.0,
            })
            .collect();
        seconds[random.usize(..devices)] = common;
        Epoch {
            seconds,
            uploads: some(&mut random, 1, data),
            reads: some(&mut random, 3, data),
            writes: some(&mut random, 2, data),
            downloads: some(&mut random, 1, data),
            after: some(&mut random, 2, queue),
            earliest: if random.bool() { 0.0 } else { random.f64() },
            pinned: None,
            present: Some(random.usize(..devices)),
        }
    });
    let mut epochs: Vec<Epoch> = epochs.collect();
    for epoch in &mut epochs {
        if pins && random.u8(0..4) == 0 {
            let able = |device: &usize| epoch.seconds[*device].is_finite();
            epoch.pinned = (0..devices).find(able);
        }
        if random.u8(0..20) == 0 {
            epoch.present = None;
        }
    }
    let datum = |_| QueueDatum {
        bytes: random.u64(0..10),
        places: some(&mut random, 3, devices + 1).into_iter().collect(),
    };
    let data = (0..data).map(datum).collect();
    let busy = (0..devices).map(|_| {
        if random.bool() {
            0.0
        } else {
            3.0 * random.f64()
        }
    });
    let busy = busy.collect();
    let iterations = *random
        .choice(&[1.0, 2.0, 10.0, f64::INFINITY])
        .expect("one");
    Situation {
        epochs,
        data,
        costs,
        busy,
        iterations,
    }
}

fn predict(situation: &Situation, map: &[usize]) -> Prediction {
    Plan::new(situation).expect("a situation").predict(map).0
}

/// The least mean time of all maps.
fn least(situation: &Situation) -> Option<f64> {
    let (queues, devices) = (situation.epochs.len(), situation.costs.devices());
    let maps = (0..devices.pow(queues as u32)).map(|number| {
        let digit = |queue| number / devices.pow(queue as u32) % devices;
        (0..queues).map(digit).collect::<Vec<usize>>()
    });
    let possible = |map: Vec<usize>| {
        let predicted = predict(situation, &map);
        let both = predicted.first + predicted.steady;
        both.is_finite()
            .then(|| predicted.mean(situation.iterations))
    };
    maps.filter_map(possible).min_by(f64::total_cmp)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn both_searches_find_the_least_time(
        seed in any::<u64>(),
        queues in 0_usize..=5,
        devices in 1_usize..=4,
    ) {
        let situation = random(seed, queues, devices);
        let plan = Plan::new(&situation).expect("a situation");
        let least = least(&situation);
        for bounded in [false, true] {
            let fit = fit_by(&plan, MapSearch::default(), bounded);
            let Some(least) = least else {
                prop_assert_eq!(fit, None);
                continue;
            };
            let fit = fit.expect("a map");
            prop_assert!(fit.proven);
            prop_assert_eq!(predict(&situation, &fit.map), fit.predicted);
            let found = fit.predicted.mean(situation.iterations);
            prop_assert!(found <= least * (1.0 + 1e-8), "{bounded}: {found} of {least}");
            // The present map stays unless another one is better.
            let present: Option<Vec<usize>> = situation.epochs.iter().map(|e| e.present).collect();
            let present = present.map(|map| predict(&situation, &map));
            if let Some(present) = present.filter(|p| (p.first + p.steady).is_finite()) {
                let present_time = present.mean(situation.iterations);
                let stays = situation.epochs.iter().zip(&fit.map).all(|(e, d)| e.present == Some(*d));
                prop_assert_eq!(stays, present_time <= least * (1.0 + 1e-9), "{} {}", present_time, least);
            }
            for (epoch, device) in situation.epochs.iter().zip(&fit.map) {
                prop_assert!(epoch.pinned.is_none_or(|pinned| pinned == *device));
            }
        }
    }

    /// A limited search has a map, and knows when it is not proven to be the best.
    #[test]
    fn a_limited_search_has_a_map(seed in any::<u64>(), most in 0_usize..40) {
        let situation = random(seed, 7, 3);
        let plan = Plan::new(&situation).expect("a situation");
        let limited = fit_by(&plan, MapSearch { most }, true);
        let whole = fit_by(&plan, MapSearch::default(), true);
        if let (Some(limited), Some(whole)) = (&limited, &whole) {
            let mean = |fit: &Fit| fit.predicted.mean(situation.iterations);
            prop_assert!(mean(limited) >= mean(whole) * (1.0 - 1e-8));
            prop_assert!(!limited.proven || mean(limited) <= mean(whole) * (1.0 + 1e-8));
        }
        prop_assert_eq!(limited.is_some(), whole.is_some());
    }
}

/// Queues of these seconds on each of two devices, of which each has its datum of 10 bytes
/// on device 0. A copy of it takes a second each way.
fn two_devices(seconds: &[f64]) -> Situation {
    let mut costs = TransferCosts::new(2);
    for device in [0, 1] {
        costs.set(device, 2, 0.0, 20.0);
        costs.set(2, device, 0.0, 20.0);
    }
    let epoch = |(queue, seconds): (usize, &f64)| Epoch {
        seconds: vec![*seconds; 2],
        reads: vec![queue],
        writes: vec![queue],
        present: Some(0),
        ..Epoch::default()
    };
    let datum = QueueDatum {
        bytes: 10,
        places: Places::only(0),
    };
    Situation {
        epochs: seconds.iter().enumerate().map(epoch).collect(),
        data: vec![datum; seconds.len()],
        costs,
        busy: vec![0.0; 2],
        iterations: 1.0,
    }
}

fn map(situation: &Situation) -> Vec<usize> {
    fit(situation, MapSearch::default()).expect("a map").map
}

#[test]
fn a_queue_moves_when_the_iterations_gain_more_than_its_data_cost() {
    // One iteration: 1.6 s stay, 0.8 s and a copy of 1 s do not gain.
    let mut situation = two_devices(&[0.8, 0.8]);
    assert_eq!(map(&situation), [0, 0]);
    let moved = predict(&situation, &[0, 1]);
    assert_eq!((moved.first, moved.steady), (1.8, 0.8));
    // Two: 3.2 s, or 1.8 and 0.8.
    situation.iterations = 2.0;
    assert!([[0, 1], [1, 0]].contains(&[map(&situation)[0], map(&situation)[1]]));
    // As long: nothing moves.
    let mut situation = two_devices(&[1.0, 1.0]);
    assert_eq!(map(&situation), [0, 0]);
    // Undefined data cost nothing.
    situation.data[1].places = Places::NONE;
    assert_eq!(map(&situation), [0, 1]);
}

#[test]
fn a_pinned_queue_stays_and_others_avoid_it() {
    let mut situation = two_devices(&[3.0, 1.5]);
    situation.epochs[0].pinned = Some(0);
    assert_eq!(map(&situation), [0, 1]);
    situation.epochs[1].pinned = Some(0);
    assert_eq!(map(&situation), [0, 0]);
    situation.busy = vec![0.0, 9.0];
    situation.epochs[1].pinned = None;
    assert_eq!(map(&situation), [0, 0]);
}

#[test]
fn what_the_host_writes_and_reads_is_copied_in_every_iteration() {
    let mut situation = two_devices(&[1.0]);
    situation.epochs[0].uploads = vec![0];
    situation.epochs[0].downloads = vec![0];
    let predicted = predict(&situation, &[0]);
    assert_eq!((predicted.first, predicted.steady), (2.0, 2.0));
}

#[test]
fn many_equal_queues_are_decided_soon() {
    let mut situation = two_devices(&[1.0; 17]);
    situation
        .data
        .iter_mut()
        .for_each(|d| d.places = Places::NONE);
    let fit = fit(&situation, MapSearch { most: 1000 }).expect("a map");
    assert_eq!((fit.predicted.first, fit.proven), (9.0, true));
}

#[test]
fn a_situation_without_a_map_has_none() {
    let changes: [&dyn Fn(&mut Situation); 12] = [
        &|s| s.epochs[1].reads = vec![2],
        &|s| s.epochs[1].pinned = Some(2),
        &|s| s.epochs[0].seconds = vec![1.0],
        &|s| s.epochs[0].after = vec![2],
        &|s| s.busy.truncate(1),
        &|s| s.epochs[1].after = vec![1],
        &|s| s.epochs[0].seconds[1] = f64::NAN,
        &|s| s.epochs[0].seconds = vec![f64::INFINITY; 2],
        &|s| s.iterations = 0.0,
        &|s| s.busy[1] = -1.0,
        &|s| s.costs.set(0, 1, 0.0, 0.0),
        &|s| {
            s.costs = TransferCosts::new(2);
            s.data[0].places = Places::only(2);
        },
    ];
    for (number, change) in changes.into_iter().enumerate() {
        let mut situation = two_devices(&[1.0, 1.0]);
        change(&mut situation);
        assert_eq!(fit(&situation, MapSearch::default()), None, "{number}");
    }
}

#[test]
fn components_are_divided_where_that_is_fastest() {
    let problem = layers(2, 8, [3.0, 1.0]);
    let policy = AutoFit::new(problem, None);
    // The CPU runs two components of a layer in 6 s, the GPU six.
    for layer in policy.map().chunks(8) {
        assert_eq!(layer.iter().filter(|d| **d == Some(0)).count(), 2);
    }
    let problem = layers(1, 8, [30.0, 1.0]);
    assert!(
        AutoFit::new(problem, None)
            .map()
            .iter()
            .all(|d| *d == Some(1))
    );
}

fn devices() -> Vec<DeviceRates> {
    let rates = |flops, memory, link| DeviceRates {
        flops,
        memory,
        h2d: link,
        d2h: link,
    };
    vec![rates(1e12, 1e11, 1e11), rates(4e12, 2e11, 1e10)]
}

fn queue(hint: Hint) -> StaticQueue {
    StaticQueue {
        hint,
        able: vec![true; 2],
        pinned: None,
    }
}

fn counts(queues: &[StaticQueue]) -> [usize; 2] {
    let map = static_map(queues, &devices());
    [0, 1].map(|device| map.iter().filter(|d| **d == Some(device)).count())
}

#[test]
fn queues_are_divided_in_proportion() {
    assert_eq!(counts(&vec![queue(Hint::Compute); 10]), [2, 8]);
    assert_eq!(counts(&vec![queue(Hint::Memory); 9]), [3, 6]);
    assert_eq!(counts(&vec![queue(Hint::Io); 11]), [10, 1]);
}

#[test]
fn a_single_queue_gets_the_best_device_that_can_run_it() {
    let only = StaticQueue {
        able: vec![true, false],
        ..queue(Hint::Compute)
    };
    let pinned = StaticQueue {
        pinned: Some(0),
        ..queue(Hint::Compute)
    };
    let none = StaticQueue {
        able: Vec::new(),
        ..queue(Hint::Compute)
    };
    let map = static_map(&[queue(Hint::Compute), only, pinned, none], &devices());
    assert_eq!(map, [Some(1), Some(0), Some(0), None]);
}

#[test]
fn unknown_rates_count_as_equal() {
    let mut devices = devices();
    devices.iter_mut().for_each(|device| device.flops = 0.0);
    let map = static_map(&vec![queue(Hint::Compute); 4], &devices);
    assert_eq!(map, [Some(0), Some(1), Some(0), Some(1)]);
}
