//! Transforms on the host.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use rustfft::num_complex::Complex32;
use rustfft::{Fft, FftPlanner};

use crate::codelet::HostValue;
use crate::codelet::host::{Arguments, Vectorised, vectorised};

/// Columns that are transformed together: four cache lines of their numbers, which processors
/// load together. Of 4096 rows, they fill 1 MiB.
const TOGETHER: usize = 32;

/// Numbers between the lines of columns: without them, those of one row would lie in one set
/// of the nearest cache.
const GAP: usize = 8;

thread_local! {
    /// Plans of a worker by length, and memory for columns and for intermediate results,
    /// which is as costly to allocate as to fill.
    static WORKSPACE: RefCell<Workspace> = RefCell::default();
}

#[derive(Default)]
struct Workspace {
    plans: HashMap<usize, Arc<dyn Fft<f32>>>,
    columns: Vec<Complex32>,
    scratch: Vec<Complex32>,
}

impl Workspace {
    /// The transform of lines of this length, memory for what it needs besides, and memory
    /// for so many numbers of columns.
    fn of(
        &mut self,
        length: usize,
        columns: usize,
    ) -> (&dyn Fft<f32>, &mut [Complex32], &mut [Complex32]) {
        let plan = (self.plans.entry(length))
            .or_insert_with(|| FftPlanner::new().plan_fft_forward(length));
        let scratch = plan.get_inplace_scratch_len();
        let scratch = scratch.max(plan.get_immutable_scratch_len());
        for (memory, length) in [(&mut self.columns, columns), (&mut self.scratch, scratch)] {
            if memory.len() < length {
                memory.resize(length, Complex32::default());
            }
        }
        (
            &**plan,
            &mut self.scratch[..scratch],
            &mut self.columns[..columns],
        )
    }
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
    if block.columns == 0 {
        return;
    }
    WORKSPACE.with_borrow_mut(|workspace| {
        let (plan, scratch, _) = workspace.of(block.columns, 0);
        let scratch = &mut scratch[..plan.get_immutable_scratch_len()];
        plan.process_immutable_with_scratch(x, y, scratch);
    });
}

/// # Safety
/// That of `HostKernel`.
pub(super) unsafe fn columns(args: &[HostValue], _first: u64, units: Range<u64>) {
    let block = block(args);
    let Block {
        x,
        y,
        rows,
        columns,
    } = block;
    if rows == 0 {
        return;
    }
    let apart = rows + GAP;
    WORKSPACE.with_borrow_mut(|workspace| {
        let (plan, scratch, lines) = workspace.of(rows, TOGETHER * apart);
        let scratch = &mut scratch[..plan.get_inplace_scratch_len()];
        for begin in (units.start as usize..units.end as usize).step_by(TOGETHER) {
            let some = begin..(begin + TOGETHER).min(units.end as usize);
            vectorised(Gather {
                count: some.len(),
                rows,
                columns,
                x: x.wrapping_add(some.start),
                lines,
            });
            for line in lines.chunks_exact_mut(apart).take(some.len()) {
                plan.process_with_scratch(&mut line[..rows], scratch);
            }
            vectorised(Scatter {
                count: some.len(),
                rows,
                columns,
                lines,
                y: y.wrapping_add(some.start),
            });
        }
    });
}

/// Copies some columns of a block, which has them, from `x` on to lines. The compiler unrolls
/// the copies of [`TOGETHER`] columns, which halves the time of a transform.
struct Gather<'a> {
    count: usize,
    rows: usize,
    columns: usize,
    x: *const Complex32,
    lines: &'a mut [Complex32],
}

impl Vectorised for Gather<'_> {
    #[inline(always)]
    fn run(self) {
        let Self {
            count,
            rows,
            columns,
            x,
            lines,
        } = self;
        let mut copy = |count: usize| {
            for row in 0..rows {
                for line in 0..count {
                    // SAFETY: the block has this number.
                    lines[line * (rows + GAP) + row] = unsafe { *x.add(row * columns + line) };
                }
            }
        };
        match count {
            TOGETHER => copy(TOGETHER),
            fewer => copy(fewer),
        }
    }
}

/// Copies lines to some columns of a block, which has them, from `y` on. Nobody else uses them.
struct Scatter<'a> {
    count: usize,
    rows: usize,
    columns: usize,
    lines: &'a [Complex32],
    y: *mut Complex32,
}

impl Vectorised for Scatter<'_> {
    #[inline(always)]
    fn run(self) {
        let Self {
            count,
            rows,
            columns,
            lines,
            y,
        } = self;
        let copy = |count: usize| {
            for row in 0..rows {
                for line in 0..count {
                    let number = lines[line * (rows + GAP) + row];
                    // SAFETY: the block has this number, which only this call writes.
                    unsafe { *y.add(row * columns + line) = number };
                }
            }
        };
        match count {
            TOGETHER => copy(TOGETHER),
            fewer => copy(fewer),
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
        for (rows, columns) in [
            (1, 1),
            (3, 8),
            (8, 3),
            (17, 12),
            (5, 32),
            (32, 19),
            (12, 75),
        ] {
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
