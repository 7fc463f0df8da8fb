use std::collections::BTreeSet;

use proptest::prelude::*;

use super::Locality;
use super::shares::{HARDLY, NEARLY, Shares};
use crate::policy::fixtures::{Kind, execute, gpus, product, product_3d, random, readers};
use crate::policy::lacks::Lacking;
use crate::policy::{DeviceModel, Links, Policy, Problem, WINDOW};

fn locality(problem: &Problem) -> Locality {
    Locality::new(problem.clone(), WINDOW, 1)
}

proptest! {
    /// Whatever comes, goes, and is taken.
    #[test]
    fn gains_are_those_of_the_definition(seed in any::<u64>(), steps in 1_usize..120) {
        let kind = Kind { tasks: 20, data: 8, devices: 3, outputs: false, able: 1, seed };
        let problem = random(kind);
        let mut choice = fastrand::Rng::with_seed(seed);
        let mut shares = Shares::new(&problem);
        shares.reset(&problem, &[false, false, true], |_| false);
        let mut available = [false; 20];
        let mut holders: Vec<Option<usize>> = vec![None; 20];
        for _ in 0..steps {
            let (device, datum, task) = (choice.usize(..3), choice.usize(..8), choice.usize(..20));
            match choice.usize(..4) {
                0 => shares.arrived(device, datum),
                1 => shares.evicted(device, datum),
                _ if available[task] => {
                    shares.take(task);
                    shares.reserve(task, device);
                    holders[task] = Some(device);
                    available[task] = false;
                }
                _ => {
                    shares.add(task);
                    if let Some(device) = holders[task].take() {
                        shares.release(task, device);
                    }
                    available[task] = true;
                }
            }
        }
        let all: u64 = problem.data.iter().map(|datum| datum.bytes).sum();
        // The third device is lost.
        for (device, datum) in (0..2).flat_map(|device| (0..8).map(move |datum| (device, datum))) {
            let holds = |device: usize, datum: &usize| shares.lacks.holdings.holds(device, *datum);
            if problem.devices[device].memory.is_none() {
                continue;
            }
            let mut gain = 0.0;
            for task in (0..20).filter(|task| available[*task]) {
                let inputs = &problem.tasks[task].inputs;
                let lacks = inputs.iter().filter(|input| !holds(device, input)).count();
                if let Some(seconds) = problem.tasks[task].seconds[device]
                    && inputs.contains(&datum)
                    && !holds(device, &datum)
                {
                    let nanos = ((seconds * 1e9) as u64).max(1) as f64;
                    let roomy = problem.devices[device].memory >= Some(all);
                    let part = if roomy || inputs.len() == 2 { HARDLY } else { NEARLY };
                    gain += [0.0, nanos, (part * nanos).trunc()].get(lacks).unwrap_or(&0.0);
                }
            }
            let peers = (0..3).filter(|peer| *peer != device && holds(*peer, &datum));
            let rates = peers.filter_map(|peer| problem.links.peer(peer, device));
            let own = problem.devices.iter().filter(|device| device.memory.is_some());
            let part = problem.links.bus.map_or(f64::INFINITY, |bus| bus / own.count() as f64);
            let host = problem.devices[device].bandwidth.unwrap_or(f64::INFINITY).min(part);
            let bytes = problem.data[datum].bytes.max(1) as f64;
            let seconds = bytes / rates.fold(host, f64::max);
            let rate = shares.rate(device, datum);
            prop_assert!((rate - gain / seconds).abs() <= 1e-9 * rate, "{rate} {gain} {seconds}");
        }
    }
}

/// A product of which a memory holds a few blocks: the tasks of a square of the result
/// share two rows of blocks.
#[test]
fn a_product_of_three_inputs_is_computed_in_blocks() {
    let problem = product_3d(16, gpus(1, 64));
    let loads = execute(&mut locality(&problem), &problem).loads;
    // In their order, each task loads two blocks.
    assert!(loads < 3000, "{loads}");
}

/// The more tasks read a datum, the more data have greater gains than the one that is all
/// that a task lacks.
#[test]
fn loads_of_a_task_do_not_grow_with_the_size_of_a_product() {
    let loads = |n: usize| {
        let problem = product_3d(n, gpus(1, 142));
        execute(&mut locality(&problem), &problem).loads as f64 / problem.tasks.len() as f64
    };
    let (small, large) = (loads(20), loads(32));
    assert!(large < 1.2 * small, "{small} {large}");
}

