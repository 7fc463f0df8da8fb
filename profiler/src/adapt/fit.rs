//! From a few runs to a correction.

use thiserror::Error;

use super::{Belief, Correction, Expectation, Term};

/// One calibration run.
#[derive(Clone, Debug, PartialEq)]
pub struct Calibration {
    /// The terms' features, in the order of their names.
    pub terms: Vec<f64>,
    /// Seconds of a step, as the foreign model predicts and as measured.
    pub predicted: f64,
    pub measured: f64,
}

/// How far predictions of a calibration run are off, as fractions of what was
/// measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Residual {
    /// The foreign model's.
    pub before: f64,
    /// The corrected one's.
    pub after: f64,
    /// Of a correction that was fitted to all runs but this one.
    pub left_out: f64,
}

/// Why no correction could be fitted.
#[derive(Debug, Error, PartialEq)]
pub enum AdaptError {
    #[error("no calibration runs; make at least one")]
    NoRuns,

    #[error("calibration run {run} has {found} terms where {expected} are named")]
    Terms {
        run: usize,
        found: usize,
        expected: usize,
    },

    #[error(
        "calibration run {run} cannot be used: {what} is {value}; times are positive and all \
         figures finite, so the run or the model is broken: make the run again"
    )]
    Impossible {
        run: usize,
        what: &'static str,
        value: f64,
    },
}

/// Fits a correction over the features called `names`.
///
/// `noise` is the relative standard deviation of a run around a model that is
/// right, such as 0.03. A run that is further off than the others agree on
/// counts less, the further the less (Student's t with 3 degrees of freedom).
/// With few runs the coefficients stay near 0, as far as `expected` says.
///
/// # Errors
/// No runs, and runs that cannot be.
pub fn fit(
    names: &[&str],
    runs: &[Calibration],
    noise: f64,
    expected: Expectation,
) -> Result<(Correction, Vec<Residual>), AdaptError> {
    check(names, runs)?;
    let all: Vec<&Calibration> = runs.iter().collect();
    let belief = believe(names.len(), &all, noise, expected);
    let residuals: Vec<Residual> = (0..runs.len())
        .map(|i| {
            let mut others = all.clone();
            let run = others.remove(i);
            let without = believe(names.len(), &others, noise, expected);
            let off = |exponent: f64| run.predicted * exponent.exp() / run.measured - 1.0;
            Residual {
                before: off(0.0),
                after: off(belief.value(&run.terms)),
                left_out: off(without.value(&run.terms)),
            }
        })
        .collect();
    let coefficients = belief.mean();
    let correction = Correction {
        constant: coefficients[0],
        terms: (names.iter().zip(&coefficients[1..]))
            .map(|(name, coefficient)| Term {
                name: (*name).to_owned(),
                coefficient: *coefficient,
            })
            .collect(),
        spread: spread(&residuals, noise),
        runs: runs.len(),
    };
    Ok((correction, residuals))
}

fn check(names: &[&str], runs: &[Calibration]) -> Result<(), AdaptError> {
    if runs.is_empty() {
        return Err(AdaptError::NoRuns);
    }
    for (run, calibration) in runs.iter().enumerate() {
        let Calibration {
            terms,
            predicted,
            measured,
        } = calibration;
        if terms.len() != names.len() {
            return Err(AdaptError::Terms {
                run,
                found: terms.len(),
                expected: names.len(),
            });
        }
        let impossible = |what, value| Err(AdaptError::Impossible { run, what, value });
        for (what, seconds) in [
            ("the predicted time", predicted),
            ("the measured time", measured),
        ] {
            if !(seconds.is_finite() && *seconds > 0.0) {
                return impossible(what, *seconds);
            }
        }
        if let Some(value) = terms.iter().find(|value| !value.is_finite()) {
            return impossible("a term", *value);
        }
    }
    Ok(())
}

/// What the runs tell, by weighing each by how far it is off and learning
/// again until the weights stay.
fn believe(terms: usize, runs: &[&Calibration], noise: f64, expected: Expectation) -> Belief {
    /// Degrees of freedom: heavy tails, yet a bounded influence only far out.
    const FREEDOM: f64 = 3.0;
    const ROUNDS: usize = 40;
    let least = noise.max(1e-4);
    let ratios: Vec<f64> = runs
        .iter()
        .map(|r| (r.measured / r.predicted).ln())
        .collect();
    // Before anything is known, runs agree as well as their factors do; a
    // scale of the noise alone would believe the first guess too soon.
    let middle = median(ratios.clone());
    let mut off: Vec<f64> = ratios.iter().map(|ratio| (ratio - middle).abs()).collect();
    let mut belief = Belief::new(terms, expected);
    for _ in 0..ROUNDS {
        let scale = least.max(1.4826 * median(off.clone())).powi(2);
        let before = belief;
        belief = Belief::new(terms, expected);
        for ((run, ratio), off) in runs.iter().zip(&ratios).zip(&off) {
            let weight = (FREEDOM + 1.0) / (FREEDOM + off * off / scale);
            belief.observe(&run.terms, *ratio, scale / weight);
        }
        off = (runs.iter().zip(&ratios))
            .map(|(run, ratio)| (ratio - belief.value(&run.terms)).abs())
            .collect();
        let moved = belief.mean().iter().zip(before.mean());
        if moved.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max) < 1e-9 {
            break;
        }
    }
    belief
}

/// The relative standard deviation that left-out runs show, and at least the
/// noise: with few runs they may agree by chance.
fn spread(residuals: &[Residual], noise: f64) -> f64 {
    if residuals.len() < 3 {
        return noise;
    }
    let off = residuals.iter().map(|r| r.left_out.abs()).collect();
    noise.max(1.4826 * median(off))
}

/// The middle of some values; 0 of none.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => 0.0,
        even if even % 2 == 0 => (values[middle - 1] + values[middle]) / 2.0,
        _ => values[middle],
    }
}

#[cfg(test)]
#[path = "fit_tests.rs"]
mod tests;
