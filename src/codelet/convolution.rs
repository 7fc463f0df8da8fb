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
//!
//! Convolution on the host: strips of a row are summed up in registers, compiled once for
//! each level of the processor.
//!
//! Convolution on OpenCL devices.

use std::ops::Range;

use crate::host::{Arguments, Level};
use crate::{HostValue, KernelSource, LEAST_GROUP, NdRange, OpenClKernel, Shape};

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
        host: Some(HostCode::Kernel(on_host)),
        opencl: Some(opencl_kernel(size, channels)),
        library: None,
    }
}

/// Numbers of a strip: four vectors of AVX-512, eight of AVX2. Fewer would leave units
/// for multiplication idle, more do not fit in the registers.
const STRIP: usize = 64;

/// A block of pixels' numbers, by rows.
#[derive(Clone, Copy)]
struct Block<'a> {
    numbers: &'a [f32],
    rows: usize,
    /// Numbers of a row.
    width: usize,
    /// Numbers from one row to the next.
    stride: usize,
}

/// What a row needs.
#[derive(Clone, Copy)]
struct Job<'a> {
    input: Block<'a>,
    filter: &'a [f32],
    size: usize,
    channels: usize,
    above: usize,
    left: usize,
}

impl Job<'_> {
    /// Room for what a strip reads.
    fn border(&self) -> Vec<f32> {
        vec![0.0; STRIP + self.size / 2 * 2 * self.channels]
    }
}

/// # Safety
/// That of `HostKernel`.
unsafe fn on_host(args: &[HostValue], _first: u64, units: Range<u64>) {
    let args = Arguments {
        codelet: "convolution",
        values: args,
    };
    let (in_first, stride) = (args.u64(3), args.u32(4));
    let (out_first, out_stride) = (args.u64(5), args.u32(6));
    let (size, channels) = (args.u32(13), args.u32(14));
    let (rows, width) = (args.u32(7), args.u32(8) * channels);
    let columns = args.u32(12) * channels;
    let (begin, count) = (units.start as usize, (units.end - units.start) as usize);
    // The last row ends before the next one would begin.
    let length = (rows * stride + width).saturating_sub(stride);
    // SAFETY: the memories hold these numbers, and nobody writes those of the inputs.
    let (input, filter) = unsafe {
        (
            std::slice::from_raw_parts(args.singles(0).add(in_first), length),
            std::slice::from_raw_parts(args.singles(1), size * size),
        )
    };
    let job = Job {
        input: Block {
            numbers: input,
            rows,
            width,
            stride,
        },
        filter,
        size,
        channels,
        above: args.u32(9),
        left: args.u32(10),
    };
    let mut border = job.border();
    for row in begin..begin + count {
        // SAFETY: the memory has this row, nobody else touches it, and it overlaps neither of
        // the inputs; the processor has the level.
        unsafe {
            let first = args.singles(2).add(out_first + row * out_stride);
            let out = std::slice::from_raw_parts_mut(first, columns);
            row_at(Level::best(), job, row, out, &mut border);
        }
    }
}

