//! `pdawl chart` and the charts of `--gantt`.

use std::fs;

use predicates::prelude::PredicateBooleanExt;
use predicates::str::contains;
use serde_json::Value;

use crate::command::Home;

const STENCIL: &str = "run stencil --machine k40 --size 500 --steps 4";

fn read(home: &Home, name: &str) -> String {
    fs::read_to_string(home.path(name)).unwrap()
}

/// What a page of charts draws.
fn shown(page: &str) -> Value {
    let (_, data) = page.split_once(".show(").expect("the data");
    let (data, _) = data.split_once(");\n</script>").expect("their end");
    serde_json::from_str(data).unwrap()
}

#[test]
fn saved_runs_are_drawn_on_one_axis_with_their_tables() {
    let home = Home::new();
    home.json(&format!("{STENCIL} --strategy gpu --trace a.json"));
    home.json(&format!("{STENCIL} --strategy fixed:0.5 --trace b.json"));
    let saved = home.json("chart a.json b.json --out both.html");
    assert_eq!(saved["kind"], "chart");
    assert_eq!(
        (&saved["machine"], &saved["simulated"]),
        (&"k40".into(), &true.into())
    );
    let page = read(&home, "both.html");
    home.json("chart a.json b.json --out both.json");
    let data: Value = serde_json::from_str(&read(&home, "both.json")).unwrap();
    assert_eq!(shown(&page), data);
    let [first, second] = &data["charts"].as_array().unwrap()[..] else {
        panic!("{data}");
    };
    for chart in [first, second] {
        assert_eq!(chart["table"]["header"][0], "Device");
        let bound = chart["marks"][1]["words"].as_str().unwrap();
        assert!(bound.starts_with("area bound "), "{bound}");
        let gpu = chart["rows"].as_array().unwrap().last().unwrap();
        assert!(gpu["began"][0].is_i64(), "{gpu}");
    }
    let words = |chart: &Value, key: &str| chart[key].as_str().unwrap().to_owned();
    assert!(words(first, "title").ends_with("gpu on k40 (simulated)"));
    assert!(words(second, "subtitle").ends_with("of the first run's"));
    assert_eq!(first["after"], second["after"]);
    home.pdawl("chart b.json --out b.svg")
        .assert()
        .success()
        .stdout(contains("fixed:0.5 on k40 (simulated)").and(contains("drawn in b.svg")));
    assert!(read(&home, "b.svg").contains(">Share</text>"));
}

#[test]
fn a_chart_of_a_saved_run_is_that_of_the_run() {
    let home = Home::new();
    let files = "--trace t.json --gantt g.svg";
    home.json(&format!(
        "run cholesky --machine v100x2 --size 4096 --tile 512 {files}"
    ));
    home.json("chart t.json --out again.svg");
    let (chart, again) = (read(&home, "g.svg"), read(&home, "again.svg"));
    assert_eq!(chart, again);
    for part in [
        "critical path ",
        "area bound ",
        "makespan ",
        ">gemm",
        ">busy ",
    ] {
        assert!(chart.contains(part), "{part}");
    }
    let recording = concat!(env!("CARGO_MANIFEST_DIR"), "/datasets/starpu/cholesky");
    home.json(&format!("run dag --starpu {recording} {files}"));
    home.json("chart t.json --out again.svg");
    let (chart, again) = (read(&home, "g.svg"), read(&home, "again.svg"));
    assert_eq!(chart, again);
    assert!(chart.contains("recorded time 1.32 s"), "{chart}");
}

