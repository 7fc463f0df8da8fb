//! Transposition, `y = x^T`, of a batch of matrices of any format.
//!
//! Source: the kernel between K and `Q K^T` in the PySchedCL paper's
//! transformer (section 2.1, Figure 3).
//!
//! ## Arguments
//!
//! | # | argument | type | meaning |
//! |---|---|---|---|
//! | 0 | `x` | memory | `rows x columns`, matrix by matrix, by rows |
//! | 1 | `y` | memory | `columns x rows`, likewise; does not overlap `x` |
//! | 2 | `rows` | u32 | rows of x |
//! | 3 | `columns` | u32 | columns of x |
//!
//! A unit is a row of a y, counted through the batch. An OpenCL launch takes
//! whole matrices: its units begin and end with one.

mod host;
mod opencl;

use super::{Codelet, Cost, HostCode, NumberFormat, Value};

/// What is transposed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transpose {
    /// Of all numbers.
    pub format: NumberFormat,
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
        let numbers = self.units() as f64 * f64::from(self.rows);
        Cost {
            flops: 0.0,
            bytes: 2.0 * self.format.element().bytes() as f64 * numbers,
        }
    }

    /// The arguments after the two memories.
    pub fn sizes(&self) -> [Value; 2] {
        [Value::U32(self.rows), Value::U32(self.columns)]
    }
}

/// The codelet for numbers of a format.
pub fn codelet(format: NumberFormat) -> Codelet {
    Codelet {
        name: format!("transpose-{}", format.unmultiplied().name()).into(),
        host: Some(HostCode::Kernel(match format {
            NumberFormat::F16 | NumberFormat::Bf16 => host::run::<u16>,
            NumberFormat::Tf32 | NumberFormat::F32 => host::run::<u32>,
        })),
        opencl: Some(opencl::kernel(format)),
        library: None,
    }
}
