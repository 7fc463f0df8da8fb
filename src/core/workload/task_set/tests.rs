//! The shapes of task sets, and their results without an engine.

use std::collections::BTreeSet;

use fastrand::Rng;
use proptest::prelude::*;

use super::*;
use crate::codelet::mix::Digest;
use crate::codelet::{HostValue, Value};
use crate::graph::{Argument, Components, DatumId, KernelId, TaskGraph};
use mix_reference::mix_reference;

#[path = "../../../../tests/fixtures/mix_reference.rs"]
mod mix_reference;

/// A small set with this body.
fn set(tasks: Tasks, body: Body, seed: u64) -> TaskSet {
    TaskSet {
        tile: 33,
        body,
        seed,
        ..TaskSet::paper(tasks)
    }
}

fn graph(tasks: Tasks) -> TaskGraph {
    TaskSet::paper(tasks).graph().unwrap()
}

/// Some sets of every kind, with results and without.
fn kinds() -> Vec<Tasks> {
    let whole = Matmul2d::paper(5);
    vec![
        Tasks::Matmul2d(whole),
        Tasks::Matmul2d(Matmul2d {
            outputs: true,
            ..whole
        }),
        Tasks::Matmul2d(Matmul2d {
            outputs: true,
            ..Matmul2d::sparse(20)
        }),
        Tasks::Matmul3d(Matmul3d {
            sum: false,
            ..Matmul3d::paper(3)
        }),
        Tasks::Matmul3d(Matmul3d {
            sum: true,
            ..Matmul3d::paper(3)
        }),
        Tasks::Cholesky(Cholesky::paper(5)),
        Tasks::Cholesky(Cholesky {
            dependencies: true,
            ..Cholesky::paper(5)
        }),
    ]
}

/// Memory of a datum and its versions, aligned for every number.
struct Storage(Vec<u64>);

/// Runs the kernels in a random order that the graph allows. All versions of a datum
/// share memory, new memory is poisoned, and a task runs unit by unit. Returns what
/// every datum held when it was made.
fn run(graph: &TaskGraph, rng: &mut Rng) -> Vec<Vec<u8>> {
    let mut storages: Vec<Storage> = (graph.data().iter())
        .map(|datum| {
            let mut storage = vec![0xEEEE_EEEE_EEEE_EEEE; datum.bytes.div_ceil(8) as usize];
            if let Some(contents) = &datum.contents {
                contents.write(&mut bytemuck::cast_slice_mut(&mut storage)[..datum.bytes as usize]);
            }
            Storage(storage)
        })
        .collect();
    let mut made: Vec<Vec<u8>> = vec![Vec::new(); graph.data().len()];
    let mut waits: Vec<usize> = (graph.kernel_ids())
        .map(|kernel| graph.predecessors(kernel).len())
        .collect();
    let mut ready: Vec<KernelId> = (graph.kernel_ids())
        .filter(|kernel| waits[kernel.0] == 0)
        .collect();
    while !ready.is_empty() {
        let id = ready.swap_remove(rng.usize(..ready.len()));
        let kernel = graph.kernel(id);
        for datum in kernel.partial_outputs() {
            storages[graph.first_version(datum).0].0.fill(0);
        }
        let args: Vec<HostValue> = (kernel.arguments.iter())
            .map(|argument| match argument {
                Argument::Value(value) => value.plain().unwrap(),
                memory => {
                    let datum = memory.reads().or(memory.writes()).unwrap();
                    HostValue::Memory {
                        address: storages[graph.first_version(datum).0].0.as_mut_ptr().cast(),
                        bytes: graph.datum(datum).bytes,
                    }
                }
            })
            .collect();
        for unit in kernel.units.clone().rev() {
            // SAFETY: the memories are as long as the data, and no other thread uses
            // them.
            unsafe {
                kernel
                    .codelet
                    .host
                    .as_ref()
                    .unwrap()
                    .run(&args, 0, unit..unit + 1)
            }
        }
        for datum in kernel.outputs() {
            let storage = &storages[graph.first_version(datum).0].0;
            let bytes = graph.datum(datum).bytes as usize;
            made[datum.0] = bytemuck::cast_slice(storage)[..bytes].to_vec();
        }
        for next in graph.successors(id) {
            waits[next.0] -= 1;
            if waits[next.0] == 0 {
                ready.push(*next);
            }
        }
    }
    made
}

