//! The stencil workload: a Jacobi stencil on a 2-D or 3-D grid. `first` is its first
//! version, random or of a file, and `reference` the sequential reference.

mod first;
mod reference;
#[cfg(test)]
mod tests;

use std::ops::Range;
use std::sync::Arc;

use thiserror::Error;

pub use first::{FirstVersion, GridFileError, check_finite};

use super::kernel::Sink;
use super::{Changes, Data, Divisible, Ending, FirstVersionError, Fold, Grid, Ring};
use crate::codelet::stencil::{self, Dimensions, Precision, Rule};
use crate::codelet::{Codelet, Cost, Memory, Value};
use crate::matrix::Shared;
use crate::matrix::npy::NpyMatrix;
use crate::verify::{Checked, Compared};
use reference::Until;

/// Why a grid is not possible.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum StencilError {
    #[error("{axis} is {value}; a stencil needs at least 3 points along each axis")]
    TooSmall { axis: &'static str, value: u64 },
    #[error("{axis} is {value}; a stencil has at most {} points along each axis", u32::MAX / 2)]
    TooLarge { axis: &'static str, value: u64 },
    #[error("a grid of {0} needs more bytes than can be counted; choose a smaller size")]
    Overflow(String),
    #[error(
        "{given} coefficients, and a {dimensions}-D stencil has {}: {}",
        needed.len(),
        needed.join(", ")
    )]
    Coefficients {
        given: usize,
        dimensions: u32,
        /// The points that have one, in their order.
        needed: &'static [&'static str],
    },
    #[error("the grid has {needed} bytes, and {given} are given")]
    Numbers { given: u64, needed: u64 },
    #[error("the coefficient of {point}, {value}, is not finite in {precision}")]
    NotFinite {
        point: &'static str,
        value: String,
        precision: &'static str,
    },
}

/// A Jacobi stencil on a grid of `nx` x `ny` (x `nz`) points.
///
/// A unit is a row in 2-D and a plane in 3-D. The outermost points keep the values of the
/// first version. Another point's next version is the mean of its neighbourhood, or a sum
/// with coefficients.
#[derive(Clone, Debug)]
pub struct Stencil {
    nx: u64,
    ny: u64,
    nz: Option<u64>,
    precision: Precision,
    first: FirstVersion,
    /// In the order of [`Dimensions::neighbourhood`]; none for the mean.
    coefficients: Option<Vec<f64>>,
    codelets: Codelets,
    sink: Option<Sink>,
}

/// The codelets of a stencil: of a step and of several, and of those whose change is found.
#[derive(Clone, Debug)]
struct Codelets {
    step: Arc<Codelet>,
    superstep: Arc<Codelet>,
    changes: Arc<Codelet>,
    superstep_changes: Arc<Codelet>,
    fold_changes: Arc<Codelet>,
}

impl Codelets {
    fn of(dimensions: Dimensions, precision: Precision, rule: Rule) -> Self {
        let new = |of: fn(Dimensions, Precision, Rule) -> Codelet| {
            Arc::new(of(dimensions, precision, rule))
        };
        Self {
            step: new(stencil::codelet),
            superstep: new(stencil::superstep),
            changes: new(stencil::changes),
            superstep_changes: new(stencil::superstep_changes),
            fold_changes: new(stencil::fold_changes),
        }
    }
}

