//! What tasks of programs can be: kernels, reductions, repetitions, outputs of unknown length,
//! tasks in any order. Results are compared with those of a sequential program.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use pdawl::session::{ClusterOptions, Error, Nodes};
use pdawl_api::cluster::space::Block;
use pdawl_api::cluster::wire::Wire;
use pdawl_api::codelet::{NdRange, Value};
use pdawl_api::engine::cluster::ClusterError;
use pdawl_api::spread::NamedSpread;
use pdawl_api::verify::Checked;
use pdawl_api::workload::cluster::program::{
    Gathered, Program, ProgramError, ProgramTask, Space, SubtaskKernel, View, ViewMut, Yielded,
};

use crate::cluster::Case;
use crate::cluster_losses::right_or_never_begun;
use crate::cluster_programs::{cluster, refused};
use crate::pocl;

/// Compares the result of a program with these numbers, on nodes of all kinds.
fn check(program: Program, right: Vec<i64>, nodes: usize, seed: u64) {
    let outcome = case(program, right, nodes, seed).outcome();
    let checked = outcome.checked().expect("the result was compared");
    assert!(checked.numbers > 0);
    assert_eq!(checked.wrong, 0, "{checked:?}");
}

fn case(mut program: Program, right: Vec<i64>, nodes: usize, seed: u64) -> Case {
    let mut random = fastrand::Rng::with_seed(seed);
    let policies: Vec<NamedSpread> = NamedSpread::all().collect();
    program.check().expect("the program is sound");
    program.set_compare(move |block, bytes, _| {
        let mut checked = Checked::default();
        for (found, column) in bytes.as_chunks().0.iter().zip(block.columns.clone()) {
            checked.exactly(i64::from_ne_bytes(*found) == right[column as usize]);
        }
        checked
    });
    Case {
        workload: Arc::new(program),
        tile: 1,
        spread: policies[random.usize(..policies.len())],
        prefetch: random.u32(..4),
        nodes,
        seed: random.u64(..),
    }
}

fn seed() -> u64 {
    let seed = fastrand::u64(..1 << 40);
    println!("seed {seed}");
    seed
}

/// Random cuts of a range into parts, some of them empty.
fn cuts(random: &mut fastrand::Rng, end: u64, parts: usize) -> Vec<u64> {
    let mut cuts: Vec<u64> = (1..parts).map(|_| random.u64(..=end)).collect();
    cuts.extend([0, end]);
    cuts.sort_unstable();
    cuts
}

/// A row of columns, of each subtask.
fn columns(cuts: &Arc<[u64]>) -> impl Fn(u64) -> Block + Send + Sync + use<> {
    let cuts = Arc::clone(cuts);
    move |subtask| Block::new(0..1, cuts[subtask as usize]..cuts[subtask as usize + 1])
}

fn items(cuts: &Arc<[u64]>) -> impl Fn(u64) -> std::ops::Range<u64> + Send + Sync + use<> {
    let of = columns(cuts);
    move |subtask| of(subtask).columns
}

fn numbers(random: &mut fastrand::Rng, count: u64) -> Arc<[i64]> {
    (0..count).map(|_| random.i64(-50..50)).collect()
}

fn given(program: &mut Program, numbers: &Arc<[i64]>) -> Space<i64> {
    let numbers = Arc::clone(numbers);
    program.given(1, numbers.len() as u64, move |_, column| {
        numbers[column as usize]
    })
}