/// Asserts that a random order leaves what the reference computes.
fn check_mixed(graph: &TaskGraph, rng: &mut Rng) {
    let right = mix_reference(graph).unwrap();
    let made = run(graph, rng);
    for datum in graph.datum_ids() {
        let name = &graph.datum(datum).name;
        if graph.producer(datum).is_some() {
            assert_eq!(made[datum.0], right[datum.0], "{name}");
        }
    }
}

#[test]
fn checking_tasks_leave_what_the_reference_computes() {
    for tasks in kinds() {
        for order in [Order::Natural, Order::Random] {
            let set = TaskSet {
                order,
                ..set(tasks.clone(), Body::Mix, 7)
            };
            let graph = set.graph().unwrap();
            assert_eq!(graph.kernels().len() as u64, set.count());
            // Every task's work reaches a result that the host wants.
            let results = |kernel: KernelId| {
                let wanted = |datum: DatumId| graph.datum(datum).wanted;
                let successors = !graph.successors(kernel).is_empty();
                successors || graph.kernel(kernel).outputs().any(wanted)
            };
            assert!(graph.kernel_ids().all(results), "{tasks:?}");
            check_mixed(&graph, &mut Rng::with_seed(3));
        }
    }
}

proptest! {
    #[test]
    fn random_tasks_leave_what_the_reference_computes(
        seed: u64,
        tasks in 1_u32..60,
        dependencies: bool,
        outputs: bool,
    ) {
        let tasks = RandomTasks { dependencies, outputs, ..RandomTasks::small(tasks) };
        let set = TaskSet {
            order: if seed % 2 == 0 { Order::Natural } else { Order::Random },
            ..set(Tasks::Random(tasks), Body::Mix, seed)
        };
        let graph = set.graph().unwrap();
        prop_assert_eq!(graph.kernels().len(), tasks.tasks as usize);
        if !dependencies {
            prop_assert!(graph.kernel_ids().all(|kernel| graph.predecessors(kernel).is_empty()));
        }
        check_mixed(&graph, &mut Rng::with_seed(seed));
    }
}

#[test]
fn random_tasks_are_of_every_kind() {
    let graph = set(Tasks::Random(RandomTasks::small(300)), Body::Model, 1);
    let graph = graph.graph().unwrap();
    let arguments = || graph.kernels().iter().flat_map(|kernel| &kernel.arguments);
    assert!(arguments().any(|argument| matches!(argument, Argument::InOut { .. })));
    assert!(arguments().any(|argument| matches!(argument, Argument::Output(_))));
    let most = graph.datum_ids().map(|datum| graph.readers(datum).len());
    assert!(most.max() >= Some(5));
    let sizes: BTreeSet<u64> = graph.data().iter().map(|datum| datum.bytes).collect();
    assert!(sizes.len() > 50 && sizes.iter().all(|bytes| (1..=100).contains(bytes)));
    let ordered = graph.kernel_ids().any(|kernel| {
        let before = graph.predecessors(kernel);
        let data: Vec<_> = graph.kernel(kernel).inputs().collect();
        let by_data = |before: &KernelId| {
            let made = data
                .iter()
                .any(|datum| graph.producer(*datum) == Some(*before));
            made || data
                .iter()
                .any(|datum| graph.readers(*datum).contains(before))
        };
        before.iter().any(|before| !by_data(before))
    });
    assert!(ordered);
}

