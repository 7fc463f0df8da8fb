//! Convolution of a block of an image with a square filter, in single precision:
//! `out(y, x) = sum over i, j of filter(i, j) in(y + i - r, x + j - r)` for each channel,
//! where the filter has `2 r + 1` rows. What is outside of the image counts as 0.
//!
//! Source: the image convolution of Unicorn (Beri, Bansal and Kumar, section V), whose
//! blocks overlap their neighbours' by the filter's radius.
//!
//! Pixels are stored by rows, the channels of a pixel side by side. The input block has
//! the output block's pixels, and around them up to `r` more on each side, fewer at the
//! image's borders.
//!
//! ## Arguments
//!
//! | # | argument | type | meaning |
//! |---|---|---|---|
//! | 0 | `in` | memory | f32, the input block |
//! | 1 | `filter` | memory | f32, the filter by rows |
//! | 2 | `out` | memory | f32, the output block; overlaps neither |
//! | 3, 4 | `in_first`, `in_stride` | u64, u32 | numbers before the input block, and from one row of it to the next |
//! | 5, 6 | `out_first`, `out_stride` | u64, u32 | those of the output block |
//! | 7 | `in_rows` | u32 | rows of the input block |
//! | 8 | `in_columns` | u32 | pixels of its rows |
//! | 9 | `above` | u32 | its rows before the first output row, at most `r` |
//! | 10 | `left` | u32 | its pixels left of the first output pixel, at most `r` |
//! | 11 | `rows` | u32 | rows of the output block |
//! | 12 | `columns` | u32 | pixels of its rows |
//! | 13 | `size` | u32 | rows of the filter, an odd number |
//! | 14 | `channels` | u32 | numbers of a pixel |
//!
//! A unit is a row of the output block. An OpenCL launch computes all of them.

mod host;
mod opencl;

use super::{Codelet, Cost, HostCode, Value};

/// A block's convolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Convolution {
    /// Rows and pixels a row of the output block.
    pub rows: u32,
    pub columns: u32,
    /// Rows and pixels a row of the input block.
    pub in_rows: u32,
    pub in_columns: u32,
    /// The input block's rows above and pixels left of the output block.
    pub above: u32,
    pub left: u32,
    /// Rows of the filter, an odd number.
    pub size: u32,
    /// Numbers of a pixel.
    pub channels: u32,
}

impl Convolution {
    /// Rows of the output block.
    pub fn units(&self) -> u64 {
        u64::from(self.rows)
    }

    /// Two operations for each number and number of the filter; input and output once.
    pub fn cost(&self) -> Cost {
        let numbers = |rows: u32, columns: u32| {
            f64::from(rows) * f64::from(columns) * f64::from(self.channels)
        };
        let out = numbers(self.rows, self.columns);
        Cost {
            flops: 2.0 * out * f64::from(self.size) * f64::from(self.size),
            bytes: 4.0 * (out + numbers(self.in_rows, self.in_columns)),
        }
    }

    /// The arguments after the places of the blocks.
    pub fn sizes(&self) -> [Value; 8] {
        [
            self.in_rows,
            self.in_columns,
            self.above,
            self.left,
            self.rows,
            self.columns,
            self.size,
            self.channels,
        ]
        .map(Value::U32)
    }
}

/// The codelet for filters of this many rows on pixels of so many channels.
pub fn codelet(size: u32, channels: u32) -> Codelet {
    Codelet {
        name: "convolution-f32".into(),
        host: Some(HostCode::Kernel(host::run)),
        opencl: Some(opencl::kernel(size, channels)),
        library: None,
    }
}
