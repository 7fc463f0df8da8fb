//! What follows the heads of a transformer's layer: their outputs are added to
//! the layer's input, and every row of the sum is normalised,
//! `y = norm(x + z_0 + z_1 + ...)`, in single precision.
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
//! | 0 | `x` | memory | f32, the rows, without gaps |
//! | 1 | `y` | memory | f32, likewise; overlaps none of the others |
//! | 2 | `width` | u32 | numbers of a row, at least 1 |
//! | 3 | `least` | f32 | added to the variance, above 0 |
//! | 4 | `apart` | u64 | numbers from one summand of a memory to the next |
//! | 5... | `z` | memory | f32, summands as large as `x`, one behind the other |
//! | ...last | `stack` | u32 | for each `z` in turn: its summands |
//!
//! A unit is a row.

mod host;
mod opencl;

use super::{Codelet, Cost, HostCode, Value};

/// Added to variances, so that a row of equal numbers becomes zeros.
pub const LEAST: f32 = 1e-5;

/// Most memories of summands: a kernel's arguments have 1024 bytes everywhere.
pub const MOST_PARTS: usize = 64;

/// What is computed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddNorm {
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
            bytes: 4.0 * (summands + 2.0) * numbers,
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
            name: "add-norm-f32".into(),
            host: Some(HostCode::Kernel(host::run)),
            opencl: Some(opencl::kernel(self.stacks.len())),
            library: None,
        }
    }
}
