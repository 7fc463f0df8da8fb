//! The sum of each number and all before it: a workload of a user's as a program of two tasks.
//! The first adds up the numbers of each part; the second begins with the sum of the parts
//! before its own.
use std::error::Error;

use pdawl::program::{Block, Program, ProgramTask};
use pdawl::session::{ClusterOptions, Nodes};

pub fn number(place: u64) -> i64 {
    (place as i64 * 7919) % 1013 - 500
}

/// The prefix sums of so many numbers, in so many parts.
pub fn prefix_sum(count: u64, parts: u64) -> Program {
    let mut program = Program::new("prefix-sum");
    let numbers = program.given(1, count, |_, column| number(column));
    let sums = program.space::<i64>(1, parts);
    let prefixes = program.space::<i64>(1, count);
    let part = move |subtask: u64| {
        let cut = |subtask| count * subtask / parts;
        Block::new(0..1, cut(subtask)..cut(subtask + 1))
    };
    let own = move |subtask: u64| Block::new(0..1, subtask..subtask + 1);
    let before = move |subtask: u64| Block::new(0..1, 0..subtask);
    program.add_task(ProgramTask::new(
        "add",
        parts,
        (numbers.read(part), sums.write(own)),
        |_, (numbers, mut sums)| sums.slice()[0] = numbers.slice().iter().sum(),
    ));
    program.add_task(ProgramTask::new(
        "scan",
        parts,
        (numbers.read(part), sums.read(before), prefixes.write(part)),
        |_, (numbers, sums, mut prefixes)| {
            // The cores of a subtask share what it writes, and read all that it reads.
            let skipped = prefixes.block().columns.start - numbers.block().columns.start;
            let (skipped, own) = numbers.slice().split_at(skipped as usize);
            let mut sum: i64 = sums.slice().iter().chain(skipped).sum();
            for (prefix, number) in prefixes.slice().iter_mut().zip(own) {
                sum += number;
                *prefix = sum;
            }
        },
    ));
    program.set_result(prefixes);
    program
}

pub fn main() -> Result<(), Box<dyn Error>> {
    let mut nodes = Nodes::join(ClusterOptions::default())?;
    let results = nodes.run(prefix_sum(1 << 20, 16))?;
    // Only the first node has them.
    if let Some(prefixes) = results.to_vec::<i64>()? {
        println!("the last sum is {:?}", prefixes.last());
    }
    Ok(())
}
