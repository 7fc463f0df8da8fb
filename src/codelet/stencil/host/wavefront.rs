//! All steps of one tile, in a wavefront.
//!
//! The versions go down the tile's units together, each one unit behind the one that it is
//! computed from (see [`super::slots`]). The first is read from the grid, the last is
//! written to it, and those between lie in scratch that stays in the core's cache. A version
//! that `n` more steps follow is computed `n` points beyond the tile on every side, as far
//! as the grid goes. The grid's outermost points keep their values, so all versions of
//! outermost rows are read where the first one lies.

use std::ops::Range;

use crate::host::{Real, Stores};

use super::grid::{self, Grid, Row};
use super::inner_rows;
use super::tiles::{Tile, line};

/// Rows that are computed together. In 3-D, where more rows need more addresses than there
/// are registers, 4 were a tenth slower than 2; in 2-D 2 were a tenth slower than 4.
const fn rows_together(inputs: usize) -> usize {
    if inputs == super::FIVE { 4 } else { 2 }
}

/// Computes points of rows, of the last version or of one before it; `nx` is their length. What [`super::block::compute`] says of `at`
/// holds here.
pub(super) trait Rows<T, const INPUTS: usize> {
    /// # Safety
    /// Those of [`super::block::compute`].
    unsafe fn one(
        &self,
        row: &Row<T, INPUTS>,
        nx: usize,
        at: Range<usize>,
        stores: Stores,
        is_last: bool,
    );

    /// Rows each of which lies south of the one before it.
    ///
    /// # Safety
    /// Those of [`super::cached::compute`].
    unsafe fn neighbours<const ROWS: usize>(
        &self,
        rows: &[Row<T, INPUTS>; ROWS],
        nx: usize,
        at: Range<usize>,
        stores: Stores,
        is_last: bool,
    );
}

/// A tile that is computed for all steps.
pub(super) struct Wavefront<'a, T, const INPUTS: usize, R> {
    grid: &'a Grid<T, INPUTS, R>,
    steps: usize,
    tile: Tile,
    /// The grid's column and row that scratch begins with. The column is a multiple of
    /// a line: a row of the grid and its copy have the same alignment.
    left: usize,
    top: usize,
    /// Points of a row and of a unit in scratch.
    stride: usize,
    unit_points: usize,
    /// Where the versions' blocks begin: unit plus step.
    begin: usize,
}

impl<'a, T: Real, const INPUTS: usize, R> Wavefront<'a, T, INPUTS, R> {
    const BLOCK: usize = grid::block(INPUTS);
    const LINE: usize = line(size_of::<T>());

    /// A tile of inner points of the grid.
    pub(super) fn new(grid: &'a Grid<T, INPUTS, R>, steps: usize, tile: Tile) -> Self {
        // A vector more than the halo: ranges of points begin at lines.
        let left = tile.columns.start.saturating_sub(steps + Self::LINE);
        let top = tile.rows.start.saturating_sub(steps);
        let begin = (tile.units.start + 2).saturating_sub(steps).max(2);
        let mut this = Self {
            grid,
            steps,
            left: left / Self::LINE * Self::LINE,
            top,
            stride: 0,
            unit_points: 0,
            begin,
            tile,
        };
        // The last vectors read and write beyond the range. An odd number of lines keeps the
        // same column of neighbouring rows apart in the cache.
        let lines = (this.columns(1).end + 2 * Self::LINE).div_ceil(Self::LINE) | 1;
        this.stride = lines * Self::LINE;
        this.unit_points = this.stride * (this.tile.rows.end + steps - top);
        this
    }

    /// Points of scratch.
    pub(super) fn scratch_points(&self) -> usize {
        grid::count(Self::BLOCK, self.steps) * self.unit_points
    }

    /// Units whose version after `step` steps is computed.
    fn units(&self, step: usize) -> Range<usize> {
        widened(
            &self.tile.units,
            self.steps - step,
            &(1..self.grid.units as usize - 1),
        )
    }

