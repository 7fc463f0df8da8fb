//! Several steps at once.
//!
//! A step is bound by memory: it reads and writes the whole grid. A superstep reads and writes
//! it once. `wavefront` cuts the work into tiles, and computes all steps of one, `slots` says where
//! the tile keeps what is between, and `cached` computes its rows.

use std::cell::RefCell;
use std::marker::PhantomData;
use std::ops::Range;

#[cfg(target_os = "linux")]
use memmap2::Advice;
use memmap2::MmapMut;

use crate::host::{Arguments, Level, Real, Stores, for_each_piece, piece};
#[cfg(target_arch = "x86_64")]
use crate::host::{Lanes, fence};
use crate::{HostValue, SharedKernel};

use super::super::host;
use super::grid::{self, Grid, Row};
use super::rule::{FromArguments, Largest, Mean, Rule, Weighted};
use super::wavefront::{Rows, Tiles, Wavefront, Work};
use super::{Dimensions, FIVE, Precision, SEVEN, of_kind, split_changes, stencil};

/// The native kernel of a stencil's superstep.
pub fn superstep(
    dimensions: Dimensions,
    precision: Precision,
    rule: stencil::Rule,
) -> SharedKernel {
    of_kind!(run, (dimensions, precision, rule))
}

/// The native kernel of a superstep that finds the largest change of its last step.
pub fn superstep_changes(
    dimensions: Dimensions,
    precision: Precision,
    rule: stencil::Rule,
) -> SharedKernel {
    of_kind!(run_changes, (dimensions, precision, rule))
}

/// # Safety
/// That of [`SharedKernel`].
pub(super) unsafe fn run<
    T: Real,
    const INPUTS: usize,
    R: Rule<T, INPUTS> + FromArguments + Sync,
>(
    args: &[HostValue],
    first: u64,
    units: Range<u64>,
    threads: usize,
) {
    // SAFETY: the caller's contract.
    unsafe { launch::<T, INPUTS, R>(args, None, first, units, threads) }
}

/// # Safety
/// That of [`SharedKernel`].
pub(super) unsafe fn run_changes<
    T: Real,
    const INPUTS: usize,
    R: Rule<T, INPUTS> + FromArguments + Sync,
>(
    args: &[HostValue],
    first: u64,
    units: Range<u64>,
    threads: usize,
) {
    let (args, cell) = split_changes::<T>(args);
    // SAFETY: the caller's contract.
    unsafe { launch::<T, INPUTS, R>(args, Some(cell), first, units, threads) }
}

/// # Safety
/// That of [`run_at`]; the arguments are those of a superstep.
unsafe fn launch<T: Real, const INPUTS: usize, R: Rule<T, INPUTS> + FromArguments + Sync>(
    args: &[HostValue],
    changes: Option<*mut T::Bits>,
    first: u64,
    units: Range<u64>,
    threads: usize,
) {
    let grid = Grid::<T, INPUTS, R>::decode(args, first);
    let steps = args.len() - 1;
    let args = Arguments {
        codelet: "superstep of a stencil",
        values: args,
    };
    let work = work(&grid, &units, args.u32(steps), threads.max(1));
    let stores = Stores::for_bytes(grid.working_set());
    // SAFETY: the caller's contract, and the level is this processor's.
    unsafe {
        let tiles = work.tiles();
        run_at(Level::best(), stores, &grid, changes, units, &work, &tiles);
    }
}

/// What is to be computed of `units`.
///
/// # Panics
/// When there are no steps, which is a fault in the caller's code.
pub(super) fn work<T: Real, const INPUTS: usize, R: Rule<T, INPUTS>>(
    grid: &Grid<T, INPUTS, R>,
    units: &Range<u64>,
    steps: usize,
    threads: usize,
) -> Work {
    assert!(steps > 0, "a superstep has one step at least");
    Work {
        units: units.start.max(1) as usize..units.end.min(grid.units.saturating_sub(1)) as usize,
        rows: host::inner_rows::<INPUTS>(grid.ny),
        columns: 1..grid.nx - 1,
        point: size_of::<T>(),
        block: grid::block(INPUTS),
        steps,
        threads,
    }
}

