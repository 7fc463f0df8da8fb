//! Results of simulated nodes with data, and times.

use std::sync::Arc;

use super::*;
use crate::balance::bands::divided;
use crate::cluster::simulate::{self, Computing, NodeMachine};
use crate::codelet::Precision;
use crate::machine::MachineStore;
use crate::matrices::{awkward, matrix};
use crate::workload::Supersteps;
use crate::workload::cluster::{BandsWorkload, Check, ClusterWorkload};
use crate::workload::spmv::{self, Form, Spmv};
use crate::workload::stencil::Stencil;

fn network() -> NetworkSpec {
    NetworkSpec {
        bandwidth: 1e9,
        latency_ns: 2_000,
        message_ns: 500,
        full_duplex: true,
        switch_bandwidth: None,
    }
}

fn machine(name: &str) -> MachineFile {
    MachineStore::at("/nonexistent").find(name).unwrap()
}

/// A host ten times slower, without a GPU.
fn slow() -> MachineFile {
    let mut machine = machine("k40");
    machine.devices.clear();
    machine
}

/// The nodes of machines with data.
fn open<'w>(workload: &'w BandsWorkload, machines: &[MachineFile]) -> Nodes<'w> {
    open_over(workload, machines, None)
}

/// Those of them that gain what they exchange over a network.
fn open_over<'w>(
    workload: &'w BandsWorkload,
    machines: &[MachineFile],
    over: Option<Network>,
) -> Nodes<'w> {
    let bands = workload.bands().unwrap();
    let options = SimOptions {
        data: true,
        seed: 3,
        ..SimOptions::default()
    };
    let machines: Vec<&MachineFile> = machines.iter().collect();
    Nodes::open(
        (&machines, &network(), over),
        bands,
        (&options, Tracing::None),
    )
    .unwrap()
}

/// Compares the result of all nodes with the problem.
fn check(workload: &BandsWorkload, mut nodes: Nodes) {
    let space = &workload.spaces()[workload.result()].extent;
    let row = space.columns * space.element;
    let mut all = vec![0xff; space.bytes(&space.whole()) as usize];
    for node in 0..nodes.nodes.len() {
        if nodes.units[node].is_empty() {
            continue;
        }
        let rows = (nodes.bands.rows)(&nodes.units[node]);
        let bytes = rows.start * row..rows.end * row;
        let to = &mut all[bytes.start as usize..bytes.end as usize];
        nodes
            .read(node, &[bytes], |own| to.copy_from_slice(own))
            .unwrap();
    }
    let checked = match workload.check() {
        Check::Blocks(check) => check(&space.whole(), &all, 1),
        Check::Whole(_, check) => {
            let ordered = workload.ordered(workload.result());
            check(&[&ordered.map_or(all.clone(), |ordered| ordered(&all))], 1)
        }
    };
    assert!(checked.numbers > 0 && checked.wrong == 0, "{checked:?}");
}

fn stencils() -> Vec<BandsWorkload> {
    let flat = Stencil::new(33, 41, None, Precision::F32, 5).unwrap();
    let deep = Stencil::new(5, 7, Some(19), Precision::F64, 6).unwrap();
    let by = [0.3, -0.2, 0.1, 0.25, 0.05];
    let weighted = flat.clone().with_coefficients(&by).unwrap();
    vec![
        BandsWorkload::stencil(weighted.clone(), Supersteps::new(7, 1)),
        BandsWorkload::stencil(weighted, Supersteps::new(11, 4)),
        BandsWorkload::stencil(flat.clone(), Supersteps::new(11, 1)),
        BandsWorkload::stencil(deep.clone(), Supersteps::new(9, 1)),
        BandsWorkload::stencil(flat, Supersteps::new(11, 3)),
        BandsWorkload::stencil(deep, Supersteps::new(19, 8)),
    ]
}

fn products() -> Vec<BandsWorkload> {
    let of = |matrix, form, precision, steps| {
        let options = spmv::Options {
            form,
            precision,
            unit_weight: Some(32),
            ..spmv::Options::default()
        };
        let spmv = Spmv::new("test", Arc::new(matrix), options).unwrap();
        BandsWorkload::product(spmv, steps, None)
    };
    // The long rows are in pieces, which are at several nodes.
    let short = (3..400).map(|row| row % 5);
    let lengths: Vec<u32> = [300, 200, 90].into_iter().chain(short).collect();
    let long = || matrix(400, &lengths, 3);
    let all = [
        of(long(), Form::Product, Precision::F64, 3),
        of(long(), Form::Iteration, Precision::F64, 9),
        of(long(), Form::Ranks, Precision::F32, 9),
    ];
    let square = awkward()
        .into_iter()
        .filter(|(_, m)| m.rows() == m.columns() && m.rows() > 0);
    let ranks = square.map(|(_, matrix)| of(matrix, Form::Ranks, Precision::F64, 5));
    all.into_iter().chain(ranks).collect()
}

