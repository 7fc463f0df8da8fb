//! Checks results without computing them again.
//!
//! A product C = A B is checked with random vectors x, as `C x = A (B x)` takes as many
//! operations as the matrices have numbers (R. Freivalds, "Probabilistic machines can use
//! less running time", 1977). The numbers of x are +1 or -1, and only those of a group of
//! C's columns are not 0: a vector a group of tiles, at most 16. All sums are in
//! double precision. A factorisation is checked as the product A = L L^T.
//!
//! # Tolerance
//!
//! Rounding changes each number of C by at most `u sqrt(k) |A| |B|` with high probability,
//! where u is the unit roundoff and k the depth (N. Higham and T. Mary, "A new approach to
//! probabilistic rounding error analysis", SIAM J. Sci. Comput. 2019, section 3; its factor
//! lambda is 1, which suffices in their experiments). For the factor of `A = L L^T` it is
//! the same with `|L| |L^T|`. By Hoeffding's inequality, the sum of the errors e of a row
//! with random signs exceeds `8 |e|` with a probability of `2 exp(-32)`, and
//! `|e| <= u sqrt(k) |row of A| |columns of B|` in the Euclidean norms. So
//!
//! `|C x - A (B x)| / (|row of A| |columns of B|) <= 8 (u sqrt(k) + 2 v sqrt(k + w))`
//!
//! for each row and group of columns. The last term is for the check's own sums, where v
//! is the unit roundoff of double precision and w the columns of a group.
//!
//! All cores divide the rows of a tile. Each sum has the same order on any number of cores.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::codelet::Precision;
use crate::graph::DatumId;
use crate::parallel;
use crate::random::uniform;
use crate::workload::task_set::{Matrix, Tile, TiledGraph};

use super::{DenseTask, Operation, PIECE, piece_rows};

/// Most vectors, each of which has a group of C's columns.
const GROUPS: usize = 16;

/// Standard deviations that are allowed.
const DEVIATIONS: f64 = 8.0;

/// Sums of a row, one a group.
type Sums = [f64; GROUPS];

/// The result of a check.
#[derive(Clone, Debug, PartialEq)]
pub struct Verification {
    /// The greatest difference of a row and a group of columns, relative to their norms;
    /// infinite if numbers are not finite.
    pub error: f64,
    /// The greatest error that is allowed.
    pub tolerance: f64,
    /// Where the error is greatest.
    pub row: u64,
    pub columns: Range<u64>,
}

impl Verification {
    /// Whether the result is right.
    pub fn right(&self) -> bool {
        self.error <= self.tolerance
    }
}

/// The numbers of a tile in memory.
pub fn numbers(bytes: &[u8], precision: Precision) -> Vec<f64> {
    match precision {
        Precision::F32 => doubles(bytes.as_chunks().0, |of| f32::from_ne_bytes(of).into()),
        Precision::F64 => doubles(bytes.as_chunks().0, f64::from_ne_bytes),
    }
}

fn doubles<const N: usize>(of: &[[u8; N]], read: impl Fn([u8; N]) -> f64 + Sync) -> Vec<f64> {
    let mut doubles = vec![0.0; of.len()];
    parallel::pieces(&mut doubles, PIECE, |piece, to| {
        let from = &of[piece * PIECE..];
        to.iter_mut()
            .zip(from)
            .for_each(|(to, from)| *to = read(*from));
    });
    doubles
}

