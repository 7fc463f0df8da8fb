//! Nothing of the rows held out reaches the model that predicts them.

use std::sync::atomic::AtomicBool;

use super::comparison::Comparison;
use super::{Family, Recipe, *};
use crate::table::{Row, Table};
use crate::validate::Folds;

/// Sizes and workers, each with two repeats, and a feature that means nothing.
fn table() -> Table {
    let mut rows = Vec::new();
    for size in (1..=9).map(|i| 100.0 * f64::from(i * i)) {
        for workers in [1.0, 2.0, 4.0] {
            for repeat in [0.0, 1.0] {
                let wave = (1.7 * rows.len() as f64).sin();
                rows.push(Row {
                    group: format!("{size} {workers}"),
                    values: vec![size, workers, size * workers, wave, size / workers],
                    prior: size / workers,
                    baselines: Vec::new(),
                    seconds: (1.0 + 0.02 * wave) * (size / workers + 20.0 * workers + repeat),
                });
            }
        }
    }
    Table {
        names: ["size", "workers", "product", "wave", "part"]
            .map(String::from)
            .to_vec(),
        baselines: Vec::new(),
        parts: Vec::new(),
        complete: false,
        rows,
    }
}

fn recipe(family: Family) -> Recipe {
    Recipe {
        families: vec![family],
        clusters: 2..=4,
        folds: 4,
        search_rows: 30,
        ..Recipe::default()
    }
}

/// The models that are fitted without each fold, as they would be kept.
fn models(table: &Table, folds: &Folds, recipe: &Recipe) -> Vec<String> {
    let stop = AtomicBool::new(false);
    let comparison = Comparison::new(table, recipe, folds, None, &stop).unwrap();
    let fit = |fold| comparison.model(fold, recipe.families[0], &stop).unwrap();
    let text = |fold| serde_json::to_string(&fit(fold).fitted).unwrap();
    (0..folds.count()).map(text).collect()
}

#[test]
fn rows_held_out_cannot_change_the_model_that_predicts_them() {
    let before = table();
    let groups: Vec<&str> = before.rows.iter().map(|row| row.group.as_str()).collect();
    let folds = Folds::grouped(&groups, 4, 1).unwrap();
    for family in Family::ALL {
        let recipe = recipe(family);
        let fitted = models(&before, &folds, &recipe);
        for fold in 0..folds.count() {
            // The rows held out change places and scales; one feature tells
            // their seconds, which would make it the best of its cluster.
            let mut after = before.clone();
            let held_out = folds.held_out(fold);
            for (&row, &from) in held_out.iter().zip(held_out.iter().rev()) {
                after.rows[row].values = before.rows[from].values.clone();
                after.rows[row].seconds = 1e3 * before.rows[from].seconds;
                after.rows[row].values[3] = after.rows[row].seconds;
            }
            let refitted = models(&after, &folds, &recipe);
            for other in 0..folds.count() {
                let same = fitted[other] == refitted[other];
                // The other folds' models did see these rows.
                assert_eq!(same, other == fold, "{family}, fold {fold}, model {other}");
            }
        }
    }
}

#[test]
fn parts_that_make_up_the_whole_are_seen_by_their_sum_alone() {
    let mut table = table();
    // The last feature tells the time itself, as a part of the prior.
    for row in &mut table.rows {
        *row.values.last_mut().unwrap() = row.seconds / row.prior;
    }
    table.parts = vec![table.names.len() - 1];
    let groups: Vec<&str> = table.rows.iter().map(|row| row.group.as_str()).collect();
    let folds = Folds::grouped(&groups, 4, 1).unwrap();
    for complete in [false, true] {
        table.complete = complete;
        for family in Family::ALL {
            let fitted = models(&table, &folds, &recipe(family));
            let sees = fitted.iter().any(|model| model.contains("\"part\""));
            let may = family == Family::PriorParts;
            assert!(!sees || may || !complete, "{family}");
            assert!(sees || !may, "{family}");
        }
    }
    let fitted = models(&table, &folds, &recipe(Family::PriorParts));
    assert!(fitted.iter().all(|model| model.contains("\"whole\":false")));
}

#[test]
fn results_come_in_order_and_progress_is_whole() {
    let mut seen = Vec::new();
    let stop = AtomicBool::new(false);
    let squares = run(2, 20, |n| Some(n * n), &mut |a, b| seen.push((a, b)), &stop);
    assert_eq!(squares.unwrap(), (0..20).map(|n| n * n).collect::<Vec<_>>());
    assert_eq!(seen, (0..=20).map(|n| (n, 20)).collect::<Vec<_>>());
}

#[test]
fn what_stops_a_job_stops_all() {
    let stop = AtomicBool::new(false);
    let started = std::sync::atomic::AtomicUsize::new(0);
    let job = |n| {
        started.fetch_add(1, Ordering::Relaxed);
        if n == 3 {
            stop.store(true, Ordering::Relaxed);
            return None;
        }
        Some(n)
    };
    let result = run(1, 100, job, &mut |_, _| {}, &stop);
    assert_eq!(result, Err(TrainError::Interrupted));
    assert!(started.load(Ordering::Relaxed) < 100);
}
