//! The kernels of tile operations compared with loops in double precision. Tiles have
//! gaps between their rows: those of inputs hold NaN, those of results numbers that have
//! to stay.

use std::sync::Arc;

use bytemuck::Pod;
use pdawl::codelet::tile::{GemmTile, PotrfTile, SyrkTile, TrsmTile};
use pdawl::codelet::{Codelet, Memory, Precision, Value};
use pdawl::runtime::Devices;

use super::harness::{Bench, contents, launch, read, write};

/// Numbers between the rows of a tile, and before its first: multiples of 16 bytes.
const GAP: usize = 4;
const FIRST: usize = 8;

/// A number that no operation makes.
const POISON: f64 = 7777.0;

/// A matrix by rows, in double precision.
struct Dense {
    rows: usize,
    columns: usize,
    numbers: Vec<f64>,
}

impl Dense {
    fn new(rows: u32, columns: u32, of: impl Fn(usize, usize) -> f64) -> Self {
        let (rows, columns) = (rows as usize, columns as usize);
        let numbers = (0..rows * columns).map(|at| of(at / columns, at % columns));
        Self {
            rows,
            columns,
            numbers: numbers.collect(),
        }
    }

    /// Numbers between -1 and 1 that single precision represents.
    fn random(rows: u32, columns: u32, seed: u64) -> Self {
        let mut rng = fastrand::Rng::with_seed(seed);
        let numbers =
            (0..rows as usize * columns as usize).map(|_| f64::from(2.0 * rng.f32() - 1.0));
        Self {
            rows: rows as usize,
            columns: columns as usize,
            numbers: numbers.collect(),
        }
    }

    fn at(&self, row: usize, column: usize) -> f64 {
        self.numbers[row * self.columns + column]
    }

    /// In memory, with `gap` between the rows.
    fn memory<T: Tested>(&self, gap: f64) -> Vec<T> {
        let stride = self.columns + GAP;
        let mut memory = vec![T::of(gap); FIRST + self.rows * stride];
        for (row, numbers) in self.numbers.chunks(self.columns).enumerate() {
            for (column, number) in numbers.iter().enumerate() {
                memory[FIRST + row * stride + column] = T::of(*number);
            }
        }
        memory
    }
}

trait Tested: Pod {
    const PRECISION: Precision;
    const EPSILON: f64;
    fn of(number: f64) -> Self;
    fn double(self) -> f64;
}

impl Tested for f32 {
    const PRECISION: Precision = Precision::F32;
    const EPSILON: f64 = f32::EPSILON as f64;
    fn of(number: f64) -> Self {
        number as f32
    }
    fn double(self) -> f64 {
        self.into()
    }
}

impl Tested for f64 {
    const PRECISION: Precision = Precision::F64;
    const EPSILON: f64 = f64::EPSILON;
    fn of(number: f64) -> Self {
        number
    }
    fn double(self) -> f64 {
        self
    }
}

/// Launches a codelet on these inputs and a last matrix that it updates, which is
/// returned. `values` are the arguments after the memories for tiles without gaps, in
/// which the strides begin at `strides`.
fn run<T: Tested>(
    bench: &mut Bench,
    (codelet, units): (Codelet, u64),
    matrices: &[&Dense],
    values: &[Value],
    strides: usize,
) -> Dense {
    let count = matrices.len();
    let queue = bench.queue();
    let mut args = Vec::new();
    let mut last = None;
    for (index, matrix) in matrices.iter().enumerate() {
        let gap = if index + 1 == count { POISON } else { f64::NAN };
        let host = bench.host(&matrix.memory::<T>(gap));
        let buffer = bench.buffer(host.bytes);
        bench.submit(queue, write(&host, buffer), &[]);
        args.push(Value::Memory(Memory::Device(buffer)));
        last = Some((host, buffer));
    }
    args.extend(values);
    for (index, matrix) in matrices.iter().enumerate() {
        let at = count + strides + index;
        args[at] = Value::U32((matrix.columns + GAP) as u32);
        args[at + count] = Value::U64(FIRST as u64);
    }
    bench.submit(queue, launch(&Arc::new(codelet), units, args), &[]);
    let (host, buffer) = last.expect("a matrix");
    let event = bench.submit(queue, read(buffer, &host), &[]);
    bench.done(event);
    bench.backend.free_queue(queue);
    let memory = contents::<T>(&host);
    let matrix = matrices[count - 1];
    let stride = matrix.columns + GAP;
    for (at, number) in memory.iter().enumerate() {
        let inside = at >= FIRST && (at - FIRST) % stride < matrix.columns;
        assert!(inside || number.double() == POISON, "{at} is a gap");
    }
    Dense::new(matrix.rows as u32, matrix.columns as u32, |row, column| {
        memory[FIRST + row * stride + column].double()
    })
}

