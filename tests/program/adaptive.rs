//! `pdawl run` and `pdawl bench` with a cost model: when `--adaptive` means PDAWL,
//! when it means DAWL, and what the report says about it.

use pdawl_api::model::DevicePart;
use pdawl_profiler::train::Family;
use predicates::prelude::*;
use predicates::str::contains;
use serde_json::Value;

use crate::command::Home;
use crate::synthetic_models::{machine, model, samples};

/// Whether a note of the report contains these words.
fn notes(report: &Value, words: &str) -> bool {
    let notes = report["notes"].as_array().unwrap();
    notes
        .iter()
        .any(|note| note.as_str().unwrap().contains(words))
}

const RUN: &str = "run stencil --size 16384 --machine k40 --noise 0";

/// A run on a machine for which no model is shipped.
const UNKNOWN: &str = "run stencil --size 4096 --machine laptop --noise 0 --steps 3";

#[test]
fn adaptive_is_pdawl_where_a_model_fits() {
    let home = Home::with_k40_model("learned");
    let report = home.json(&format!("{RUN} --adaptive"));
    assert_eq!(report["policy"], "pdawl");
    let model = &report["details"]["model"];
    assert_eq!(model["name"], "learned");
    assert_eq!(
        (&model["replans"], &model["handed_over"]),
        (&0.into(), &Value::Null)
    );
    let predicted = model["predicted_step_seconds"].as_f64().unwrap();
    let steps = report["details"]["steps"].as_array().unwrap();
    let expected = model["expected_step_seconds"].as_array().unwrap();
    assert_eq!(expected.len(), steps.len());
    for (step, expected) in steps.iter().zip(expected) {
        let measured = step["seconds"].as_f64().unwrap();
        assert!((measured / predicted - 1.0).abs() < 0.03, "{step}");
        assert!((measured / expected.as_f64().unwrap() - 1.0).abs() < 0.03);
    }
    // The shares planned by the model are already right, so no unit moves.
    assert!(steps.iter().all(|step| step["moved"] == 0));
    home.pdawl(RUN)
        .assert()
        .success()
        .stdout(contains("Model").and(contains("learned: first step predicted")));
}

/// Such a trial ends badly by the fault, and not since streams cost more.
#[test]
fn a_fault_in_a_trial_of_streams_undoes_its_decision() {
    let home = Home::new();
    let last = |fault: u32| {
        let report = home.json(&format!(
            "run stencil --size 10000 --steps 70 --superstep 1 --machine v100x2 --noise 0 \
             --gpu-memory 300MiB --fault host:slow:8@{fault}"
        ));
        let steps = report["details"]["steps"].as_array().unwrap();
        steps[69]["seconds"].as_f64().unwrap()
    };
    assert!(last(10) < 1.05 * last(0), "{} {}", last(10), last(0));
}

#[test]
fn it_is_dawl_where_none_does_and_says_why() {
    let home = Home::with_k40_model("learned");
    let none = Home::new();
    for (home, line, why) in [
        (
            &none,
            UNKNOWN,
            "no model of machine laptop: pdawl train --machine laptop",
        ),
        (&home, UNKNOWN, "no model of machine laptop"),
        (
            &none,
            "run stencil --size 200 --precision f32 --machine laptop --steps 3",
            "no model of machine laptop: pdawl train --machine laptop --precision f32",
        ),
        (
            &home,
            "run spmv --matrix banded:2000,3 --precision f32 --machine k40 --steps 3",
            "has nothing for spmv-f32 on cpu; it has stencil5-f64 on cpu, stencil5-f64 on gpu. \
             Profile and train that too: pdawl train --machine k40 --workload spmv --precision f32",
        ),
    ] {
        let report = home.json(line);
        assert_eq!(report["policy"], "dawl");
        assert_eq!(report["details"]["model"], Value::Null);
        assert!(notes(&report, why), "{why}: {:#}", report["notes"]);
    }
}

#[test]
fn the_shipped_models_serve_and_a_users_own_goes_before() {
    let none = Home::new();
    for machine in ["k20-32", "k20-40", "k40", "titan"] {
        let line = format!("run stencil --size 9000 --machine {machine} --noise 0 --steps 5");
        let report = none.json(&line);
        assert_eq!(report["policy"], "pdawl");
        assert_eq!(report["details"]["model"]["name"], machine);
    }
    let own = Home::with_k40_model("learned").json(RUN);
    assert_eq!(own["details"]["model"]["name"], "learned");
}

