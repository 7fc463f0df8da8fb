//! The posterior of a line's coefficients: a Gaussian, which every run narrows, and its
//! estimate from runs of which some may be disturbed.

use crate::median;
use crate::regress::spread;

/// A Gaussian over a constant and the coefficients of some terms.
///
/// Observations are taken one after the other, each exactly as Bayes' rule has
/// it for a linear model with Gaussian noise, so the order does not matter and
/// no system of equations is solved.
#[derive(Clone, Debug, PartialEq)]
pub struct Belief {
    mean: Vec<f64>,
    /// Row by row.
    covariance: Vec<f64>,
}

impl Belief {
    /// Before any run: coefficients around 0, independent of each other, with
    /// these standard deviations; the first is the constant's.
    pub fn new(deviations: &[f64]) -> Self {
        let size = deviations.len();
        let mut covariance = vec![0.0; size * size];
        for (i, deviation) in deviations.iter().enumerate() {
            covariance[i * size + i] = deviation * deviation;
        }
        Self {
            mean: vec![0.0; size],
            covariance,
        }
    }

    /// The constant, then the terms' coefficients.
    pub fn mean(&self) -> &[f64] {
        &self.mean
    }

    /// The line's value at these terms.
    pub fn value(&self, terms: &[f64]) -> f64 {
        let pairs = self.mean[1..].iter().zip(terms);
        self.mean[0] + pairs.map(|(c, z)| c * z).sum::<f64>()
    }

    /// How uncertain the line's value at these terms is: a variance.
    pub fn variance(&self, terms: &[f64]) -> f64 {
        let spread = self.spread(terms);
        spread[0]
            + spread[1..]
                .iter()
                .zip(terms)
                .map(|(s, z)| s * z)
                .sum::<f64>()
    }

    /// How much the values at two points vary together, and so how much a run
    /// at one tells of the other.
    pub fn together(&self, terms: &[f64], others: &[f64]) -> f64 {
        let spread = self.spread(terms);
        spread[0]
            + (spread[1..].iter().zip(others))
                .map(|(s, z)| s * z)
                .sum::<f64>()
    }

    /// Learns that the line's value at these terms was seen as `value`, with
    /// noise of this variance.
    pub fn observe(&mut self, terms: &[f64], value: f64, noise: f64) {
        let spread = self.spread(terms);
        let gain = 1.0 / (self.variance(terms) + noise);
        let surprise = value - self.value(terms);
        for (mean, s) in self.mean.iter_mut().zip(&spread) {
            *mean += s * gain * surprise;
        }
        let size = self.mean.len();
        for (i, row) in self.covariance.chunks_exact_mut(size).enumerate() {
            for (entry, s) in row.iter_mut().zip(&spread) {
                *entry -= spread[i] * gain * s;
            }
        }
    }

    /// The covariance times the vector of a 1 and these terms.
    fn spread(&self, terms: &[f64]) -> Vec<f64> {
        (self.covariance.chunks_exact(self.mean.len()))
            .map(|row| row[0] + row[1..].iter().zip(terms).map(|(c, z)| c * z).sum::<f64>())
            .collect()
    }
}

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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn one_observation_as_in_the_textbook() {
        // Prior N(0, 1), noise 0.25: the mean goes 1 / 1.25 of the way.
        let mut belief = Belief::new(&[1.0]);
        belief.observe(&[], 1.0, 0.25);
        assert!((belief.value(&[]) - 0.8).abs() < 1e-12);
        assert!((belief.variance(&[]) - 0.2).abs() < 1e-12);
    }

    #[test]
    fn many_observations_find_the_line() {
        let mut belief = Belief::new(&[1.0, 0.5, 0.5]);
        for i in 0..200 {
            let z = [f64::from(i % 7) / 6.0, f64::from(i % 5) / 4.0];
            belief.observe(&z, 0.3 - 0.2 * z[0] + 0.1 * z[1], 1e-4);
        }
        for (found, truth) in belief.mean().iter().zip([0.3, -0.2, 0.1]) {
            assert!((found - truth).abs() < 1e-3, "{:?}", belief.mean());
        }
    }

    proptest! {
        #[test]
        fn order_does_not_matter_and_every_run_narrows(
            runs in prop::collection::vec((0.0..1.0f64, 0.0..1.0f64, -1.0..1.0f64), 1..12)
        ) {
            let (mut forwards, mut backwards) = (Belief::new(&[1.0, 0.5, 0.5]), Belief::new(&[1.0, 0.5, 0.5]));
            let probe = [0.3, 0.6];
            for (a, b, value) in &runs {
                let before = forwards.variance(&probe);
                forwards.observe(&[*a, *b], *value, 0.01);
                prop_assert!(forwards.variance(&probe) <= before + 1e-12);
            }
            for (a, b, value) in runs.iter().rev() {
                backwards.observe(&[*a, *b], *value, 0.01);
            }
            prop_assert!((forwards.value(&probe) - backwards.value(&probe)).abs() < 1e-9);
            prop_assert!((forwards.variance(&probe) - backwards.variance(&probe)).abs() < 1e-9);
        }
    }
}
