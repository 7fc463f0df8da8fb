//! Programs whose functions read what they touch. Results are compared with those of a
//! sequential program.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use pdawl::session::ProgramResults as Results;
use pdawl_api::cluster::record::TouchRecord;
use pdawl_api::cluster::space::Block;
use pdawl_api::codelet::NdRange;
use pdawl_api::spread::NamedSpread;
use pdawl_api::verify::Checked;
use pdawl_api::workload::cluster::program::{self, Program, ProgramTask, SubtaskKernel, ViewMut};

use crate::cluster::Case;
use crate::cluster_losses::right_or_never_begun;
use crate::cluster_programs::{cluster, refused};

fn seed() -> u64 {
    let seed = fastrand::u64(..1 << 40);
    println!("seed {seed}");
    seed
}

/// What all nodes have touched.
fn touched(results: &Results) -> TouchRecord {
    let outcome = results.outcome().expect("this is the first node");
    let mut all = TouchRecord::default();
    for node in &outcome.nodes {
        all.runs += node.touched.runs;
        all.blocks += node.touched.blocks;
        all.bytes += node.touched.bytes;
    }
    all
}

/// Follows links from each vertex: what is read depends on what was read. Returns where they
/// end.
fn walk(random: &mut fastrand::Rng) -> (Program, Vec<u64>) {
    let count = random.u64(1..300);
    let all: Arc<[u64]> = (0..count).map(|_| random.u64(..count)).collect();
    let (steps, parts) = (random.u64(..6), random.u64(1..6));
    let mut program = Program::new("walk");
    let given = Arc::clone(&all);
    let links = program.given(1, count, move |_, vertex| given[vertex as usize]);
    let ends = program.space::<u64>(1, count);
    let cut = move |part: u64| count * part / parts;
    let part = move |subtask: u64| Block::new(0..1, cut(subtask)..cut(subtask + 1));
    let accesses = (links.touch(1, random.u64(1..40)), ends.write(part));
    program.add_task(ProgramTask::new(
        "walk",
        parts,
        accesses,
        move |_, (links, mut ends)| {
            for vertex in ends.block().columns.clone() {
                ends[(0, vertex)] = (0..steps).fold(vertex, |at, _| links[(0, at)]);
            }
        },
    ));
    program.set_result(ends);
    let end = |vertex| (0..steps).fold(vertex, |at, _| all[at as usize]);
    let right = (0..count).map(end).collect();
    (program, right)
}

#[test]
fn what_is_touched_is_read_wherever_it_is() {
    let seed = seed();
    let mut random = fastrand::Rng::with_seed(seed);
    let mut all = 0;
    for nodes in 1..=4 {
        let mut cluster = cluster(nodes, "host:2");
        for _ in 0..6 {
            let (program, right) = walk(&mut random);
            let results = cluster.run(program).expect("it runs");
            assert_eq!(results.to_vec().expect("integers"), Some(right));
            all += touched(&results).runs;
        }
    }
    assert!(all > 24, "{all} runs");
}

/// Messages in an order of chance, every policy, and a node that may be lost.
#[test]
fn what_is_touched_is_read_whatever_happens() {
    let seed = seed();
    let mut random = fastrand::Rng::with_seed(seed);
    let policies: Vec<NamedSpread> = NamedSpread::all().collect();
    for round in 0..30 {
        let (mut program, right) = walk(&mut random);
        program.set_compare(move |block, bytes, _| {
            let mut checked = Checked::default();
            for (found, column) in bytes.as_chunks().0.iter().zip(block.columns.clone()) {
                checked.exactly(u64::from_ne_bytes(*found) == right[column as usize]);
            }
            checked
        });
        let nodes = random.usize(2..=4);
        let case = Case {
            workload: Arc::new(program),
            tile: 1,
            spread: policies[round % policies.len()],
            prefetch: random.u32(..4),
            nodes,
            seed: random.u64(..),
        };
        let victim = random.bool().then(|| random.usize(1..nodes));
        let after = Duration::from_micros(random.u64(..5000));
        let ran = case.run(move |faults| {
            if let Some(victim) = victim {
                thread::sleep(after);
                faults.kill(victim);
            }
        });
        right_or_never_begun(&case, ran);
    }
}

/// The sums of rows, by a task that touches in the one or the other direction.
fn sums(rows: u64, columns: u64, page: [u64; 2], by_columns: bool) -> Program {
    let mut program = Program::new("sums");
    let numbers = program.given(rows, columns, |row, column| (row * 31 + column) as i64);
    let sum = program.space::<i64>(1, 1);
    let accesses = (
        numbers.touch(page[0], page[1]),
        sum.write(move |_| sum.whole()).undivided(),
    );
    let task = move |_, (numbers, mut sum): (program::Touched<i64>, ViewMut<i64>)| {
        let (outer, inner) = if by_columns {
            (columns, rows)
        } else {
            (rows, columns)
        };
        for one in 0..outer {
            for other in 0..inner {
                let at = if by_columns {
                    (other, one)
                } else {
                    (one, other)
                };
                sum[(0, 0)] += numbers[at];
            }
        }
    };
    program.add_task(ProgramTask::new("sum", 1, accesses, task));
    program.set_result(sum);
    program
}

