//! The solution X of `X L^T = B` with a lower triangle L, in the place of B.
//!
//! ## Arguments
//!
//! | # | argument | type | meaning |
//! |---|---|---|---|
//! | 0 | `l` | memory | L, `n x n`, without zeros on the diagonal |
//! | 1 | `b` | memory | B, `m x n`, then X; does not overlap `l` |
//! | 2 | `m` | u32 | rows of B |
//! | 3 | `n` | u32 | columns of B, rows of L |
//! | 4, 5 | `ldl`, `ldb` | u32 | numbers from one row to the next |
//! | 6, 7 | `l_first`, `b_first` | u64 | numbers before the first |
//!
//! A unit is [`BLOCK`] rows of B, which depend on no others.

use std::ops::Range;

use super::matrix::{Matrix, Number, pieces};
use super::{BLOCK, LEAF, host, middle, opencl};
use crate::host::{Arguments, Vectorised, for_each_piece, piece, vectorised};
use crate::library::{Library, LibraryCall, Operand, Side, are_sizes, operand, u32_at};
use crate::{Codelet, Cost, HostValue, LibraryKernel, Precision, Value};

/// A triangular solution; both tiles fill their memories.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrsmTile {
    pub precision: Precision,
    /// Rows of B.
    pub rows: u32,
    /// Columns of B, rows of L.
    pub columns: u32,
}

impl TrsmTile {
    /// Blocks of rows.
    pub fn units(&self) -> u64 {
        self.rows.div_ceil(BLOCK).into()
    }

    /// A multiplication, a subtraction or a division a number of L and row of B; L
    /// read once, B read and written.
    pub fn cost(&self) -> Cost {
        let [rows, columns] = [self.rows, self.columns].map(f64::from);
        Cost {
            flops: rows * columns * columns,
            bytes: self.precision.bytes() as f64 * (columns * columns + 2.0 * rows * columns),
        }
    }

    /// The arguments after the two memories.
    pub fn values(&self) -> [Value; 6] {
        [
            Value::U32(self.rows),
            Value::U32(self.columns),
            Value::U32(self.columns),
            Value::U32(self.columns),
            Value::U64(0),
            Value::U64(0),
        ]
    }

    /// The codelet of all solutions of this precision.
    pub fn codelet(&self) -> Codelet {
        Codelet {
            name: self
                .precision
                .choose("trsm-tile-f32", "trsm-tile-f64")
                .into(),
            host: host(self.precision, run::<f32>, run::<f64>),
            opencl: Some(opencl::solution(self.precision)),
            library: Some(library(self.precision)),
        }
    }
}

/// A call of a library for the rows of some units.
fn library(precision: Precision) -> LibraryKernel {
    LibraryKernel::call(Library::Blas, move |units, args| {
        let [all, columns] = [u32_at(args, 2)?, u32_at(args, 3)?];
        let row = |unit: u64| unit.saturating_mul(BLOCK.into()).min(all.into());
        let (begin, end) = (row(units.start), row(units.end));
        let rows = end.saturating_sub(begin) as u32;
        let b = operand(args, [1, 5, 7], columns)?;
        let call = LibraryCall::Trsm {
            precision,
            rows,
            columns,
            side: Side::Right,
            transposed: true,
            unit: false,
            l: operand(args, [0, 4, 6], columns)?,
            b: Operand {
                first: b.first + begin * u64::from(b.stride),
                ..b
            },
        };
        let sizes = [rows, columns];
        are_sizes(&sizes).then(|| (call, sizes.map(u64::from).to_vec()))
    })
}

/// # Safety
/// That of `HostKernel`.
unsafe fn run<T: Number>(args: &[HostValue], _first: u64, units: Range<u64>, threads: usize) {
    let args = Arguments {
        codelet: "trsm-tile",
        values: args,
    };
    let (rows, columns) = (args.u32(2), args.u32(3));
    let [begin, end] =
        [units.start, units.end].map(|unit| (unit as usize * BLOCK as usize).min(rows));
    // SAFETY: the memories hold the matrices. The rows of B are this call's alone.
    unsafe {
        let l = Matrix::<T>::of(&args, 0, 4, 6);
        let b = Matrix::<T>::of(&args, 1, 5, 7);
        solve_on(threads, l, b.from(begin, 0), end - begin, columns);
    }
}

/// As [`solve`], in pieces for threads.
///
/// # Safety
/// That of [`solve`].
pub(super) unsafe fn solve_on<T: Number>(
    threads: usize,
    l: Matrix<T>,
    b: Matrix<T>,
    rows: usize,
    columns: usize,
) {
    let count = pieces(threads, (rows * columns).saturating_mul(columns));
    for_each_piece(threads, count, |number| {
        let some = piece(rows, LEAF, number, count);
        // SAFETY: the caller's contract; pieces are disjoint.
        unsafe { solve(l, b.from(some.start, 0), some.len(), columns) }
    });
}

/// Solves `rows` rows: the columns of the first half of L, then those of the second
/// without what the first contribute.
///
/// # Safety
/// L has `columns` rows, B the given ones, no others use B, and they do not overlap.
unsafe fn solve<T: Number>(l: Matrix<T>, b: Matrix<T>, rows: usize, columns: usize) {
    // SAFETY: the caller's contract.
    unsafe {
        if columns <= LEAF {
            for row in (0..rows).step_by(ROWS) {
                vectorised(Leaf {
                    l,
                    b: b.from(row, 0),
                    rows: ROWS.min(rows - row),
                    columns,
                });
            }
            return;
        }
        let half = middle(columns);
        let right = b.from(0, half);
        solve(l, b, rows, half);
        let size = (rows, columns - half, half);
        right.add_product(size, b, l.from(half, 0), true, (T::MINUS_ONE, T::ONE));
        solve(l.from(half, half), right, rows, columns - half);
    }
}

/// Rows of a [`Leaf`].
const ROWS: usize = 64;

/// At most [`ROWS`] rows of at most [`LEAF`] columns, which [`solve`] guarantees. They are
/// transposed meanwhile, so that vectors hold numbers of different rows, which are
/// independent.
struct Leaf<T> {
    l: Matrix<T>,
    b: Matrix<T>,
    rows: usize,
    columns: usize,
}

impl<T: Number> Vectorised for Leaf<T> {
    #[inline(always)]
    fn run(self) {
        let Self {
            l,
            b,
            rows,
            columns,
        } = self;
        let mut x = [[T::default(); ROWS]; LEAF];
        // SAFETY: the matrices have these rows and columns, and no others use those of B.
        unsafe {
            for row in 0..rows {
                for (column, x) in x[..columns].iter_mut().enumerate() {
                    x[row] = b.get(row, column);
                }
            }
            for column in 0..columns {
                let (known, rest) = x.split_at_mut(column);
                let sums = &mut rest[0];
                for (before, known) in known.iter().enumerate() {
                    let factor = l.get(column, before);
                    for (sum, known) in sums.iter_mut().zip(known) {
                        *sum = *sum - factor * *known;
                    }
                }
                let diagonal = l.get(column, column);
                for sum in sums {
                    *sum = *sum / diagonal;
                }
            }
            for row in 0..rows {
                for (column, x) in x[..columns].iter().enumerate() {
                    b.set(row, column, x[row]);
                }
            }
        }
    }
}
