//! Vectors of grid points, one type for each instruction set.

use std::ops::{Add, Mul, Sub};

use super::arguments::FromValue;
use super::exp::Magnitude;

/// A point's type: `f64` or `f32`.
pub(crate) trait Real:
    FromValue
    + Magnitude
    + Default
    + PartialEq
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + 'static
{
    /// Its vectors, one type an instruction set.
    #[cfg(target_arch = "x86_64")]
    type Sse2: Lanes<Scalar = Self>;
    #[cfg(target_arch = "x86_64")]
    type Avx2: Lanes<Scalar = Self>;
    #[cfg(target_arch = "x86_64")]
    type Avx512: Lanes<Scalar = Self>;
}

impl Real for f64 {
    #[cfg(target_arch = "x86_64")]
    type Sse2 = super::sse2::F64x2;
    #[cfg(target_arch = "x86_64")]
    type Avx2 = super::avx2::F64x4;
    #[cfg(target_arch = "x86_64")]
    type Avx512 = super::avx512::F64x8;
}

impl Real for f32 {
    #[cfg(target_arch = "x86_64")]
    type Sse2 = super::sse2::F32x4;
    #[cfg(target_arch = "x86_64")]
    type Avx2 = super::avx2::F32x8;
    #[cfg(target_arch = "x86_64")]
    type Avx512 = super::avx512::F32x16;
}

/// Neighbouring points of a row in one register.
///
/// # Safety
/// Every method needs a processor with the type's instruction set, and must be
/// inlined into a function compiled for it to be fast.
#[cfg(target_arch = "x86_64")]
pub(crate) trait Lanes: Copy {
    type Scalar: Real;

    /// Points of a vector.
    const POINTS: usize;

    /// The same value in every lane.
    unsafe fn splat(value: Self::Scalar) -> Self;

    /// The points from `at` on, which need no alignment.
    unsafe fn load(at: *const Self::Scalar) -> Self;

    /// Writes the points to `at`, which needs no alignment.
    unsafe fn store(self, at: *mut Self::Scalar);

    /// Writes the points to `at`, aligned to the vector, past the caches.
    unsafe fn stream(self, at: *mut Self::Scalar);

    unsafe fn add(self, other: Self) -> Self;

    unsafe fn sub(self, other: Self) -> Self;

    unsafe fn mul(self, other: Self) -> Self;

    /// Each point without its sign.
    unsafe fn magnitude(self) -> Self;

    /// In each lane the larger of two points without signs; NaN where one of them is NaN.
    unsafe fn larger(self, other: Self) -> Self;

    /// Each point's western neighbour, `before` being the vector to the west.
    unsafe fn west(self, before: Self) -> Self;

    /// Each point's eastern neighbour, `after` being the vector to the east.
    unsafe fn east(self, after: Self) -> Self;
}

/// Implements [`Lanes`] for a wrapper of a vector register by naming its
/// intrinsics; what every instruction set does in its own way is written out.
#[cfg(target_arch = "x86_64")]
macro_rules! lanes {
    ($(#[$doc:meta])* $name:ident($register:ty): $scalar:ty, $points:literal;
     $splat:ident $load:ident $store:ident $stream:ident $add:ident $sub:ident $mul:ident;
     magnitude |$signed:ident| $magnitude:expr;
     larger |$one:ident, $two:ident| $larger:expr;
     west |$centre:ident, $before:ident| $west:expr;
     east |$middle:ident, $after:ident| $east:expr) => {
        $(#[$doc])*
        #[derive(Clone, Copy)]
        pub(crate) struct $name($register);

        // SAFETY (every block): the trait's contract gives the instruction
        // set, valid pointers, and alignment where it is asked for.
        impl $crate::host::Lanes for $name {
            type Scalar = $scalar;
            const POINTS: usize = $points;

            #[inline(always)]
            unsafe fn splat(value: $scalar) -> Self {
                unsafe { Self($splat(value)) }
            }

            #[inline(always)]
            unsafe fn load(at: *const $scalar) -> Self {
                unsafe { Self($load(at)) }
            }

            #[inline(always)]
            unsafe fn store(self, at: *mut $scalar) {
                unsafe { $store(at, self.0) }
            }

            #[inline(always)]
            unsafe fn stream(self, at: *mut $scalar) {
                unsafe { $stream(at, self.0) }
            }

            #[inline(always)]
            unsafe fn add(self, other: Self) -> Self {
                unsafe { Self($add(self.0, other.0)) }
            }

            #[inline(always)]
            unsafe fn sub(self, other: Self) -> Self {
                unsafe { Self($sub(self.0, other.0)) }
            }

            #[inline(always)]
            unsafe fn mul(self, other: Self) -> Self {
                unsafe { Self($mul(self.0, other.0)) }
            }

            #[inline(always)]
            unsafe fn magnitude(self) -> Self {
                let $signed = self.0;
                unsafe { Self($magnitude) }
            }

            #[inline(always)]
            unsafe fn larger(self, other: Self) -> Self {
                let ($one, $two) = (self.0, other.0);
                unsafe { Self($larger) }
            }

            #[inline(always)]
            unsafe fn west(self, before: Self) -> Self {
                let ($centre, $before) = (self.0, before.0);
                unsafe { Self($west) }
            }

            #[inline(always)]
            unsafe fn east(self, after: Self) -> Self {
                let ($middle, $after) = (self.0, after.0);
                unsafe { Self($east) }
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
pub(super) use lanes;