/// Counts how often each kind occurs, and the greatest number, whose accumulators do not begin
/// with zeros.
#[test]
fn reductions_divide_what_they_read() {
    let seed = seed();
    let mut random = fastrand::Rng::with_seed(seed);
    for nodes in 1..=4 {
        let count = random.u64(1..400);
        let all = numbers(&mut random, count);
        let parts = random.usize(1..9);
        let cuts: Arc<[u64]> = cuts(&mut random, count, parts).into();
        for is_greatest in [false, true] {
            let mut program = Program::new("reduction");
            let input = given(&mut program, &all);
            let sums = program.space::<i64>(1, 7);
            let accesses = (
                input.read(columns(&cuts)),
                sums.write(move |_| sums.whole()),
            );
            let kind = |number: i64| number.rem_euclid(7) as u64;
            let (task, right): (_, Vec<i64>) = match is_greatest {
                false => (
                    ProgramTask::reduction(
                        "count",
                        parts as u64,
                        items(&cuts),
                        accesses,
                        (0_i64, |sum, other| *sum += other),
                        move |columns, (numbers, mut sums)| {
                            for column in columns {
                                sums[(0, kind(numbers[(0, column)]))] += 1;
                            }
                        },
                    ),
                    (0..7)
                        .map(|of| all.iter().filter(|n| kind(**n) == of).count() as i64)
                        .collect(),
                ),
                true => (
                    ProgramTask::reduction(
                        "greatest",
                        parts as u64,
                        items(&cuts),
                        accesses,
                        (i64::MIN, |one: &mut i64, other| *one = (*one).max(other)),
                        move |columns, (numbers, mut greatest)| {
                            for column in columns {
                                let number = numbers[(0, column)];
                                let to = &mut greatest[(0, kind(number))];
                                *to = (*to).max(number);
                            }
                        },
                    ),
                    (0..7)
                        .map(|of| {
                            let of_kind = all.iter().filter(|n| kind(**n) == of);
                            of_kind.max().copied().unwrap_or(i64::MIN)
                        })
                        .collect(),
                ),
            };
            program.add_task(task);
            program.set_result(sums);
            check(program, right, nodes, random.u64(..));
        }
    }
}

/// A reduction reads each number once, whatever the number of cores.
#[test]
fn each_core_reads_its_own_part() {
    let mut program = Program::new("once");
    let read = Arc::new(std::sync::atomic::AtomicU64::new(0));
    let counted = Arc::clone(&read);
    let input = program.given(1, 10_000, |_, column| column as i64);
    let sum = program.space::<i64>(1, 1);
    let part = |subtask: u64| 2500 * subtask..2500 * (subtask + 1);
    let accesses = (
        input.read(move |subtask| Block::new(0..1, part(subtask))),
        sum.write(move |_| sum.whole()),
    );
    program.add_task(ProgramTask::reduction(
        "sum",
        4,
        part,
        accesses,
        (0_i64, |sum, other| *sum += other),
        move |columns, (numbers, mut sum)| {
            counted.fetch_add(columns.end - columns.start, Ordering::Relaxed);
            sum[(0, 0)] += columns.map(|column| numbers[(0, column)]).sum::<i64>();
        },
    ));
    program.set_result(sum);
    let sum = cluster(1, "host:2").run(program).expect("it runs");
    assert_eq!(
        sum.to_vec().expect("an integer"),
        Some(vec![9999 * 5000_i64])
    );
    assert_eq!(read.load(Ordering::Relaxed), 10_000);
}

