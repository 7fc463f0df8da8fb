//! Sums over a part of a vector, for an iteration whose next step needs them: the squares
//! of a power iteration, or the ranks of vertices without links and by how much all ranks
//! have changed.
//!
//! A unit is a slot: the vector is cut into [`SLOTS`] slices of about equal length, so that
//! several cores add. Each slot has its own sums, and [`adder`] adds those of several parts
//! slot by slot.
//!
//! ## Arguments
//!
//! | # | argument | type | meaning |
//! |---|---|---|---|
//! | 0 | `new` | memory | the vector |
//! | 1 | `old` | memory | ranks only: the vector of the step before |
//! | 2 | `weights` | memory | ranks only: a factor of each number |
//! | next | `sums` | memory | 2 [`SLOTS`] numbers: the first sums of all slots, then the second |
//! | next | `count` | u32 | numbers of the vector |
//!
//! The first sum is that of the squares, or of `weights new`; the second is 0, or the sum of
//! `|new - old|`.

mod host;
mod opencl;

use super::{Codelet, Cost, HostCode, Precision, Real};

/// Slots: a few for each core of most machines.
pub const SLOTS: u32 = 64;

/// What is summed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sums {
    Squares,
    Ranks,
}

impl Sums {
    /// The codelet.
    pub fn codelet(self, precision: Precision) -> Codelet {
        let name = match self {
            Self::Squares => "sum-of-squares",
            Self::Ranks => "sum-of-ranks",
        };
        Codelet {
            name: name.into(),
            host: Some(HostCode::Kernel(host::kernel(self, precision))),
            opencl: Some(opencl::kernel(self, precision)),
        }
    }

    /// Every vector is read once.
    pub fn cost(self, count: u64, precision: Precision) -> Cost {
        let (operations, vectors) = match self {
            Self::Squares => (2, 1),
            Self::Ranks => (5, 3),
        };
        Cost {
            flops: (operations * count) as f64,
            bytes: (vectors * count * precision.bytes()) as f64,
        }
    }
}

/// Adds sums of one part to those of another.
pub fn adder(precision: Precision) -> fn(&mut [u8], &[u8]) {
    match precision {
        Precision::F64 => add::<f64>,
        Precision::F32 => add::<f32>,
    }
}

fn add<T: Real>(sums: &mut [u8], others: &[u8]) {
    let numbers = sums.chunks_exact_mut(size_of::<T>());
    for (sum, other) in numbers.zip(others.chunks_exact(size_of::<T>())) {
        let read = bytemuck::pod_read_unaligned::<T>;
        let both = T::of_f64(read(sum).to_f64() + read(other).to_f64());
        sum.copy_from_slice(bytemuck::bytes_of(&both));
    }
}

/// The first and the second sum of all slots.
pub fn totals(sums: &[u8], precision: Precision) -> [f64; 2] {
    let halves = sums.split_at(sums.len() / 2);
    let sum = |half: &[u8]| match precision {
        Precision::F64 => of_slots::<f64>(half),
        Precision::F32 => of_slots::<f32>(half),
    };
    [sum(halves.0), sum(halves.1)]
}

fn of_slots<T: Real>(bytes: &[u8]) -> f64 {
    let numbers = bytes.chunks_exact(size_of::<T>());
    let numbers = numbers.map(bytemuck::pod_read_unaligned::<T>);
    numbers.map(Real::to_f64).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_parts_are_added_slot_by_slot() {
        let bytes = |numbers: [f32; 4]| numbers.map(f32::to_ne_bytes).concat();
        let mut sums = bytes([1.0, 2.0, 3.0, 4.0]);
        adder(Precision::F32)(&mut sums, &bytes([0.5, 0.0, -3.0, 8.0]));
        assert_eq!(sums, bytes([1.5, 2.0, 0.0, 12.0]));
        assert_eq!(totals(&sums, Precision::F32), [3.5, 12.0]);
    }
}
