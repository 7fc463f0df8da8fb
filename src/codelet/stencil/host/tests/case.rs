//! A launch in poisoned memory, and what that memory must hold afterwards.

use std::fmt::Debug;
use std::ops::Range;
use std::sync::OnceLock;

use rayon::ThreadPool;

use super::super::grid::Grid;
use super::super::rule::{Mean, Rule as HostRule, Weighted};
use super::super::tiles::Tiles;
use super::super::{run, run_at, superstep};
use crate::codelet::HostValue;
use crate::codelet::host::{Level, Real, Stores};
use crate::codelet::stencil::Rule;

/// A point's type with what the tests need of it.
pub(super) trait Point: Real + Debug + Sync {
    /// Not a number, with bits that no computation gives.
    const POISON: Self;
    const WEIGHT: Self;
    fn bits(self) -> u64;
    fn from_random(random: u64) -> Self;
    fn from_double(double: f64) -> Self;
    fn value(self) -> HostValue;
}

/// Coefficients in the order of the arguments, of which no two are alike.
const COEFFICIENTS: [f64; 7] = [0.31, -0.17, 0.23, 0.11, 0.05, -0.07, 0.13];

impl Point for f64 {
    const POISON: Self = f64::from_bits(0x7ff8_0000_dead_beef);
    const WEIGHT: Self = 1.0 / 7.0;
    fn bits(self) -> u64 {
        self.to_bits()
    }
    fn from_random(random: u64) -> Self {
        (random >> 11) as f64 / (1u64 << 53) as f64 - 0.5
    }
    fn from_double(double: f64) -> Self {
        double
    }
    fn value(self) -> HostValue {
        HostValue::F64(self)
    }
}

impl Point for f32 {
    const POISON: Self = f32::from_bits(0x7fc0_beef);
    const WEIGHT: Self = 1.0 / 7.0;
    fn bits(self) -> u64 {
        self.to_bits().into()
    }
    fn from_random(random: u64) -> Self {
        (random >> 40) as f32 / (1u32 << 24) as f32 - 0.5
    }
    fn from_double(double: f64) -> Self {
        double as f32
    }
    fn value(self) -> HostValue {
        HostValue::F32(self)
    }
}

/// A launch over part of a grid.
#[derive(Clone, Debug)]
pub(super) struct Case {
    pub(super) nx: usize,
    /// 1 in 2-D.
    pub(super) ny: usize,
    pub(super) units: u64,
    pub(super) first: u64,
    pub(super) count: u64,
    pub(super) steps: u64,
    /// Slot of the first unit, and slots.
    pub(super) from_ring: (u64, u64),
    pub(super) to_ring: (u64, u64),
    /// Whether both rings are one memory.
    pub(super) in_place: bool,
    /// Points between a cache line's start and the rings' (from, to).
    pub(super) skew: (usize, usize),
    pub(super) seed: u64,
}

impl Case {
    /// A launch over all of a grid, between two plain arrays.
    pub(super) fn whole(nx: usize, ny: usize, units: u64) -> Self {
        Self {
            nx,
            ny,
            units,
            first: 0,
            count: units,
            steps: 1,
            from_ring: (0, units),
            to_ring: (0, units),
            in_place: false,
            skew: (0, 0),
            seed: nx as u64 * 31 + units,
        }
    }

    fn unit_points(&self) -> usize {
        self.nx * self.ny
    }

    /// Where a unit begins in a ring.
    fn offset(&self, ring: (u64, u64), unit: u64) -> usize {
        let slot = (ring.0 + ring.1 + unit - self.first) % ring.1;
        slot as usize * self.unit_points()
    }

    /// Units whose present versions the launch may read.
    fn readable(&self) -> Range<u64> {
        self.first.saturating_sub(self.steps)
            ..(self.first + self.count + self.steps).min(self.units)
    }

    fn args<T: Point>(&self, rule: Rule, from: *mut T, to: *mut T) -> Vec<HostValue> {
        let bytes = |ring: (u64, u64)| ring.1 * (self.unit_points() * size_of::<T>()) as u64;
        let memory = |at: *mut T, bytes| HostValue::Memory {
            address: at.cast(),
            bytes,
        };
        let number = |n: u64| HostValue::U32(n as u32);
        let mut args = vec![
            memory(from, bytes(self.from_ring)),
            memory(to, bytes(self.to_ring)),
            number(self.from_ring.0),
            number(self.from_ring.1),
            number(self.to_ring.0),
            number(self.to_ring.1),
            number(self.first),
            number(self.count),
            number(self.units),
            number(self.nx as u64),
            number(self.ny as u64),
        ];
        match rule {
            Rule::Mean => args.push(T::WEIGHT.value()),
            Rule::Weighted => {
                let count = if self.ny == 1 { 5 } else { 7 };
                let coefficients = COEFFICIENTS[..count].iter();
                args.extend(coefficients.map(|of| T::from_double(*of).value()));
            }
        }
        args.push(number(self.steps));
        args
    }
}

