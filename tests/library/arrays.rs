//! A session's operations on dense arrays, against plain loops in doubles.

use pdawl::Session;
use pdawl::session::{
    ArrayResult, ClusterOptions, Complex, DenseMatrix, Error, Factor, Factors, Nodes, Number, bf16,
    f16,
};
use proptest::prelude::*;
use rustfft::{FftPlanner, num_complex};

use crate::pocl::cpu_device;

/// Numbers from -1 to 1.
fn numbers(count: usize, seed: u64) -> Vec<f64> {
    let mut state = seed;
    let mut number = || {
        // SplitMix64.
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        2.0 * ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1u64 << 53) as f64 - 1.0
    };
    (0..count).map(|_| number()).collect()
}

/// The same, stored as `T`.
fn stored<T: Number>(numbers: &[f64]) -> Vec<T> {
    let of = |number: &f64| match size_of::<T>() {
        4 => bytemuck::cast_slice::<f32, T>(&[*number as f32])[0],
        _ => bytemuck::cast_slice::<f64, T>(&[*number])[0],
    };
    numbers.iter().map(of).collect()
}

fn doubles<T: Number>(numbers: &[T]) -> Vec<f64> {
    let of = |number: &T| match bytemuck::bytes_of(number) {
        bytes if bytes.len() == 4 => f64::from(bytemuck::pod_read_unaligned::<f32>(bytes)),
        bytes => bytemuck::pod_read_unaligned::<f64>(bytes),
    };
    numbers.iter().map(of).collect()
}

fn matrix<T: Number>(rows: u32, columns: u32, seed: u64) -> DenseMatrix<T> {
    let numbers = numbers(rows as usize * columns as usize, seed);
    DenseMatrix::new(rows, columns, stored::<T>(&numbers)).unwrap()
}

/// Rounding of sums of `terms` numbers of magnitude 1.
fn allowed<T: Number>(terms: usize) -> f64 {
    let unit = if size_of::<T>() == 4 { 6e-8 } else { 1.2e-16 };
    8.0 * unit * (terms as f64 + 2.0)
}

/// The product of matrices of `rows x depth` and `depth x columns`.
fn product(a: &[f64], b: &[f64], depth: usize, columns: usize) -> Vec<f64> {
    let row = |a: &[f64]| -> Vec<f64> {
        let sum = |column: usize| {
            a.iter()
                .enumerate()
                .map(|(k, a)| a * b[k * columns + column])
                .sum()
        };
        (0..columns).map(sum).collect()
    };
    a.chunks(depth).flat_map(row).collect()
}

fn are_near(found: &[f64], expected: &[f64], allowed: f64) {
    assert_eq!(found.len(), expected.len());
    for (place, (found, expected)) in found.iter().zip(expected).enumerate() {
        let difference = (found - expected).abs();
        assert!(difference <= allowed, "{place}: {found} is not {expected}");
    }
}

fn multiplies<T: Number>(session: &mut Session, [m, n, k]: [u32; 3], tile: u32, seed: u64) {
    let (a, b) = (matrix::<T>(m, k, seed), matrix::<T>(k, n, !seed));
    let ArrayResult { result, run } = session.matmul(&a, &b).tile(tile).verify().run().unwrap();
    assert!(!run.is_wrong() && run.verification.is_some());
    let (a, b) = (doubles(a.elements()), doubles(b.elements()));
    let expected = product(&a, &b, k as usize, n as usize);
    are_near(
        &doubles(result.elements()),
        &expected,
        allowed::<T>(k as usize),
    );
    assert!((run.shares().iter().sum::<f64>() - 1.0).abs() < 1e-9);
}

/// Factors `M M^T + n I`, whose upper triangle is poisoned, as only the lower one counts.
fn factors<T: Number>(session: &mut Session, n: u32, tile: u32, seed: u64) {
    let size = n as usize;
    let m = numbers(size * size, seed);
    let transposed: Vec<f64> = (0..size * size)
        .map(|at| m[at % size * size + at / size])
        .collect();
    let mut definite = product(&m, &transposed, size, size);
    for row in 0..size {
        definite[row * size + row] += f64::from(n);
        definite[row * size + row + 1..(row + 1) * size].fill(f64::NAN);
    }
    let a = DenseMatrix::new(n, n, stored::<T>(&definite)).unwrap();
    let l = session.cholesky(&a).tile(tile).run().unwrap().result;
    let l = doubles(l.elements());
    for row in 0..size {
        for column in 0..size {
            let of = |row: usize| l[row * size..][..size].iter();
            let found: f64 = of(row).zip(of(column)).map(|(x, y)| x * y).sum();
            let (low, high) = (row.max(column), row.min(column));
            let expected = doubles(a.elements())[low * size + high];
            let error = (found - expected).abs();
            assert!(
                error <= 4.0 * f64::from(n) * allowed::<T>(size),
                "{row}, {column}"
            );
            assert!(column <= row || l[row * size + column] == 0.0);
        }
    }
}

