//! Softmax of every row, `y_ij = exp(factor x_ij) / sum_k exp(factor x_ik)`, in
//! single precision, of which y is rounded once to the format of the numbers. The row's greatest value is subtracted first, so that no
//! power overflows whatever x is.
//!
//! Source: the PySchedCL paper's `Softmax(A)` (section 5); the factor
//! `1 / sqrt(width)` of attention is from Vaswani et al., "Attention is all you
//! need", equation 1.
//!
//! ## Arguments
//!
//! | # | argument | type | meaning |
//! |---|---|---|---|
//! | 0 | `x` | memory | the rows, without gaps |
//! | 1 | `y` | memory | likewise; does not overlap `x` |
//! | 2 | `width` | u32 | numbers of a row, at least 1 |
//! | 3 | `factor` | f32 | of every number, above 0 |
//!
//! A unit is a row.

mod host;
mod opencl;

use half::{bf16, f16};

use super::{Codelet, Cost, HostCode, NumberFormat, Value};

/// Operations that a number costs: a comparison, a power, a sum and a product.
const FLOPS: f64 = 12.0;

/// What is computed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Softmax {
    /// Of all numbers.
    pub format: NumberFormat,
    /// Rows, of all matrices.
    pub rows: u64,
    pub width: u32,
    /// Of every number, above 0.
    pub factor: f32,
}

impl Softmax {
    /// Rows.
    pub fn units(&self) -> u64 {
        self.rows
    }

    /// Every number read once and written once.
    pub fn cost(&self) -> Cost {
        let numbers = self.rows as f64 * f64::from(self.width);
        Cost {
            flops: FLOPS * numbers,
            bytes: 2.0 * self.format.element().bytes() as f64 * numbers,
        }
    }

    /// The arguments after the two memories.
    pub fn sizes(&self) -> [Value; 2] {
        [Value::U32(self.width), Value::F32(self.factor)]
    }
}

/// The codelet for numbers of a format.
pub fn codelet(format: NumberFormat) -> Codelet {
    Codelet {
        name: format!("softmax-{}", format.unmultiplied().name()).into(),
        host: Some(HostCode::Kernel(match format {
            NumberFormat::F16 => host::run_stored::<f16>,
            NumberFormat::Bf16 => host::run_stored::<bf16>,
            NumberFormat::Tf32 | NumberFormat::F32 => host::run,
        })),
        opencl: Some(opencl::kernel(format)),
        library: None,
    }
}
