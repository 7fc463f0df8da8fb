//! A sparse product, a stencil and a graph of tasks on all devices of this machine, or on a
//! simulated one: `session k40`.
use pdawl::session::{Error, Grid, Session, SparseMatrix, Task};

pub fn main() -> Result<(), Error> {
    let mut session = match std::env::args().nth(1) {
        None => Session::open()?,
        Some(machine) => Session::simulate(&machine)?,
    };
    run(&mut session)
}

pub fn run(session: &mut Session) -> Result<(), Error> {
    if session.is_simulated() {
        println!("times are simulated");
    }
    // Minus the second derivative: 2 on the diagonal, -1 beside it.
    const ROWS: u32 = 100_000;
    let (mut starts, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
    for row in 0..ROWS {
        for column in row.saturating_sub(1)..(row + 2).min(ROWS) {
            columns.push(column);
            values.push(if column == row { 2.0 } else { -1.0 });
        }
        starts.push(columns.len() as u64);
    }
    let matrix = SparseMatrix::new(ROWS, ROWS, starts, columns, values)?;
    let squares: Vec<f64> = (0..ROWS).map(|x| f64::from(x).powi(2)).collect();
    // The matrix stays on the devices from one product to the next.
    let second = session.spmv(&matrix, &squares)?;
    assert!(second[1..second.len() - 1].iter().all(|y| *y == -2.0));
    println!("sparse product: shares {:.2?}", session.spmv_shares());

    // A plate with a hot edge.
    let (rows, columns) = (600, 400);
    let mut numbers = vec![0.0f32; rows * columns];
    numbers[..columns].fill(100.0);
    let mut plate = Grid::new(&[rows as u64, columns as u64], numbers)?;
    let heated = session.stencil(&mut plate).steps(50).run()?;
    assert!(plate.numbers()[columns + columns / 2] > 80.0);
    println!(
        "stencil: {:.4} s, shares {:.2?}",
        heated.seconds,
        heated.shares()
    );

    // Sums of squares: each task has a quarter, and the last one adds.
    let mut total = None;
    let graph = session.graph(|graph| {
        let sums: Vec<_> = squares
            .chunks(ROWS as usize / 4)
            .map(|part| {
                let part = graph.given("part", part);
                let sum = graph.between::<f64>("sum", 1);
                let task = Task::new("sum", |data| {
                    data.write(0)[0] = data.read::<f64>(0).iter().sum::<f64>();
                });
                graph.task(task.reads(part).writes(sum).cost(25e3, 200e3));
                sum
            })
            .collect();
        let all = graph.result::<f64>("total", 1);
        let add = Task::new("add", |data| {
            data.write(0)[0] = (0..4).map(|part| data.read::<f64>(part)[0]).sum::<f64>();
        });
        let add = sums.into_iter().fold(add, Task::reads);
        graph.task(add.writes(all).cost(4.0, 40.0));
        total = Some(all);
    });
    let results = graph.policy("heft").run()?;
    let total = total.map(|total| results.of(total)[0]);
    assert_eq!(total, Some(squares.iter().sum()));
    println!("graph: {:.6} s", results.run().seconds);
    Ok(())
}
