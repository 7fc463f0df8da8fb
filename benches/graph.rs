//! Cost of the engine and the policy for each kernel of a graph, devices excluded:
//! transformer-like layers in the simulator, whose time is virtual and whose
//! commands compute nothing. The goal is at most 8 us a kernel, with the
//! simulator's own work included.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use pdawl_api::codelet::{Codelet, Cost, HostCode, KernelSource, NdRange, OpenClKernel, Shape};
use pdawl_api::engine::graph::problem::problem;
use pdawl_api::engine::graph::{Control, Options, PreparedGraph, abilities};
use pdawl_api::graph::{Argument, Components, Contents, Datum, GraphBuilder, Kernel, TaskGraph};
use pdawl_api::machine::MachineStore;
use pdawl_api::policy::{Adaptive, Clustering, Eager, Policy};
use pdawl_api::runtime::Devices;
use pdawl_api::runtime::sim::{Sim, SimOptions};

/// Kernels of a head.
const HEAD: usize = 8;

fn codelet() -> Arc<Codelet> {
    Arc::new(Codelet {
        name: "nothing".into(),
        host: Some(HostCode::Kernel(|_, _, _| {})),
        opencl: Some(OpenClKernel {
            source: KernelSource::new("", "none", "nothing", ""),
            fp64: false,
            shape: Shape::Of(|_, _| NdRange::new(vec![1])),
        }),
        library: None,
    })
}

/// Heads of eight kernels: three read given data, and five follow.
fn layer(heads: usize) -> (TaskGraph, Components) {
    let codelet = codelet();
    let bytes = 1 << 20;
    let mut graph = GraphBuilder::default();
    let x = graph.datum(Datum::new("x", bytes).with(Contents::zeros()));
    for head in 0..heads {
        let mut made = Vec::new();
        for kernel in 0..HEAD {
            let input = match kernel {
                0..3 => vec![
                    x,
                    graph.datum(Datum::new("w", bytes).with(Contents::zeros())),
                ],
                3 => vec![made[1]],
                4 => vec![made[0], made[3]],
                5 => vec![made[4]],
                6 => vec![made[5], made[2]],
                _ => vec![
                    made[6],
                    graph.datum(Datum::new("w", bytes).with(Contents::zeros())),
                ],
            };
            let mut out = Datum::new("made", bytes);
            out.wanted = kernel == HEAD - 1;
            let out = graph.datum(out);
            made.push(out);
            let arguments = input.into_iter().map(Argument::Input);
            graph.kernel(Kernel {
                name: format!("{head}.{kernel}").into(),
                codelet: Arc::clone(&codelet),
                units: 0..1,
                arguments: arguments.chain([Argument::FullOutput(out)]).collect(),
                cost: Cost {
                    flops: 1e6,
                    bytes: 1e6,
                },
                prefers: None,
            });
        }
    }
    let graph = graph.build().expect("a graph");
    let components = Components::by(&graph, |kernel| kernel.0 / HEAD).expect("heads");
    (graph, components)
}

fn host_cost(c: &mut Criterion) {
    let machine = MachineStore::of_user()
        .find("h200")
        .expect("a shipped machine");
    let mut group = c.benchmark_group("graph");
    for heads in [16, 64] {
        group.throughput(Throughput::Elements((heads * HEAD) as u64));
        for name in ["clustering", "adaptive", "eager"] {
            let (graph, components) = layer(heads);
            let single = name == "eager";
            let components = match single {
                true => Components::single_kernels(&graph),
                false => components,
            };
            let (graph, components) = (Arc::new(graph), Arc::new(components));
            let mut sim = Sim::new(&machine, SimOptions::default()).expect("a simulator");
            let devices = sim.devices().to_vec();
            let able = abilities(&graph, &components, &devices);
            let problem = problem(&graph, &components, &sim, &able, &Vec::new());
            let mut policy: Box<dyn Policy> = match name {
                "clustering" => {
                    let map = Clustering::map(&problem, 1).expect("a map");
                    Box::new(Clustering::new(problem, map).expect("a policy"))
                }
                "adaptive" => Box::new(Adaptive::new(problem)),
                _ => Box::new(Eager::new(problem)),
            };
            let mut prepared = PreparedGraph::new(&sim, graph, components).expect("a prepared");
            let mut options = Options::queues(vec![if single { 1 } else { 8 }; devices.len()]);
            options.widths = vec![1; devices.len()];
            let stop = AtomicBool::new(false);
            group.bench_function(BenchmarkId::new(name, heads * HEAD), |bencher| {
                bencher.iter(|| {
                    let mut control = Control {
                        stop: &stop,
                        progress: &mut |_, _| {},
                    };
                    let outcome = prepared
                        .run(&mut sim, policy.as_mut(), &options, &mut control)
                        .expect("a run");
                    black_box(outcome)
                });
            });
            prepared.release(&mut sim);
        }
    }
    group.finish();
}

criterion_group!(benches, host_cost);
criterion_main!(benches);
