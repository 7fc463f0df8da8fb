//! Cost of a prediction with each family of models, and of a plan: both are made
//! many times before and during a run.

#[path = "../tests/fixtures/synthetic_models.rs"]
mod synthetic_models;

use criterion::{Criterion, criterion_group, criterion_main};
use pdawl_api::balance::pdawl::Planner;
use pdawl_api::engine::corun::Stream;
use pdawl_api::model::planner::{ModelledMachine, plan};
use pdawl_api::model::{Case, Descriptors, DevicePart, Predictor};
use pdawl_profiler::bundle::Bundle;
use pdawl_profiler::train::Family;
use std::hint::black_box;
use synthetic_models::{CODELET, machine, model, on_gpu, on_host, samples, work};

/// An effect to learn: few workers and short chunks are slower than the prior.
fn factor(case: &Case) -> f64 {
    match case.part {
        DevicePart::Host { workers, .. } => 1.1 + 0.3 / f64::from(workers),
        DevicePart::Discrete { chunk, .. } => 1.0 + 4.0 / chunk as f64,
    }
}

fn bundles() -> Vec<(Family, Bundle)> {
    let machine = machine("k40");
    let samples = samples(&machine, factor);
    (Family::ALL.into_iter())
        .map(|family| (family, model(&machine, &samples, &[family])))
        .collect()
}

fn predictions(c: &mut Criterion) {
    let machine = machine("k40");
    let gpu = Some(&machine.devices[0]);
    let mut group = c.benchmark_group("predict a step");
    for (family, bundle) in bundles() {
        for (kind, device, case) in [
            ("cpu", None, on_host(&machine, work(9500, 9500), 8, 9500)),
            (
                "gpu",
                gpu,
                on_gpu(&machine, work(21_500, 21_500), Stream::default()),
            ),
        ] {
            let descriptors = Descriptors::of(&machine, device, CODELET, true);
            let predictor = Predictor::new(&bundle, CODELET, descriptors).unwrap();
            group.bench_function(format!("{family} {kind}"), |b| {
                b.iter(|| predictor.step_seconds(black_box(&case)));
            });
        }
    }
    group.finish();
}

fn plans(c: &mut Criterion) {
    let machine = machine("k40");
    let mut group = c.benchmark_group("plan");
    for (family, bundle) in bundles() {
        let modelled = ModelledMachine {
            bundle: &bundle,
            machine: &machine,
            codelet: CODELET,
            fp64: true,
            gpu_memory: Some(2 << 30),
        };
        let (work, candidates) = (work(20_000, 20_000), modelled.described().unwrap());
        group.bench_function(format!("a run, {family}"), |b| {
            b.iter(|| plan(black_box(&work), &candidates));
        });
        let planner = plan(&work, &candidates)
            .unwrap()
            .planner(&work, &candidates)
            .unwrap();
        group.bench_function(format!("a step, {family}"), |b| {
            b.iter(|| planner.forecast(black_box(&[1.0, 1.1])));
        });
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(20);
    targets = predictions, plans
}
criterion_main!(benches);
