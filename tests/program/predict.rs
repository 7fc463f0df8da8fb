//! `pdawl predict` with a model of synthetic runs.

use pdawl_api::machine::MachineFile;
use predicates::prelude::*;
use predicates::str::contains;
use serde_json::Value;

use crate::command::Home;
use crate::synthetic_models::machine;

fn prediction<'a>(report: &'a Value, strategy: &str) -> &'a Value {
    let all = report["predictions"].as_array().unwrap();
    all.iter().find(|p| p["strategy"] == strategy).unwrap()
}

#[test]
fn predictions_are_what_runs_take_and_have_their_plans() {
    let home = Home::with_k40_model("learned");
    let grid = "stencil --size 20000 --machine k40 --gpu-memory 2GiB";
    let report = home.json(&format!("predict {grid}"));
    assert_eq!(report["schema"], "pdawl-predict/1");
    assert_eq!(report["machine"]["name"], "k40");
    assert_eq!(report["machine"]["simulated"], true);
    assert_eq!(report["model"]["name"], "learned");
    assert_eq!(report["workload"]["parameters"]["steps"], 30);
    for strategy in ["cpu", "gpu"] {
        let run = home.json(&format!("run {grid} --strategy {strategy} --noise 0"));
        let (ran, predicted) = (&run["seconds"], prediction(&report, strategy));
        let error = predicted["seconds"].as_f64().unwrap() / ran.as_f64().unwrap() - 1.0;
        assert!(error.abs() < 0.02, "{strategy}: {error}");
    }
    let best = prediction(&report, "pdawl");
    let seconds = |p: &Value| p["seconds"].as_f64().unwrap();
    assert!(seconds(best) < 0.9 * seconds(prediction(&report, "cpu")));
    assert!(seconds(best) < 0.9 * seconds(prediction(&report, "gpu")));
    let plan = &best["plan"];
    assert_eq!(plan["devices"], serde_json::json!(["host", "gpu0"]));
    let sum = |list: &str| -> u64 {
        let units = plan[list].as_array().unwrap().iter();
        units.map(|u| u.as_u64().unwrap()).sum()
    };
    assert_eq!(sum("held") + sum("streamed") + sum("pooled"), 20_000);
    assert_eq!(best["outside"], serde_json::json!([]));
    home.pdawl(&format!("predict {grid}"))
        .assert()
        .success()
        .stdout(contains(
            "stencil 20000 x 20000 f64, 30 steps on k40 simulated",
        ));
}

#[test]
fn what_the_model_never_saw_is_reported() {
    let home = Home::with_k40_model("learned");
    let line = "predict stencil --size 30000 --machine k40 --steps 2";
    let report = home.json(line);
    let outside = prediction(&report, "cpu")["outside"].as_array().unwrap();
    let units = outside.iter().find(|o| o["feature"] == "known.units_count");
    let units = units.unwrap();
    assert_eq!(
        (&units["value"], &units["max"]),
        (&30_000.0.into(), &24_000.0.into())
    );
    home.pdawl(line).assert().success().stdout(
        contains("cpu: the model has not seen known.units_count 30000 (but 666 to 24000)")
            .and(contains("simulated")),
    );
}

#[test]
fn what_cannot_be_predicted_says_what_to_do() {
    let home = Home::with_k40_model("learned");
    for (line, parts) in [
        (
            "predict stencil --machine laptop",
            [
                "no model of machine laptop",
                "pdawl train --machine laptop,",
            ],
        ),
        (
            "predict stencil --machine laptop --dims 3 --precision f32",
            [
                "no model of machine laptop",
                "pdawl train --machine laptop --dims 3 --precision f32,",
            ],
        ),
        (
            "predict spmv --matrix banded:2000,3 --machine k40 --precision f32",
            [
                "nothing for spmv-f32 on cpu; it has stencil5-f64 on cpu",
                "pdawl train --machine k40 --workload spmv --precision f32\n",
            ],
        ),
        (
            "predict stencil --machine k40 --model other",
            ["no model is called `other`", "learned"],
        ),
        (
            "predict stencil --machine k40 --size 40000",
            ["host memory", "--size"],
        ),
        ("predict stencil --machine nowhere", ["nowhere", "k40"]),
    ] {
        let words = contains(parts[0]).and(contains(parts[1]));
        home.pdawl(line).assert().failure().code(1).stderr(words);
    }
    // A model of another machine can be named; the output says so.
    home.pdawl("predict stencil --machine titan --model learned")
        .assert()
        .success()
        .stdout(contains("model learned is of machine k40"));
    // A machine without GPUs gets no prediction for one.
    let cores = MachineFile {
        name: "cores".into(),
        devices: Vec::new(),
        ..machine("k40")
    };
    let path = home.path("cores.toml");
    std::fs::write(&path, cores.to_toml().unwrap()).unwrap();
    let line = format!(
        "predict stencil --model learned --machine {}",
        path.display()
    );
    let report = home.json(&line);
    let strategies: Vec<&Value> = (report["predictions"].as_array().unwrap().iter())
        .map(|p| &p["strategy"])
        .collect();
    assert_eq!(strategies, ["cpu", "pdawl"]);
}
