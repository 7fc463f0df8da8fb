//! `pdawl train`: the model it stores, what it cannot train, and Ctrl-C.

use std::fs;
use std::time::Duration;

use pdawl_profiler::bundle::Bundle;
use pdawl_profiler::dataset;
use predicates::prelude::*;
use predicates::str::contains;
use serde_json::Value;

use super::{contents, refuses, with_model};
use crate::command::{Home, interrupt, listening};
use crate::synthetic_models::CODELET;

#[test]
fn training_keeps_a_model_and_says_that_it_is_simulated() {
    let home = Home::new();
    let line = "train --machine k40 --kinds cpu --configurations 10 --repeats 1 --max-size 3000";
    let report = home.json(&format!("{line} --name mine"));
    assert_eq!(report["schema"], "pdawl-train/2");
    assert_eq!(report["model"], "mine");
    assert_eq!(report["simulated"], true);
    assert_eq!(report["measured_now"], 10);
    let group = &report["groups"][0];
    assert_eq!(
        (&group["kind"], &group["codelet"]),
        (&"cpu".into(), &CODELET.into())
    );
    for purpose in ["planning", "explaining"] {
        let validation = &group[purpose]["validation"];
        assert_eq!(validation["rows"], 10, "{purpose}");
        let names: Vec<&str> = (validation["baselines"].as_array().unwrap().iter())
            .map(|baseline| baseline["name"].as_str().unwrap())
            .collect();
        assert_eq!(names, ["naive", "roofline"], "{purpose}");
        let candidates = validation["candidates"].as_array().unwrap();
        assert!(candidates.len() >= 5, "{purpose}");
        assert_eq!(candidates[0]["family"], "prior", "{purpose}");
        // Nothing is chosen whose score is beyond the prior's.
        let chosen = &candidates[validation["chosen"].as_u64().unwrap() as usize];
        let score = |of: &Value| of["score"].as_f64().unwrap();
        assert!(score(chosen) <= score(&candidates[0]), "{purpose}");
    }

    let bundle = Bundle::read(&home.model("mine")).unwrap();
    assert!(bundle.simulated);
    let trained_by = &bundle.provenance.pairs().last().unwrap().1;
    assert!(
        trained_by.starts_with("pdawl train --machine k40"),
        "{trained_by}"
    );
    let left = contents(&home.path("models"));
    assert_eq!(left.len(), 1, "nothing but the model is left");
    home.pdawl("model list").assert().success().stdout(
        contains("mine")
            .and(contains("simulated"))
            .and(contains("stencil5-f64 on cpu")),
    );
    home.pdawl("model show mine")
        .assert()
        .success()
        .stdout(contains("model mine of k40 simulated").and(contains("roofline")));
    let shown = home
        .pdawl("model show mine --format json")
        .assert()
        .success();
    let file = fs::read(home.model("mine")).unwrap();
    assert_eq!(shown.get_output().stdout, file, "the file itself");
}

#[test]
fn what_cannot_be_trained_is_reported_and_leaves_the_model_that_was_there() {
    let home = with_model();
    let few = "train --machine k40 --kinds cpu --configurations 3 --repeats 1 --max-size 2000";
    home.pdawl(few).assert().code(1).stderr(
        contains("no model of stencil5-f64 on cpu")
            .and(contains("3 rows are fewer than the 4 clusters"))
            .and(contains("`pdawl profile stencil --machine k40`")),
    );
    // The first attempt stored its runs, so a second one adds none.
    refuses(&home, few, &["3 rows are fewer than the 4 clusters"]);
    refuses(
        &home,
        "train --machine k40 --no-profile --precision f32",
        &[
            "no run of stencil5-f32 on cpu is among the 3 runs",
            "`pdawl profile stencil --machine k40 --precision f32` with a longer --budget",
        ],
    );
    refuses(
        &home,
        "train --machine titan --no-profile",
        &["nothing was measured on titan", "leave out --no-profile"],
    );
    refuses(
        &home,
        "train --machine titan --budget 1us",
        &["a budget of 1.00 us is too small", "give more time"],
    );
    refuses(
        &home,
        "train --machine k40 --no-profile --name ../k40",
        &["`../k40` cannot name a model"],
    );
}

#[cfg(target_os = "linux")]
#[test]
fn ctrl_c_keeps_the_runs_and_makes_a_model_of_them() {
    let home = with_model();
    let before = fs::read(home.model("k40")).unwrap();
    let line = "train --machine k40 --configurations 60 --max-size 2000";
    let child = listening(home.process(line));
    // Runs are stored before training starts.
    for _ in 0..600 {
        if fs::metadata(home.dataset("k40")).is_ok_and(|file| file.len() > 10_000) {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    interrupt(&child);
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{said}");
    let report = String::from_utf8_lossy(&output.stdout);
    let left = report.contains("the interruption left out") || !report.contains("left out");
    assert!(left, "{report}");
    let kept = dataset::read(&home.dataset("k40")).unwrap().samples;
    assert!(!kept.is_empty());
    assert_ne!(fs::read(home.model("k40")).unwrap(), before);
    let model = Bundle::read(&home.model("k40")).unwrap();
    assert!(model.models.iter().all(|entry| entry.codelet == CODELET));
}

/// A budget is for profiling and fitting together. What it does not suffice for is left
/// out and named.
#[test]
fn a_small_budget_is_kept() {
    let home = Home::new();
    let report = home.json("train --machine k40 --kinds cpu --budget 2s");
    assert!(report["seconds"].as_f64().unwrap() < 60.0);
    let notes = report["notes"].to_string();
    let validation = &report["groups"][0]["planning"]["validation"];
    let failed = validation["failed"].as_array().unwrap();
    assert!(
        failed.is_empty() || notes.contains("the budget left no time for"),
        "{notes}"
    );
    let candidates = validation["candidates"].as_array().unwrap();
    assert_eq!(candidates[0]["family"], "prior");
}

/// Few configurations are validated with fewer folds.
#[test]
fn few_configurations_get_fewer_folds() {
    let home = Home::new();
    for (configurations, folds) in [(4, 4), (6, 6), (12, 10)] {
        let report = home.json(&format!(
            "train --machine k40 --kinds cpu --configurations {configurations} --repeats 2 \
             --max-size 2000 --fresh"
        ));
        let validation = &report["groups"][0]["planning"]["validation"];
        assert_eq!(validation["folds"], folds, "{configurations}");
    }
}