#[test]
fn no_version_of_a_tile_has_the_bytes_of_the_first() {
    let tasks = Tasks::Cholesky(Cholesky {
        dependencies: true,
        ..Cholesky::paper(4)
    });
    let graph = set(tasks, Body::Mix, 1).graph().unwrap();
    let right = mix_reference(&graph).unwrap();
    let versions = graph
        .datum_ids()
        .filter(|of| graph.first_version(*of) != *of);
    let changed = versions.map(|of| right[of.0] != right[graph.first_version(of).0]);
    assert_eq!(changed.collect::<Vec<_>>(), [true; 20]);
}

#[test]
fn the_papers_product_has_two_large_inputs_a_task() {
    let graph = graph(Tasks::Matmul2d(Matmul2d::paper(5)));
    assert_eq!((graph.kernels().len(), graph.data().len()), (25, 10));
    for datum in graph.datum_ids() {
        // 14.0625 MiB
        assert_eq!(graph.datum(datum).bytes, 14_745_600);
        assert_eq!(graph.readers(datum).len(), 5);
    }
    let names = graph.kernels().iter().map(|kernel| kernel.name.to_string());
    assert_eq!(
        names.take(7).collect::<Vec<_>>(),
        [
            "gemm.0.0", "gemm.0.1", "gemm.0.2", "gemm.0.3", "gemm.0.4", "gemm.1.0", "gemm.1.1"
        ]
    );
    for kernel in graph.kernels() {
        assert_eq!(kernel.arguments.len(), 2);
        assert_eq!(kernel.cost.flops, 7_077_888_000.0);
    }
    let components = Components::single_kernels(&graph);
    assert_eq!(components.len(), 25);
    assert!(components.list().iter().all(|c| c.predecessors.is_empty()));
}

#[test]
fn tiles_of_c_are_wanted_if_tasks_write_them() {
    let graph = graph(Tasks::Matmul2d(Matmul2d {
        outputs: true,
        ..Matmul2d::paper(3)
    }));
    let wanted = graph.data().iter().filter(|datum| datum.wanted);
    let bytes: Vec<u64> = wanted.map(|datum| datum.bytes).collect();
    assert_eq!(bytes, [3_686_400; 9]);
}

#[test]
fn a_random_order_has_the_same_tasks() {
    let of = |order, seed| {
        let set = TaskSet {
            order,
            seed,
            ..TaskSet::paper(Tasks::Matmul2d(Matmul2d::paper(8)))
        };
        let graph = set.graph().unwrap();
        let names = graph.kernels().iter().map(|kernel| kernel.name.to_string());
        names.collect::<Vec<_>>()
    };
    let (natural, random) = (of(Order::Natural, 1), of(Order::Random, 1));
    assert_ne!(natural, random);
    assert_eq!(random, of(Order::Random, 1));
    assert_ne!(random, of(Order::Random, 2));
    let set = |names: &[String]| names.iter().cloned().collect::<BTreeSet<_>>();
    assert_eq!(set(&natural), set(&random));
}

#[test]
fn a_sparse_product_has_two_percent_of_the_tasks() {
    let graph = graph(Tasks::Matmul2d(Matmul2d::sparse(100)));
    assert_eq!(graph.kernels().len(), 200);
    assert!(
        graph
            .datum_ids()
            .all(|datum| !graph.readers(datum).is_empty())
    );
    assert!(graph.data().len() <= 200);
    assert_eq!(Matmul2d::sparse(1).count(), 1);
}

#[test]
fn a_product_by_tiles_reads_three_or_adds_up() {
    let independent = graph(Tasks::Matmul3d(Matmul3d::paper(4)));
    assert_eq!(independent.kernels().len(), 64);
    assert_eq!(independent.data().len(), 48);
    let inputs = |kernel| independent.kernel(kernel).inputs().count();
    assert!(independent.kernel_ids().all(|kernel| inputs(kernel) == 3));
    assert!(
        independent
            .datum_ids()
            .all(|d| independent.readers(d).len() == 4)
    );

    let sum = graph(Tasks::Matmul3d(Matmul3d {
        sum: true,
        ..Matmul3d::paper(4)
    }));
    // A chain of four versions a tile of C.
    assert_eq!(sum.data().len(), 32 + 64);
    assert_eq!(sum.data().iter().filter(|datum| datum.wanted).count(), 16);
    for kernel in sum.kernel_ids() {
        let first = kernel.0.is_multiple_of(4);
        assert_eq!(sum.predecessors(kernel).len(), usize::from(!first));
    }
}

