//! Absolute values, compared by their bits.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

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
