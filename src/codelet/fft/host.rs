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

struct Block {
    x: *const Complex32,
    y: *mut Complex32,
    rows: usize,
    columns: usize,
}

fn block(args: &[HostValue]) -> Block {
    let args = Arguments {
        codelet: "fft",
        values: args,
    };
    Block {
        x: args.memory::<Complex32>(0).cast_const(),
        y: args.memory(1),
        rows: args.u32(2),
        columns: args.u32(3),
    }
}

/// # Safety
/// That of `HostKernel`.
pub(super) unsafe fn rows(args: &[HostValue], _first: u64, units: Range<u64>) {
    let block = block(args);
    let (begin, count) = (units.start as usize, (units.end - units.start) as usize);
    let (first, length) = (begin * block.columns, count * block.columns);
    // SAFETY: the memories hold these rows; those of y are this call's, and they do not
    // overlap x.
    let (x, y) = unsafe {
        (
            std::slice::from_raw_parts(block.x.add(first), length),
            std::slice::from_raw_parts_mut(block.y.add(first), length),
        )
    };
    y.copy_from_slice(x);
    if block.columns > 0 {
        transform(y, block.columns);
    }
}

/// # Safety
/// That of `HostKernel`.
pub(super) unsafe fn columns(args: &[HostValue], _first: u64, units: Range<u64>) {
    let block = block(args);
    let mut lines = vec![Complex32::default(); TOGETHER * block.rows];
    for begin in (units.start as usize..units.end as usize).step_by(TOGETHER) {
        let some = begin..(begin + TOGETHER).min(units.end as usize);
        let lines = &mut lines[..some.len() * block.rows];
        for row in 0..block.rows {
            for (line, column) in some.clone().enumerate() {
                // SAFETY: x has this number.
                let number = unsafe { *block.x.add(row * block.columns + column) };
                lines[line * block.rows + row] = number;
            }
        }
        if block.rows > 0 {
            transform(lines, block.rows);
        }
        for row in 0..block.rows {
            for (line, column) in some.clone().enumerate() {
                let number = lines[line * block.rows + row];
                // SAFETY: y has this number, whose column is this call's.
                unsafe { *block.y.add(row * block.columns + column) = number };
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
            let mut x: Vec<f32> = numbers.collect();
            for along_rows in [true, false] {
                let mut y = vec![f32::NAN; x.len()];
                let args = [
                    HostValue::Memory {
                        address: x.as_mut_ptr().cast(),
                        bytes: 4 * x.len() as u64,
                    },
                    HostValue::Memory {
                        address: y.as_mut_ptr().cast(),
                        bytes: 4 * y.len() as u64,
                    },
                    HostValue::U32(rows as u32),
                    HostValue::U32(columns as u32),
                ];
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
