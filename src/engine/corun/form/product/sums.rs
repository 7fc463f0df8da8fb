//! Sums of numbers of either precision, and loops over units on all cores.

use std::ops::Range;

use crate::codelet::Precision;
use crate::corun::layout::length;
use crate::parallel;
use crate::workload::spmv::Spmv;

/// Calls `fill` with parts of `bytes` and those of `units` that they are of, on all
/// cores. `start` says where a unit begins.
pub fn by_units(
    bytes: &mut [u8],
    all: &Range<u64>,
    start: &dyn Fn(u64) -> u64,
    fill: &(dyn Fn(Range<u64>, &mut [u8]) + Sync),
) {
    let mut bytes = &mut bytes[start(all.start) as usize..];
    let units = length(all);
    let threads = parallel::threads() as u64;
    let mut parts = Vec::new();
    for i in 0..threads {
        let share = |i: u64| all.start + units * i / threads;
        let mine = share(i)..share(i + 1);
        let length = (start(mine.end) - start(mine.start)) as usize;
        let own = bytes.split_off_mut(..length).unwrap_or_default();
        if !own.is_empty() {
            parts.push((mine, own));
        }
    }
    parallel::map(parts, |(units, own)| fill(units, own));
}

/// The sum of the squares of numbers.
pub fn squares(spmv: &Spmv, bytes: &[u8]) -> f64 {
    match spmv.options().precision {
        Precision::F64 => both(in_chains(bytemuck::cast_slice(bytes), |n: f64| n * n)),
        Precision::F32 => {
            let square = |n: f32| f64::from(n) * f64::from(n);
            both(in_chains(bytemuck::cast_slice(bytes), square))
        }
    }
}

fn both([even, odd]: [f64; 2]) -> f64 {
    even + odd
}

/// The sums of the first and, where there are two of `each`, the second numbers of units.
/// Bytes are aligned.
pub fn total(spmv: &Spmv, bytes: &[u8], each: usize) -> [f64; 2] {
    let chains = match spmv.options().precision {
        Precision::F64 => in_chains(bytemuck::cast_slice(bytes), |n: f64| n),
        Precision::F32 => in_chains(bytemuck::cast_slice(bytes), |n: f32| f64::from(n)),
    };
    match each {
        1 => [both(chains), 0.0],
        _ => chains,
    }
}

/// Sums in several chains, whose additions need not wait for each other: the sums of the
/// numbers at even and at odd places.
fn in_chains<T: Copy>(numbers: &[T], of: impl Fn(T) -> f64) -> [f64; 2] {
    let mut sums = [0.0; 8];
    let chunks = numbers.chunks_exact(sums.len());
    let rest = chunks.remainder();
    for chunk in chunks {
        for (sum, number) in sums.iter_mut().zip(chunk) {
            *sum += of(*number);
        }
    }
    for (sum, number) in sums.iter_mut().zip(rest) {
        *sum += of(*number);
    }
    let of_parity = |parity: usize| sums[parity..].iter().step_by(2).sum();
    [of_parity(0), of_parity(1)]
}
