//! The rules by which a point's next version follows from its present neighbourhood, each
//! for a number and for a vector of them. The order of operations is that of the stencils'
//! page.
//!
//! A rule that also finds the largest change of the points that it computes.
//!
//! Vectors keep the largest changes of their lanes in a register, so that a launch which finds
//! its change takes no other pass over memory. Each thread finds the largest of its points by
//! itself: the memory that threads share is raised once a piece.

use std::array;
use std::cell::Cell;

use crate::host::{Arguments, Real};
#[cfg(target_arch = "x86_64")]
use crate::host::{LINE, Lanes};

/// A number, or a vector, for each point of a neighbourhood.
#[derive(Clone, Copy)]
pub(super) struct Around<N, const INPUTS: usize> {
    /// Of the point itself, north and south of it, and in 3-D below and above it: in the
    /// order of a [`Row`](super::grid::Row)'s inputs.
    pub(super) rows: [N; INPUTS],
    pub(super) west: N,
    pub(super) east: N,
}

/// A rule for rows that are computed from `INPUTS` rows: 3 in 2-D, 5 in 3-D.
pub(super) trait Rule<T: Real, const INPUTS: usize>: Copy {
    /// The rule with its numbers in all lanes of vectors.
    #[cfg(target_arch = "x86_64")]
    type Splat<V: Lanes<Scalar = T>>: VectorRule<V, INPUTS>;

    /// The same rule, which watches no points.
    type Unwatched: Rule<T, INPUTS>;

    /// Whether it watches the points that it computes.
    const WATCHES: bool;

    /// The next version of a point.
    fn point(self, around: &Around<T, INPUTS>) -> T;

    /// Watches neighbouring points whose next versions were computed one by one.
    fn watch(self, present: &[T], next: &[T]);

    fn unwatched(self) -> Self::Unwatched;

    /// # Safety
    /// That of [`Lanes`].
    #[cfg(target_arch = "x86_64")]
    unsafe fn splat<V: Lanes<Scalar = T>>(self) -> Self::Splat<V>;
}

/// A rule that a launch's arguments have.
pub(super) trait FromArguments {
    /// The rule whose numbers are the arguments from `first` on.
    ///
    /// # Panics
    /// When there are others.
    fn decode(args: &Arguments, first: usize) -> Self;
}

/// A [`Rule`] for as many points as a vector has.
#[cfg(target_arch = "x86_64")]
pub(super) trait VectorRule<V: Lanes, const INPUTS: usize> {
    /// The next versions of neighbouring points.
    ///
    /// # Safety
    /// That of [`Lanes`].
    unsafe fn vector(&self, around: &Around<V, INPUTS>) -> V;

    /// Watches neighbouring points whose next versions were computed.
    ///
    /// # Safety
    /// That of [`Lanes`].
    unsafe fn watch(&mut self, present: V, next: V);

    /// Passes on what was seen of the points.
    ///
    /// # Safety
    /// That of [`Lanes`].
    unsafe fn finish(self);
}

/// The sum of the neighbourhood, times one weight.
#[derive(Clone, Copy)]
pub(super) struct Mean<N>(N);

impl<T: Real> FromArguments for Mean<T> {
    fn decode(args: &Arguments, first: usize) -> Self {
        Self(args.real(first))
    }
}

impl<T: Real, const INPUTS: usize> Rule<T, INPUTS> for Mean<T> {
    #[cfg(target_arch = "x86_64")]
    type Splat<V: Lanes<Scalar = T>> = Mean<V>;
    type Unwatched = Self;
    const WATCHES: bool = false;

    #[inline(always)]
    fn point(self, around: &Around<T, INPUTS>) -> T {
        let Around { rows, west, east } = around;
        let cross = (rows[1] + rows[2]) + (*west + *east);
        let centre = if INPUTS == 3 {
            rows[0]
        } else {
            (rows[3] + rows[4]) + rows[0]
        };
        (cross + centre) * self.0
    }

