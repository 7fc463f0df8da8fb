//! The accelerations of bodies by one another: one subtask, which the devices of a node compute
//! together.
use pdawl::program::{Block, Cost, NdRange, Program, ProgramTask, SubtaskKernel, Value};
use pdawl::session::{ClusterOptions, Nodes};

pub const BODIES: u64 = 65536;

/// Place and mass.
pub fn body(_: u64, number: u64) -> [f32; 4] {
    let turned = number as f32 * 2.399;
    [
        turned.cos(),
        turned.sin(),
        number as f32 / 1e5,
        1.0 + (number % 7) as f32,
    ]
}

/// The sum of what all bodies do to one, without its last number.
pub fn acceleration(all: &[[f32; 4]], own: [f32; 4]) -> [f32; 4] {
    let mut sum = [0.0; 4];
    for other in all {
        let away = [0, 1, 2].map(|axis| other[axis] - own[axis]);
        let squared: f32 = away.iter().map(|along| along * along).sum::<f32>() + 1e-6;
        let strength = other[3] / (squared * squared.sqrt());
        (sum.iter_mut().zip(away)).for_each(|(sum, along)| *sum += strength * along);
    }
    sum
}

pub fn bodies(count: u64) -> Result<Program, Box<dyn std::error::Error>> {
    let mut program = Program::new("bodies");
    let all = program.given(1, count, body);
    let sums = program.space::<[f32; 4]>(1, count);
    let every = move |_| Block::new(0..1, 0..count);
    // All of what is read is at its place, whichever columns a device computes.
    let accesses = (all.read(every).natural(), sums.write(every).full());
    let launch = move |_| NdRange::new(vec![count as usize]);
    let kernel = SubtaskKernel::new(include_str!("bodies.cl"), "accelerations", launch)?
        .values(move |_| vec![Value::U64(0), Value::U64(count)])
        .by_lines(move |_, columns| {
            let range = NdRange::new(vec![(columns.end - columns.start) as usize]);
            (range, vec![Value::U64(columns.start), Value::U64(count)])
        });
    let task = ProgramTask::new("accelerations", 1, accesses, |_, (all, mut sums)| {
        let columns = sums.block().columns.clone();
        for (to, column) in sums.slice().iter_mut().zip(columns) {
            *to = acceleration(all.slice(), all[(0, column)]);
        }
    });
    let cost = Cost {
        flops: 20.0 * (count * count) as f64,
        bytes: 32.0 * count as f64,
    };
    program.add_task(task.cost(move |_| cost).with_kernel(kernel));
    program.set_result(sums);
    Ok(program)
}

pub fn main() -> Result<(), Box<dyn std::error::Error>> {
    let count = std::env::args().nth(1).map(|count| count.parse());
    let count = count.transpose()?.unwrap_or(BODIES);
    let mut nodes = Nodes::join(ClusterOptions::default())?;
    // The second run knows how long the first one took on each device.
    for _ in 0..2 {
        let results = nodes.run(bodies(count)?)?;
        if let (Some(outcome), Some(sums)) = (results.outcome(), results.to_vec::<[f32; 4]>()?) {
            let divided: u64 = outcome.nodes.iter().map(|node| node.divided).sum();
            println!("{:.4} s, {divided} divided, {:?}", outcome.seconds, sums[0]);
        }
    }
    Ok(())
}
