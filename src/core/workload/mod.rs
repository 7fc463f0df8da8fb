//! Workloads: the computations that users run, built from codelets.
//!
//! A [`Divisible`] workload tells an engine the number of its units, their cost, the
//! codelet that computes them, and their form ([`Data`]): a [`Grid`], a product of a
//! matrix and a vector, or a user's kernel. The form determines the memory that a
//! range of units reads and writes, and the sequential reference. A workload does not
//! depend on devices or shares. A [`transformer`] and a [`task_set`] are task
//! graphs instead, and so are the [programs](cluster::program) of tasks over spaces.

pub mod cluster;
pub mod kernel;
pub mod spmv;
pub mod stencil;
mod superstep;
pub mod task_set;
pub mod transformer;

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use thiserror::Error;

use crate::codelet::{Codelet, Cost, Memory, Value};
use crate::verify::Compared;

pub use superstep::Supersteps;

/// The place of units in memory: a ring of `slots` slots of one unit each. Unit
/// `unit + i` is in slot `(slot + i) mod slots`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ring {
    pub memory: Memory,
    pub slots: u64,
    pub unit: u64,
    pub slot: u64,
}

impl Ring {
    /// The slot of a unit at or after `self.unit - slots`.
    pub fn slot_of(&self, unit: u64) -> u64 {
        // Each unit has at least one byte, so there are fewer than 2^63.
        let ahead = unit as i64 - self.unit as i64 + self.slot as i64;
        ahead.rem_euclid(self.slots as i64) as u64
    }

    /// The runs of consecutive slots in which `units` lie: each run's units
    /// and its first slot. There are two if `units` cross the ring's end.
    pub fn runs(&self, units: Range<u64>) -> impl Iterator<Item = (Range<u64>, u64)> + use<> {
        let first = self.slot_of(units.start);
        let middle = units.end.min(units.start + (self.slots - first));
        [(units.start..middle, first), (middle..units.end, 0)]
            .into_iter()
            .filter(|(run, _)| !run.is_empty())
    }
}

/// A workload whose steps consist of units that can be divided among devices. Its
/// [`Data`] is the form of a unit and of its inputs.
pub trait Divisible: Sync {
    /// Its name on the command line.
    fn name(&self) -> &'static str;

    /// Units of a step, at least 1.
    fn units(&self) -> u64;

    /// Bytes of a unit's data; the average if units differ.
    fn unit_bytes(&self) -> u64;

    /// Whether it computes in double precision.
    fn fp64(&self) -> bool;

    /// The codelet of a step.
    fn codelet(&self) -> Arc<Codelet>;

    /// The cost of computing these units.
    fn cost(&self, units: &Range<u64>) -> Cost;

    /// The form of its units.
    fn data(&self) -> Data<'_>;
}

