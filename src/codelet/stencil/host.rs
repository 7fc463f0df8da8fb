//! The stencils' native implementation.

use std::ops::Range;

use super::{Dimensions, Precision};
use crate::codelet::{HostKernel, HostValue};

/// The native kernel of a stencil.
pub fn kernel(dimensions: Dimensions, precision: Precision) -> HostKernel {
    match (dimensions, precision) {
        (Dimensions::Two, Precision::F64) => five::<f64>,
        (Dimensions::Two, Precision::F32) => five::<f32>,
        (Dimensions::Three, Precision::F64) => seven::<f64>,
        (Dimensions::Three, Precision::F32) => seven::<f32>,
    }
}

trait Real: Copy + std::ops::Add<Output = Self> + std::ops::Mul<Output = Self> + bytemuck::Pod {
    fn weight(value: HostValue) -> Self;
}

impl Real for f64 {
    fn weight(value: HostValue) -> Self {
        match value {
            HostValue::F64(w) => w,
            _ => unreachable!("the weight of a double stencil is an f64"),
        }
    }
}

impl Real for f32 {
    fn weight(value: HostValue) -> Self {
        match value {
            HostValue::F32(w) => w,
            _ => unreachable!("the weight of a single stencil is an f32"),
        }
    }
}

/// The arguments, decoded. Pointers are to slot 0.
struct Grid<T> {
    from: *const T,
    to: *mut T,
    from_slot: u64,
    from_slots: u64,
    to_slot: u64,
    to_slots: u64,
    units: u64,
    nx: usize,
    ny: usize,
    weight: T,
}

impl<T: Real> Grid<T> {
    fn decode(args: &[HostValue]) -> Self {
        let memory = |i: usize| match args[i] {
            HostValue::Memory { address, .. } => address,
            _ => unreachable!("stencil argument {i} is memory"),
        };
        let number = |i: usize| match args[i] {
            HostValue::U32(n) => n,
            _ => unreachable!("stencil argument {i} is a u32"),
        };
        Self {
            from: memory(0).cast_const().cast(),
            to: memory(1).cast(),
            from_slot: number(2).into(),
            from_slots: number(3).into(),
            to_slot: number(4).into(),
            to_slots: number(5).into(),
            units: number(8).into(),
            nx: number(9) as usize,
            ny: number(10) as usize,
            weight: T::weight(args[11]),
        }
    }

    fn source(&self, ahead: i64) -> usize {
        let slot = (self.from_slot as i64 + ahead).rem_euclid(self.from_slots as i64);
        slot as usize * self.nx * self.ny
    }

    fn target(&self, ahead: i64) -> usize {
        let slot = (self.to_slot as i64 + ahead).rem_euclid(self.to_slots as i64);
        slot as usize * self.nx * self.ny
    }
}

unsafe fn five<T: Real>(args: &[HostValue], first: u64, units: Range<u64>) {
    let grid = Grid::<T>::decode(args);
    let nx = grid.nx;
    for unit in units {
        let ahead = (unit - first) as i64;
        // SAFETY: by the contract of `HostKernel` the rings hold these units,
        // and nobody writes what is read here or reads what is written.
        unsafe {
            let row = std::slice::from_raw_parts(grid.from.add(grid.source(ahead)), nx);
            let to = std::slice::from_raw_parts_mut(grid.to.add(grid.target(ahead)), nx);
            to.copy_from_slice(row);
            if unit == 0 || unit + 1 == grid.units {
                continue;
            }
            let north = std::slice::from_raw_parts(grid.from.add(grid.source(ahead - 1)), nx);
            let south = std::slice::from_raw_parts(grid.from.add(grid.source(ahead + 1)), nx);
            for x in 1..nx - 1 {
                to[x] =
                    (((north[x] + south[x]) + (row[x - 1] + row[x + 1])) + row[x]) * grid.weight;
            }
        }
    }
}

unsafe fn seven<T: Real>(args: &[HostValue], first: u64, units: Range<u64>) {
    let grid = Grid::<T>::decode(args);
    let (nx, plane) = (grid.nx, grid.nx * grid.ny);
    for unit in units {
        let ahead = (unit - first) as i64;
        // SAFETY: as in `five`, with planes for rows.
        unsafe {
            let here = std::slice::from_raw_parts(grid.from.add(grid.source(ahead)), plane);
            let to = std::slice::from_raw_parts_mut(grid.to.add(grid.target(ahead)), plane);
            to.copy_from_slice(here);
            if unit == 0 || unit + 1 == grid.units {
                continue;
            }
            let below = std::slice::from_raw_parts(grid.from.add(grid.source(ahead - 1)), plane);
            let above = std::slice::from_raw_parts(grid.from.add(grid.source(ahead + 1)), plane);
            for y in 1..grid.ny - 1 {
                for i in y * nx + 1..(y + 1) * nx - 1 {
                    to[i] = (((here[i - nx] + here[i + nx]) + (here[i - 1] + here[i + 1]))
                        + ((below[i] + above[i]) + here[i]))
                        * grid.weight;
                }
            }
        }
    }
}