impl Stencil {
    /// A grid of `nx` points a row, `ny` rows, and `nz` planes in 3-D, whose first version
    /// is random. The next version of a point is the mean of its neighbourhood.
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
        Self::starting((nx, ny, nz), precision, FirstVersion::Random { seed })
    }

    /// A grid whose first version is in a file, which [`NpyMatrix::open_grid`] opened.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn of_file(file: NpyMatrix) -> Result<Self, StencilError> {
        let (shape, precision) = (file.grid_shape(), file.precision());
        Self::starting(shape, precision, FirstVersion::File(Arc::new(file)))
    }

    /// A grid with a first version in memory: its numbers, row after row.
    ///
    /// # Errors
    /// As [`Self::new`], and when there are more or fewer bytes than the grid has.
    pub fn of_numbers(
        (nx, ny, nz): (u64, u64, Option<u64>),
        precision: Precision,
        numbers: Shared<u8>,
    ) -> Result<Self, StencilError> {
        let given = numbers.len() as u64;
        let stencil = Self::starting((nx, ny, nz), precision, FirstVersion::Given(numbers))?;
        let needed = stencil.units() * stencil.unit_bytes();
        match given == needed {
            true => Ok(stencil),
            false => Err(StencilError::Numbers { given, needed }),
        }
    }

    fn starting(
        (nx, ny, nz): (u64, u64, Option<u64>),
        precision: Precision,
        first: FirstVersion,
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
        let codelets = Codelets::of(dimensions(nz), precision, Rule::Mean);
        Ok(Self {
            nx,
            ny,
            nz,
            precision,
            first,
            coefficients: None,
            codelets,
            sink: None,
        })
    }

    /// The same grid with a coefficient for each point of a neighbourhood, in the order of
    /// [`Dimensions::neighbourhood`]. A point's next version is the sum of the products.
    ///
    /// # Errors
    /// When there are more or fewer, and when one is not finite in the grid's precision.
    pub fn with_coefficients(self, coefficients: &[f64]) -> Result<Self, StencilError> {
        let needed = dimensions(self.nz).neighbourhood();
        if coefficients.len() != needed.len() {
            return Err(StencilError::Coefficients {
                given: coefficients.len(),
                dimensions: self.dimensions(),
                needed,
            });
        }
        let is_finite = |number: f64| {
            self.precision
                .choose((number as f32).is_finite(), number.is_finite())
        };
        let mut named = needed.iter().zip(coefficients);
        if let Some((point, value)) = named.find(|(_, number)| !is_finite(**number)) {
            return Err(StencilError::NotFinite {
                point,
                value: format!("{value:?}"),
                precision: self.precision.name(),
            });
        }
        Ok(Self {
            coefficients: Some(coefficients.to_vec()),
            codelets: Codelets::of(dimensions(self.nz), self.precision, Rule::Weighted),
            ..self
        })
    }

    /// The same stencil, which passes its last version to `sink`.
    pub fn with_sink(self, sink: Sink) -> Self {
        Self {
            sink: Some(sink),
            ..self
        }
    }

    /// Points along each axis: columns, rows, and planes in 3-D.
    pub fn shape(&self) -> (u64, u64, Option<u64>) {
        (self.nx, self.ny, self.nz)
    }

    /// The grid's floating-point type.
    pub fn precision(&self) -> Precision {
        self.precision
    }

    /// The first version.
    pub fn first(&self) -> &FirstVersion {
        &self.first
    }

    /// The coefficients, if it has some, in the order of [`Dimensions::neighbourhood`].
    pub fn coefficients(&self) -> Option<&[f64]> {
        self.coefficients.as_deref()
    }

    /// Cells that launches of so many units raise.
    fn change_cells(&self, units: u64) -> u64 {
        let rows = self.nz.map_or(1, |_| self.ny);
        stencil::change_cells(dimensions(self.nz), self.nx, rows, units)
    }

    /// The weight of a point in the sum.
    fn weight(&self) -> f64 {
        match self.nz {
            None => 1.0 / 5.0,
            Some(_) => 1.0 / 7.0,
        }
    }
}

fn dimensions(nz: Option<u64>) -> Dimensions {
    match nz {
        None => Dimensions::Two,
        Some(_) => Dimensions::Three,
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
        Arc::clone(&self.codelets.step)
    }

    fn cost(&self, units: &Range<u64>) -> Cost {
        let points = ((units.end - units.start) * self.unit_points()) as f64;
        let flops = match (&self.coefficients, self.nz) {
            (None, None) => 5.0,
            (None, Some(_)) => 7.0,
            (Some(_), None) => 9.0,
            (Some(_), Some(_)) => 13.0,
        };
        Cost {
            flops: points * flops,
            bytes: points * 2.0 * self.precision.bytes() as f64,
        }
    }

    fn data(&self) -> Data<'_> {
        Data::Grid(self)
    }
}

impl Changes for Stencil {
    fn of_step(&self) -> Arc<Codelet> {
        Arc::clone(&self.codelets.changes)
    }

    fn of_superstep(&self) -> Option<Arc<Codelet>> {
        Some(Arc::clone(&self.codelets.superstep_changes))
    }

    fn raised_bytes(&self, units: u64) -> u64 {
        self.change_cells(units) * self.precision.bytes()
    }

    fn folded_bytes(&self) -> u64 {
        stencil::FOLDED_CELLS * self.precision.bytes()
    }

    fn fold(&self, raised: Memory, units: u64, folded: Memory, first: bool) -> Fold {
        let cells = self.change_cells(units);
        Fold {
            codelet: Arc::clone(&self.codelets.fold_changes),
            units: 0..stencil::FOLDED_CELLS,
            args: stencil::fold_args(raised, folded, cells, first),
            cost: stencil::fold_cost(self.precision, cells),
        }
    }

    fn largest(&self, raised: &[u8]) -> f64 {
        stencil::largest_change(self.precision, raised)
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
        let mut args = vec![
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
        ];
        match &self.coefficients {
            None => args.push(self.precision.value(self.weight())),
            Some(coefficients) => {
                args.extend(
                    coefficients
                        .iter()
                        .map(|number| self.precision.value(*number)),
                );
            }
        }
        args
    }

