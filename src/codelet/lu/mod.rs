//! Operations on the blocks of an LU factorisation, in single precision: the factors of a
//! diagonal block, and what follows from them for the blocks of its row and its column.
//!
//! Source: the block LU decomposition of Unicorn (Beri, Bansal and Kumar, section V), as in
//! LAPACK's `getrf`, with rows exchanged within the diagonal block only. For a diagonal
//! block D, `P D = L U`; blocks B of its row become `L^-1 P B`, blocks B of its column
//! `B U^-1`. What is left becomes `B - column row`, by [`super::tile::GemmTile`].
//!
//! Blocks are stored by rows without gaps. The factors of D are in one block: U, and below
//! the diagonal L, whose diagonal is 1. Row `i` was exchanged with row `pivots[i]`, for
//! ascending `i`.
//!
//! ## Arguments
//!
//! | codelet | 0 | 1 | 2 | 3 | 4 |
//! |---|---|---|---|---|---|
//! | `lu-factor-f32` | D, then its factors | pivots, u32 | `n` u32 | | |
//! | `lu-row-f32` | factors of D | pivots | B, `n x m` | `n` u32 | `m` u32 |
//! | `lu-column-f32` | factors of D | B, `m x n` | `n` u32 | `m` u32 | |
//!
//! A unit of `lu-factor` is the block; of `lu-row` it is [`WIDTH`] columns of B, of
//! `lu-column` so many rows. An OpenCL launch takes all units.

mod host;
mod opencl;

use super::{Codelet, Cost, HostCode, Value};

/// Columns or rows of B that a worker computes at once: enough for the products to be
/// fast, few enough that a pool divides a block evenly.
pub const WIDTH: u32 = 64;

/// The factors of a block of `rows` rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LuFactor {
    pub rows: u32,
}

impl LuFactor {
    /// The block.
    pub fn units(&self) -> u64 {
        1
    }

    /// `2/3 n^3` operations; the block read and written.
    pub fn cost(&self) -> Cost {
        let rows = f64::from(self.rows);
        Cost {
            flops: 2.0 / 3.0 * rows.powi(3),
            bytes: 8.0 * rows * rows,
        }
    }

    /// The arguments after the memories.
    pub fn values(&self) -> [Value; 1] {
        [Value::U32(self.rows)]
    }

    pub fn codelet() -> Codelet {
        Codelet {
            name: "lu-factor-f32".into(),
            host: Some(HostCode::Kernel(host::factor)),
            opencl: Some(opencl::factor()),
        }
    }
}

/// A block beside or below a factored block of `rows` rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LuSolve {
    /// Rows of the factored block.
    pub rows: u32,
    /// Columns of a block of its row, or rows of a block of its column.
    pub others: u32,
}

impl LuSolve {
    /// Pieces of [`WIDTH`] columns or rows.
    pub fn units(&self) -> u64 {
        self.others.div_ceil(WIDTH).into()
    }

    /// A multiplication and a subtraction for each number of a triangle and each row or
    /// column; the triangle read, the block read and written.
    pub fn cost(&self) -> Cost {
        let [rows, others] = [self.rows, self.others].map(f64::from);
        Cost {
            flops: rows * rows * others,
            bytes: 4.0 * (rows * rows / 2.0 + 2.0 * rows * others),
        }
    }

    /// The arguments after the memories.
    pub fn values(&self) -> [Value; 2] {
        [Value::U32(self.rows), Value::U32(self.others)]
    }

    /// For blocks of the row.
    pub fn row_codelet() -> Codelet {
        Codelet {
            name: "lu-row-f32".into(),
            host: Some(HostCode::Kernel(host::row)),
            opencl: Some(opencl::row()),
        }
    }

    /// For blocks of the column.
    pub fn column_codelet() -> Codelet {
        Codelet {
            name: "lu-column-f32".into(),
            host: Some(HostCode::Kernel(host::column)),
            opencl: Some(opencl::column()),
        }
    }
}
