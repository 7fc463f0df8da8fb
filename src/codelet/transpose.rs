//! Transposition, `y = x^T`, of a batch of matrices of any format.
//!
//! Source: the kernel between K and `Q K^T` in the PySchedCL paper's
//! transformer (section 2.1, Figure 3).
//!
//! ## Arguments
//!
//! | # | argument | type | meaning |
//! |---|---|---|---|
//! | 0 | `x` | memory | `rows x columns`, matrix by matrix, by rows |
//! | 1 | `y` | memory | `columns x rows`, likewise; does not overlap `x` |
//! | 2 | `rows` | u32 | rows of x |
//! | 3 | `columns` | u32 | columns of x |
//!
//! A unit is a row of a y, counted through the batch. An OpenCL launch takes
//! whole matrices: its units begin and end with one.
//!
//! Transposition on the host, square by square: the lines that a square touches
//! stay in the nearest cache until all of their numbers have been used.
//!
//! Transposition on OpenCL devices: a work-group a square.

use std::ops::Range;

use crate::host::Arguments;
use crate::{HostValue, KernelSource, LEAST_GROUP, NdRange, OpenClKernel, Shape};

use super::{Codelet, Cost, HostCode, NumberFormat, Value};

/// What is transposed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transpose {
    /// Of all numbers.
    pub format: NumberFormat,
    pub rows: u32,
    pub columns: u32,
    /// Matrices.
    pub batch: u32,
}

impl Transpose {
    /// Rows of all results.
    pub fn units(&self) -> u64 {
        u64::from(self.columns) * u64::from(self.batch)
    }

    /// Every number read once and written once.
    pub fn cost(&self) -> Cost {
        let numbers = self.units() as f64 * f64::from(self.rows);
        Cost {
            flops: 0.0,
            bytes: 2.0 * self.format.element().bytes() as f64 * numbers,
        }
    }

    /// The arguments after the two memories.
    pub fn sizes(&self) -> [Value; 2] {
        [Value::U32(self.rows), Value::U32(self.columns)]
    }
}

/// The codelet for numbers of a format.
pub fn codelet(format: NumberFormat) -> Codelet {
    Codelet {
        name: format!("transpose-{}", format.unmultiplied().name()).into(),
        host: Some(HostCode::Kernel(match format {
            NumberFormat::F16 | NumberFormat::Bf16 => on_host::<u16>,
            NumberFormat::Tf32 | NumberFormat::F32 => on_host::<u32>,
        })),
        opencl: Some(opencl_kernel(format)),
        library: None,
    }
}

/// Numbers along a square's side: a cache line.
const SIDE: usize = 16;

/// Moves numbers of the size of `T`.
///
/// # Safety
/// That of `HostKernel`.
unsafe fn on_host<T: Copy>(args: &[HostValue], _first: u64, units: Range<u64>) {
    let args = Arguments {
        codelet: "transpose",
        values: args,
    };
    let (x, y) = (args.memory::<T>(0).cast_const(), args.memory::<T>(1));
    let (rows, columns) = (args.u32(2), args.u32(3));
    let mut unit = units.start as usize;
    let end = units.end as usize;
    while unit < end {
        let matrix = unit / columns;
        let last = end.min((matrix + 1) * columns);
        let at = matrix * rows * columns;
        let of = unit - matrix * columns..last - matrix * columns;
        // SAFETY: both memories hold the matrix; nobody else touches these rows
        // of y, and they do not overlap x.
        unsafe { turn(x.add(at), y.add(at), rows, columns, of) }
        unit = last;
    }
}

/// Writes the rows `of` of the transposed matrix.
///
/// # Safety
/// `x` and `y` hold `rows * columns` numbers; those rows are this call's alone.
unsafe fn turn<T: Copy>(x: *const T, y: *mut T, rows: usize, columns: usize, of: Range<usize>) {
    for column in of.clone().step_by(SIDE) {
        let column_end = (column + SIDE).min(of.end);
        for row in (0..rows).step_by(SIDE) {
            for i in column..column_end {
                for j in row..(row + SIDE).min(rows) {
                    // SAFETY: i is a column and j a row of x.
                    unsafe { *y.add(i * rows + j) = *x.add(j * columns + i) }
                }
            }
        }
    }
}

/// Numbers along a square's side, and rows of it that are moved at once.
const TILE: usize = 32;
const DEEP: usize = 8;

/// The opencl_kernel for numbers of a format.
fn opencl_kernel(format: NumberFormat) -> OpenClKernel {
    moving(DEEP, format).or(moving(LEAST_GROUP / TILE, format))
}

fn moving(deep: usize, format: NumberFormat) -> OpenClKernel {
    OpenClKernel {
        source: KernelSource::new(
            concat!(
                include_str!("../../kernels/stored.h"),
                include_str!("../../kernels/transpose.cl")
            ),
            "kernels/transpose.cl",
            "transpose",
            format!(
                "{} -DSIDE={TILE} -DDEEP={deep}",
                format.unmultiplied().option()
            ),
        ),
        fp64: false,
        shape: Shape::with(move |units, args| squares(deep, units, args)),
    }
}

fn squares(deep: usize, units: &Range<u64>, args: &[Value]) -> NdRange {
    let size = |index: usize| match args.get(index) {
        Some(Value::U32(size)) => *size as usize,
        other => unreachable!("transpose argument {index} is a u32, not {other:?}"),
    };
    let (rows, columns) = (size(2), size(3));
    let matrix = columns.max(1) as u64;
    NdRange::new(vec![
        columns.next_multiple_of(TILE),
        rows.div_ceil(TILE) * deep,
        ((units.end - units.start) / matrix) as usize,
    ])
    .exactly(vec![TILE, deep, 1])
    .starting_at(vec![0, 0, (units.start / matrix) as usize])
}

#[cfg(test)]
mod tests {
    use crate::{BufferId, Memory};

    use super::*;

    #[test]
    fn squares_cover_the_matrices_of_the_units() {
        let memory = Value::Memory(Memory::Device(BufferId::fresh()));
        let args = [memory, memory, Value::U32(33), Value::U32(7)];
        let sizes = squares(DEEP, &(7..21), &args);
        assert_eq!(sizes.global, [32, 2 * DEEP, 2]);
        assert_eq!(sizes.offset, Some(vec![0, 0, 1]));
    }
}