/// The present version of the whole grid.
fn present<T: Point>(case: &Case) -> Vec<T> {
    let mut state = case.seed;
    (0..case.unit_points() as u64 * case.units)
        .map(|_| {
            // splitmix64.
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = state;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            T::from_random(z ^ (z >> 31))
        })
        .collect()
}

/// The next version of the whole grid, by the formulas of the stencils' page.
fn next<T: Point>(case: &Case, rule: Rule, v: &[T]) -> Vec<T> {
    let [cc, cn, cs, cw, ce, cb, ca] = COEFFICIENTS.map(T::from_double);
    let (nx, ny, units) = (case.nx, case.ny, case.units as usize);
    let mut result = v.to_vec();
    for z in 1..units - 1 {
        let rows = if ny == 1 { 0..1 } else { 1..ny - 1 };
        for y in rows {
            for x in 1..nx - 1 {
                let i = (z * ny + y) * nx + x;
                let (west, east) = (v[i - 1], v[i + 1]);
                let (north, south) = (v[i - nx], v[i + nx]);
                let beyond = || (v[i - nx * ny], v[i + nx * ny]);
                result[i] = match (rule, ny) {
                    (Rule::Mean, 1) => (((north + south) + (west + east)) + v[i]) * T::WEIGHT,
                    (Rule::Mean, _) => {
                        let (below, above) = beyond();
                        (((north + south) + (west + east)) + ((below + above) + v[i])) * T::WEIGHT
                    }
                    (Rule::Weighted, 1) => {
                        ((north * cn + south * cs) + (west * cw + east * ce)) + v[i] * cc
                    }
                    (Rule::Weighted, _) => {
                        let (below, above) = beyond();
                        (((north * cn + south * cs) + (west * cw + east * ce))
                            + (below * cb + above * ca))
                            + v[i] * cc
                    }
                };
            }
        }
    }
    result
}

/// Poisoned memory with a guard around a ring that begins `skew` points after
/// the start of a cache line.
struct Memory<T> {
    points: Vec<T>,
    start: usize,
}

impl<T: Point> Memory<T> {
    const GUARD: usize = 64;

    fn new(len: usize, skew: usize) -> Self {
        let points = vec![T::POISON; len + 2 * Self::GUARD];
        let line = points.as_ptr().align_offset(64);
        let start = line + skew;
        Self { points, start }
    }
}

/// Runs `tiles` of the case and compares all memory with what it must hold.
fn compare<T: Point>(
    (case, rule): (&Case, Rule),
    tiles: &[Range<u64>],
    launch: impl Fn(&[HostValue], Range<u64>),
    what: &str,
) {
    let unit = case.unit_points();
    let len = |ring: (u64, u64)| ring.1 as usize * unit;
    let grid = present::<T>(case);
    let result = (0..case.steps).fold(grid.clone(), |grid, _| next(case, rule, &grid));
    let version = |of: &[T], u: u64| of[u as usize * unit..][..unit].to_vec();
    let mut from = Memory::<T>::new(len(case.from_ring), case.skew.0);
    let mut to = Memory::<T>::new(len(case.to_ring), case.skew.1);
    for u in case.readable() {
        let at = from.start + case.offset(case.from_ring, u);
        from.points[at..at + unit].copy_from_slice(&version(&grid, u));
    }
    let target = if case.in_place { &mut from } else { &mut to };
    let mut wanted = target.points.clone();
    for u in tiles.iter().cloned().flatten() {
        let at = target.start + case.offset(case.to_ring, u);
        wanted[at..at + unit].copy_from_slice(&version(&result, u));
    }
    let present = from.points.clone();
    let from_at = from.points[from.start..].as_mut_ptr();
    let to_at = if case.in_place {
        from_at
    } else {
        to.points[to.start..].as_mut_ptr()
    };
    let args = case.args(rule, from_at, to_at);
    for tile in tiles {
        launch(&args, tile.clone());
    }
    let same = |memory: &str, have: &[T], want: &[T]| {
        for (i, (have, want)) in have.iter().zip(want).enumerate() {
            assert!(
                have.bits() == want.bits(),
                "{what}: point {i} of the {memory} is {have:?}, not {want:?}, for {tiles:?} of {case:?}"
            );
        }
    };
    if case.in_place {
        same("ring", &from.points, &wanted);
    } else {
        same("target", &to.points, &wanted);
        same("source", &from.points, &present);
    }
}