    /// Rows of it.
    fn rows(&self, step: usize) -> Range<usize> {
        let inner = inner_rows::<INPUTS>(self.grid.ny);
        widened(&self.tile.rows, self.steps - step, &inner)
    }

    /// Columns of it, counted from `left`.
    fn columns(&self, step: usize) -> Range<usize> {
        let columns = self.tile.columns.start - self.left..self.tile.columns.end - self.left;
        let halo = self.steps - step;
        if halo == 0 {
            return columns;
        }
        // The last version's vectors may begin and end up to a line later than the tile.
        // What is computed beyond the halo may be anything: nothing that matters is
        // computed from it.
        let start = columns.start.saturating_sub(halo) / Self::LINE * Self::LINE;
        let end = (columns.end + Self::LINE + halo).next_multiple_of(Self::LINE);
        let nx = self.grid.nx - self.left;
        // The last vectors end less than a line later and read a point more.
        let is_tail = end + Self::LINE >= nx;
        start.max(1)..if is_tail { nx - 1 } else { end }
    }

    /// Computes the tile.
    ///
    /// # Safety
    /// That of `HostKernel` for the tile's units, and of `compute`; scratch has
    /// [`Self::scratch_points`], aligned to a line.
    #[inline(always)]
    pub(super) unsafe fn run(
        &self,
        compute: &impl Rows<T, INPUTS>,
        stores: Stores,
        scratch: *mut T,
    ) {
        let end = self.tile.units.end + self.steps;
        for begin in (self.begin..end).step_by(Self::BLOCK) {
            for step in 1..=self.steps {
                let of_step = self.units(step);
                let units = begin.saturating_sub(step).max(of_step.start)
                    ..(begin + Self::BLOCK).saturating_sub(step).min(of_step.end);
                // SAFETY: the caller's contract; what this is computed from was computed
                // before.
                unsafe { self.advance(compute, stores, scratch, step, units) }
            }
        }
    }

    /// Computes the version after `step` steps of some units.
    ///
    /// # Safety
    /// That of [`Self::run`], and the version before it is there.
    #[inline(always)]
    unsafe fn advance(
        &self,
        compute: &impl Rows<T, INPUTS>,
        stores: Stores,
        scratch: *mut T,
        step: usize,
        units: Range<usize>,
    ) {
        let (rows, columns) = (self.rows(step), self.columns(step));
        let nx = self.grid.nx - self.left;
        let is_last = step == self.steps;
        let stores = if is_last { stores } else { Stores::Plain };
        // Rows computed together have the same alignment.
        let is_aligned = !is_last || self.grid.nx.is_multiple_of(Self::LINE);
        // Neighbouring rows are units in 2-D. In 3-D they are rows of a unit, and units
        // follow one another while their rows are in the first-level cache.
        let (along, across) = if INPUTS == super::FIVE {
            (units, 0..1)
        } else {
            (rows, units)
        };
        // SAFETY (both): the caller's contract.
        let row = |i: usize, j: usize| unsafe {
            let (unit, y) = if INPUTS == super::FIVE {
                (i, j)
            } else {
                (j, i)
            };
            self.prefetch(step, unit, y);
            self.row(scratch, step, unit, y)
        };
        let most = rows_together(INPUTS);
        let mut i = along.start;
        while i < along.end {
            let together = if is_aligned && along.len() >= most {
                // The last rows may be computed twice, from the same inputs.
                i = i.min(along.end - most);
                most
            } else {
                1
            };
            for j in across.clone() {
                unsafe {
                    match together {
                        4 => {
                            let rows = [row(i, j), row(i + 1, j), row(i + 2, j), row(i + 3, j)];
                            compute.neighbours(&rows, nx, columns.clone(), stores, is_last);
                        }
                        2 => {
                            let rows = [row(i, j), row(i + 1, j)];
                            compute.neighbours(&rows, nx, columns.clone(), stores, is_last);
                        }
                        _ => compute.one(&row(i, j), nx, columns.clone(), stores, is_last),
                    }
                }
            }
            i += together;
        }
    }

