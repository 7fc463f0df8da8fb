//! Several rows at once.
//!
//! The rows of a block advance along x together, so that memory always has
//! several streams of reads and of writes to work on. Each row begins where
//! its own target is aligned to a cache line: streaming stores want that, and
//! a row length that is no multiple of a line gives every row another phase.
//!
//! West and east are made from registers: the row's vectors at the west, here
//! and at the east are carried along. Loading them unaligned instead costs a
//! quarter of the speed where source and target lie a multiple of 4 KiB apart
//! (two grids in huge pages always do): such a load overlaps, in the address
//! bits that processors compare, the store of the vector before, and waits for
//! it. For the same reason a block's stores come after all its loads.

use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
use std::ops::Range;

use super::grid::Row;
use super::scalar;
use crate::codelet::host::{LINE, Lanes, Stores};

/// Points of a row that is wanted soon: prefetched this far ahead of where the
/// block is. PREFETCH_MEASURED
const AHEAD_BYTES: usize = 2048;

/// Computes the points `at`, inner points of a row of `nx`, of a block's rows.
///
/// A row's vectors run from the first aligned target at or after `at.start` to
/// the first at or after `at.end`, so that neighbouring ranges meet whatever
/// the rows' phases; `at` is therefore a multiple of a line long, unless it
/// ends where the inner points do. There, and where they begin, plain loops
/// fill in what is less than a vector.
///
/// `next` are the rows that will follow: their first points are prefetched as
/// the block comes to its end.
///
/// # Safety
/// Those of [`scalar::points`] for every row, and the processor has `V`.
#[inline(always)]
pub(super) unsafe fn compute<V: Lanes, const INPUTS: usize, const ROWS: usize>(
    rows: &[Row<V::Scalar, INPUTS>; ROWS],
    next: &[*const V::Scalar; ROWS],
    at: Range<usize>,
    nx: usize,
    weight: V::Scalar,
    stores: Stores,
) {
    let is_tail = at.end == nx - 1;
    let mut starts = [0; ROWS];
    let mut vectors = usize::MAX;
    for h in 0..ROWS {
        starts[h] = aligned(rows[h].to, at.start).min(at.end);
        let points = if is_tail {
            at.end - starts[h]
        } else {
            at.len()
        };
        vectors = vectors.min(points / V::POINTS);
    }
    // SAFETY: the caller's contract. In the tail the vectors end within `at`;
    // elsewhere they end less than a line after it, within the inner points.
    unsafe {
        match stores {
            Stores::Plain => stream::<V, INPUTS, ROWS, false>(rows, next, &starts, vectors, weight),
            Stores::Stream => stream::<V, INPUTS, ROWS, true>(rows, next, &starts, vectors, weight),
        }
        for h in 0..ROWS {
            if at.start == 1 {
                rows[h].keep(0);
                scalar::points(&rows[h], 1..starts[h], weight);
            }
            if is_tail {
                scalar::points(&rows[h], starts[h] + vectors * V::POINTS..at.end, weight);
                rows[h].keep(at.end);
            }
        }
    }
}

/// The first position at or after `x` at which `row` is aligned to a line.
#[inline(always)]
fn aligned<T>(row: *const T, x: usize) -> usize {
    let beyond = row.wrapping_add(x) as usize % LINE;
    x + (LINE - beyond) % LINE / size_of::<T>()
}

/// Computes as many vectors of every row, row `h` from `starts[h]` on.
///
/// # Safety
/// As for [`compute`]; the rows have the vectors and a point on either side.
#[inline(always)]
unsafe fn stream<V: Lanes, const INPUTS: usize, const ROWS: usize, const STREAM: bool>(
    rows: &[Row<V::Scalar, INPUTS>; ROWS],
    next: &[*const V::Scalar; ROWS],
    starts: &[usize; ROWS],
    vectors: usize,
    weight: V::Scalar,
) {
    if vectors == 0 {
        return;
    }
    let ahead = AHEAD_BYTES / size_of::<V::Scalar>();
    // From here on what lies ahead is in the rows that follow.
    let turn = vectors.saturating_sub(ahead / V::POINTS);
    let mut soon = [std::ptr::null(); ROWS];
    // SAFETY: the caller's contract; addresses that are only prefetched need
    // not be valid, and are computed by wrapping.
    unsafe {
        let weight = V::splat(weight);
        let mut before = [weight; ROWS];
        let mut here = [weight; ROWS];
        for h in 0..ROWS {
            let row = rows[h].inputs[0].add(starts[h]);
            // Of the vector before the first only the last point matters.
            before[h] = V::splat(*row.sub(1));
            here[h] = V::load(row);
            soon[h] = rows[h].fresh().wrapping_add(starts[h] + ahead);
        }
        for i in 0..vectors {
            if i == turn {
                for h in 0..ROWS {
                    soon[h] = next[h].wrapping_sub(turn * V::POINTS);
                }
            }
            let mut results = [weight; ROWS];
            for h in 0..ROWS {
                let x = starts[h] + i * V::POINTS;
                let east = rows[h].inputs[0].add(x + V::POINTS);
                // Beyond the last vector there is only one point for certain.
                let after = if i + 1 < vectors {
                    V::load(east)
                } else {
                    V::splat(*east)
                };
                let (west, east) = (here[h].west(before[h]), here[h].east(after));
                let input = |k: usize| V::load(rows[h].inputs[k].add(x));
                let cross = input(1).add(input(2)).add(west.add(east));
                let centre = if INPUTS == 3 {
                    here[h]
                } else {
                    input(3).add(input(4)).add(here[h])
                };
                results[h] = cross.add(centre).mul(weight);
                (before[h], here[h]) = (here[h], after);
                prefetch(soon[h].wrapping_add(i * V::POINTS));
            }
            for h in 0..ROWS {
                let to = rows[h].to.add(starts[h] + i * V::POINTS);
                if STREAM {
                    results[h].stream(to)
                } else {
                    results[h].store(to)
                }
            }
        }
    }
}

/// Asks for the line at `at`, which need not be a valid address.
#[inline(always)]
fn prefetch<T>(at: *const T) {
    // SAFETY: a prefetch never faults.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) }
}
