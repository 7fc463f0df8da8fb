//! Computes several rows at once with vectors.
//!
//! The rows of a block advance along x together, so that memory always serves
//! several streams of reads and of writes. Each row begins where
//! its own target is aligned to a cache line: streaming stores want that, and
//! a row length that is no multiple of a line gives every row another phase.
//!
//! West and east are shifted in registers: the loop carries the row's vectors to the
//! west, here and to the east. Loading them unaligned cost a fifth of the speed where
//! source and target were a multiple of 4 KiB apart, as grids in huge pages are: loads
//! wait for stores with the same low address bits. For the same reason a block's
//! stores come after all its loads.

use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
use std::ops::Range;

use crate::host::{LINE, Lanes, Stores};

use super::super::host;
use super::grid::Row;
use super::rule::{Around, Rule, VectorRule};

/// How far ahead of the block its rows are prefetched. Measured as the number
/// of rows was (AVX2, AVX-512): 1 KiB 0.79 and 0.82, 2 KiB 0.95 and 0.90, 3 KiB
/// 0.86 and 0.82, 4 KiB 0.85 and 0.78 of the copy's bandwidth.
const AHEAD_BYTES: usize = 2048;

/// Computes the points `at`, inner points of a row, of `ROWS` rows that lie
/// one behind the other in the target and in every input; `first` is the first
/// of them, and `nx` their length.
///
/// A row's vectors run from the first aligned target at or after `at.start` to
/// the first at or after `at.end`, so that neighbouring ranges meet whatever
/// the rows' phases; `at` is therefore a multiple of a line long, unless it
/// ends where the inner points do. There, and where they begin, plain loops
/// fill in the rest.
///
/// `next` is the row that will follow the block: what it and those behind it
/// read is prefetched as the block comes to its end.
///
/// # Safety
/// Those of [`host::points`] for every row, and the processor has `V`.
#[inline(always)]
pub(super) unsafe fn compute<V: Lanes, const INPUTS: usize, const ROWS: usize>(
    first: &Row<V::Scalar, INPUTS>,
    next: &Row<V::Scalar, INPUTS>,
    nx: usize,
    at: Range<usize>,
    rule: impl Rule<V::Scalar, INPUTS>,
    stores: Stores,
) {
    let is_tail = at.end == nx - 1;
    let mut starts = [0; ROWS];
    let mut vectors = usize::MAX;
    for (h, start) in starts.iter_mut().enumerate() {
        let to = first.to.wrapping_add(h * nx);
        *start = aligned(to, at.start).min(at.end);
        let points = if is_tail { at.end - *start } else { at.len() };
        vectors = vectors.min(points / V::POINTS);
    }
    if stores == Stores::Stream {
        prefetch_ends::<_, INPUTS, ROWS>(next, nx, &at);
    }
    // SAFETY: the caller's contract. In the tail the vectors end within `at`;
    // elsewhere less than a line after it, within the inner points.
    unsafe {
        match stores {
            Stores::Plain => {
                vectorised::<V, INPUTS, ROWS, false>(first, next, nx, &starts, vectors, rule);
            }
            Stores::Stream => {
                vectorised::<V, INPUTS, ROWS, true>(first, next, nx, &starts, vectors, rule);
            }
        }
        for (h, start) in starts.into_iter().enumerate() {
            let row = first.further(h * nx);
            if at.start == 1 {
                row.keep(0);
                host::points(&row, 1..start, rule);
            }
            if is_tail {
                host::points(&row, start + vectors * V::POINTS..at.end, rule);
                row.keep(at.end);
            }
        }
    }
}

/// The first position at or after `x` at which `row` is aligned to a line.
#[inline(always)]
pub(super) fn aligned<T>(row: *const T, x: usize) -> usize {
    let beyond = row.wrapping_add(x) as usize % LINE;
    x + (LINE - beyond) % LINE / size_of::<T>()
}

