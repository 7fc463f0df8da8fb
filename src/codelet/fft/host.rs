//! Transforms on the host.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use rustfft::num_complex::Complex;
use rustfft::{Fft, FftNum, FftPlanner};

use crate::HostValue;
use crate::host::{Arguments, Vectorised, vectorised};

/// Columns that are transformed together: four cache lines of their numbers, which processors
/// load together. Of 4096 rows, they fill 1 MiB.
const TOGETHER: usize = 32;

/// Numbers between the lines of columns: without them, those of one row would lie in one set
/// of the nearest cache.
const GAP: usize = 8;

/// Numbers of which complex ones consist.
pub(super) trait Real: FftNum + Default {
    /// Calls `act` with the worker's own workspace.
    fn with<R>(act: impl FnOnce(&mut Workspace<Self>) -> R) -> R;
}

macro_rules! real {
    ($($real:ty, $own:ident;)*) => { $(
        thread_local! {
            static $own: RefCell<Workspace<$real>> = RefCell::default();
        }

        impl Real for $real {
            fn with<R>(act: impl FnOnce(&mut Workspace<Self>) -> R) -> R {
                $own.with_borrow_mut(act)
            }
        }
    )* };
}

real! {
    f32, SINGLES;
    f64, DOUBLES;
}

/// Plans of a worker by length, and memory for columns and for intermediate results,
/// which is as costly to allocate as to fill.
#[derive(Default)]
pub(super) struct Workspace<T> {
    plans: HashMap<usize, Arc<dyn Fft<T>>>,
    columns: Vec<Complex<T>>,
    scratch: Vec<Complex<T>>,
}

impl<T: Real> Workspace<T> {
    /// The transform of lines of this length, and memory for what it needs besides and for so many
    /// numbers of columns.
    fn of(&mut self, length: usize, columns: usize) -> (&dyn Fft<T>, [&mut [Complex<T>]; 2]) {
        let plan = (self.plans.entry(length))
            .or_insert_with(|| FftPlanner::new().plan_fft_forward(length));
        let scratch = plan.get_inplace_scratch_len();
        let scratch = scratch.max(plan.get_immutable_scratch_len());
        for (memory, length) in [(&mut self.columns, columns), (&mut self.scratch, scratch)] {
            if memory.len() < length {
                memory.resize(length, Complex::default());
            }
        }
        let memory = [&mut self.scratch[..scratch], &mut self.columns[..columns]];
        (&**plan, memory)
    }
}

/// A block in memory.
#[derive(Clone, Copy)]
struct Block<T> {
    first: *mut Complex<T>,
    stride: usize,
}

/// A block, its transforms, and their rows and columns.
fn blocks<T>(args: &[HostValue]) -> (Block<T>, Block<T>, usize, usize) {
    let args = Arguments {
        codelet: "fft",
        values: args,
    };
    let block = |memory: usize, place: usize| Block {
        // The place of an empty block need not exist.
        first: (args.memory::<Complex<T>>(memory)).wrapping_add(args.u64(place)),
        stride: args.u32(place + 1),
    };
    (block(0, 2), block(1, 4), args.u32(6), args.u32(7))
}

/// # Safety
/// That of `HostKernel`.
pub(super) unsafe fn rows<T: Real>(args: &[HostValue], _first: u64, units: Range<u64>) {
    let (x, y, _, columns) = blocks::<T>(args);
    if columns == 0 {
        return;
    }
    T::with(|workspace| {
        let (plan, [scratch, _]) = workspace.of(columns, 0);
        for row in units.start as usize..units.end as usize {
            // SAFETY: the memories have this row; that of y is this call's, and is that of x
            // or does not overlap it.
            unsafe {
                let (from, to) = (x.first.add(row * x.stride), y.first.add(row * y.stride));
                let line = std::slice::from_raw_parts_mut(to, columns);
                if from == to {
                    let scratch = &mut scratch[..plan.get_inplace_scratch_len()];
                    plan.process_with_scratch(line, scratch);
                } else {
                    let scratch = &mut scratch[..plan.get_immutable_scratch_len()];
                    let from = std::slice::from_raw_parts(from, columns);
                    plan.process_immutable_with_scratch(from, line, scratch);
                }
            }
        }
    });
}