/// Checks `P A = L U`, where pivots are the greatest of their columns.
fn is_factored<T: Number>(a: &DenseMatrix<T>, factors: &Factors<T>) {
    let size = a.rows() as usize;
    let lu = doubles(factors.lu.elements());
    let mut exchanged: Vec<Vec<f64>> = doubles(a.elements())
        .chunks(size)
        .map(<[f64]>::to_vec)
        .collect();
    for (row, other) in factors.pivots.iter().enumerate() {
        exchanged.swap(row, *other as usize);
    }
    for (row, expected) in exchanged.iter().enumerate() {
        for (column, expected) in expected.iter().enumerate() {
            let terms = (0..=row.min(column)).map(|k| {
                let l = if k == row { 1.0 } else { lu[row * size + k] };
                assert!(l.abs() <= 1.0, "a pivot is not the greatest of its column");
                l * lu[k * size + column]
            });
            let error = (terms.sum::<f64>() - expected).abs();
            assert!(
                error <= 32.0 * allowed::<T>(size),
                "{row}, {column}: {error}"
            );
        }
    }
}

fn complex<T: Number>(rows: u32, columns: u32, seed: u64) -> DenseMatrix<Complex<T>> {
    let numbers = numbers(2 * rows as usize * columns as usize, seed);
    let elements: Vec<Complex<T>> = stored::<T>(&numbers).as_chunks().0.to_vec();
    DenseMatrix::new(rows, columns, elements).unwrap()
}

fn is_transformed<T: Number + Into<f64>>(a: &DenseMatrix<Complex<T>>, found: &[Complex<T>]) {
    let (rows, columns) = (a.rows() as usize, a.columns() as usize);
    let of = |[re, im]: &Complex<T>| num_complex::Complex::new((*re).into(), (*im).into());
    let unit = match size_of::<T>() {
        4 => f64::from(f32::EPSILON),
        _ => f64::EPSILON,
    };
    let mut lines: Vec<_> = a.elements().iter().map(of).collect();
    let mut planner = FftPlanner::<f64>::new();
    planner.plan_fft_forward(columns).process(&mut lines);
    let mut columns_of: Vec<_> = (0..rows * columns)
        .map(|at| lines[at % rows * columns + at / rows])
        .collect();
    planner.plan_fft_forward(rows).process(&mut columns_of);
    let size = ((rows * columns) as f64).sqrt();
    for (at, found) in found.iter().enumerate() {
        let expected = columns_of[at % columns * rows + at / columns];
        let error = (of(found) - expected).norm();
        assert!(
            error <= 17.0 * unit * size * (2.0 + size.ln()),
            "{at}: {error}"
        );
    }
}

fn ascends(numbers: &[f32], sorted: &[f32]) {
    let mut expected = numbers.to_vec();
    expected.sort_by(f32::total_cmp);
    let bits = |of: &[f32]| of.iter().map(|number| number.to_bits()).collect::<Vec<_>>();
    assert_eq!(bits(sorted), bits(&expected));
}