    #[inline(always)]
    fn watch(self, _: &[T], _: &[T]) {}

    #[inline(always)]
    fn unwatched(self) -> Self {
        self
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn splat<V: Lanes<Scalar = T>>(self) -> Mean<V> {
        // SAFETY: the caller's contract.
        unsafe { Mean(V::splat(self.0)) }
    }
}

#[cfg(target_arch = "x86_64")]
impl<V: Lanes, const INPUTS: usize> VectorRule<V, INPUTS> for Mean<V> {
    #[inline(always)]
    unsafe fn vector(&self, around: &Around<V, INPUTS>) -> V {
        let Around { rows, west, east } = around;
        // SAFETY: the caller's contract.
        unsafe {
            let cross = rows[1].add(rows[2]).add(west.add(*east));
            let centre = if INPUTS == 3 {
                rows[0]
            } else {
                rows[3].add(rows[4]).add(rows[0])
            };
            cross.add(centre).mul(self.0)
        }
    }

    #[inline(always)]
    unsafe fn watch(&mut self, _: V, _: V) {}

    #[inline(always)]
    unsafe fn finish(self) {}
}

/// The sum of products, with a coefficient for each point of the neighbourhood.
#[derive(Clone, Copy)]
pub(super) struct Weighted<N, const INPUTS: usize>(Around<N, INPUTS>);

impl<T: Real, const INPUTS: usize> FromArguments for Weighted<T, INPUTS> {
    fn decode(args: &Arguments, first: usize) -> Self {
        // West and east come between the rows: centre, north, south, west, east, below, above.
        let beside = first + 3;
        let row = |k: usize| args.real(if k < 3 { first + k } else { first + k + 2 });
        Self(Around {
            rows: array::from_fn(row),
            west: args.real(beside),
            east: args.real(beside + 1),
        })
    }
}

impl<T: Real, const INPUTS: usize> Rule<T, INPUTS> for Weighted<T, INPUTS> {
    #[cfg(target_arch = "x86_64")]
    type Splat<V: Lanes<Scalar = T>> = Weighted<V, INPUTS>;
    type Unwatched = Self;
    const WATCHES: bool = false;

    #[inline(always)]
    fn point(self, around: &Around<T, INPUTS>) -> T {
        let Around { rows, west, east } = around;
        let of = &self.0;
        let row = |k: usize| rows[k] * of.rows[k];
        let cross = (row(1) + row(2)) + (*west * of.west + *east * of.east);
        let sides = if INPUTS == 3 {
            cross
        } else {
            cross + (row(3) + row(4))
        };
        sides + row(0)
    }

    #[inline(always)]
    fn watch(self, _: &[T], _: &[T]) {}

    #[inline(always)]
    fn unwatched(self) -> Self {
        self
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn splat<V: Lanes<Scalar = T>>(self) -> Weighted<V, INPUTS> {
        // SAFETY: the caller's contract.
        unsafe {
            let west = V::splat(self.0.west);
            let mut rows = [west; INPUTS];
            for (row, number) in rows.iter_mut().zip(self.0.rows) {
                *row = V::splat(number);
            }
            Weighted(Around {
                rows,
                west,
                east: V::splat(self.0.east),
            })
        }
    }
}

#[cfg(target_arch = "x86_64")]
impl<V: Lanes, const INPUTS: usize> VectorRule<V, INPUTS> for Weighted<V, INPUTS> {
    #[inline(always)]
    unsafe fn vector(&self, around: &Around<V, INPUTS>) -> V {
        let Around { rows, west, east } = around;
        let of = &self.0;
        // SAFETY: the caller's contract.
        unsafe {
            let (north, south) = (rows[1].mul(of.rows[1]), rows[2].mul(of.rows[2]));
            let cross = north
                .add(south)
                .add(west.mul(of.west).add(east.mul(of.east)));
            let sides = if INPUTS == 3 {
                cross
            } else {
                cross.add(rows[3].mul(of.rows[3]).add(rows[4].mul(of.rows[4])))
            };
            sides.add(rows[0].mul(of.rows[0]))
        }
    }