#[test]
fn a_factorisation_waits_or_does_not() {
    let independent = graph(Tasks::Cholesky(Cholesky::paper(5)));
    assert_eq!(independent.kernels().len(), 35);
    assert_eq!(independent.data().len(), 15);
    let free = |kernel| independent.predecessors(kernel).is_empty();
    assert!(independent.kernel_ids().all(free));

    let real = graph(Tasks::Cholesky(Cholesky {
        dependencies: true,
        ..Cholesky::paper(5)
    }));
    let components = Components::single_kernels(&real);
    // potrf, trsm, syrk in turn, and the last potrf.
    let levels = components.list().iter().map(|c| c.level);
    assert_eq!(levels.max(), Some(3 * 4));
    assert_eq!(real.data().iter().filter(|datum| datum.wanted).count(), 15);
    let total = |graph: &TaskGraph| {
        let flops = graph.kernels().iter().map(|kernel| kernel.cost.flops);
        flops.sum::<f64>()
    };
    let rows = 5.0 * 960.0;
    assert!((total(&real) / (rows * rows * rows / 3.0) - 1.0).abs() < 1e-3);
    assert_eq!(total(&real), total(&independent));
}

#[test]
fn impossible_sets_are_refused() {
    let error = |set: TaskSet| set.graph().unwrap_err().to_string();
    let no_tasks = error(TaskSet::paper(Tasks::Matmul3d(Matmul3d::paper(0))));
    assert_eq!(
        no_tasks,
        "the set has 0 tasks; take sizes with 1 to 10000000"
    );
    let removed = Matmul2d {
        removed: 1.0,
        ..Matmul2d::paper(3)
    };
    assert!(error(TaskSet::paper(Tasks::Matmul2d(removed))).contains("less than 1"));
    let many = error(TaskSet::paper(Tasks::Cholesky(Cholesky::paper(u32::MAX))));
    assert!(many.contains("tasks; take"), "{many}");
    let tile = TaskSet {
        tile: 0,
        ..TaskSet::paper(Tasks::Cholesky(Cholesky::paper(2)))
    };
    assert_eq!(error(tile), "rows of a tile are 0; take 1 to 65536");
    let real = error(set(Tasks::Cholesky(Cholesky::paper(2)), Body::Real, 1));
    assert!(real.contains("work in place"), "{real}");
}

/// A matrix of tiles in double precision, whose tiles `numbers` returns.
fn assembled(
    (rows, columns): (usize, usize),
    tile: usize,
    numbers: impl Fn(usize, usize) -> Vec<f64>,
) -> Vec<Vec<f64>> {
    let mut whole = vec![vec![0.0; columns * tile]; rows * tile];
    for (i, j) in (0..rows).flat_map(|i| (0..columns).map(move |j| (i, j))) {
        let numbers = numbers(i, j);
        for (at, number) in numbers.into_iter().enumerate() {
            whole[i * tile + at / tile][j * tile + at % tile] = number;
        }
    }
    whole
}

/// The numbers of a datum by its name, as given or made.
fn numbers(graph: &TaskGraph, made: &[Vec<u8>], name: &str, double: bool) -> Vec<f64> {
    let datum = graph.datum_ids().find(|d| graph.datum(*d).name == *name);
    let datum = datum.unwrap_or_else(|| panic!("{name}"));
    let mut bytes = made[datum.0].clone();
    if let Some(contents) = &graph.datum(datum).contents {
        let mut given = vec![0_u64; graph.datum(datum).bytes.div_ceil(8) as usize];
        let given: &mut [u8] = bytemuck::cast_slice_mut(&mut given);
        let given = &mut given[..graph.datum(datum).bytes as usize];
        contents.write(given);
        bytes = given.to_vec();
    }
    match double {
        true => bytemuck::pod_collect_to_vec(&bytes),
        false => {
            let singles: Vec<f32> = bytemuck::pod_collect_to_vec(&bytes);
            singles.into_iter().map(f64::from).collect()
        }
    }
}

