//! Transposition on the host, square by square: the lines that a square touches
//! stay in the nearest cache until all of their numbers have been used.

use std::ops::Range;

use crate::HostValue;
use crate::host::Arguments;

/// Numbers along a square's side: a cache line.
const SIDE: usize = 16;

/// Moves numbers of the size of `T`.
///
/// # Safety
/// That of `HostKernel`.
pub(super) unsafe fn run<T: Copy>(args: &[HostValue], _first: u64, units: Range<u64>) {
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
