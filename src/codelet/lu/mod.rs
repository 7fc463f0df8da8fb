//! Operations on the blocks of an LU factorisation with partial pivoting: the factors of a
//! panel, what follows from them for the columns beside it, and late exchanges.
//!
//! Source: LAPACK's `getrf`, by blocks and right-looking. A panel is a block column from its
//! diagonal block down, so that each pivot is the greatest number of all rows that are left.
//! For a panel A, `P A = L U`. The block columns right of it get the exchanges, and their
//! first rows B become `L^-1 B`; what is left of them becomes `B - L U`, by
//! [`super::tile::GemmTile`]. The block columns left of it get the exchanges at the end.
//!
//! Blocks are stored by rows. The factors of a panel are in its place: U, and
//! below the diagonal L, whose diagonal is 1. Row `i` of the matrix was exchanged with row
//! `pivots[i]`, for ascending `i`. A column without a pivot has [`NO_PIVOT`] or
//! [`NOT_FINITE`] instead; what follows has no meaning then.
//!
//! ## Arguments
//!
//! | codelet | memories | sizes | places |
//! |---|---|---|---|
//! | `lu-panel` | A, `m x n`, then its factors; pivots, u32 | `m`, `n`, `first` | of A; first pivot |
//! | `lu-row` | factors of the diagonal block, `n x n`; pivots; B, `m x w` | `m`, `w`, `n`, `first` | of the factors; first pivot; of B |
//! | `lu-exchange` | pivots; B, `m x w` | `m`, `w`, `first` | first pivot; of B |
//!
//! Sizes are u32. A place is the numbers before the matrix in its memory (u64), and those from
//! one row to the next (u32); the first pivot is a u64. `first` is the row of the matrix that is the first of A or B. A unit of `lu-panel` is the
//! panel; otherwise it is [`WIDTH`] columns of B. An OpenCL launch takes all units.
//!
//! The operations by calls of a library, which factors panels by columns, and counts pivots
//! from 1.

mod host;
mod opencl;

use crate::LibraryKernel;
use crate::library::{
    Library, LibraryCall, LibraryLaunch, LibraryStep, Side, are_sizes, operand, u32_at,
};

use super::tile::host as implementation;
use super::{Codelet, Cost, Precision, Value};

/// Columns of B that a worker computes at once: enough for the products to be fast, few
/// enough that a pool divides a block evenly.
pub const WIDTH: u32 = 64;

/// Instead of a pivot: all numbers of the column that are left are zero.
pub const NO_PIVOT: u32 = u32::MAX;

/// Instead of a pivot: a number of the column is infinite or none.
pub const NOT_FINITE: u32 = u32::MAX - 1;

/// The factors of a panel, which has at least as many rows as columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LuPanel {
    pub precision: Precision,
    pub rows: u32,
    pub columns: u32,
    /// The row of the matrix where it begins.
    pub first: u32,
}

impl LuPanel {
    /// The panel.
    pub fn units(&self) -> u64 {
        1
    }

    /// `m n^2 - n^3 / 3` operations; the panel read and written.
    pub fn cost(&self) -> Cost {
        let [rows, columns] = [self.rows, self.columns].map(f64::from);
        Cost {
            flops: columns * columns * (rows - columns / 3.0),
            bytes: 2.0 * self.precision.bytes() as f64 * rows * columns,
        }
    }

    /// The sizes.
    pub fn values(&self) -> [Value; 3] {
        [self.rows, self.columns, self.first].map(Value::U32)
    }

    pub fn codelet(precision: Precision) -> Codelet {
        Codelet {
            name: precision.choose("lu-panel-f32", "lu-panel-f64").into(),
            host: implementation(precision, host::panel::<f32>, host::panel::<f64>),
            opencl: Some(opencl::panel(precision)),
            library: Some(panel(precision)),
        }
    }
}

/// The columns right of a panel: exchanges of all their rows from the panel's first on, and
/// the rows of U beside its diagonal block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LuRow {
    pub precision: Precision,
    /// Rows of B: those of the panel.
    pub rows: u32,
    /// Columns of B.
    pub columns: u32,
    /// Columns of the panel.
    pub depth: u32,
    /// The row of the matrix where it begins.
    pub first: u32,
}

impl LuRow {
    /// Pieces of [`WIDTH`] columns.
    pub fn units(&self) -> u64 {
        self.columns.div_ceil(WIDTH).into()
    }

