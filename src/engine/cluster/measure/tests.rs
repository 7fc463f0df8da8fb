//! Ranks that are threads measure each other.

use std::sync::atomic::AtomicBool;
use std::thread;

use super::*;
use crate::machine::MachineStore;
use pdawl_core::cluster::wire::LocalWire;
use pdawl_core::cluster::wire::local::Options as WireOptions;

const SMALL: MeasureOptions = MeasureOptions {
    most_bytes: 3 << 20,
};

fn k40(name: &str) -> MachineFile {
    let store = MachineStore::at("/nonexistent");
    let mut file = store.find("k40").unwrap();
    file.name = name.to_owned();
    file
}

type Ran = Result<Option<MeasuredCluster>, ClusterError>;

/// All ranks, whose fingerprints these are. Nobody knows a file but rank 0 that of `known`,
/// and those that `cannot` be measured are not.
fn run(fingerprints: &[&str], cannot: &str) -> Vec<Ran> {
    let options = WireOptions {
        shuffle: Some(7),
        pulse: None,
    };
    let wires = LocalWire::cluster_with(fingerprints.len(), options);
    let rank = |wire: LocalWire, fingerprint: &str| {
        let mut wire = wire;
        let number = wire.rank();
        let known = |asked: &str| (number == 0 && asked == "known").then(|| k40("of-user"));
        let mut measure = || match fingerprint == cannot {
            true => Err("it has no clock".to_owned()),
            false => Ok(k40(&format!("measured-{number}"))),
        };
        let this = ThisMachine {
            fingerprint: fingerprint.to_owned(),
            known: &known,
            measure: &mut measure,
        };
        let measured = measure_on(&mut wire, this);
        // A wire that is dropped before others have read what was sent is lost to them.
        Box::new(wire).finish()?;
        measured
    };
    thread::scope(|scope| {
        let ranks = wires.into_iter().zip(fingerprints);
        let ranks: Vec<_> = ranks
            .map(|(wire, fingerprint)| scope.spawn(|| rank(wire, fingerprint)))
            .collect();
        ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
    })
}

fn measure_on(wire: &mut LocalWire, this: ThisMachine) -> Ran {
    let stop = AtomicBool::new(false);
    measure(wire, this, SMALL, &stop, &mut |_| {})
}

#[test]
fn ranks_measure_their_network_and_each_kind_of_machine_once() {
    let mut ran = run(&["a", "known", "a", "b"], "");
    let first = ran.remove(0).unwrap().unwrap();
    for other in ran {
        assert_eq!(other.unwrap(), None);
    }
    assert_eq!(first.of_rank, [0, 1, 0, 2]);
    let by: Vec<_> = first
        .machines
        .iter()
        .map(|found| found.measured_by)
        .collect();
    assert_eq!(by, [Some(0), None, Some(3)]);
    assert_eq!(first.machines[1].file.name, "of-user");
    assert_eq!(first.machines[2].file.name, "measured-3");
    assert!(first.source["network.bandwidth"].contains("6 pairs"));
    let network = &first.network;
    assert!(network.bandwidth > 0.0 && network.message_ns > 0);
}

#[test]
fn a_measured_cluster_becomes_a_file_that_can_be_read() {
    let mut ran = run(&["a", "a", "b"], "");
    let measured = ran.remove(0).unwrap().unwrap();
    let names = ["one".to_owned(), "two".to_owned()];
    let file = measured.file("mine", &names);
    let counts: Vec<_> = file
        .nodes
        .iter()
        .map(|nodes| (nodes.machine.as_str(), nodes.count))
        .collect();
    assert_eq!(counts, [("one", 2), ("two", 1)]);
    assert!(file.description.contains("node0, node1, node2."));
    assert!(file.source["node.two"].contains("node 2"));
    let text = file.to_toml().unwrap();
    assert_eq!(ClusterFile::parse(&text, "mine").unwrap(), file);
}

#[test]
fn a_machine_that_cannot_be_measured_ends_it_on_all_ranks() {
    for ran in run(&["a", "b", "b"], "b") {
        let error = ran.unwrap_err().to_string();
        assert!(
            error.contains("node 1 cannot be measured: it has no clock"),
            "{error}"
        );
    }
}

#[test]
fn a_single_rank_asks_for_more() {
    let error = run(&["a"], "").remove(0).unwrap_err().to_string();
    assert!(error.contains("mpirun"), "{error}");
}

