use ndarray::Array2;

use super::{Correction, Fitted, Input};
use crate::regress::fixtures::Random;
use crate::regress::{Spec, screen};

const LINEAR: Spec = Spec::Linear { l2: 1e-6 };

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// Sizes from 1000 to 64000, as a column.
fn sizes() -> Array2<f64> {
    Array2::from_shape_fn((60, 1), |(row, _)| 1000.0 * 64f64.powf(row as f64 / 59.0))
}

fn families() -> [Spec; 4] {
    [
        LINEAR,
        Spec::Polynomial {
            c: 1.0,
            epsilon: 0.005,
            degree: 3,
        },
        Spec::Gaussian {
            c: 100.0,
            epsilon: 0.005,
            gamma: 0.3,
        },
        Spec::Forest {
            trees: 16,
            depth: 12,
            min_leaf: 1,
        },
    ]
}

fn fit(spec: &Spec, values: &Array2<f64>, seconds: &[f64], priors: Option<&[f64]>) -> Fitted {
    let names = names(&["known.units_count", "known.workers_count"]);
    let ones = vec![1.0; seconds.len()];
    let priors_or_ones = priors.unwrap_or(&ones);
    let target: Vec<f64> = (seconds.iter().zip(priors_or_ones))
        .map(|(seconds, prior)| (seconds / prior).ln())
        .collect();
    let inputs: Vec<Input> = (values.columns().into_iter().zip(&names))
        .map(|(column, name)| Input::learn(name, column.iter().copied()))
        .collect();
    let weights = screen(&Fitted::standardise(&inputs, values), &target).unwrap();
    let names = &names[..values.ncols()];
    Fitted::fit(spec, names, values, seconds, priors, &weights, 1).unwrap()
}

/// ln t = 1 + 2 ln x, whether x spans a wide range (and is taken as a
/// logarithm) or a narrow one (and is not).
#[test]
fn a_power_is_recovered_within_a_per_cent() {
    for (spread, log) in [(64.0, true), (3.0, false)] {
        let values =
            Array2::from_shape_fn((60, 1), |(row, _)| f64::powf(spread, row as f64 / 59.0));
        let seconds: Vec<f64> = values.iter().map(|x| (1.0 + 2.0 * x.ln()).exp()).collect();
        let fitted = fit(&LINEAR, &values, &seconds, None);
        assert_eq!(fitted.inputs[0].log, log);
        for step in 0..40 {
            let x = f64::powf(spread, step as f64 / 39.0);
            let found = fitted.predict(&[x], 0.0);
            let expected = (1.0 + 2.0 * x.ln()).exp();
            assert!(
                (found / expected - 1.0).abs() < 0.01,
                "{x}: {found} {expected}"
            );
        }
        assert!(fitted.spread < 0.01);
    }
}

#[test]
fn without_a_prior_a_line_goes_on_half_as_far_again() {
    let values = sizes();
    let seconds: Vec<f64> = values.iter().map(|x| 1e-9 * x * x).collect();
    let fitted = fit(&LINEAR, &values, &seconds, None);
    let x = 1.5 * 64000.0;
    let found = fitted.predict(&[x], 0.0);
    assert!((found / (1e-9 * x * x) - 1.0).abs() < 0.03, "{found}");
    assert_eq!(fitted.predict(&[1e12], 0.0), fitted.predict(&[1e15], 0.0));
    assert!(fitted.predict(&[0.0], 0.0) > 0.0);
}

/// What is learned over a prior is the factor; beyond the training the factor
/// stays and the prior goes on.
#[test]
fn over_a_prior_physics_extrapolates() {
    let values = sizes();
    let prior = |x: f64| 2e-9 * x * x;
    let factor = |x: f64| 1.5 - 0.1 * (x / 1000.0).ln();
    let seconds: Vec<f64> = values.iter().map(|&x| prior(x) * factor(x)).collect();
    let priors: Vec<f64> = values.iter().map(|&x| prior(x)).collect();
    for spec in families() {
        let fitted = fit(&spec, &values, &seconds, Some(&priors));
        for x in [1500.0, 7000.0, 50000.0] {
            let found = fitted.predict(&[x], prior(x));
            let expected = prior(x) * factor(x);
            assert!(
                (found / expected - 1.0).abs() < 0.03,
                "{spec} at {x}: {found}"
            );
        }
        for x in [96e3, 1e6, 1e9] {
            let ratio = fitted.predict(&[x], prior(x)) / (prior(x) * factor(64e3));
            assert!((ratio - 1.0).abs() < 0.03, "{spec} at {x}: {ratio}");
        }
    }
}

