//! The coefficients that calibration runs give: a robust, regularised estimate.

use super::Belief;
use crate::median;
use crate::regress::spread;

/// Degrees of freedom of a run's deviation (Student's t): heavy tails, so that
/// a disturbed run has a bounded influence.
const FREEDOM: f64 = 3.0;

/// Of how far the coefficients are expected to lie from 0, these parts are
/// tried.
const PARTS: [f64; 6] = [0.003, 0.01, 0.03, 0.1, 0.3, 1.0];

/// A run as the correction sees it.
#[derive(Clone, Debug)]
pub(super) struct Point {
    pub terms: Vec<f64>,
    /// The logarithm of measured over predicted seconds.
    pub ratio: f64,
}

/// The estimate from the runs, `deviations` being the most that the constant and the
/// coefficients are expected to lie from 0.
///
/// How far they do lie is for the runs to say, for the constant and for the
/// terms apart: that part of `deviations` is taken with which each run is best
/// predicted from the others. A model that is right already is left as it is,
/// and one that is wrong by a factor learns that from the first run.
pub(super) fn learn(points: &[Point], noise: f64, deviations: &[f64]) -> Belief {
    let tried = PARTS.iter().flat_map(|constant| {
        PARTS.map(|term| {
            let part = |i| if i == 0 { *constant } else { term };
            let scaled = deviations.iter().enumerate().map(|(i, d)| d * part(i));
            scaled.collect::<Vec<f64>>()
        })
    });
    let scored = tried.map(|deviations| (score(points, noise, &deviations), deviations));
    let best = scored.max_by(|a, b| a.0.total_cmp(&b.0));
    match best {
        Some((_, deviations)) => believe(points, noise, &deviations),
        None => Belief::new(deviations),
    }
}

/// How well each run is predicted from the others: the logarithm of its
/// likelihood, summed.
fn score(points: &[Point], noise: f64, deviations: &[f64]) -> f64 {
    (0..points.len())
        .map(|i| {
            let mut others = points.to_vec();
            let point = others.remove(i);
            let belief = believe(&others, noise, deviations);
            let variance = belief.variance(&point.terms) + noise * noise;
            let off = point.ratio - belief.value(&point.terms);
            let tail = (1.0 + off * off / (FREEDOM * variance)).ln();
            -0.5 * variance.ln() - 0.5 * (FREEDOM + 1.0) * tail
        })
        .sum()
}

/// What the runs tell where the coefficients are expected to lie so far from
/// 0: by weighing each run by how far it is off and learning again, until the
/// weights stay.
fn believe(points: &[Point], noise: f64, deviations: &[f64]) -> Belief {
    const ROUNDS: usize = 40;
    // Before anything is known, runs agree as well as their factors do; a
    // scale of the noise alone would believe the first guess too soon.
    let ratios: Vec<f64> = points.iter().map(|point| point.ratio).collect();
    let middle = median(&ratios).unwrap_or(0.0);
    let mut off: Vec<f64> = ratios.iter().map(|ratio| ratio - middle).collect();
    let mut belief = Belief::new(deviations);
    for _ in 0..ROUNDS {
        let scale = noise.max(spread(&off)).powi(2);
        let before = belief;
        belief = Belief::new(deviations);
        for (point, off) in points.iter().zip(&off) {
            let weight = (FREEDOM + 1.0) / (FREEDOM + off * off / scale);
            belief.observe(&point.terms, point.ratio, scale / weight);
        }
        off = (points.iter())
            .map(|point| point.ratio - belief.value(&point.terms))
            .collect();
        let moved = belief.mean().iter().zip(before.mean());
        if moved.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max) < 1e-9 {
            break;
        }
    }
    belief
}
