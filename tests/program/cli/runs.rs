//! `pdawl run` and `pdawl bench`: results are verified, and reports say whether
//! they are measured or simulated.

use predicates::prelude::*;
use predicates::str::contains;
use serde_json::Value;

use super::SIMULATED;
use crate::command::{json, pdawl};

#[test]
fn a_run_on_this_machine_is_right_and_conforms() {
    let folder = tempfile::tempdir().unwrap();
    let chart = folder.path().join("run.html");
    let report = json(&format!(
        "run stencil --nx 17 --ny 409 --steps 7 --devices host --verify --gantt {}",
        chart.display()
    ));
    assert_eq!(report["machine"]["simulated"], false);
    assert_eq!(report["verification"]["right"], true);
    assert_eq!(report["details"]["points"], 17 * 409 * 7);
    assert_eq!(report["details"]["steps"].as_array().unwrap().len(), 7);
    assert!(
        std::fs::read_to_string(chart)
            .unwrap()
            .contains("(measured)")
    );
}

#[test]
fn a_simulated_run_says_so_everywhere() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    pdawl(SIMULATED)
        .args(["--trace".as_ref(), file("t.json").as_os_str()])
        .args(["--csv".as_ref(), file("t.csv").as_os_str()])
        .args(["--gantt".as_ref(), file("t.svg").as_os_str()])
        .assert()
        .success()
        .stdout(
            contains("on k40 simulated")
                .and(predicate::str::is_match("Throughput .* simulated").unwrap())
                .and(contains("is not this one")),
        );
    let read = |name: &str| std::fs::read_to_string(file(name)).unwrap();
    let trace: Value = serde_json::from_str(&read("t.json")).unwrap();
    assert_eq!(trace["otherData"]["simulated"], true);
    assert!(trace["traceEvents"].as_array().unwrap().len() > 10);
    assert!(
        read("t.csv")
            .lines()
            .skip(1)
            .all(|l| l.starts_with("simulated,k40,pdawl,"))
    );
    assert!(read("t.svg").contains("dawl on k40 (simulated)</title>"));
}

#[test]
fn a_simulated_report_conforms_and_is_reproducible() {
    let line = format!("{SIMULATED} --noise 0.02 --seed 7");
    let mut report = json(&line);
    assert_eq!(report["machine"]["simulated"], true);
    assert_eq!(report["verification"], Value::Null);
    assert_eq!(report["details"]["comparison"][0]["strategy"], "cpu");
    let mut again = json(&line);
    for report in [&mut report, &mut again] {
        // The engine's own time is real even in a simulation.
        report["details"]["engine_seconds"].take();
    }
    assert_eq!(report, again);
}

#[test]
fn a_simulated_result_is_right_for_every_strategy() {
    for strategy in ["cpu", "gpu", "fixed:0.3", "guided", "dawl", "oracle"] {
        let report = json(&format!("{SIMULATED} --strategy {strategy} --verify"));
        assert_eq!(report["verification"]["right"], true, "{strategy}");
        assert_eq!(report["verification"]["error"], 0.0, "{strategy}");
        assert_eq!(report["policy"], strategy);
    }
}

#[test]
fn a_lost_device_is_reported_and_the_result_is_right() {
    let report = json(&format!("{SIMULATED} --fault gpu0:lost@2 --verify"));
    assert_eq!(report["lost"][0]["device"], "gpu0");
    assert_eq!(report["verification"]["right"], true);
    assert_eq!(report["details"]["points"], 256 * 256 * 5);
}

/// Also where a device has many steps in its queues when it is lost.
#[test]
fn the_step_of_a_loss_is_the_one_that_was_asked_for() {
    for run in [
        "run stencil --size 200 --strategy gpu",
        "run stencil --size 200",
        "run spmv --matrix rmat:10,8 --no-cache",
    ] {
        for step in [3, 7, 90] {
            let line = format!("{run} --machine k40 --steps 100 --fault gpu0:lost@{step}");
            let lost = &json(&line)["lost"];
            assert_eq!(lost[0]["step"], step, "{line}: {lost}");
        }
    }
}

#[test]
fn a_run_that_loses_all_devices_fails_and_says_what_to_do() {
    pdawl(&format!(
        "{SIMULATED} --fault gpu0:lost@1 --fault host:lost@2"
    ))
    .assert()
    .code(1)
    .stdout("")
    .stderr(contains("lost with its memory").and(contains("try: the same with other --devices")));
}

#[test]
fn a_grid_that_exceeds_memory_is_reported_with_the_figures() {
    pdawl("run stencil --size 8192 --host-memory 64MiB")
        .assert()
        .code(1)
        .stderr(contains(
            "1.00 GiB of host memory, and 64.0 MiB may be used",
        ));
    let report = json("run stencil --machine k40 --steps 2 --host-memory 64MiB");
    assert_eq!(report["workload"]["parameters"]["nx"], 2048);
}

#[test]
fn strategies_are_compared() {
    let bench = json(
        "bench --vary strategy=cpu,gpu,dawl,oracle --repeats 2 run stencil --machine k40 --size 512 \
         --steps 10",
    );
    assert_eq!(bench["schema"], "pdawl-bench/2");
    let runs = bench["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 4);
    for run in runs {
        assert_eq!(run["seconds"].as_array().unwrap().len(), 2);
        assert!(run["to_first"].as_f64().unwrap() > 0.0);
        assert_eq!(run["report"]["policy"], run["values"]["strategy"]);
    }
    let gathered = |run: usize| {
        let details = &runs[run]["report"]["details"];
        details["gather_seconds"].as_f64().unwrap()
    };
    assert_eq!(gathered(0), 0.0, "the host's result is where it shall be");
    assert!(gathered(1) > 0.0, "a GPU's has to be copied");
}

#[test]
fn a_transformer_on_this_machine_is_right_under_every_policy() {
    for sharing in [
        "--adaptive --layers 3",
        "--policy clustering --map h_cpu=2 --queues cpu=2",
        "--policy clustering --batch --layers 2",
        "--policy clustering --search",
        "--policy eager",
        "--policy heft",
    ] {
        let line = "run transformer --heads 3 --beta 19 --devices host --verify";
        let report = json(&format!("{line} {sharing}"));
        assert_eq!(report["schema"], "pdawl-report/2", "{sharing}");
        assert_eq!(report["verification"]["right"], true, "{sharing}");
        assert_eq!(report["machine"]["simulated"], false, "{sharing}");
        assert!(report["seconds"].as_f64().unwrap() > 0.0, "{sharing}");
    }
}
