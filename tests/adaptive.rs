//! `pdawl run` and `pdawl bench` with a cost model, as their users meet them.

mod json_schema;
mod learned;

use std::path::Path;
use std::time::Duration;

use assert_cmd::Command;
use learned::{machine, model, samples};
use pdawl::model::Part;
use pdawl_profiler::train::Family;
use predicates::prelude::*;
use predicates::str::contains;
use serde_json::Value;
use tempfile::TempDir;

/// A folder with a model of `k40` that has learned what physics says.
fn models() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let machine = machine("k40");
    let samples = samples(&machine, |_| 1.0);
    let model = model(&machine, &samples, &[Family::PriorConstant]);
    model.write(&folder.path().join("learned.json")).unwrap();
    folder
}

/// `pdawl` with these words, and with the models of a folder.
fn pdawl(models: &Path, line: &str) -> Command {
    let mut command = Command::cargo_bin("pdawl").unwrap();
    command.args(line.split_whitespace());
    command.env("PDAWL_MACHINES", "/nonexistent/pdawl-machines");
    command.env("PDAWL_MODELS", models);
    command.timeout(Duration::from_secs(120));
    command
}

fn json(models: &Path, line: &str) -> Value {
    let mut command = pdawl(models, &format!("{line} --format json"));
    let output = command.assert().success().get_output().stdout.clone();
    serde_json::from_slice(&output).expect("JSON on standard output")
}

/// Whether a note has these words.
fn notes(report: &Value, words: &str) -> bool {
    let notes = report["notes"].as_array().unwrap();
    notes
        .iter()
        .any(|note| note.as_str().unwrap().contains(words))
}

const RUN: &str = "run stencil --size 16384 --machine k40 --noise 0";

/// A machine of which no model ships.
const UNKNOWN: &str = "run stencil --size 4096 --machine laptop --noise 0 --steps 3";

#[test]
fn adaptive_is_pdawl_where_a_model_fits() {
    let folder = models();
    let report = json(folder.path(), &format!("{RUN} --adaptive"));
    let found = json_schema::violations(&json_schema::report_schema(), &report);
    assert!(found.is_empty(), "{found:#?}");
    assert_eq!(report["strategy"], "pdawl");
    let model = &report["model"];
    assert_eq!(model["name"], "learned");
    assert_eq!(
        (&model["replans"], &model["handed_over"]),
        (&0.into(), &Value::Null)
    );
    let predicted = model["predicted_step_seconds"].as_f64().unwrap();
    let steps = report["steps"].as_array().unwrap();
    let expected = model["expected_step_seconds"].as_array().unwrap();
    assert_eq!(expected.len(), steps.len());
    for (step, expected) in steps.iter().zip(expected) {
        let measured = step["seconds"].as_f64().unwrap();
        assert!((measured / predicted - 1.0).abs() < 0.03, "{step}");
        assert!((measured / expected.as_f64().unwrap() - 1.0).abs() < 0.03);
    }
    // Nobody moves what the model has put in its place.
    assert!(steps.iter().all(|step| step["moved"] == 0));
    pdawl(folder.path(), RUN)
        .assert()
        .success()
        .stdout(contains("Model").and(contains("learned: first step predicted")));
}

#[test]
fn it_is_dawl_where_none_does_and_says_why() {
    let folder = models();
    let none = tempfile::tempdir().unwrap();
    for (models, line, why) in [
        (
            none.path(),
            UNKNOWN,
            "no model of machine laptop: pdawl train --machine laptop",
        ),
        (folder.path(), UNKNOWN, "no model of machine laptop"),
        (
            none.path(),
            "run stencil --size 200 --precision f32 --machine laptop --steps 3",
            "no model of machine laptop: pdawl train --machine laptop --precision f32",
        ),
        (
            folder.path(),
            "run stencil --size 200 --dims 3 --machine k40 --steps 3",
            "has nothing for stencil7-f64 on cpu; it has stencil5-f64 on cpu, stencil5-f64 on gpu. \
             Profile and train that too: pdawl train --machine k40 --dims 3",
        ),
    ] {
        let report = json(models, line);
        assert_eq!(report["strategy"], "dawl");
        assert_eq!(report["model"], Value::Null);
        assert!(notes(&report, why), "{why}: {:#}", report["notes"]);
    }
    let wished = json(folder.path(), &format!("{RUN} --no-model"));
    assert_eq!(wished["strategy"], "dawl");
    assert!(!notes(&wished, "DAWL"), "{:#}", wished["notes"]);
}

#[test]
fn the_shipped_models_serve_and_a_users_own_goes_before() {
    let none = tempfile::tempdir().unwrap();
    for machine in ["k20-32", "k20-40", "k40", "titan"] {
        let line = format!("run stencil --size 9000 --machine {machine} --noise 0 --steps 5");
        let report = json(none.path(), &line);
        assert_eq!(report["strategy"], "pdawl");
        assert_eq!(report["model"]["name"], machine);
    }
    let own = json(models().path(), RUN);
    assert_eq!(own["model"]["name"], "learned");
}