/// Asserts that matrices are equal, at least in their lower triangles if `lower`.
/// `terms` is the length of the sums, and `scale` the size of their numbers.
fn check<T: Tested>(
    found: &Dense,
    lower: bool,
    (terms, scale): (u32, f64),
    right: impl Fn(usize, usize) -> f64,
) {
    let allowed = 4.0 * T::EPSILON * f64::from(terms) * scale;
    for row in 0..found.rows {
        let end = if lower { row + 1 } else { found.columns };
        for column in 0..end {
            let (found, right) = (found.at(row, column), right(row, column));
            assert!(
                (found - right).abs() <= allowed,
                "{row}, {column}: {found} for {right}"
            );
        }
    }
}

/// What a result holds before a product with this factor of it.
fn before(rows: u32, columns: u32, beta: f64) -> Dense {
    match beta {
        0.0 => Dense::new(rows, columns, |_, _| f64::NAN),
        _ => Dense::random(rows, columns, 3),
    }
}

fn gemm<T: Tested>(bench: &mut Bench, tile: GemmTile) {
    let (m, n, k) = (tile.rows, tile.columns, tile.depth);
    let a = Dense::random(m, k, 1);
    let b = match tile.transposed {
        true => Dense::random(n, k, 2),
        false => Dense::random(k, n, 2),
    };
    let c = before(m, n, tile.beta);
    let codelet = (tile.codelet(), tile.units());
    let found = run::<T>(bench, codelet, &[&a, &b, &c], &tile.values(), 3);
    check::<T>(&found, false, (k + 1, 1.0), |i, j| {
        let b = |l| {
            if tile.transposed {
                b.at(j, l)
            } else {
                b.at(l, j)
            }
        };
        let sum: f64 = (0..k as usize).map(|l| a.at(i, l) * b(l)).sum();
        let old = if tile.beta == 0.0 {
            0.0
        } else {
            tile.beta * c.at(i, j)
        };
        tile.alpha * sum + old
    });
}

/// Sizes that groups divide, that are multiples of 16 bytes, and others.
const PRODUCTS: [[u32; 3]; 4] = [[128, 64, 48], [68, 132, 20], [65, 130, 33], [1, 3, 1]];

fn products<T: Tested>() {
    let mut bench = Bench::cpu();
    for [m, n, k] in PRODUCTS {
        let tile = GemmTile::new(T::PRECISION, m, n, k);
        gemm::<T>(&mut bench, tile);
        gemm::<T>(&mut bench, tile.factors(0.5, -2.0));
        gemm::<T>(&mut bench, tile.transposed().factors(-1.0, 1.0));
    }
}

#[test]
fn products_of_single_precision_are_right() {
    products::<f32>();
}

#[test]
fn products_of_double_precision_are_right() {
    products::<f64>();
}

#[test]
fn products_of_many_groups_are_right() {
    let mut bench = Bench::cpu();
    // 264 groups of 128 x 128, and 900 of 64 x 64.
    gemm::<f32>(
        &mut bench,
        GemmTile::new(Precision::F32, 127, 264 * 128 - 1, 9).factors(-1.0, 1.0),
    );
    gemm::<f64>(
        &mut bench,
        GemmTile::new(Precision::F64, 63, 900 * 64 - 1, 17).factors(-1.0, 1.0),
    );
}