/// Elements that subtasks yield follow one another, and another task reads them by their
/// places.
#[test]
fn what_is_collected_follows_one_another() {
    let seed = seed();
    let mut random = fastrand::Rng::with_seed(seed);
    for nodes in 1..=4 {
        let count = random.u64(1..500);
        let all = numbers(&mut random, count);
        let parts = random.usize(1..7);
        let cuts: Arc<[u64]> = cuts(&mut random, count, parts).into();
        // Each number n of 0 to 3 is yielded n times, and no other one.
        let yields = |number: i64| if (0..4).contains(&number) { number } else { 0 };
        let right: Vec<i64> = (all.iter())
            .flat_map(|number| vec![*number; yields(*number) as usize])
            .collect();
        let made = || {
            let mut program = Program::new("collected");
            let input = given(&mut program, &all);
            let found = program.collect(
                "few",
                parts as u64,
                items(&cuts),
                3,
                input.read(columns(&cuts)),
                move |columns, numbers, found| {
                    for column in columns {
                        let number = numbers[(0, column)];
                        found.extend((0..yields(number)).map(|_| number));
                    }
                },
            );
            (program, found)
        };
        let (mut program, found) = made();
        program.set_collected(&found);
        let mut some = cluster(nodes, "host:1");
        let results = some.run(program).expect("it runs");
        assert_eq!(results.to_vec().expect("integers"), Some(right.clone()));

        // Sums of every three of them.
        let length = right.len().div_ceil(3).max(1) as u64;
        let summing = || {
            let (mut program, found) = made();
            let sums = program.space::<i64>(1, length);
            let of = found.clone();
            let task = move |counts: &[u64]| {
                let total: u64 = counts.iter().sum();
                let places = move |subtask: u64| 3 * subtask..(3 * subtask + 3).min(total);
                let accesses = (
                    of.read(counts, places),
                    sums.write(|subtask| Block::new(0..1, subtask..subtask + 1)),
                );
                let count = total.div_ceil(3);
                ProgramTask::new("sum", count, accesses, |_, (some, mut sum)| {
                    sum.slice()[0] = some.slice().iter().sum::<i64>();
                })
            };
            let nothing = sums.write(|_| Block::new(0..1, 0..1));
            let none = ProgramTask::new("sum", 0, nothing, |_, _| {});
            program.add_task_by(found.counts, none, task);
            program.set_result(sums);
            program
        };
        let right: Vec<i64> = right.chunks(3).map(|some| some.iter().sum()).collect();
        if right.is_empty() {
            continue;
        }
        check(summing(), right.clone(), nodes, random.u64(..));
        if nodes > 1 {
            let after = Duration::from_micros(random.u64(..5_000));
            let case = case(summing(), right, nodes, random.u64(..));
            let ran = case.run(move |faults| {
                thread::sleep(after);
                faults.kill(nodes - 1);
            });
            right_or_never_begun(&case, ran);
        }
    }
}

#[test]
fn more_than_a_task_may_yield_is_reported() {
    let mut program = Program::new("too many");
    let input = program.given(1, 20, |_, column| column as i64);
    let whole = move |_| input.whole();
    let found = program.collect(
        "all",
        1,
        |_| 0..20,
        1,
        input.read(whole),
        |_, all, found| {
            found.extend(all.slice().iter().copied());
        },
    );
    program.set_collected(&found);
    let error = refused(program).to_string();
    assert!(error.contains("`most` of Program::collect"), "{error}");

    let mut program = Program::new("items");
    let input = program.given(1, 20, |_, column| column as i64);
    let whole = move |_| input.whole();
    program.collect(
        "back",
        2,
        |s| 10 - s..12 - s,
        1,
        input.read(whole),
        |_, _, _: &mut Yielded<i64>| {},
    );
    let error = refused(program);
    let is_it = matches!(
        error,
        Error::Cluster(ClusterError::Program(ProgramError::Items { task: "back" }))
    );
    assert!(is_it, "{error}");
}

/// Halves numbers until the greatest one is small, and then adds one to each.
fn halving(all: &Arc<[i64]>, rows: u64, most: Option<u64>) -> (Program, Vec<i64>) {
    let mut program = Program::new("halving");
    let numbers = given(&mut program, all);
    let greatest = program.space::<i64>(1, 1);
    let count = all.len() as u64;
    let cut = move |part: u64| part * count / rows;
    let part = move |subtask: u64| cut(subtask)..cut(subtask + 1);
    let block = move |subtask: u64| Block::new(0..1, part(subtask));
    let bound = |found: i64| found < 5;
    let is_met = move |greatest: &[i64]| bound(greatest[0]);
    program.repeat_until(greatest, is_met, most, |program| {
        let halve = ProgramTask::new("halve", rows, numbers.update(block), |_, mut numbers| {
            numbers.slice().iter_mut().for_each(|number| *number /= 2);
        });
        program.add_task(halve);
        program.add_task(ProgramTask::reduction(
            "greatest",
            rows,
            part,
            (
                numbers.read(block),
                greatest.write(move |_| greatest.whole()),
            ),
            (0_i64, |one: &mut i64, other| *one = (*one).max(other)),
            |columns, (numbers, mut greatest)| {
                for column in columns {
                    greatest[(0, 0)] = greatest[(0, 0)].max(numbers[(0, column)]);
                }
            },
        ));
    });
    let add = ProgramTask::new("add", rows, numbers.update(block), |_, mut numbers| {
        numbers.slice().iter_mut().for_each(|number| *number += 1);
    });
    program.repeat(2, |program| program.add_task(add));
    program.set_result(numbers);
    let mut right = all.to_vec();
    for _ in 0..most.unwrap_or(u64::MAX) {
        right.iter_mut().for_each(|number| *number /= 2);
        if bound(right.iter().copied().max().unwrap_or(0).max(0)) {
            break;
        }
    }
    right.iter_mut().for_each(|number| *number += 2);
    (program, right)
}

