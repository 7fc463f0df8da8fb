//! Sessions: results against plain loops, on simulated and real devices, and what wrong
//! arguments are reported.

use std::sync::Arc;

use pdawl::Session;
use pdawl::session::{DenseMatrix, Error, Grid, SparseMatrix, Task};
use pdawl_api::balance;
use pdawl_api::workload::task_set::{Matmul2d, TaskSet, Tasks};
use proptest::prelude::*;

use crate::pocl::cpu_device;

/// Rows of a sparse matrix: columns and values.
type Rows = Vec<Vec<(u32, f64)>>;

fn matrix(rows: &Rows, columns: u32) -> SparseMatrix {
    let mut starts = vec![0];
    for row in rows {
        starts.push(starts[starts.len() - 1] + row.len() as u64);
    }
    let entries: Vec<(u32, f64)> = rows.iter().flatten().copied().collect();
    let (of, values): (Vec<u32>, Vec<f64>) = entries.into_iter().unzip();
    SparseMatrix::new(rows.len() as u32, columns, starts, of, values).unwrap()
}

/// Asserts that `y` is `A x`, to the rounding of sums of doubles.
fn is_product(rows: &Rows, x: &[f64], y: &[f64]) {
    assert_eq!(rows.len(), y.len());
    for (row, y) in rows.iter().zip(y) {
        let products = row
            .iter()
            .map(|(column, value)| value * x[*column as usize]);
        let (sum, size) = products.fold((0.0, 0.0), |(sum, size), one| {
            (sum + one, size + f64::abs(one))
        });
        assert!((sum - y).abs() <= 1e-12 * size, "{y} is not {sum}");
    }
}

fn sparse_rows(columns: u32, most: usize) -> impl Strategy<Value = Vec<(u32, f64)>> {
    let row = proptest::collection::btree_map(0..columns, -1.0f64..1.0, 0..=most);
    row.prop_map(|row| row.into_iter().collect())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(24) })]

    /// Two matrices in turns, one of which has long rows, each with several vectors.
    #[test]
    fn products_are_right_whoever_computes_them(
        short in proptest::collection::vec(sparse_rows(90, 6), 1..200),
        long in proptest::collection::vec(sparse_rows(400, 300), 1..12),
        strategy in prop_oneof![Just("dawl"), Just("gpu"), Just("cpu"), Just("fixed:0.4"), Just("guided")],
        seed in any::<u64>(),
    ) {
        let mut session = Session::simulate("k40").unwrap();
        session.set_strategy(&strategy.parse::<balance::Strategy>().unwrap()).unwrap();
        let (a, b) = (matrix(&short, 90), matrix(&long, 400));
        for turn in 0..2u64 {
            for (rows, matrix, columns) in [(&short, &a, 90u64), (&long, &b, 400)] {
                for vector in 0..3u64 {
                    let number = |c| ((seed ^ (turn * 31 + vector * 7 + c)) % 1009) as f64 / 101.0 - 5.0;
                    let x: Vec<f64> = (0..columns).map(number).collect();
                    let y = session.spmv(matrix, &x).unwrap();
                    is_product(rows, &x, &y);
                    let shares: f64 = session.spmv_shares().iter().sum();
                    prop_assert!((shares - 1.0).abs() < 1e-9);
                }
            }
        }
    }
}

fn own_memory() -> Session {
    let devices = format!("host:1,{}:1=own", cpu_device().info.name);
    Session::open_devices(&devices).unwrap()
}

#[test]
fn products_on_real_devices_are_right() {
    let rows: Rows = (0..3000u32)
        .map(|row| {
            (0..row % 9)
                .map(|entry| ((row * 7 + entry * 331) % 2999, 0.5))
                .collect()
        })
        .map(|mut row: Vec<(u32, f64)>| {
            row.sort_by_key(|(column, _)| *column);
            row.dedup_by_key(|(column, _)| *column);
            row
        })
        .collect();
    let matrix = matrix(&rows, 2999);
    for strategy in ["dawl", "gpu", "fixed:0.5"] {
        let mut session = own_memory();
        let strategy: balance::Strategy = strategy.parse().unwrap();
        // PoCL is no GPU.
        if session.set_strategy(&strategy).is_err() {
            continue;
        }
        for vector in 0..40 {
            let x: Vec<f64> = (0..2999).map(|c| f64::from(c * vector % 17)).collect();
            is_product(&rows, &x, &session.spmv(&matrix, &x).unwrap());
        }
    }
}

