//! Cost of a prediction with a fitted model of each family, from raw values to
//! seconds, with 4 and 12 inputs, fitted to 400 rows.

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use ndarray::Array2;
use pdawl_profiler::Fitted;
use pdawl_profiler::regress::Spec;
use std::hint::black_box;

const ROWS: usize = 400;

fn families() -> [Spec; 4] {
    [
        Spec::Linear { l2: 1e-4 },
        Spec::Polynomial {
            c: 0.3,
            epsilon: 0.01,
            degree: 3,
        },
        Spec::Gaussian {
            c: 10.0,
            epsilon: 0.01,
            gamma: 0.5,
        },
        Spec::Forest {
            trees: 64,
            depth: 16,
            min_leaf: 2,
        },
    ]
}

/// Uniform from 0 to 1, the same sequence in every run.
fn even(state: &mut u64) -> f64 {
    *state = state
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    (*state >> 11) as f64 / (1u64 << 53) as f64
}

/// A model with `inputs` inputs, and its rows.
fn fitted(spec: &Spec, inputs: usize) -> (Fitted, Array2<f64>) {
    let mut state = 1;
    let values = Array2::from_shape_simple_fn((ROWS, inputs), || 1e6f64.powf(even(&mut state)));
    let seconds: Vec<f64> = values
        .rows()
        .into_iter()
        .map(|row| {
            let noise = 0.98 + 0.04 * even(&mut state);
            noise * (1e-3 + 1e-6 * row[0] / row[1].sqrt() + 1e-7 * row[2])
        })
        .collect();
    let names: Vec<String> = (0..inputs).map(|i| format!("known.x{i}_count")).collect();
    let fitted = Fitted::fit(spec, &names, &values, &seconds, None, &[1.0; ROWS], 1)
        .expect("400 rows are enough");
    (fitted, values)
}

fn predict(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("predict");
    for spec in families() {
        for inputs in [4, 12] {
            let (fitted, values) = fitted(&spec, inputs);
            let rows: Vec<Vec<f64>> = values.rows().into_iter().map(|row| row.to_vec()).collect();
            let mut next = rows.iter().cycle();
            group.bench_function(BenchmarkId::new(spec.family(), inputs), |bencher| {
                bencher.iter(|| {
                    let row = next.next().expect("a cycle never ends");
                    fitted.predict(black_box(row), black_box(1e-3))
                });
            });
        }
    }
    group.finish();
}

criterion_group!(benches, predict);
criterion_main!(benches);
