//! The native implementation of a band's product: the sums of rows are those of the
//! product over units.

use std::ops::Range;

use super::dot::{self, Gather, Number, OneByOne};
use crate::codelet::host::{Arguments, Level};
use crate::codelet::sums::SLOTS;
use crate::codelet::{HostKernel, HostValue, Precision, Real};

/// The native kernel.
pub fn kernel(precision: Precision) -> HostKernel {
    match precision {
        Precision::F64 => run::<f64>,
        Precision::F32 => run::<f32>,
    }
}

/// A launch's arguments, decoded.
pub(super) struct Band<T> {
    x: *const T,
    columns: *const u32,
    values: *const T,
    ends: *const u32,
    y: *mut T,
    /// A factor of every sum, and what is added.
    factor: T,
    constant: T,
}

/// # Safety
/// That of [`HostKernel`].
unsafe fn run<T: Number + Real>(args: &[HostValue], first: u64, units: Range<u64>) {
    // SAFETY: the caller's contract, and the level is this processor's.
    unsafe { run_at::<T>(Level::best(), args, units.start - first..units.end - first) }
}

/// Computes rows with the instructions of `level`.
///
/// # Safety
/// The processor has the level; otherwise that of [`HostKernel`].
unsafe fn run_at<T: Number + Real>(level: Level, args: &[HostValue], rows: Range<u64>) {
    // SAFETY: the caller's contract.
    unsafe {
        let band = decode::<T>(args);
        match level {
            Level::Scalar => walk::<OneByOne<T>>(&band, rows),
            // It has no gathers.
            #[cfg(target_arch = "x86_64")]
            Level::Sse2 => walk::<OneByOne<T>>(&band, rows),
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => super::avx2::walk_band::<T>(&band, rows),
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => super::avx512::walk_band::<T>(&band, rows),
        }
    }
}

/// # Safety
/// `totals` has its numbers.
unsafe fn decode<T: Number + Real>(args: &[HostValue]) -> Band<T> {
    let args = Arguments {
        codelet: "spmv-band",
        values: args,
    };
    let totals = args.memory::<T>(4);
    // SAFETY: the caller's contract.
    let total: f64 = (0..SLOTS as usize)
        .map(|slot| unsafe { *totals.add(slot) }.to_f64())
        .sum();
    let real = |index| Real::to_f64(args.real::<T>(index));
    let length = match args.u32(9) != 0 && total > 0.0 && total.is_finite() {
        true => total.sqrt(),
        false => 1.0,
    };
    Band {
        x: args.memory(0),
        columns: args.memory(1),
        values: args.memory(2),
        ends: args.memory(3),
        y: args.memory(5),
        factor: T::of_f64(real(6) / length),
        constant: T::of_f64(real(7) + real(8) * total),
    }
}

/// Computes consecutive rows.
///
/// # Safety
/// That of [`HostKernel`], and the processor has `G`.
#[inline(always)]
pub(super) unsafe fn walk<G: Gather>(band: &Band<G::Number>, rows: Range<u64>) {
    // SAFETY: the caller's contract: the band has these rows and their entries.
    unsafe {
        let end_of = |row: u64| *band.ends.add(row as usize) as usize;
        let mut begin = rows.start.checked_sub(1).map_or(0, end_of);
        for row in rows {
            let end = end_of(row);
            let (columns, values) = (band.columns.add(begin), band.values.add(begin));
            let sum = dot::dot::<G>(columns, values, end - begin, band.x);
            *band.y.add(row as usize) = band.factor * sum + band.constant;
            begin = end;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codelet::spmv::band::Affine;
    use crate::matrices::awkward;

    fn memory<T>(numbers: &mut [T]) -> HostValue {
        HostValue::Memory {
            address: numbers.as_mut_ptr().cast(),
            bytes: size_of_val(numbers) as u64,
        }
    }

    /// Every level, in two tiles, against a loop in double precision.
    #[test]
    fn every_level_agrees_with_a_plain_loop() {
        for (name, matrix) in awkward() {
            for normalises in [false, true] {
                let mut x: Vec<f64> = (0..matrix.columns())
                    .map(|column| f64::from(column % 7) - 2.5)
                    .collect();
                let mut columns = matrix.column_of().to_vec();
                let mut values = matrix.values().to_vec();
                let mut ends: Vec<u32> = matrix.row_starts()[1..]
                    .iter()
                    .map(|end| *end as u32)
                    .collect();
                let mut totals = vec![0.0; SLOTS as usize];
                (totals[0], totals[5]) = (3.0, 1.0);
                let affine = Affine {
                    scale: 0.5,
                    base: 0.25,
                    share: 2.0,
                    normalises,
                };
                let rows = matrix.rows();
                let factor = if normalises { 0.25 } else { 0.5 };
                for level in Level::available() {
                    let mut y = vec![f64::NAN; rows as usize];
                    let mut args = vec![
                        memory(&mut x),
                        memory(&mut columns),
                        memory(&mut values),
                        memory(&mut ends),
                        memory(&mut totals),
                        memory(&mut y),
                    ];
                    args.extend([0.5, 0.25, 2.0].map(HostValue::F64));
                    args.extend([u32::from(normalises), rows].map(HostValue::U32));
                    let half = u64::from(rows / 2);
                    for tile in [half..rows.into(), 0..half] {
                        // SAFETY: the level is the processor's, and the data are whole.
                        unsafe { run_at::<f64>(level, &args, tile) }
                    }
                    assert_eq!(affine.values(rows, Precision::F64).len(), args.len() - 6);
                    for (row, found) in (0..rows).zip(&y) {
                        let (columns, values) = matrix.row(row);
                        let terms = columns.iter().zip(values);
                        let terms: Vec<f64> = terms.map(|(c, v)| v * x[*c as usize]).collect();
                        let magnitude: f64 = terms.iter().map(|term| term.abs()).sum();
                        let right = factor * terms.iter().sum::<f64>() + 0.25 + 2.0 * 4.0;
                        let allowed = 1e-13 * (magnitude + 10.0);
                        // Infinite numbers, and those that are none, have no difference.
                        let is_same = match right.is_finite() {
                            true => (found - right).abs() <= allowed,
                            false => right.is_nan() == found.is_nan() && !found.is_finite(),
                        };
                        assert!(is_same, "{name} row {row}: {found} {right}");
                    }
                }
            }
        }
    }
}
