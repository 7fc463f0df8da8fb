//! The configurations that a model learns most from, the most informative first. Pure.
//!
//! A design is a prefix of an order, and every prefix spans the space. The space has sizes
//! ([`Space`]) and the settings of a pool or a device
//! ([`device`]). GPUs stream because little of their memory is used, so that small
//! grids already show both sides of its limit.

pub mod device;
mod space;

#[cfg(test)]
mod tests;

pub use space::{DesignRequest, Gpu, Space, SpaceError};

use std::collections::HashSet;

use crate::profile::configuration::{Configuration, ModelKind};
use space::SizedGrid;

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
    let grids = space::grids(space);
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