/// Asserts that C is A B, in the precision of the numbers.
fn check_product(a: &[Vec<f64>], b: &[Vec<f64>], c: &[Vec<f64>], epsilon: f64) {
    for (i, row) in c.iter().enumerate() {
        for (j, found) in row.iter().enumerate() {
            let right: f64 = (0..b.len()).map(|k| a[i][k] * b[k][j]).sum();
            let allowed = 4.0 * epsilon * b.len() as f64;
            assert!(
                (found - right).abs() <= allowed,
                "{i}, {j}: {found}, {right}"
            );
        }
    }
}

#[test]
fn real_products_are_right() {
    for (precision, epsilon) in [
        (Precision::F32, f64::from(f32::EPSILON)),
        (Precision::F64, f64::EPSILON),
    ] {
        let (n, tile, double) = (3, 33, precision == Precision::F64);
        let real = |tasks| {
            let set = TaskSet {
                precision: precision.into(),
                order: Order::Random,
                ..set(tasks, Body::Real, 5)
            };
            set.graph().unwrap()
        };
        let graph = real(Tasks::Matmul3d(Matmul3d {
            sum: true,
            ..Matmul3d::paper(3)
        }));
        let made = run(&graph, &mut Rng::with_seed(1));
        let of = |name: &str| {
            assembled((n, n), tile, |i, j| {
                let last = if name == "C" { ".2" } else { "" };
                numbers(&graph, &made, &format!("{name}.{i}.{j}{last}"), double)
            })
        };
        check_product(&of("A"), &of("B"), &of("C"), epsilon);

        let graph = real(Tasks::Matmul2d(Matmul2d {
            n: 2,
            depth: 70,
            outputs: true,
            removed: 0.0,
        }));
        let made = run(&graph, &mut Rng::with_seed(1));
        for (i, j) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            let rows = |name: &str, columns: usize| -> Vec<Vec<f64>> {
                let numbers = numbers(&graph, &made, name, double);
                numbers.chunks(columns).map(<[f64]>::to_vec).collect()
            };
            let (a, b) = (rows(&format!("A.{i}"), 70), rows(&format!("B.{j}"), tile));
            check_product(&a, &b, &rows(&format!("C.{i}.{j}"), tile), epsilon);
        }
    }
}

#[test]
fn a_real_factorisation_is_right() {
    for (precision, epsilon) in [
        (Precision::F32, f64::from(f32::EPSILON)),
        (Precision::F64, f64::EPSILON),
    ] {
        let (n, tile, double) = (4, 33, precision == Precision::F64);
        let tasks = Tasks::Cholesky(Cholesky {
            dependencies: true,
            ..Cholesky::paper(4)
        });
        let set = TaskSet {
            precision: precision.into(),
            ..set(tasks, Body::Real, 5)
        };
        let graph = set.graph().unwrap();
        let made = run(&graph, &mut Rng::with_seed(1));
        let lower = |of: &dyn Fn(usize, usize) -> String| {
            let mut whole = assembled((n, n), tile, |i, j| match i >= j {
                true => numbers(&graph, &made, &of(i, j), double),
                false => Vec::new(),
            });
            for (i, row) in whole.iter_mut().enumerate() {
                row[i + 1..].fill(0.0);
            }
            whole
        };
        let a = lower(&|i, j| format!("A.{i}.{j}"));
        let l = lower(&|i, j| match i == j {
            true => format!("potrf.{i}.to"),
            false => format!("trsm.{i}.{j}.to"),
        });
        let rows = n * tile;
        for i in 0..rows {
            for j in 0..=i {
                let found: f64 = (0..=j).map(|k| l[i][k] * l[j][k]).sum();
                let allowed = 8.0 * epsilon * rows as f64;
                assert!((found - a[i][j]).abs() <= allowed, "{i}, {j}: {found}");
            }
        }
    }
}