#[test]
fn a_matrix_is_read_where_it_is() {
    let rows: Rows = (0..500).map(|row| vec![(row % 100, 1.0)]).collect();
    let matrix = matrix(&rows, 100);
    let mut session = Session::open_devices("host:2").unwrap();
    let x = vec![2.0; 100];
    assert_eq!(session.spmv(&matrix, &x).unwrap(), vec![2.0; 500]);
    // What is open of it outlives the caller's, and the next matrix closes it.
    let other = matrix.clone();
    drop(matrix);
    assert_eq!(session.spmv(&other, &x).unwrap(), vec![2.0; 500]);
    let identity: Rows = (0..100).map(|row| vec![(row, 1.0)]).collect();
    let identity = self::matrix(&identity, 100);
    assert_eq!(session.spmv(&identity, &x).unwrap(), x);
    assert_eq!(session.spmv(&other, &x).unwrap(), vec![2.0; 500]);
}

#[test]
fn stencils_are_right_and_stay_in_the_callers_memory() {
    let random = |count: usize| (0..count).map(|i| (i * 7919 % 1013) as f64 / 1013.0);
    for mut session in [Session::simulate("k40").unwrap(), own_memory()] {
        let mut plane: Grid<f64> = Grid::new(&[41, 17], random(41 * 17).collect()).unwrap();
        let first = plane.clone();
        let run = session.stencil(&mut plane).steps(1).run().unwrap();
        assert_eq!(run.workload.steps(), 1);
        for (row, column) in [(1, 1), (20, 8), (39, 15)] {
            let at = |row: usize, column: usize| first.numbers()[row * 17 + column];
            let sum = at(row, column)
                + at(row, column - 1)
                + at(row, column + 1)
                + at(row - 1, column)
                + at(row + 1, column);
            let found = plane.numbers()[row * 17 + column];
            assert!((found - sum / 5.0).abs() < 1e-15, "{found}");
        }
        assert_eq!(
            plane.numbers()[..17],
            first.numbers()[..17],
            "the edge stays"
        );
        let cube: Vec<f32> = random(12 * 13 * 14).map(|x| x as f32).collect();
        let mut cube = Grid::new(&[12, 13, 14], cube).unwrap();
        let before = cube.clone();
        let run = session
            .stencil(&mut cube)
            .steps(7)
            .superstep(3)
            .verify()
            .traced()
            .run()
            .unwrap();
        assert!(run.verification.is_some() && !run.is_wrong());
        assert!(cube != before && !run.trace().spans.is_empty());
        let mut page = Vec::new();
        run.gantt_html(&mut page).unwrap();
        assert!(String::from_utf8(page).unwrap().contains("new Charts("));
        let run = session
            .stencil(&mut plane)
            .steps(5000)
            .until(1e-3, 10)
            .verify()
            .run()
            .unwrap();
        assert!(!run.is_wrong());
    }
}

