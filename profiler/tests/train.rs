//! Training on a synthetic machine: accuracy of models on other sizes, outliers,
//! and tables that are refused.

use std::sync::atomic::{AtomicBool, Ordering};

use pdawl_profiler::train::{Family, Recipe, TrainError, Trained, train};
use pdawl_profiler::validate::Accuracy;
use pdawl_profiler::{Row, Table};
use synthetic::{Case, Draws, cases, planning, sizes};

mod synthetic;

/// Sizes from within the cache to far beyond it.
fn trained_cases() -> Vec<Case> {
    cases(sizes(512.0, 12288.0, 1.375))
}

/// Noise-free rows of sizes between those, and up to 1.5 times beyond.
fn unseen() -> [Table; 2] {
    let of = |first, last| {
        planning(synthetic::table(
            &cases(sizes(first, last, 1.21)),
            1,
            0.0,
            9,
        ))
    };
    [of(600.0, 12288.0), of(13500.0, 18432.0)]
}

fn profile(noise: f64, seed: u64) -> Table {
    planning(synthetic::table(&trained_cases(), 2, noise, seed))
}

/// Families that train quickly enough in a test.
fn recipe() -> Recipe {
    Recipe {
        families: vec![
            Family::PriorConstant,
            Family::PriorLinear,
            Family::PriorGaussian,
            Family::PriorForest,
        ],
        search_rows: 80,
        threads: 2,
        ..Recipe::default()
    }
}

fn run(table: &Table, recipe: &Recipe) -> Result<Trained, TrainError> {
    train(table, recipe, &mut |_, _| {}, &AtomicBool::new(false))
}

/// Accuracy of the model on rows that may have more columns than its inputs.
fn accuracy(trained: &Trained, table: &Table) -> Accuracy {
    let place = |name: &String| table.names.iter().position(|n| n == name).unwrap();
    let inputs = trained.fitted.inputs.iter();
    let places: Vec<usize> = inputs.map(|input| place(&input.name)).collect();
    let pair = |row: &Row| {
        let values: Vec<f64> = places.iter().map(|&p| row.values[p]).collect();
        (row.seconds, trained.fitted.predict(&values, row.prior))
    };
    Accuracy::of(&table.rows.iter().map(pair).collect::<Vec<_>>())
}

#[test]
fn sizes_between_and_beyond_are_predicted_better_than_by_any_baseline() {
    let trained = run(&profile(0.02, 1), &recipe()).unwrap();
    let validation = &trained.validation;
    let chosen = validation.chosen().unwrap();
    assert!(chosen.family.over_prior(), "{}", validation.why);
    for table in unseen() {
        let found = accuracy(&trained, &table).mape;
        assert!(found <= 0.03, "{found} by {}", chosen.family);
    }
    for baseline in &validation.baselines {
        assert!(
            chosen.accuracy.mape < 0.5 * baseline.accuracy.mape,
            "{}",
            baseline.name
        );
    }
    let spread = trained.fitted.spread;
    assert!((0.015..0.05).contains(&spread), "{spread}");
}

#[test]
fn rows_that_something_slowed_do_no_harm() {
    let clean = profile(0.02, 1);
    let mut slowed = clean.clone();
    let mut draws = Draws(5);
    let mut count = 0;
    for row in &mut slowed.rows {
        if draws.uniform() < 0.05 {
            row.seconds *= 5.0;
            count += 1;
        }
    }
    assert!(count >= 5, "{count}");
    let before = run(&clean, &recipe()).unwrap();
    let after = run(&slowed, &recipe()).unwrap();
    for table in unseen() {
        let (before, after) = (accuracy(&before, &table), accuracy(&after, &table));
        assert!(after.mape <= before.mape + 0.01, "{before:?} {after:?}");
    }
    let found = after.validation.outliers;
    assert!(found >= count && found <= count + 3, "{found} of {count}");
    assert!(before.validation.outliers <= 3);
    // The slowed runs are among the rows, so the plain error shows them.
    let chosen = after.validation.chosen().unwrap();
    let (plain, believed) = (chosen.accuracy.mape, chosen.believed);
    assert!(plain > believed + 0.03, "{plain} {believed}");
}

#[test]
fn equal_seeds_give_equal_models_on_any_number_of_threads() {
    let table = profile(0.02, 3);
    let recipe = Recipe {
        families: vec![Family::PriorForest, Family::Linear],
        clusters: 4..=5,
        folds: 4,
        ..recipe()
    };
    let one = run(
        &table,
        &Recipe {
            threads: 1,
            ..recipe.clone()
        },
    )
    .unwrap();
    assert_eq!(
        one,
        run(
            &table,
            &Recipe {
                threads: 3,
                ..recipe.clone()
            }
        )
        .unwrap()
    );
    let other = run(&table, &Recipe { seed: 2, ..recipe }).unwrap();
    assert_ne!(one.held_out, other.held_out);
}