#[test]
fn any_nodes_compute_what_one_does() {
    for workload in stencils().into_iter().chain(products()) {
        for nodes in [1, 2, 3, 5] {
            let mut nodes = open(&workload, &vec![machine("k40"); nodes]);
            nodes.run().unwrap();
            check(&workload, nodes);
        }
    }
}

/// Units change hands after every other step, whatever that costs, and some nodes have none
/// for a while.
#[test]
fn units_may_change_hands_at_any_time() {
    let mut random = fastrand::Rng::with_seed(11);
    let machines = [machine("k40"), slow(), machine("k40"), slow()];
    for workload in stencils().into_iter().chain(products()) {
        let mut nodes = open(&workload, &machines);
        let (supersteps, units) = (nodes.bands.supersteps, nodes.bands.workload.units());
        let steps = supersteps.count();
        let (mut parts, mut moved) = (nodes.parts(), 0);
        for done in 1..=steps {
            nodes.step().unwrap();
            nodes.exchange(&parts, When::Step).unwrap();
            if done < steps && done % 2 == 1 {
                let part = |random: &mut fastrand::Rng| match random.u8(..4) {
                    0 => 0.0,
                    _ => random.f64(),
                };
                let mut speeds: Vec<f64> = (0..4).map(|_| part(&mut random)).collect();
                speeds[random.usize(..4)] = 1.0;
                let next = divided(units, &speeds);
                moved += u32::from(next != nodes.units);
                nodes.move_units(next, supersteps.after(done)).unwrap();
                parts = nodes.parts();
            }
        }
        nodes.gather().unwrap();
        nodes.exchange(&[], When::End).unwrap();
        assert!(moved > 0);
        check(&workload, nodes);
    }
}

#[test]
fn nodes_that_do_not_gain_what_they_exchange_are_left_out() {
    let machines = [slow(), machine("k40"), slow()];
    for workload in stencils().into_iter().chain(products()) {
        let mut nodes = open_over(&workload, &machines, Some(Network::default()));
        let bands = nodes.bands;
        let with_units = |nodes: &Nodes| nodes.units.iter().filter(|u| !u.is_empty()).count();
        let cost = bands.workload.cost(&(0..bands.workload.units()));
        let exchanges = bands.received(2).1 > 0 && cost.bytes > 0.0;
        let most = bands.workload.units().min(3) as usize;
        assert_eq!(
            with_units(&nodes),
            if exchanges { 1 } else { most },
            "{cost:?}"
        );
        let says = nodes.nodes[0].record.notes.join("");
        assert_eq!(says.contains("1 of 3 nodes take part"), exchanges, "{says}");
        nodes.run().unwrap();
        check(&workload, nodes);
    }
}

#[test]
fn a_slow_node_gets_fewer_units() {
    let stencil = Stencil::new(4096, 4096, None, Precision::F64, 1).unwrap();
    let workload = BandsWorkload::stencil(stencil, Supersteps::new(100, 1));
    let (fast, slow) = (machine("k40"), slow());
    let machines = [&fast, &slow];
    let bands = workload.bands().unwrap();
    let spec = network();
    let options = SimOptions::default();
    let mut nodes =
        Nodes::open((&machines, &spec, None), bands, (&options, Tracing::None)).unwrap();
    nodes.nodes.iter_mut().for_each(close);
    nodes
        .begin(
            vec![0..2048, 2048..4096],
            nodes.bands.supersteps,
            vec![None, None],
        )
        .unwrap();
    // Both begin at once.
    nodes.nodes.iter_mut().for_each(|node| node.at = 0);
    nodes.run().unwrap();
    let count = |range: &Range<u64>| range.end - range.start;
    assert!(
        count(&nodes.units[0]) > 2 * count(&nodes.units[1]),
        "{:?}",
        nodes.units
    );
    // As if all steps took as long as the first one, with halves.
    let (began, ended) = nodes.timeline[0];
    let halves = 100.0 * (ended - began) as f64 / 1e9;
    let report = nodes.report(false);
    let outcome = report.outcome;
    let seconds = outcome.seconds;
    assert!(seconds < 0.7 * halves, "{seconds} of {halves}");
    let mut nodes = outcome.nodes.iter();
    assert!(nodes.all(|node| node.received_bytes > 0 && node.busy_seconds > 0.0));
}

#[test]
fn more_nodes_are_faster() {
    let stencil = Stencil::new(8192, 8192, None, Precision::F64, 1).unwrap();
    let workload = BandsWorkload::stencil(stencil, Supersteps::new(20, 1));
    let seconds = |count: usize| {
        let machine = NodeMachine::new(Arc::new(machine("k40")), Computing::All);
        let cluster = Cluster {
            nodes: vec![machine; count],
            network: network(),
        };
        let options = simulate::Options {
            noise: None,
            ..Default::default()
        };
        let report = simulate::simulate(&cluster, &workload, 1, &options);
        report.unwrap().outcome.seconds
    };
    let (one, two, four) = (seconds(1), seconds(2), seconds(4));
    assert!(two < 0.6 * one && four < 0.6 * two, "{one} {two} {four}");
}
