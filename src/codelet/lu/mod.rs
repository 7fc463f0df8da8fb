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

mod host;
mod library;
mod opencl;

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
            name: named(precision, ["lu-panel-f32", "lu-panel-f64"]).into(),
            host: implementation(precision, host::panel::<f32>, host::panel::<f64>),
            opencl: Some(opencl::panel(precision)),
            library: Some(library::panel(precision)),
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
            name: named(precision, ["lu-row-f32", "lu-row-f64"]).into(),
            host: implementation(precision, host::row::<f32>, host::row::<f64>),
            opencl: Some(opencl::row(precision)),
            library: Some(library::row(precision)),
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
            name: named(precision, ["lu-exchange-f32", "lu-exchange-f64"]).into(),
            host: implementation(precision, host::exchange::<f32>, host::exchange::<f64>),
            opencl: Some(opencl::exchange(precision)),
            library: None,
        }
    }
}

fn named(precision: Precision, [single, double]: [&'static str; 2]) -> &'static str {
    match precision {
        Precision::F32 => single,
        Precision::F64 => double,
    }
}
