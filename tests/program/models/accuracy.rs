//! Accuracy of models on runs that they were not trained on.

use pdawl_api::model::evaluate::evaluate;
use pdawl_profiler::Sample;
use pdawl_profiler::bundle::Bundle;
use pdawl_profiler::dataset;
use pdawl_profiler::train::{Family, Recipe};
use predicates::prelude::*;
use predicates::str::contains;

use super::with_model;
use crate::command::Home;
use crate::synthetic_models::{machine, trained};

#[test]
fn held_out_runs_show_how_good_a_model_is() {
    let home = with_model();
    home.pdawl(
        "profile stencil --machine k40 --sizes 700,2900,8100,27000 --repeats 1 \
         --configurations 30 --out held.csv",
    )
    .assert()
    .success();
    let report = home.json("model check k40 --machine k40 --dataset held.csv");
    assert_eq!(report["schema"], "pdawl-model-check/1");
    assert_eq!(report["fits"]["fits"], true);
    assert_eq!(report["held_out"]["simulated"], true);
    let groups = report["held_out"]["groups"].as_array().unwrap();
    assert_eq!(groups.len(), 2);
    for group in groups {
        let mape = group["model"]["mape"].as_f64().unwrap();
        assert!(mape < 0.03, "{group}");
        for baseline in &group["baselines"].as_array().unwrap()[1..] {
            assert!(
                mape < baseline["accuracy"]["mape"].as_f64().unwrap(),
                "{baseline}"
            );
        }
        assert_eq!(group["rows"], 30);
        let outside = group["outside"].as_u64().unwrap();
        assert!(
            outside > 0 && outside < 30,
            "27000 points are beyond: {outside}"
        );
    }
    home.pdawl("model check k40 --machine k40 --dataset held.csv")
        .assert()
        .success()
        .stdout(contains("held.csv of k40 simulated").and(contains("MAPE (simulated)")));
}

/// Errors on held-out runs for each kind of device: the model's, and the smallest
/// of the baselines'.
fn errors(home: &Home, model: &str, machine: &str) -> Vec<(f64, f64)> {
    let line = format!("model check {model} --machine {machine} --dataset {machine}-held.csv");
    let report = home.json(&line);
    (report["held_out"]["groups"].as_array().unwrap().iter())
        .map(|group| {
            let baselines = group["baselines"].as_array().unwrap()[1..].iter();
            let least = baselines.map(|b| b["accuracy"]["mape"].as_f64().unwrap());
            (
                group["model"]["mape"].as_f64().unwrap(),
                least.fold(f64::INFINITY, f64::min),
            )
        })
        .collect()
}

#[test]
fn shipped_models_are_accurate_between_and_beyond_and_carry_over() {
    let home = Home::new();
    for machine in ["k20-32", "k20-40", "k40", "titan"] {
        let sizes = "--sizes 700,2900,8100,17000,27000 --configurations 40 --repeats 1";
        let out = format!("{machine}-held.csv");
        home.pdawl(&format!(
            "profile stencil --machine {machine} {sizes} --out {out}"
        ))
        .assert()
        .success();
        let native = errors(&home, machine, machine);
        assert_eq!(native.len(), 2);
        for (error, baseline) in &native {
            assert!(*error < 0.03 && error < baseline, "{machine}: {native:?}");
        }
        if machine == "k20-32" {
            continue;
        }
        home.json(&format!(
            "model adapt k20-32 --machine {machine} --name adapted"
        ));
        let adapted = errors(&home, "adapted", machine);
        for ((adapted, _), (native, _)) in adapted.iter().zip(&native) {
            assert!(
                *adapted <= 1.5 * native,
                "{machine}: {adapted} against {native}"
            );
        }
    }
}

/// Profiles simulated configurations of `k40`.
fn profiled(home: &Home, sizes: &str, out: &str) -> Vec<Sample> {
    let line = format!("profile stencil --machine k40 {sizes} --out {out}");
    home.pdawl(&line).assert().success();
    dataset::read(&home.path(out)).unwrap().samples
}

fn fitted(samples: &[Sample]) -> Bundle {
    let recipe = Recipe {
        families: vec![Family::PriorConstant, Family::PriorLinear, Family::Linear],
        folds: 5,
        ..Recipe::default()
    };
    trained(&machine("k40"), samples, &recipe)
}

#[test]
fn one_slow_run_in_twenty_costs_no_more_than_a_point() {
    let home = Home::new();
    let clean = profiled(
        &home,
        "--configurations 40 --repeats 2 --max-size 16000",
        "clean.csv",
    );
    let held = profiled(
        &home,
        "--sizes 900,3700,11000,21000 --configurations 40 --repeats 1",
        "held.csv",
    );
    let mut disturbed = clean.clone();
    let mut slowed = 0;
    for (place, sample) in disturbed.iter_mut().enumerate() {
        if (place * 7919) % 20 == 3 {
            sample.seconds *= 5.0;
            slowed += 1;
        }
    }
    assert_eq!(slowed, clean.len() / 20);
    let [clean, disturbed] =
        [&clean, &disturbed].map(|runs| evaluate(&fitted(runs), &held).unwrap());
    for (clean, disturbed) in clean.iter().zip(&disturbed) {
        let (before, after) = (clean.model.mape, disturbed.model.mape);
        assert!(
            after < before + 0.01,
            "{}: {before} became {after}",
            clean.kind
        );
        assert!(after < 0.04, "{}: {after}", clean.kind);
    }
}
