//! The adaptive policy on simulated machines, compared with the best number of
//! heads on the CPU.

use std::sync::Arc;

use pdawl_api::codelet::{Codelet, Cost, HostCode, KernelSource, NdRange, OpenClKernel, Shape};
use pdawl_api::engine::graph::Options;
use pdawl_api::graph::{Argument, Components, Contents, Datum, GraphBuilder, Kernel};
use pdawl_api::machine::MachineStore;
use pdawl_api::policy::{Adaptive, Clustering};
use pdawl_api::runtime::Devices;
use pdawl_api::runtime::sim::{Sim, SimOptions};

use super::random::Case;
use super::run::{numbers, once, prepared};

const HEADS: usize = 16;

/// A layer of independent heads of three kernels each; every kernel has this
/// cost.
fn layer(cost: Cost, bytes: u64) -> Case {
    let codelet = Arc::new(Codelet {
        name: "nothing".into(),
        host: Some(HostCode::Kernel(|_, _, _| {})),
        opencl: Some(OpenClKernel {
            source: KernelSource::new("", "none", "nothing", ""),
            fp64: false,
            shape: Shape::Of(|_, _| NdRange::new(vec![1])),
        }),
        library: None,
    });
    let mut graph = GraphBuilder::default();
    for head in 0..HEADS {
        let mut last = graph.datum(Datum::new("given", bytes).with(Contents::zeros()));
        for kernel in 0..3 {
            let mut out = Datum::new("made", bytes);
            out.wanted = kernel == 2;
            let out = graph.datum(out);
            graph.kernel(Kernel {
                name: format!("{head}.{kernel}").into(),
                codelet: Arc::clone(&codelet),
                units: 0..1000,
                arguments: vec![Argument::Input(last), Argument::FullOutput(out)],
                cost,
                prefers: None,
            });
            last = out;
        }
    }
    let graph = graph.build().expect("a graph");
    let components = Components::by(&graph, |kernel| kernel.0 / 3).expect("heads");
    Case {
        graph: Arc::new(graph),
        components: Arc::new(components),
        expected: Vec::new(),
    }
}

/// The fourth layer takes at most 5 % longer than with the best number of heads on
/// the CPU.
#[test]
fn the_fourth_layer_is_near_the_best_map() {
    let mut on_cpu = Vec::new();
    for machine in ["k40", "k20-40", "laptop", "h200"] {
        for (flops, traffic) in [(1e9, 1e6), (1e7, 4e7), (3e7, 1e6)] {
            let file = MachineStore::at("/nonexistent")
                .find(machine)
                .expect("a machine");
            let options = SimOptions {
                noise: Some(0.0),
                ..SimOptions::default()
            };
            let mut sim = Sim::new(&file, options).expect("a simulator");
            let cost = Cost {
                flops,
                bytes: traffic,
            };
            let case = layer(cost, 1 << 20);
            let problem = numbers(&sim, &case);
            let mut prepared = prepared(&mut sim, &case);
            let devices = sim.devices().len();
            let options = Options {
                widths: vec![1; devices],
                ..Options::queues(vec![4; devices])
            };
            let best = (0..=HEADS)
                .map(|h_cpu| {
                    let map = Clustering::map(&problem, h_cpu).expect("a map");
                    let mut policy = Clustering::new(problem.clone(), map).expect("a policy");
                    let run = once(&mut prepared, &mut sim, &mut policy, &options);
                    (run.expect("a run").seconds, h_cpu)
                })
                .min_by(|a, b| a.0.total_cmp(&b.0))
                .expect("a best");
            on_cpu.push(best.1);
            let mut policy = Adaptive::new(problem);
            let layers = [0, 1, 2, 3].map(|_| {
                let run = once(&mut prepared, &mut sim, &mut policy, &options);
                (
                    run.expect("a run").seconds,
                    policy.division(HEADS).map(<[_]>::to_vec),
                )
            });
            assert!(
                layers[3].0 <= best.0 * 1.05,
                "{machine}, {cost:?}: {layers:?}, at best {best:?}"
            );
        }
    }
    // The best map leaves the CPU out in some cases, but not in all.
    assert!(
        on_cpu.contains(&0) && on_cpu.iter().any(|h| *h > 0),
        "{on_cpu:?}"
    );
}
