//! The lower triangle of a symmetric update, `C = beta C + alpha A A^T`.
//!
//! ## Arguments
//!
//! | # | argument | type | meaning |
//! |---|---|---|---|
//! | 0 | `a` | memory | A, `n x k` |
//! | 1 | `c` | memory | C, `n x n`; does not overlap `a` |
//! | 2 | `n` | u32 | rows of A and C |
//! | 3 | `k` | u32 | columns of A |
//! | 4, 5 | `lda`, `ldc` | u32 | numbers from one row to the next |
//! | 6, 7 | `a_first`, `c_first` | u64 | numbers before the first |
//! | 8 | `alpha` | f32 or f64 | |
//! | 9 | `beta` | f32 or f64 | |
//!
//! A unit is [`BLOCK`] rows of C. An OpenCL launch takes all units. Numbers above the
//! diagonal may be overwritten: `kernels/gemm_tile.cl` computes rectangles.

use std::ops::Range;

use super::matrix::{Matrix, Number, pieces};
use super::{BLOCK, host, opencl};
use crate::host::{Arguments, for_each_piece, piece};
use crate::library::{Library, LibraryCall, are_sizes, operand, real_at, u32_at};
use crate::{Codelet, Cost, HostValue, LibraryKernel, Precision, Value};

/// A symmetric update of a tile; both tiles fill their memories.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SyrkTile {
    pub precision: Precision,
    /// Rows of A and C.
    pub rows: u32,
    /// Columns of A.
    pub depth: u32,
    pub alpha: f64,
    pub beta: f64,
    /// As [`GemmTile::aligned`](super::GemmTile::aligned).
    pub aligned: bool,
}

impl SyrkTile {
    /// Blocks of rows.
    pub fn units(&self) -> u64 {
        self.rows.div_ceil(BLOCK).into()
    }

    /// Two operations a multiplication and addition of the triangle; A read once, all
    /// of C read and written.
    pub fn cost(&self) -> Cost {
        let [rows, depth] = [self.rows, self.depth].map(f64::from);
        let of_c = if self.beta == 0.0 { 1.0 } else { 2.0 };
        Cost {
            flops: rows * (rows + 1.0) * depth,
            bytes: self.precision.bytes() as f64 * (rows * depth + of_c * rows * rows),
        }
    }

    /// The arguments after the two memories.
    pub fn values(&self) -> [Value; 8] {
        [
            Value::U32(self.rows),
            Value::U32(self.depth),
            Value::U32(self.depth),
            Value::U32(self.rows),
            Value::U64(0),
            Value::U64(0),
            self.precision.value(self.alpha),
            self.precision.value(self.beta),
        ]
    }

    /// The codelet. The host's serves all updates of this precision; OpenCL's those of
    /// these sizes, and of such strides and first numbers as [`Self::aligned`] says.
    pub fn codelet(&self) -> Codelet {
        Codelet {
            name: self
                .precision
                .choose("syrk-tile-f32", "syrk-tile-f64")
                .into(),
            host: host(self.precision, run::<f32>, run::<f64>),
            opencl: Some(opencl::symmetric(self)),
            library: Some(library(self.precision)),
        }
    }
}

/// A call of a library for all updates of this precision.
fn library(precision: Precision) -> LibraryKernel {
    LibraryKernel::call(Library::Blas, move |_, args| {
        let [rows, depth] = [u32_at(args, 2)?, u32_at(args, 3)?];
        let call = LibraryCall::Syrk {
            precision,
            rows,
            depth,
            alpha: real_at(args, 8)?,
            beta: real_at(args, 9)?,
            a: operand(args, [0, 4, 6], depth)?,
            c: operand(args, [1, 5, 7], rows)?,
        };
        let sizes = [rows, depth];
        are_sizes(&sizes).then(|| (call, sizes.map(u64::from).to_vec()))
    })
}

/// # Safety
/// That of `HostKernel`.
unsafe fn run<T: Number>(args: &[HostValue], _first: u64, units: Range<u64>, threads: usize) {
    let args = Arguments {
        codelet: "syrk-tile",
        values: args,
    };
    let (rows, depth) = (args.u32(2), args.u32(3));
    let factors = (args.real(8), args.real(9));
    let [begin, end] =
        [units.start, units.end].map(|unit| (unit as usize * BLOCK as usize).min(rows));
    // SAFETY: the memories hold the matrices. The rows of C are this call's alone.
    unsafe {
        let a = Matrix::<T>::of(&args, 0, 4, 6);
        let c = Matrix::<T>::of(&args, 1, 5, 7);
        let lower = a.from(begin, 0);
        let size = (end - begin, begin, depth);
        c.from(begin, 0)
            .add_product_on(threads, size, (lower, a, true), factors);
        let size = (end - begin, depth);
        triangle_on(threads, lower, c.from(begin, begin), size, factors);
    }
}

/// Adds A A^T to C, at least to its triangle, in pieces for threads: each is a band of columns
/// and the one as far from the other end, which have about as many numbers together. The
/// columns of a band are computed in blocks from the diagonal down: the library packs the
/// operand with the fewer rows, so long blocks of few columns pack each row of A once.
///
/// # Safety
/// A and C have `rows` rows, no others use C, and they do not overlap.
pub(super) unsafe fn triangle_on<T: Number>(
    threads: usize,
    a: Matrix<T>,
    c: Matrix<T>,
    (rows, depth): (usize, usize),
    factors: (T, T),
) {
    let block = BLOCK as usize;
    let count = pieces(threads, (rows * rows).saturating_mul(depth));
    for_each_piece(threads, count, |number| {
        for band in [number, 2 * count - 1 - number] {
            let band = piece(rows, block, band, 2 * count);
            for begin in band.clone().step_by(block) {
                let size = (rows - begin, block.min(band.end - begin), depth);
                let a = a.from(begin, 0);
                // SAFETY: the caller's contract; blocks are disjoint.
                unsafe {
                    c.from(begin, begin).add_product(size, a, a, true, factors);
                }
            }
        }
    });
}
