use super::*;
use crate::Precision;
use crate::host::run_on_threads;
use crate::lu::{LuPanel, LuRow};

fn memory<T>(numbers: &mut [T]) -> HostValue {
    HostValue::Memory {
        address: numbers.as_mut_ptr().cast(),
        bytes: size_of_val(numbers) as u64,
    }
}

fn number(value: usize) -> HostValue {
    HostValue::U32(value as u32)
}

/// Where a matrix begins in its memory, and its stride.
fn place(first: usize, stride: usize) -> [HostValue; 2] {
    [HostValue::U64(first as u64), number(stride)]
}

/// A matrix within a larger memory, whose other numbers are none.
fn inside(block: &[f64], width: usize, (first, stride): (usize, usize)) -> Vec<f64> {
    let mut memory = vec![f64::NAN; first];
    for row in block.chunks(width) {
        memory.extend_from_slice(row);
        memory.resize(memory.len() + stride - width, f64::NAN);
    }
    memory
}

/// The matrix within a memory, all of whose other numbers are none.
fn taken(memory: &[f64], width: usize, (first, stride): (usize, usize)) -> Vec<f64> {
    assert!(memory[..first].iter().all(|number| number.is_nan()));
    let rows = memory[first..].chunks(stride);
    rows.flat_map(|row| {
        assert!(row[width..].iter().all(|number| number.is_nan()));
        row[..width].to_vec()
    })
    .collect()
}

/// Runs the units of a codelet one by one, the last first.
fn run(kernel: crate::SharedKernel, args: &[HostValue], units: u64) {
    for unit in (0..units).rev() {
        // SAFETY: the memories hold what the codelet documents.
        unsafe { kernel(args, 0, unit..unit + 1, 1) }
    }
}

/// The rows of a block after its exchanges.
fn exchanged(block: &[f64], width: usize, pivots: &[u32], first: usize) -> Vec<f64> {
    let mut block = block.to_vec();
    for (row, pivot) in pivots.iter().enumerate() {
        for column in 0..width {
            block.swap(
                row * width + column,
                (*pivot as usize - first) * width + column,
            );
        }
    }
    block
}

/// Checks `P A = L U` and `P B = [L X; rest]`, where each pivot is the greatest of its column.
#[test]
fn a_panel_has_its_factors_and_the_columns_beside_it_follow() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    for (m, n, w) in [
        (1, 1, 2),
        (5, 2, 1),
        (70, 31, 65),
        (33, 33, 64),
        (130, 65, 3),
        (300, 64, 130),
    ] {
        let first = 10 * n;
        let mut random =
            |count: usize| -> Vec<f64> { (0..count).map(|_| 2.0 * random.f64() - 1.0).collect() };
        let (a, beside) = (random(m * n), random(m * w));
        let (of_a, of_b) = ((3, n + 2), (7, w + 1));
        let (mut lu, mut pivots) = (inside(&a, n, of_a), vec![u32::MAX; n + 5]);
        let args = [memory(&mut lu), memory(&mut pivots)];
        let sizes = [m, n, first].map(number);
        let places = [place(of_a.0, of_a.1).to_vec(), vec![HostValue::U64(5)]].concat();
        run(panel::<f64>, &[&args[..], &sizes, &places].concat(), 1);
        let mut x = inside(&beside, w, of_b);
        let units = LuRow {
            precision: Precision::F64,
            rows: m as u32,
            columns: w as u32,
            depth: n as u32,
            first: first as u32,
        }
        .units();
        let memories = [memory(&mut lu), memory(&mut pivots), memory(&mut x)];
        let sizes = [m, w, n, first].map(number);
        let places = [
            place(of_a.0, of_a.1).to_vec(),
            vec![HostValue::U64(5)],
            place(of_b.0, of_b.1).to_vec(),
        ];
        let places = places.concat();
        run(
            row::<f64>,
            &[&memories[..], &sizes, &places].concat(),
            units,
        );
        let (lu, x) = (taken(&lu, n, of_a), taken(&x, w, of_b));
        assert!(pivots[..5].iter().all(|pivot| *pivot == u32::MAX));
        let pivots = &pivots[5..];
        let l = |i: usize, k: usize| match i.cmp(&k) {
            std::cmp::Ordering::Less => 0.0,
            std::cmp::Ordering::Equal => 1.0,
            std::cmp::Ordering::Greater => lu[i * n + k],
        };
        assert!(
            (0..m).all(|i| (0..n).all(|k| l(i, k).abs() <= 1.0)),
            "a pivot is not the greatest"
        );
        let (pa, pb) = (
            exchanged(&a, n, pivots, first),
            exchanged(&beside, w, pivots, first),
        );
        for i in 0..m {
            for j in 0..n {
                let product: f64 = (0..=j).map(|k| l(i, k) * lu[k * n + j]).sum();
                assert!(
                    (product - pa[i * n + j]).abs() < 1e-12,
                    "A {m} {n}: {i} {j}"
                );
            }
            for j in 0..w {
                let product: f64 = match i < n {
                    true => (0..=i).map(|k| l(i, k) * x[k * w + j]).sum(),
                    // Only its rows are exchanged.
                    false => x[i * w + j],
                };
                assert!(
                    (product - pb[i * w + j]).abs() < 1e-12,
                    "B {m} {n}: {i} {j}"
                );
            }
        }
        let mut late = inside(&beside, w, of_b);
        let pivots_of_rows = [
            pivots,
            &(n..m).map(|row| (first + row) as u32).collect::<Vec<_>>(),
        ];
        let mut pivots_of_rows = pivots_of_rows.concat();
        let args = [memory(&mut pivots_of_rows), memory(&mut late)];
        let sizes = [m, w, first].map(number);
        let places = [vec![HostValue::U64(0)], place(of_b.0, of_b.1).to_vec()].concat();
        run(
            exchange::<f64>,
            &[&args[..], &sizes, &places].concat(),
            units,
        );
        assert_eq!(taken(&late, w, of_b), pb);
        let cost = LuPanel {
            precision: Precision::F64,
            rows: m as u32,
            columns: n as u32,
            first: 0,
        }
        .cost();
        assert!(cost.flops > 0.0);
    }
}

