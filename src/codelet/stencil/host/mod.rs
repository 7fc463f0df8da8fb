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

#[cfg(target_arch = "x86_64")]
mod block;
#[cfg(target_arch = "x86_64")]
mod cached;
mod grid;
mod rule;
mod scalar;
mod slots;
mod superstep;
#[cfg(target_arch = "x86_64")]
mod sweep;
#[cfg(test)]
mod tests;
mod tiles;
mod watched;
mod wavefront;

use std::ops::Range;

use super::{self as stencil, Dimensions, Precision};
use crate::host::{Arguments, Level, Real, Stores};
use crate::{HostKernel, HostValue};
use grid::Grid;
use rule::{FromArguments, Mean, Rule, Weighted};
use watched::Largest;

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
            Level::Scalar => scalar::sweep(grid, rule, inner),
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