impl DenseTask {
    /// Checks a result. `read` gives the numbers of a tile. `None` if `stop` was set
    /// meanwhile.
    ///
    /// # Errors
    /// Those of `read`.
    pub fn verify<E>(
        &self,
        tiled: &TiledGraph,
        mut read: impl FnMut(DatumId) -> Result<Vec<f64>, E>,
        stop: &AtomicBool,
    ) -> Result<Option<Verification>, E> {
        let mut check = ProductCheck::new(self);
        let mut each = |matrix, act: &mut dyn FnMut(Part)| {
            for (tile, datum) in tiled.of(matrix) {
                if stop.load(Ordering::Relaxed) {
                    return Ok(false);
                }
                act(Part::new(tile, read(*datum)?));
            }
            Ok(true)
        };
        let complete = match self.operation {
            Operation::Product { .. } => {
                each(Matrix::B, &mut |part| check.add_b(&part))?
                    && each(Matrix::A, &mut |part| check.add_a(&part))?
                    && each(Matrix::C, &mut |part| check.add_c(&part))?
            }
            Operation::Factorisation { .. } => {
                each(Matrix::L, &mut |part| {
                    check.add_b(&part.lower().transposed())
                })? && each(Matrix::L, &mut |part| check.add_a(&part.lower()))?
                    && each(Matrix::A, &mut |part| match part.on_diagonal() {
                        true => check.add_c(&part.mirrored()),
                        false => {
                            check.add_c(&part);
                            check.add_c(&part.transposed());
                        }
                    })?
            }
        };
        Ok(complete.then(|| check.result()))
    }
}

/// A part of a matrix.
struct Part {
    rows: Range<u64>,
    columns: Range<u64>,
    /// By rows.
    numbers: Vec<f64>,
}

impl Part {
    fn new(tile: &Tile, numbers: Vec<f64>) -> Self {
        Self {
            rows: tile.rows.clone(),
            columns: tile.columns.clone(),
            numbers,
        }
    }

    fn width(&self) -> usize {
        (self.columns.end - self.columns.start) as usize
    }

    fn on_diagonal(&self) -> bool {
        self.rows == self.columns
    }

    /// Calls `act` with each row and what `of` has for it, one item a row of the matrix.
    /// The results are in the order of the rows.
    fn each_row<T: Send, R: Send>(
        &self,
        of: &mut [T],
        act: impl Fn(&[f64], &mut T) -> R + Sync,
    ) -> impl Iterator<Item = R> {
        let width = self.width().max(1);
        let length = piece_rows(width);
        let of = &mut of[self.rows.start as usize..self.rows.end as usize];
        let results = parallel::pieces(of, length, |piece, of| {
            let rows = self.numbers[piece * length * width..].chunks_exact(width);
            let results = rows.zip(of).map(|(row, of)| act(row, of));
            results.collect::<Vec<R>>()
        });
        results.into_iter().flatten()
    }

    fn transposed(&self) -> Self {
        let width = self.width();
        let column = |column: usize| self.numbers.iter().skip(column).step_by(width).copied();
        Self {
            rows: self.columns.clone(),
            columns: self.rows.clone(),
            numbers: (0..width).flat_map(column).collect(),
        }
    }

    /// With zeros above the matrix's diagonal.
    fn lower(mut self) -> Self {
        if self.on_diagonal() {
            let width = self.width();
            for (row, numbers) in self.numbers.chunks_exact_mut(width).enumerate() {
                numbers[row + 1..].fill(0.0);
            }
        }
        self
    }

    /// With what is below the diagonal also above it.
    fn mirrored(mut self) -> Self {
        let width = self.width();
        for row in 0..width {
            for column in row + 1..width {
                self.numbers[row * width + column] = self.numbers[column * width + row];
            }
        }
        self
    }
}

/// The sums of a check. All of B comes before A.
struct ProductCheck {
    precision: Precision,
    depth: u64,
    /// Columns of a group: whole tiles.
    group: u64,
    /// All columns.
    columns: u64,
    seed: u64,
    /// B x, by row of B.
    bx: Vec<Sums>,
    /// The squares of B's columns, by group.
    b_squares: Sums,
    /// A (B x) and C x, by row.
    abx: Vec<Sums>,
    cx: Vec<Sums>,
    /// The squares of A's rows.
    a_squares: Vec<f64>,
}