fn with_specials(count: usize, seed: u64) -> Vec<f32> {
    let mut all: Vec<f32> = stored(&numbers(count, seed));
    let specials = [f32::INFINITY, -0.0, 0.0, f32::NEG_INFINITY];
    all.iter_mut()
        .step_by(7)
        .zip(specials)
        .for_each(|(to, from)| *to = from);
    all
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(12) })]

    #[test]
    fn operations_are_right_on_any_machine(
        machine in prop_oneof![Just("k40"), Just("v100x2"), Just("host")],
        sizes in [1u32..70, 1u32..70, 1u32..70],
        tile in 5u32..40,
        memory in prop_oneof![Just(None), Just(Some(1u64 << 20))],
        seed in any::<u64>(),
    ) {
        let mut session = match machine {
            "host" => Session::open_devices("host:2").unwrap(),
            name => Session::simulate(name).unwrap(),
        };
        session.limit_gpu_memory(memory);
        let [rows, columns, depth] = sizes;
        multiplies::<f32>(&mut session, sizes, tile.min(rows.max(columns).max(depth)), seed);
        multiplies::<f64>(&mut session, sizes, tile.min(rows.max(columns).max(depth)), seed);
        factors::<f64>(&mut session, rows, tile.min(rows), seed);
        factors::<f32>(&mut session, rows, tile.min(rows), seed);
        let a = matrix::<f64>(rows, rows, seed);
        is_factored(&a, &session.lu(&a).tile(tile).run().unwrap().result);
        let a = matrix::<f32>(columns, columns, seed);
        is_factored(&a, &session.lu(&a).verify().run().unwrap().result);
        let a = complex::<f32>(rows, columns, seed);
        let found = session.fft2(&a).run().unwrap();
        is_transformed(&a, found.result.elements());
        let a = complex::<f64>(rows, columns, seed);
        let found = session.fft2(&a).tile(tile).verify().run().unwrap();
        is_transformed(&a, found.result.elements());
        let numbers = with_specials((rows * columns) as usize, seed);
        ascends(&numbers, &session.sort(numbers.clone()).run().unwrap().result);
    }
}

#[test]
fn operations_on_a_device_with_its_own_memory_are_right() {
    let mut session =
        Session::open_devices(&format!("host:1,{}:1=own", cpu_device().info.name)).unwrap();
    for seed in 0..2 {
        multiplies::<f32>(&mut session, [130, 70, 90], 33, seed);
        factors::<f64>(&mut session, 100, 33, seed);
        let a = matrix::<f64>(90, 90, seed);
        is_factored(&a, &session.lu(&a).tile(30).run().unwrap().result);
        let a = complex::<f32>(60, 35, seed);
        is_transformed(&a, session.fft2(&a).run().unwrap().result.elements());
        // Lines that the device transforms.
        let a = complex::<f64>(64, 32, seed);
        is_transformed(
            &a,
            session.fft2(&a).verify().run().unwrap().result.elements(),
        );
        let numbers = with_specials(10_000, seed);
        ascends(
            &numbers,
            &session.sort(numbers.clone()).run().unwrap().result,
        );
    }
}

#[test]
fn nodes_compute_together() {
    let options = ClusterOptions {
        devices: Some("host:1".to_owned()),
        ..ClusterOptions::default()
    };
    let mut nodes = Nodes::in_threads(3, options).unwrap();
    assert_eq!((nodes.rank(), nodes.size()), (0, 3));
    let (a, b) = (matrix::<f32>(70, 50, 1), matrix::<f32>(50, 40, 2));
    let computed = nodes
        .matmul(&a, &b)
        .tile(17)
        .verify()
        .run()
        .unwrap()
        .unwrap();
    assert!(!computed.run.is_wrong() && computed.run.verification.is_some());
    let expected = product(&doubles(a.elements()), &doubles(b.elements()), 50, 40);
    are_near(
        &doubles(computed.result.elements()),
        &expected,
        allowed::<f32>(50),
    );
    let a = matrix::<f64>(65, 65, 3);
    is_factored(&a, &nodes.lu(&a).tile(20).run().unwrap().unwrap().result);
    let a = complex::<f32>(33, 50, 4);
    let found = nodes.fft2(&a).run().unwrap().unwrap();
    is_transformed(&a, found.result.elements());
    let numbers = with_specials(50_000, 5);
    ascends(
        &numbers,
        &nodes.sort(numbers.clone()).run().unwrap().unwrap().result,
    );
    nodes.leave().unwrap();
}

/// The product of factors with few bits, against the sums of the same numbers in doubles.
fn multiplies_few_bits<T: Factor<Sum = f32>>(
    session: &mut Session,
    stored: impl Fn(f64) -> T,
    double: impl Fn(&T) -> f64,
) {
    let [m, k, n] = [70, 90, 50];
    let matrix = |rows: usize, columns: usize, seed| {
        let numbers = numbers(rows * columns, seed).into_iter();
        let stored: Vec<T> = numbers.map(&stored).collect();
        DenseMatrix::new(rows as u32, columns as u32, stored).unwrap()
    };
    let (a, b) = (matrix(m, k, 40), matrix(k, n, 41));
    let run = session.matmul(&a, &b).tile(32).verify().run().unwrap();
    assert!(
        run.run
            .verification
            .as_ref()
            .is_some_and(|found| found.right)
    );
    let [a, b] = [&a, &b].map(|of| of.elements().iter().map(&double).collect::<Vec<_>>());
    let expected = product(&a, &b, k, n);
    are_near(
        &doubles(run.result.elements()),
        &expected,
        allowed::<f32>(k),
    );
}

