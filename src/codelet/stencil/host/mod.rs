//! The stencils' native implementation.
//!
//! `grid` decodes the arguments and finds rows in the rings; `sweep` says
//! in which order a tile's rows are computed; `block` computes several rows
//! together with vectors, and `scalar` part of one row with a plain loop:
//! the ends of rows, and everything where there are no vectors. Both compute a
//! point by a `rule`; one that is `watched` also finds the largest change. Here the
//! processor's level is chosen. `superstep` computes several steps at once.
//!
//! A sweep is bound by memory, so the kernel keeps memory busy: streaming stores,
//! several rows at once, each prefetched well ahead, and bands of columns whose rows
//! stay in the core's own cache.
//!
//! The stencil as a plain loop.

#[cfg(target_arch = "x86_64")]
mod block;
#[cfg(target_arch = "x86_64")]
mod cached;
mod grid;
mod rule;
mod superstep;
#[cfg(target_arch = "x86_64")]
mod sweep;
mod wavefront;

use std::ops::Range;

use super as stencil;
use grid::{Grid, Row};
use rule::{Around, FromArguments, Largest, Mean, Rule, Weighted};

use crate::host::{Arguments, Level, Real, Stores};
use crate::{HostKernel, HostValue};

use super::{Dimensions, Precision};

pub use superstep::{superstep, superstep_changes};

/// Rows that a row of the 5-point stencil is computed from.
const FIVE: usize = 3;
/// Rows that a row of the 7-point stencil is computed from.
const SEVEN: usize = 5;

/// The function `$run` for a number of dimensions, a precision and a rule.
macro_rules! of_kind {
    ($run:ident, $kind:expr) => {{
        use $crate::stencil::{Dimensions, Precision, Rule};
        match $kind {
            (Dimensions::Two, Precision::F64, Rule::Mean) => $run::<f64, FIVE, Mean<f64>>,
            (Dimensions::Two, Precision::F32, Rule::Mean) => $run::<f32, FIVE, Mean<f32>>,
            (Dimensions::Three, Precision::F64, Rule::Mean) => $run::<f64, SEVEN, Mean<f64>>,
            (Dimensions::Three, Precision::F32, Rule::Mean) => $run::<f32, SEVEN, Mean<f32>>,
            (Dimensions::Two, Precision::F64, Rule::Weighted) => {
                $run::<f64, FIVE, Weighted<f64, FIVE>>
            }
            (Dimensions::Two, Precision::F32, Rule::Weighted) => {
                $run::<f32, FIVE, Weighted<f32, FIVE>>
            }
            (Dimensions::Three, Precision::F64, Rule::Weighted) => {
                $run::<f64, SEVEN, Weighted<f64, SEVEN>>
            }
            (Dimensions::Three, Precision::F32, Rule::Weighted) => {
                $run::<f32, SEVEN, Weighted<f32, SEVEN>>
            }
        }
    }};
}
use of_kind;

/// The native kernel of a stencil.
pub fn kernel(dimensions: Dimensions, precision: Precision, rule: stencil::Rule) -> HostKernel {
    of_kind!(run, (dimensions, precision, rule))
}

/// The native kernel of a stencil that finds its largest change.
pub fn changes(dimensions: Dimensions, precision: Precision, rule: stencil::Rule) -> HostKernel {
    of_kind!(run_changes, (dimensions, precision, rule))
}

/// # Safety
/// That of [`HostKernel`].
unsafe fn run<T: Real, const INPUTS: usize, R: Rule<T, INPUTS> + FromArguments>(
    args: &[HostValue],
    first: u64,
    units: Range<u64>,
) {
    let grid = Grid::<T, INPUTS, R>::decode(args, first);
    let stores = Stores::for_bytes(grid.working_set());
    // SAFETY: the caller's contract, and the level is this processor's.
    unsafe { run_at(Level::best(), stores, &grid, grid.rule, units) }
}

/// # Safety
/// That of [`HostKernel`].
unsafe fn run_changes<T: Real, const INPUTS: usize, R: Rule<T, INPUTS> + FromArguments>(
    args: &[HostValue],
    first: u64,
    units: Range<u64>,
) {
    let grid = Grid::<T, INPUTS, R>::decode(args, first);
    let stores = Stores::for_bytes(grid.working_set());
    let (_, cell) = split_changes::<T>(args);
    // SAFETY: the caller's contract, and the level is this processor's.
    unsafe { run_changes_at(Level::best(), stores, &grid, units, cell) }
}

/// The arguments without the last one, the changes, and the first cell of these. One is enough
/// on the host.
fn split_changes<T: Real>(args: &[HostValue]) -> (&[HostValue], *mut T::Bits) {
    let last = args.len().saturating_sub(1);
    let values = Arguments {
        codelet: "changes of a stencil",
        values: args,
    };
    (&args[..last], values.memory(last))
}

/// As [`run_at`]. The cell is raised to the largest change.
///
/// # Safety
/// That of [`run_at`]; others that use the cell only raise it.
unsafe fn run_changes_at<T: Real, const INPUTS: usize, R: Rule<T, INPUTS>>(
    level: Level,
    stores: Stores,
    grid: &Grid<T, INPUTS, R>,
    units: Range<u64>,
    cell: *mut T::Bits,
) {
    let largest = Largest::new();
    // SAFETY: the caller's contract.
    unsafe {
        run_at(level, stores, grid, largest.watching(grid.rule), units);
        largest.raise(cell);
    }
}

/// Computes `units` by a rule with the instructions of `level`.
///
/// # Safety
/// The processor has the level; otherwise that of [`HostKernel`].
unsafe fn run_at<T: Real, const INPUTS: usize, G>(
    level: Level,
    stores: Stores,
    grid: &Grid<T, INPUTS, G>,
    rule: impl Rule<T, INPUTS>,
    units: Range<u64>,
) {
    // SAFETY: the caller's contract. The border's rows are copied here; the
    // other units have both neighbours.
    unsafe {
        for unit in units.clone() {
            grid.keep_border_rows(unit);
        }
        let inner = units.start.max(1)..units.end.min(grid.units.saturating_sub(1));
        match level {
            Level::Scalar => scalar_sweep(grid, rule, inner),
            #[cfg(target_arch = "x86_64")]
            Level::Sse2 => sweep::sse2(stores, grid, rule, inner),
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => sweep::avx2(stores, grid, rule, inner),
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => sweep::avx512(stores, grid, rule, inner),
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = stores;
}

/// Computes inner units row by row.
///
/// # Safety
/// That of `HostKernel`; `units` have both neighbours.
unsafe fn scalar_sweep<T: Real, const INPUTS: usize, G>(
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
fn inner_rows<const INPUTS: usize>(ny: usize) -> Range<usize> {
    if INPUTS == 3 { 0..1 } else { 1..ny - 1 }
}

/// Computes the points `at` of a row of `nx`, and keeps its ends where they are next to
/// `at`.
///
/// # Safety
/// Those of [`points`]; the row's ends belong to it.
#[inline(always)]
unsafe fn row<T: Real, const INPUTS: usize>(
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
unsafe fn points<T: Real, const INPUTS: usize>(
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

#[cfg(test)]
mod tests;