#[test]
fn tasks_are_repeated_until_a_condition_is_met() {
    let seed = seed();
    let mut random = fastrand::Rng::with_seed(seed);
    for nodes in 1..=4 {
        let count = random.u64(4..100);
        let all = numbers(&mut random, count);
        for most in [None, Some(1), Some(2)] {
            let (program, right) = halving(&all, 4, most);
            check(program, right, nodes, random.u64(..));
        }
        let (program, right) = halving(&all, 4, None);
        let case = case(program, right, nodes, random.u64(..));
        let after = Duration::from_micros(random.u64(..20_000));
        if nodes > 1 {
            let ran = case.run(move |faults| {
                thread::sleep(after);
                faults.kill(nodes - 1);
            });
            right_or_never_begun(&case, ran);
        }
    }
}

/// A repetition whose condition is never met ends when somebody asks for it.
#[test]
fn an_endless_repetition_is_stopped() {
    let mut program = Program::new("endless");
    let one = program.space::<i64>(1, 1);
    program.repeat_until(
        one,
        |_| false,
        None,
        |program| {
            let write = one.write(move |_| one.whole());
            program.add_task(ProgramTask::new("write", 1, write, |_, _| {}));
        },
    );
    let stop = Arc::new(AtomicBool::new(false));
    let options = ClusterOptions {
        devices: Some("host:1".to_owned()),
        stop: Arc::clone(&stop),
        ..ClusterOptions::default()
    };
    let mut cluster = Nodes::in_threads(2, options).expect("all join");
    let stopping = thread::spawn(move || {
        thread::sleep(Duration::from_millis(50));
        stop.store(true, Ordering::Relaxed);
    });
    let error = cluster.run(program).expect_err("it has no end");
    stopping.join().expect("it does not panic");
    let is_stopped = matches!(
        error,
        Error::Stopped | Error::Cluster(ClusterError::Stopped(_))
    );
    assert!(is_stopped, "{error}");
}

#[test]
fn repetitions_that_cannot_end_are_refused() {
    let mut program = Program::new("nothing");
    program.repeat(3, |_| {});
    let error = refused(program).to_string();
    assert!(error.contains("repeats no tasks"), "{error}");

    let mut program = Program::new("zero");
    let one = program.space::<i64>(1, 1);
    let write = one.write(move |_| one.whole());
    let task = ProgramTask::new("write", 1, write, |_, _| {});
    program.repeat(0, |program| program.add_task(task));
    let error = refused(program).to_string();
    assert!(error.contains("0 times"), "{error}");

    let mut program = Program::new("unwritten");
    let one = program.space::<i64>(1, 1);
    let other = program.given(1, 2, |_, _| 0_i64);
    program.repeat_until(
        other,
        |_| true,
        None,
        |program| {
            let write = one.write(move |_| one.whole());
            program.add_task(ProgramTask::new("write", 1, write, |_, _| {}));
        },
    );
    let error = refused(program).to_string();
    assert!(
        error.contains("ends by space 1, of which no task"),
        "{error}"
    );
}

