//! Nodes that are threads of this process, and are lost while they compute.

use std::thread;
use std::time::Duration;

use pdawl_api::cluster::wire::Wire;
use pdawl_api::engine::cluster::{ClusterError, expected};
use pdawl_api::spread::NamedSpread;
use pdawl_api::workload::cluster::Placement;

use crate::cluster::{Case, Ran, sparse, workloads};
use crate::shuffled_runtime::{Fault, ShuffledRuntime, device};

/// The first rank has the right result, unless ranks were lost before all had joined.
pub fn right_or_never_begun(case: &Case, mut ran: Vec<Ran>) {
    let name = case.workload.name();
    match ran.remove(0) {
        Ok(outcome) => {
            let outcome = outcome.expect("the first rank has the outcome");
            let checked = outcome.checked().expect("the result was compared");
            assert_eq!(checked.wrong, 0, "{name}: {checked:?}");
        }
        Err(ClusterError::Stopped(why)) => assert!(why.contains("before the run"), "{why}"),
        Err(other) => panic!("{name}: {other}"),
    }
}

/// A rank is lost at some moment. The others end with the right result.
#[test]
fn a_lost_node_does_not_change_the_result() {
    let seed = fastrand::u64(..1 << 40);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    for (workload, tile) in workloads(Placement::Rows, seed) {
        let case = Case {
            workload,
            tile,
            spread: NamedSpread::default(),
            prefetch: 2,
            nodes: 4,
            seed: random.u64(..),
        };
        let victim = random.usize(1..4);
        let after = Duration::from_micros(random.u64(..20_000));
        let ran = case.run(move |faults| {
            thread::sleep(after);
            faults.kill(victim);
        });
        right_or_never_begun(&case, ran);
    }
}

/// A node loses a device at some moment, with blocks that only this device has. It computes
/// them again, or all tasks begin anew.
#[test]
fn a_lost_device_does_not_change_the_result() {
    let seed = fastrand::u64(..1 << 40);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let (mut losses, mut restarts) = (0, 0);
    // A device is lost in half of the cases, and has results of an earlier task in few: on average
    // once in about ten rounds.
    for round in 0..128 {
        if round >= 4 && losses > 10 && restarts > 0 {
            break;
        }
        for (workload, tile) in workloads(Placement::Rows, random.u64(..1 << 40)) {
            let case = Case {
                workload,
                tile,
                spread: NamedSpread::default(),
                prefetch: 2,
                nodes: 2,
                seed: random.u64(..),
            };
            let after = random.u64(..60);
            let own = Some(1 << 30);
            let ran = case.run_as(
                |wire, stop| {
                    let devices = vec![device("host", None), device("gpu", own)];
                    let is_unlucky = wire.rank() == 1;
                    let fault = is_unlucky.then_some(Fault { device: 1, after });
                    case.on(
                        &mut ShuffledRuntime::new(devices, case.seed, fault),
                        wire,
                        stop,
                    )
                },
                |_| {},
            );
            let name = case.workload.name();
            let mut ran = ran.into_iter();
            let first = ran
                .next()
                .expect("a rank")
                .unwrap_or_else(|why| panic!("{name}: {why}"));
            let outcome = first.expect("the first rank has the outcome");
            for other in ran {
                other.unwrap_or_else(|why| panic!("{name}: {why}"));
            }
            let checked = outcome.checked().expect("the result was compared");
            assert_eq!(checked.wrong, 0, "{name}: {checked:?}");
            losses += usize::from(!outcome.nodes[1].notes.is_empty());
            restarts += outcome.restarts;
        }
    }
    assert!(
        losses > 10 && restarts > 0,
        "{losses} losses, {restarts} restarts"
    );
}

/// Nodes without a part have neither data nor subtasks, until those with a part have lost their
/// devices.
#[test]
fn nodes_without_a_part_take_over_only_when_all_others_have_lost_their_devices() {
    let seed = fastrand::u64(..1 << 40);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let mut losses = 0;
    for spread in NamedSpread::all() {
        for (workload, tile) in workloads(Placement::Rows, random.u64(..1 << 40)) {
            // The nodes of a co-run are chosen with its first division.
            if workload.bands().is_some() {
                continue;
            }
            let case = Case {
                workload,
                tile,
                spread,
                prefetch: 2,
                nodes: 3,
                seed: random.u64(..),
            };
            let after = random.bool().then(|| random.u64(..8));
            println!("{spread} {} {after:?}", case.workload.name());
            let ran = case.run_as(
                |wire, stop| {
                    let devices = vec![device("host", None)];
                    let infos = devices.iter().map(expected).collect();
                    let after = after.filter(|_| wire.rank() == 0);
                    let fault = after.map(|after| Fault { device: 0, after });
                    let mut runtime = ShuffledRuntime::new(devices, case.seed, fault);
                    case.in_part(1, (&mut runtime, infos), wire, stop)
                },
                |_| {},
            );
            let name = format!("{spread} {}", case.workload.name());
            let mut ran = ran.into_iter();
            let first = ran.next().expect("a rank");
            let outcome = first.unwrap_or_else(|why| panic!("{name}: {why}"));
            let outcome = outcome.expect("the first rank has the outcome");
            for other in ran {
                other.unwrap_or_else(|why| panic!("{name}: {why}"));
            }
            let checked = outcome.checked().expect("the result was compared");
            assert_eq!(checked.wrong, 0, "{name}: {checked:?}");
            let is_lost = !outcome.nodes[0].notes.is_empty();
            assert_eq!(outcome.restarts > 0, is_lost, "{name}");
            let others = &outcome.nodes[1..];
            let computed: u64 = others.iter().map(|node| node.subtasks).sum();
            assert_eq!(computed > 0, is_lost, "{name}: {others:?}");
            // All nodes get what later tasks depend on.
            let depends = (0..case.workload.tasks()).any(|n| case.workload.depends(n).is_some());
            let received: u64 = others.iter().map(|node| node.received_bytes).sum();
            assert!(is_lost || depends || received == 0, "{name}: {others:?}");
            losses += usize::from(is_lost);
        }
    }
    assert!(losses > 2, "{losses} losses");
}

/// Several nodes are lost at about the same time, which the others may learn at once.
#[test]
fn two_lost_nodes_do_not_change_the_result() {
    let seed = fastrand::u64(..1 << 40);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    for _ in 0..8 {
        for (workload, tile) in sparse(random.u64(..1 << 40)) {
            let case = Case {
                workload,
                tile,
                spread: NamedSpread::default(),
                prefetch: 2,
                nodes: 5,
                seed: random.u64(..),
            };
            let after = Duration::from_micros(random.u64(..20_000));
            let between = Duration::from_micros(random.u64(..300));
            let ran = case.run(move |faults| {
                thread::sleep(after);
                faults.kill(2);
                thread::sleep(between);
                faults.kill(4);
            });
            right_or_never_begun(&case, ran);
        }
    }
}
