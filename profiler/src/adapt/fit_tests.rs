//! Corrections of machines that differ by a known factor.

use super::*;

/// A machine on which the model's times are off by `exp(c0 + c1 z)`, with some
/// noise that is the same every time.
fn runs(c0: f64, c1: f64, noise: f64) -> Vec<Calibration> {
    let wiggle = [0.7, -1.1, 0.2, 1.3, -0.6, -0.9, 1.0, -0.4];
    (wiggle.iter().enumerate())
        .map(|(i, wiggle)| {
            let z = i as f64 / 7.0;
            let predicted = 0.01 * (i + 1) as f64;
            Calibration {
                terms: vec![z],
                predicted,
                measured: predicted * (c0 + c1 * z + noise * wiggle).exp(),
            }
        })
        .collect()
}

fn fitted(runs: &[Calibration]) -> (Correction, Vec<Residual>) {
    fit(&["prior.link_ratio"], runs, 0.02, Expectation::default()).expect("a correction")
}

#[test]
fn a_factor_and_a_slope_are_found_within_the_noise() {
    let (correction, residuals) = fitted(&runs(0.4, 0.2, 0.02));
    for z in [0.0f64, 0.5, 1.0] {
        let truth = (0.4 + 0.2 * z).exp();
        let factor = correction.factor(&[z]);
        assert!((factor / truth - 1.0).abs() < 0.03, "{factor} for {truth}");
    }
    assert_eq!(correction.terms[0].name, "prior.link_ratio");
    assert_eq!(correction.runs, 8);
    for residual in residuals {
        assert!(residual.before < -0.3, "{residual:?}");
        assert!(residual.after.abs() < 0.04, "{residual:?}");
        assert!(
            residual.left_out.abs() >= residual.after.abs(),
            "{residual:?}"
        );
    }
    assert!(correction.spread < 0.05, "{}", correction.spread);
}

#[test]
fn a_model_that_is_right_stays_as_it_is() {
    let (correction, _) = fitted(&runs(0.0, 0.0, 0.02));
    for z in [0.0, 0.5, 1.0] {
        assert!((correction.factor(&[z]) - 1.0).abs() < 0.015);
    }
}

#[test]
fn a_disturbed_run_counts_little() {
    let mut calibrations = runs(0.4, 0.2, 0.02);
    let (clean, _) = fitted(&calibrations);
    calibrations[5].measured *= 5.0;
    let (correction, _) = fitted(&calibrations);
    for z in [0.0, 0.5, 1.0] {
        let change = correction.factor(&[z]) / clean.factor(&[z]) - 1.0;
        assert!(change.abs() < 0.03, "{change} at {z}");
    }
}

#[test]
fn one_run_moves_the_constant_and_leaves_the_slope_small() {
    let calibrations = &runs(0.4, 0.2, 0.0)[7..];
    let (correction, residuals) = fitted(calibrations);
    assert!(correction.terms[0].coefficient.abs() < 0.1);
    assert!((correction.factor(&[1.0]).ln() - 0.6).abs() < 0.01);
    assert_eq!(residuals[0].left_out, residuals[0].before);
    assert_eq!(correction.spread, 0.02);
}

#[test]
fn runs_that_cannot_be_are_refused_by_number() {
    let expected = Expectation::default();
    assert_eq!(
        fit(&[], &[], 0.02, expected).unwrap_err(),
        AdaptError::NoRuns
    );
    let good = runs(0.1, 0.0, 0.0);
    for (change, words) in [
        (
            (|r| r.measured = 0.0) as fn(&mut Calibration),
            "run 2 cannot be used: the measured time is 0",
        ),
        (|r| r.predicted = f64::NAN, "the predicted time is NaN"),
        (|r| r.terms[0] = f64::INFINITY, "a term is inf"),
        (|r| r.terms.clear(), "has 0 terms where 1 are named"),
    ] {
        let mut broken = good.clone();
        change(&mut broken[2]);
        let error = fit(&["a"], &broken, 0.02, expected).unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
    }
}