#[test]
fn bounds_are_below_the_time() {
    let home = Home::new();
    for line in [
        "run cholesky --machine v100x2 --size 4096 --tile 512 --gantt g.html",
        "run lu --machine v100x2 --size 4096 --gantt g.html",
        "run transformer --machine k40 --heads 2 --beta 64 --layers 2 --gantt g.html",
    ] {
        let report = home.json(line);
        let bounds = &report["bounds"];
        let seconds = report["seconds"].as_f64().unwrap();
        for bound in ["area_seconds", "critical_path_seconds"] {
            let bound = bounds[bound].as_f64().unwrap();
            assert!(
                0.0 < bound && bound <= seconds * 1.001,
                "{line}: {bounds} of {seconds}"
            );
        }
    }
    let report = home.json(STENCIL);
    let area = report["bounds"]["area_seconds"].as_f64().unwrap();
    assert!(0.0 < area && area <= report["seconds"].as_f64().unwrap());
    assert_eq!(report["bounds"]["critical_path_seconds"], Value::Null);
    let nodes = home.json("run lu --size 2048 --cluster four");
    assert_eq!(nodes["bounds"], Value::Null);
}

#[test]
fn a_trace_without_a_report_is_drawn_and_says_so() {
    let home = Home::new();
    home.json(&format!("{STENCIL} --trace new.json"));
    let mut trace: Value = serde_json::from_str(&read(&home, "new.json")).unwrap();
    assert_eq!(trace["otherData"]["report"]["schema"], "pdawl-report/2");
    let report = trace["otherData"]["report"].take();
    trace["otherData"].as_object_mut().unwrap().remove("report");
    fs::write(home.path("old.json"), trace.to_string()).unwrap();
    trace["otherData"]["report"] = report;
    trace["otherData"]["report"]["schema"] = "pdawl-report/99".into();
    fs::write(home.path("later.json"), trace.to_string()).unwrap();
    home.json("chart old.json later.json --out old.html");
    let data = shown(&read(&home, "old.html"));
    let charts = data["charts"].as_array().unwrap();
    for (chart, note) in charts.iter().zip([
        "old.json: the file has no report",
        "later.json: the report is of another version",
    ]) {
        assert!(chart["table"].is_null());
        let words = chart["marks"][0]["words"].as_str().unwrap();
        assert!(words.starts_with("makespan "));
        assert!(chart["notes"][0].as_str().unwrap().starts_with(note));
    }
}

#[test]
fn wrong_files_are_reported_and_nothing_is_written() {
    let home = Home::new();
    let printed = home
        .pdawl(&format!("{STENCIL} --format json"))
        .output()
        .unwrap();
    fs::write(home.path("report.json"), printed.stdout).unwrap();
    fs::write(home.path("list.json"), "[1, 2]").unwrap();
    fs::write(home.path("text.json"), "hello").unwrap();
    home.json(&format!("{STENCIL} --trace good.json"));
    for (line, code, expected) in [
        ("good.json none.json --out c.html", 1, "none.json: "),
        (
            "report.json --out c.html",
            1,
            "report.json: it is a report (pdawl-report/2)",
        ),
        (
            "good.json list.json --out c.html",
            1,
            "list.json: it is no trace of pdawl",
        ),
        ("text.json --out c.html", 1, "text.json: it is not JSON"),
        (
            "good.json --out c.png",
            2,
            "must end in .html, .svg or .json",
        ),
        ("good.json", 2, "--out"),
        ("--out c.html", 2, "<FILE>"),
    ] {
        let output = home.pdawl(&format!("chart {line}"));
        let said = failed(output, code, expected);
        if code == 1 {
            assert!(said.contains("pdawl run ... --trace FILE"), "{said}");
        }
        assert!(!home.path("c.html").exists(), "{line}");
    }
    // An input stays.
    fs::copy(home.path("good.json"), home.path("good.html")).unwrap();
    let output = home.pdawl("chart good.html --out ./good.html");
    failed(output, 2, "would be overwritten");
    assert_eq!(read(&home, "good.html"), read(&home, "good.json"));
}

/// What a command that fails writes to standard error.
fn failed(mut command: assert_cmd::Command, code: i32, expected: &str) -> String {
    let assert = command.assert().code(code).stderr(contains(expected));
    String::from_utf8(assert.get_output().stderr.clone()).unwrap()
}
