//! Every operation in both precisions, against loops in double precision.

use bytemuck::Pod;

use super::*;
use crate::codelet::{Codelet, HostValue};
use crate::random::uniform;

/// Sizes around those of blocks and leaves.
const SIZES: [u32; 9] = [1, 2, 31, 33, 64, 65, 97, 130, 163];

/// Numbers between the rows of a tile, and before its first.
const GAP: usize = 3;
const FIRST: usize = 5;

/// A number that no operation makes.
const POISON: f64 = 7777.0;

/// A matrix by rows, in double precision.
#[derive(Clone)]
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
        Self::new(rows, columns, |row, column| {
            let index = row as u64 * u64::from(columns) + column as u64;
            2.0 * uniform(seed, index) - 1.0
        })
    }

    fn poison(rows: u32, columns: u32) -> Self {
        Self::new(rows, columns, |_, _| POISON)
    }

    fn at(&self, row: usize, column: usize) -> f64 {
        self.numbers[row * self.columns + column]
    }
}

/// A precision as these tests use it.
trait Tested: Pod + Default {
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

/// Runs a codelet on matrices in memories with gaps, unit by unit and some units at
/// once, and returns the matrices as they are then. `values` are the arguments after
/// the memories for tiles without gaps; `strides` is the place of the first stride.
fn run<T: Tested>(
    codelet: &Codelet,
    units: u64,
    matrices: &[&Dense],
    values: &[Value],
    strides: usize,
) -> Vec<Dense> {
    let mut memories: Vec<Vec<T>> = (matrices.iter())
        .map(|matrix| {
            let stride = matrix.columns + GAP;
            let mut memory = vec![T::of(POISON); FIRST + matrix.rows * stride];
            for row in 0..matrix.rows {
                for column in 0..matrix.columns {
                    memory[FIRST + row * stride + column] = T::of(matrix.at(row, column));
                }
            }
            memory
        })
        .collect();
    let mut args: Vec<HostValue> = (memories.iter_mut())
        .map(|memory| HostValue::Memory {
            address: memory.as_mut_ptr().cast(),
            bytes: size_of_val(&memory[..]) as u64,
        })
        .collect();
    args.extend(values.iter().map(|value| value.plain().unwrap()));
    let count = matrices.len();
    for (index, matrix) in matrices.iter().enumerate() {
        let at = count + strides + index;
        args[at] = HostValue::U32((matrix.columns + GAP) as u32);
        args[at + count] = HostValue::U64(FIRST as u64);
    }
    let host = codelet.host.unwrap();
    let (first, last) = (units / 3, 2 * units / 3);
    for tile in [last..units, 0..first, first..last] {
        // SAFETY: the memories hold the matrices, and no other thread uses them.
        unsafe { host(&args, 0, tile) }
    }
    let read = |(matrix, memory): (&&Dense, &Vec<T>)| {
        let stride = matrix.columns + GAP;
        for (at, number) in memory.iter().enumerate() {
            let inside = at >= FIRST && (at - FIRST) % stride < matrix.columns;
            assert!(inside || number.double() == POISON, "{at} is a gap");
        }
        Dense::new(matrix.rows as u32, matrix.columns as u32, |row, column| {
            memory[FIRST + row * stride + column].double()
        })
    };
    matrices.iter().zip(&memories).map(read).collect()
}

/// Asserts that two matrices are equal, at least in their lower triangles if `lower`.
/// `terms` is the length of the sums, and `scale` the size of their numbers.
fn check<T: Tested>(found: &Dense, right: &Dense, lower: bool, terms: u32, scale: f64) {
    let allowed = 4.0 * T::EPSILON * f64::from(terms) * scale;
    for row in 0..right.rows {
        let end = if lower { row + 1 } else { right.columns };
        for column in 0..end {
            let (found, right) = (found.at(row, column), right.at(row, column));
            assert!(
                (found - right).abs() <= allowed,
                "{row}, {column}: {found} for {right}"
            );
        }
    }
}

/// Three sizes, of which each takes every value.
fn sizes() -> impl Iterator<Item = [u32; 3]> {
    (0..SIZES.len())
        .flat_map(|i| [(i, i), (i + 4, i + 7), (i + 1, i + 3)].map(|(j, k)| [i, j, k]))
        .map(|of| of.map(|at| SIZES[at % SIZES.len()]))
}

/// Factors of products; the first leaves C unread.
const FACTORS: [(f64, f64); 3] = [(1.0, 0.0), (-1.0, 1.0), (0.5, -2.0)];

fn gemm<T: Tested>() {
    for ([m, n, k], transposed) in sizes().flat_map(|size| [(size, false), (size, true)]) {
        for (alpha, beta) in FACTORS {
            let a = Dense::random(m, k, 1);
            let b = match transposed {
                true => Dense::random(n, k, 2),
                false => Dense::random(k, n, 2),
            };
            let c = match beta {
                0.0 => Dense::poison(m, n),
                _ => Dense::random(m, n, 3),
            };
            let mut tile = GemmTile::new(T::PRECISION, m, n, k).factors(alpha, beta);
            tile.transposed = transposed;
            let matrices = [&a, &b, &c];
            let found = run::<T>(&tile.codelet(), tile.units(), &matrices, &tile.values(), 3);
            let right = Dense::new(m, n, |i, j| {
                let b = |l| if transposed { b.at(j, l) } else { b.at(l, j) };
                let sum: f64 = (0..k as usize).map(|l| a.at(i, l) * b(l)).sum();
                alpha * sum + if beta == 0.0 { 0.0 } else { beta * c.at(i, j) }
            });
            check::<T>(&found[2], &right, false, k + 1, 1.0);
        }
    }
}

fn syrk<T: Tested>() {
    for ([n, k, _], (alpha, beta)) in sizes().zip(FACTORS.into_iter().cycle()) {
        let a = Dense::random(n, k, 1);
        let c = match beta {
            0.0 => Dense::poison(n, n),
            _ => Dense::random(n, n, 3),
        };
        let tile = SyrkTile {
            precision: T::PRECISION,
            rows: n,
            depth: k,
            alpha,
            beta,
        };
        let found = run::<T>(&tile.codelet(), tile.units(), &[&a, &c], &tile.values(), 2);
        let right = Dense::new(n, n, |i, j| {
            let sum: f64 = (0..k as usize).map(|l| a.at(i, l) * a.at(j, l)).sum();
            alpha * sum + if beta == 0.0 { 0.0 } else { beta * c.at(i, j) }
        });
        check::<T>(&found[1], &right, true, k + 1, 1.0);
    }
}

/// A triangle with a diagonal that dominates its rows, and poison above.
fn dominant(rows: u32) -> Dense {
    let random = Dense::random(rows, rows, 4);
    let rows_f64 = f64::from(rows);
    Dense::new(rows, rows, |i, j| match i.cmp(&j) {
        std::cmp::Ordering::Less => POISON,
        std::cmp::Ordering::Equal => 1.0 + random.at(i, j).abs(),
        std::cmp::Ordering::Greater => (random.at(i, j) / rows_f64) as f32 as f64,
    })
}

fn trsm<T: Tested>() {
    for [m, n, _] in sizes() {
        let (l, x) = (dominant(n), Dense::random(m, n, 5));
        // B = X L^T, so that X is the solution, up to the rounding of B.
        let b = Dense::new(m, n, |i, j| (0..=j).map(|k| x.at(i, k) * l.at(j, k)).sum());
        let tile = TrsmTile {
            precision: T::PRECISION,
            rows: m,
            columns: n,
        };
        let found = run::<T>(&tile.codelet(), tile.units(), &[&l, &b], &tile.values(), 2);
        check::<T>(&found[1], &x, false, n + 1, 2.0);
    }
}

fn potrf<T: Tested>() {
    for n in SIZES {
        let l = dominant(n);
        // A = L L^T, with poison above the diagonal.
        let a = Dense::new(n, n, |i, j| match i < j {
            true => POISON,
            false => (0..=j).map(|k| l.at(i, k) * l.at(j, k)).sum(),
        });
        let tile = PotrfTile {
            precision: T::PRECISION,
            rows: n,
        };
        let found = run::<T>(&tile.codelet(), tile.units(), &[&a], &tile.values(), 1);
        check::<T>(&found[0], &l, true, n + 1, 4.0);
    }
}

#[test]
fn products_are_right() {
    gemm::<f32>();
    gemm::<f64>();
}

#[test]
fn symmetric_updates_are_right() {
    syrk::<f32>();
    syrk::<f64>();
}

#[test]
fn triangular_solutions_are_right() {
    trsm::<f32>();
    trsm::<f64>();
}

#[test]
fn cholesky_factors_are_right() {
    potrf::<f32>();
    potrf::<f64>();
}

#[test]
fn a_matrix_without_a_factor_leaves_numbers_that_are_not_finite() {
    let a = Dense::new(65, 65, |i, j| if i == j { -1.0 } else { 0.0 });
    let tile = PotrfTile {
        precision: Precision::F64,
        rows: 65,
    };
    let found = run::<f64>(&tile.codelet(), 1, &[&a], &tile.values(), 1);
    assert!(!found[0].at(64, 64).is_finite());
}

#[test]
fn operations_are_counted_as_lapack_counts_them() {
    let (precision, n) = (Precision::F64, 100);
    // A factorisation of 2 x 2 tiles has the operations of one of twice the rows.
    let whole = PotrfTile {
        precision,
        rows: 2 * n,
    };
    let parts = 2.0 * PotrfTile { precision, rows: n }.cost().flops
        + TrsmTile {
            precision,
            rows: n,
            columns: n,
        }
        .cost()
        .flops
        + SyrkTile {
            precision,
            rows: n,
            depth: n,
            alpha: -1.0,
            beta: 1.0,
        }
        .cost()
        .flops;
    assert!((whole.cost().flops / parts - 1.0).abs() < 1e-12);
}
