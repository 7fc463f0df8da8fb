//! The configurations that a model learns most from, the most informative first. Pure.
//!
//! A design is a prefix of an order, and every prefix spans the space. The space has sizes
//! ([`Space`]) and the settings of a pool or a device
//! ([`device`]). GPUs stream because little of their memory is used, so that small
//! grids already show both sides of its limit.

pub mod device;

#[cfg(test)]
mod tests;

use std::collections::HashSet;

use thiserror::Error;

use crate::codelet::stencil::Precision;
use crate::machine::HostSpec;
use crate::machine::host::Topology;
use crate::profile::configuration::{Configuration, Grid, ModelKind};
use crate::quantity::Bytes;

/// Which of five configurations of a GPU hold the whole grid.
const RESIDENT: [bool; 5] = [true, false, false, true, false];

/// Which of three configurations are squares or cubes, which users run most.
const SQUARE: [bool; 3] = [true, true, false];

/// A configuration and its place in the design's space.
#[derive(Clone, Debug)]
pub struct Candidate {
    configuration: Configuration,
    square: bool,
    at: Vec<f64>,
}

impl Candidate {
    fn new<const N: usize>(
        configuration: Configuration,
        sized: &SizedGrid,
        at: [f64; N],
        weights: [f64; N],
    ) -> Self {
        let at = at.iter().zip(weights).map(|(at, weight)| at * weight);
        Self {
            configuration,
            square: sized.aspect == 0.0,
            at: at.collect(),
        }
    }
}

/// At most `count` configurations of a kind, the most informative first; none if the
/// machine has no such device. A longer design begins with a shorter one.
pub fn design(space: &Space, kind: ModelKind, count: usize) -> Vec<Configuration> {
    let grids = grids(space);
    match kind {
        ModelKind::Cpu => filled(device::pools(space, &grids), count),
        ModelKind::Gpu => {
            let each = space.gpus.iter().map(|gpu| match gpu.own {
                false => filled(device::shared(gpu, &grids), count),
                true => {
                    let resident = filled(device::resident(gpu, &grids), count);
                    let streamed = filled(device::streamed(gpu, &grids), count);
                    interleaved(resident, streamed, &RESIDENT)
                }
            });
            in_turns(each.collect(), count)
        }
    }
}

/// The candidates that fill their space. Where sizes are small, several settings give
/// the same configuration; the first one counts.
fn filled(mut candidates: Vec<Candidate>, count: usize) -> Vec<Configuration> {
    let mut seen = HashSet::new();
    candidates.retain(|candidate| seen.insert(candidate.configuration.clone()));
    let (squares, others) = candidates.into_iter().partition(|c: &Candidate| c.square);
    let ordered = |candidates: Vec<Candidate>| -> Vec<Configuration> {
        let points: Vec<Vec<f64>> = candidates.iter().map(|c| c.at.clone()).collect();
        farthest_first(&points, count)
            .into_iter()
            .map(|index| candidates[index].configuration.clone())
            .collect()
    };
    let mut both = interleaved(ordered(squares), ordered(others), &SQUARE);
    both.truncate(count);
    both
}

/// Both lists in one, in a repeated pattern of the first (true) and the second.
fn interleaved<T>(first: Vec<T>, second: Vec<T>, pattern: &[bool]) -> Vec<T> {
    let (mut first, mut second) = (first.into_iter(), second.into_iter());
    let mut both = Vec::new();
    for is_first in pattern.iter().cycle() {
        let next = match is_first {
            true => first.next().or_else(|| second.next()),
            false => second.next().or_else(|| first.next()),
        };
        match next {
            Some(next) => both.push(next),
            None => break,
        }
    }
    both
}

/// The first of each list, then the second of each ...
fn in_turns<T>(lists: Vec<Vec<T>>, count: usize) -> Vec<T> {
    let mut lists: Vec<_> = lists.into_iter().map(Vec::into_iter).collect();
    let mut all = Vec::new();
    loop {
        let before = all.len();
        all.extend(lists.iter_mut().filter_map(Iterator::next));
        if all.len() == before || all.len() >= count {
            all.truncate(count);
            return all;
        }
    }
}

/// Units of a chunk for each number of cuts that gives another, with the
/// place of the cuts from 0 to 1, logarithmic.
fn chunks_of(units: u64, cuts: &[u64]) -> Vec<(f64, u64)> {
    let most = cuts.iter().copied().max().unwrap_or(1).max(2) as f64;
    let mut chunks: Vec<(f64, u64)> = Vec::new();
    for cut in cuts.iter().copied().filter(|cut| *cut <= units) {
        let chunk = units.div_ceil(cut);
        if chunks.iter().all(|(_, before)| *before != chunk) {
            chunks.push(((cut as f64).ln() / most.ln(), chunk));
        }
    }
    chunks
}

/// Orders points so that every prefix spans their space: each next one is
/// farthest from all before it. The first is the last of `points`, and of two
/// equally far the earlier one is taken. Gives the indices of the first `most`.
///
/// Points have equal lengths, and coordinates in comparable units.
fn farthest_first(points: &[Vec<f64>], most: usize) -> Vec<usize> {
    let mut order = Vec::with_capacity(most.min(points.len()));
    let mut distance = vec![f64::INFINITY; points.len()];
    let mut next = points.len().checked_sub(1);
    while let Some(index) = next.filter(|_| order.len() < most) {
        order.push(index);
        // Taken ones are never again the farthest.
        distance[index] = f64::NEG_INFINITY;
        for (far, point) in distance.iter_mut().zip(points) {
            *far = far.min(squared(point, &points[index]));
        }
        next = farthest(&distance);
    }
    order
}

fn squared(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum()
}

/// The first of the largest, of those not yet taken.
fn farthest(distance: &[f64]) -> Option<usize> {
    let left = distance.iter().enumerate().filter(|(_, d)| **d >= 0.0);
    let first = left.reduce(|best, other| if other.1 > best.1 { other } else { best });
    first.map(|(index, _)| index)
}

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
fn grids(space: &Space) -> Vec<SizedGrid> {
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