/// A chain of tasks that add numbers, given in an order of chance.
#[test]
fn tasks_run_after_those_that_write_what_they_read() {
    let seed = seed();
    let mut random = fastrand::Rng::with_seed(seed);
    for nodes in 1..=3 {
        let mut program = Program::new("chain");
        let width = random.u64(1..20);
        let first = program.given(1, width, |_, column| column as i64);
        let mut spaces = vec![first];
        let mut values: Vec<Vec<i64>> = vec![(0..width.cast_signed()).collect()];
        let mut tasks = Vec::new();
        for number in 0..6 {
            let to = program.space::<i64>(1, width);
            let (a, b) = (random.usize(..spaces.len()), random.usize(..spaces.len()));
            let whole = move |_| first.whole();
            let accesses = (
                spaces[a].read(whole),
                spaces[b].read(whole),
                to.write(whole).undivided(),
            );
            let name = format!("task {number}");
            tasks.push(ProgramTask::new(name, 1, accesses, |_, (a, b, mut to)| {
                let both = a.slice().iter().zip(b.slice());
                for (to, (a, b)) in to.slice().iter_mut().zip(both) {
                    *to = 2 * a + b;
                }
            }));
            let both = values[a].iter().zip(&values[b]);
            values.push(both.map(|(a, b)| 2 * a + b).collect());
            spaces.push(to);
        }
        random.shuffle(&mut tasks);
        program.add_tasks(tasks);
        program.set_result(spaces[6]);
        check(program, values.remove(6), nodes, random.u64(..));
    }
}

#[test]
fn tasks_without_an_order_are_refused() {
    let copy = |name: &'static str, from: Space<i64>, to: Space<i64>| {
        let accesses = (
            from.read(move |_| from.whole()),
            to.write(move |_| to.whole()),
        );
        ProgramTask::new(name, 1, accesses, |_, _| {})
    };
    let mut program = Program::new("cycle");
    let [a, b, c] = [(); 3].map(|()| program.space::<i64>(1, 1));
    program.add_tasks([copy("one", a, b), copy("two", b, c), copy("three", c, a)]);
    let error = refused(program).to_string();
    for name in ["one", "two", "three"] {
        assert!(error.contains(name), "{error}");
    }

    let mut program = Program::new("twice");
    let a = program.given(1, 1, |_, _| 1_i64);
    let b = program.space::<i64>(1, 1);
    program.add_tasks([copy("one", a, b), copy("two", a, b)]);
    let error = refused(program).to_string();
    assert!(
        error.contains("tasks one and two both write rows 0..1"),
        "{error}"
    );

    let mut program = Program::new("dependencies");
    let [a, b, c] = [(); 3].map(|()| program.space::<i64>(1, 1));
    program.add_tasks([copy("two", b, c), copy("one", a, b)]);
    program.add_task(copy("again", c, a));
    assert!(program.dependencies(0).is_empty());
    assert_eq!(program.dependencies(1), [0], "b is read");
    assert_eq!(
        program.dependencies(2),
        [0, 1],
        "a is overwritten, and c read"
    );
}

const KERNELS: &str = "
    __kernel void compact(__global const long *a, __global long *to, long factor) {
        size_t i = get_global_id(0);
        to[i] = factor * a[i];
    }
    /* Numbers of the whole space. */
    __kernel void natural(__global const long *a, __global long *to, ulong first, ulong width) {
        size_t i = first + get_global_id(0);
        to[i] = a[i] + a[(i + 1) % width];
    }
    __kernel void transposed(__global long *to, __global const long *a, ulong rows) {
        size_t row = get_global_id(0), column = get_global_id(1);
        to[row * get_global_size(1) + column] = a[row * 6 + column];
    }
    __kernel void add(__global const long *a, __global long *sum, uint count) {
        for (uint i = 0; i < count; i++) sum[0] += a[i];
    }
";

fn kernel(entry: &str, items: impl Fn(u64) -> u64 + Send + Sync + 'static) -> SubtaskKernel {
    let range = move |subtask| NdRange::new(vec![items(subtask) as usize]);
    SubtaskKernel::new(KERNELS, entry, range).expect("the source has it")
}

