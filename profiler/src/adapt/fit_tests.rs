//! Corrections on machines that differ by a known factor.

use ndarray::Array2;

use super::*;
use crate::regress::Spec;

const TERMS: [&str; 2] = ["prior.link_ratio", "prior.memory_ratio"];

/// A model over a prior, of a size and a ratio; on its own machine a step
/// takes the prior 1.2 to 1.3 times.
fn foreign() -> Fitted {
    let rows: Vec<[f64; 2]> = (0..40)
        .map(|i| [2f64.powi(i % 8) * 1e3, f64::from(i % 5) / 4.0])
        .collect();
    let values = Array2::from(rows.clone());
    let priors: Vec<f64> = rows.iter().map(|row| row[0] * 1e-6).collect();
    let seconds: Vec<f64> = (rows.iter().zip(&priors))
        .map(|(row, prior)| (1.2 + 0.1 * row[1]) * prior)
        .collect();
    let names = ["known.units_count".into(), "prior.link_ratio".into()];
    let spec = Spec::Linear { l2: 1e-3 };
    Fitted::fit(
        &spec,
        &names,
        &values,
        &seconds,
        Some(&priors),
        &[1.0; 40],
        1,
    )
    .expect("a model")
}

/// Runs of a machine that takes `exp(c0 + c1 ratio)` times as long as the
/// model says, with noise that is the same every time.
fn runs(c0: f64, c1: f64, noise: f64) -> Vec<Calibration> {
    let wiggle = [0.7, -1.1, 0.2, 1.3, -0.6, -0.9, 1.0, -0.4];
    (wiggle.iter().enumerate())
        .map(|(i, wiggle)| {
            let (units, ratio) = (2f64.powi(i as i32) * 1e3, (i % 4) as f64 / 3.0);
            let prior = units * 1e-6;
            Calibration {
                values: vec![units, ratio],
                terms: vec![ratio, 1.0 - ratio],
                prior,
                seconds: (1.2 + 0.1 * ratio) * prior * (c0 + c1 * ratio + noise * wiggle).exp(),
            }
        })
        .collect()
}

fn adapted(runs: &[Calibration]) -> Adapted {
    fit(&foreign(), &TERMS, runs, 0.02).expect("a correction")
}

/// What the corrected model's predictions are of the foreign one's.
fn factor(adapted: &Adapted, ratio: f64) -> f64 {
    let after = adapted.fitted.predict(&[8e3, ratio, 1.0 - ratio], 1.0);
    after / foreign().predict(&[8e3, ratio], 1.0)
}

#[test]
fn a_factor_and_a_slope_are_found_within_the_noise() {
    let adapted = adapted(&runs(0.4, 0.2, 0.02));
    for ratio in [0.0, 0.5, 1.0] {
        let (found, truth) = (factor(&adapted, ratio), (0.4 + 0.2 * ratio).exp());
        assert!((found / truth - 1.0).abs() < 0.03, "{found} for {truth}");
    }
    for residual in &adapted.residuals {
        assert!(residual.before < -0.3, "{residual:?}");
        assert!(residual.after.abs() < 0.05, "{residual:?}");
        assert!(residual.left_out.abs() < 0.1, "{residual:?}");
    }
    assert!(adapted.fitted.spread < 0.06, "{}", adapted.fitted.spread);
}

#[test]
fn a_model_that_is_right_stays_as_it_is() {
    let adapted = adapted(&runs(0.0, 0.0, 0.02));
    for ratio in [0.0, 0.5, 1.0] {
        assert!((factor(&adapted, ratio) - 1.0).abs() < 0.005);
    }
}

#[test]
fn a_disturbed_run_counts_little() {
    let mut calibrations = runs(0.4, 0.2, 0.02);
    let clean = adapted(&calibrations);
    calibrations[5].seconds *= 5.0;
    let disturbed = adapted(&calibrations);
    for ratio in [0.0, 0.5, 1.0] {
        let change = factor(&disturbed, ratio) / factor(&clean, ratio) - 1.0;
        assert!(change.abs() < 0.03, "{change} at {ratio}");
    }
}

#[test]
fn one_run_moves_the_constant_and_the_slope_little() {
    let adapted = adapted(&runs(0.4, 0.2, 0.0)[3..4]);
    let correction = adapted.fitted.correction.as_ref().expect("a correction");
    assert!(correction.coefficients.iter().all(|c| c.abs() < 0.1));
    assert!((factor(&adapted, 1.0).ln() - 0.6).abs() < 0.01);
    assert_eq!(adapted.residuals[0].left_out, adapted.residuals[0].before);
}

#[test]
fn a_correction_replaces_the_one_before() {
    let once = adapted(&runs(0.4, 0.2, 0.02));
    let twice = fit(&once.fitted, &TERMS, &runs(0.4, 0.2, 0.02), 0.02);
    assert_eq!(twice.expect("a correction"), once);
}

#[test]
fn runs_that_cannot_be_are_refused_by_number() {
    let none = fit(&foreign(), &TERMS, &[], 0.02).unwrap_err();
    assert_eq!(none, AdaptError::NoRuns);
    let good = runs(0.1, 0.0, 0.0);
    for (change, words) in [
        (
            (|r| r.seconds = 0.0) as fn(&mut Calibration),
            "run 2 cannot be used: the measured time is 0",
        ),
        (|r| r.prior = f64::NAN, "the predicted time is NaN"),
        (|r| r.values[0] = f64::NAN, "the predicted time is NaN"),
        (|r| r.values.clear(), "the predicted time is NaN"),
        (|r| r.terms[1] = f64::INFINITY, "a term is inf"),
    ] {
        let mut broken = good.clone();
        change(&mut broken[2]);
        let error = fit(&foreign(), &TERMS, &broken, 0.02).unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
    }
}