fn syrk<T: Tested>(bench: &mut Bench, rows: u32, depth: u32, (alpha, beta): (f64, f64)) {
    let a = Dense::random(rows, depth, 1);
    let c = before(rows, rows, beta);
    let tile = SyrkTile {
        precision: T::PRECISION,
        rows,
        depth,
        alpha,
        beta,
    };
    let codelet = (tile.codelet(), tile.units());
    let found = run::<T>(bench, codelet, &[&a, &c], &tile.values(), 2);
    check::<T>(&found, true, (depth + 1, 1.0), |i, j| {
        let sum: f64 = (0..depth as usize).map(|l| a.at(i, l) * a.at(j, l)).sum();
        let old = if beta == 0.0 { 0.0 } else { beta * c.at(i, j) };
        alpha * sum + old
    });
}

#[test]
fn symmetric_updates_are_right() {
    let mut bench = Bench::cpu();
    for (rows, depth) in [(192, 64), (131, 35), (1, 1)] {
        for factors in [(-1.0, 1.0), (0.5, 0.0)] {
            syrk::<f32>(&mut bench, rows, depth, factors);
            syrk::<f64>(&mut bench, rows, depth, factors);
        }
    }
}

/// A triangle with a diagonal that dominates its rows, and NaN above.
fn dominant(rows: u32) -> Dense {
    let random = Dense::random(rows, rows, 4);
    let small = f64::from(rows);
    Dense::new(rows, rows, |i, j| match i.cmp(&j) {
        std::cmp::Ordering::Less => f64::NAN,
        std::cmp::Ordering::Equal => 1.0 + random.at(i, j).abs(),
        std::cmp::Ordering::Greater => f64::from((random.at(i, j) / small) as f32),
    })
}

fn trsm<T: Tested>(bench: &mut Bench, rows: u32, columns: u32) {
    let (l, x) = (dominant(columns), Dense::random(rows, columns, 5));
    // B = X L^T, so that X is the solution, up to the rounding of B.
    let b = Dense::new(rows, columns, |i, j| {
        (0..=j).map(|k| x.at(i, k) * l.at(j, k)).sum()
    });
    let tile = TrsmTile {
        precision: T::PRECISION,
        rows,
        columns,
    };
    let codelet = (tile.codelet(), tile.units());
    let found = run::<T>(bench, codelet, &[&l, &b], &tile.values(), 2);
    check::<T>(&found, false, (columns + 1, 2.0), |i, j| x.at(i, j));
}

fn potrf<T: Tested>(bench: &mut Bench, rows: u32) {
    let l = dominant(rows);
    // A = L L^T, with NaN above the diagonal.
    let a = Dense::new(rows, rows, |i, j| match i < j {
        true => f64::NAN,
        false => (0..=j).map(|k| l.at(i, k) * l.at(j, k)).sum(),
    });
    let tile = PotrfTile {
        precision: T::PRECISION,
        rows,
    };
    let codelet = (tile.codelet(), tile.units());
    let found = run::<T>(bench, codelet, &[&a], &tile.values(), 1);
    check::<T>(&found, true, (rows + 1, 4.0), |i, j| l.at(i, j));
}

#[test]
fn triangular_solutions_are_right() {
    let mut bench = Bench::cpu();
    for (rows, columns) in [(128, 96), (131, 71), (15, 163), (1, 1)] {
        trsm::<f32>(&mut bench, rows, columns);
        trsm::<f64>(&mut bench, rows, columns);
    }
}

#[test]
fn cholesky_factors_are_right() {
    let mut bench = Bench::cpu();
    for rows in [1, 2, 31, 33, 64, 97, 160, 227] {
        potrf::<f32>(&mut bench, rows);
        potrf::<f64>(&mut bench, rows);
    }
}

#[test]
fn a_matrix_without_a_factor_leaves_numbers_that_are_not_finite() {
    let mut bench = Bench::cpu();
    let a = Dense::new(65, 65, |i, j| if i == j { -1.0 } else { 0.0 });
    let tile = PotrfTile {
        precision: Precision::F64,
        rows: 65,
    };
    let codelet = (tile.codelet(), tile.units());
    let found = run::<f64>(&mut bench, codelet, &[&a], &tile.values(), 1);
    assert!(!found.at(64, 64).is_finite());
}