    /// A multiplication and a subtraction for each number of a triangle and each column;
    /// the triangle read, and of B read and written the rows of U and those that come into
    /// their places.
    pub fn cost(&self) -> Cost {
        let [rows, columns, depth] = [self.rows, self.columns, self.depth].map(f64::from);
        let exchanged = rows.min(2.0 * depth);
        let numbers = depth * depth / 2.0 + 2.0 * exchanged * columns;
        Cost {
            flops: depth * depth * columns,
            bytes: self.precision.bytes() as f64 * numbers,
        }
    }

    /// The sizes.
    pub fn values(&self) -> [Value; 4] {
        [self.rows, self.columns, self.depth, self.first].map(Value::U32)
    }

    pub fn codelet(precision: Precision) -> Codelet {
        Codelet {
            name: precision.choose("lu-row-f32", "lu-row-f64").into(),
            host: implementation(precision, host::row::<f32>, host::row::<f64>),
            opencl: Some(opencl::row(precision)),
            library: Some(row(precision)),
        }
    }
}

/// The exchanges of panels further right, for columns of L.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LuExchange {
    pub precision: Precision,
    /// Rows of B, each of which has a pivot.
    pub rows: u32,
    pub columns: u32,
    /// The row of the matrix where B begins.
    pub first: u32,
}

impl LuExchange {
    /// Pieces of [`WIDTH`] columns.
    pub fn units(&self) -> u64 {
        self.columns.div_ceil(WIDTH).into()
    }

    /// B read and written.
    pub fn cost(&self) -> Cost {
        let [rows, columns] = [self.rows, self.columns].map(f64::from);
        Cost {
            flops: 0.0,
            bytes: 2.0 * self.precision.bytes() as f64 * rows * columns,
        }
    }

    /// The sizes.
    pub fn values(&self) -> [Value; 3] {
        [self.rows, self.columns, self.first].map(Value::U32)
    }

    pub fn codelet(precision: Precision) -> Codelet {
        Codelet {
            name: precision
                .choose("lu-exchange-f32", "lu-exchange-f64")
                .into(),
            host: implementation(precision, host::exchange::<f32>, host::exchange::<f64>),
            opencl: Some(opencl::exchange(precision)),
            library: None,
        }
    }
}

/// The panel's columns go to the launch's own memory, and the factors back. The library looks
/// for no infinite numbers, so that a kernel of ours does.
fn panel(precision: Precision) -> LibraryKernel {
    let kernels = opencl::around_panel(precision);
    LibraryKernel::with_kernels(Library::Solver, kernels, move |units, args| {
        let [rows, columns] = [u32_at(args, 2)?, u32_at(args, 3)?];
        operand(args, [0, 6, 5], columns)?;
        let numbers = u64::from(rows) * u64::from(columns) * precision.bytes();
        let word = |index: u32| numbers + 4 * u64::from(index);
        let kernel = |kernel: usize, prepares: bool| LibraryStep::Kernel {
            kernel,
            sizes: match kernel {
                2 => opencl::of_columns(columns),
                _ => opencl::squares(rows, columns),
            },
            prepares,
        };
        let factors = LibraryCall::Getrf {
            precision,
            rows,
            columns,
            pivots: word(0),
            info: word(2 * columns),
        };
        let is_one = !units.is_empty() && are_sizes(&[rows, columns]);
        is_one.then(|| LibraryLaunch {
            steps: vec![
                kernel(0, true),
                LibraryStep::Call(factors),
                kernel(1, false),
                kernel(2, false),
            ],
            scratch: word(2 * columns + 1),
            sizes: vec![rows.into(), columns.into()],
        })
    })
}

/// Exchanges of ours, and the solution.
fn row(precision: Precision) -> LibraryKernel {
    let kernels = vec![opencl::row_exchange(precision)];
    LibraryKernel::with_kernels(Library::Blas, kernels, move |units, args| {
        let [rows, columns, depth] = [u32_at(args, 3)?, u32_at(args, 4)?, u32_at(args, 5)?];
        let exchange = LibraryStep::Kernel {
            kernel: 0,
            sizes: opencl::row_groups(columns as usize),
            prepares: false,
        };
        let solution = LibraryCall::Trsm {
            precision,
            rows: depth,
            columns,
            side: Side::Left,
            transposed: false,
            unit: true,
            l: operand(args, [0, 8, 7], depth)?,
            b: operand(args, [2, 11, 10], columns)?,
        };
        let sizes = [rows, columns, depth];
        let is_one = !units.is_empty() && are_sizes(&sizes);
        is_one.then(|| LibraryLaunch {
            steps: vec![exchange, LibraryStep::Call(solution)],
            scratch: 0,
            sizes: sizes.map(u64::from).to_vec(),
        })
    })
}
