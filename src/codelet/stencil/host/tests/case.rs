//! A launch in poisoned memory, and what that memory must hold afterwards.

use std::fmt::Debug;
use std::ops::Range;

use crate::HostValue;
use crate::host::Real;
use crate::stencil::{Precision, Rule};

/// A point's type with what the tests need of it.
pub(super) trait Point: Real + Debug + Into<f64> + Sync {
    const PRECISION: Precision;
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
    const PRECISION: Precision = Precision::F64;
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
    const PRECISION: Precision = Precision::F32;
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
    /// The value of a point that the seed chooses.
    pub(super) special: Option<f64>,
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
            special: None,
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
    let points = case.unit_points() as u64 * case.units;
    let mut grid: Vec<T> = (0..points)
        .map(|_| {
            // splitmix64.
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = state;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            T::from_random(z ^ (z >> 31))
        })
        .collect();
    if let Some(special) = case.special {
        grid[(case.seed % points) as usize] = T::from_double(special);
    }
    grid
}

/// The largest change of the inner points of some units.
fn largest_change<T: Point>(
    case: &Case,
    units: impl Iterator<Item = u64>,
    present: &[T],
    next: &[T],
) -> T {
    let is_inner = |at: usize, all: usize| at > 0 && at + 1 < all;
    let mut largest = T::default();
    for unit in units.filter(|unit| is_inner(*unit as usize, case.units as usize)) {
        for y in (0..case.ny).filter(|y| case.ny == 1 || is_inner(*y, case.ny)) {
            for x in 1..case.nx - 1 {
                let i = (unit as usize * case.ny + y) * case.nx + x;
                let change = next[i] - present[i];
                if change.magnitude() > largest.magnitude() {
                    largest = change;
                }
            }
        }
    }
    largest
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

/// Whether two numbers are the same. Two computed NaNs are: which one a sum of several is, the
/// compiler decides.
fn is_alike<T: Point>(a: T, b: T) -> bool {
    let is_computed = |n: T| n.bits() != T::POISON.bits();
    a.bits() == b.bits()
        || is_computed(a) && is_computed(b) && a.into().is_nan() && b.into().is_nan()
}

/// Runs `tiles` of the case, compares all memory with what it must hold, and returns the
/// largest change of the last step, whose sign does not matter.
pub(super) fn compare<T: Point>(
    (case, rule): (&Case, Rule),
    tiles: &[Range<u64>],
    launch: impl Fn(&[HostValue], Range<u64>),
    what: &str,
) -> T {
    let unit = case.unit_points();
    let len = |ring: (u64, u64)| ring.1 as usize * unit;
    let grid = present::<T>(case);
    let last = (1..case.steps).fold(grid.clone(), |grid, _| next(case, rule, &grid));
    let result = next(case, rule, &last);
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
                is_alike(*have, *want),
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
    largest_change(case, tiles.iter().cloned().flatten(), &last, &result)
}
