//! The sums' native implementation. It adds in double precision.

use std::ops::Range;

use super::{SLOTS, Sums};
use crate::codelet::host::Arguments;
use crate::codelet::{HostKernel, HostValue, Precision, Real};

/// The native kernel.
pub(super) fn kernel(sums: Sums, precision: Precision) -> HostKernel {
    match (sums, precision) {
        (Sums::Squares, Precision::F64) => squares::<f64>,
        (Sums::Squares, Precision::F32) => squares::<f32>,
        (Sums::Ranks, Precision::F64) => ranks::<f64>,
        (Sums::Ranks, Precision::F32) => ranks::<f32>,
    }
}

/// # Safety
/// That of [`HostKernel`].
unsafe fn squares<T: Real>(args: &[HostValue], first: u64, units: Range<u64>) {
    let args = arguments(args);
    let new = args.memory::<T>(0);
    // SAFETY: the caller's contract; a slice lies within the vector.
    unsafe {
        fill(args.memory::<T>(1), args.u32(2), first, units, |at| {
            let number = (*new.add(at)).to_f64();
            [number * number, 0.0]
        });
    }
}

/// # Safety
/// That of [`HostKernel`].
unsafe fn ranks<T: Real>(args: &[HostValue], first: u64, units: Range<u64>) {
    let args = arguments(args);
    let [new, old, weights] = [0, 1, 2].map(|index| args.memory::<T>(index));
    // SAFETY: the caller's contract; a slice lies within all three vectors.
    unsafe {
        fill(args.memory::<T>(3), args.u32(4), first, units, |at| {
            let [new, old, weight] = [new, old, weights].map(|numbers| (*numbers.add(at)).to_f64());
            [weight * new, (new - old).abs()]
        });
    }
}

fn arguments(values: &[HostValue]) -> Arguments<'_> {
    Arguments {
        codelet: "sums",
        values,
    }
}

/// Writes the sums of slots, of which `of` gives the terms of each place.
///
/// # Safety
/// `to` has the numbers of all slots, and only this call writes those of `units`.
unsafe fn fill<T: Real>(
    to: *mut T,
    count: usize,
    first: u64,
    units: Range<u64>,
    of: impl Fn(usize) -> [f64; 2],
) {
    let slots = SLOTS as usize;
    for slot in units.start - first..units.end - first {
        let slot = slot as usize;
        let slice = count * slot / slots..count * (slot + 1) / slots;
        let sums = slice.map(&of).fold([0.0, 0.0], |sums, terms| {
            [sums[0] + terms[0], sums[1] + terms[1]]
        });
        // SAFETY: the caller's contract.
        unsafe {
            *to.add(slot) = T::of_f64(sums[0]);
            *to.add(slots + slot) = T::of_f64(sums[1]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::totals;
    use super::*;

    fn memory(numbers: &mut [f64]) -> HostValue {
        HostValue::Memory {
            address: numbers.as_mut_ptr().cast(),
            bytes: size_of_val(numbers) as u64,
        }
    }

    /// Each number is in one slot, however many there are, and tiles may come in any order.
    #[test]
    fn every_number_counts_once() {
        for count in [1, 2, 63, 64, 65, 1000] {
            let mut new: Vec<f64> = (0..count).map(f64::from).collect();
            let mut old = vec![1.0; new.len()];
            let mut weights: Vec<f64> = (0..count).map(|at| f64::from(at % 2)).collect();
            for sums in [Sums::Squares, Sums::Ranks] {
                let mut to = vec![f64::NAN; 2 * SLOTS as usize];
                let mut args = vec![memory(&mut new)];
                if sums == Sums::Ranks {
                    args.extend([memory(&mut old), memory(&mut weights)]);
                }
                args.extend([memory(&mut to), HostValue::U32(count as u32)]);
                let run = kernel(sums, Precision::F64);
                for tile in [30..u64::from(SLOTS), 0..30] {
                    // SAFETY: the memories have `count` numbers, and `to` has all slots.
                    unsafe { run(&args, 0, tile) };
                }
                let right = match sums {
                    Sums::Squares => [new.iter().map(|x| x * x).sum(), 0.0],
                    Sums::Ranks => [
                        new.iter().zip(&weights).map(|(x, w)| x * w).sum(),
                        new.iter().map(|x| (x - 1.0).abs()).sum(),
                    ],
                };
                let found = totals(bytemuck::cast_slice(&to), Precision::F64);
                assert_eq!(found, right, "{sums:?} of {count}");
            }
        }
    }
}