    #[inline(always)]
    unsafe fn watch(&mut self, _: V, _: V) {}

    #[inline(always)]
    unsafe fn finish(self) {}
}

/// The largest change of points that one thread computes.
pub(super) struct Largest<T: Real>(Cell<T::Bits>);

impl<T: Real> Largest<T> {
    pub(super) fn new() -> Self {
        Self(Cell::new(T::Bits::default()))
    }

    /// The rule that watches the points.
    pub(super) fn watching<R>(&self, rule: R) -> Watched<'_, T, R> {
        Watched {
            rule,
            largest: self,
        }
    }

    /// Raises a launch's cell to the change.
    ///
    /// # Safety
    /// The cell is aligned and can be written, and others only raise it meanwhile.
    pub(super) unsafe fn raise(self, cell: *mut T::Bits) {
        // SAFETY: the caller's contract.
        unsafe { T::raise(cell, self.0.get()) }
    }

    #[inline(always)]
    fn include(&self, changes: impl Iterator<Item = T>) {
        let largest = changes.fold(self.0.get(), |largest, change| {
            largest.max(change.magnitude())
        });
        self.0.set(largest);
    }
}

/// A rule whose points' changes are included in the largest.
#[derive(Clone, Copy)]
pub(super) struct Watched<'a, T: Real, R> {
    rule: R,
    largest: &'a Largest<T>,
}

impl<'a, T: Real, const INPUTS: usize, R: Rule<T, INPUTS>> Rule<T, INPUTS> for Watched<'a, T, R> {
    #[cfg(target_arch = "x86_64")]
    type Splat<V: Lanes<Scalar = T>> = WatchedVectors<'a, V, R::Splat<V>>;
    type Unwatched = R;
    const WATCHES: bool = true;

    #[inline(always)]
    fn point(self, around: &Around<T, INPUTS>) -> T {
        self.rule.point(around)
    }

    #[inline(always)]
    fn watch(self, present: &[T], next: &[T]) {
        let changes = present.iter().zip(next);
        self.largest
            .include(changes.map(|(present, next)| *next - *present));
    }

    #[inline(always)]
    fn unwatched(self) -> R {
        self.rule
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn splat<V: Lanes<Scalar = T>>(self) -> Self::Splat<V> {
        // SAFETY: the caller's contract.
        unsafe {
            WatchedVectors {
                rule: self.rule.splat(),
                lanes: V::splat(T::default()),
                largest: self.largest,
            }
        }
    }
}

/// [`Watched`] for vectors.
#[cfg(target_arch = "x86_64")]
pub(super) struct WatchedVectors<'a, V: Lanes, R> {
    rule: R,
    /// The largest change in each lane.
    lanes: V,
    largest: &'a Largest<V::Scalar>,
}

#[cfg(target_arch = "x86_64")]
impl<V: Lanes, const INPUTS: usize, R: VectorRule<V, INPUTS>> VectorRule<V, INPUTS>
    for WatchedVectors<'_, V, R>
{
    #[inline(always)]
    unsafe fn vector(&self, around: &Around<V, INPUTS>) -> V {
        // SAFETY: the caller's contract.
        unsafe { self.rule.vector(around) }
    }

    #[inline(always)]
    unsafe fn watch(&mut self, present: V, next: V) {
        // SAFETY: the caller's contract.
        unsafe { self.lanes = self.lanes.larger(next.sub(present).magnitude()) }
    }

    #[inline(always)]
    unsafe fn finish(self) {
        /// Points of the longest vector.
        const MOST: usize = LINE / size_of::<f32>();

        const { assert!(V::POINTS <= MOST) }
        let mut changes = [V::Scalar::default(); MOST];
        // SAFETY: the caller's contract, and there is room for a vector.
        unsafe { self.lanes.store(changes.as_mut_ptr()) };
        self.largest.include(changes.into_iter().take(V::POINTS));
    }
}
