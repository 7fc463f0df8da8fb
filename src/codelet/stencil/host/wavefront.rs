//! All steps of one tile, in a wavefront.
//!
//! The versions go down the tile's units together, each one unit behind the one that it is
//! computed from (see [`super::slots`]). The first is read from the grid, the last is
//! written to it, and those between lie in scratch that stays in the core's cache. A version
//! that `n` more steps follow is computed `n` points beyond the tile on every side, as far
//! as the grid goes. The grid's outermost points keep their values, so all versions of
//! outermost rows are read where the first one lies.

use std::ops::Range;

use crate::host::{Real, Stores, piece};

use super::grid::{self, Grid, Row};
use super::inner_rows;

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

// How a superstep is cut into tiles.
//
// A tile is computed for all steps before the next one, in scratch that stays in the
// core's own cache. It computes its halo itself, so that it waits for no other tile: what
// `n` more steps follow is computed `n` points beyond the tile. Small tiles compute much
// of that, and large ones leave the cache.

/// Scratch that stays in a second-level cache of a megabyte.
const OWN_CACHE_BYTES: usize = 768 << 10;

/// Scratch that stays in a core's share of the last-level cache.
const SHARED_CACHE_BYTES: usize = 3 << 20;

/// Time with scratch in the last-level cache instead of the second-level one. Measured on
/// a Zen 4 core in Gpoint/s (AVX-512, doubles, best of 5 runs), with scratch of up to
///
/// | | 0.5 | 0.75 | 1 | 2 | 3 | 4 | 8 MiB |
/// |---|---|---|---|---|---|---|---|
/// | 4096 x 4096, 32 steps | 4.14 | 4.23 | 4.33 | 4.18 | | | |
/// | 4096 x 4096, 64 steps | 2.62 | 3.56 | 3.38 | 4.11 | | | |
/// | 258^3, 4 steps | 0.94 | | 1.38 | 1.46 | 1.47 | 1.48 | 1.34 |
/// | 258^3, 8 steps | 0.54 | | 1.04 | 1.38 | 1.59 | 1.65 | 1.69 |
const SHARED_CACHE_TIME: f64 = 1.15;

/// Threads compute at most so many tiles one after the other, unless even more are needed for
/// the caches: rounds that are not full cost less then than the halos of more tiles.
const MOST_ROUNDS: usize = 8;

/// What the computation of a row costs beside its points, in bytes of that row.
const ROW_BYTES: usize = 512;

/// Points of a cache line.
const fn line(point: usize) -> usize {
    64 / point
}

/// What a superstep computes.
#[derive(Clone, Debug)]
pub(super) struct Work {
    /// Inner units, and the inner rows and columns of each.
    pub(super) units: Range<usize>,
    pub(super) rows: Range<usize>,
    pub(super) columns: Range<usize>,
    /// Bytes of a point.
    pub(super) point: usize,
    /// Units of a block of a version.
    pub(super) block: usize,
    pub(super) steps: usize,
    pub(super) threads: usize,
}

/// A part of the work.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tile {
    pub(super) units: Range<usize>,
    pub(super) rows: Range<usize>,
    pub(super) columns: Range<usize>,
}

/// Number of parts that each axis of the work is cut into.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Tiles {
    pub(super) units: usize,
    pub(super) rows: usize,
    pub(super) columns: usize,
}

impl Work {
    /// The greatest number of tiles. Vectors may end up to a line later than their tile,
    /// so that the last one has three lines at least.
    pub(super) fn most_tiles(&self) -> Tiles {
        Tiles {
            units: self.units.len(),
            rows: self.rows.len(),
            columns: (self.columns.len() / line(self.point) / 4).max(1),
        }
    }