#[test]
fn every_row_is_held_out_once_and_the_figures_are_those_of_these_rows() {
    let table = profile(0.05, 4);
    let recipe = Recipe {
        folds: 5,
        families: vec![Family::PriorConstant, Family::PriorLinear, Family::Linear],
        ..recipe()
    };
    let trained = run(&table, &recipe).unwrap();
    let rows: Vec<usize> = trained.held_out.iter().map(|held| held.row).collect();
    assert_eq!(rows, (0..table.rows.len()).collect::<Vec<_>>());
    let pairs = trained.held_out.iter().map(|h| (h.measured, h.predicted));
    let validation = &trained.validation;
    let chosen = validation.chosen().unwrap();
    assert_eq!(chosen.accuracy, Accuracy::of(&pairs.collect::<Vec<_>>()));
    assert_eq!((validation.rows, validation.folds), (table.rows.len(), 5));
    assert_eq!(validation.groups, table.rows.len() / 2);
    assert_eq!(validation.candidates.len(), 3);
    assert!(validation.candidates.iter().all(|c| c.folds.len() == 5));
    let names: Vec<&str> = validation
        .baselines
        .iter()
        .map(|b| b.name.as_str())
        .collect();
    assert_eq!(names, ["naive"]);
    let inputs: Vec<&str> = trained
        .fitted
        .inputs
        .iter()
        .map(|i| i.name.as_str())
        .collect();
    assert_eq!(chosen.inputs, inputs);
    assert_eq!(chosen.clusters, inputs.len());
    let text = serde_json::to_string(validation).unwrap();
    assert_eq!(
        serde_json::from_str::<pdawl_profiler::train::Validation>(&text).unwrap(),
        *validation
    );
}

#[test]
fn a_prior_that_is_right_but_for_a_factor_needs_no_more() {
    let mut table = profile(0.0, 5);
    let mut draws = Draws(6);
    for row in &mut table.rows {
        row.seconds = 1.3 * row.prior * (0.02 * draws.normal()).exp();
    }
    let trained = run(&table, &recipe()).unwrap();
    assert_eq!(
        trained.validation.chosen().unwrap().family,
        Family::PriorConstant
    );
    assert!(trained.fitted.inputs.is_empty());
    let predicted = trained.fitted.predict(&[], 2.0);
    assert!((predicted / 2.6 - 1.0).abs() < 0.01, "{predicted}");
    // Without noise only the prior varies, which is no failure either.
    for row in &mut table.rows {
        row.seconds = 1.3 * row.prior;
    }
    let exact = run(&table, &recipe()).unwrap();
    assert_eq!(
        exact.validation.chosen().unwrap().family,
        Family::PriorConstant
    );
    assert!(exact.validation.chosen().unwrap().accuracy.greatest < 1e-9);
}

#[test]
fn it_stops_when_asked_to() {
    let stop = AtomicBool::new(false);
    let mut reported = Vec::new();
    let mut progress = |done, all| {
        reported.push((done, all));
        if done == 2 {
            stop.store(true, Ordering::Relaxed);
        }
    };
    let result = train(&profile(0.02, 1), &recipe(), &mut progress, &stop);
    assert_eq!(result, Err(TrainError::Interrupted));
    assert_eq!(reported[0].0, 0);
    assert_eq!(reported[0].1, 4 * 12);
    let result = train(&profile(0.02, 1), &recipe(), &mut |_, _| {}, &stop);
    assert_eq!(result, Err(TrainError::Interrupted));
}

/// The error of training on a table that `spoil` has made invalid.
fn refusal(spoil: impl Fn(&mut Table)) -> String {
    let mut table = profile(0.02, 1);
    spoil(&mut table);
    let quick = Recipe {
        families: vec![Family::PriorForest, Family::Forest],
        ..recipe()
    };
    run(&table, &quick).unwrap_err().to_string()
}

