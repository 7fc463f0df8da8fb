//! The order in which a tile's rows are computed.
//!
//! A block reads rows that the block before it has read, and they should still
//! be in the core's own cache. Rows too long for that are cut into bands of
//! columns, planes too large for it into bands of rows, and a tile is computed
//! band by band.

use std::ops::Range;

use crate::host::{Lanes, Real, Stores, fence};

use super::super::host;
use super::block;
use super::grid::Grid;
use super::rule::Rule;

/// Rows of a block. Measured in 2-D, 8192 x 8192 doubles on one Zen 5 core,
/// best of 30 runs, as a part of the copy's bandwidth:
///
/// | rows | 2 | 3 | 4 | 5 | 6 | 8 |
/// |---|---|---|---|---|---|---|
/// | AVX2 | 0.75 | 0.88 | 0.93 | 0.73 | 0.71 | 0.22 |
/// | AVX-512 | 0.79 | 0.88 | 0.90 | 0.85 | 0.84 | 0.78 |
///
/// Fewer rows keep too few streams of reads going; more run out of registers
/// (AVX2) and of ways of the first-level cache.
const ROWS: usize = 4;

/// Bytes of a band of columns in 2-D: six rows of it are less than half of a
/// second-level cache of a megabyte. Bands of 16 and 32 KiB were slower, since
/// every piece of a row begins unprefetched.
const ROW_BYTES: usize = 64 << 10;

/// Bytes of a band of columns in 3-D, where a band is as many rows as well.
const PLANE_ROW_BYTES: usize = 8 << 10;

/// Bytes of the bands of three planes, half of the same cache.
const PLANES_BYTES: usize = 512 << 10;

/// # Safety
/// The processor has AVX-512F; otherwise as for `sweep`.
#[target_feature(enable = "avx512f")]
pub(super) unsafe fn avx512<T: Real, const INPUTS: usize, G>(
    stores: Stores,
    grid: &Grid<T, INPUTS, G>,
    rule: impl Rule<T, INPUTS>,
    units: Range<u64>,
) {
    // SAFETY: the caller's contract.
    unsafe { sweep::<T::Avx512, INPUTS, G>(stores, grid, rule, units) }
}

/// # Safety
/// The processor has AVX2; otherwise as for `sweep`.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn avx2<T: Real, const INPUTS: usize, G>(
    stores: Stores,
    grid: &Grid<T, INPUTS, G>,
    rule: impl Rule<T, INPUTS>,
    units: Range<u64>,
) {
    // SAFETY: the caller's contract.
    unsafe { sweep::<T::Avx2, INPUTS, G>(stores, grid, rule, units) }
}

/// # Safety
/// As for `sweep`; every x86-64 processor has SSE2.
pub(super) unsafe fn sse2<T: Real, const INPUTS: usize, G>(
    stores: Stores,
    grid: &Grid<T, INPUTS, G>,
    rule: impl Rule<T, INPUTS>,
    units: Range<u64>,
) {
    // SAFETY: the caller's contract.
    unsafe { sweep::<T::Sse2, INPUTS, G>(stores, grid, rule, units) }
}

/// Computes inner units band by band.
///
/// # Safety
/// That of `HostKernel`; `units` have both neighbours, and the processor has
/// `V`.
#[inline(always)]
unsafe fn sweep<V: Lanes, const INPUTS: usize, G>(
    stores: Stores,
    grid: &Grid<V::Scalar, INPUTS, G>,
    rule: impl Rule<V::Scalar, INPUTS>,
    units: Range<u64>,
) {
    for rows in row_bands(grid) {
        for columns in column_bands(grid) {
            // SAFETY: the caller's contract; the bands partition the inner
            // points.
            unsafe { band::<V, INPUTS, G>(stores, grid, rule, &units, &rows, &columns) }
        }
    }
    if stores == Stores::Stream {
        fence();
    }
}

/// Computes the same rows and columns of every unit, [`ROWS`] at a time where
/// as many lie one behind the other, else one.
#[inline(always)]
unsafe fn band<V: Lanes, const INPUTS: usize, G>(
    stores: Stores,
    grid: &Grid<V::Scalar, INPUTS, G>,
    rule: impl Rule<V::Scalar, INPUTS>,
    units: &Range<u64>,
    rows: &Range<usize>,
    columns: &Range<usize>,
) {
    let count = (units.end - units.start) as usize * rows.len();
    // SAFETY: the caller's contract; every row of the band is visited once.
    unsafe {
        let row = |n: usize| {
            let n = n.min(count - 1);
            let (unit, y) = (n / rows.len(), n % rows.len());
            grid.row(units.start + unit as u64, rows.start + y)
        };
        let nx = grid.nx;
        let mut done = 0;
        while done < count {
            let first = row(done);
            // Rows around the end of a ring or of a plane are not contiguous.
            if done + ROWS <= count && row(done + ROWS - 1) == first.further((ROWS - 1) * nx) {
                let next = row(done + ROWS);
                block::compute::<V, INPUTS, ROWS>(&first, &next, nx, columns.clone(), rule, stores);
                done += ROWS;
            } else {
                let next = row(done + 1);
                block::compute::<V, INPUTS, 1>(&first, &next, nx, columns.clone(), rule, stores);
                done += 1;
            }
        }
    }
}

/// The inner columns of a row, in bands.
fn column_bands<T: Real, const INPUTS: usize, R>(
    grid: &Grid<T, INPUTS, R>,
) -> impl Iterator<Item = Range<usize>> {
    bands(1..grid.nx - 1, column_band::<T, INPUTS>())
}

/// Columns of a band; a multiple of a line.
fn column_band<T, const INPUTS: usize>() -> usize {
    let bytes = if INPUTS == 3 {
        ROW_BYTES
    } else {
        PLANE_ROW_BYTES
    };
    bytes / size_of::<T>()
}

/// The inner rows of a unit, in bands of which three planes fit the cache.
fn row_bands<T: Real, const INPUTS: usize, R>(
    grid: &Grid<T, INPUTS, R>,
) -> impl Iterator<Item = Range<usize>> {
    let columns = grid.nx.min(column_band::<T, INPUTS>());
    let rows = PLANES_BYTES / 3 / (columns * size_of::<T>());
    bands(
        host::inner_rows::<INPUTS>(grid.ny),
        rows.next_multiple_of(ROWS),
    )
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