#[test]
fn a_cost_model_plans_the_first_step() {
    let mut session = Session::simulate("k40").unwrap();
    session.set_strategy(&balance::Strategy::Pdawl).unwrap();
    let mut grid = Grid::new(&[4096, 4096], vec![1.0f64; 4096 * 4096]).unwrap();
    let planned = session.stencil(&mut grid).steps(10).verify().run().unwrap();
    assert!(!planned.is_wrong() && planned.policy == "pdawl");
    assert!(planned.shares().iter().all(|share| *share > 0.0));
    // A plan needs no probes.
    session.set_strategy(&balance::Strategy::Dawl).unwrap();
    let learned = session.stencil(&mut grid).steps(10).run().unwrap();
    assert!(planned.setup_seconds < learned.setup_seconds);
    assert!(planned.seconds < 1.05 * learned.seconds);

    session.set_strategy(&balance::Strategy::Pdawl).unwrap();
    let rows: Rows = (0..3000)
        .map(|row| vec![(row % 90, 1.5), (row % 90 + 1, -1.0)])
        .collect();
    let product = matrix(&rows, 91);
    let x: Vec<f64> = (0..91).map(f64::from).collect();
    is_product(&rows, &x, &session.spmv(&product, &x).unwrap());

    // No model of these machines, or of this codelet, is shipped.
    let mut session = Session::simulate("v100x2").unwrap();
    session.set_strategy(&balance::Strategy::Pdawl).unwrap();
    let said = message(session.stencil(&mut grid).run());
    assert!(said.contains("pdawl train --machine v100x2"), "{said}");
    let mut single = Grid::new(&[64, 64], vec![1.0f32; 64 * 64]).unwrap();
    let mut session = Session::simulate("h200").unwrap();
    session.set_strategy(&balance::Strategy::Pdawl).unwrap();
    let said = message(session.stencil(&mut single).run());
    assert!(said.contains("--precision f32"), "{said}");
    // Supersteps have no model; they are learned.
    let run = session
        .stencil(&mut single)
        .steps(8)
        .superstep(4)
        .verify()
        .run();
    assert!(!run.unwrap().is_wrong());
}

#[test]
fn a_stopped_stencil_has_the_version_of_its_last_barrier() {
    let mut session = Session::open_devices("host:2").unwrap();
    let stop = session.stop();
    let mut grid = Grid::new(&[50, 50], vec![1.0f64; 2500]).unwrap();
    let run = session
        .stencil(&mut grid)
        .steps(100_000)
        .progress(|done, _| {
            if done > 3 {
                stop.set();
            }
        });
    let run = run.run().unwrap();
    assert!(run.interrupted);
    assert!(
        grid.numbers()
            .iter()
            .all(|number| (number - 1.0).abs() < 1e-12)
    );
    session.stop().clear();
    assert!(
        !session
            .stencil(&mut grid)
            .steps(3)
            .run()
            .unwrap()
            .interrupted
    );
}

#[test]
fn a_kernel_is_divided_and_known_from_then_on() {
    let name = cpu_device().info.name;
    let mut session = Session::open_devices(&format!("{name}:1,{name}:1=own")).unwrap();
    let source = "__kernel void saxpy(__global const float *x, __global float *y, float a) {
            size_t i = get_global_id(0);
            y[i] += a * x[i];
        }";
    let mut saxpy = session.kernel(source).unwrap();
    assert_eq!(saxpy.name(), "saxpy");
    let x: Vec<f32> = (0..10_000u16).map(f32::from).collect();
    for round in 0..3 {
        let mut y = vec![1.0f32; 10_000];
        let run = session.launch(&mut saxpy, &[10_000]);
        let run = run
            .reads(&x)
            .updates(&mut y)
            .value(2.0f32 + round as f32)
            .run()
            .unwrap();
        let right = |i: usize| 1.0 + (2.0 + round as f32) * i as f32;
        assert!(y.iter().enumerate().all(|(i, y)| *y == right(i)));
        assert_eq!(run.devices.len(), 2);
    }
    // A sum over all items cannot be divided.
    let source = "__kernel void count(__global uint *sum) { atomic_inc(sum); }";
    let mut count = session.kernel(source).unwrap();
    let mut sum = [0u32];
    let run = session
        .launch(&mut count, &[1000])
        .updates(&mut sum)
        .run()
        .unwrap();
    assert_eq!(sum, [1000]);
    assert!(
        run.notes.iter().any(|note| note.contains("not divided")),
        "{:?}",
        run.notes
    );
}

