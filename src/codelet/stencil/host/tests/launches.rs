//! The kernels' launches of a case, by both rules, each without and with its largest change.

use std::cell::UnsafeCell;
use std::ops::Range;
use std::sync::OnceLock;

use rayon::ThreadPool;

use super::super::grid::Grid;
use super::super::rule::{FromArguments, Mean, Rule as HostRule, Weighted};
use super::super::{run, run_at, run_changes, run_changes_at, superstep};
use super::case::{Case, Point, compare};
use crate::HostValue;
use crate::host::{Level, Stores};
use crate::stencil::host::wavefront::Tiles;
use crate::stencil::{Rule, largest_change};

/// Calls `$check` for both rules.
macro_rules! by_both_rules {
    ($check:ident::<$point:ident, $inputs:ident>($($arg:expr),*)) => {
        $check::<$point, $inputs, Mean<$point>>(Rule::Mean, $($arg),*);
        $check::<$point, $inputs, Weighted<$point, $inputs>>(Rule::Weighted, $($arg),*);
    };
}

/// Checks one level with one kind of stores.
pub(super) fn check<T: Point, const INPUTS: usize>(
    level: Level,
    stores: Stores,
    case: &Case,
    tiles: &[Range<u64>],
) {
    by_both_rules!(check_by::<T, INPUTS>(level, stores, case, tiles));
}

fn check_by<T: Point, const INPUTS: usize, R: HostRule<T, INPUTS> + FromArguments>(
    rule: Rule,
    level: Level,
    stores: Stores,
    case: &Case,
    tiles: &[Range<u64>],
) {
    let what = format!("{level:?} {stores:?}");
    let grid = |args: &[HostValue]| Grid::<T, INPUTS, R>::decode(args, case.first);
    let plain = |args: &[HostValue], tile| {
        let grid = grid(args);
        // SAFETY: the case's memory holds its rings; the level is available.
        unsafe { run_at(level, stores, &grid, grid.rule, tile) }
    };
    compare::<T>((case, rule), tiles, plain, &what);
    let changes = |args: &[HostValue], tile, cells: &Cells| {
        // SAFETY: as above, and nobody else uses the cells.
        unsafe { run_changes_at(level, stores, &grid(args), tile, cells.first::<T>()) }
    };
    compare_changes::<T>((case, rule), tiles, changes, &what);
}

/// Checks the kernels as the codelets have them.
pub(super) fn check_dispatched<T: Point, const INPUTS: usize>(case: &Case, tiles: &[Range<u64>]) {
    by_both_rules!(check_dispatched_by::<T, INPUTS>(case, tiles));
}

fn check_dispatched_by<T: Point, const INPUTS: usize, R: HostRule<T, INPUTS> + FromArguments>(
    rule: Rule,
    case: &Case,
    tiles: &[Range<u64>],
) {
    let plain = |args: &[HostValue], tile| {
        // SAFETY: the case's memory holds its rings.
        unsafe { run::<T, INPUTS, R>(args, case.first, tile) }
    };
    compare::<T>((case, rule), tiles, plain, "dispatched");
    let changes = |args: &[HostValue], tile, cells: &Cells| {
        let args = [args, &[cells.value()]].concat();
        // SAFETY: as above.
        unsafe { run_changes::<T, INPUTS, R>(&args, case.first, tile) }
    };
    compare_changes::<T>((case, rule), tiles, changes, "dispatched");
}

/// Checks a superstep at one level with one kind of stores. `cuts` chooses the tiles.
pub(super) fn check_superstep<T: Point, const INPUTS: usize>(
    level: Level,
    stores: Stores,
    case: &Case,
    threads: usize,
    cuts: [usize; 3],
) {
    by_both_rules!(check_superstep_by::<T, INPUTS>(
        level, stores, case, threads, cuts
    ));
}

fn check_superstep_by<
    T: Point,
    const INPUTS: usize,
    R: HostRule<T, INPUTS> + FromArguments + Sync,