/// Checks one level with one kind of stores, by both rules.
pub(super) fn check<T: Point, const INPUTS: usize>(
    level: Level,
    stores: Stores,
    case: &Case,
    tiles: &[Range<u64>],
) {
    let what = format!("{level:?} {stores:?}");
    let mean = |args: &[HostValue], tile| {
        let grid = Grid::<T, INPUTS, Mean<T>>::decode(args, case.first);
        // SAFETY: the case's memory holds its rings; the level is available.
        unsafe { run_at(level, stores, &grid, tile) }
    };
    compare::<T>((case, Rule::Mean), tiles, mean, &what);
    let weighted = |args: &[HostValue], tile| {
        let grid = Grid::<T, INPUTS, Weighted<T, INPUTS>>::decode(args, case.first);
        // SAFETY: as above.
        unsafe { run_at(level, stores, &grid, tile) }
    };
    compare::<T>((case, Rule::Weighted), tiles, weighted, &what);
}

/// Checks the kernels as the codelets have them.
pub(super) fn check_dispatched<T: Point, const INPUTS: usize>(case: &Case, tiles: &[Range<u64>]) {
    let mean = |args: &[HostValue], tile| {
        // SAFETY: the case's memory holds its rings.
        unsafe { run::<T, INPUTS, Mean<T>>(args, case.first, tile) }
    };
    compare::<T>((case, Rule::Mean), tiles, mean, "dispatched");
    let weighted = |args: &[HostValue], tile| {
        // SAFETY: as above.
        unsafe { run::<T, INPUTS, Weighted<T, INPUTS>>(args, case.first, tile) }
    };
    compare::<T>((case, Rule::Weighted), tiles, weighted, "dispatched");
}

/// Checks a superstep at one level with one kind of stores, by both rules. `cuts` chooses the
/// tiles.
pub(super) fn check_superstep<T: Point, const INPUTS: usize>(
    level: Level,
    stores: Stores,
    case: &Case,
    threads: usize,
    cuts: [usize; 3],
) {
    /// Launches it by one rule.
    fn launch<T: Point, const INPUTS: usize, R: HostRule<T, INPUTS> + Sync>(
        (level, stores): (Level, Stores),
        case: &Case,
        (threads, cuts): (usize, [usize; 3]),
        (args, units): (&[HostValue], Range<u64>),
    ) {
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
            superstep::run_at(level, stores, &grid, units, &work, &tiles)
        });
    }
    let all = case.first..case.first + case.count;
    let all = std::slice::from_ref(&all);
    let what = format!("{level:?} {stores:?} on {threads} threads, cut by {cuts:?}");
    let (how, cut) = ((level, stores), (threads, cuts));
    let mean = |args: &[HostValue], units| {
        launch::<T, INPUTS, Mean<T>>(how, case, cut, (args, units));
    };
    compare::<T>((case, Rule::Mean), all, mean, &what);
    let weighted = |args: &[HostValue], units| {
        launch::<T, INPUTS, Weighted<T, INPUTS>>(how, case, cut, (args, units));
    };
    compare::<T>((case, Rule::Weighted), all, weighted, &what);
}

/// Checks the supersteps as the codelets have them.
pub(super) fn check_dispatched_superstep<T: Point, const INPUTS: usize>(
    case: &Case,
    threads: usize,
    tiles: &[Range<u64>],
) {
    let what = format!("dispatched on {threads} threads");
    let mean = |args: &[HostValue], units| {
        // SAFETY: the case's memory holds its rings.
        on_threads(threads, || unsafe {
            superstep::run::<T, INPUTS, Mean<T>>(args, case.first, units, threads)
        });
    };
    compare::<T>((case, Rule::Mean), tiles, mean, &what);
    let weighted = |args: &[HostValue], units| {
        // SAFETY: as above.
        on_threads(threads, || unsafe {
            superstep::run::<T, INPUTS, Weighted<T, INPUTS>>(args, case.first, units, threads)
        });
    };
    compare::<T>((case, Rule::Weighted), tiles, weighted, &what);
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