#[test]
fn who_asks_for_a_model_gets_it_or_the_reason() {
    let home = Home::with_k40_model("learned");
    let none = Home::new();
    for (home, line, status, part) in [
        (
            &none,
            format!("{UNKNOWN} --strategy pdawl"),
            1,
            "needs a cost model, and there is no model of machine laptop",
        ),
        (
            &home,
            format!("{RUN} --model lab"),
            1,
            "no model is called `lab`",
        ),
        (
            &home,
            "run stencil --size 200 --dims 3 --machine k40 --model learned".to_owned(),
            1,
            "has nothing for stencil7-f64",
        ),
        (
            &home,
            format!("{RUN} --strategy dawl --model learned"),
            2,
            "--model is for strategy pdawl, which --strategy does not name",
        ),
    ] {
        home.pdawl(&line)
            .assert()
            .code(status)
            .stderr(contains(part));
    }
    let foreign = "run stencil --size 8192 --machine titan --model learned --noise 0";
    let report = home.json(foreign);
    assert_eq!(report["policy"], "pdawl");
    assert!(notes(&report, "model learned is of machine k40"));
}

#[test]
fn a_change_is_planned_for_anew() {
    let home = Home::with_k40_model("learned");
    let report = home.json(&format!("{RUN} --fault gpu0:slow:3@10"));
    let model = &report["details"]["model"];
    assert_eq!(model["replans"], 1);
    assert_eq!(model["handed_over"], Value::Null);
    assert_eq!(model["devices"][1]["device"], "gpu0");
    let slowdown = model["devices"][1]["slowdown"].as_f64().unwrap();
    assert!((slowdown - 3.0).abs() < 0.2, "{slowdown}");
    let lost = home.json(&format!("{RUN} --fault gpu0:lost@3"));
    assert_eq!(
        lost["details"]["model"]["devices"][1]["slowdown"],
        Value::Null
    );
}

#[test]
fn the_users_cores_are_the_plans() {
    let home = Home::with_k40_model("learned");
    let report = home.json(&format!("{RUN} --devices host:3,gpu0"));
    assert_eq!(report["policy"], "pdawl");
    assert_eq!(report["machine"]["devices"][0]["compute_units"], 3);
}

#[test]
fn bench_compares_it_with_dawl() {
    let home = Home::with_k40_model("learned");
    let bench = |machine: &str| {
        format!(
            "bench --vary strategy=dawl,pdawl --repeats 1 run stencil --size 4096 \
             --machine {machine} --steps 5 --noise 0"
        )
    };
    let runs = home.json(&bench("k40"))["runs"].clone();
    let policy = |run: &Value| run["report"]["policy"].as_str().unwrap().to_owned();
    let policies: Vec<String> = runs.as_array().unwrap().iter().map(policy).collect();
    assert_eq!(policies, ["dawl", "pdawl"]);
    // What ran before the failure is kept.
    home.pdawl(&bench("laptop"))
        .assert()
        .code(1)
        .stdout(contains("dawl"))
        .stderr(contains("no model of machine laptop"));
}

/// A home with a model of `k40` that predicts half the speed when all cores are
/// used together.
fn crowded() -> Home {
    let machine = machine("k40");
    let samples = samples(&machine, |case| match case.part {
        DevicePart::Host { workers: 8, .. } => 2.0,
        DevicePart::Discrete { queues: 2, .. } => 1.1,
        _ => 1.0,
    });
    Home::with(&model(&machine, &samples, &[Family::PriorForest]))
}

#[test]
fn a_plan_may_leave_cores_out_unless_the_user_has_chosen_them() {
    let home = crowded();
    let line = "--size 16384 --gpu-memory 1GiB --steps 5 --noise 0 --machine k40 --superstep 1";
    let report = home.json(&format!("run stencil {line}"));
    assert_eq!(report["policy"], "pdawl");
    let cores = |report: &Value| report["machine"]["devices"][0]["compute_units"].as_u64();
    assert!(cores(&report).unwrap() < 8);
    assert!(notes(&report, "of 8 cores, as model learned plans"));
    let chosen = home.json(&format!("run stencil {line} --devices host,gpu0"));
    assert_eq!(cores(&chosen), Some(8));
    // The other strategies use all cores.
    let dawl = home.json(&format!("run stencil {line} --strategy dawl"));
    assert_eq!(cores(&dawl), Some(8));
}
