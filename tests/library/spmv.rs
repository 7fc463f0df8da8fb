//! Invariants of the engine for sparse matrix products, under random balancers and
//! orders of completion: every unit once a step, results equal to the sequential
//! reference, memory limits respected, device losses survived.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use pdawl_api::balance::{Balancer, Setup, Strategy as Sharing};
use pdawl_api::codelet::Precision;
use pdawl_api::engine::Outcome;
use pdawl_api::engine::corun::{self, Corun, CorunError, Options, Stream, Tracing};
use pdawl_api::workload::spmv::{self, Form, Spmv};
use pdawl_api::workload::{Divisible, Supersteps};
use proptest::prelude::*;

use crate::random_balancer::RandomBalancer;
use crate::shuffled_runtime::{Fault, ShuffledRuntime, device};

const STEPS: u32 = 5;

fn corun(
    runtime: &mut ShuffledRuntime,
    spmv: &Spmv,
    stream: Stream,
    make: impl FnOnce(&Setup) -> Box<dyn Balancer>,
) -> Result<Outcome, CorunError> {
    let options = Options {
        supersteps: Supersteps::new(STEPS, 1),
        tolerance: None,
        gpu_memory: None,
        stream,
        verify: true,
        trace: Tracing::Commands,
        each_step: None,
    };
    let corun = Corun::open(runtime, spmv, &options)?;
    let balancer = make(corun.setup());
    corun.run(
        balancer,
        &mut corun::Control {
            stop: &AtomicBool::new(false),
            progress: &mut |_, _| {},
        },
    )
}

/// Asserts that every unit is launched once in each step.
fn once_a_step(runtime: &ShuffledRuntime, units: u64) {
    for step in 0..STEPS {
        let mut count = vec![0u32; units as usize];
        for (phase, range) in &runtime.launched {
            if *phase == Some(step) {
                range.clone().for_each(|u| count[u as usize] += 1);
            }
        }
        assert!(count.iter().all(|n| *n == 1), "step {step}: {count:?}");
    }
}

#[derive(Clone, Debug)]
struct Case {
    columns: u32,
    lengths: Vec<u32>,
    form: Form,
    precision: Precision,
    irregular: f64,
    /// Memory of each device, in units beyond the minimum; `None` for a device on
    /// host memory.
    memories: Vec<Option<u64>>,
    stream: Stream,
    seed: u64,
}

fn case() -> impl Strategy<Value = Case> {
    (
        (1u32..700, any::<bool>()),
        proptest::collection::vec(
            prop_oneof![6 => 0u32..9, 2 => 0u32..60, 1 => 100u32..700],
            1..400,
        ),
        (0..3usize, any::<bool>(), 0.0f64..1.0),
        proptest::collection::vec(proptest::option::of(0u64..90), 1..5),
        (
            proptest::option::of(0u64..70),
            proptest::option::of(1u32..9),
        ),
        any::<u64>(),
    )
        .prop_map(
            |(
                (columns, square),
                mut lengths,
                (form, single, irregular),
                memories,
                stream,
                seed,
            )| {
                let columns = match form > 0 || square {
                    true => lengths.len() as u32,
                    false => columns,
                };
                lengths
                    .iter_mut()
                    .for_each(|length| *length = (*length).min(columns));
                Case {
                    columns,
                    lengths,
                    form: [Form::Product, Form::Iteration, Form::Ranks][form],
                    precision: if single {
                        Precision::F32
                    } else {
                        Precision::F64
                    },
                    irregular,
                    memories,
                    stream: Stream {
                        chunk: stream.0,
                        queues: stream.1,
                    },
                    seed,
                }
            },
        )
}

impl Case {
    fn spmv(&self) -> Spmv {
        let matrix = crate::matrices::matrix(self.columns, &self.lengths, self.seed);
        let options = spmv::Options {
            form: self.form,
            precision: self.precision,
            damping: 0.7,
            seed: self.seed,
            irregular: self.irregular,
            unit_weight: Some(32),
        };
        Spmv::new("random", Arc::new(matrix), options).unwrap()
    }

    /// Bytes of a device's memory: the minimum, and this number of units.
    fn bytes(&self, spmv: &Spmv, units: u64) -> u64 {
        let number = spmv.number();
        let queues = u64::from(self.stream.queues.unwrap_or(3));
        // A unit has at most 32 entries or rows.
        let unit = 32 * (4 + number + 2);
        let vectors = u64::from(spmv.matrix().columns()) + u64::from(spmv.matrix().rows());
        let fixed = (vectors + 2 * spmv.units()) * number + (spmv.units() + 1) * 12;
        fixed + (2 * queues + 1 + units) * unit
    }

