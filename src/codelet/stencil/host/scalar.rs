//! The stencil as a plain loop.

use std::ops::Range;

use super::grid::{Grid, Row};
use super::rule::{Around, Rule};
use crate::host::Real;

/// Computes inner units row by row.
///
/// # Safety
/// That of `HostKernel`; `units` have both neighbours.
pub(super) unsafe fn sweep<T: Real, const INPUTS: usize, G>(
    grid: &Grid<T, INPUTS, G>,
    rule: impl Rule<T, INPUTS>,
    units: Range<u64>,
) {
    let rows = inner_rows::<INPUTS>(grid.ny);
    for unit in units {
        for y in rows.clone() {
            // SAFETY: the caller's contract.
            unsafe {
                let inner = 1..grid.nx - 1;
                row(&grid.row(unit, y), grid.nx, inner, rule);
            }
        }
    }
}

/// The rows of an inner unit that are computed: the only one in 2-D, all but
/// the outermost in 3-D.
#[inline(always)]
pub(super) fn inner_rows<const INPUTS: usize>(ny: usize) -> Range<usize> {
    if INPUTS == 3 { 0..1 } else { 1..ny - 1 }
}

/// Computes the points `at` of a row of `nx`, and keeps its ends where they are next to
/// `at`.
///
/// # Safety
/// Those of [`points`]; the row's ends belong to it.
#[inline(always)]
pub(super) unsafe fn row<T: Real, const INPUTS: usize>(
    row: &Row<T, INPUTS>,
    nx: usize,
    at: Range<usize>,
    rule: impl Rule<T, INPUTS>,
) {
    // SAFETY: the caller's contract.
    unsafe {
        if at.start == 1 {
            row.keep(0);
        }
        if at.end == nx - 1 {
            row.keep(nx - 1);
        }
        points(row, at, rule);
    }
}

/// Computes the points `at` of a row.
///
/// # Safety
/// Every input and the target hold `at` and one point on either side; nobody
/// else writes the inputs or touches the target's points.
#[inline(always)]
pub(super) unsafe fn points<T: Real, const INPUTS: usize>(
    row: &Row<T, INPUTS>,
    at: Range<usize>,
    rule: impl Rule<T, INPUTS>,
) {
    let count = at.len();
    // SAFETY: the caller's contract; the target differs from every input.
    unsafe {
        let input = |i: usize| std::slice::from_raw_parts(row.inputs[i].add(at.start), count);
        let rows: [&[T]; INPUTS] = std::array::from_fn(input);
        let west = std::slice::from_raw_parts(row.inputs[0].add(at.start).sub(1), count);
        let east = std::slice::from_raw_parts(row.inputs[0].add(at.start + 1), count);
        let to = std::slice::from_raw_parts_mut(row.to.add(at.start), count);
        for x in 0..count {
            to[x] = rule.point(&Around {
                rows: rows.map(|row| row[x]),
                west: west[x],
                east: east[x],
            });
        }
        rule.watch(rows[0], to);
    }
}
