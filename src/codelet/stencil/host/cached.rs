//! Computes neighbouring rows that are in the core's own cache.
//!
//! A row between two others is south of the one and north of the other: it is loaded
//! once. [`block`], which keeps memory busy, loads it three times, and is half as
//! fast here.

use std::ops::Range;

use crate::host::{Lanes, Stores};

use super::super::host;
use super::block;
use super::grid::Row;
use super::rule::{Around, Rule, VectorRule};

/// Computes the points `at` of rows each of which lies south of the one before it: each
/// is the south of that one, which is its north. Otherwise as [`block::compute`].
///
/// # Safety
/// Those of [`block::compute`] for every row; the targets have the same alignment.
#[inline(always)]
pub(super) unsafe fn compute<V: Lanes, const INPUTS: usize, const ROWS: usize>(
    rows: &[Row<V::Scalar, INPUTS>; ROWS],
    nx: usize,
    at: Range<usize>,
    rule: impl Rule<V::Scalar, INPUTS>,
    stores: Stores,
) {
    let is_tail = at.end == nx - 1;
    let start = block::aligned(rows[0].to, at.start).min(at.end);
    let points = if is_tail { at.end - start } else { at.len() };
    let vectors = points / V::POINTS;
    // SAFETY: the caller's contract. In the tail the vectors end within `at`;
    // elsewhere less than a line after it, within the inner points.
    unsafe {
        match stores {
            Stores::Plain => vectorised::<V, INPUTS, ROWS, false>(rows, start, vectors, rule),
            Stores::Stream => vectorised::<V, INPUTS, ROWS, true>(rows, start, vectors, rule),
        }
        for row in rows {
            if at.start == 1 {
                row.keep(0);
                host::points(row, 1..start, rule);
            }
            if is_tail {
                host::points(row, start + vectors * V::POINTS..at.end, rule);
                row.keep(at.end);
            }
        }
    }
}

/// Computes as many vectors of every row from `start` on.
///
/// # Safety
/// As for [`compute`]; the rows have a point more on either side.
#[inline(always)]
unsafe fn vectorised<V: Lanes, const INPUTS: usize, const ROWS: usize, const STREAM: bool>(
    rows: &[Row<V::Scalar, INPUTS>; ROWS],
    start: usize,
    vectors: usize,
    rule: impl Rule<V::Scalar, INPUTS>,
) {
    if vectors == 0 {
        return;
    }
    // SAFETY: the caller's contract.
    unsafe {
        let mut rule = rule.splat::<V>();
        let some = V::load(rows[0].inputs[0].add(start));
        let (mut before, mut here) = ([some; ROWS], [some; ROWS]);
        for h in 0..ROWS {
            let row = rows[h].inputs[0].add(start);
            // Of the vector before the first only the last point matters.
            before[h] = V::splat(*row.sub(1));
            here[h] = V::load(row);
        }
        let last = start + (vectors - 1) * V::POINTS;
        let mut x = start;
        loop {
            let (mut after, mut results) = ([some; ROWS], [some; ROWS]);
            for h in 0..ROWS {
                let east = rows[h].inputs[0].add(x + V::POINTS);
                // Beyond the last vector there is but one point for certain.
                after[h] = if x == last {
                    V::splat(*east)
                } else {
                    V::load(east)
                };
            }
            for h in 0..ROWS {
                let mut inputs = [here[h]; INPUTS];
                inputs[1] = if h == 0 {
                    V::load(rows[h].inputs[1].add(x))
                } else {
                    here[h - 1]
                };
                inputs[2] = if h == ROWS - 1 {
                    V::load(rows[h].inputs[2].add(x))
                } else {
                    here[h + 1]
                };
                for (k, input) in inputs.iter_mut().enumerate().skip(3) {
                    *input = V::load(rows[h].inputs[k].add(x));
                }
                let (west, east) = (here[h].west(before[h]), here[h].east(after[h]));
                results[h] = rule.vector(&Around {
                    rows: inputs,
                    west,
                    east,
                });
            }
            for h in 0..ROWS {
                let to = rows[h].to.add(x);
                rule.watch(here[h], results[h]);
                if STREAM {
                    results[h].stream(to);
                } else {
                    results[h].store(to);
                }
            }
            if x == last {
                break;
            }
            (before, here) = (here, after);
            x += V::POINTS;
        }
        rule.finish();
    }
}