/// Computes `units` with the instructions of `level`, `work` being what is to be computed
/// of them and `tiles` at most [`Work::most_tiles`]. The cell `changes` is raised to the largest
/// change of the last step.
///
/// # Safety
/// The processor has the level; otherwise that of [`SharedKernel`]. Others that use the cell
/// only raise it.
pub(super) unsafe fn run_at<T: Real, const INPUTS: usize, R: Rule<T, INPUTS> + Sync>(
    level: Level,
    stores: Stores,
    grid: &Grid<T, INPUTS, R>,
    changes: Option<*mut T::Bits>,
    units: Range<u64>,
    work: &Work,
    tiles: &Tiles,
) {
    let shared = Shared { grid, changes };
    let threads = work.threads;
    for_each_piece(threads, threads, |number| {
        for unit in piece((units.end - units.start) as usize, 1, number, threads) {
            // SAFETY: the caller's contract; the pieces are disjoint.
            unsafe { shared.grid().keep_border_rows(units.start + unit as u64) }
        }
    });
    if work.units.is_empty() {
        return;
    }
    for_each_piece(threads, tiles.count(), |number| {
        let grid = shared.grid();
        let wavefront = Wavefront::new(grid, work.steps, work.tile(tiles, number));
        with_scratch(wavefront.scratch_points(), |scratch| {
            // SAFETY: the caller's contract; the tiles are disjoint.
            unsafe {
                match shared.changes() {
                    None => tile_at(level, &wavefront, grid.rule, stores, scratch),
                    Some(cell) => {
                        let largest = Largest::new();
                        let rule = largest.watching(grid.rule);
                        tile_at(level, &wavefront, rule, stores, scratch);
                        largest.raise(cell);
                    }
                }
            }
        });
    });
}

/// Computes a tile by a rule with the instructions of `level`.
///
/// # Safety
/// The processor has the level; otherwise that of [`Wavefront::run`].
unsafe fn tile_at<T: Real, const INPUTS: usize, G>(
    level: Level,
    wavefront: &Wavefront<'_, T, INPUTS, G>,
    rule: impl Rule<T, INPUTS>,
    stores: Stores,
    scratch: *mut T,
) {
    // SAFETY: the caller's contract.
    unsafe {
        match level {
            Level::Scalar => wavefront.run(&Plain(rule), stores, scratch),
            #[cfg(target_arch = "x86_64")]
            Level::Sse2 => sse2(wavefront, rule, stores, scratch),
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => avx2(wavefront, rule, stores, scratch),
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => avx512(wavefront, rule, stores, scratch),
        }
    }
}

/// What several threads use.
struct Shared<'a, T: Real, const INPUTS: usize, R> {
    grid: &'a Grid<T, INPUTS, R>,
    changes: Option<*mut T::Bits>,
}

// SAFETY: a grid is addresses and numbers. The threads write disjoint parts of the
// memory behind it, and none that they read. They only raise the cell.
unsafe impl<T: Real, const INPUTS: usize, R: Sync> Sync for Shared<'_, T, INPUTS, R> {}

impl<'a, T: Real, const INPUTS: usize, R> Shared<'a, T, INPUTS, R> {
    fn grid(&self) -> &'a Grid<T, INPUTS, R> {
        self.grid
    }

    fn changes(&self) -> Option<*mut T::Bits> {
        self.changes
    }
}

/// Bytes of a huge page.
const HUGE: usize = 2 << 20;

/// Calls `work` with so many points of scratch, aligned to a line. A thread keeps its
/// scratch, whose pages would else be new ones for every tile. Its pages are huge where the
/// system has them: threads that touch new pages at once wait for each other.
fn with_scratch<T>(points: usize, work: impl FnOnce(*mut T)) {
    thread_local! {
        static SCRATCH: RefCell<Option<MmapMut>> = const { RefCell::new(None) };
    }
    SCRATCH.with_borrow_mut(|scratch| {
        // Room for a beginning at a huge page.
        let bytes = (points * size_of::<T>()).next_multiple_of(HUGE) + HUGE;
        let mapping = match scratch.take().filter(|kept| kept.len() >= bytes) {
            Some(kept) => kept,
            None => map(bytes),
        };
        let begin = scratch.insert(mapping).as_mut_ptr();
        // SAFETY: less than a huge page, which the mapping has beside the points.
        work(unsafe { begin.add(begin.align_offset(HUGE)) }.cast());
    });
}

/// New memory of so many bytes.
///
/// # Panics
/// When the system has none; whoever launched the codelet is told.
fn map(bytes: usize) -> MmapMut {
    let mapping = MmapMut::map_anon(bytes).expect("memory for the tiles of a superstep");
    #[cfg(target_os = "linux")]
    // A kernel without huge pages refuses; small pages serve as well.
    let _ = mapping.advise(Advice::HugePage);
    mapping
}

