//! The order in which a tile's rows are computed.
//!
//! A block reads rows that the block before it has read, and they should still
//! be in the core's own cache. Rows too long for that are cut into bands of
//! columns, planes too large for it into bands of rows, and a tile is computed
//! band by band.

use std::ops::Range;

use super::grid::Grid;
use super::{block, scalar};
use crate::codelet::host::{Lanes, Real, Stores, fence};

/// Bytes of a row's band. A block of six rows reads eight: half a typical
/// second-level cache of a megabyte. BAND_MEASURED
const BAND_BYTES: usize = 64 << 10;

/// Bytes of the three planes' bands.
const PLANES_BYTES: usize = 512 << 10;

/// # Safety
/// The processor has AVX-512F; otherwise as for `sweep`.
#[target_feature(enable = "avx512f")]
pub(super) unsafe fn avx512<T: Real, const INPUTS: usize>(
    stores: Stores,
    grid: &Grid<T, INPUTS>,
    units: Range<u64>,
) {
    // SAFETY: the caller's contract.
    unsafe { sweep::<T::Avx512, INPUTS, 4, 2>(stores, grid, units) }
}

/// # Safety
/// The processor has AVX2; otherwise as for `sweep`.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn avx2<T: Real, const INPUTS: usize>(
    stores: Stores,
    grid: &Grid<T, INPUTS>,
    units: Range<u64>,
) {
    // SAFETY: the caller's contract.
    unsafe { sweep::<T::Avx2, INPUTS, 4, 2>(stores, grid, units) }
}

/// # Safety
/// As for `sweep`; every x86-64 processor has SSE2.
pub(super) unsafe fn sse2<T: Real, const INPUTS: usize>(
    stores: Stores,
    grid: &Grid<T, INPUTS>,
    units: Range<u64>,
) {
    // SAFETY: the caller's contract.
    unsafe { sweep::<T::Sse2, INPUTS, 4, 2>(stores, grid, units) }
}

/// Computes inner units, `ROWS` rows at a time, then `FEW`, then one.
///
/// # Safety
/// That of `HostKernel`; `units` have both neighbours, and the processor has
/// `V`.
#[inline(always)]
unsafe fn sweep<V: Lanes, const INPUTS: usize, const ROWS: usize, const FEW: usize>(
    stores: Stores,
    grid: &Grid<V::Scalar, INPUTS>,
    units: Range<u64>,
) {
    if units.is_empty() {
        return;
    }
    for rows in row_bands::<V::Scalar, INPUTS>(grid) {
        for columns in column_bands::<V::Scalar>(grid.nx) {
            let count = (units.end - units.start) as usize * rows.len();
            let mut done = 0;
            // SAFETY: the caller's contract; the bands partition the inner
            // points, and every row of the band is visited once.
            unsafe {
                while count - done >= ROWS {
                    at::<V, INPUTS, ROWS>(stores, grid, units.start, &rows, &columns, done, count);
                    done += ROWS;
                }
                while count - done >= FEW {
                    at::<V, INPUTS, FEW>(stores, grid, units.start, &rows, &columns, done, count);
                    done += FEW;
                }
                while done < count {
                    at::<V, INPUTS, 1>(stores, grid, units.start, &rows, &columns, done, count);
                    done += 1;
                }
            }
        }
    }
    if stores == Stores::Stream {
        fence();
    }
}

/// Computes the `columns` of the band's rows `done .. done + ROWS`, counted
/// through all units.
#[inline(always)]
unsafe fn at<V: Lanes, const INPUTS: usize, const ROWS: usize>(
    stores: Stores,
    grid: &Grid<V::Scalar, INPUTS>,
    first: u64,
    band: &Range<usize>,
    columns: &Range<usize>,
    done: usize,
    count: usize,
) {
    // SAFETY: the caller's contract.
    unsafe {
        let row = |n: usize| {
            let (unit, y) = (n / band.len(), n % band.len());
            grid.row(first + unit as u64, band.start + y)
        };
        let rows = std::array::from_fn(|h| row(done + h));
        let next = std::array::from_fn(|h| {
            row((done + ROWS + h).min(count - 1))
                .fresh()
                .wrapping_add(columns.start)
        });
        block::compute::<V, INPUTS, ROWS>(
            &rows,
            &next,
            columns.clone(),
            grid.nx,
            grid.weight,
            stores,
        );
    }
}

/// The inner columns of a row of `nx`, in bands whose length is a multiple of
/// a line; only the last, which has at least half a band, may differ.
fn column_bands<T>(nx: usize) -> impl Iterator<Item = Range<usize>> {
    let band = BAND_BYTES / size_of::<T>();
    bands(1..nx - 1, band)
}

/// The inner rows of a unit, in bands of which three planes fit the cache.
fn row_bands<T: Real, const INPUTS: usize>(
    grid: &Grid<T, INPUTS>,
) -> impl Iterator<Item = Range<usize>> {
    let band = (PLANES_BYTES / 3 / size_of::<T>() / grid.nx).max(8);
    bands(scalar::inner_rows::<INPUTS>(grid.ny), band)
}

/// Cuts a range into pieces of `band`; the last has between a half and one and
/// a half.
fn bands(range: Range<usize>, band: usize) -> impl Iterator<Item = Range<usize>> {
    let mut start = range.start;
    std::iter::from_fn(move || {
        let left = range.end.checked_sub(start).filter(|left| *left > 0)?;
        let piece = if left < band + band / 2 { left } else { band };
        start += piece;
        Some(start - piece..start)
    })
}