/// A panel that threads share.
#[test]
fn a_panel_on_threads_solves_its_system() {
    const THREADS: usize = 3;
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    for (m, n) in [(700, 403), (517, 517), (3500, 37)] {
        let first = 7;
        let a: Vec<f64> = (0..m * n).map(|_| 2.0 * random.f64() - 1.0).collect();
        let of_a = (11, n + 3);
        let (mut lu, mut pivots) = (inside(&a, n, of_a), vec![u32::MAX; n]);
        let args = [memory(&mut lu), memory(&mut pivots)];
        let sizes = [m, n, first].map(number);
        let places = [&place(of_a.0, of_a.1)[..], &[HostValue::U64(0)]].concat();
        let args = [&args[..], &sizes, &places].concat();
        run_on_threads(panel::<f64>, &args, 1, THREADS);
        let lu = taken(&lu, n, of_a);
        let right = exchanged(&a, n, &pivots, first);
        for i in 0..m {
            let mut product = vec![0.0; n];
            for k in 0..n.min(i + 1) {
                let factor = if k == i { 1.0 } else { lu[i * n + k] };
                assert!(factor.abs() <= 1.0, "a pivot is not the greatest");
                for j in k..n {
                    product[j] += factor * lu[k * n + j];
                }
            }
            for j in 0..n {
                let error = (product[j] - right[i * n + j]).abs();
                assert!(error < 1e-11, "{m} {n}: {i} {j}: {error}");
            }
        }
    }
}

/// The first of equal numbers is the pivot, whichever thread has it; a column of zeros has
/// none.
#[test]
fn threads_find_the_first_of_equal_pivots() {
    const THREADS: usize = 3;
    let rows = 4000;
    for (row, later, expected) in [(0, 3999, 0), (2500, 3999, 2500), (1, 1400, 1), (7, 7, 7)] {
        let mut a = vec![0.5; rows];
        (a[row], a[later]) = (-2.0, 2.0);
        assert_eq!(pivots_on(THREADS, &mut a), [expected], "{row} {later}");
        assert!(a[1..].iter().all(|number: &f64| number.abs() <= 1.0));
    }
    assert_eq!(pivots_on(THREADS, &mut vec![0.0; rows]), [NO_PIVOT]);
    let mut late = vec![0.0; rows];
    late[rows - 1] = f64::NAN;
    assert_eq!(pivots_on(THREADS, &mut late), [NOT_FINITE]);
}

/// The pivot of a panel of one column.
fn pivots_on(threads: usize, a: &mut [f64]) -> Vec<u32> {
    let (rows, mut pivots) = (a.len(), vec![7; 1]);
    let args = [memory(a), memory(&mut pivots)];
    let sizes = [rows, 1, 0].map(number);
    let places = [&place(0, 1)[..], &[HostValue::U64(0)]].concat();
    let args = [&args[..], &sizes, &places].concat();
    run_on_threads(panel::<f64>, &args, 1, threads);
    pivots
}

/// What a column far from the first has instead of a pivot; the columns before it have
/// theirs.
#[test]
fn a_late_column_without_a_pivot_is_reported() {
    let (rows, columns, bad) = (150, 101, 77);
    for (value, expected) in [
        (0.0, NO_PIVOT),
        (f64::NAN, NOT_FINITE),
        (f64::INFINITY, NOT_FINITE),
    ] {
        let mut random = fastrand::Rng::with_seed(3);
        let mut a: Vec<f64> = (0..rows * columns).map(|_| random.f64() - 0.5).collect();
        let (of, count) = (memory(&mut a), number(columns));
        for row in 0..rows {
            // A column of zeros, or one number in the last row.
            if value == 0.0 || row == rows - 1 {
                a[row * columns + bad] = value;
            }
        }
        let mut pivots = vec![0; columns];
        let args = [of, memory(&mut pivots), number(rows), count, number(0)];
        let places = [&place(0, columns)[..], &[HostValue::U64(0)]].concat();
        run(panel::<f64>, &[&args[..], &places].concat(), 1);
        assert!(pivots[..bad].iter().all(|pivot| *pivot < rows as u32));
        assert_eq!(pivots[bad], expected, "{value}");
    }
}

/// What a column has instead of a pivot.
#[test]
fn a_column_without_a_pivot_is_reported() {
    let pivots_of = |a: [f32; 9]| {
        let (mut a, mut pivots) = (a, [0; 3]);
        let args = [memory(&mut a), memory(&mut pivots)];
        let sizes = [3, 3, 0].map(number);
        let places = [place(0, 3).to_vec(), vec![HostValue::U64(0)]].concat();
        run(panel::<f32>, &[&args[..], &sizes, &places].concat(), 1);
        pivots
    };
    let singular = pivots_of([1.0, 2.0, 3.0, 2.0, 4.0, 6.0, 0.0, 0.0, 5.0]);
    assert_eq!(singular[..2], [1, NO_PIVOT]);
    for number in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let found = pivots_of([1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, number, 2.0]);
        assert_eq!(found[..2], [0, NOT_FINITE], "{number}");
    }
}
