//! The product's native implementation: a worker multiplies its bands by a
//! product of one thread.

use std::ops::Range;

use super::BAND;
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
    let band = BAND as usize;
    let bands = rows.div_ceil(band).max(1) as u64;
    // From a number of B to the next row's, and to the next column's.
    let (row_step, column_step) = match transposed {
        true => (1, depth as isize),
        false => (columns as isize, 1),
    };
    let mut unit = units.start;
    while unit < units.end {
        // Neighbouring bands of one matrix in one go.
        let matrix = (unit / bands) as usize;
        let end = units.end.min((unit / bands + 1) * bands);
        let first = (unit % bands) as usize * band;
        let last = (first + (end - unit) as usize * band).min(rows);
        // SAFETY: the matrices hold these rows, and only this call touches
        // these of C; nothing of C is read, as its factor is 0.
        unsafe {
            matrixmultiply::sgemm(
                last - first,
                depth,
                columns,
                1.0,
                a.add(matrix * a_apart + first * depth),
                depth as isize,
                1,
                b.add(matrix * b_apart),
                row_step,
                column_step,
                0.0,
                c.add(matrix * c_apart + first * columns),
                columns as isize,
                1,
            );
        }
        unit = end;
    }
}