    /// The tiles of the least expected time.
    pub(super) fn tiles(&self) -> Tiles {
        let most = self.most_tiles();
        let shapes = sizes(self.columns.len(), most.columns)
            .flat_map(|columns| sizes(self.rows.len(), most.rows).map(move |rows| (rows, columns)));
        let tiles = shapes.flat_map(|(rows, columns)| {
            let least = (rows * columns).div_ceil(self.threads);
            // As many parts of the units as the threads compute in so many rounds.
            (least..=least.max(MOST_ROUNDS)).map(move |rounds| Tiles {
                units: (rounds * self.threads / (rows * columns)).clamp(1, most.units.max(1)),
                rows,
                columns,
            })
        });
        let time = tiles.map(|tiles| (self.time(&tiles), tiles));
        let least = time.min_by(|(a, _), (b, _)| a.total_cmp(b));
        let one = Tiles {
            units: 1,
            rows: 1,
            columns: 1,
        };
        least.map_or(one, |(_, tiles)| tiles)
    }

    /// Expected time with these tiles: that of a point in the second-level cache is 1.
    fn time(&self, tiles: &Tiles) -> f64 {
        let rounds = tiles.count().div_ceil(self.threads);
        let length = self.units.len().div_ceil(tiles.units) + self.steps - 1;
        (rounds * length) as f64 * self.unit_time((tiles.rows, tiles.columns))
    }

    /// Expected time of a unit of a tile, if the work is cut into so many parts of rows and of
    /// columns.
    fn unit_time(&self, (row_parts, column_parts): (usize, usize)) -> f64 {
        let rows = self.rows.len().div_ceil(row_parts);
        let columns = self.columns.len().div_ceil(column_parts);
        let halo = self.steps - 1;
        // Halos of the first step, on both sides; the steps' average is half of that.
        let row_halo = if row_parts > 1 { 2 * halo } else { 0 };
        let column_halo = if column_parts > 1 {
            2 * (halo + line(self.point))
        } else {
            0
        };
        let (computed_rows, computed_columns) = (rows + row_halo / 2, columns + column_halo / 2);
        let call = 1.0 + ROW_BYTES as f64 / (computed_columns * self.point) as f64;
        let bytes = self.scratch_bytes(rows + row_halo, columns + column_halo);
        (computed_rows * computed_columns) as f64 * call * cache_time(bytes)
    }

    /// Bytes of a tile's scratch, whose first step computes so many rows and columns.
    fn scratch_bytes(&self, rows: usize, columns: usize) -> usize {
        grid::count(self.block, self.steps) * rows * columns * self.point
    }

    /// One of the tiles, of which there are [`Tiles::count`].
    pub(super) fn tile(&self, tiles: &Tiles, number: usize) -> Tile {
        let (rest, column) = (number / tiles.columns, number % tiles.columns);
        let (unit, row) = (rest / tiles.rows, rest % tiles.rows);
        let part = |all: &Range<usize>, grain, number, count| {
            let part = piece(all.len(), grain, number, count);
            all.start + part.start..all.start + part.end
        };
        Tile {
            units: part(&self.units, 1, unit, tiles.units),
            rows: part(&self.rows, 1, row, tiles.rows),
            columns: part(&self.columns, line(self.point), column, tiles.columns),
        }
    }
}

impl Tiles {
    pub(super) fn count(&self) -> usize {
        self.units * self.rows * self.columns
    }
}

/// Expected time with so much scratch, against one in the second-level cache. Beyond
/// the caches it grows without bound, so that the search comes back.
fn cache_time(bytes: usize) -> f64 {
    if bytes <= OWN_CACHE_BYTES {
        1.0
    } else {
        SHARED_CACHE_TIME * (bytes as f64 / SHARED_CACHE_BYTES as f64).max(1.0)
    }
}