/// Where one page after another is touched, twice as many are fetched each time.
#[test]
fn pages_one_after_another_take_few_runs() {
    let right = |rows: u64, columns: u64| {
        let row = |row: u64| (0..columns).map(move |column| (row * 31 + column) as i64);
        (0..rows).flat_map(row).sum::<i64>()
    };
    // 64 pages side by side, and one upon the other: 1, 2, 4 ... 32 and 1 of them.
    for (rows, columns, page) in [(1, 6400, [1, 100]), (320, 9, [5, 9])] {
        let program = sums(rows, columns, page, false);
        let results = cluster(1, "host:1").run(program).expect("it runs");
        let found = results.to_vec::<i64>().expect("an integer");
        assert_eq!(found, Some(vec![right(rows, columns)]));
        let all = TouchRecord {
            runs: 7,
            blocks: 64,
            bytes: 8 * rows * columns,
        };
        assert_eq!(touched(&results), all);
        let outcome = results.outcome().expect("this is the first node");
        let subtasks: Vec<u64> = outcome.nodes.iter().map(|node| node.subtasks).collect();
        assert_eq!(subtasks, [1], "runs that were given up do not count");
    }
    for by_columns in [false, true] {
        let program = sums(23, 31, [4, 7], by_columns);
        let results = cluster(3, "host:1").run(program).expect("it runs");
        let found = results.to_vec::<i64>().expect("an integer");
        assert_eq!(found, Some(vec![right(23, 31)]));
        assert!(touched(&results).blocks >= 30, "{:?}", touched(&results));
    }
}

/// A reduction that touches, a space that a task before has written, and two accesses.
#[test]
fn reductions_touch_what_other_tasks_have_written() {
    let seed = seed();
    let mut random = fastrand::Rng::with_seed(seed);
    for nodes in 1..=3 {
        let count = random.u64(1..200);
        let all: Arc<[u64]> = (0..count).map(|_| random.u64(..count)).collect();
        let mut program = Program::new("histogram");
        let given = Arc::clone(&all);
        let places = program.given(1, count, move |_, column| given[column as usize]);
        let doubled = program.space::<u64>(1, count);
        let kinds = program.space::<u64>(1, 5);
        let accesses = (
            doubled.touch(1, random.u64(1..20)),
            places.touch(1, random.u64(1..20)),
            kinds.write(move |_| kinds.whole()),
        );
        let reduce = ProgramTask::reduction(
            "count",
            3,
            move |subtask| count * subtask / 3..count * (subtask + 1) / 3,
            accesses,
            (0_u64, |sum, other| *sum += other),
            |items, (doubled, places, mut kinds)| {
                for item in items {
                    kinds[(0, doubled[(0, places[(0, item)])] % 5)] += 1;
                }
            },
        );
        let part =
            move |subtask: u64| Block::new(0..1, count * subtask / 2..count * (subtask + 1) / 2);
        let accesses = (places.read(part), doubled.write(part));
        let double = ProgramTask::new("double", 2, accesses, |_, (places, mut doubled)| {
            for column in doubled.block().columns.clone() {
                doubled[(0, column)] = 2 * places[(0, column)] + column;
            }
        });
        // What is touched counts for the order.
        program.add_tasks([reduce, double]);
        program.set_result(kinds);
        assert_eq!(program.dependencies(1), [0]);
        let kind = |place: &u64| (2 * all[*place as usize] + place) % 5;
        let right = (0..5).map(|of| all.iter().filter(|place| kind(place) == of).count() as u64);
        let results = cluster(nodes, "host:2").run(program).expect("it runs");
        let found = results.to_vec().expect("integers");
        assert_eq!(found, Some(right.collect()), "{nodes} nodes");
    }
}

#[test]
fn what_cannot_be_touched_is_refused() {
    let with = |page: u64, is_kernel: bool, is_written: bool| {
        let mut program = Program::new("refused");
        let given = program.given(1, 4, |_, _| 1_i64);
        let nothing = program.space::<i64>(1, 4);
        let to = program.space::<i64>(1, 4);
        let from = if is_written { given } else { nothing };
        let accesses = (from.touch(1, page), to.write(move |_| to.whole()));
        let source =
            "__kernel void copy(__global const long *a, __global long *to) { to[0] = a[0]; }";
        let kernel = SubtaskKernel::new(source, "copy", |_| NdRange::new(vec![1]));
        let task = ProgramTask::new("copy", 1, accesses, |_, (from, mut to)| {
            to[(0, 0)] = from[(0, 0)];
        });
        program.add_task(match is_kernel {
            true => task.with_kernel(kernel.expect("the source has it")),
            false => task,
        });
        program.set_result(to);
        refused(program).to_string()
    };
    let error = with(0, false, true);
    assert!(error.contains("pages without rows or columns"), "{error}");
    let error = with(2, true, true);
    assert!(error.contains("only functions can do"), "{error}");
    let error = with(2, false, false);
    assert!(error.contains("space 1"), "nobody has written it: {error}");
}
