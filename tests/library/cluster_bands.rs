//! Co-runs over nodes of which one is slow: units change hands.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use pdawl_api::cluster::wire::{LocalWire, Wire};
use pdawl_api::codelet::Precision;
use pdawl_api::machine::MachineStore;
use pdawl_api::runtime::sim::{At, Fault, FaultEffect, Sim, SimOptions};
use pdawl_api::spread::NamedSpread;
use pdawl_api::workload::Supersteps;
use pdawl_api::workload::cluster::{BandsWorkload, ClusterWorkload};
use pdawl_api::workload::spmv::Form;
use pdawl_api::workload::stencil::Stencil;

use crate::cluster::{Case, Ran, load, product};

/// A rank whose devices are as fast as those of all others, or so slow that to divide the units
/// anew pays.
fn rank(case: &Case, wire: LocalWire, stop: &AtomicBool) -> Ran {
    let machine = MachineStore::of_user().find("k40").expect("it ships");
    let slowed = |device| Fault {
        device,
        at: At::Seconds(0.0),
        what: FaultEffect::Slowed(1e5),
    };
    let faults = match wire.rank() {
        1 => vec![slowed(0), slowed(1)],
        _ => Vec::new(),
    };
    let options = SimOptions {
        data: true,
        faults,
        ..SimOptions::default()
    };
    let mut runtime = Sim::new(&machine, options).expect("the machine is right");
    case.on(&mut runtime, wire, stop)
}

#[test]
fn a_slow_node_gives_units_away() {
    let stencil = Stencil::new(300, 240, None, Precision::F64, 3).expect("a grid");
    let graph = load("rmat:12,9", 5);
    let workloads: [Arc<dyn ClusterWorkload>; 3] = [
        Arc::new(BandsWorkload::stencil(stencil, Supersteps::new(40, 1))),
        Arc::new(product(
            graph.clone(),
            Form::Ranks,
            Precision::F64,
            (40, None),
            5,
        )),
        Arc::new(product(
            graph,
            Form::Iteration,
            Precision::F64,
            (40, None),
            5,
        )),
    ];
    for workload in workloads {
        let case = Case {
            workload,
            tile: 1,
            spread: NamedSpread::default(),
            prefetch: 1,
            nodes: 3,
            seed: 8,
        };
        let mut ran = case.run_as(|wire, stop| rank(&case, wire, stop), |_| {});
        let name = case.workload.name();
        let outcome = ran
            .remove(0)
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        let outcome = outcome.expect("the first rank has the outcome");
        let checked = outcome.checked().expect("the result was compared");
        assert_eq!(checked.wrong, 0, "{name}: {checked:?}");
        let notes = &outcome.nodes[0].notes;
        let is_reported = |note: &String| note.contains("divided the units anew after 4 steps");
        assert!(notes.iter().any(is_reported), "{name}: {notes:?}");
    }
}