impl ProductCheck {
    fn new(of: &DenseTask) -> Self {
        let (rows, columns, depth) = match of.operation {
            Operation::Product {
                rows,
                columns,
                depth,
            } => (rows, columns, depth),
            Operation::Factorisation { rows } => (rows, rows, rows),
        };
        let group = columns.div_ceil(GROUPS as u32);
        let zeros = |count: u32| vec![[0.0; GROUPS]; count as usize];
        Self {
            precision: of.precision,
            depth: depth.into(),
            group: u64::from(group).next_multiple_of(of.tile.into()),
            columns: columns.into(),
            // Not that of generated matrices.
            seed: of.seed.wrapping_add(1 << 32),
            bx: zeros(depth),
            b_squares: [0.0; GROUPS],
            abx: zeros(rows),
            cx: zeros(rows),
            a_squares: vec![0.0; rows as usize],
        }
    }

    fn add_b(&mut self, part: &Part) {
        let (group, signs) = self.signs(&part.columns);
        let squares = part.each_row(&mut self.bx, |numbers, bx| {
            bx[group] += dot(numbers, &signs);
            dot(numbers, numbers)
        });
        squares.for_each(|squares| self.b_squares[group] += squares);
    }

    fn add_a(&mut self, part: &Part) {
        let bx = &self.bx[part.columns.start as usize..];
        let squares = part.each_row(&mut self.abx, |numbers, abx| {
            let mut sums = *abx;
            for (number, bx) in numbers.iter().zip(bx) {
                for (sum, bx) in sums.iter_mut().zip(bx) {
                    *sum += number * bx;
                }
            }
            *abx = sums;
            dot(numbers, numbers)
        });
        let rows = self.a_squares[part.rows.start as usize..].iter_mut();
        rows.zip(squares).for_each(|(sum, squares)| *sum += squares);
    }

    fn add_c(&mut self, part: &Part) {
        let (group, signs) = self.signs(&part.columns);
        let added = part.each_row(&mut self.cx, |numbers, cx| {
            cx[group] += dot(numbers, &signs);
        });
        added.for_each(drop);
    }

    /// The group of a tile's columns, and their numbers of x.
    fn signs(&self, columns: &Range<u64>) -> (usize, Vec<f64>) {
        let sign = |column| match uniform(self.seed, column) < 0.5 {
            true => -1.0,
            false => 1.0,
        };
        let group = (columns.start / self.group) as usize;
        (group, columns.clone().map(sign).collect())
    }

    fn result(&self) -> Verification {
        let (mut worst, mut at) = (0.0, (0, 0));
        for (row, (abx, cx)) in self.abx.iter().zip(&self.cx).enumerate() {
            for group in 0..GROUPS {
                let difference = (abx[group] - cx[group]).abs();
                let norms = (self.a_squares[row] * self.b_squares[group]).sqrt();
                let error = match difference == 0.0 {
                    true => 0.0,
                    false => difference / norms,
                };
                let error = if error.is_nan() { f64::INFINITY } else { error };
                if error > worst {
                    (worst, at) = (error, (row as u64, group as u64));
                }
            }
        }
        let begin = at.1 * self.group;
        Verification {
            error: worst,
            tolerance: self.tolerance(),
            row: at.0,
            columns: begin..(begin + self.group).min(self.columns),
        }
    }

    fn tolerance(&self) -> f64 {
        let double = f64::EPSILON / 2.0;
        let unit = match self.precision {
            Precision::F32 => f64::from(f32::EPSILON) / 2.0,
            Precision::F64 => double,
        };
        let depth = self.depth as f64;
        let width = self.group.min(self.columns) as f64;
        DEVIATIONS * (unit * depth.sqrt() + 2.0 * double * (depth + width).sqrt())
    }
}

/// The sum of products. Eight partial sums let the compiler use vectors.
fn dot(one: &[f64], other: &[f64]) -> f64 {
    let (one, one_rest) = one.as_chunks::<8>();
    let (other, other_rest) = other.as_chunks::<8>();
    let mut sums = [0.0; 8];
    for (one, other) in one.iter().zip(other) {
        for lane in 0..8 {
            sums[lane] += one[lane] * other[lane];
        }
    }
    let rest = one_rest
        .iter()
        .zip(other_rest)
        .map(|(one, other)| one * other);
    sums.iter().sum::<f64>() + rest.sum::<f64>()
}
