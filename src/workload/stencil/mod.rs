//! The stencil workload: a Jacobi stencil on a 2-D or 3-D grid, with its first
//! version, its codelet and its sequential reference.

mod reference;

use std::ops::Range;
use std::sync::Arc;

use thiserror::Error;

use super::{Data, Divisible, Grid, Ring};
use crate::codelet::stencil::{self, Dimensions, Precision};
use crate::codelet::{Codelet, Cost, Value};
use crate::random::uniform;

/// Why a grid is not possible.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum StencilError {
    #[error("{axis} is {value}; a stencil needs at least 3 points along each axis")]
    TooSmall { axis: &'static str, value: u64 },
    #[error("{axis} is {value}; a stencil has at most {} points along each axis", u32::MAX / 2)]
    TooLarge { axis: &'static str, value: u64 },
    #[error("a grid of {0} needs more bytes than can be counted; choose a smaller size")]
    Overflow(String),
}

/// A Jacobi stencil on a grid of `nx` x `ny` (x `nz`) points.
///
/// A unit is a row in 2-D and a plane in 3-D. The values of the first version are
/// uniform in [0, 1), by a hash of the seed and a point's index.
#[derive(Clone, Debug)]
pub struct Stencil {
    nx: u64,
    ny: u64,
    nz: Option<u64>,
    precision: Precision,
    seed: u64,
    codelet: Arc<Codelet>,
}

impl Stencil {
    /// A grid of `nx` points a row, `ny` rows, and `nz` planes in 3-D.
    ///
    /// # Errors
    /// When an axis is shorter than 3 or longer than 2^31 - 1 points, or when
    /// the grid's bytes overflow 63 bits.
    pub fn new(
        nx: u64,
        ny: u64,
        nz: Option<u64>,
        precision: Precision,
        seed: u64,
    ) -> Result<Self, StencilError> {
        for (axis, value) in [("nx", Some(nx)), ("ny", Some(ny)), ("nz", nz)] {
            let Some(value) = value else { continue };
            if value < 3 {
                return Err(StencilError::TooSmall { axis, value });
            }
            if value > u64::from(u32::MAX / 2) {
                return Err(StencilError::TooLarge { axis, value });
            }
        }
        let bytes = [nx, ny, nz.unwrap_or(1), precision.bytes()]
            .into_iter()
            .try_fold(1u64, |product, factor| product.checked_mul(factor))
            .filter(|bytes| *bytes < 1 << 62);
        if bytes.is_none() {
            return Err(StencilError::Overflow(shape(nx, ny, nz)));
        }
        let dimensions = if nz.is_some() {
            Dimensions::Three
        } else {
            Dimensions::Two
        };
        Ok(Self {
            nx,
            ny,
            nz,
            precision,
            seed,
            codelet: Arc::new(stencil::codelet(dimensions, precision)),
        })
    }

    /// Points along each axis: columns, rows, and planes in 3-D.
    pub fn shape(&self) -> (u64, u64, Option<u64>) {
        (self.nx, self.ny, self.nz)
    }

    /// The grid's floating-point type.
    pub fn precision(&self) -> Precision {
        self.precision
    }

    /// The seed of the first version.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The weight of a point in the sum.
    fn weight(&self) -> f64 {
        match self.nz {
            None => 1.0 / 5.0,
            Some(_) => 1.0 / 7.0,
        }
    }

    /// The first value of the point with this index, in [0, 1).
    fn value(&self, index: u64) -> f64 {
        uniform(self.seed, index)
    }
}

fn shape(nx: u64, ny: u64, nz: Option<u64>) -> String {
    match nz {
        None => format!("{nx} x {ny}"),
        Some(nz) => format!("{nx} x {ny} x {nz}"),
    }
}

impl Divisible for Stencil {
    fn name(&self) -> &'static str {
        "stencil"
    }

    fn units(&self) -> u64 {
        self.nz.unwrap_or(self.ny)
    }

    fn unit_bytes(&self) -> u64 {
        self.unit_points() * self.precision.bytes()
    }

    fn fp64(&self) -> bool {
        self.precision == Precision::F64
    }

    fn codelet(&self) -> Arc<Codelet> {
        Arc::clone(&self.codelet)
    }

    fn cost(&self, units: &Range<u64>) -> Cost {
        let points = ((units.end - units.start) * self.unit_points()) as f64;
        let flops = if self.nz.is_some() { 7.0 } else { 5.0 };
        Cost {
            flops: points * flops,
            bytes: points * 2.0 * self.precision.bytes() as f64,
        }
    }

    fn data(&self) -> Data<'_> {
        Data::Grid(self)
    }
}

impl Grid for Stencil {
    fn unit_points(&self) -> u64 {
        match self.nz {
            None => self.nx,
            Some(_) => self.nx * self.ny,
        }
    }

    fn dimensions(&self) -> u32 {
        if self.nz.is_some() { 3 } else { 2 }
    }

    fn halo(&self) -> u64 {
        1
    }

    fn args(&self, units: Range<u64>, from: &Ring, to: &Ring) -> Vec<Value> {
        // Every count fits 32 bits: `new` checks the axes, and a ring has only a
        // few slots more than twice the units.
        let number = |n: u64| Value::U32(n as u32);
        vec![
            Value::Memory(from.memory),
            Value::Memory(to.memory),
            number(from.slot_of(units.start)),
            number(from.slots),
            number(to.slot_of(units.start)),
            number(to.slots),
            number(units.start),
            number(units.end - units.start),
            number(self.units()),
            number(self.nx),
            number(self.nz.map_or(1, |_| self.ny)),
            match self.precision {
                Precision::F64 => Value::F64(self.weight()),
                Precision::F32 => Value::F32(self.weight() as f32),
            },
        ]
    }

