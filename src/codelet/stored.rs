//! Numbers of the formats as they are stored on the host, and the singles that kernels compute
//! with.

use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};

use super::host::{Vectorised, vectorised};

/// A stored number.
pub(crate) trait Stored: Copy + Send + Sync {
    /// Converts as many numbers to their values.
    fn to_values(from: &[Self], to: &mut [f32]);

    /// Converts as many numbers to factors of products.
    fn to_factors(from: &[Self], to: &mut [f32]) {
        Self::to_values(from, to);
    }

    /// Stores as many values, each rounded to the nearest number.
    fn from_values(from: &[f32], to: &mut [Self]);
}

impl Stored for f16 {
    fn to_values(from: &[Self], to: &mut [f32]) {
        from.convert_to_f32_slice(to);
    }

    fn from_values(from: &[f32], to: &mut [Self]) {
        to.convert_from_f32_slice(from);
    }
}

impl Stored for bf16 {
    fn to_values(from: &[Self], to: &mut [f32]) {
        each(from, to, |one| {
            f32::from_bits(u32::from(one.to_bits()) << 16)
        });
    }

    fn from_values(from: &[f32], to: &mut [Self]) {
        each(from, to, |value| bf16::from_bits(rounded_to_bf16(value)));
    }
}

impl Stored for f32 {
    fn to_values(from: &[Self], to: &mut [f32]) {
        to.copy_from_slice(from);
    }

    fn from_values(from: &[f32], to: &mut [Self]) {
        to.copy_from_slice(from);
    }
}

/// A single whose products are those of [`NumberFormat::Tf32`](super::NumberFormat::Tf32).
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub(crate) struct Tf32(f32);

impl Stored for Tf32 {
    fn to_values(from: &[Self], to: &mut [f32]) {
        each(from, to, |one| one.0);
    }

    fn to_factors(from: &[Self], to: &mut [f32]) {
        each(from, to, |one| rounded_to_tf32(one.0));
    }

    fn from_values(from: &[f32], to: &mut [Self]) {
        each(from, to, Self);
    }
}

/// The upper half of a single, rounded to the nearest, in a tie to the even one. What is no
/// number stays none.
#[inline(always)]
fn rounded_to_bf16(value: f32) -> u16 {
    let bits = value.to_bits();
    let rounded = bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16;
    let none = bits >> 16 | 0x40;
    (if value.is_nan() { none } else { rounded }) as u16
}

/// A single with 10 bits of its mantissa, rounded likewise. What is infinite or no number stays
/// as it is.
#[inline(always)]
fn rounded_to_tf32(value: f32) -> f32 {
    let bits = value.to_bits();
    let rounded = bits.wrapping_add(0xfff + (bits >> 13 & 1)) & !0x1fff;
    f32::from_bits(if value.is_finite() { rounded } else { bits })
}

/// Converts number by number.
fn each<A: Copy, B>(from: &[A], to: &mut [B], convert: impl Fn(A) -> B) {
    struct Each<'a, A, B, F> {
        from: &'a [A],
        to: &'a mut [B],
        convert: F,
    }
    impl<A: Copy, B, F: Fn(A) -> B> Vectorised for Each<'_, A, B, F> {
        #[inline(always)]
        fn run(self) {
            for (from, to) in self.from.iter().zip(self.to) {
                *to = (self.convert)(*from);
            }
        }
    }
    vectorised(Each { from, to, convert });
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers on both sides of ties, the greatest ones, small ones, and what is none.
    fn singles() -> Vec<f32> {
        let mut random = fastrand::Rng::with_seed(11);
        let some = (0..10_000).map(|_| f32::from_bits(random.u32(..)));
        let ties = (0..64).map(|n| f32::from_bits(0x3f80_0000 | n << 11));
        let ends = [
            f32::MAX,
            f32::MIN,
            f32::INFINITY,
            f32::NAN,
            0.0,
            -0.0,
            1e-40,
        ];
        // No number with only the lowest bit of the mantissa.
        let none = [f32::from_bits(0x7f80_0001), f32::from_bits(0xff80_0001)];
        some.chain(ties).chain(ends).chain(none).collect()
    }

    fn same(one: f32, other: f32) -> bool {
        one.to_bits() == other.to_bits() || one.is_nan() && other.is_nan()
    }

    fn check<S: Stored>(of: impl Fn(f32) -> S, value: impl Fn(S) -> f32) {
        let values = singles();
        let mut stored: Vec<S> = values.iter().map(|_| of(7.0)).collect();
        S::from_values(&values, &mut stored);
        let mut back = vec![0.0; values.len()];
        S::to_values(&stored, &mut back);
        for ((before, stored), back) in values.iter().zip(stored).zip(back) {
            let right = value(of(*before));
            assert!(same(value(stored), right), "{before}: {}", value(stored));
            assert!(same(back, right), "{before}: {back} for {right}");
        }
    }

    #[test]
    fn numbers_are_stored_as_the_library_rounds_them() {
        check(f16::from_f32, f16::to_f32);
        check(bf16::from_f32, bf16::to_f32);
        check(|value| value, |value: f32| value);
        check(Tf32, |one| one.0);
    }

    #[test]
    fn factors_of_tf32_have_ten_bits_and_are_the_nearest() {
        let values = singles();
        let stored: Vec<Tf32> = values.iter().copied().map(Tf32).collect();
        let mut factors = vec![0.0; values.len()];
        Tf32::to_factors(&stored, &mut factors);
        for (value, factor) in values.into_iter().zip(factors) {
            if !value.is_finite() || value.abs() < f32::MIN_POSITIVE {
                assert!(!value.is_finite() || factor.abs() <= f32::MIN_POSITIVE);
                assert!(
                    value.is_finite() || same(value, factor),
                    "{value}: {factor}"
                );
                continue;
            }
            // The distance of numbers with 10 bits.
            let unit = 2f64.powi(f64::from(value).abs().log2().floor() as i32 - 10);
            let right = (f64::from(value) / unit).round_ties_even() * unit;
            let right = if right.abs() > f64::from(f32::MAX) {
                f64::INFINITY.copysign(right)
            } else {
                right
            };
            assert_eq!(f64::from(factor), right, "{value}");
        }
    }
}
