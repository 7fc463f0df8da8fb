//! A rule that also finds the largest change of the points that it computes.
//!
//! Vectors keep the largest changes of their lanes in a register, so that a launch which finds
//! its change takes no other pass over memory. Each thread finds the largest of its points by
//! itself: the memory that threads share is raised once a piece.

use std::cell::Cell;

#[cfg(target_arch = "x86_64")]
use super::rule::VectorRule;
use super::rule::{Around, Rule};
use crate::host::Real;
#[cfg(target_arch = "x86_64")]
use crate::host::{LINE, Lanes};

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