/// Computes as many vectors of every row, row `h` from `starts[h]` on.
///
/// All rows and inputs are reached from few addresses and an offset a row, so
/// that the loop keeps them in registers.
///
/// # Safety
/// As for [`compute`]; the rows have a point more on either side.
#[inline(always)]
unsafe fn vectorised<V: Lanes, const INPUTS: usize, const ROWS: usize, const STREAM: bool>(
    first: &Row<V::Scalar, INPUTS>,
    next: &Row<V::Scalar, INPUTS>,
    nx: usize,
    starts: &[usize; ROWS],
    vectors: usize,
    rule: impl Rule<V::Scalar, INPUTS>,
) {
    if vectors == 0 {
        return;
    }
    let ahead = AHEAD_BYTES / size_of::<V::Scalar>();
    // From here on the prefetched data is in the rows that follow.
    let turn = (vectors - 1).saturating_sub(ahead / V::POINTS);
    let here_soon = first.fresh().wrapping_add(ahead);
    let next_soon = next.fresh().wrapping_sub(turn * V::POINTS);
    // SAFETY: the caller's contract; addresses that are only prefetched need
    // not be valid, and are computed by wrapping.
    unsafe {
        let mut rule = rule.splat::<V>();
        let some = V::load(first.inputs[0].add(starts[0]));
        let (mut before, mut here) = ([some; ROWS], [some; ROWS]);
        let mut offsets = [0; ROWS];
        for h in 0..ROWS {
            offsets[h] = h * nx + starts[h];
            let row = first.inputs[0].add(offsets[h]);
            // Of the vector before the first only the last point matters.
            before[h] = V::splat(*row.sub(1));
            here[h] = V::load(row);
        }
        let parts = [
            (0..turn, here_soon, false),
            (turn..vectors - 1, next_soon, false),
            (vectors - 1..vectors, next_soon, true),
        ];
        for (part, soon, is_last) in parts {
            for _ in part {
                let mut results = [some; ROWS];
                for h in 0..ROWS {
                    let input = |k: usize| V::load(first.inputs[k].add(offsets[h]));
                    let east = first.inputs[0].add(offsets[h] + V::POINTS);
                    // Beyond the last vector there is but one point for certain.
                    let after = if is_last {
                        V::splat(*east)
                    } else {
                        V::load(east)
                    };
                    let (west, east) = (here[h].west(before[h]), here[h].east(after));
                    let mut rows = [here[h]; INPUTS];
                    (rows[1], rows[2]) = (input(1), input(2));
                    if INPUTS == 5 {
                        (rows[3], rows[4]) = (input(3), input(4));
                    }
                    results[h] = rule.vector(&Around { rows, west, east });
                    (before[h], here[h]) = (here[h], after);
                    prefetch(soon.wrapping_add(offsets[h]));
                }
                for h in 0..ROWS {
                    let to = first.to.add(offsets[h]);
                    // The vector that was here. Later than it was computed, since fewer
                    // registers are needed now.
                    rule.watch(before[h], results[h]);
                    if STREAM {
                        results[h].stream(to);
                    } else {
                        results[h].store(to);
                    }
                    offsets[h] += V::POINTS;
                }
            }
        }
        rule.finish();
    }
}

/// Asks for the lines at the ends of the rows that follow, which are stored
/// through the caches. Measured: 1.07 times as fast in 3-D (512 x 512 x 256
/// doubles), no difference in 2-D.
#[inline(always)]
fn prefetch_ends<T, const INPUTS: usize, const ROWS: usize>(
    next: &Row<T, INPUTS>,
    nx: usize,
    at: &Range<usize>,
) {
    for h in 0..ROWS {
        let to = next.to.wrapping_add(h * nx);
        if at.start == 1 {
            prefetch(to);
        }
        if at.end == nx - 1 {
            prefetch(to.wrapping_add(nx - 1));
            prefetch(to.wrapping_add(nx - 1).wrapping_byte_sub(LINE));
        }
    }
}

/// Asks for the line at `at`, which need not be a valid address.
#[inline(always)]
fn prefetch<T>(at: *const T) {
    // SAFETY: a prefetch never faults.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) }
}