/// Rows as plain loops.
struct Plain<R>(R);

impl<T: Real, const INPUTS: usize, R: Rule<T, INPUTS>> Rows<T, INPUTS> for Plain<R> {
    #[inline(always)]
    unsafe fn one(
        &self,
        row: &Row<T, INPUTS>,
        nx: usize,
        at: Range<usize>,
        _: Stores,
        is_last: bool,
    ) {
        // SAFETY: the caller's contract.
        unsafe {
            if R::WATCHES && !is_last {
                host::row(row, nx, at, self.0.unwatched());
            } else {
                host::row(row, nx, at, self.0);
            }
        }
    }

    #[inline(always)]
    unsafe fn neighbours<const ROWS: usize>(
        &self,
        rows: &[Row<T, INPUTS>; ROWS],
        nx: usize,
        at: Range<usize>,
        stores: Stores,
        is_last: bool,
    ) {
        for row in rows {
            // SAFETY: the caller's contract.
            unsafe { self.one(row, nx, at.clone(), stores, is_last) }
        }
    }
}

/// Rows with vectors.
#[cfg(target_arch = "x86_64")]
struct Vectors<V, R>(R, PhantomData<V>);

#[cfg(target_arch = "x86_64")]
impl<V: Lanes, const INPUTS: usize, R: Rule<V::Scalar, INPUTS>> Rows<V::Scalar, INPUTS>
    for Vectors<V, R>
{
    #[inline(always)]
    unsafe fn one(
        &self,
        row: &Row<V::Scalar, INPUTS>,
        nx: usize,
        at: Range<usize>,
        stores: Stores,
        is_last: bool,
    ) {
        use super::block::compute;
        // SAFETY: the caller's contract.
        unsafe {
            if R::WATCHES && !is_last {
                compute::<V, INPUTS, 1>(row, row, nx, at, self.0.unwatched(), stores);
            } else {
                compute::<V, INPUTS, 1>(row, row, nx, at, self.0, stores);
            }
        }
    }

    #[inline(always)]
    unsafe fn neighbours<const ROWS: usize>(
        &self,
        rows: &[Row<V::Scalar, INPUTS>; ROWS],
        nx: usize,
        at: Range<usize>,
        stores: Stores,
        is_last: bool,
    ) {
        use super::cached::compute;
        // SAFETY: the caller's contract.
        unsafe {
            if R::WATCHES && !is_last {
                compute::<V, INPUTS, ROWS>(rows, nx, at, self.0.unwatched(), stores);
            } else {
                compute::<V, INPUTS, ROWS>(rows, nx, at, self.0, stores);
            }
        }
    }
}

/// # Safety
/// The processor has AVX-512F; otherwise that of [`Wavefront::run`].
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
unsafe fn avx512<T: Real, const INPUTS: usize, G, R: Rule<T, INPUTS>>(
    wavefront: &Wavefront<'_, T, INPUTS, G>,
    rule: R,
    stores: Stores,
    scratch: *mut T,
) {
    // SAFETY: the caller's contract.
    unsafe { wavefront.run(&Vectors::<T::Avx512, R>(rule, PhantomData), stores, scratch) }
    fence();
}

/// # Safety
/// The processor has AVX2; otherwise that of [`Wavefront::run`].
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn avx2<T: Real, const INPUTS: usize, G, R: Rule<T, INPUTS>>(
    wavefront: &Wavefront<'_, T, INPUTS, G>,
    rule: R,
    stores: Stores,
    scratch: *mut T,
) {
    // SAFETY: the caller's contract.
    unsafe { wavefront.run(&Vectors::<T::Avx2, R>(rule, PhantomData), stores, scratch) }
    fence();
}

/// # Safety
/// That of [`Wavefront::run`]; every x86-64 processor has SSE2.
#[cfg(target_arch = "x86_64")]
unsafe fn sse2<T: Real, const INPUTS: usize, G, R: Rule<T, INPUTS>>(
    wavefront: &Wavefront<'_, T, INPUTS, G>,
    rule: R,
    stores: Stores,
    scratch: *mut T,
) {
    // SAFETY: the caller's contract.
    unsafe { wavefront.run(&Vectors::<T::Sse2, R>(rule, PhantomData), stores, scratch) }
    fence();
}
