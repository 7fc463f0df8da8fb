//! The length of tiles.

use super::Operation;
use crate::codelet::{Element, ProductPrecision};
use crate::policy::WINDOW;

/// The greatest tile that is chosen. A GPU's kernel is at its full rate from 2048 rows on,
/// and larger tiles only make the first copy and the last task longer.
const GREATEST: u32 = 4096;

/// The greatest tile of a factorisation, in which the tasks on the diagonal wait for one
/// another and occupy a device badly.
const GREATEST_FACTOR: u32 = 1024;

/// The least tile that is chosen to have more tasks: kernels are slow on smaller ones.
const LEAST: u32 = 256;

/// The least tile that is chosen for little memory.
const LEAST_IN_MEMORY: u32 = 16;

/// Tasks of each device, at least: its last one then ends at most about 1 % late.
const TASKS: u64 = 128;

/// Tiles of a task: factors and results.
const FACTORS: u64 = 2;
const RESULTS: u64 = 1;

/// Chooses the length of tiles: the greatest power of two, from 256 to 4096, that
/// leaves each of `devices` 128 tasks. If the tiles of the 16 tasks of a device's window do
/// not fit `memory`, the least of the devices' own, it is smaller. A matrix that
/// is smaller than a tile is one tile.
pub fn choose(
    operation: &Operation,
    precision: ProductPrecision,
    devices: usize,
    memory: Option<u64>,
) -> u32 {
    let numbers =
        FACTORS * precision.factors().bytes() + RESULTS * Element::from(precision.sums()).bytes();
    let fits = |tile: u32| {
        let bytes = u64::from(tile) * u64::from(tile) * numbers;
        memory.is_none_or(|memory| bytes * WINDOW as u64 <= memory)
    };
    let many = |tile: u32| tasks(operation, tile) >= TASKS * devices.max(1) as u64;
    let mut tile = match operation {
        Operation::Product { .. } => GREATEST,
        Operation::Factorisation { .. } => GREATEST_FACTOR,
    };
    while (tile > LEAST && !many(tile)) || (tile > LEAST_IN_MEMORY && !fits(tile)) {
        tile /= 2;
    }
    tile.min(operation.longest())
}

/// Tasks with tiles of this length.
fn tasks(operation: &Operation, tile: u32) -> u64 {
    let tiles = |length: u32| u64::from(length.div_ceil(tile));
    match *operation {
        Operation::Product {
            rows,
            columns,
            depth,
        } => [rows, columns, depth]
            .map(tiles)
            .into_iter()
            .fold(1, u64::saturating_mul),
        Operation::Factorisation { rows } => {
            let n = u128::from(tiles(rows));
            (n * (n + 1) * (n + 2) / 6).try_into().unwrap_or(u64::MAX)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codelet::Precision;

    fn square(n: u32) -> Operation {
        Operation::Product {
            rows: n,
            columns: n,
            depth: n,
        }
    }

    #[test]
    fn tiles_are_large_and_tasks_many() {
        let chosen =
            |n, devices, memory| choose(&square(n), Precision::F32.into(), devices, memory);
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
        let product = choose(&square(24576), Precision::F64.into(), 2, Some(1 << 30));
        assert_eq!(product, 1024);
        let factor = Operation::Factorisation { rows: 49152 };
        assert_eq!(choose(&factor, Precision::F32.into(), 2, None), 1024);
    }
}