/// The form of a workload's units, which engines keep and move.
#[derive(Clone, Copy)]
pub enum Data<'a> {
    /// Units are parts of a grid, each computed from its neighbourhood.
    Grid(&'a dyn Grid),
    /// Units are parts of a matrix, each computed from a vector.
    Product(&'a spmv::Spmv),
    /// Units are parts of a user's kernel's range.
    Kernel(&'a kernel::UserKernel),
}

/// Why the first version of a grid is not there.
#[derive(Debug, Error)]
#[error("the first version of the grid is not read: {0}")]
pub struct FirstVersionError(pub String);

/// What ended a run whose steps were checked, or did not.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ending {
    /// Most steps, and the steps after each multiple of which the change is looked at; it is
    /// after the last step, too.
    pub most: u32,
    pub period: u32,
    /// The run ends with a step that changes at most this.
    pub tolerance: f64,
    /// The largest absolute change of a point in the last step.
    pub change: f64,
}

/// Whether a run ends with a step of this change: it is at most what is tolerated, or numbers
/// have overflowed, so that no later one will be.
pub fn ends(change: f64, tolerance: f64) -> bool {
    change <= tolerance || !change.is_finite()
}

/// The largest absolute change of a point of a [`Grid`] in a step.
///
/// Launches raise memory that is zero before the first of them; they follow one another. Such
/// memory on a device is folded there to a few bytes, and cleared.
pub trait Changes: Sync {
    /// The codelet of a step that also raises memory. Its arguments are those of [`Grid::args`],
    /// and memory of [`Self::raised_bytes`] bytes.
    fn of_step(&self) -> Arc<Codelet>;

    /// The same for [`Grid::superstep`]: the change in the last step. The memory is the last
    /// argument.
    fn of_superstep(&self) -> Option<Arc<Codelet>>;

    /// Bytes that launches of at most `units` units raise.
    fn raised_bytes(&self, units: u64) -> u64;

    /// Bytes that memory is folded to.
    fn folded_bytes(&self) -> u64;

    /// Folds the memory that launches of at most `units` units raise: the first one whose
    /// largest change is wanted, or another.
    fn fold(&self, raised: Memory, units: u64, folded: Memory, first: bool) -> Fold;

    /// The largest change in memory that was raised, or folded.
    fn largest(&self, raised: &[u8]) -> f64;
}

/// A launch that folds memory, and clears what it folds.
pub struct Fold {
    pub codelet: Arc<Codelet>,
    pub units: Range<u64>,
    pub args: Vec<Value>,
    pub cost: Cost,
}

/// A grid of units of equal size. A step computes unit `u`'s next version from the
/// present versions of units `u - halo ..= u + halo`.
pub trait Grid: Divisible {
    /// Points (or other elements that throughput counts) of one unit.
    fn unit_points(&self) -> u64;

    /// Dimensions of the space that the points lie in.
    fn dimensions(&self) -> u32;

    /// Units on either side that a unit reads in a step.
    fn halo(&self) -> u64;

    /// The codelet's arguments for computing `units` from their present
    /// versions in `from` to their next in `to`.
    fn args(&self, units: Range<u64>, from: &Ring, to: &Ring) -> Vec<Value>;

    /// The codelet that computes several steps of `units` at once in host memory, for devices
    /// that have an implementation of it. Its arguments are those of [`Self::args`], with as
    /// many halos in `from`, and the number of steps ([`Value::U32`]).
    fn superstep(&self) -> Option<Arc<Codelet>> {
        None
    }

    /// Operations at a processor's peak rate that take as long as one operation of
    /// [`Self::superstep`] with so many steps, which memory does not bind.
    fn superstep_flops(&self, _steps: u32) -> f64 {
        1.0
    }

    /// How its largest change is found, if that is possible.
    fn changes(&self) -> Option<&dyn Changes> {
        None
    }

    /// Writes the first version of `units` into `bytes`.
    ///
    /// # Errors
    /// When it is in a file that cannot be read.
    fn initial(&self, units: Range<u64>, bytes: &mut [u8]) -> Result<(), FirstVersionError>;

    /// The first version of the whole grid, if it is in memory.
    fn given(&self) -> Option<&[u8]> {
        None
    }

    /// Passes the last version of the whole grid to whoever wants it.
    fn deliver(&self, _result: &[u8]) {}

    /// Compares a result after `steps` steps with the sequential reference. Where steps were
    /// checked, they must be the reference's, and so must the change in the last one.
    fn verify(&self, steps: u32, checked: Option<Ending>, result: &[u8]) -> Compared;
}

/// Receives the final contents of each written buffer, with its position.
#[derive(Clone)]
pub struct Sink(Arc<Take>);

type Take = dyn Fn(usize, &[u8]) + Send + Sync;

impl Sink {
    /// A sink that calls this function.
    pub fn new(take: impl Fn(usize, &[u8]) + Send + Sync + 'static) -> Self {
        Self(Arc::new(take))
    }

    /// Passes it the contents of a buffer.
    pub(crate) fn take(&self, position: usize, bytes: &[u8]) {
        (self.0)(position, bytes);
    }
}

impl fmt::Debug for Sink {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("Sink")
    }
}