/// # Safety
/// The processor has the level.
unsafe fn row_at(level: Level, job: Job, row: usize, out: &mut [f32], border: &mut [f32]) {
    match level {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the caller's contract.
        Level::Avx512 => unsafe { avx512(job, row, out, border) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the caller's contract, and the question.
        Level::Avx2 if is_x86_feature_detected!("fma") => unsafe { avx2(job, row, out, border) },
        _ => compute(job, row, out, border, |a, b, sum| a * b + sum),
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn avx512(job: Job, row: usize, out: &mut [f32], border: &mut [f32]) {
    compute(job, row, out, border, f32::mul_add);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn avx2(job: Job, row: usize, out: &mut [f32], border: &mut [f32]) {
    compute(job, row, out, border, f32::mul_add);
}

/// Computes an output row. `border` has room for what a strip reads, and `fused(a, b, sum)`
/// is `a b + sum`.
#[inline(always)]
fn compute(
    job: Job,
    row: usize,
    out: &mut [f32],
    border: &mut [f32],
    fused: impl Fn(f32, f32, f32) -> f32 + Copy,
) {
    let Job {
        input,
        size,
        channels,
        ..
    } = job;
    let radius = size / 2;
    // Filter row i reads input row `row + above + i - radius`, where that exists.
    let first = radius.saturating_sub(row + job.above);
    let last = (input.rows + radius)
        .saturating_sub(row + job.above)
        .min(size);
    let rows = first..last.max(first);
    // Number `at` with filter column j reads `at + before + j channels - reach`.
    let (before, reach) = (job.left * channels, radius * channels);
    for at in (0..out.len()).step_by(STRIP) {
        // The last strip overlaps the one before it.
        let at = at.min(out.len().saturating_sub(STRIP));
        let from = at + before;
        let mut sums = [0.0f32; STRIP];
        for i in rows.clone() {
            let number = row + job.above + i - radius;
            let line = &input.numbers[number * input.stride..][..input.width];
            let is_inner = from >= reach && from + STRIP + reach <= input.width;
            let line = match is_inner {
                true => &line[from - reach..],
                false => padded(line, from, reach, border),
            };
            for (j, weight) in job.filter[i * size..][..size].iter().enumerate() {
                let from = &line[j * channels..][..STRIP];
                for (sum, from) in sums.iter_mut().zip(from) {
                    *sum = fused(*weight, *from, *sum);
                }
            }
        }
        let out = &mut out[at..];
        let count = out.len().min(STRIP);
        out[..count].copy_from_slice(&sums[..count]);
    }
}

/// What a strip whose own numbers begin at `from` reads of a line, with 0 outside of it.
#[inline(always)]
fn padded<'a>(line: &[f32], from: usize, reach: usize, border: &'a mut [f32]) -> &'a [f32] {
    let (begin, end) = (reach.saturating_sub(from), border.len());
    let inside = line.get(from.saturating_sub(reach)..).unwrap_or_default();
    let count = inside.len().min(end.saturating_sub(begin));
    border.fill(0.0);
    border[begin..begin + count].copy_from_slice(&inside[..count]);
    border
}

/// Work-items of a group, and output rows that each computes.
const ITEMS: [usize; 2] = [32, 8];
const ROWS: usize = 4;

/// Local memory that a tile may take. Every GPU has 32 KiB.
const LOCAL: usize = 32 << 10;

fn opencl_kernel(size: u32, channels: u32) -> OpenClKernel {
    in_groups(ITEMS, size, channels).or(in_groups([LEAST_GROUP, 1], size, channels))
}

fn in_groups(items: [usize; 2], size: u32, channels: u32) -> OpenClKernel {
    let halo = (size as usize).saturating_sub(1);
    let [across, down] = tile(items, halo, channels as usize);
    let tiled = 4 * across * down <= LOCAL;
    OpenClKernel {
        source: KernelSource::new(
            include_str!("../../kernels/convolution.cl"),
            "kernels/convolution.cl",
            "convolution",
            format!(
                "-DITEMS_X={} -DITEMS_Y={} -DROWS={ROWS} -DACROSS={across} -DDOWN={down} \
                 -DTILED={} -DSIZE={size} -DCHANNELS={channels}",
                items[0],
                items[1],
                u8::from(tiled)
            ),
        ),
        fp64: false,
        shape: Shape::with(move |_, args| groups(items, args)),
    }
}

/// Numbers and rows of input that a group reads.
fn tile(items: [usize; 2], halo: usize, channels: usize) -> [usize; 2] {
    [items[0] + halo * channels, items[1] * ROWS + halo]
}

/// A work-item for each number of a row, and for each [`ROWS`] rows.
fn groups(items: [usize; 2], args: &[Value]) -> NdRange {
    let number = |index: usize| match args.get(index) {
        Some(Value::U32(number)) => *number as usize,
        _ => 0,
    };
    let (rows, numbers) = (number(11), number(12) * number(14));
    NdRange::new(vec![
        numbers.next_multiple_of(items[0]),
        rows.div_ceil(ROWS).next_multiple_of(items[1]),
    ])
    .exactly(items.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Blocks of an image, with the parts of their halos that the image has, against sums
    /// of doubles over the whole image.
    #[test]
    fn every_level_agrees_with_doubles() {
        let seed = fastrand::u64(..);
        println!("seed {seed}");
        let mut random = fastrand::Rng::with_seed(seed);
        for (size, channels, rows, columns) in [
            (1, 1, 3, 5),
            (3, 1, 7, 200),
            (5, 3, 9, 70),
            (31, 3, 20, 40),
            (7, 4, 2, 3),
            (31, 1, 5, 3),
            (3, 2, 4, 64),
        ] {
            let radius: usize = size / 2;
            let image: Vec<f32> = (0..rows * columns * channels)
                .map(|_| random.f32())
                .collect();
            let filter: Vec<f32> = (0..size * size).map(|_| random.f32() - 0.5).collect();
            let right = |y: usize, number: usize| {
                let mut sum = 0.0f64;
                for i in 0..size {
                    for j in 0..size {
                        let line = (y + i).checked_sub(radius).filter(|line| *line < rows);
                        let at = (number + j * channels).checked_sub(radius * channels);
                        let at = at.filter(|at| *at < columns * channels);
                        if let (Some(line), Some(at)) = (line, at) {
                            let value = image[line * columns * channels + at];
                            sum += f64::from(filter[i * size + j]) * f64::from(value);
                        }
                    }
                }
                sum
            };
            for _ in 0..20 {
                let (y0, x0) = (random.usize(..rows), random.usize(..columns));
                let (y1, x1) = (random.usize(y0..rows) + 1, random.usize(x0..columns) + 1);
                let (top, bottom) = (y0.saturating_sub(radius), (y1 + radius).min(rows));
                let (from, to) = (x0.saturating_sub(radius), (x1 + radius).min(columns));
                // The block where it is in the image.
                let stride = columns * channels;
                let numbers = &image[top * stride + from * channels..];
                let job = Job {
                    input: Block {
                        numbers,
                        rows: bottom - top,
                        width: (to - from) * channels,
                        stride,
                    },
                    filter: &filter,
                    size,
                    channels,
                    above: y0 - top,
                    left: x0 - from,
                };
                for level in Level::available() {
                    for y in y0..y1 {
                        let mut out = vec![f32::NAN; (x1 - x0) * channels];
                        // SAFETY: the processor has the level.
                        unsafe { row_at(level, job, y - y0, &mut out, &mut job.border()) }
                        for (index, value) in out.iter().enumerate() {
                            let right = right(y, x0 * channels + index);
                            let error = (f64::from(*value) - right).abs();
                            assert!(
                                error < 1e-4,
                                "{level:?} {size} {y} {index}: {value} {right}"
                            );
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn work_items_cover_the_block() {
        let mut args = vec![Value::U32(0); 15];
        (args[11], args[12], args[14]) = (Value::U32(33), Value::U32(11), Value::U32(3));
        let expected = NdRange::new(vec![64, 16]).exactly(vec![32, 8]);
        assert_eq!(groups(ITEMS, &args), expected);
    }
}
