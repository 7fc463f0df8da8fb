//! The Cholesky factor L of a symmetric matrix, `A = L L^T`, in the place of A's lower
//! triangle.
//!
//! ## Arguments
//!
//! | # | argument | type | meaning |
//! |---|---|---|---|
//! | 0 | `a` | memory | A, `n x n`, then L |
//! | 1 | `n` | u32 | rows of A |
//! | 2 | `lda` | u32 | numbers from one row to the next |
//! | 3 | `a_first` | u64 | numbers before the first |
//!
//! The factorisation is one unit, as each column needs all before it; threads of the host
//! share the products that it consists of. A GPU uses one
//! work-group for it, which is slow, but saves a transfer to the host and back. Where A is not positive definite, numbers of L
//! are not finite.

use std::ops::Range;

use super::matrix::{Matrix, Number};
use super::syrk::triangle_on;
use super::trsm::solve_on;
use super::{LEAF, host, middle, opencl};
use crate::host::Arguments;
use crate::library::{
    Library, LibraryCall, LibraryLaunch, LibraryStep, are_sizes, operand, u32_at,
};
use crate::{Codelet, Cost, HostValue, LibraryKernel, Precision, Value};

/// A Cholesky factorisation of a tile that fills its memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PotrfTile {
    pub precision: Precision,
    /// Rows of A.
    pub rows: u32,
}

impl PotrfTile {
    /// One.
    pub fn units(&self) -> u64 {
        1
    }

    /// LAPACK's count of operations; A read and written.
    pub fn cost(&self) -> Cost {
        let n = f64::from(self.rows);
        Cost {
            flops: n * n * n / 3.0 + n * n / 2.0 + n / 6.0,
            bytes: 2.0 * self.precision.bytes() as f64 * n * n,
        }
    }

    /// The arguments after the memory.
    pub fn values(&self) -> [Value; 3] {
        [Value::U32(self.rows), Value::U32(self.rows), Value::U64(0)]
    }

    /// The codelet of all factorisations of this precision.
    pub fn codelet(&self) -> Codelet {
        Codelet {
            name: self
                .precision
                .choose("potrf-tile-f32", "potrf-tile-f64")
                .into(),
            host: host(self.precision, run::<f32>, run::<f64>),
            opencl: Some(opencl::factor(self.precision)),
            library: Some(library(self.precision)),
        }
    }
}

/// A call of a library, which stops where A is not positive definite, and a kernel that makes
/// the numbers not finite that it leaves out.
fn library(precision: Precision) -> LibraryKernel {
    let kernels = vec![opencl::unfinished(precision)];
    LibraryKernel::with_kernels(Library::Solver, kernels, move |units, args| {
        let rows = u32_at(args, 1)?;
        let factor = LibraryCall::Potrf {
            precision,
            rows,
            a: operand(args, [0, 2, 3], rows)?,
            info: 0,
        };
        let check = LibraryStep::Kernel {
            kernel: 0,
            sizes: opencl::unfinished_rows(rows),
            prepares: false,
        };
        let is_one = !units.is_empty() && are_sizes(&[rows]);
        is_one.then(|| LibraryLaunch {
            steps: vec![LibraryStep::Call(factor), check],
            scratch: 4,
            sizes: vec![rows.into()],
        })
    })
}

/// # Safety
/// That of `HostKernel`.
unsafe fn run<T: Number>(args: &[HostValue], _first: u64, units: Range<u64>, threads: usize) {
    let args = Arguments {
        codelet: "potrf-tile",
        values: args,
    };
    if !units.is_empty() {
        // SAFETY: the memory holds the matrix, and only this call uses it.
        unsafe { factor(threads, Matrix::<T>::of(&args, 0, 2, 3), args.u32(1)) }
    }
}

/// Factors the first half, then the second without what the first contributes.
///
/// # Safety
/// A has `rows` rows and columns, and no others use it.
unsafe fn factor<T: Number>(threads: usize, a: Matrix<T>, rows: usize) {
    // SAFETY: the caller's contract; the parts of A are disjoint.
    unsafe {
        if rows <= LEAF {
            return factor_leaf(a, rows);
        }
        let half = middle(rows);
        let (below, rest) = (a.from(half, 0), a.from(half, half));
        factor(threads, a, half);
        solve_on(threads, a, below, rows - half, half);
        let factors = (T::MINUS_ONE, T::ONE);
        triangle_on(threads, below, rest, (rows - half, half), factors);
        factor(threads, rest, rows - half);
    }
}

/// Factors a small matrix, row by row.
///
/// # Safety
/// That of [`factor`].
unsafe fn factor_leaf<T: Number>(a: Matrix<T>, rows: usize) {
    // SAFETY: the caller's contract.
    unsafe {
        for row in 0..rows {
            for column in 0..=row {
                let mut sum = a.get(row, column);
                for before in 0..column {
                    sum = sum - a.get(row, before) * a.get(column, before);
                }
                let number = match row == column {
                    true => sum.sqrt(),
                    false => sum / a.get(column, column),
                };
                a.set(row, column, number);
            }
        }
    }
}