/// What one device has loaded, the others copy from it.
#[test]
fn devices_share_what_one_has_loaded() {
    let own = product(40, gpus(4, 35));
    let bandwidth = own.devices[0].bandwidth;
    let links = Links {
        bus: bandwidth,
        host: None,
        peers: vec![vec![bandwidth.map(|rate| 2.0 * rate); 4]; 4],
    };
    let shared = Problem {
        views: Default::default(),
        results: Default::default(),
        links,
        ..own.clone()
    };
    // Blocks that the first 30 tasks of the devices read.
    let first = |problem: &Problem| {
        let orders = execute(&mut locality(problem), problem).orders;
        let tasks = orders.iter().flat_map(|order| order.iter().take(30));
        let read = tasks.flat_map(|task| &problem.tasks[*task].inputs);
        read.collect::<BTreeSet<_>>().len()
    };
    assert!(
        first(&shared) < first(&own),
        "{} {}",
        first(&shared),
        first(&own)
    );
}

/// A CPU that takes a hundred times as long begins no task at the end.
#[test]
fn a_slow_device_does_not_end_last() {
    let mut devices = gpus(2, 35);
    devices.push(DeviceModel {
        bandwidth: None,
        one_way: None,
        memory: None,
        ..devices[0].clone()
    });
    let mut problem = product(20, devices);
    for task in &mut problem.tasks {
        task.seconds[2] = task.seconds[0].map(|seconds| 100.0 * seconds);
    }
    let levels = execute(&mut locality(&problem), &problem);
    let seconds = problem.tasks[0].seconds[0].expect("seconds");
    let alone = 200.0 * seconds * 1e9;
    let cpu = levels.orders[2].len();
    assert!((1..=2).contains(&cpu), "{cpu}");
    assert!(
        (levels.nanos as f64) < 1.15 * alone,
        "{} of {alone}",
        levels.nanos
    );
}

#[test]
fn a_device_with_room_ahead_gets_the_most_urgent_planned_task() {
    let mut problem = readers((0..6).map(|_| vec![0]), gpus(1, 35));
    for (index, task) in problem.tasks.iter_mut().enumerate() {
        task.rank = [1.0, 1.0, 5.0, 2.0, 5.0, 3.0][index];
    }
    let mut policy = locality(&problem);
    policy.begin();
    (0..6).for_each(|task| policy.ready(task, 0));
    let first = policy.next(0, 0).expect("a task");
    let rest: Vec<usize> = std::iter::from_fn(|| policy.next(0, 0)).collect();
    let ranks = rest.iter().map(|task| problem.tasks[*task].rank);
    assert_eq!(rest.len(), 5, "{first} {rest:?}");
    assert!(ranks.is_sorted_by(|one, other| one >= other), "{rest:?}");
}

/// Of tasks that wait for others, the most urgent one begins; independent ones begin in their
/// order.
#[test]
fn independent_tasks_keep_their_order() {
    let mut problem = readers((0..4).map(|_| vec![0]), gpus(1, 35));
    for (task, rank) in problem.tasks.iter_mut().zip([1.0, 5.0, 3.0, 4.0]) {
        task.rank = rank;
    }
    assert_eq!(locality(&problem).begins(&[0, 1, 2]), 0);
    problem.tasks[3].predecessors = vec![0];
    assert_eq!(locality(&problem).begins(&[0, 1, 2]), 1);
}

/// A GPU computes a task in no time, and loads its inputs for longer than the host computes.
#[test]
fn what_a_device_loads_and_stores_counts_against_the_host() {
    for stores in [false, true] {
        let mut devices = gpus(1, 1000);
        devices.push(DeviceModel {
            bandwidth: None,
            one_way: None,
            memory: None,
            ..devices[0].clone()
        });
        let mut problem = readers((0..40).map(|task| vec![task]), devices);
        let bandwidth = problem.devices[0].bandwidth.expect("a link");
        let load = problem.data[0].bytes as f64 / bandwidth;
        for (number, task) in problem.tasks.iter_mut().enumerate() {
            task.seconds = vec![Some(0.01 * load), Some(0.1 * load)];
            if stores {
                task.outputs = std::mem::take(&mut task.inputs);
                task.outputs[0] = number;
            }
        }
        let mut policy = locality(&problem);
        policy.begin();
        (0..40).for_each(|task| policy.ready(task, 0));
        let taken = std::iter::from_fn(|| policy.next(0, 0)).take(40).count();
        assert!(taken <= 4, "{stores}: {taken}");
        assert!(policy.next(1, 0).is_some());
    }
}
