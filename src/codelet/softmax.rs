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
//!
//! Softmax on the host: loops over groups of numbers that the compiler makes
//! vectors of, compiled once for each level of the processor.
//!
//! Softmax on OpenCL devices: a work-group a row.

use std::ops::Range;

use half::{bf16, f16};

use crate::host::{Arguments, Level, exp};
use crate::number_format::Stored;
use crate::{HostValue, KernelSource, LEAST_GROUP, NdRange, OpenClKernel, Shape};

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
            NumberFormat::F16 => run_stored::<f16>,
            NumberFormat::Bf16 => run_stored::<bf16>,
            NumberFormat::Tf32 | NumberFormat::F32 => on_host,
        })),
        opencl: Some(opencl_kernel(format)),
        library: None,
    }
}

/// Numbers that go side by side: a vector of AVX-512, several of others.
const LANES: usize = 16;

/// # Safety
/// That of `HostKernel`.
unsafe fn on_host(args: &[HostValue], _first: u64, units: Range<u64>) {
    let args = Arguments {
        codelet: "softmax",
        values: args,
    };
    let (width, factor) = (args.u32(2), args.f32(3));
    let (begin, count) = (units.start as usize, (units.end - units.start) as usize);
    // SAFETY: both memories hold these rows; nobody else touches those of y, and
    // they do not overlap x.
    let (x, y) = unsafe {
        (
            std::slice::from_raw_parts(args.singles(0).add(begin * width), count * width),
            std::slice::from_raw_parts_mut(args.singles(1).add(begin * width), count * width),
        )
    };
    // SAFETY: the processor has the level.
    unsafe { rows_at(Level::best(), x, y, width, factor) }
}

/// As [`on_host`], of numbers that are converted row by row.
///
/// # Safety
/// That of `HostKernel`.
unsafe fn run_stored<S: Stored>(args: &[HostValue], _first: u64, units: Range<u64>) {
    let args = Arguments {
        codelet: "softmax",
        values: args,
    };
    let (width, factor) = (args.u32(2), args.f32(3));
    let level = Level::best();
    let (mut row, mut result) = (vec![0.0; width], vec![0.0; width]);
    for unit in units {
        let begin = unit as usize * width;
        // SAFETY: both memories hold the row; nobody else touches that of y, and they do not
        // overlap. The processor has the level.
        unsafe {
            let x = std::slice::from_raw_parts(args.memory::<S>(0).add(begin), width);
            let y = std::slice::from_raw_parts_mut(args.memory::<S>(1).add(begin), width);
            S::to_values(x, &mut row);
            rows_at(level, &row, &mut result, width, factor);
            S::from_values(&result, y);
        }
    }
}

/// # Safety
/// The processor has the level.
unsafe fn rows_at(level: Level, x: &[f32], y: &mut [f32], width: usize, factor: f32) {
    match level {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the caller's contract.
        Level::Avx512 => unsafe { avx512(x, y, width, factor) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the caller's contract.
        Level::Avx2 => unsafe { avx2(x, y, width, factor) },
        _ => rows(x, y, width, factor),
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn avx512(x: &[f32], y: &mut [f32], width: usize, factor: f32) {
    rows(x, y, width, factor);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn avx2(x: &[f32], y: &mut [f32], width: usize, factor: f32) {
    rows(x, y, width, factor);
}

#[inline(always)]
fn rows(x: &[f32], y: &mut [f32], width: usize, factor: f32) {
    for (x, y) in x.chunks_exact(width).zip(y.chunks_exact_mut(width)) {
        row(x, y, factor);
    }
}

#[inline(always)]
fn row(x: &[f32], y: &mut [f32], factor: f32) {
    let (groups, rest) = x.as_chunks::<LANES>();
    let mut greatest = [f32::NEG_INFINITY; LANES];
    for group in groups {
        for (greatest, x) in greatest.iter_mut().zip(group) {
            *greatest = if *x > *greatest { *x } else { *greatest };
        }
    }
    let greatest = greatest
        .iter()
        .chain(rest)
        .copied()
        .fold(f32::NEG_INFINITY, f32::max);

    let (powers, last) = y.as_chunks_mut::<LANES>();
    let mut sums = [0.0; LANES];
    for (powers, group) in powers.iter_mut().zip(groups) {
        for ((power, x), sum) in powers.iter_mut().zip(group).zip(&mut sums) {
            *power = exp(factor * (x - greatest));
            *sum += *power;
        }
    }
    for ((power, x), sum) in last.iter_mut().zip(rest).zip(&mut sums) {
        *power = exp(factor * (x - greatest));
        *sum += *power;
    }

    let scale = 1.0 / sums.iter().sum::<f32>();
    for power in y {
        *power *= scale;
    }
}

/// Work-items of a row.
const GROUP: usize = 64;

/// The opencl_kernel for numbers of a format.
fn opencl_kernel(format: NumberFormat) -> OpenClKernel {
    in_groups(GROUP, format).or(in_groups(LEAST_GROUP, format))
}

fn in_groups(lanes: usize, format: NumberFormat) -> OpenClKernel {
    OpenClKernel {
        source: KernelSource::new(
            concat!(
                include_str!("../../kernels/stored.h"),
                include_str!("../../kernels/softmax.cl")
            ),
            "kernels/softmax.cl",
            "softmax",
            format!("{} -DLANES={lanes}", format.unmultiplied().option()),
        ),
        fp64: false,
        shape: Shape::with(move |units, _| NdRange::exact_group_per_unit(units, lanes)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_level_agrees_with_doubles() {
        let seed = fastrand::u64(..);
        println!("seed {seed}");
        let mut random = fastrand::Rng::with_seed(seed);
        for level in Level::available() {
            for (rows, width) in [(1, 1), (3, 15), (2, 16), (5, 37), (1, 512)] {
                let x: Vec<f32> = (0..rows * width)
                    .map(|_| 2e3 * random.f32() - 1e3)
                    .collect();
                let mut y = vec![f32::NAN; x.len()];
                // SAFETY: the processor has the level.
                unsafe { rows_at(level, &x, &mut y, width, 0.01) }
                for (x, y) in x.chunks(width).zip(y.chunks(width)) {
                    let power = |x: &f32| (0.01 * f64::from(*x)).exp();
                    let sum: f64 = x.iter().map(power).sum();
                    for (x, y) in x.iter().zip(y) {
                        let right = power(x) / sum;
                        let error = (f64::from(*y) - right).abs();
                        assert!(
                            error < 5e-6 * right + 1e-37,
                            "{level:?} {width} {x} {y} {right}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn a_row_is_a_work_group() {
        let opencl_kernel = opencl_kernel(NumberFormat::F32);
        for (opencl_kernel, lanes) in [
            (&opencl_kernel, 64),
            (opencl_kernel.source.smaller().unwrap(), 32),
        ] {
            let expected = NdRange::new(vec![3 * lanes])
                .exactly(vec![lanes])
                .starting_at(vec![10 * lanes]);
            assert_eq!(opencl_kernel.steps(&(10..13), &[]).remove(0).1, expected);
            let option = format!("-DLANES={lanes}");
            assert!(
                opencl_kernel.source.options().ends_with(&option),
                "{opencl_kernel:?}"
            );
        }
    }
}
