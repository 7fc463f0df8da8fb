//! What a divider's decision takes, and how near to an oracle it divides simulated loops, beside
//! other rules.

#[path = "../tests/fixtures/divider_traces.rs"]
mod divider_traces;

use std::hint::black_box;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use divider_traces::Trace;
use pdawl_core::balance::Strategy;
use pdawl_core::balance::divider::{Divider, Options};

/// Prints how 1,000 loops are divided.
fn traces() {
    let mut reached: [Vec<f64>; 5] = Default::default();
    let mut behind = 0;
    for seed in 0..1000 {
        let trace = Trace::drawn(seed);
        let all = trace.rules().map(|mut rule| trace.of_oracle(&mut *rule));
        behind += u32::from(all[1..].iter().any(|other| all[0] < 0.99 * other));
        let dawl = trace.of_oracle(&mut *trace.balanced(&Strategy::Dawl));
        for (rule, of_oracle) in reached.iter_mut().zip(all.into_iter().chain([dawl])) {
            rule.push(of_oracle);
        }
    }
    println!(
        "of the oracle's speed, from the fifth step after the start and each change, simulated:"
    );
    for (name, mut of_oracle) in [
        "divider",
        "equal shares",
        "OpenMM's rule",
        "HGuided",
        "DAWL",
    ]
    .into_iter()
    .zip(reached)
    {
        of_oracle.sort_by(f64::total_cmp);
        let mean = of_oracle.iter().sum::<f64>() / 1000.0;
        let near = of_oracle.iter().filter(|reached| **reached >= 0.97).count();
        println!(
            "{name:14} mean {mean:.4}, worst of 100 {:.4}, worst {:.4}; 0.97 in {near} of 1000",
            of_oracle[10], of_oracle[0]
        );
    }
    println!("loops in which another rule is 1 % better: {behind}");
}

fn decisions(criterion: &mut Criterion) {
    traces();
    for parts in [2, 16] {
        let mut divider = Divider::new(Options::new(1_000_000, parts)).expect("options");
        let mut random = fastrand::Rng::with_seed(1);
        let mut seconds = vec![None; parts];
        criterion.bench_function(
            &format!("divider/next and took, {parts} parts"),
            |bencher| {
                bencher.iter_batched(
                    || {
                        (0..parts)
                            .map(|part| (1.0 + part as f64) * (0.95 + 0.1 * random.f64()))
                            .collect::<Vec<f64>>()
                    },
                    |units| {
                        let ranges = divider.next().expect("ranges");
                        for (part, range) in ranges.iter().enumerate() {
                            seconds[part] = Some((range.end - range.start) as f64 * units[part]);
                        }
                        black_box(divider.took(&seconds)).expect("seconds");
                    },
                    BatchSize::SmallInput,
                );
            },
        );
    }
}

criterion_group!(benches, decisions);
criterion_main!(benches);
