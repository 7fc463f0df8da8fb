//! A band of a sparse matrix's rows times parts of a vector, for matrices that several
//! machines share: `y = scale * r * A x + base + share * t`, double or single.
//!
//! A unit is a row. `t` is the sum of `totals`, and `r` is `1 / sqrt(t)` if the launch
//! normalises (1 where that is no number), else 1. So the sums that one task makes of a
//! vector reach the next product without the host.
//!
//! Source: a row by several work-items, the more the longer the rows are, from Bell and
//! Garland, "Implementing sparse matrix-vector multiplication on throughput-oriented
//! processors", SC 2009, section 4.3 (CSR, vector).
//!
//! ## Arguments
//!
//! | # | argument | type | meaning |
//! |---|---|---|---|
//! | 0 | `x` | memory | the numbers of the vector that the band reads |
//! | 1 | `columns` | memory | u32: the place in `x` of an entry's number |
//! | 2 | `values` | memory | an entry's value |
//! | 3 | `ends` | memory | u32: where a row ends, from the band's first entry |
//! | 4 | `totals` | memory | [`SLOTS`] numbers |
//! | 5 | `y` | memory | a number a row |
//! | 6 | `scale` | f64 or f32 | |
//! | 7 | `base` | f64 or f32 | |
//! | 8 | `share` | f64 or f32 | |
//! | 9 | `normalises` | u32 | 1 or 0 |
//! | 10 | `rows` | u32 | rows of the band |

use std::ops::Range;

use super::host;
use crate::codelet::sums::SLOTS;
use crate::codelet::{
    Codelet, HostCode, KernelSource, NdRange, OpenClKernel, Precision, Shape, Value,
};

/// Work-items of a group: enough for several rows where these are short.
const GROUP: usize = 128;

/// Most work-items of a row, as many as load side by side on any GPU.
const MOST_LANES: u64 = 64;

/// What a launch adds and multiplies, beside the matrix and the vector.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Affine {
    pub scale: f64,
    pub base: f64,
    pub share: f64,
    pub normalises: bool,
}

impl Affine {
    /// `y = A x`.
    pub const PRODUCT: Self = Self {
        scale: 1.0,
        base: 0.0,
        share: 0.0,
        normalises: false,
    };

    /// The arguments after the memory.
    pub fn values(&self, rows: u32, precision: Precision) -> Vec<Value> {
        let real = |value: f64| match precision {
            Precision::F64 => Value::F64(value),
            Precision::F32 => Value::F32(value as f32),
        };
        vec![
            real(self.scale),
            real(self.base),
            real(self.share),
            Value::U32(self.normalises.into()),
            Value::U32(rows),
        ]
    }
}

/// The codelet for rows of `mean` entries on average.
pub fn codelet(precision: Precision, mean: u64) -> Codelet {
    let name = match precision {
        Precision::F64 => "spmv-band-f64",
        Precision::F32 => "spmv-band-f32",
    };
    Codelet {
        name: name.into(),
        host: Some(HostCode::Kernel(host::band_kernel(precision))),
        opencl: Some(opencl(precision, lanes(mean))),
    }
}

/// Work-items of a row: about as many as it has entries.
fn lanes(mean: u64) -> usize {
    mean.clamp(1, MOST_LANES).next_power_of_two() as usize
}

fn opencl(precision: Precision, lanes: usize) -> OpenClKernel {
    let rows = GROUP / lanes;
    OpenClKernel {
        source: KernelSource::new(
            include_str!("../../../kernels/spmv_band.cl"),
            "kernels/spmv_band.cl",
            "spmv_band",
            format!(
                "-DREAL={} -DLANES={lanes} -DGROUP={GROUP} -DSLOTS={SLOTS}",
                precision.c_type()
            ),
        ),
        fp64: precision == Precision::F64,
        shape: Shape::with(move |units: &Range<u64>, _: &[Value]| {
            let groups = (units.end - units.start).div_ceil(rows as u64) as usize;
            NdRange::new(vec![groups * GROUP]).exactly(vec![GROUP])
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_rows_share_a_group() {
        let lanes = [0, 1, 3, 9, 1000].map(lanes);
        assert_eq!(lanes, [1, 1, 4, 16, 64]);
        let sizes = opencl(Precision::F32, 16).steps(&(0..17), &[]).remove(0).1;
        assert_eq!(sizes.global, [3 * GROUP]);
    }
}
