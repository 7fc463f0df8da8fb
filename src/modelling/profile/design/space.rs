//! The space of a design: sizes, devices and limits.

use thiserror::Error;

use crate::codelet::stencil::Precision;
use crate::machine::HostSpec;
use crate::machine::host::Topology;
use crate::profile::configuration::Grid;
use crate::quantity::Bytes;

/// The least edge of a square on a simulated machine, which has no caches, and the
/// upper limit of the least edge on a real one.
const LEAST: u64 = 500;

/// The size below which a run is nothing but overhead.
const TINY: u64 = 120;

/// The greatest size, if none is asked for.
const MOST: u64 = 20_000;

/// If no sizes are asked for, grids take this part of the memory that may be
/// used.
const PART: f64 = 0.85;

/// A device other than the host's cores.
#[derive(Clone, Debug, PartialEq)]
pub struct Gpu {
    pub name: String,
    pub compute_units: u32,
    /// Most bytes of its memory that a run may use.
    pub memory: u64,
    /// Most bytes of one buffer.
    pub largest: u64,
    /// Whether it has memory of its own.
    pub own: bool,
}

/// The options of a design.
#[derive(Clone, Debug)]
pub struct DesignRequest {
    /// 2 or 3.
    pub dimensions: u8,
    pub precision: Precision,
    /// Edges of squares or cubes, instead of the design's sizes.
    pub sizes: Vec<u64>,
    /// The greatest edge.
    pub most: Option<u64>,
}

/// The space that a design covers.
#[derive(Clone, Debug)]
pub struct Space {
    pub dimensions: u8,
    pub precision: Precision,
    /// Edges that were asked for; if empty, `least` to `most`.
    pub sizes: Vec<u64>,
    pub least: u64,
    pub most: u64,
    pub topology: Topology,
    /// One of each model.
    pub gpus: Vec<Gpu>,
}

/// The errors of a design.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum SpaceError {
    #[error("a size of {0} is no stencil; give sizes of at least 3")]
    TooSmall(u64),
    #[error(
        "two grids of size {size} need {}, and {} of host memory may be used; give smaller sizes",
        Bytes(*.needed), Bytes(*.memory)
    )]
    TooLarge { size: u64, needed: u64, memory: u64 },
}

impl Space {
    /// The space of a machine with these devices and `memory` bytes of usable host
    /// memory. Cache sizes matter if the machine is real.
    ///
    /// # Errors
    /// Sizes that are no stencil's, or that do not fit.
    pub fn of(
        host: &HostSpec,
        topology: Topology,
        gpus: Vec<Gpu>,
        memory: u64,
        real: bool,
        request: &DesignRequest,
    ) -> Result<Self, SpaceError> {
        let mut space = Self {
            dimensions: request.dimensions,
            precision: request.precision,
            sizes: request.sizes.clone(),
            least: LEAST,
            most: MOST,
            topology,
            gpus,
        };
        space.sizes.sort_unstable();
        space.sizes.dedup();
        space.least = space.edge_of(LEAST);
        if let Some(l2) = host.l2.filter(|_| real) {
            // Both versions fill half of a core's L2.
            let points = l2 / 4 / request.precision.bytes();
            let small = (points as f64).sqrt() as u64;
            space.least = space.edge_of(small.clamp(TINY, LEAST));
        }
        let fits = |edge: u64, memory: u64| space.needed(edge) <= memory;
        for size in space.sizes.iter().chain(&request.most) {
            if *size < 3 {
                return Err(SpaceError::TooSmall(*size));
            }
            if !fits(*size, memory) {
                return Err(SpaceError::TooLarge {
                    size: *size,
                    needed: space.needed(*size),
                    memory,
                });
            }
        }
        space.most = match request.most {
            Some(most) => most,
            None => {
                let mut most = space.edge_of(MOST);
                let memory = (memory as f64 * PART) as u64;
                while most > 3 && !fits(most, memory) {
                    most -= most.div_ceil(50);
                }
                most.max(3)
            }
        };
        space.least = space.least.min(space.most);
        Ok(space)
    }

    /// The grid of these axes, the third of which counts in 3-D only.
    pub fn cube(&self, [nx, ny, nz]: [u64; 3]) -> Grid {
        Grid {
            nx,
            ny,
            nz: (self.dimensions == 3).then_some(nz),
            precision: self.precision,
        }
    }

    /// The edge of a cube with as many points as a square, in 3-D.
    fn edge_of(&self, square: u64) -> u64 {
        match self.dimensions {
            3 => (square as f64).powf(2.0 / 3.0).round() as u64,
            _ => square,
        }
    }

    /// Bytes of both versions of a square or cube.
    fn needed(&self, edge: u64) -> u64 {
        let points = edge.saturating_pow(u32::from(self.dimensions));
        points.saturating_mul(2 * self.precision.bytes())
    }
}

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