    fn initial(&self, units: Range<u64>, bytes: &mut [u8]) {
        let first = units.start * self.unit_points();
        match self.precision {
            Precision::F64 => {
                for (i, v) in bytemuck::cast_slice_mut::<u8, f64>(bytes)
                    .iter_mut()
                    .enumerate()
                {
                    *v = self.value(first + i as u64);
                }
            }
            Precision::F32 => {
                for (i, v) in bytemuck::cast_slice_mut::<u8, f32>(bytes)
                    .iter_mut()
                    .enumerate()
                {
                    *v = self.value(first + i as u64) as f32;
                }
            }
        }
    }

    /// Results must agree bit for bit: the codelets fix the order of
    /// operations.
    fn verify(&self, steps: u32, result: &[u8]) -> (f64, bool) {
        match self.precision {
            Precision::F64 => self.compare::<f64>(steps, result),
            Precision::F32 => self.compare::<f32>(steps, result),
        }
    }
}

impl Stencil {
    fn compare<T: reference::Real>(&self, steps: u32, result: &[u8]) -> (f64, bool) {
        let mut first = vec![T::zeroed(); (self.units() * self.unit_points()) as usize];
        self.initial(0..self.units(), bytemuck::cast_slice_mut(&mut first));
        let (nx, ny) = (self.nx as usize, self.ny as usize);
        let right = reference::compute(first, nx, ny, self.nz.map(|z| z as usize), steps);
        reference::compare(bytemuck::cast_slice(result), &right)
    }
}

impl Stencil {
    /// Whether a unit has its values after `steps` steps, bit for bit. The units on which
    /// it depends are computed from the first version.
    pub fn is_unit(&self, steps: u64, unit: u64, bytes: &[u8]) -> bool {
        match self.precision {
            Precision::F64 => self.is_unit_of::<f64>(steps, unit, bytes),
            Precision::F32 => self.is_unit_of::<f32>(steps, unit, bytes),
        }
    }

    fn is_unit_of<T: reference::Real>(&self, steps: u64, unit: u64, bytes: &[u8]) -> bool {
        // The outermost units of a window keep their values, which is wrong within the
        // grid. One more unit an edge and step is enough that it does not reach `unit`.
        let around = unit.saturating_sub(steps + 1)..(unit + steps + 2).min(self.units());
        let count = around.end - around.start;
        let points = self.unit_points() as usize;
        let mut first = vec![T::zeroed(); count as usize * points];
        self.initial(around.clone(), bytemuck::cast_slice_mut(&mut first));
        let (nx, units) = (self.nx as usize, count as usize);
        let (ny, nz) = match self.nz {
            None => (units, None),
            Some(_) => (self.ny as usize, Some(units)),
        };
        let right = reference::compute(first, nx, ny, nz, steps as u32);
        let at = (unit - around.start) as usize * points;
        bytemuck::cast_slice::<T, u8>(&right[at..at + points]) == bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_sizes_are_refused() {
        let new = |nx, ny, nz| Stencil::new(nx, ny, nz, Precision::F64, 0).err();
        assert_eq!(
            new(2, 9, None),
            Some(StencilError::TooSmall {
                axis: "nx",
                value: 2
            })
        );
        assert!(matches!(
            new(9, 1 << 40, None),
            Some(StencilError::TooLarge { axis: "ny", .. })
        ));
        let big = u64::from(u32::MAX / 2);
        assert!(matches!(
            new(big, big, Some(big)),
            Some(StencilError::Overflow(_))
        ));
        assert_eq!(new(3, 3, Some(3)), None);
    }

    #[test]
    fn any_range_of_the_first_version_can_be_written_alone() {
        let stencil = Stencil::new(7, 5, None, Precision::F64, 3).unwrap();
        let mut whole = vec![0u8; 7 * 5 * 8];
        stencil.initial(0..5, &mut whole);
        let mut part = vec![0u8; 2 * 7 * 8];
        stencil.initial(2..4, &mut part);
        assert_eq!(part, whole[2 * 56..4 * 56]);
        let values: &[f64] = bytemuck::cast_slice(&whole);
        assert!(values.iter().all(|v| (0.0..1.0).contains(v)));
        let mean = values.iter().sum::<f64>() / 35.0;
        assert!((0.3..0.7).contains(&mean), "{mean}");
    }

    #[test]
    fn one_step_equals_a_manual_computation() {
        let stencil = Stencil::new(3, 3, None, Precision::F64, 1).unwrap();
        let mut bytes = vec![0u8; 72];
        stencil.initial(0..3, &mut bytes);
        let mut grid: Vec<f64> = bytemuck::pod_collect_to_vec(&bytes);
        let mean = (grid[1] + grid[7] + grid[3] + grid[5] + grid[4]) / 5.0;
        grid[4] = (((grid[1] + grid[7]) + (grid[3] + grid[5])) + grid[4]) * 0.2;
        assert!((grid[4] - mean).abs() < 1e-15);
        let (error, right) = stencil.verify(1, bytemuck::cast_slice(&grid));
        assert_eq!((error, right), (0.0, true));
        grid[4] = f64::from_bits(grid[4].to_bits() + 1);
        assert!(!stencil.verify(1, bytemuck::cast_slice(&grid)).1);
        grid[0] = f64::NAN;
        assert!(stencil.verify(1, bytemuck::cast_slice(&grid)).0.is_nan());
    }
}
