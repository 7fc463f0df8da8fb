//! The length of tiles on one machine.

use super::{Cholesky, Lone, Product};
use crate::codelet::{Element, ProductPrecision};
use crate::policy::WINDOW;

/// The greatest tile that is chosen. A GPU's kernel is at its full rate from 2048 rows on,
/// and larger tiles only make the first copy and the last task longer.
const GREATEST: u64 = 4096;

/// The greatest tile of a factorisation, in which the tasks on the diagonal wait for one
/// another and occupy a device badly.
const GREATEST_FACTOR: u64 = 1024;

/// The least tile that is chosen to have more tasks: kernels are slow on smaller ones.
const LEAST: u64 = 256;

/// The least tile that is chosen for little memory.
const LEAST_IN_MEMORY: u64 = 16;

/// Tasks of each device, at least: its last one then ends at most about 1 % late.
const TASKS: u64 = 128;

/// Tiles of a task: factors and results.
const FACTORS: u64 = 2;
const RESULTS: u64 = 1;

/// The tiles of a product: their length is the greatest power of two, from 256 to 4096, that
/// leaves each device 128 tasks. If the tiles of the 16 tasks of a device's window do not fit the
/// least of the devices' own memories, it is smaller. A matrix that is smaller than a tile is one
/// tile.
pub(super) fn of_product(of: &Product, lone: Lone) -> u64 {
    let longest = of.rows.max(of.columns).max(of.depth);
    chosen(GREATEST, of.precision, lone, |tile| of.tasks(tile)).min(longest)
}

/// Those of a factorisation, up to 1024.
pub(super) fn of_factorisation(of: &Cholesky, lone: Lone) -> u64 {
    let precision = of.precision.into();
    chosen(GREATEST_FACTOR, precision, lone, |tile| of.tasks(tile)).min(of.size)
}

fn chosen(
    greatest: u64,
    precision: ProductPrecision,
    lone: Lone,
    tasks: impl Fn(u64) -> u64,
) -> u64 {
    let numbers =
        FACTORS * precision.factors().bytes() + RESULTS * Element::from(precision.sums()).bytes();
    let fits = |tile: u64| {
        let window = tile * tile * numbers * WINDOW as u64;
        lone.memory.is_none_or(|memory| window <= memory)
    };
    let many = |tile: u64| tasks(tile) >= TASKS * lone.devices.max(1) as u64;
    let mut tile = greatest;
    while (tile > LEAST && !many(tile)) || (tile > LEAST_IN_MEMORY && !fits(tile)) {
        tile /= 2;
    }
    tile
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::codelet::Precision;
    use crate::workload::cluster::Fill;

    fn unused() -> Fill {
        Arc::new(|_, _| panic!("nothing is made"))
    }

    fn square(n: u64, precision: Precision) -> Product {
        Product {
            rows: n,
            columns: n,
            depth: n,
            precision: precision.into(),
            a: unused(),
            b: unused(),
        }
    }

    fn on(devices: usize, memory: Option<u64>) -> Lone {
        Lone {
            devices,
            memory,
            is_pool: false,
        }
    }

    #[test]
    fn tiles_are_large_and_tasks_many() {
        let chosen =
            |n, devices, memory| of_product(&square(n, Precision::F32), on(devices, memory));
        let gib = Some(1 << 30);
        assert_eq!(chosen(24576, 2, Some(2 << 30)), 2048);
        assert_eq!(chosen(24576, 2, None), 2048);
        assert_eq!(chosen(49152, 3, Some(100 << 30)), 4096);
        assert_eq!(chosen(49152, 3, gib), 2048);
        assert_eq!(chosen(8192, 2, gib), 1024);
        // 16 tasks of three tiles in 1 MiB.
        assert_eq!(chosen(8192, 2, Some(1 << 20)), 64);
        assert_eq!(chosen(8192, 2, Some(1)), 16);
        assert_eq!(chosen(1000, 2, gib), 256);
        assert_eq!((chosen(100, 2, gib), chosen(1, 2, gib)), (100, 1));
    }

    #[test]
    fn doubles_and_factorisations_have_smaller_tiles() {
        let of = square(24576, Precision::F64);
        assert_eq!(of_product(&of, on(2, Some(1 << 30))), 1024);
        let of = Cholesky {
            size: 49152,
            precision: Precision::F32,
            matrix: unused(),
        };
        assert_eq!(of_factorisation(&of, on(2, None)), 1024);
    }
}