#[test]
fn factors_of_few_bits_are_summed_in_singles() {
    let list = format!("host:1,{}:1=own", cpu_device().info.name);
    for devices in ["host:2", &list] {
        let mut session = Session::open_devices(devices).unwrap();
        multiplies_few_bits(&mut session, f16::from_f64, |of: &f16| of.to_f64());
        multiplies_few_bits(&mut session, bf16::from_f64, |of: &bf16| of.to_f64());
    }
}

#[test]
fn operations_that_run_again_compute_with_what_is_given_then() {
    // What was measured of tasks stays, and so does pinned memory.
    let list = format!("host:1,{}:1=own", cpu_device().info.name);
    let mut session = Session::open_devices(&list).unwrap();
    for (seed, n) in [96, 96, 64, 96].into_iter().enumerate() {
        multiplies::<f32>(&mut session, [n, n, n], 32, seed as u64);
        multiplies::<f32>(&mut session, [n, n, n], 32, 10 + seed as u64);
        for of in 20..22 {
            let a = matrix::<f64>(n, n, of + seed as u64);
            is_factored(&a, &session.lu(&a).tile(32).run().unwrap().result);
        }
        for of in 30..32 {
            let a = complex::<f32>(n, n, of + seed as u64);
            is_transformed(
                &a,
                session.fft2(&a).tile(32).run().unwrap().result.elements(),
            );
        }
    }
}

#[test]
fn a_transform_of_positive_numbers_is_right() {
    let numbers: Vec<f64> = numbers(2 * 1024 * 1024, 9)
        .iter()
        .map(|of| of.abs())
        .collect();
    let elements: Vec<Complex<f32>> = stored::<f32>(&numbers).as_chunks().0.to_vec();
    let a = DenseMatrix::new(1024, 1024, elements).unwrap();
    let mut session = Session::open_devices("host:2").unwrap();
    assert!(
        session
            .fft2(&a)
            .verify()
            .run()
            .unwrap()
            .run
            .verification
            .is_some()
    );
}

fn why(error: Result<impl Sized, Error>) -> String {
    match error {
        Ok(_) => panic!("it is wrong"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn wrong_arrays_are_named() {
    let mut session = Session::simulate("k40").unwrap();
    let (a, b) = (matrix::<f32>(3, 4, 1), matrix::<f32>(3, 4, 2));
    let said = why(session.matmul(&a, &b).run());
    assert!(said.contains("A has 4 columns, and B 3 rows"), "{said}");
    let said = why(session.cholesky(&a).run());
    assert!(said.contains("3 x 4") && said.contains("square"), "{said}");
    let said = why(session.lu(&a).run());
    assert!(said.contains("square"), "{said}");
    let said = why(DenseMatrix::new(2, 2, vec![1.0f32; 3]));
    assert!(said.contains("4 elements, and 3 are given"), "{said}");
    let said = why(DenseMatrix::<f32>::new(0, 2, vec![]));
    assert!(said.contains("at least one"), "{said}");
    let said = why(session.sort::<f32>(Vec::new()).run());
    assert!(said.contains("at least one"), "{said}");
    let indefinite = DenseMatrix::new(2, 2, vec![1.0f64, 0.0, 2.0, 1.0]).unwrap();
    let said = why(session.cholesky(&indefinite).run());
    assert!(said.contains("pivot of row 1"), "{said}");
    let singular = DenseMatrix::new(2, 2, vec![1.0f64, 2.0, 2.0, 4.0]).unwrap();
    let said = why(session.lu(&singular).run());
    assert!(said.contains("singular"), "{said}");
    let said = why(session.matmul(&indefinite, &singular).policy("best").run());
    assert!(said.contains("best"), "{said}");
    let said = why(session.matmul(&indefinite, &singular).tile(0).run());
    assert!(said.contains("at least 1 row"), "{said}");
    session.stop().set();
    let stopped = session.matmul(&indefinite, &singular).run();
    assert!(matches!(stopped, Err(Error::Stopped)));
    session.stop().clear();
    assert_eq!(
        session
            .matmul(&indefinite, &indefinite)
            .run()
            .unwrap()
            .result
            .elements(),
        [1.0, 0.0, 4.0, 1.0]
    );
}