    fn superstep(&self) -> Option<Arc<Codelet>> {
        Some(Arc::clone(&self.codelets.superstep))
    }

    fn changes(&self) -> Option<&dyn Changes> {
        Some(self)
    }

    fn superstep_flops(&self, steps: u32) -> f64 {
        stencil::superstep_flops(dimensions(self.nz), steps)
    }

    fn initial(&self, units: Range<u64>, bytes: &mut [u8]) -> Result<(), FirstVersionError> {
        self.first
            .write(units, self.unit_points(), self.precision, bytes)
    }

    fn given(&self) -> Option<&[u8]> {
        match &self.first {
            FirstVersion::Given(numbers) => Some(numbers),
            FirstVersion::Random { .. } | FirstVersion::File(_) => None,
        }
    }

    fn deliver(&self, result: &[u8]) {
        if let Some(sink) = &self.sink {
            sink.take(0, result);
        }
    }

    /// Results must agree bit for bit: the codelets fix the order of
    /// operations.
    fn verify(&self, steps: u32, checked: Option<Ending>, result: &[u8]) -> Compared {
        match self.precision {
            Precision::F64 => self.compare::<f64>(steps, checked, result),
            Precision::F32 => self.compare::<f32>(steps, checked, result),
        }
    }
}

impl Stencil {
    /// A first version that cannot be read any more is no reference.
    fn compare<T: reference::Real>(
        &self,
        steps: u32,
        checked: Option<Ending>,
        result: &[u8],
    ) -> Compared {
        let result: &[T] = bytemuck::cast_slice(result);
        let most = checked.map_or(steps, |checked| checked.most);
        let until = checked.map(|checked| Until {
            tolerance: checked.tolerance,
            period: checked.period,
        });
        let Ok(right) = self.computed::<T>(0..self.units(), most, until) else {
            return reference::compare(result, &[]);
        };
        let compared = reference::compare(result, &right.grid);
        // The change may be NaN.
        let change = checked.map(|checked| checked.change);
        let is_change = match (right.change, change) {
            (Some(right), Some(change)) => right == change || right.is_nan() && change.is_nan(),
            (right, change) => right == change,
        };
        Compared {
            right: compared.right && right.steps == steps && is_change,
            ..compared
        }
    }

    /// Compares units with their values after `steps` steps, bit for bit. The units on which
    /// they depend are computed from the first version.
    pub fn compare_units(&self, steps: u32, units: &Range<u64>, bytes: &[u8]) -> Checked {
        match self.precision {
            Precision::F64 => self.compare_units_of::<f64>(steps, units, bytes),
            Precision::F32 => self.compare_units_of::<f32>(steps, units, bytes),
        }
    }

    fn compare_units_of<T: reference::Real>(
        &self,
        steps: u32,
        units: &Range<u64>,
        bytes: &[u8],
    ) -> Checked {
        // The outermost units of a window keep their values, which is wrong within the
        // grid. One more unit an edge and step is enough that it does not reach `units`.
        let more = u64::from(steps) + 1;
        let around = units.start.saturating_sub(more)..(units.end + more).min(self.units());
        let points = self.unit_points() as usize;
        let first = (units.start - around.start) as usize * points;
        let found: Vec<T> = bytemuck::pod_collect_to_vec(bytes);
        let right = self.computed::<T>(around, steps, None);
        let right = right.map_or(Vec::new(), |right| right.grid);
        let right = right.get(first..).unwrap_or(&[]);
        let mut checked = Checked::default();
        for (at, unit) in found.chunks(points).enumerate() {
            let right = right.get(at * points..at * points + unit.len());
            let compared = reference::compare(unit, right.unwrap_or(&[]));
            checked.all_exactly(unit.len() as u64, compared.right);
            checked.overflowed += compared.not_finite;
        }
        checked
    }

    /// Units of the first version after `steps` steps by plain loops, as if they were the
    /// whole grid.
    fn computed<T: reference::Real>(
        &self,
        units: Range<u64>,
        steps: u32,
        until: Option<Until>,
    ) -> Result<reference::Computed<T>, FirstVersionError> {
        let count = (units.end - units.start) as usize;
        let mut first = vec![T::zeroed(); count * self.unit_points() as usize];
        self.initial(units, bytemuck::cast_slice_mut(&mut first))?;
        let shape = match self.nz {
            None => (self.nx as usize, count, None),
            Some(_) => (self.nx as usize, self.ny as usize, Some(count)),
        };
        let coefficients = self.coefficients.as_deref();
        Ok(reference::compute(first, shape, coefficients, steps, until))
    }
}