#[test]
fn what_rank_0_refuses_ends_it_on_all_ranks() {
    let mut wires = LocalWire::cluster(2).into_iter();
    let (mut first, mut second) = (wires.next().unwrap(), wires.next().unwrap());
    refuse(&mut first, "there is a file").unwrap();
    let this = ThisMachine {
        fingerprint: String::new(),
        known: &|_| None,
        measure: &mut || Err("not asked".to_owned()),
    };
    let error = measure_on(&mut second, this).unwrap_err();
    assert_eq!(error.to_string(), "there is a file");
}

#[test]
fn a_rank_that_is_interrupted_ends_it_on_all_ranks() {
    let ran = thread::scope(|scope| {
        let ranks = LocalWire::cluster(3).into_iter().map(|mut wire| {
            scope.spawn(move || {
                let stop = AtomicBool::new(wire.rank() == 1);
                let this = ThisMachine {
                    fingerprint: String::new(),
                    known: &|_| Some(k40("known")),
                    measure: &mut || Err("not asked".to_owned()),
                };
                measure(&mut wire, this, SMALL, &stop, &mut |_| {}).unwrap_err()
            })
        });
        let ranks: Vec<_> = ranks.collect();
        ranks
            .into_iter()
            .map(|rank| rank.join().unwrap().to_string())
            .collect::<Vec<_>>()
    });
    assert_eq!(ran[1], "interrupted");
    for other in [&ran[0], &ran[2]] {
        // Its wire ends with its thread, which another rank may notice first.
        assert!(other.contains("node 1"), "{other}");
    }
}

#[test]
fn a_lost_rank_ends_it() {
    let mut wires = LocalWire::cluster(3).into_iter();
    let (mut first, second) = (wires.next().unwrap(), wires.next().unwrap());
    drop(second);
    let this = ThisMachine {
        fingerprint: String::new(),
        known: &|_| None,
        measure: &mut || Err("not asked".to_owned()),
    };
    let error = measure_on(&mut first, this).unwrap_err().to_string();
    assert!(error.contains("node 1 was lost"), "{error}");
}

fn pair(one_way: f64, both_ways: f64) -> Pair {
    Pair {
        round_trip: 60_000,
        latency: 8_000,
        pace: 5_000,
        one_way,
        both_ways,
    }
}

#[test]
fn a_message_takes_both_drivers_and_no_less_than_the_measured_latency() {
    let (spec, source) = network(2, &[pair(1e9, 1e9)], 2e9);
    assert_eq!((spec.latency_ns, spec.message_ns), (20_000, 5_000));
    assert_eq!(spec.bandwidth, 1e9);
    assert_eq!(source.len(), 5);
    let slow = Pair {
        pace: 50_000,
        ..pair(1e9, 1e9)
    };
    assert_eq!(network(2, &[slow], 2e9).0.latency_ns, 8_000);
}

#[test]
fn a_link_is_full_duplex_if_directions_do_not_share_it() {
    for (both, full) in [(1e9, true), (0.8e9, true), (0.6e9, false), (0.5e9, false)] {
        let (spec, _) = network(2, &[pair(1e9, both)], 2.0 * both);
        assert_eq!(spec.full_duplex, full, "{both}");
    }
}

#[test]
fn a_switch_limits_if_all_links_together_carry_less() {
    let switch = |nodes, both, all| network(nodes, &[pair(1e9, both)], all).0.switch_bandwidth;
    assert_eq!(switch(4, 1e9, 3.9e9), None);
    assert_eq!(switch(4, 1e9, 2e9), Some(2e9));
    assert_eq!(switch(4, 0.5e9, 1.9e9), None, "half duplex");
    assert_eq!(switch(2, 1e9, 0.1e9), None, "two nodes are one pair");
}

#[test]
fn the_median_counts_and_the_range_is_reported() {
    let pairs = [pair(1e9, 1e9), pair(4e9, 4e9), pair(2e9, 2e9)];
    let (spec, source) = network(3, &pairs, 6e9);
    assert_eq!(spec.bandwidth, 2e9);
    let text = &source["network.bandwidth"];
    assert!(
        text.contains("3 pairs") && text.contains("1.00 GB/s to 4.00 GB/s"),
        "{text}"
    );
}
