//! The grids of a design. Pure.

use super::Space;
use crate::profile::configuration::Grid;

/// Sizes of a design, if none are asked for.
const LEVELS: u32 = 15;

/// A grid and its place in a design.
#[derive(Clone, Copy, Debug)]
pub struct SizedGrid {
    pub grid: Grid,
    /// From the smallest size, 0, to the largest, 1; logarithmic.
    pub size: f64,
    /// Few long units: -1, square: 0, many short units: 1.
    pub aspect: f64,
}

/// The grids of a space: squares (cubes in 3-D) of the sizes asked for, or
/// sizes between the space's least and most with as many points in long units
/// and in short ones. Half of those have odd axes.
pub fn grids(space: &Space) -> Vec<SizedGrid> {
    let (least, most) = match space.sizes.as_slice() {
        [] => (space.least, space.most),
        sizes => (
            sizes.iter().copied().min().unwrap_or(3),
            sizes.iter().copied().max().unwrap_or(3),
        ),
    };
    let range = (most as f64 / least as f64).ln();
    let place = |edge: u64| match range > 0.0 {
        true => (edge as f64 / least as f64).ln() / range,
        false => 1.0,
    };
    if !space.sizes.is_empty() {
        return (space.sizes.iter())
            .map(|edge| SizedGrid {
                grid: space.cube([*edge; 3]),
                size: place(*edge),
                aspect: 0.0,
            })
            .collect();
    }
    let mut grids = Vec::new();
    for (level, edge) in edges(least, most).into_iter().enumerate() {
        for (aspect, factors) in shapes(space.dimensions) {
            let parity = level as u64 % 2;
            let axis = |factor: f64| odd_or_even((edge as f64 * factor).round() as u64, parity);
            grids.push(SizedGrid {
                grid: space.cube(factors.map(axis)),
                size: place(edge),
                aspect,
            });
        }
    }
    grids
}

/// Aspects, and an axis's length over a square's edge: `nx`, `ny`, `nz`.
fn shapes(dimensions: u8) -> [(f64, [f64; 3]); 3] {
    match dimensions {
        3 => [
            (0.0, [1.0; 3]),
            (-1.0, [2.0, 2.0, 0.25]),
            (1.0, [0.5, 0.5, 4.0]),
        ],
        _ => [
            (0.0, [1.0; 3]),
            (-1.0, [4.0, 0.25, 1.0]),
            (1.0, [0.25, 4.0, 1.0]),
        ],
    }
}

/// Edges at equal ratios, ends included; fewer than [`LEVELS`] where edges
/// would fall together.
fn edges(least: u64, most: u64) -> Vec<u64> {
    let ratio = most as f64 / least as f64;
    let mut edges: Vec<u64> = (0..LEVELS)
        .map(|level| {
            let part = f64::from(level) / f64::from(LEVELS - 1);
            (least as f64 * ratio.powf(part)).round() as u64
        })
        .collect();
    edges.dedup();
    edges
}

fn odd_or_even(length: u64, parity: u64) -> u64 {
    // At least what a stencil needs, and never longer than asked for, since
    // the longest just fits into the memory.
    (length - (length + parity) % 2).max(3 + (parity + 1) % 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_have_equal_ratios() {
        let edges = edges(500, 20_000);
        assert_eq!(edges.len() as u32, LEVELS);
        assert_eq!((edges[0], edges[14]), (500, 20_000));
        for pair in edges.windows(2) {
            let ratio = pair[1] as f64 / pair[0] as f64;
            assert!((1.29..1.32).contains(&ratio), "{pair:?}");
        }
        assert_eq!(super::edges(7, 9), [7, 8, 9]);
        assert_eq!(super::edges(9, 9), [9]);
    }

    #[test]
    fn axes_are_odd_and_even_in_turns() {
        for (length, parity, expected) in [
            (500, 0, 500),
            (500, 1, 499),
            (501, 0, 500),
            (501, 1, 501),
            (2, 0, 4),
            (2, 1, 3),
        ] {
            assert_eq!(odd_or_even(length, parity), expected);
        }
    }
}
