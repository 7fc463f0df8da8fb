//! Components that are one command each, from the second run on in which their launches are
//! the same. The simulator runs them in the latest order that their precedences allow, so
//! a graph that lacks one has a wrong result.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use fastrand::Rng;
use pdawl_api::codelet::NumberFormat;
use pdawl_api::engine::graph::{GraphOutcome, Options, PreparedGraph};
use pdawl_api::policy::Clustering;
use pdawl_api::runtime::sim::{Sim, SimOptions};
use pdawl_api::runtime::{DeviceId, Devices};
use pdawl_api::workload::transformer::{Form, Transformer};

use super::random::{Case, case};
use super::run::{
    check_memory, check_order, check_results, limit_memory, numbers, once, options, policy,
    prepared,
};
use super::simulated::{devices, machine_of};

/// Components that were command graphs.
fn graphs(outcome: &GraphOutcome) -> usize {
    outcome.uses.iter().map(|used| used.graphs).sum()
}

fn simulator(seed: u64, rng: &mut Rng) -> Sim {
    let options = SimOptions {
        seed,
        noise: Some(0.3),
        data: true,
        graphs: true,
        devices: Some(devices(rng)),
        ..SimOptions::default()
    };
    Sim::new(&machine_of(seed), options).expect("a simulator")
}

/// Under every policy, with data that stay or do not, room that is tight or not, and traces
/// in between.
#[test]
fn random_graphs_that_repeat_are_right() {
    let mut all = 0;
    for seed in 0..300 {
        let mut rng = Rng::with_seed(seed);
        let mut sim = simulator(seed, &mut rng);
        let case: Case = case(&mut rng, 20);
        let mut policy = policy(&mut rng, numbers(&sim, &case));
        let mut options = options(&mut rng, sim.devices().len());
        let mut prepared = prepared(&mut sim, &case);
        let limit = limit_memory(&mut rng, &mut prepared);
        for run in 0..6 {
            options.trace = rng.u8(0..4) == 0;
            let what = format!("seed {seed}, run {run}, {}, {options:?}", policy.name());
            let outcome = once(&mut prepared, &mut sim, policy.as_mut(), &options)
                .unwrap_or_else(|error| panic!("{what}: {error}"));
            check_order(&outcome, &options, &case, 0, &what);
            check_results(&prepared, &mut sim, &case, &what);
            check_memory(&prepared, limit, sim.devices().len(), &what);
            let graphs = graphs(&outcome);
            assert!(graphs == 0 || (run > 0 && !options.trace), "{what}");
            all += graphs;
        }
        prepared.release(&mut sim);
    }
    assert!(all > 100, "{all} components were command graphs");
}

/// The heads of a transformer's first layer stay on the device, and those of the second one
/// are read behind the graph. None is a graph on a device that runs none.
#[test]
fn heads_are_one_command_each() {
    const HEADS: usize = 4;
    for (runs_graphs, expected) in [(true, [0, 0, 2 * HEADS, 2 * HEADS]), (false, [0; 4])] {
        let transformer = Transformer {
            heads: HEADS as u32,
            beta: 32,
            layers: 2,
            format: NumberFormat::F32,
            seed: 5,
            form: Form::Heads,
            read_back: true,
        };
        let layers = transformer.layers().expect("layers");
        let components = Arc::new(layers.components().expect("components"));
        let case = Case {
            graph: Arc::clone(&layers.graph),
            components,
            expected: Vec::new(),
        };
        let options = SimOptions {
            data: true,
            graphs: runs_graphs,
            ..SimOptions::default()
        };
        let mut sim = Sim::new(&machine_of(0), options).expect("a simulator");
        let has_own = |device: &usize| !sim.devices()[*device].shares_host_memory;
        let gpu = (0..).find(has_own).expect("a GPU");
        assert_eq!(sim.runs_graphs(DeviceId(gpu)), runs_graphs);
        let problem = numbers(&sim, &case);
        let map = vec![gpu; case.components.len()];
        let mut policy = Clustering::new(problem, map).expect("a map");
        let mut prepared: PreparedGraph = prepared(&mut sim, &case);
        let options = Options {
            widths: vec![1; sim.devices().len()],
            keep: true,
            ..Options::queues(vec![3; sim.devices().len()])
        };
        for expected in expected {
            let outcome = once(&mut prepared, &mut sim, &mut policy, &options).expect("a run");
            assert_eq!(graphs(&outcome), expected);
            assert_eq!(outcome.kernels() as usize, case.graph.kernels().len());
            let results =
                layers.results(|datum| prepared.bytes(&mut sim, datum).map(<[u8]>::to_vec));
            let results = results.expect("results");
            let verified = transformer.verify(&results, &AtomicBool::new(false));
            assert!(verified.expect("verified").right());
        }
    }
}
