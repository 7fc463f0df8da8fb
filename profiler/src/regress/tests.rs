//! All families alike.

use ndarray::{Array2, Axis};

use super::fixtures::{Random, mape, profile, slowed, truth};
use super::{FitError, Regressor, Spec, fit, screen, *};

fn families() -> [Spec; 4] {
    [
        Spec::Linear { l2: 1e-4 },
        Spec::Polynomial {
            c: 0.3,
            epsilon: 0.02,
            degree: 3,
        },
        Spec::Gaussian {
            c: 10.0,
            epsilon: 0.02,
            gamma: 0.5,
        },
        Spec::Forest {
            trees: 24,
            depth: 16,
            min_leaf: 2,
        },
    ]
}

fn fitted(spec: &Spec, x: &Array2<f64>, y: &[f64]) -> Regressor {
    fit(spec, x, y, &screen(x, y).unwrap(), 1).unwrap()
}

#[test]
fn every_family_learns() {
    let (x, y) = profile(300, 41);
    let limits = [5.0, 4.0, 3.0, 13.0];
    for (spec, limit) in families().iter().zip(limits) {
        let regressor = fitted(spec, &x, &y);
        let error = mape(|x| regressor.predict(x));
        assert!(error < limit, "{spec}: {error:.2} %");
    }
}

/// The issue's own figure: 5 % of the rows slowed 5 times cost at most one
/// point of the mean error on clean rows.
#[test]
fn slowed_rows_cost_at_most_a_point() {
    let (x, clean) = profile(300, 42);
    let (dirty, slow) = slowed(&clean, 0.05, 5.0, 43);
    assert!(slow.len() >= 10);
    for spec in families() {
        let [from_clean, from_dirty] = [&clean, &dirty].map(|y| {
            let regressor = fitted(&spec, &x, y);
            mape(|x| regressor.predict(x))
        });
        assert!(
            from_dirty < from_clean + 1.0,
            "{spec}: {from_clean:.2} % became {from_dirty:.2} %"
        );
    }
}

/// Without the screening the linear regression and the forest lose much more:
/// the test above tests something.
#[test]
fn without_screening_slowed_rows_cost_more() {
    let (x, clean) = profile(300, 42);
    let (dirty, _) = slowed(&clean, 0.05, 5.0, 43);
    let all = vec![1.0; 300];
    for spec in [&families()[0], &families()[3]] {
        let screened = fitted(spec, &x, &dirty);
        let believing = fit(spec, &x, &dirty, &all, 1).unwrap();
        let [screened, believing] =
            [screened, believing].map(|regressor| mape(|x| regressor.predict(x)));
        assert!(
            believing > screened + 1.0,
            "{spec}: {screened:.2} {believing:.2}"
        );
    }
}

#[test]
fn files_predict_to_the_last_bit() {
    let (x, y) = profile(90, 45);
    for spec in families() {
        let before = fitted(&spec, &x, &y);
        let text = serde_json::to_string(&before).unwrap();
        let after: Regressor = serde_json::from_str(&text).unwrap();
        assert_eq!(after.check(), Ok(()));
        for row in profile(60, 46).0.rows() {
            let row = row.to_vec();
            assert_eq!(
                before.predict(&row).to_bits(),
                after.predict(&row).to_bits()
            );
        }
        let text = serde_json::to_string(&spec).unwrap();
        assert_eq!(spec, serde_json::from_str(&text).unwrap());
    }
}

#[test]
fn beyond_the_training_no_family_runs_away() {
    let (x, y) = profile(200, 47);
    let largest = y.iter().fold(0.0f64, |most, y| most.max(y.abs()));
    for spec in families() {
        let regressor = fitted(&spec, &x, &y);
        for far in [2.0, 5.0, 1e3, 1e9, f64::MAX, f64::INFINITY] {
            for x in [[far, far], [-far, far], [far, -far], [-far, -far]] {
                let found = regressor.predict(&x);
                assert!(found.abs() < 10.0 * largest, "{spec} at {x:?}: {found}");
            }
        }
        // A little further than the rows, all but the forest still know.
        if regressor.inputs() == 2 && !matches!(regressor, Regressor::Forest(_)) {
            let found = regressor.predict(&[1.9, 0.0]);
            assert!((found - truth(1.9, 0.0)).abs() < 0.2, "{spec}: {found}");
        }
    }
}

#[test]
fn constant_features_and_single_features_are_fine() {
    let (mut x, y) = profile(120, 48);
    x.column_mut(1).fill(-0.3);
    for spec in families() {
        let regressor = fitted(&spec, &x, &y);
        assert!(regressor.predict(&[0.4, -0.3]).is_finite());
        let alone = x.select(Axis(1), &[0]);
        let regressor = fitted(&spec, &alone, &y);
        assert!(regressor.predict(&[1.5]) > regressor.predict(&[-1.5]) + 2.0);
    }
}

#[test]
fn features_that_say_nothing_give_the_middle() {
    let (mut x, y) = profile(120, 49);
    x.fill(0.0);
    let low = y.iter().copied().fold(f64::INFINITY, f64::min);
    let high = y.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    for spec in families() {
        let found = fitted(&spec, &x, &y).predict(&[0.0, 0.0]);
        assert!(found > low && found < high, "{spec}: {found}");
    }
}