#[test]
fn who_asks_for_a_model_gets_it_or_the_reason() {
    let folder = models();
    let none = tempfile::tempdir().unwrap();
    for (models, line, status, part) in [
        (
            none.path(),
            format!("{UNKNOWN} --strategy pdawl"),
            1,
            "needs a cost model, and there is no model of machine laptop",
        ),
        (
            folder.path(),
            format!("{RUN} --model lab"),
            1,
            "no model is called `lab`",
        ),
        (
            folder.path(),
            "run stencil --size 200 --dims 3 --machine k40 --model learned".to_owned(),
            1,
            "has nothing for stencil7-f64",
        ),
        (
            folder.path(),
            format!("{RUN} --strategy pdawl --no-model"),
            2,
            "--no-model says that there is none",
        ),
        (
            folder.path(),
            format!("{RUN} --strategy dawl --model learned"),
            2,
            "--model is for strategy pdawl, and --strategy says dawl",
        ),
        (
            folder.path(),
            format!("{RUN} --no-model --model learned"),
            2,
            "cannot be used with",
        ),
    ] {
        pdawl(models, &line)
            .assert()
            .code(status)
            .stderr(contains(part));
    }
    let foreign = "run stencil --size 8192 --machine titan --model learned --noise 0";
    let report = json(folder.path(), foreign);
    assert_eq!(report["strategy"], "pdawl");
    assert!(notes(&report, "model learned is of machine k40"));
}

#[test]
fn a_change_is_planned_for_anew() {
    let folder = models();
    let report = json(folder.path(), &format!("{RUN} --fault gpu0:slow:3@10"));
    let model = &report["model"];
    assert_eq!(model["replans"], 1);
    assert_eq!(model["handed_over"], Value::Null);
    assert_eq!(model["devices"][1]["device"], "gpu0");
    let slowdown = model["devices"][1]["slowdown"].as_f64().unwrap();
    assert!((slowdown - 3.0).abs() < 0.2, "{slowdown}");
    let lost = json(folder.path(), &format!("{RUN} --fault gpu0:lost@3"));
    assert_eq!(lost["model"]["devices"][1]["slowdown"], Value::Null);
}

#[test]
fn the_users_cores_are_the_plans() {
    let folder = models();
    let report = json(folder.path(), &format!("{RUN} --devices host:3,gpu0"));
    assert_eq!(report["strategy"], "pdawl");
    assert_eq!(report["machine"]["devices"][0]["compute_units"], 3);
}

#[test]
fn bench_compares_it_with_dawl() {
    let folder = models();
    let bench = |machine: &str| {
        format!("bench stencil --size 4096 --machine {machine} --steps 5 --repeats 1 --noise 0")
    };
    let strategies = |machine: &str| -> Vec<String> {
        let results = json(folder.path(), &bench(machine))["results"].clone();
        let name = |result: &Value| result["strategy"].as_str().unwrap().to_owned();
        results.as_array().unwrap().iter().map(name).collect()
    };
    let all = ["cpu", "gpu", "guided", "dawl", "pdawl", "oracle"];
    assert_eq!(strategies("k40"), all);
    assert_eq!(
        strategies("laptop"),
        ["cpu", "gpu", "guided", "dawl", "oracle"]
    );
    pdawl(
        folder.path(),
        &format!("{} --strategies dawl,pdawl", bench("laptop")),
    )
    .assert()
    .code(1)
    .stderr(contains("no model of machine laptop"));
}

/// A model of `k40` that has learned that all cores together are slow.
fn crowded() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let machine = machine("k40");
    let samples = samples(&machine, |case| match case.part {
        Part::Host { workers: 8, .. } => 2.0,
        Part::Own { queues: 2, .. } => 1.1,
        _ => 1.0,
    });
    let model = model(&machine, &samples, &[Family::PriorForest]);
    model.write(&folder.path().join("learned.json")).unwrap();
    folder
}

#[test]
fn a_plan_may_leave_cores_out_unless_the_user_has_chosen_them() {
    let folder = crowded();
    let line = "--size 16384 --gpu-memory 1GiB --steps 5 --noise 0 --machine k40";
    let report = json(folder.path(), &format!("run stencil {line}"));
    assert_eq!(report["strategy"], "pdawl");
    let cores = |report: &Value| report["machine"]["devices"][0]["compute_units"].as_u64();
    assert!(cores(&report).unwrap() < 8);
    assert!(notes(&report, "of 8 cores, as model learned plans"));
    let chosen = json(
        folder.path(),
        &format!("run stencil {line} --devices host,gpu0"),
    );
    assert_eq!(cores(&chosen), Some(8));
    // Others still have all of them.
    let bench = json(folder.path(), &format!("bench stencil {line} --repeats 1"));
    assert_eq!(cores(&bench), Some(8));
}