/// A linear model that holds large terms against each other must not be torn
/// apart where one of its inputs leaves the training before the other.
#[test]
fn over_a_prior_inputs_that_go_together_stay_together() {
    let mut random = Random(3);
    let values = Array2::from_shape_fn((120, 2), |(row, column)| {
        let size = 1000.0 * 64f64.powf(row as f64 / 119.0);
        if column == 0 {
            size
        } else {
            size * if row % 2 == 0 { 1.0 } else { 2.0 }
        }
    });
    let seconds: Vec<f64> = values
        .rows()
        .into_iter()
        .map(|row| (row[0].ln() * 3.0 - row[1].ln() * 3.0 + 0.02 * random.normal()).exp())
        .collect();
    let fitted = fit(&LINEAR, &values, &seconds, Some(&[1.0; 120]));
    for x in [64e3, 80e3, 96e3] {
        let found = fitted.predict(&[x, x], 1.0);
        assert!((found - 1.0).abs() < 0.1, "{x}: {found}");
    }
}

#[test]
fn a_factor_alone_needs_no_inputs() {
    let none = Array2::zeros((20, 0));
    let priors: Vec<f64> = (1..=20).map(f64::from).collect();
    let seconds: Vec<f64> = priors.iter().map(|prior| 1.3 * prior).collect();
    let fitted = fit(&LINEAR, &none, &seconds, Some(&priors));
    assert!((fitted.predict(&[], 50.0) - 65.0).abs() < 1e-9);
    let text = serde_json::to_string(&fitted).unwrap();
    assert_eq!(fitted, serde_json::from_str(&text).unwrap());
}

#[test]
fn slowed_runs_do_not_widen_what_was_learned() {
    let values = sizes();
    let mut seconds: Vec<f64> = values.iter().map(|x| 1e-9 * x * x).collect();
    let clean = fit(&LINEAR, &values, &seconds, None);
    seconds[59] *= 50.0;
    let dirty = fit(&LINEAR, &values, &seconds, None);
    assert!((dirty.learned.high - clean.learned.high).abs() < 0.2);
    assert!(dirty.spread < 0.02);
}

#[test]
fn a_correction_multiplies() {
    let values = sizes();
    let seconds: Vec<f64> = values.iter().map(|x| 1e-9 * x * x).collect();
    let plain = fit(&LINEAR, &values, &seconds, None);
    let before = plain.predict(&[8000.0], 0.0);
    let twice = Correction {
        intercept: 2f64.ln(),
        ..Correction::default()
    };
    let twice = plain.clone().with_correction(twice, Vec::new()).unwrap();
    assert!((twice.predict(&[8000.0], 0.0) / before - 2.0).abs() < 1e-12);

    let slope = Correction {
        inputs: names(&["known.units_count"]),
        coefficients: vec![0.5],
        intercept: 0.0,
    };
    let sloped = plain.clone().with_correction(slope, Vec::new()).unwrap();
    let expected = (0.5 * plain.inputs[0].standardise(20e3)).exp();
    let found = sloped.predict(&[20e3], 0.0) / plain.predict(&[20e3], 0.0);
    assert!((found - expected).abs() < 1e-12);
    let ratio = |x: f64| sloped.predict(&[x], 0.0) / plain.predict(&[x], 0.0);
    assert!((ratio(1e9) - ratio(64e3)).abs() < 1e-9);
}

#[test]
fn a_correction_may_have_inputs_of_its_own() {
    let values = sizes();
    let seconds: Vec<f64> = values.iter().map(|x| 1e-9 * x * x).collect();
    let plain = fit(&LINEAR, &values, &seconds, None);
    let correction = Correction {
        inputs: names(&["prior.link_ratio"]),
        coefficients: vec![0.5],
        intercept: 0.1,
    };
    let own = vec![Input::as_is("prior.link_ratio", 0.0, 1.0)];
    let corrected = plain
        .clone()
        .with_correction(correction.clone(), own.clone())
        .unwrap();
    let ratio = |link: f64| corrected.predict(&[8000.0, link], 0.0) / plain.predict(&[8000.0], 0.0);
    for (link, exponent) in [(0.0, 0.1), (0.4, 0.3), (1.0, 0.6), (9.0, 0.6)] {
        assert!((ratio(link) - f64::exp(exponent)).abs() < 1e-12, "{link}");
    }
    assert_eq!(corrected.clone().without_correction(), plain);
    let again = corrected.with_correction(correction, own).unwrap();
    assert_eq!(again.inputs.len(), 2);
    let unused = plain.with_correction(Correction::default(), vec![Input::as_is("a", 0.0, 1.0)]);
    assert!(unused.is_err());
}

