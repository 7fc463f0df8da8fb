//! An exponential function that the compiler can vectorise.
//!
//! Absolute values, compared by their bits.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// `e^x` with a relative error below 3e-7 for x from -87 to 88; 0 below, and nearly
/// the greatest single above.
///
/// Source: Moshier's Cephes library, `expf`: `x = n ln 2 + r`, a polynomial of
/// r, and n put into the exponent. `n` is rounded by adding a number whose last
/// bit is 1, since not every instruction set has a vector conversion.
#[inline(always)]
pub(crate) fn exp(x: f32) -> f32 {
    const LEAST: f32 = -87.3;
    const MOST: f32 = 88.37;
    const ROUND: f32 = 12_582_912.0;
    // ln 2 in two parts, the first of few bits, so that n times it is exact.
    const LN2_HIGH: f32 = 0.693_359_4;
    const LN2_LOW: f32 = -2.121_944_4e-4;

    let bounded = if x > MOST { MOST } else { x };
    let bounded = if bounded < LEAST { LEAST } else { bounded };
    let rounded = bounded * std::f32::consts::LOG2_E + ROUND;
    let n = rounded - ROUND;
    let r = bounded - n * LN2_HIGH - n * LN2_LOW;
    let mut p = 1.987_569_1e-4;
    p = p * r + 1.398_2e-3;
    p = p * r + 8.333_452e-3;
    p = p * r + 4.166_579_6e-2;
    p = p * r + 1.666_666_6e-1;
    p = p * r + 0.5;
    let power = p * r * r + r + 1.0;
    let exponent = rounded
        .to_bits()
        .wrapping_sub(ROUND.to_bits())
        .wrapping_add(127);
    let result = power * f32::from_bits(exponent << 23);
    if x < LEAST { 0.0 } else { result }
}

/// A number whose absolute value is compared by its bits. As integers they are in the order of
/// the values, and those of NaN are above all others: a maximum keeps NaN.
pub(crate) trait Magnitude: Copy {
    type Bits: Copy + Default + Ord;

    /// The absolute value's bits.
    fn magnitude(self) -> Self::Bits;

    /// Raises a cell to `to`, if it is less. Zero touches no memory.
    ///
    /// # Safety
    /// The cell is aligned and can be written, and others only raise it meanwhile.
    unsafe fn raise(cell: *mut Self::Bits, to: Self::Bits);
}

macro_rules! magnitude {
    ($number:ty, $bits:ty, $cell:ty) => {
        impl Magnitude for $number {
            type Bits = $bits;

            #[inline(always)]
            fn magnitude(self) -> $bits {
                self.abs().to_bits()
            }

            unsafe fn raise(cell: *mut $bits, to: $bits) {
                if to == 0 {
                    return;
                }
                // SAFETY: the caller's contract.
                unsafe { <$cell>::from_ptr(cell) }.fetch_max(to, Ordering::Relaxed);
            }
        }
    };
}

magnitude!(f64, u64, AtomicU64);
magnitude!(f32, u32, AtomicU32);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_are_near_those_in_double() {
        for step in 0..=175_000_u32 {
            let x = -87.0 + step as f32 * 1e-3;
            let right = f64::from(x).exp();
            let error = (f64::from(exp(x)) - right).abs() / right;
            assert!(error < 3e-7, "{x}: {error:e}");
        }
        assert_eq!(exp(0.0), 1.0);
    }

    #[test]
    fn ends_are_finite() {
        assert_eq!(exp(-1e30), 0.0);
        assert_eq!(exp(f32::NEG_INFINITY), 0.0);
        assert!(exp(1e30).is_finite() && exp(1e30) > 1e38);
    }

    #[test]
    fn magnitudes_are_in_order_and_nan_is_above_all() {
        let ascending = [0.0, 1e-310, 0.5, -0.75, 1e308, f64::NEG_INFINITY, -f64::NAN];
        assert!(ascending.is_sorted_by(|a, b| a.magnitude() < b.magnitude()));
        assert_eq!((-0.0f32).magnitude(), 0);
    }

    #[test]
    fn a_cell_is_only_raised() {
        let mut cell = 5;
        for (to, cell_is) in [(0, 5), (4, 5), (6, 6), (2, 6)] {
            // SAFETY: nobody else uses the cell.
            unsafe { f32::raise(&mut cell, to) };
            assert_eq!(cell, cell_is);
        }
        // SAFETY: zero touches no memory.
        unsafe { f64::raise(std::ptr::null_mut(), 0) };
    }
}
