//! A workload of one's own, as those of `pdawl run`: prefix sums in three tasks. docs/adding.md
//! tells how it becomes a command.
use pdawl::Session;
use pdawl::catalogue::{Entry, Given, Made, Parameter, Unfit, Values};
use pdawl::cluster::space::Block;
use pdawl::codelet::Precision;
use pdawl::matrix::npy::ElementType;
use pdawl::policy::NamedPolicy;
use pdawl::session::{Error, OperationOptions};
use pdawl::workload::cluster::program::{Program, ProgramTask};
use pdawl::workload::cluster::{Operation, Placement};

const SIZE: u64 = 1 << 20;
const MOST: u64 = 1 << 32;

pub const ENTRY: Entry = Entry {
    name: "prefix-sum",
    about: "The sum of all numbers up to each one",
    examples: "Example:\n  pdawl run prefix-sum --size 1000000 --output sums.npy",
    parameters: &[
        Parameter::number("size", (1, MOST), "Numbers [default: 1048576]"),
        Parameter::tile((1, MOST), "Numbers of a subtask [default: a sixteenth]"),
    ],
    results: &[Parameter::file("output", "Write the sums to an NPY file")],
    nodes: Some(Placement::Rows),
    hosts_only: true,
    make,
};

fn make(given: &Given) -> Result<Made, Unfit> {
    let size = given.values.number("size").unwrap_or(SIZE);
    let seed = given.seed;
    let title = format!("{size} numbers");
    let usual = size.div_ceil(16);
    Ok(Made {
        operation: Operation::of_program(title, 24 * u128::from(size), usual, move |tile| {
            prefix_sum(size, tile, seed)
        }),
        arrays: vec![(vec![size], ElementType::Real(Precision::F64))],
    })
}

/// The number at a place.
pub fn number(place: u64, seed: u64) -> f64 {
    (place.wrapping_mul(seed + 7) % 11) as f64
}

/// Each block is summed by itself; then each gets the sum of those before it.
fn prefix_sum(size: u64, tile: u64, seed: u64) -> Program {
    let blocks = size.div_ceil(tile);
    let block =
        move |subtask: u64| Block::new(0..1, subtask * tile..((subtask + 1) * tile).min(size));
    let one = |subtask: u64| Block::new(0..1, subtask..subtask + 1);
    let mut program = Program::new("prefix-sum");
    let numbers = program.given(1, size, move |_, place| number(place, seed));
    let within = program.space::<f64>(1, size);
    let totals = program.space::<f64>(1, blocks);
    let before = program.space::<f64>(1, blocks);
    let sums = program.space::<f64>(1, size);
    program.add_task(ProgramTask::new(
        "within",
        blocks,
        (numbers.read(block), within.write(block), totals.write(one)),
        |_, (numbers, mut within, mut total)| {
            let mut sum = 0.0;
            for (to, number) in within.slice().iter_mut().zip(numbers.slice()) {
                sum += number;
                *to = sum;
            }
            total.slice()[0] = sum;
        },
    ));
    program.add_task(ProgramTask::new(
        "before",
        1,
        (
            totals.read(move |_| totals.whole()),
            before.write(move |_| before.whole()),
        ),
        |_, (totals, mut before)| {
            let mut sum = 0.0;
            for (to, total) in before.slice().iter_mut().zip(totals.slice()) {
                *to = sum;
                sum += total;
            }
        },
    ));
    program.add_task(ProgramTask::new(
        "sums",
        blocks,
        (within.read(block), before.read(one), sums.write(block)),
        |_, (within, before, mut sums)| {
            for (to, number) in sums.slice().iter_mut().zip(within.slice()) {
                *to = number + before.slice()[0];
            }
        },
    ));
    program.set_result(sums);
    program
}

/// Runs it as `pdawl run` does.
pub fn run(session: &mut Session, values: &Values, seed: u64) -> Result<Vec<f64>, Error> {
    let given = Given {
        values,
        seed,
        placement: Placement::Rows,
    };
    let made = ENTRY
        .made(&given)
        .map_err(|unfit| Error::Arguments(unfit.to_string()))?;
    let options = OperationOptions {
        tile: values.tile(),
        seed: Some(seed),
        ..OperationOptions::of(NamedPolicy::LOCALITY)
    };
    let mut sums: Vec<u8> = Vec::new();
    let (stop, space) = (Default::default(), made.operation.outputs[0]);
    let outputs: Vec<(usize, &mut dyn pdawl::engine::cluster::Sink)> = vec![(space, &mut sums)];
    session.operate(&made.operation, outputs, &options, &stop, &mut |_, _| {})?;
    Ok(sums
        .chunks_exact(8)
        .map(|bytes| f64::from_ne_bytes(bytes.try_into().unwrap()))
        .collect())
}

fn main() -> Result<(), Error> {
    let sums = run(&mut Session::open_devices("host")?, &Values::default(), 1)?;
    println!(
        "the last of {} sums is {}",
        sums.len(),
        sums[sums.len() - 1]
    );
    Ok(())
}
