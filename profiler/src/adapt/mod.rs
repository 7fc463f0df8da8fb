//! A foreign machine's model, corrected by a few runs of this one.
//!
//! A model that multiplies physics carries over to another machine, since its
//! features carry the machine's own figures; what stays is that some of these
//! figures, or what a codelet makes of them, are off: kernels reach a tenth
//! less of the memory's bandwidth, say. In logarithms that is a line:
//! `ln t = ln t_model + c_0 + sum c_j z_j`, where `z_j` are the parts of the
//! time that memory, the link and so on take, since a cost that is a tenth
//! higher makes a step longer by a tenth of its part.
//!
//! * [`Terms`] are these parts, by their names among the features.
//! * [`Belief`] is what is known of the coefficients: at first that they are small,
//!   then the evidence of runs, which also say how small.
//! * [`choose()`] selects the most informative runs, before any is made.
//! * [`fit`] corrects a model by the runs. One that something disturbed counts
//!   little.

mod fit;

pub use fit::{AdaptError, Adapted, Calibration, Residual, Terms, fit};

use crate::median;
use crate::regress::spread;

// The posterior of a line's coefficients: a Gaussian, which every run narrows, and its
// estimate from runs of which some may be disturbed.

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
struct Point {
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
fn learn(points: &[Point], noise: f64, deviations: &[f64]) -> Belief {
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

/// Chooses `runs` of the candidates, which are given by their terms; returns
/// their indices. A candidate can be chosen more than once.
///
/// The chosen ones leave predictions for all candidates least uncertain on
/// average (I-optimal design). That is what a correction is for; a D-optimal
/// design, which makes the coefficients certain, prefers corners that are
/// hardly ever asked for. One is chosen after the other, then each is exchanged
/// while that helps: a run in the middle is the best first one of four, and
/// none of the best four. `noise` is the relative standard deviation of a run,
/// and `deviations` are those of the constant and of each term's coefficient.
pub fn choose(candidates: &[Vec<f64>], runs: usize, noise: f64, deviations: &[f64]) -> Vec<usize> {
    /// Rounds of exchanges; two or three are usual.
    const ROUNDS: usize = 20;
    let noise = noise.max(1e-6).powi(2);
    let mut chosen = Vec::with_capacity(runs);
    while chosen.len() < runs {
        let belief = after(candidates, &chosen, noise, deviations);
        match best(candidates, &belief, noise) {
            Some((next, _)) => chosen.push(next),
            None => return chosen,
        }
    }
    for _ in 0..ROUNDS {
        let mut better = false;
        for place in 0..chosen.len() {
            let mut others = chosen.clone();
            let present = others.swap_remove(place);
            let belief = after(candidates, &others, noise, deviations);
            let kept = removed(candidates, &belief, noise, present);
            if let Some((other, most)) = best(candidates, &belief, noise)
                && most > kept * (1.0 + 1e-9)
            {
                chosen[place] = other;
                better = true;
            }
        }
        if !better {
            break;
        }
    }
    chosen
}

/// What is believed after these runs; their outcomes do not matter to how
/// certain it is.
fn after(candidates: &[Vec<f64>], runs: &[usize], noise: f64, deviations: &[f64]) -> Belief {
    let mut belief = Belief::new(deviations);
    for run in runs {
        belief.observe(&candidates[*run], 0.0, noise);
    }
    belief
}

/// The candidate that removes most variance, and how much.
fn best(candidates: &[Vec<f64>], belief: &Belief, noise: f64) -> Option<(usize, f64)> {
    (0..candidates.len())
        .map(|run| (run, removed(candidates, belief, noise, run)))
        .max_by(|a, b| a.1.total_cmp(&b.1))
}

/// The variance, summed over all candidates' predictions, that a run removes.
fn removed(candidates: &[Vec<f64>], belief: &Belief, noise: f64, run: usize) -> f64 {
    let here = &candidates[run];
    let covariance: f64 = (candidates.iter())
        .map(|other| belief.together(here, other).powi(2))
        .sum();
    covariance / (belief.variance(here) + noise)
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

    const DEVIATIONS: [f64; 4] = [0.7, 0.3, 0.3, 0.3];

    /// Candidates as a profile has them: many alike, few at the ends.
    fn candidates() -> Vec<Vec<f64>> {
        (0..60)
            .map(|i| {
                let t = f64::from(i) / 59.0;
                vec![t * t, f64::from(i % 4) / 3.0, (9.0 * t).sin().abs()]
            })
            .collect()
    }

    /// The mean variance of predictions for all candidates after these runs.
    fn uncertainty(candidates: &[Vec<f64>], runs: &[usize], noise: f64) -> f64 {
        let mut belief = Belief::new(&DEVIATIONS);
        for run in runs {
            belief.observe(&candidates[*run], 0.0, noise * noise);
        }
        let sum: f64 = candidates.iter().map(|z| belief.variance(z)).sum();
        sum / candidates.len() as f64
    }

    /// A generator for tests: the same numbers every time.
    fn numbers(seed: u64) -> impl FnMut() -> u64 {
        let mut state = seed;
        move || {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            state >> 33
        }
    }

    #[test]
    fn chosen_runs_tell_more_than_random_ones() {
        let candidates = candidates();
        let chosen = choose(&candidates, 4, 0.02, &DEVIATIONS);
        let ours = uncertainty(&candidates, &chosen, 0.02);
        let mut next = numbers(7);
        let mut random: Vec<f64> = (0..200)
            .map(|_| {
                let runs: Vec<usize> = (0..4).map(|_| next() as usize % candidates.len()).collect();
                uncertainty(&candidates, &runs, 0.02)
            })
            .collect();
        random.sort_by(f64::total_cmp);
        assert!(ours < random[0], "{ours} is not below {}", random[0]);
        assert!(ours < 0.1 * random[100], "{ours} against {}", random[100]);
    }

    #[test]
    fn the_error_is_lower_too_and_not_only_what_is_expected_of_it() {
        let candidates = candidates();
        let mut next = numbers(3);
        let mut uniform = move || (next() % 2001) as f64 / 1000.0 - 1.0;
        let chosen = choose(&candidates, 4, 0.02, &DEVIATIONS);
        let mut ours = 0.0;
        let mut others = 0.0;
        let mut pick = numbers(11);
        for _ in 0..100 {
            let truth = [
                0.5 * uniform(),
                0.3 * uniform(),
                0.3 * uniform(),
                0.3 * uniform(),
            ];
            let value =
                |z: &[f64]| truth[0] + truth[1..].iter().zip(z).map(|(c, z)| c * z).sum::<f64>();
            let random: Vec<usize> = (0..4).map(|_| pick() as usize % candidates.len()).collect();
            for (runs, error) in [(&chosen, &mut ours), (&random, &mut others)] {
                let mut belief = Belief::new(&DEVIATIONS);
                for run in runs {
                    let z = &candidates[*run];
                    belief.observe(z, value(z) + 0.03 * uniform(), 4e-4);
                }
                let off = candidates
                    .iter()
                    .map(|z| (belief.value(z) - value(z)).abs());
                *error += off.sum::<f64>() / candidates.len() as f64;
            }
        }
        assert!(ours < 0.6 * others, "{ours} against {others}");
    }

    #[test]
    fn two_of_few_are_the_best_two() {
        let all = candidates();
        let few: Vec<Vec<f64>> = all.iter().step_by(5).cloned().collect();
        let chosen = choose(&few, 2, 0.02, &DEVIATIONS);
        let ours = uncertainty(&few, &chosen, 0.02);
        for a in 0..few.len() {
            for b in 0..few.len() {
                assert!(ours <= uncertainty(&few, &[a, b], 0.02) + 1e-12, "{a} {b}");
            }
        }
    }

    #[test]
    fn without_terms_or_candidates() {
        assert!(choose(&[], 3, 0.02, &DEVIATIONS).is_empty());
        let alike = vec![Vec::new(); 3];
        assert_eq!(choose(&alike, 2, 0.02, &DEVIATIONS[..1]).len(), 2);
    }
}
