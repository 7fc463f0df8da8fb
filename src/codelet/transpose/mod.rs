//! Transposition, `y = x^T`, of a batch of matrices of single precision.
//!
//! Source: the kernel between K and `Q K^T` in the PySchedCL paper's
//! transformer (section 2.1, Figure 3).
//!
//! ## Arguments
//!
//! | # | argument | type | meaning |
//! |---|---|---|---|
//! | 0 | `x` | memory | f32, `rows x columns`, matrix by matrix, by rows |
//! | 1 | `y` | memory | f32, `columns x rows`, likewise; does not overlap `x` |
//! | 2 | `rows` | u32 | rows of x |
//! | 3 | `columns` | u32 | columns of x |
//!
//! A unit is a row of a y, counted through the batch. An OpenCL launch takes
//! whole matrices: its units begin and end with one.

mod host;
mod opencl;

use super::{Codelet, Cost, HostCode, Value};

/// What is transposed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transpose {
    pub rows: u32,
    pub columns: u32,
    /// Matrices.
    pub batch: u32,
}

impl Transpose {
    /// Rows of all results.
    pub fn units(&self) -> u64 {
        u64::from(self.columns) * u64::from(self.batch)
    }

    /// Every number read once and written once.
    pub fn cost(&self) -> Cost {
        Cost {
            flops: 0.0,
            bytes: 8.0 * self.units() as f64 * f64::from(self.rows),
        }
    }

    /// The arguments after the two memories.
    pub fn sizes(&self) -> [Value; 2] {
        [Value::U32(self.rows), Value::U32(self.columns)]
    }
}

/// The codelet.
pub fn codelet() -> Codelet {
    Codelet {
        name: "transpose-f32".into(),
        host: Some(HostCode::Kernel(host::run)),
        opencl: Some(opencl::kernel()),
        library: None,
    }
}
