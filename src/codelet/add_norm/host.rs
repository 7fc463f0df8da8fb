//! Sum and normalisation on the host. Memory bounds it: the compiler's vectors
//! of the build's target are enough.

use std::ops::Range;

use crate::HostValue;
use crate::host::Arguments;
use crate::stored::Stored;

/// Arguments before the summands.
const FIXED: usize = 5;

/// Partial sums that are added side by side.
const LANES: usize = 16;

/// Numbers that are converted at a time.
const CONVERTED: usize = 256;

/// # Safety
/// That of `HostKernel`.
pub(super) unsafe fn run<S: Stored>(args: &[HostValue], _first: u64, units: Range<u64>) {
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