#[test]
fn every_refusal_names_the_thing_and_the_remedy() {
    let few = refusal(|table| {
        table.rows.truncate(4);
        table
            .rows
            .iter_mut()
            .for_each(|row| row.group = "one".to_owned());
    });
    assert!(few.contains("1 configurations"), "{few}");
    assert!(few.contains("1 more are needed; profile more"), "{few}");
    let value = refusal(|table| table.rows[5].values[2] = f64::NAN);
    assert!(
        value.contains("`known.workers_count` of row 5 (`Case"),
        "{value}"
    );
    let seconds = refusal(|table| table.rows[3].seconds = 0.0);
    assert!(seconds.contains("`seconds` of row 3"), "{seconds}");
    let prior = refusal(|table| table.rows[4].prior = -1.0);
    assert!(
        prior.contains("`prior` of row 4") && prior.contains("-1"),
        "{prior}"
    );
    let baseline = refusal(|table| table.rows[4].baselines[0] = f64::INFINITY);
    assert!(baseline.contains("`naive` of row 4"), "{baseline}");
    let length = refusal(|table| table.rows[9].values.truncate(3));
    assert!(
        length.contains("row 9") && length.contains("3 values instead of"),
        "{length}"
    );
    let constant = refusal(|table| {
        let values = table.rows[0].values.clone();
        table
            .rows
            .iter_mut()
            .for_each(|row| row.values = values.clone());
    });
    assert!(
        constant.contains("none of the 14 features varies"),
        "{constant}"
    );
    let failed = refusal(|table| {
        for row in &mut table.rows {
            row.seconds = 1.0;
            row.prior = 2.0;
        }
    });
    assert!(
        failed.contains("prior x forest: every row has the same target"),
        "{failed}"
    );
    assert!(failed.contains("random forest: "), "{failed}");
}

#[test]
fn fewer_rows_than_clusters_and_odd_recipes_are_refused() {
    let mut table = profile(0.02, 1);
    table.rows.truncate(10);
    let refused = |recipe: Recipe| run(&table, &recipe).unwrap_err();
    let clusters = Recipe {
        clusters: 11..=12,
        folds: 2,
        ..recipe()
    };
    assert_eq!(
        refused(clusters),
        TrainError::TooFewRows {
            rows: 10,
            clusters: 11
        }
    );
    let odd = [
        Recipe {
            families: Vec::new(),
            ..recipe()
        },
        Recipe {
            families: vec![Family::Linear; 2],
            ..recipe()
        },
        Recipe {
            clusters: 0..=4,
            ..recipe()
        },
        Recipe {
            folds: 1,
            ..recipe()
        },
        Recipe {
            threshold: 1.5,
            ..recipe()
        },
    ];
    for recipe in odd {
        assert!(matches!(refused(recipe), TrainError::Recipe { .. }));
    }
}

/// A prior that is right is the model: what is fitted to noise is worse.
#[test]
fn a_prior_that_is_right_is_chosen() {
    for seed in [7, 8, 9] {
        let mut table = profile(0.0, seed);
        let mut draws = Draws(seed);
        for row in &mut table.rows {
            row.seconds = row.prior * (0.02 * draws.normal()).exp();
        }
        let recipe = Recipe {
            families: vec![Family::Prior, Family::PriorConstant, Family::PriorLinear],
            ..recipe()
        };
        let trained = run(&table, &recipe).unwrap();
        let validation = &trained.validation;
        assert_eq!(validation.chosen().unwrap().family, Family::Prior);
        assert_eq!(trained.fitted.predict(&[], 3.5), 3.5);
        let pairs = table.rows.iter().map(|row| (row.seconds, row.prior));
        let pairs: Vec<_> = pairs.collect();
        assert_eq!(validation.chosen().unwrap().accuracy, Accuracy::of(&pairs));
        assert_eq!(validation.poor(), None);
    }
}

/// Where every prediction is far off, the model says so.
#[test]
fn a_bad_model_is_known_as_one() {
    let mut table = profile(0.0, 5);
    let mut draws = Draws(6);
    for row in &mut table.rows {
        row.seconds = row.prior * (1.5 * draws.normal()).exp();
    }
    let recipe = Recipe {
        families: vec![Family::Prior, Family::PriorConstant],
        ..recipe()
    };
    let trained = run(&table, &recipe).unwrap();
    let poor = trained.validation.poor().unwrap();
    assert_eq!(poor, trained.validation.chosen().unwrap().accuracy.mape);
    assert!(poor > 0.25, "{poor}");
}

/// After the deadline only the prior, which takes no fit, is a candidate.
#[test]
fn a_deadline_leaves_families_out() {
    let recipe = Recipe {
        families: Family::ALL.to_vec(),
        deadline: Some(std::time::Instant::now()),
        ..recipe()
    };
    let trained = run(&profile(0.02, 1), &recipe).unwrap();
    let families: Vec<Family> = trained
        .validation
        .candidates
        .iter()
        .map(|c| c.family)
        .collect();
    assert_eq!(families, [Family::Prior]);
    assert_eq!(trained.validation.failed.len(), Family::ALL.len() - 1);
    assert!(
        trained
            .validation
            .failed
            .iter()
            .all(|failed| failed.is_late())
    );
}

/// There are no more folds than configurations.
#[test]
fn few_configurations_have_fewer_folds() {
    for (rows, folds) in [(6, 3), (10, 5), (40, 10)] {
        let mut table = profile(0.02, 1);
        table.rows.truncate(rows);
        let recipe = Recipe {
            families: vec![Family::Prior],
            ..recipe()
        };
        assert_eq!(run(&table, &recipe).unwrap().validation.folds, folds);
    }
}
