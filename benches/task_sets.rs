//! Building task sets of the largest sizes of Gonthier et al.: the graph, and a
//! component of each task. The goal is well under a second.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use pdawl_api::graph::Components;
use pdawl_api::workload::task_set::{Body, Cholesky, Matmul2d, Matmul3d, TaskSet, Tasks};

fn building(c: &mut Criterion) {
    let mut group = c.benchmark_group("task_sets");
    group.sample_size(10);
    let outputs = Matmul2d {
        outputs: true,
        ..Matmul2d::paper(300)
    };
    let in_place = Cholesky {
        dependencies: true,
        ..Cholesky::paper(80)
    };
    for (name, tasks, body) in [
        (
            "matmul2d",
            Tasks::Matmul2d(Matmul2d::paper(300)),
            Body::Model,
        ),
        ("matmul2d real", Tasks::Matmul2d(outputs), Body::Real),
        (
            "matmul3d",
            Tasks::Matmul3d(Matmul3d::paper(45)),
            Body::Model,
        ),
        ("cholesky in place", Tasks::Cholesky(in_place), Body::Model),
        ("cholesky mix", Tasks::Cholesky(in_place), Body::Mix),
    ] {
        let set = TaskSet {
            body,
            ..TaskSet::paper(tasks)
        };
        group.throughput(Throughput::Elements(set.count()));
        group.bench_function(BenchmarkId::new(name, set.count()), |bencher| {
            bencher.iter(|| {
                let graph = set.graph().expect("a graph");
                let components = Components::single_kernels(&graph);
                black_box((graph, components))
            });
        });
    }
    group.finish();
}

criterion_group!(benches, building);
criterion_main!(benches);
