//! Measures the fraction of a copy's bandwidth that the stencils reach, and the operations a
//! second where memory does not bind: of a pool by supersteps, of other devices by products.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::MeasureError;
use super::probe::{Probe, UNIT, rounded};
use crate::codelet::stencil::Precision;
use crate::codelet::tile::GemmTile;
use crate::codelet::{Cost, Memory, ProductPrecision, Value};
use crate::runtime::{Command, Launch, QueueId};
use crate::workload::stencil::Stencil;
use crate::workload::{Divisible, Grid, Ring};

/// Steps at once, so many that memory does not bind.
const SUPERSTEP: u32 = 16;

/// Rows and columns of the product: it fills a GPU, and takes a slow one less than a second.
const PRODUCT: u64 = 4096;

impl Probe<'_> {
    /// The fraction of `bandwidth` that each stencil reaches on grids of
    /// `bytes` bytes, by the codelet's family.
    pub fn efficiencies(
        &mut self,
        queue: QueueId,
        (from, to): (Memory, Memory),
        bytes: u64,
        bandwidth: f64,
    ) -> Result<BTreeMap<String, f64>, MeasureError> {
        let mut table = BTreeMap::new();
        for (family, stencil) in [("stencil5", grid(bytes)), ("stencil7", cube(bytes))] {
            let Some(stencil) = stencil else { continue };
            let units = stencil.units();
            let ring = |memory| Ring {
                memory,
                slots: units,
                unit: 0,
                slot: 0,
            };
            let cost = stencil.cost(&(0..units));
            let command = Command::Launch(Launch {
                codelet: stencil.codelet(),
                units: 0..units,
                args: stencil.args(0..units, &ring(from), &ring(to)),
                cost,
            });
            let rate = self.rate(queue, &command, cost.bytes)?;
            table.insert(family.to_owned(), rounded(rate / bandwidth));
        }
        Ok(table)
    }

    /// Operations a second of all cores in caches, by a superstep of a grid of `bytes` bytes in
    /// host memory, of which a step moves `bandwidth` bytes a second; `None` if the grid is too
    /// small for one.
    pub fn superstep(
        &mut self,
        queue: QueueId,
        (from, to): (Memory, Memory),
        bytes: u64,
        bandwidth: f64,
    ) -> Result<Option<f64>, MeasureError> {
        let Some(stencil) = grid(bytes) else {
            return Ok(None);
        };
        let Some(codelet) = stencil.superstep() else {
            return Ok(None);
        };
        let (units, steps) = (stencil.units(), SUPERSTEP);
        let ring = |memory| Ring {
            memory,
            slots: units,
            unit: 0,
            slot: 0,
        };
        let mut args = stencil.args(0..units, &ring(from), &ring(to));
        args.push(Value::U32(steps));
        let cost = stencil.cost(&(0..units));
        let flops = stencil.superstep_flops(steps) * f64::from(steps) * cost.flops;
        let command = Command::Launch(Launch {
            codelet,
            units: 0..units,
            args,
            cost: Cost { flops, ..cost },
        });
        let moved = cost.bytes / bandwidth;
        let computed = 1.0 / self.rate(queue, &command, 1.0)? - moved;
        Ok((computed > 0.0).then(|| rounded(flops / computed)))
    }

    /// Operations a second of the square of a matrix of at most `bytes` bytes, which caches
    /// make independent of memory.
    pub fn product(
        &mut self,
        queue: QueueId,
        (from, to): (Memory, Memory),
        bytes: u64,
        precision: ProductPrecision,
    ) -> Result<f64, MeasureError> {
        let most = (bytes / precision.sums().bytes()).isqrt();
        let size = most.min(PRODUCT) as u32;
        let product = GemmTile::new(precision, size, size, size);
        let (units, cost) = (0..product.units(), product.cost());
        let memories = [from, from, to].map(Value::Memory);
        let command = Command::Launch(Launch {
            codelet: Arc::new(product.codelet()),
            units,
            args: memories.into_iter().chain(product.values()).collect(),
            cost,
        });
        Ok(rounded(self.rate(queue, &command, cost.flops)?))
    }
}

/// The double grid of rows of 64 KiB that fills `bytes`.
pub fn grid(bytes: u64) -> Option<Stencil> {
    Stencil::new(UNIT / 8, bytes / UNIT, None, Precision::F64, 1).ok()
}

/// The double grid of planes of 256 x 256 points in `bytes`.
fn cube(bytes: u64) -> Option<Stencil> {
    Stencil::new(256, 256, Some(bytes / (256 * 256 * 8)), Precision::F64, 1).ok()
}
