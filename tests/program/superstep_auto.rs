//! `pdawl run stencil --superstep auto`, the default where GPUs do not hold the grid: how many steps
//! there are between two barriers, and what the run begins with.

use serde_json::Value;

use crate::command::Home;

fn superstep(report: &Value) -> u64 {
    report["workload"]["parameters"]["superstep"]
        .as_u64()
        .unwrap()
}

/// The plan that chose the number of steps is the first division, too: probes of as many steps
/// would take longer than the run.
#[test]
fn an_adaptive_run_begins_with_the_plan() {
    let home = Home::new();
    let run = "run stencil --machine h200 --size 9000 --gpu-memory 512MiB --steps 32 --adaptive";
    let planned = home.json(run);
    assert!(superstep(&planned) > 1, "{planned}");
    assert_eq!(planned["policy"], "pdawl");
    let model = &planned["details"]["model"];
    assert_eq!(model["name"], "machine h200");
    let seconds = |report: &Value| report["seconds"].as_f64().unwrap();
    let first = planned["details"]["steps"][0]["seconds"].as_f64().unwrap();
    let predicted = model["predicted_step_seconds"].as_f64().unwrap();
    assert!(
        (first / predicted - 1.0).abs() < 0.1,
        "{first} and {predicted}"
    );
    for fixed in [1, 8, 32] {
        let fixed = home.json(&format!("{run} --superstep {fixed}"));
        assert_eq!(fixed["details"]["model"], Value::Null);
        assert!(seconds(&planned) < 1.01 * seconds(&fixed), "{fixed}");
    }
    let computed = "run stencil --machine k40 --size 300 --steps 32 --adaptive --superstep auto";
    let held = home.json(&format!("{computed} --verify"));
    let streamed = "run stencil --machine k40 --size 300 --steps 32 --gpu-memory 400KiB --verify";
    for computed in [held, home.json(streamed)] {
        assert_eq!(computed["verification"]["right"], true);
        assert!(superstep(&computed) > 1, "{computed}");
    }
}

/// What the host's caches gain beside GPUs that hold a whole grid is less than what a plan of it
/// errs by.
#[test]
fn steps_are_single_where_nothing_says_otherwise() {
    let home = Home::new();
    let run = "run stencil --machine h200 --size 4096 --steps 32";
    assert_eq!(superstep(&home.json(run)), 1);
    let streamed = "run stencil --machine h200 --size 9000 --gpu-memory 512MiB --steps 32";
    for options in ["--strategy dawl", "--strategy gpu", "--fault gpu0:slow:2@3"] {
        let report = home.json(&format!("{streamed} {options}"));
        assert_eq!(superstep(&report), 1, "{options}");
    }
    let asked = home.json(&format!("{streamed} --strategy gpu --superstep auto"));
    assert!(superstep(&asked) > 1);
}

/// Who has no part in the plan is reported, where a strategy leaves the choice to the plan.
#[test]
fn the_note_names_devices_that_rest() {
    let home = Home::new();
    let run = "run stencil --machine laptop --size 400 --dims 3 --steps 32 --superstep auto";
    let says = |options: &str| {
        let report = home.json(&format!("{run} {options}"));
        report["notes"].to_string().contains("with a part for gpu0")
    };
    assert!(says("--adaptive"));
    assert!(!says("--strategy cpu"));
}
