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
//!
//! Sum and normalisation on the host. Memory bounds it: the compiler's vectors
//! of the build's target are enough.
//!
//! Sum and normalisation on OpenCL devices: a work-group a row.

use std::ops::Range;

use half::{bf16, f16};

use crate::host::Arguments;
use crate::number_format::Stored;
use crate::{HostValue, KernelSource, LEAST_GROUP, NdRange, OpenClKernel, Shape};

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
                NumberFormat::F16 => on_host::<f16>,
                NumberFormat::Bf16 => on_host::<bf16>,
                NumberFormat::Tf32 | NumberFormat::F32 => on_host::<f32>,
            })),
            opencl: Some(opencl_kernel(self.stacks.len(), self.format)),
            library: None,
        }
    }
}

/// Arguments before the summands.
const FIXED: usize = 5;

/// Partial sums that are added side by side.
const LANES: usize = 16;

/// Numbers that are converted at a time.
const CONVERTED: usize = 256;

/// # Safety
/// That of `HostKernel`.
unsafe fn on_host<S: Stored>(args: &[HostValue], _first: u64, units: Range<u64>) {
    let args = Arguments {
        codelet: "add_norm",
        values: args,
    };
    let (x, y) = (args.memory::<S>(0), args.memory::<S>(1));
    let (width, least) = (args.u32(2), args.f32(3));
    let distance = args.u64(4);
    let count = (args.values.len() - FIXED) / 2;
    let parts: Vec<(*const S, usize)> = (FIXED..FIXED + count)
        .map(|z| (args.memory::<S>(z).cast_const(), args.u32(z + count)))
        .collect();
    let mut sums = vec![0.0; width];
    for unit in units {
        let begin = unit as usize * width;
        // SAFETY: every memory holds the row; nobody else touches that of y,
        // and it overlaps no other.
        unsafe {
            let row = |from: *const S| std::slice::from_raw_parts(from.add(begin), width);
            S::to_values(row(x), &mut sums);
            for (part, stack) in &parts {
                for summand in 0..*stack {
                    add(&mut sums, row(part.add(summand * distance)));
                }
            }
            norm(&mut sums, least);
            S::from_values(&sums, std::slice::from_raw_parts_mut(y.add(begin), width));
        }
    }
}

fn add<S: Stored>(sums: &mut [f32], summands: &[S]) {
    let mut converted = [0.0; CONVERTED];
    let parts = sums.chunks_mut(CONVERTED).zip(summands.chunks(CONVERTED));
    for (sums, summands) in parts {
        let converted = &mut converted[..summands.len()];
        S::to_values(summands, converted);
        for (sum, summand) in sums.iter_mut().zip(converted) {
            *sum += *summand;
        }
    }
}

fn norm(row: &mut [f32], least: f32) {
    let width = row.len() as f32;
    let mean = sum(row, |value| value) / width;
    let variance = sum(row, |value| (value - mean) * (value - mean)) / width;
    let scale = 1.0 / (variance + least).sqrt();
    for value in row {
        *value = (*value - mean) * scale;
    }
}

fn sum(row: &[f32], of: impl Fn(f32) -> f32) -> f32 {
    let (groups, rest) = row.as_chunks::<LANES>();
    let mut sums = [0.0; LANES];
    for group in groups {
        for (sum, value) in sums.iter_mut().zip(group) {
            *sum += of(*value);
        }
    }
    sums.into_iter().sum::<f32>() + rest.iter().map(|value| of(*value)).sum::<f32>()
}

/// Work-items of a row.
const GROUP: usize = 64;

/// The opencl_kernel for so many memories of summands of a format.
fn opencl_kernel(parts: usize, format: NumberFormat) -> OpenClKernel {
    in_groups(GROUP, parts, format).or(in_groups(LEAST_GROUP, parts, format))
}

fn in_groups(lanes: usize, parts: usize, format: NumberFormat) -> OpenClKernel {
    OpenClKernel {
        source: KernelSource::new(
            source(parts),
            "kernels/add_norm.cl",
            "add_norm",
            format!("{} -DLANES={lanes}", format.unmultiplied().option()),
        ),
        fp64: false,
        shape: Shape::with(move |units, _| NdRange::exact_group_per_unit(units, lanes)),
    }
}

/// The file, behind the definitions of its summands.
fn source(parts: usize) -> String {
    let each = |text: &dyn Fn(usize) -> String| (0..parts).map(text).collect::<String>();
    let memories = each(&|z| format!(", __global const stored *restrict z{z}"));
    let counts = each(&|z| format!(", uint n{z}"));
    let sums = each(&|z| format!(" SUM_OF(z{z}, n{z}, at)"));
    format!(
        "#define Z_PARAMETERS {memories}{counts}\n#define ADD_ALL(at){sums}\n{}",
        concat!(
            include_str!("../../kernels/stored.h"),
            include_str!("../../kernels/add_norm.cl")
        )
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_summand_is_a_parameter_and_added() {
        let source = source(2);
        assert!(source.starts_with(
            "#define Z_PARAMETERS , __global const stored *restrict z0, \
             __global const stored *restrict z1, uint n0, uint n1\n\
             #define ADD_ALL(at) SUM_OF(z0, n0, at) SUM_OF(z1, n1, at)\n"
        ));
    }

    #[test]
    fn rows_count_from_the_first_unit() {
        let sizes = (opencl_kernel(1, NumberFormat::F32).steps(&(3..5), &[]))
            .remove(0)
            .1;
        assert_eq!(sizes.global, [2 * GROUP]);
        assert_eq!(sizes.offset, Some(vec![3 * GROUP]));
    }
}