/// Kernels on OpenCL CPU devices, some with memory of their own, beside functions on hosts.
#[test]
fn kernels_compute_subtasks_in_both_views() {
    let seed = seed();
    let mut random = fastrand::Rng::with_seed(seed);
    for is_natural in [false, true] {
        for has_function in [false, true] {
            let width = random.u64(20..90);
            let all = numbers(&mut random, width);
            let cuts: Arc<[u64]> = (0..=5).map(|part| part * width / 5).collect();
            let mut program = Program::new("kernels");
            let a = given(&mut program, &all);
            let to = program.space::<i64>(1, width);
            let (read, write) = (a.read(columns(&cuts)), to.write(columns(&cuts)).full());
            let of = items(&cuts);
            let length = move |subtask| of(subtask).end - of(subtask).start;
            let (task, right): (_, Vec<i64>) = match is_natural {
                false => {
                    let kernel = kernel("compact", length);
                    let kernel = kernel.values(|_| vec![Value::U64(3)]);
                    let task = match has_function {
                        false => ProgramTask::kernel(5, (read, write), kernel),
                        true => {
                            let function = |_, (a, mut to): (View<i64>, ViewMut<i64>)| {
                                for column in to.block().columns.clone() {
                                    to[(0, column)] = 3 * a[(0, column)];
                                }
                            };
                            ProgramTask::new("compact", 5, (read, write), function)
                                .with_kernel(kernel)
                        }
                    };
                    (task, all.iter().map(|number| 3 * number).collect())
                }
                true => {
                    let of = items(&cuts);
                    let values = move |subtask| [of(subtask).start, width].map(Value::U64).to_vec();
                    let kernel = kernel("natural", length).values(values);
                    // The part, and the number behind it.
                    let of = columns(&cuts);
                    let read = a.gather(move |subtask| {
                        let own = of(subtask);
                        let next = own.columns.end % width;
                        vec![own, Block::new(0..1, next..next + 1)]
                    });
                    let accesses = (read.natural(), write.natural());
                    let task = match has_function {
                        false => ProgramTask::kernel(5, accesses, kernel),
                        true => {
                            let function = move |_, (a, mut to): (Gathered<i64>, ViewMut<i64>)| {
                                for column in to.block().columns.clone() {
                                    let next = (column + 1) % width;
                                    let all = a.slice();
                                    to[(0, column)] = all[column as usize] + all[next as usize];
                                }
                            };
                            ProgramTask::new("natural", 5, accesses, function).with_kernel(kernel)
                        }
                    };
                    let next = |i: usize| all[(i + 1) % all.len()];
                    let right = (0..all.len()).map(|i| all[i] + next(i)).collect();
                    (task, right)
                }
            };
            program.add_task(task);
            program.set_result(to);
            let case = case(program, right, 3, random.u64(..));
            let devices = ["cpu:1", "cpu:1=own", "host"];
            let ran = case.run_as(
                |wire, stop| match (devices[wire.rank()], has_function) {
                    ("host", true) => case.on(&mut pocl::open("host:1"), wire, stop),
                    ("host", false) => case.on(&mut pocl::open("cpu:1"), wire, stop),
                    (devices, _) => case.on(&mut pocl::open(devices), wire, stop),
                },
                |_| {},
            );
            let mut ran = ran.into_iter().map(|ran| ran.expect("it runs"));
            let outcome = ran.next().flatten().expect("this is the first node");
            let checked = outcome.checked().expect("the result was compared");
            assert!(checked.numbers > 0);
            assert_eq!(checked.wrong, 0, "natural: {is_natural}, {checked:?}");
        }
    }
}