    /// The row `y` of a unit, to be computed from the version before `step`.
    ///
    /// # Safety
    /// That of [`Self::run`].
    #[inline(always)]
    unsafe fn row(&self, scratch: *mut T, step: usize, unit: usize, y: usize) -> Row<T, INPUTS> {
        // SAFETY: the caller's contract; inner points have all neighbours.
        unsafe {
            let input = |unit, y| self.version(scratch, step - 1, unit, y);
            let mut inputs = [input(unit, y); INPUTS];
            if INPUTS == super::FIVE {
                inputs[1] = input(unit - 1, y);
            } else {
                inputs[1] = input(unit, y - 1);
                inputs[2] = input(unit, y + 1);
                inputs[3] = input(unit - 1, y);
            }
            inputs[INPUTS - 1] = input(unit + 1, y);
            let to = if step == self.steps {
                let at = y * self.grid.nx + self.left;
                self.grid.target(unit as u64).add(at)
            } else {
                self.kept(scratch, step, unit, y)
            };
            Row { inputs, to }
        }
    }

    /// Where the version after `step` steps of a row is read.
    ///
    /// # Safety
    /// That of [`Self::run`].
    #[inline(always)]
    unsafe fn version(&self, scratch: *mut T, step: usize, unit: usize, y: usize) -> *const T {
        let is_border = unit == 0
            || unit + 1 == self.grid.units as usize
            || INPUTS == super::SEVEN && (y == 0 || y + 1 == self.grid.ny);
        // SAFETY: the caller's contract.
        unsafe {
            if step == 0 || is_border {
                self.source(unit, y)
            } else {
                self.kept(scratch, step, unit, y)
            }
        }
    }

    /// # Safety
    /// That of [`Self::run`].
    #[inline(always)]
    unsafe fn source(&self, unit: usize, y: usize) -> *const T {
        let at = y * self.grid.nx + self.left;
        // SAFETY: the caller's contract.
        unsafe { self.grid.source(unit as u64).add(at) }
    }

    /// # Safety
    /// That of [`Self::run`]; the row is one of scratch.
    #[inline(always)]
    unsafe fn kept(&self, scratch: *mut T, step: usize, unit: usize, y: usize) -> *mut T {
        let slot = grid::slot(Self::BLOCK, step, unit + step - self.begin);
        // SAFETY: scratch has the slot.
        unsafe { scratch.add(slot * self.unit_points + (y - self.top) * self.stride) }
    }

    /// Asks for this step's part of the row that the first step reads in the next block.
    /// All steps share the row, so that memory is busy all the time.
    ///
    /// # Safety
    /// That of [`Self::run`].
    #[inline(always)]
    unsafe fn prefetch(&self, step: usize, unit: usize, y: usize) {
        let soon = unit + step + Self::BLOCK;
        let lines = self.columns(1).end.div_ceil(Self::LINE);
        let part = lines * (step - 1) / self.steps..lines * step / self.steps;
        if part.is_empty()
            || soon >= (self.tile.units.end + self.steps).min(self.grid.units as usize)
        {
            return;
        }
        // SAFETY: the launch may read the unit.
        let row = unsafe { self.source(soon, y) };
        for line in part {
            prefetch(row.wrapping_add(line * Self::LINE));
        }
    }
}

/// `range` with `halo` more on either side, as far as `all` goes.
fn widened(range: &Range<usize>, halo: usize, all: &Range<usize>) -> Range<usize> {
    range.start.saturating_sub(halo).max(all.start)..(range.end + halo).min(all.end)
}

/// Asks for the line at `at`, which need not be a valid address.
#[inline(always)]
fn prefetch<T>(at: *const T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch never faults.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}
