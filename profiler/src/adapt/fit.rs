//! From a few runs to a correction.

use thiserror::Error;

use super::{Point, learn};
use crate::Fitted;
use crate::fitted::{Correction, Input};
use crate::regress::spread;

/// How far a correction's constant is expected to lie from 0 at most, before any run: one
/// standard deviation, in logarithms of seconds. A foreign model can be wrong by a factor of
/// 2 or so as a whole (its machine's compiler, clock or virtualisation).
const CONSTANT: f64 = 0.7;

/// The same of a term: what one figure is off beyond the others.
const TERM: f64 = 0.3;

/// The figures that a correction of a model depends on, as it sees them.
#[derive(Clone, Debug, PartialEq)]
pub struct Terms {
    /// The model's own input where it has one of the name.
    inputs: Vec<Input>,
    /// Those that the model has not.
    own: Vec<Input>,
}

impl Terms {
    /// Terms for a model, by their names: ratios from 0 to 1, such as the part
    /// of the time that transfers take.
    pub fn of(fitted: &Fitted, names: &[&str]) -> Self {
        let known = &fitted.inputs[..fitted.regressor.inputs().min(fitted.inputs.len())];
        let mut terms = Self {
            inputs: Vec::new(),
            own: Vec::new(),
        };
        for name in names {
            match known.iter().find(|input| input.name == *name) {
                Some(input) => terms.inputs.push(input.clone()),
                None => {
                    let input = Input::as_is(name, 0.0, 1.0);
                    terms.inputs.push(input.clone());
                    terms.own.push(input);
                }
            }
        }
        terms
    }

    /// The terms of figures that are in the order of the names.
    pub fn values(&self, figures: &[f64]) -> Vec<f64> {
        (self.inputs.iter().zip(figures))
            .map(|(input, figure)| input.standardise(input.limit(*figure)))
            .collect()
    }

    /// How far the constant, and each term's coefficient, is expected to lie
    /// from 0: an input that the model scales has a coefficient of its scale.
    pub fn deviations(&self) -> Vec<f64> {
        let each = self.inputs.iter().map(|input| TERM * input.deviation);
        std::iter::once(CONSTANT).chain(each).collect()
    }
}

/// One calibration run.
#[derive(Clone, Debug, PartialEq)]
pub struct Calibration {
    /// The inputs of the model without correction, in its order.
    pub values: Vec<f64>,
    /// The terms' figures, in the order of their names.
    pub terms: Vec<f64>,
    /// Seconds of a step that physics lets expect.
    pub prior: f64,
    /// Seconds of a step as measured.
    pub seconds: f64,
}

/// A corrected model, and how far off it is.
#[derive(Clone, Debug, PartialEq)]
pub struct Adapted {
    pub fitted: Fitted,
    /// One a run.
    pub residuals: Vec<Residual>,
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

    #[error("the correction cannot be kept: {0}")]
    Correction(String),

    #[error(
        "calibration run {run} cannot be used: {what} is {value}; times must be above 0 and all \
         figures finite, so make the run again, or correct the machine's file"
    )]
    Impossible {
        /// From 0.
        run: usize,
        what: &'static str,
        value: f64,
    },
}

/// Corrects a model by some runs, whatever corrected it before. `names` are the
/// terms that the correction may depend on; see [`Terms`].
///
/// `noise` is the relative standard deviation of a run around a model that is
/// right, such as 0.02. A run that is further off than the others agree on
/// counts less, the further the less (Student's t with 3 degrees of freedom).
/// Coefficients stay as near to 0 as the runs leave them, and hardly lie
/// further from it than expected. The model's spread becomes what
/// left-out runs show.
///
/// # Errors
/// No runs, and runs that cannot be.
pub fn fit(
    foreign: &Fitted,
    names: &[&str],
    runs: &[Calibration],
    noise: f64,
) -> Result<Adapted, AdaptError> {
    let plain = foreign.clone().without_correction();
    let terms = Terms::of(&plain, names);
    let points = points(&plain, &terms, runs)?;
    let deviations = terms.deviations();
    let noise = noise.max(1e-4);
    let belief = learn(&points, noise, &deviations);
    let residuals: Vec<Residual> = (0..points.len())
        .map(|i| {
            let mut others = points.clone();
            let point = others.remove(i);
            let off = |exponent: f64| (exponent - point.ratio).exp() - 1.0;
            let without = learn(&others, noise, &deviations);
            Residual {
                before: off(0.0),
                after: off(belief.value(&point.terms)),
                left_out: off(without.value(&point.terms)),
            }
        })
        .collect();
    let (intercept, coefficients) = match belief.mean() {
        [constant, terms @ ..] => (*constant, terms.to_vec()),
        [] => (0.0, Vec::new()),
    };
    let correction = Correction {
        inputs: terms
            .inputs
            .iter()
            .map(|input| input.name.clone())
            .collect(),
        coefficients,
        intercept,
    };
    let left_out: Vec<f64> = residuals.iter().map(|r| r.left_out).collect();
    // Two runs may agree by chance.
    let shown = match left_out.len() {
        0..=2 => foreign.spread,
        _ => spread(&left_out),
    };
    let fitted = plain
        .with_correction(correction, terms.own)
        .map_err(AdaptError::Correction)?;
    Ok(Adapted {
        fitted: Fitted {
            spread: noise.max(shown),
            ..fitted
        },
        residuals,
    })
}

fn points(fitted: &Fitted, terms: &Terms, runs: &[Calibration]) -> Result<Vec<Point>, AdaptError> {
    if runs.is_empty() {
        return Err(AdaptError::NoRuns);
    }
    (runs.iter().enumerate())
        .map(|(run, calibration)| {
            let predicted = fitted.predict(&calibration.values, calibration.prior);
            for (what, value) in [
                ("the predicted time", predicted),
                ("the measured time", calibration.seconds),
            ] {
                if !(value.is_finite() && value > 0.0) {
                    return Err(AdaptError::Impossible { run, what, value });
                }
            }
            if let Some(value) = calibration.terms.iter().find(|term| !term.is_finite()) {
                let (what, value) = ("a term", *value);
                return Err(AdaptError::Impossible { run, what, value });
            }
            Ok(Point {
                terms: terms.values(&calibration.terms),
                ratio: (calibration.seconds / predicted).ln(),
            })
        })
        .collect()
}

#[cfg(test)]
#[path = "fit_tests.rs"]
mod tests;