#[test]
fn a_correction_that_does_not_fit_is_refused() {
    let values = sizes();
    let seconds: Vec<f64> = values.iter().map(|x| 1e-9 * x * x).collect();
    let plain = fit(&LINEAR, &values, &seconds, None);
    let correct = |inputs: &[&str], coefficients: Vec<f64>, intercept| {
        let correction = Correction {
            inputs: names(inputs),
            coefficients,
            intercept,
        };
        plain
            .clone()
            .with_correction(correction, Vec::new())
            .unwrap_err()
    };
    assert!(correct(&["machine.clock_mhz"], vec![1.0], 0.0).contains("machine.clock_mhz"));
    assert!(correct(&["known.units_count"], vec![], 0.0).contains("0 coefficients"));
    assert!(correct(&[], vec![], f64::NAN).contains("finite"));
}

#[test]
fn files_predict_to_the_last_bit_and_damage_is_refused() {
    let values = sizes();
    let seconds: Vec<f64> = values.iter().map(|x| 1e-9 * x * x + 1e-4).collect();
    for spec in families() {
        let correction = Correction {
            inputs: names(&["known.units_count"]),
            coefficients: vec![0.123_456_789_012_345_67],
            intercept: -0.1,
        };
        let before = fit(
            &spec,
            &values,
            &seconds,
            Some(&seconds.iter().map(|s| s.sqrt()).collect::<Vec<_>>()),
        );
        for before in [
            before.clone(),
            before.with_correction(correction, Vec::new()).unwrap(),
        ] {
            let text = serde_json::to_string(&before).unwrap();
            let after: Fitted = serde_json::from_str(&text).unwrap();
            assert_eq!(before, after);
            for x in [10.0, 1234.5, 33333.3, 1e7] {
                let [before, after] = [&before, &after].map(|fitted| fitted.predict(&[x], 0.7));
                assert_eq!(before.to_bits(), after.to_bits());
            }
        }
    }
    let sound = serde_json::to_value(fit(&LINEAR, &values, &seconds, None)).unwrap();
    let damage: [fn(&mut serde_json::Value); 7] = [
        |file| file["inputs"] = serde_json::json!([]),
        |file| file["inputs"][0]["min"] = 1e9.into(),
        |file| file["inputs"][0]["deviation"] = (-1.0).into(),
        |file| file["learned"]["high"] = (-1e3).into(),
        |file| file["spread"] = (-1).into(),
        |file| file["regressor"]["linear"]["features"] = serde_json::json!([]),
        |file| file["unheard_of"] = 1.into(),
    ];
    let read = |file| serde_json::from_value::<Fitted>(file).map(|fitted| fitted.check());
    assert_eq!(read(sound.clone()).unwrap(), Ok(()));
    for (number, damage) in damage.into_iter().enumerate() {
        let mut file = sound.clone();
        damage(&mut file);
        let read = read(file);
        assert!(read.is_err() || read.unwrap().is_err(), "damage {number}");
    }
}

#[test]
fn what_is_not_asked_right_is_not_a_number() {
    let values = sizes();
    let seconds: Vec<f64> = values.iter().map(|x| 1e-9 * x * x).collect();
    for spec in families() {
        let fitted = fit(&spec, &values, &seconds, None);
        assert!(fitted.predict(&[f64::NAN], 1.0).is_nan());
        assert!(fitted.predict(&[], 1.0).is_nan());
        assert!(fitted.predict(&[1.0, 2.0], 1.0).is_nan());
    }
}

#[test]
fn an_input_knows_its_scale() {
    let learn = |values: &[f64]| Input::learn("known.units_count", values.iter().copied());
    let wide = learn(&[1.0, 10.0, 100.0]);
    assert!(wide.log);
    assert!((wide.mean - 10f64.ln()).abs() < 1e-12);
    assert!((wide.standardise(100.0) + wide.standardise(1.0)).abs() < 1e-12);
    assert!(wide.standardise(-5.0).is_finite());
    let narrow = learn(&[0.0, 1.0, 1.0, 0.0]);
    assert!(!narrow.log);
    assert_eq!(
        (narrow.standardise(0.0), narrow.standardise(1.0)),
        (-1.0, 1.0)
    );
    let constant = learn(&[0.1, 0.1, 0.1]);
    assert_eq!((constant.deviation, constant.standardise(7.0)), (0.0, 0.0));
}