/// Numbers of parts, up to `most`, that give different sizes.
fn sizes(all: usize, most: usize) -> impl Iterator<Item = usize> {
    (1..=most).filter(move |parts| *parts == 1 || all.div_ceil(*parts) < all.div_ceil(parts - 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn flat(n: usize, steps: usize, threads: usize) -> Work {
        Work {
            units: 1..n - 1,
            rows: 0..1,
            columns: 1..n - 1,
            point: 8,
            block: grid::block(crate::stencil::host::FIVE),
            steps,
            threads,
        }
    }

    fn solid(n: usize, steps: usize, threads: usize) -> Work {
        Work {
            rows: 1..n - 1,
            block: grid::block(crate::stencil::host::SEVEN),
            ..flat(n, steps, threads)
        }
    }

    /// Points that the tiles compute in all steps, for each that the work has.
    fn redundancy(work: &Work) -> f64 {
        let tiles = work.tiles();
        let computed = |all: &Range<usize>, parts: usize, extra: usize| {
            let halos = if parts > 1 { work.steps - 1 + extra } else { 0 };
            1.0 + (halos * parts) as f64 / all.len() as f64
        };
        computed(&work.units, tiles.units, 0)
            * computed(&work.rows, tiles.rows, 0)
            * computed(&work.columns, tiles.columns, line(work.point))
    }

    fn scratch(work: &Work) -> usize {
        let tiles = work.tiles();
        let halo = |parts, extra| {
            if parts > 1 {
                2 * (work.steps - 1 + extra)
            } else {
                0
            }
        };
        let rows = work.rows.len().div_ceil(tiles.rows) + halo(tiles.rows, 0);
        let columns = work.columns.len().div_ceil(tiles.columns);
        work.scratch_bytes(rows, columns + halo(tiles.columns, line(work.point)))
    }

    #[test]
    fn large_grids_are_computed_in_the_cache_with_few_points_twice() {
        for threads in [1, 2, 15] {
            for steps in [2, 4, 8, 16, 32] {
                let work = flat(8192, steps, threads);
                assert!(redundancy(&work) < 1.15, "{work:?}: {:?}", work.tiles());
                assert!(
                    scratch(&work) <= OWN_CACHE_BYTES,
                    "{work:?}: {:?}",
                    work.tiles()
                );
            }
            for steps in [2, 4, 8] {
                let work = solid(512, steps, threads);
                assert!(redundancy(&work) < 1.4, "{work:?}: {:?}", work.tiles());
                assert!(
                    scratch(&work) <= SHARED_CACHE_BYTES,
                    "{work:?}: {:?}",
                    work.tiles()
                );
            }
        }
    }

    #[test]
    fn threads_share_the_work_evenly() {
        for threads in [2, 3, 7, 15, 64] {
            for work in [flat(8192, 8, threads), solid(512, 4, threads)] {
                let tiles = work.tiles().count();
                let rounds = tiles.div_ceil(threads) * threads;
                assert!((rounds as f64) < 1.1 * tiles as f64, "{work:?}: {tiles}");
            }
        }
    }

    #[test]
    fn a_small_grid_is_one_tile() {
        let one = Tiles {
            units: 1,
            rows: 1,
            columns: 1,
        };
        assert_eq!(flat(64, 4, 1).tiles(), one);
        assert_eq!(solid(16, 4, 1).tiles(), one);
    }

    proptest! {
        #[test]
        fn every_point_is_in_one_tile(
            size in (1..40usize, 1..9usize, 1..700usize),
            steps in 1..50usize,
            threads in 1..9usize,
            single in any::<bool>(),
        ) {
            let work = Work {
                units: 5..5 + size.0,
                rows: 1..1 + size.1,
                columns: 1..1 + size.2,
                point: if single { 4 } else { 8 },
                block: 2,
                steps,
                threads,
            };
            let (tiles, most) = (work.tiles(), work.most_tiles());
            prop_assert!(tiles.units <= most.units);
            prop_assert!(tiles.rows <= most.rows && tiles.columns <= most.columns);
            for tiles in [tiles, most] {
                let mut points = vec![0; size.0 * size.1 * size.2];
                for number in 0..tiles.count() {
                    let tile = work.tile(&tiles, number);
                    prop_assert!(tiles.columns == 1 || tile.columns.len() > 3 * line(work.point));
                    for unit in tile.units {
                        for row in tile.rows.clone() {
                            for column in tile.columns.clone() {
                                points[((unit - 5) * size.1 + row - 1) * size.2 + column - 1] += 1;
                            }
                        }
                    }
                }
                prop_assert!(points.iter().all(|times| *times == 1));
            }
        }
    }
}