>(
    rule: Rule,
    level: Level,
    stores: Stores,
    case: &Case,
    threads: usize,
    cuts: [usize; 3],
) {
    let launch = |args: &[HostValue], units: Range<u64>, changes| {
        let grid = Grid::<T, INPUTS, R>::decode(args, case.first);
        let work = superstep::work(&grid, &units, case.steps as usize, threads);
        let most = work.most_tiles();
        let tiles = Tiles {
            units: 1 + cuts[0] % most.units.max(1),
            rows: 1 + cuts[1] % most.rows,
            columns: 1 + cuts[2] % most.columns,
        };
        // SAFETY: the case's memory holds its rings; the level is available.
        on_threads(threads, || unsafe {
            superstep::run_at(level, stores, &grid, changes, units, &work, &tiles)
        });
    };
    let all = case.first..case.first + case.count;
    let all = std::slice::from_ref(&all);
    let what = format!("{level:?} {stores:?} on {threads} threads, cut by {cuts:?}");
    let plain = |args: &[HostValue], units| launch(args, units, None);
    compare::<T>((case, rule), all, plain, &what);
    let changes = |args: &[HostValue], units, cells: &Cells| {
        launch(args, units, Some(cells.first::<T>()));
    };
    compare_changes::<T>((case, rule), all, changes, &what);
}

/// Checks the supersteps as the codelets have them.
pub(super) fn check_dispatched_superstep<T: Point, const INPUTS: usize>(
    case: &Case,
    threads: usize,
    tiles: &[Range<u64>],
) {
    by_both_rules!(check_dispatched_superstep_by::<T, INPUTS>(
        case, threads, tiles
    ));
}

fn check_dispatched_superstep_by<
    T: Point,
    const INPUTS: usize,
    R: HostRule<T, INPUTS> + FromArguments + Sync,
>(
    rule: Rule,
    case: &Case,
    threads: usize,
    tiles: &[Range<u64>],
) {
    let what = format!("dispatched on {threads} threads");
    let plain = |args: &[HostValue], units| {
        // SAFETY: the case's memory holds its rings.
        on_threads(threads, || unsafe {
            superstep::run::<T, INPUTS, R>(args, case.first, units, threads)
        });
    };
    compare::<T>((case, rule), tiles, plain, &what);
    let changes = |args: &[HostValue], units, cells: &Cells| {
        let args = [args, &[cells.value()]].concat();
        // SAFETY: as above.
        on_threads(threads, || unsafe {
            superstep::run_changes::<T, INPUTS, R>(&args, case.first, units, threads)
        });
    };
    compare_changes::<T>((case, rule), tiles, changes, &what);
}

/// Cells of either precision.
struct Cells(UnsafeCell<[u64; 4]>);

impl Cells {
    fn first<T: Point>(&self) -> *mut T::Bits {
        self.0.get().cast()
    }

    fn value(&self) -> HostValue {
        HostValue::Memory {
            address: self.0.get().cast(),
            bytes: size_of_val(&self.0) as u64,
        }
    }
}

/// As [`compare`], for launches that raise cells to their largest change.
fn compare_changes<T: Point>(
    (case, rule): (&Case, Rule),
    tiles: &[Range<u64>],
    launch: impl Fn(&[HostValue], Range<u64>, &Cells),
    what: &str,
) {
    let cells = Cells(UnsafeCell::new([0; 4]));
    let launch = |args: &[HostValue], tile| launch(args, tile, &cells);
    let wanted: f64 = compare::<T>((case, rule), tiles, launch, what).into();
    let found = largest_change(T::PRECISION, bytemuck::bytes_of(&cells.0.into_inner()));
    assert!(
        found == wanted.abs() || found.is_nan() && wanted.is_nan(),
        "{what}: the largest change is {found:?}, not {wanted:?}, for {tiles:?} of {case:?}"
    );
}

/// Runs `work` in a pool of so many threads, 1 to 4, that all tests share.
fn on_threads(threads: usize, work: impl FnOnce()) {
    struct Work<F>(F);
    // SAFETY: the caller waits, and what the work uses outlives it.
    unsafe impl<F> Send for Work<F> {}
    impl<F: FnOnce()> Work<F> {
        fn run(self) {
            (self.0)();
        }
    }
    static POOLS: [OnceLock<ThreadPool>; 4] = [const { OnceLock::new() }; 4];
    let pool = POOLS[threads - 1].get_or_init(|| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
        pool.build().expect("threads")
    });
    let work = Work(work);
    pool.install(move || work.run());
}