    fn runtime(&self, spmv: &Spmv, fault: Option<Fault>) -> ShuffledRuntime {
        let devices = (self.memories.iter().enumerate())
            .map(|(i, units)| device(&format!("d{i}"), units.map(|n| self.bytes(spmv, n))))
            .collect();
        ShuffledRuntime::new(devices, self.seed, fault).with_ways(self.seed)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

    #[test]
    fn every_unit_once_and_right(case in case()) {
        let spmv = case.spmv();
        let mut runtime = case.runtime(&spmv, None);
        let outcome = corun(&mut runtime, &spmv, case.stream, |setup| {
            Box::new(RandomBalancer::new(setup, case.seed))
        }).unwrap();
        prop_assert_eq!(outcome.verified, Some(true), "{:?}", outcome.max_abs_error);
        prop_assert_eq!(outcome.steps.len() as u32, STEPS);
        prop_assert_eq!(outcome.eigenvalue.is_some(), case.form == Form::Iteration);
        prop_assert_eq!(outcome.change.is_some(), case.form == Form::Ranks);
        prop_assert!(runtime.is_bare(), "a run leaves nothing behind");
        once_a_step(&runtime, spmv.units());
        for (memory, used) in case.memories.iter().zip(&runtime.most_allocated) {
            let limit = memory.map_or(0, |units| case.bytes(&spmv, units));
            // The test's buffers are rounded up to whole words.
            let buffers = 8 + 3 * u64::from(case.stream.queues.unwrap_or(3));
            prop_assert!(*used <= limit + 8 * buffers, "{} of {}", used, limit);
        }
    }

    #[test]
    fn a_lost_device_costs_time_but_no_result(
        case in case(),
        victim in any::<prop::sample::Index>(),
        after in 0u64..90,
    ) {
        let spmv = case.spmv();
        let fault = Fault { device: victim.index(case.memories.len()), after };
        let mut runtime = case.runtime(&spmv, Some(fault));
        let outcome = corun(&mut runtime, &spmv, case.stream, |setup| {
            Box::new(RandomBalancer::new(setup, case.seed))
        });
        match outcome {
            Ok(outcome) => {
                prop_assert_eq!(outcome.verified, Some(true), "{:?}", outcome.max_abs_error);
                prop_assert!(outcome.losses.len() <= 1);
            }
            Err(CorunError::AllLost { .. }) => prop_assert_eq!(case.memories.len(), 1),
            Err(other) => prop_assert!(false, "{}", other),
        }
    }
}

#[test]
fn awkward_matrices_under_every_strategy_and_split() {
    let strategies = [
        "cpu",
        "gpu",
        "guided",
        "dawl",
        "fixed:0",
        "fixed:0.1",
        "fixed:0.5",
        "fixed:0.97",
    ];
    for (name, matrix) in crate::matrices::awkward() {
        let matrix = Arc::new(matrix);
        for form in [Form::Product, Form::Iteration, Form::Ranks] {
            let options = spmv::Options {
                form,
                unit_weight: Some(64),
                ..spmv::Options::default()
            };
            let Ok(spmv) = Spmv::new(name, Arc::clone(&matrix), options) else {
                assert_ne!(matrix.rows(), matrix.columns(), "{name}");
                continue;
            };
            for strategy in strategies {
                let sharing: Sharing = strategy.parse().unwrap();
                let devices = vec![device("cpu", None), device("gpu", Some(1 << 20))];
                let mut runtime = ShuffledRuntime::new(devices, 5, None);
                let outcome = corun(&mut runtime, &spmv, Stream::default(), |setup| {
                    sharing.build(setup).expect("a strategy that suits")
                })
                .unwrap_or_else(|error| panic!("{name} {form:?} {strategy}: {error}"));
                let error = outcome.max_abs_error;
                // What is no number may leave nothing to compare.
                let is_finite = matrix.values().iter().all(|value| value.is_finite());
                let is_right = outcome.verified.unwrap_or(!is_finite);
                assert!(is_right, "{name} {form:?} {strategy}: {error:?}");
                once_a_step(&runtime, spmv.units());
            }
        }
    }
}

#[test]
fn the_iteration_finds_the_largest_eigenvalue_on_two_devices() {
    // Every row has three ones: the vector of ones is an eigenvector, for 3.
    let rows = 600u32;
    let columns: Vec<u32> = (0..rows)
        .flat_map(|row| {
            let mut own = [row, (row + 1) % rows, (row + 7) % rows];
            own.sort_unstable();
            own
        })
        .collect();
    let starts = (0..=rows).map(|row| 3 * u64::from(row)).collect();
    let values = vec![1.0; columns.len()];
    let matrix = pdawl_api::matrix::Csr::new(rows, rows, starts, columns, values).unwrap();
    let options = spmv::Options {
        form: Form::Iteration,
        ..spmv::Options::default()
    };
    let spmv = Spmv::new("ones", Arc::new(matrix), options).unwrap();
    let devices = vec![device("cpu", None), device("gpu", Some(1 << 20))];
    let mut runtime = ShuffledRuntime::new(devices, 5, None);
    let sharing: Sharing = "fixed:0.4".parse().unwrap();
    let outcome = corun(&mut runtime, &spmv, Stream::default(), |setup| {
        sharing.build(setup).expect("a strategy that suits")
    })
    .unwrap();
    let found = outcome.eigenvalue.unwrap();
    assert!((2.9..=3.0 + 1e-12).contains(&found), "{found}");
}

#[test]
fn only_what_the_other_side_reads_moves() {
    // A banded matrix: only rows near the split read the other side's vector.
    let rows = 40_000u32;
    let (mut starts, mut columns) = (vec![0], Vec::new());
    for row in 0..rows {
        columns.extend(row.saturating_sub(2)..(row + 3).min(rows));
        starts.push(columns.len() as u64);
    }
    let values = vec![0.2; columns.len()];
    let matrix = pdawl_api::matrix::Csr::new(rows, rows, starts, columns, values).unwrap();
    let options = spmv::Options {
        form: Form::Iteration,
        // The first and last rows are shorter than the others, not longer.
        ..spmv::Options::default()
    };
    let spmv = Spmv::new("band", Arc::new(matrix), options).unwrap();
    let devices = vec![device("cpu", None), device("gpu", Some(64 << 20))];
    let mut runtime = ShuffledRuntime::new(devices, 5, None);
    let sharing: Sharing = "fixed:0.5".parse().unwrap();
    let outcome = corun(&mut runtime, &spmv, Stream::default(), |setup| {
        sharing.build(setup).expect("a strategy that suits")
    })
    .unwrap();
    assert_eq!(outcome.verified, Some(true));
    // The page of the vector at the split moves, one part in each direction, and
    // one number a unit moves to the host.
    let page = spmv::readers::PAGE * 8;
    for step in &outcome.steps[1..] {
        let gpu = &step.devices[1];
        let down = gpu.bytes_d2h - 8 * gpu.units;
        assert!(gpu.bytes_h2d > 0 && down > 0, "{step:?}");
        assert_eq!(gpu.bytes_h2d + down, page, "{step:?}");
    }
}

/// Ranks of a graph on two devices: those of a plain loop, with its changes, and no step more
/// than the tolerance asks for.
#[test]
fn page_ranks_end_where_a_plain_loop_does() {
    let (vertices, damping, tolerance) = (700, 0.85, 1e-3);
    let lengths: Vec<u32> = (0..vertices).map(|vertex| vertex * 7 % 6).collect();
    let graph = crate::matrices::matrix(vertices, &lengths, 11);
    let mut ranks = vec![1.0 / f64::from(vertices); vertices as usize];
    let (mut steps, mut change) = (0, f64::INFINITY);
    while change > tolerance {
        let mut next = vec![0.0; ranks.len()];
        let mut loose = 0.0;
        for (vertex, rank) in (0..vertices).zip(&ranks) {
            let (links, _) = graph.row(vertex);
            for to in links {
                next[*to as usize] += damping * rank / links.len() as f64;
            }
            loose += if links.is_empty() { *rank } else { 0.0 };
        }
        for next in &mut next {
            *next += (1.0 - damping + damping * loose) / f64::from(vertices);
        }
        change = next.iter().zip(&ranks).map(|(n, r)| (n - r).abs()).sum();
        (ranks, steps) = (next, steps + 1);
    }
    let options = spmv::Options {
        form: Form::Ranks,
        damping,
        unit_weight: Some(32),
        ..spmv::Options::default()
    };
    let result = Arc::new(std::sync::Mutex::new(Vec::new()));
    let to = Arc::clone(&result);
    let sink = pdawl_api::workload::kernel::Sink::new(move |_, bytes| {
        *to.lock().expect("no panic") = bytemuck::pod_collect_to_vec::<u8, f64>(bytes);
    });
    let spmv = Spmv::new("graph", Arc::new(graph), options)
        .unwrap()
        .with_sink(sink);
    for share in ["fixed:0", "fixed:0.4", "fixed:1", "dawl"] {
        let devices = vec![device("cpu", None), device("gpu", Some(1 << 20))];
        let mut runtime = ShuffledRuntime::new(devices, 5, None);
        let options = Options {
            supersteps: Supersteps::new(1000, 1),
            tolerance: Some(tolerance),
            gpu_memory: None,
            stream: Stream::default(),
            verify: true,
            trace: Tracing::None,
            each_step: None,
        };
        let corun = Corun::open(&mut runtime, &spmv, &options).unwrap();
        let sharing: Sharing = share.parse().unwrap();
        let balancer = sharing.build(corun.setup()).expect("it suits");
        let mut control = corun::Control {
            stop: &AtomicBool::new(false),
            progress: &mut |_, _| {},
        };
        let outcome = corun.run(balancer, &mut control).unwrap();
        assert_eq!(outcome.verified, Some(true), "{share}");
        assert_eq!(outcome.steps.len(), steps, "{share}");
        let found = outcome.change.expect("a change");
        assert!((found - change).abs() < 1e-12, "{share}: {found} {change}");
        for (found, right) in result.lock().unwrap().iter().zip(&ranks) {
            assert!((found - right).abs() < 1e-14, "{share}: {found} {right}");
        }
    }
}
