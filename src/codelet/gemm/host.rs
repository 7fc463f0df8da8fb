//! The product's native implementation: a worker multiplies its blocks by a
//! product of one thread.

use std::ops::Range;

use super::BLOCK;
use crate::codelet::HostValue;
use crate::codelet::host::Arguments;

/// `C = A B`.
///
/// # Safety
/// That of `HostKernel`.
pub(super) unsafe fn plain(args: &[HostValue], _first: u64, units: Range<u64>) {
    // SAFETY: the caller's contract.
    unsafe { multiply(args, units, false) }
}

/// `C = A B^T`.
///
/// # Safety
/// That of `HostKernel`.
pub(super) unsafe fn transposed(args: &[HostValue], _first: u64, units: Range<u64>) {
    // SAFETY: the caller's contract.
    unsafe { multiply(args, units, true) }
}

/// # Safety
/// That of `HostKernel`.
unsafe fn multiply(args: &[HostValue], units: Range<u64>, transposed: bool) {
    let args = Arguments {
        codelet: "gemm",
        values: args,
    };
    let (rows, columns, depth) = (args.u32(3), args.u32(4), args.u32(5));
    let (a_apart, b_apart, c_apart) = (args.u64(6), args.u64(7), args.u64(8));
    // SAFETY: the memories hold the matrices that are skipped.
    let (a, b) = unsafe {
        (
            args.singles(0).add(args.u64(9)),
            args.singles(1).add(args.u64(10)),
        )
    };
    let c = args.singles(2);
    let block = BLOCK as usize;
    let across = columns.div_ceil(block).max(1);
    let blocks = (rows.div_ceil(block) * across).max(1);
    // From a number of B to the next row's, and to the next column's.
    let (row_step, column_step) = match transposed {
        true => (1, depth as isize),
        false => (columns as isize, 1),
    };
    let mut unit = units.start as usize;
    while unit < units.end as usize {
        let (matrix, place) = (unit / blocks, unit % blocks);
        // Neighbouring blocks of one matrix in one go: those to the right.
        let count = (across - place % across).min(units.end as usize - unit);
        let (row, column) = (place / across * block, place % across * block);
        let (last_row, last_column) = (
            (row + block).min(rows),
            (column + count * block).min(columns),
        );
        // SAFETY: the matrices hold these rows and columns, and only this call
        // touches these of C; nothing of C is read, as its factor is 0.
        unsafe {
            matrixmultiply::sgemm(
                last_row - row,
                depth,
                last_column - column,
                1.0,
                a.add(matrix * a_apart + row * depth),
                depth as isize,
                1,
                b.add(matrix * b_apart)
                    .offset(column as isize * column_step),
                row_step,
                column_step,
                0.0,
                c.add(matrix * c_apart + row * columns + column),
                columns as isize,
                1,
            );
        }
        unit += count;
    }
}