/// Columns of several rows in a natural view, arguments in another order, a kernel that reduces,
/// and outputs that begin with zeros.
#[test]
fn kernels_find_blocks_at_their_places() {
    let all: Arc<[i64]> = (0..30).map(|number| number * number - 7).collect();
    let mut program = Program::new("blocks");
    let given = Arc::clone(&all);
    let a = program.given(5, 6, move |row, column| given[(6 * row + column) as usize]);
    let to = program.space::<i64>(5, 2);
    let sums = program.space::<i64>(1, 1);
    let range = |_| NdRange::new(vec![5, 2]);
    let copy = SubtaskKernel::new(KERNELS, "transposed", range).expect("it is there");
    let copy = copy.values(|_| vec![Value::U64(5)]);
    let accesses = (
        to.write(move |_| to.whole()),
        a.read(|_| Block::new(0..5, 0..2)).natural(),
    );
    program.add_task(ProgramTask::kernel(1, accesses, copy));
    let row = |subtask: u64| Block::new(subtask..subtask + 1, 0..2);
    let accesses = (to.read(row), sums.write(move |_| sums.whole()));
    let add = kernel("add", |_| 1).values(|_| vec![Value::U32(2)]);
    let add = ProgramTask::kernel(5, accesses, add);
    program.add_task(add.reduce(0_i64, |sum, other| *sum += other));
    program.set_result(sums);
    let right = (0..5).map(|row| all[6 * row] + all[6 * row + 1]).sum();
    let case = case(program, vec![right], 2, 5);
    let ran = case.run_as(
        |wire, stop| {
            let devices = ["cpu:1", "cpu:1=own"][wire.rank()];
            case.on(&mut pocl::open(devices), wire, stop)
        },
        |_| {},
    );
    let outcome = ran.into_iter().next().expect("a rank").expect("it runs");
    let checked = outcome
        .expect("it is the first")
        .checked()
        .expect("it was compared");
    assert_eq!((checked.numbers, checked.wrong), (1, 0));
}

#[test]
fn kernels_that_do_not_suit_are_refused() {
    let missing = SubtaskKernel::new(KERNELS, "none", |_| NdRange::new(vec![1])).err();
    let missing = missing.expect("there is no such kernel").to_string();
    assert!(missing.contains("has no kernel none"), "{missing}");
    let unclosed = SubtaskKernel::new("__kernel void k() {", "k", |_| NdRange::new(vec![1]));
    assert!(matches!(unclosed.err(), Some(ProgramError::Source { .. })));
    let absent = SubtaskKernel::from_file("/no/such.cl", "k", |_| NdRange::new(vec![1]));
    assert!(matches!(
        absent.err(),
        Some(ProgramError::Unreadable { .. })
    ));

    let with = |kernel: SubtaskKernel, is_swapped: bool, is_empty: bool| {
        let mut program = Program::new("unsuited");
        let a = program.given(1, 4, |_, _| 1_i64);
        let to = program.space::<i64>(1, 4);
        let whole = move |_| Block::new(0..1, 0..if is_empty { 0 } else { 4 });
        let task = match is_swapped {
            false => ProgramTask::kernel(1, (a.read(whole), to.write(whole)), kernel),
            true => ProgramTask::kernel(1, (to.write(whole), a.read(whole)), kernel),
        };
        program.add_task(task);
        program.set_result(to);
        refused(program).to_string()
    };
    let compact = || kernel("compact", |_| 4).values(|_| vec![Value::U64(1)]);
    let error = with(kernel("compact", |_| 4), false, false);
    assert!(
        error.contains("has 3 arguments, and the task gives 2"),
        "{error}"
    );
    let error = with(compact(), true, false);
    assert!(
        error.contains("argument 1 (to) of kernel compact is written"),
        "{error}"
    );
    let error = with(compact(), false, true);
    assert!(error.contains("memory without elements"), "{error}");
    let error = with(
        kernel("compact", |_| 0).values(|_| vec![Value::U64(1)]),
        false,
        false,
    );
    assert!(error.contains("has work-items [0]"), "{error}");
    // Only hosts are there.
    let error = with(compact(), false, false);
    assert!(error.contains("compact"), "{error}");
    assert!(error.contains("OpenCL"), "{error}");
}