fn message(error: Result<impl Sized, Error>) -> String {
    match error {
        Ok(_) => panic!("it was wrong"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn wrong_arguments_are_named() {
    let mut session = Session::simulate("k40").unwrap();
    let two = matrix(&vec![vec![(0, 1.0)], vec![]], 3);
    let one_row = |columns: Vec<u32>| SparseMatrix::new(1, 3, vec![0, 2], columns, vec![1.0, 1.0]);
    let mut grid = Grid::new(&[3, 3], vec![0.0; 9]).unwrap();
    let mut errors = vec![
        (
            message(Session::simulate("k41")),
            "no machine is called `k41`",
        ),
        (message(Session::open_devices("gpu7")), "gpu7"),
        (
            message(session.spmv(&two, &[1.0])),
            "x has 1 numbers, and the matrix 3 columns",
        ),
        (
            message(session.spmv_into(&two, &[1.0; 3], &mut [0.0])),
            "y has 1 numbers, and the matrix 2 rows",
        ),
        (message(one_row(vec![2, 2])), "columns must ascend"),
        (message(one_row(vec![0, 3])), "an entry in column 3"),
        (
            message(Grid::new(&[3, 3], vec![0.0; 8])),
            "has 9 points, and 8 numbers",
        ),
        (message(Grid::new(&[9], vec![0.0; 9])), "a grid has 2 axes"),
        (
            message(session.set_strategy(&balance::Strategy::Oracle)),
            "sweep",
        ),
    ];
    errors.push((
        message(session.stencil(&mut grid).steps(0).run()),
        "at least 1 step",
    ));
    errors.push((
        message(session.stencil(&mut grid).until(0.0, 1).run()),
        "a change above 0",
    ));
    errors.push((
        message(session.stencil(&mut grid).coefficients(&[1.0]).run()),
        "1 coefficients",
    ));
    let narrow = Grid::new(&[3, 2], vec![0.0; 6]).unwrap();
    errors.push((
        message(session.stencil(&mut narrow.clone()).run()),
        "at least 3 points",
    ));
    let never = |graph: &mut pdawl::session::TaskGraphBuilder| {
        let never = graph.between::<f64>("never", 1);
        let made = graph.result::<f64>("made", 1);
        graph.task(Task::new("t", |_| {}).reads(never).writes(made));
    };
    errors.push((message(session.graph(never).run()), "never"));
    errors.push((message(session.graph(|_| {}).run()), "no kernels"));
    errors.push((
        message(session.graph(never).policy("fifo").run()),
        "`fifo` is not a policy",
    ));
    for (error, part) in errors {
        assert!(error.contains(part), "`{error}` does not say `{part}`");
    }
    let kernel =
        "__kernel void k(__global const float *a, __global float *b, int n) { b[0] = a[0] + n; }";
    let mut k = session.kernel(kernel).unwrap();
    let (a, mut b) = ([0.0f32; 4], [0.0f32; 4]);
    for (error, part) in [
        (
            message(session.kernel("void f() {}")),
            "no function that is a `__kernel`",
        ),
        (
            message(session.kernel_named(kernel, "l")),
            "no kernel `l`; it has k",
        ),
        (
            message(session.launch(&mut k, &[]).run()),
            "1 to 3 dimensions",
        ),
        (
            message(session.launch(&mut k, &[1]).reads(&a).run()),
            "it takes 3 arguments (a, b, n), and 1",
        ),
        (
            message(
                session
                    .launch(&mut k, &[1])
                    .reads(&a)
                    .value(1i32)
                    .value(1i32)
                    .run(),
            ),
            "b is a buffer",
        ),
        (
            message(
                session
                    .launch(&mut k, &[1])
                    .reads(&a)
                    .writes(&mut b)
                    .value(1i64)
                    .run(),
            ),
            "n is of type int",
        ),
    ] {
        assert!(error.contains(part), "`{error}` does not say `{part}`");
    }
}

#[test]
fn data_belong_to_their_graph() {
    let mut session = Session::simulate("k40").unwrap();
    let mut other = None;
    let nothing = session.graph(|graph| {
        let made = graph.result::<f64>("x", 1);
        graph.task(Task::new("one", |data| data.write(0)[0] = 1.0).writes(made));
        other = Some(made);
    });
    assert_eq!(nothing.run().unwrap().of(other.unwrap()), [1.0]);
    let foreign = session.graph(|graph| {
        let sum = graph.result::<f64>("sum", 1);
        graph.task(Task::new("add", |_| ()).reads(other.unwrap()).writes(sum));
    });
    let said = message(foreign.run());
    assert!(
        said.contains("task add") && said.contains("another graph"),
        "{said}"
    );
}

/// A host's pool runs no OpenCL C; the other devices do, and the pool works again afterwards.
#[test]
fn kernels_run_beside_a_pool() {
    let name = cpu_device().info.name;
    for list in [Some(format!("host:1,{name}:1")), None] {
        let mut session = match &list {
            Some(list) => Session::open_devices(list).unwrap(),
            None => Session::open().unwrap(),
        };
        let mut doubled = session
            .kernel("__kernel void doubled(__global int *x) { x[get_global_id(0)] *= 2; }")
            .unwrap();
        let two = matrix(&vec![vec![(0, 3.0)], vec![(1, 5.0)]], 2);
        for turn in 1..4 {
            let mut numbers = vec![turn; 1000];
            let run = session
                .launch(&mut doubled, &[1000])
                .updates(&mut numbers)
                .run()
                .unwrap();
            assert!(numbers.iter().all(|number| *number == 2 * turn));
            assert!(
                run.devices
                    .iter()
                    .all(|device| !device.name.starts_with("host"))
            );
            assert_eq!(session.spmv(&two, &[1.0, 1.0]).unwrap(), [3.0, 5.0]);
        }
    }
    let mut hosts = Session::open_devices("host:1").unwrap();
    let mut nothing = hosts
        .kernel("__kernel void nothing(__global int *x) { x[0] = 1; }")
        .unwrap();
    let said = message(hosts.launch(&mut nothing, &[1]).updates(&mut [0]).run());
    assert!(
        said.contains("no device of the session runs kernels"),
        "{said}"
    );
}

#[test]
fn a_loss_of_elements_is_no_loss_of_the_session() {
    // An error leaves the session as it was.
    let mut session = Session::open_devices("host:2").unwrap();
    let rows: Rows = vec![vec![(0, 3.0)]];
    let matrix = matrix(&rows, 1);
    for _ in 0..5 {
        assert!(session.spmv(&matrix, &[]).is_err());
        assert_eq!(session.spmv(&matrix, &[2.0]).unwrap(), [6.0]);
    }
}

#[test]
fn sessions_of_two_threads_do_not_disturb_each_other() {
    let rows: Arc<Rows> = Arc::new((0..1000).map(|row| vec![(row, 2.0)]).collect());
    let threads: Vec<_> = (0..2)
        .map(|_| {
            let rows = Arc::clone(&rows);
            std::thread::spawn(move || {
                let mut session = Session::open_devices("host:1").unwrap();
                let matrix = matrix(&rows, 1000);
                for _ in 0..50 {
                    assert_eq!(
                        session.spmv(&matrix, &vec![1.0; 1000]).unwrap(),
                        vec![2.0; 1000]
                    );
                }
            })
        })
        .collect();
    threads
        .into_iter()
        .for_each(|thread| thread.join().unwrap());
}

#[test]
fn tasks_that_compute_nothing_leave_later_runs_their_data() {
    let mut session = Session::simulate("v100x2").unwrap();
    let set = TaskSet::paper(Tasks::Matmul2d(Matmul2d::paper(4)));
    session.task_set(&set).run().unwrap();
    let numbers = (0..25).map(|place| f64::from(place * place)).collect();
    let mut grid = Grid::new(&[5, 5], numbers).unwrap();
    let before = grid.clone();
    let run = session.stencil(&mut grid).steps(3).verify().run().unwrap();
    assert!(run.verification.as_ref().is_some_and(|found| found.right) && grid != before);
    session.task_set(&set).run().unwrap();
    let a = DenseMatrix::new(2, 2, vec![1.0f32, 2.0, 3.0, 4.0]).unwrap();
    let product = session.matmul(&a, &a).run().unwrap().result;
    assert_eq!(product.elements(), [7.0, 10.0, 15.0, 22.0]);
}
