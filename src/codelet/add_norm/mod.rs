//! What follows the heads of a transformer's layer: their outputs are added to
//! the layer's input, and every row of the sum is normalised,
//! `y = norm(x + z_0 + z_1 + ...)`, in single precision, of which y is rounded once to the
//! format of the numbers.
//!
//! A row's mean is subtracted, and it is divided by its standard deviation.
//!
//! Source: "Add & Norm" of Vaswani et al., "Attention is all you need", section
//! 3.1; Ba et al., "Layer normalization", equation 3, without learned gains.
//!
//! ## Arguments
//!
//! | # | argument | type | meaning |
//! |---|---|---|---|
//! | 0 | `x` | memory | the rows, without gaps |
//! | 1 | `y` | memory | likewise; overlaps none of the others |
//! | 2 | `width` | u32 | numbers of a row, at least 1 |
//! | 3 | `least` | f32 | added to the variance, above 0 |
//! | 4 | `distance` | u64 | numbers from one summand of a memory to the next |
//! | 5... | `z` | memory | summands as large as `x`, one behind the other |
//! | ...last | `stack` | u32 | for each `z` in turn: its summands |
//!
//! A unit is a row.

mod host;
mod opencl;

use half::{bf16, f16};

use super::{Codelet, Cost, HostCode, NumberFormat, Value};

/// Added to variances, so that a row of equal numbers becomes zeros.
pub const LEAST: f32 = 1e-5;

/// Most memories of summands: a kernel's arguments have 1024 bytes everywhere.
pub const MOST_PARTS: usize = 64;

/// What is computed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddNorm {
    /// Of all numbers.
    pub format: NumberFormat,
    pub rows: u32,
    pub width: u32,
    /// By memory: its summands. 1 to [`MOST_PARTS`] memories.
    pub stacks: Vec<u32>,
}

impl AddNorm {
    /// Rows.
    pub fn units(&self) -> u64 {
        self.rows.into()
    }

    /// Every summand read once and every sum written once.
    pub fn cost(&self) -> Cost {
        let numbers = f64::from(self.rows) * f64::from(self.width);
        let summands: f64 = self.stacks.iter().copied().map(f64::from).sum();
        Cost {
            flops: (summands + 6.0) * numbers,
            bytes: self.format.element().bytes() as f64 * (summands + 2.0) * numbers,
        }
    }

    /// The arguments between the first two memories and the summands.
    pub fn sizes(&self) -> [Value; 3] {
        [
            Value::U32(self.width),
            Value::F32(LEAST),
            Value::U64(u64::from(self.rows) * u64::from(self.width)),
        ]
    }

    /// The arguments after the summands.
    pub fn counts(&self) -> impl Iterator<Item = Value> + '_ {
        self.stacks.iter().copied().map(Value::U32)
    }

    /// The codelet.
    pub fn codelet(&self) -> Codelet {
        Codelet {
            name: format!("add-norm-{}", self.format.unmultiplied().name()).into(),
            host: Some(HostCode::Kernel(match self.format {
                NumberFormat::F16 => host::run::<f16>,
                NumberFormat::Bf16 => host::run::<bf16>,
                NumberFormat::Tf32 | NumberFormat::F32 => host::run::<f32>,
            })),
            opencl: Some(opencl::kernel(self.stacks.len(), self.format)),
            library: None,
        }
    }
}
