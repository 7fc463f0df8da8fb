//! Transforms on the host.

use std::cell::RefCell;
use std::ops::Range;

use rustfft::FftPlanner;
use rustfft::num_complex::Complex32;

use crate::codelet::HostValue;
use crate::codelet::host::Arguments;

/// Columns that are transformed together: a cache line of their numbers.
const TOGETHER: usize = 8;

thread_local! {
    /// Plans of a worker; a length is planned once.
    static PLANNER: RefCell<FftPlanner<f32>> = RefCell::new(FftPlanner::new());
}

/// Transforms lines of `length` numbers, which follow one another.
fn transform(lines: &mut [Complex32], length: usize) {
    let plan = PLANNER.with_borrow_mut(|planner| planner.plan_fft_forward(length));
    plan.process(lines);
}

/// A block in memory.
#[derive(Clone, Copy)]
struct Block {
    first: *mut Complex32,
    stride: usize,
}

/// A block, its transforms, and their rows and columns.
fn blocks(args: &[HostValue]) -> (Block, Block, usize, usize) {
    let args = Arguments {
        codelet: "fft",
        values: args,
    };
    let block = |memory: usize, place: usize| Block {
        // The place of an empty block need not exist.
        first: (args.memory::<Complex32>(memory)).wrapping_add(args.u64(place)),
        stride: args.u32(place + 1),
    };
    (block(0, 2), block(1, 4), args.u32(6), args.u32(7))
}

/// # Safety
/// That of `HostKernel`.
pub(super) unsafe fn rows(args: &[HostValue], _first: u64, units: Range<u64>) {
    let (x, y, _, columns) = blocks(args);
    for row in units.start as usize..units.end as usize {
        // SAFETY: the memories have this row; that of y is this call's, and is that of x or
        // does not overlap it.
        let line = unsafe {
            let (from, to) = (x.first.add(row * x.stride), y.first.add(row * y.stride));
            if from != to {
                to.copy_from_nonoverlapping(from, columns);
            }
            std::slice::from_raw_parts_mut(to, columns)
        };
        if columns > 0 {
            transform(line, columns);
        }
    }
}

/// # Safety
/// That of `HostKernel`.
pub(super) unsafe fn columns(args: &[HostValue], _first: u64, units: Range<u64>) {
    let (x, y, rows, _) = blocks(args);
    let mut lines = vec![Complex32::default(); TOGETHER * rows];
    for begin in (units.start as usize..units.end as usize).step_by(TOGETHER) {
        let some = begin..(begin + TOGETHER).min(units.end as usize);
        let lines = &mut lines[..some.len() * rows];
        for row in 0..rows {
            for (line, column) in some.clone().enumerate() {
                // SAFETY: x has this number.
                lines[line * rows + row] = unsafe { *x.first.add(row * x.stride + column) };
            }
        }
        if rows > 0 {
            transform(lines, rows);
        }
        for row in 0..rows {
            for (line, column) in some.clone().enumerate() {
                let number = lines[line * rows + row];
                // SAFETY: y has this number, whose column is this call's.
                unsafe { *y.first.add(row * y.stride + column) = number };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sums in double precision, for lines of several lengths and parts of a block.
    #[test]
    fn lines_agree_with_sums() {
        let seed = fastrand::u64(..);
        println!("seed {seed}");
        let mut random = fastrand::Rng::with_seed(seed);
        for (rows, columns) in [(1, 1), (3, 8), (8, 3), (17, 12), (5, 32), (32, 19)] {
            let numbers = (0..2 * rows * columns).map(|_| random.f32() - 0.5);
            let x: Vec<f32> = numbers.collect();
            for (along_rows, in_place) in
                [(true, true), (true, false), (false, true), (false, false)]
            {
                // The block lies in a larger one, whose other numbers stay as they are.
                let (before, stride) = (random.usize(..9), columns + random.usize(..3));
                let mut inside = vec![f32::NAN; 2 * (before + rows * stride)];
                let at = |row: usize, column: usize| 2 * (before + row * stride + column);
                for row in 0..rows {
                    let from = &x[2 * row * columns..][..2 * columns];
                    inside[at(row, 0)..][..2 * columns].copy_from_slice(from);
                }
                let mut elsewhere = vec![f32::NAN; inside.len()];
                let memory = |numbers: &mut Vec<f32>| HostValue::Memory {
                    address: numbers.as_mut_ptr().cast(),
                    bytes: 4 * numbers.len() as u64,
                };
                let place = [HostValue::U64(before as u64), HostValue::U32(stride as u32)];
                let to = match in_place {
                    true => memory(&mut inside),
                    false => memory(&mut elsewhere),
                };
                let sizes = [HostValue::U32(rows as u32), HostValue::U32(columns as u32)];
                let args = [&[memory(&mut inside), to][..], &place, &place, &sizes].concat();
                let (lines, length) = match along_rows {
                    true => (rows, columns),
                    false => (columns, rows),
                };
                let middle = lines as u64 / 2;
                for part in [middle..lines as u64, 0..middle] {
                    // SAFETY: the memories hold the block.
                    unsafe {
                        match along_rows {
                            true => super::rows(&args, 0, part),
                            false => super::columns(&args, 0, part),
                        }
                    }
                }
                let inside = if in_place { inside } else { elsewhere };
                let y: Vec<f32> = (0..rows)
                    .flat_map(|row| inside[at(row, 0)..][..2 * columns].to_vec())
                    .collect();
                let others = (0..inside.len()).filter(|number| {
                    let place = (number / 2).checked_sub(before);
                    place.is_none_or(|place| place % stride >= columns)
                });
                assert!(others.into_iter().all(|other| inside[other].is_nan()));
                let place = |line: usize, at: usize| match along_rows {
                    true => 2 * (line * columns + at),
                    false => 2 * (at * columns + line),
                };
                for line in 0..lines {
                    for k in 0..length {
                        let (mut real, mut imaginary) = (0.0, 0.0);
                        for j in 0..length {
                            let turn = -std::f64::consts::TAU * (j * k) as f64 / length as f64;
                            let at = place(line, j);
                            let (re, im) = (f64::from(x[at]), f64::from(x[at + 1]));
                            real += re * turn.cos() - im * turn.sin();
                            imaginary += re * turn.sin() + im * turn.cos();
                        }
                        let at = place(line, k);
                        let error = (f64::from(y[at]) - real).abs();
                        let error = error.max((f64::from(y[at + 1]) - imaginary).abs());
                        assert!(
                            error < 1e-5,
                            "{rows} x {columns}, line {line}, {k}: {error}"
                        );
                    }
                }
            }
        }
    }
}
