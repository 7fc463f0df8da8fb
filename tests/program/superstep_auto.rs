//! `pdawl run stencil --superstep auto`: how many steps there are between two barriers, and what
//! the run begins with.

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
    let run = "run stencil --machine h200 --size 4096 --steps 32 --adaptive";
    let planned = home.json(&format!("{run} --superstep auto"));
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
    let computed = home.json(&format!("{computed} --verify"));
    assert_eq!(computed["verification"]["right"], true);
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
