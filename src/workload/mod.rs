//! What users run, built of codelets.
//!
//! A [`Divisible`] workload tells an engine how many units it has, what they
//! cost, which codelet computes them, and what they are made of ([`Data`]): a
//! [`Grid`], or a product of a matrix. That in turn tells what a range of units
//! reads and writes, and what the sequential reference is. A workload knows no
//! device and no share. A [`transformer`] is a task graph instead.

pub mod kernel;
pub mod spmv;
pub mod stencil;
pub mod transformer;

use std::ops::Range;
use std::sync::Arc;

use crate::codelet::{Codelet, Cost, Memory, Value};

/// Where a run of units lies in memory: a ring of `slots` slots of one unit
/// each, of which unit `unit` is in slot `slot`. Unit `unit + i` is in slot
/// `(slot + i) mod slots`.
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
        // Whatever has bytes has less than 2^63 units.
        let ahead = unit as i64 - self.unit as i64 + self.slot as i64;
        ahead.rem_euclid(self.slots as i64) as u64
    }

    /// The runs of consecutive slots in which `units` lie: each run's units
    /// and its first slot. One run, or two where the ring's end lies between.
    pub fn runs(&self, units: Range<u64>) -> impl Iterator<Item = (Range<u64>, u64)> + use<> {
        let first = self.slot_of(units.start);
        let middle = units.end.min(units.start + (self.slots - first));
        [(units.start..middle, first), (middle..units.end, 0)]
            .into_iter()
            .filter(|(run, _)| !run.is_empty())
    }
}

/// A workload whose steps are made of units that can be divided among devices.
/// What a unit is made of, and what it is computed from, is its [`Data`].
pub trait Divisible: Sync {
    /// Its name as on the command line.
    fn name(&self) -> &'static str;

    /// Units a step, at least 1.
    fn units(&self) -> u64;

    /// Bytes of a unit's data; on average, where units differ.
    fn unit_bytes(&self) -> u64;

    /// Whether it computes in double precision.
    fn fp64(&self) -> bool;

    /// The codelet of a step.
    fn codelet(&self) -> Arc<Codelet>;

    /// What computing these units costs.
    fn cost(&self, units: &Range<u64>) -> Cost;

    /// What its units are made of.
    fn data(&self) -> Data<'_>;
}

/// What units are made of: the forms of data that engines keep and move.
#[derive(Clone, Copy)]
pub enum Data<'a> {
    /// Units are parts of a grid, each computed from its neighbourhood.
    Grid(&'a dyn Grid),
    /// Units are parts of a matrix, each computed from a vector.
    Product(&'a spmv::Spmv),
    /// Units are parts of a user's kernel's range.
    Kernel(&'a kernel::UserKernel),
}

/// A grid of units of equal size: in each step unit `u`'s next version is
/// computed from the present versions of units `u - halo ..= u + halo`.
pub trait Grid: Divisible {
    /// Points (or other elements that throughput counts) of one unit.
    fn unit_points(&self) -> u64;

    /// Dimensions of the space that the points lie in.
    fn dimensions(&self) -> u32;

    /// Units on either side that a unit reads.
    fn halo(&self) -> u64;

    /// The codelet's arguments for computing `units` from their present
    /// versions in `from` to their next in `to`.
    fn args(&self, units: Range<u64>, from: &Ring, to: &Ring) -> Vec<Value>;

    /// Writes the first version of `units` into `bytes`.
    fn initial(&self, units: Range<u64>, bytes: &mut [u8]);

    /// Compares a result after `steps` steps with the sequential reference.
    /// Returns the largest absolute difference, and whether it is allowed.
    fn verify(&self, steps: u32, result: &[u8]) -> (f64, bool);
}