/// # Safety
/// That of `HostKernel`.
pub(super) unsafe fn columns<T: Real>(args: &[HostValue], _first: u64, units: Range<u64>) {
    let (x, y, rows, _) = blocks::<T>(args);
    if rows == 0 {
        return;
    }
    let distance = rows + GAP;
    T::with(|workspace| {
        let (plan, [scratch, lines]) = workspace.of(rows, TOGETHER * distance);
        let scratch = &mut scratch[..plan.get_inplace_scratch_len()];
        for begin in (units.start as usize..units.end as usize).step_by(TOGETHER) {
            let some = begin..(begin + TOGETHER).min(units.end as usize);
            vectorised(Gather {
                count: some.len(),
                rows,
                stride: x.stride,
                x: x.first.wrapping_add(some.start).cast_const(),
                lines,
            });
            for line in lines.chunks_exact_mut(distance).take(some.len()) {
                plan.process_with_scratch(&mut line[..rows], scratch);
            }
            vectorised(Scatter {
                count: some.len(),
                rows,
                stride: y.stride,
                lines,
                y: y.first.wrapping_add(some.start),
            });
        }
    });
}

/// Copies some columns of a block, which has them, from `x` on to lines. The compiler unrolls
/// the copies of [`TOGETHER`] columns, which halves the time of a transform.
struct Gather<'a, T> {
    count: usize,
    rows: usize,
    stride: usize,
    x: *const Complex<T>,
    lines: &'a mut [Complex<T>],
}

impl<T: Real> Vectorised for Gather<'_, T> {
    #[inline(always)]
    fn run(self) {
        let Self {
            count,
            rows,
            stride,
            x,
            lines,
        } = self;
        let mut copy = |count: usize| {
            for row in 0..rows {
                for line in 0..count {
                    // SAFETY: the block has this number.
                    lines[line * (rows + GAP) + row] = unsafe { *x.add(row * stride + line) };
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
struct Scatter<'a, T> {
    count: usize,
    rows: usize,
    stride: usize,
    lines: &'a [Complex<T>],
    y: *mut Complex<T>,
}

impl<T: Real> Vectorised for Scatter<'_, T> {
    #[inline(always)]
    fn run(self) {
        let Self {
            count,
            rows,
            stride,
            lines,
            y,
        } = self;
        let copy = |count: usize| {
            for row in 0..rows {
                for line in 0..count {
                    let number = lines[line * (rows + GAP) + row];
                    // SAFETY: the block has this number, which only this call writes.
                    unsafe { *y.add(row * stride + line) = number };
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

    #[test]
    fn lines_agree_with_sums() {
        agree::<f32>(|number| number as f32, f64::from, 1e-5);
        agree::<f64>(|number| number, |number| number, 1e-12);
    }

    /// With sums in double precision, for lines of several lengths and parts of a block.
    fn agree<T: Real>(of: fn(f64) -> T, double: fn(T) -> f64, most: f64) {
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
            let numbers = (0..2 * rows * columns).map(|_| of(random.f64() - 0.5));
            let x: Vec<T> = numbers.collect();
            for (along_rows, in_place) in
                [(true, true), (true, false), (false, true), (false, false)]
            {
                // The block lies in a larger one, whose other numbers stay as they are.
                let (before, stride) = (random.usize(..9), columns + random.usize(..3));
                let mut inside = vec![of(f64::NAN); 2 * (before + rows * stride)];
                let at = |row: usize, column: usize| 2 * (before + row * stride + column);
                for row in 0..rows {
                    let from = &x[2 * row * columns..][..2 * columns];
                    inside[at(row, 0)..][..2 * columns].copy_from_slice(from);
                }
                let mut elsewhere = vec![of(f64::NAN); inside.len()];
                let memory = |numbers: &mut Vec<T>| HostValue::Memory {
                    address: numbers.as_mut_ptr().cast(),
                    bytes: size_of_val(&numbers[..]) as u64,
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
                            true => super::rows::<T>(&args, 0, part),
                            false => super::columns::<T>(&args, 0, part),
                        }
                    }
                }
                let inside = if in_place { inside } else { elsewhere };
                let y: Vec<T> = (0..rows)
                    .flat_map(|row| inside[at(row, 0)..][..2 * columns].to_vec())
                    .collect();
                let others = (0..inside.len()).filter(|number| {
                    let place = (number / 2).checked_sub(before);
                    place.is_none_or(|place| place % stride >= columns)
                });
                assert!(
                    others
                        .into_iter()
                        .all(|other| double(inside[other]).is_nan())
                );
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
                            let (re, im) = (double(x[at]), double(x[at + 1]));
                            real += re * turn.cos() - im * turn.sin();
                            imaginary += re * turn.sin() + im * turn.cos();
                        }
                        let at = place(line, k);
                        let error = (double(y[at]) - real).abs();
                        let error = error.max((double(y[at + 1]) - imaginary).abs());
                        assert!(
                            error < most,
                            "{rows} x {columns}, line {line}, {k}: {error}"
                        );
                    }
                }
            }
        }
    }
}
