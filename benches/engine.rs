//! Cost of the engine and the balancer in a step, devices excluded: co-runs on
//! simulated machines, whose time is virtual and whose commands compute nothing.
//! The goal is at most 1 % of a step.

use std::hint::black_box;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use pdawl_api::balance::Strategy;
use pdawl_api::codelet::stencil::Precision;
use pdawl_api::engine::corun::{Control, Corun, Options, Stream, Tracing};
use pdawl_api::engine::{Outcome, StepRecord};
use pdawl_api::machine::{MachineFile, MachineStore};
use pdawl_api::runtime::sim::{Sim, SimOptions};
use pdawl_api::workload::Supersteps;
use pdawl_api::workload::stencil::Stencil;

/// Points along each side of the grid.
const SIDE: u64 = 16384;

const STRATEGIES: [&str; 3] = ["gpu", "fixed:0.3", "dawl"];

/// Steps of the run whose medians are printed.
const STEPS: u32 = 200;

/// A co-run to repeat.
struct Case {
    machine: MachineFile,
    strategy: Strategy,
    gpu_memory: Option<u64>,
}

impl Case {
    fn run(&self, steps: u32) -> Outcome {
        let mut sim = Sim::new(&self.machine, SimOptions::default()).expect("a machine");
        let stencil = Stencil::new(SIDE, SIDE, None, Precision::F64, 1).expect("a grid");
        let options = Options {
            tolerance: None,
            supersteps: Supersteps::new(steps, 1),
            gpu_memory: self.gpu_memory,
            stream: Stream::default(),
            verify: false,
            trace: Tracing::None,
            each_step: None,
        };
        let mut control = Control {
            stop: &AtomicBool::new(false),
            progress: &mut |_, _| {},
        };
        let corun = Corun::open(&mut sim, &stencil, &options).expect("a grid that fits");
        let balancer = self
            .strategy
            .build(corun.setup())
            .expect("a strategy that suits");
        corun.run(balancer, &mut control).expect("a run")
    }
}

fn median(steps: &[StepRecord], figure: impl Fn(&StepRecord) -> f64) -> f64 {
    let mut figures: Vec<f64> = steps.iter().map(figure).collect();
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

fn engine(c: &mut Criterion) {
    let mut group = c.benchmark_group("engine");
    // An iteration is a step; the simulator takes longer than the engine.
    group
        .sample_size(10)
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_millis(200));
    for name in ["h200", "k40"] {
        for (memory, gpu_memory) in [("resident", None), ("2GiB", Some(2 << 30))] {
            for strategy in STRATEGIES {
                let case = Case {
                    machine: MachineStore::of_user()
                        .find(name)
                        .expect("a shipped machine"),
                    strategy: strategy.parse().expect("a strategy"),
                    gpu_memory,
                };
                let id = format!("{name}/{memory}/{strategy}");
                let steps = case.run(STEPS).steps;
                let own = median(&steps, |s| s.engine_seconds);
                let all = median(&steps, |s| s.seconds);
                let chunks = median(&steps, |s| s.devices.iter().map(|d| d.chunks as f64).sum());
                println!(
                    "{id}: {:.1} us of a step of {:.3} ms are {:.2} %; {chunks} pieces",
                    own * 1e6,
                    all * 1e3,
                    own / all * 100.0
                );
                group.bench_function(&id, |b| {
                    b.iter_custom(|steps| {
                        let outcome = black_box(case.run(steps.try_into().unwrap_or(u32::MAX)));
                        let own: f64 = outcome.steps.iter().map(|s| s.engine_seconds).sum();
                        Duration::from_secs_f64(own)
                    });
                });
            }
        }
    }
    group.finish();
}

criterion_group!(benches, engine);
criterion_main!(benches);