#[test]
fn what_is_not_asked_right_is_not_a_number() {
    let (x, y) = profile(60, 50);
    for spec in families() {
        let regressor = fitted(&spec, &x, &y);
        assert!(regressor.predict(&[f64::NAN, 0.0]).is_nan());
        assert!(regressor.predict(&[0.0]).is_nan());
        assert!(regressor.predict(&[0.0; 3]).is_nan());
    }
}

#[test]
fn too_little_to_learn_from() {
    let (x, y) = profile(60, 51);
    let rows = |count: usize| x.select(Axis(0), &(0..count).collect::<Vec<_>>());
    for spec in families() {
        let family = spec.family();
        let needed = 4;
        for count in [0, 1, 3] {
            let few = fit(&spec, &rows(count), &y[..count], &[1.0; 3][..count], 1);
            let error = FitError::TooFewRows {
                family,
                rows: count,
                needed,
            };
            assert_eq!(few, Err(error));
        }
        let mut weights = [0.0; 60];
        weights[7] = 1.0;
        let alone = fit(&spec, &x, &y, &weights, 1);
        assert!(matches!(alone, Err(FitError::TooFewRows { rows: 1, .. })));
    }
}

#[test]
fn only_a_linear_regression_may_be_a_constant() {
    let (x, y) = profile(60, 54);
    let [none, flat] = [Array2::zeros((60, 0)), x.clone()];
    for spec in &families()[1..] {
        let nothing = fit(spec, &none, &y, &[1.0; 60], 1);
        assert_eq!(nothing, Err(FitError::NoFeatures));
        let constant = fit(spec, &flat, &[2.5; 60], &[1.0; 60], 1);
        assert_eq!(constant, Err(FitError::ConstantTarget));
    }
    let weights: Vec<f64> = (0..60).map(|row| f64::from(row % 3)).collect();
    let nothing = fit(&families()[0], &none, &y, &weights, 1).unwrap();
    let weighed = y.iter().zip(&weights).map(|(y, weight)| y * weight);
    let mean = weighed.sum::<f64>() / weights.iter().sum::<f64>();
    assert!((nothing.predict(&[]) - mean).abs() < 1e-12);
    let constant = fit(&families()[0], &flat, &[2.5; 60], &[1.0; 60], 1).unwrap();
    assert!((constant.predict(&[0.3, -0.4]) - 2.5).abs() < 1e-12);
}

#[test]
fn a_sum_of_before_has_the_whole_among_its_parts() {
    let read = |text| serde_json::from_str::<Spec>(text).unwrap();
    assert_eq!(read(r#"{"family": "sum"}"#), Spec::Sum { whole: true });
    let without = Spec::Sum { whole: false };
    assert_eq!(read(&serde_json::to_string(&without).unwrap()), without);
}

#[test]
fn slowed_rows_are_found_and_others_believed() {
    let (x, clean) = profile(300, 1);
    let (dirty, slow) = slowed(&clean, 0.05, 5.0, 2);
    let weights = screen(&x, &dirty).unwrap();
    assert!(slow.len() > 8);
    for (row, weight) in weights.iter().enumerate() {
        if slow.contains(&row) {
            assert!(*weight < 0.01, "slowed row {row} has weight {weight}");
        }
    }
    let believed = weights.iter().filter(|weight| **weight > 0.5).count();
    assert!(believed as f64 >= 0.98 * (300 - slow.len()) as f64);
}

#[test]
fn a_region_with_rules_of_its_own_is_believed() {
    let (x, mut y) = profile(300, 3);
    let corner: Vec<usize> = (0..300)
        .filter(|&row| x[[row, 0]] > 1.2 && x[[row, 1]] < -1.0)
        .collect();
    assert!((4..30).contains(&corner.len()));
    for &row in &corner {
        y[row] += 1.2;
    }
    let weights = screen(&x, &y).unwrap();
    let believed = corner.iter().filter(|&&row| weights[row] > 0.5).count();
    assert!(
        believed + 1 >= corner.len(),
        "{believed} of {}",
        corner.len()
    );
}

#[test]
fn few_rows_are_all_believed() {
    let x = Array2::from_shape_fn((7, 1), |(row, _)| row as f64);
    let y = [0.0, 0.1, 0.2, 9.0, 0.4, 0.5, 0.6];
    assert_eq!(screen(&x, &y).unwrap(), [1.0; 7]);
}

#[test]
fn wild_values_leave_the_spread() {
    let mut random = Random(5);
    let mut values: Vec<f64> = (0..4000).map(|_| 0.3 * random.normal()).collect();
    assert!((spread(&values) - 0.3).abs() < 0.015);
    values[..400].fill(1e9);
    assert!((spread(&values) - 0.34).abs() < 0.02);
}

#[test]
fn weights_fall_from_one() {
    assert_eq!(huber(-0.5, 1.0), 1.0);
    assert_eq!(huber(-4.0, 1.0), 0.25);
    assert_eq!(bisquare(0.0, 2.0), 1.0);
    assert_eq!(bisquare(1.0, 2.0), 0.5625);
    assert_eq!(bisquare(-2.0, 2.0), 0.0);
    assert_eq!(bisquare(1e9, 2.0), 0.0);
}
