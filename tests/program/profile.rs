//! `pdawl profile`: datasets that are created, extended, continued after an
//! interruption, and refused.

use std::collections::HashSet;
use std::path::Path;
use std::time::Duration;

use pdawl_profiler::{Sample, dataset};
use predicates::prelude::*;
use predicates::str::contains;
use serde_json::Value;

use crate::command::{Home, interrupt, listening};

/// The runs in a dataset file.
fn kept(home: &Home, path: &str) -> Vec<Sample> {
    dataset::read(&home.path(path)).unwrap().samples
}

const SMALL: &str = "profile stencil --machine k40 --configurations 4 --repeats 2 --max-size 3000";

#[test]
fn a_simulated_machine_is_profiled_once() {
    let home = Home::new();
    let report = home.json(SMALL);
    assert_eq!(report["schema"], "pdawl-profile/1");
    assert_eq!(report["machine"], "k40");
    assert_eq!(report["simulated"], true);
    assert_eq!(report["codelet"], "stencil5-f64");
    assert_eq!(report["counters"], Value::Null);
    assert_eq!(report["rows"]["measured"], 16);
    for (index, kind) in ["cpu", "gpu"].iter().enumerate() {
        let found = &report["kinds"][index];
        assert_eq!(found["kind"], **kind);
        assert_eq!(found["rows"], 8);
        assert_eq!(found["configurations"], 4);
        assert!(found["least_points"].as_f64().unwrap() < 300_000.0);
        assert!(found["greatest_points"].as_f64().unwrap() > 8e6);
    }
    let rows = kept(&home, "datasets/k40.csv");
    let keys: HashSet<dataset::Key> = rows.iter().map(dataset::key).collect();
    assert_eq!((rows.len(), keys.len()), (16, 16));
    assert!(rows.iter().all(|row| row.simulated && row.steps == 10));

    let before = std::fs::read(home.path("datasets/k40.csv")).unwrap();
    let again = home.json(SMALL);
    assert_eq!(again["rows"]["measured"], 0);
    assert_eq!(again["rows"]["kept"], 16);
    assert_eq!(
        std::fs::read(home.path("datasets/k40.csv")).unwrap(),
        before
    );

    // A longer design starts with the runs of the shorter one.
    let more = home.json(&SMALL.replace("--configurations 4", "--configurations 6"));
    assert_eq!(more["rows"]["measured"], 8);
    assert_eq!(kept(&home, "datasets/k40.csv")[..16], rows);

    let fresh = home.json(&format!("{SMALL} --fresh"));
    assert_eq!(fresh["rows"]["kept"], 0);
    assert_eq!(kept(&home, "datasets/k40.csv").len(), 16);
    assert_eq!(kept(&home, "datasets/k40.csv.bak").len(), 24);
}

#[test]
fn the_summary_is_quiet_in_a_pipe_and_tells_how_to_go_on() {
    let home = Home::new();
    home.pdawl(SMALL).assert().success().stderr("").stdout(
        contains("profile of stencil5-f64 on k40 simulated")
            .and(contains("16 measured, 0 kept from before, 0 left"))
            .and(contains("a simulated machine has no counters"))
            .and(contains("k40.csv"))
            .and(contains("\u{1b}").not()),
    );
    home.pdawl(&format!("{SMALL} --budget 1ns --fresh"))
        .assert()
        .code(1)
        .stderr(contains(
            "a budget of 1.00 ns is too small: the shortest run",
        ));
}

#[test]
fn held_out_sizes_go_into_a_file_of_their_own() {
    let home = Home::new();
    let line = "profile stencil --machine titan --sizes 900,1700 --configurations 10 --repeats 1 \
                --kinds gpu --gpu-memory 10MiB --out held.csv --noise 0 --steps 3";
    home.json(line);
    let rows = kept(&home, "held.csv");
    assert_eq!(rows.len(), 10);
    assert!(!home.path("datasets").exists());
    let mut sizes: Vec<f64> = rows
        .iter()
        .map(|r| r.features["known.units_count"])
        .collect();
    sizes.sort_by(f64::total_cmp);
    sizes.dedup();
    assert_eq!(sizes, [900.0, 1700.0]);
    for row in &rows {
        assert_eq!((row.kind.as_str(), row.steps), ("gpu", 3));
        let slots = row.features["known.slots_count"];
        assert!(slots * row.features["known.unit_bytes"] <= 10.0 * 1024.0 * 1024.0);
    }
}

#[test]
fn other_runs_are_not_mixed_in() {
    let home = Home::new();
    home.json(&format!("{SMALL} --out runs.csv"));
    let before = std::fs::read(home.path("runs.csv")).unwrap();
    let other = SMALL.replace("k40", "titan");
    home.pdawl(&format!("{other} --out runs.csv"))
        .assert()
        .code(1)
        .stderr(
            contains("runs.csv has runs of machine k40, and this profile is of titan")
                .and(contains("--out FILE for another one")),
        );
    std::fs::write(home.path("notes.csv"), "some,notes\n").unwrap();
    home.pdawl(&format!("{SMALL} --out notes.csv"))
        .assert()
        .code(1)
        .stderr(contains("notes.csv, line 1"));
    home.pdawl(&format!("{SMALL} --out none/runs.csv"))
        .assert()
        .code(1)
        .stderr(contains("none/runs.csv"));
    assert_eq!(std::fs::read(home.path("runs.csv")).unwrap(), before);
    // A folder in place of the file is neither overwritten nor renamed.
    std::fs::create_dir(home.path("folder")).unwrap();
    home.pdawl(&format!("{SMALL} --fresh --out folder"))
        .assert()
        .code(1)
        .stderr(contains("folder: cannot be written: it is a folder"));
    assert!(home.path("folder").is_dir() && !home.path("folder.bak").exists());
}

#[test]
fn wrong_usage_exits_with_2_and_says_what_is_right() {
    let home = Home::new();
    for (line, part) in [
        ("--budget soon", "90s, 5m, 1h30m"),
        ("--budget 5", "90s, 5m, 1h30m"),
        ("--budget 0s", "in no time"),
        ("--budget -1s", "90s, 5m, 1h30m"),
        (
            "--steps x",
            "not a whole number; write one from 1 to 100000",
        ),
        ("--max-size 2", "--max-size 4000"),
        ("--repeats 0", "0 is not in 1.."),
        ("--configurations 0", "0 is not in 1.."),
        ("--sizes 1000,many", "not a number of points"),
        ("--sizes 2,1000", "give sizes of at least 3"),
        ("--sizes 1000 --max-size 2000", "cannot be used with"),
        ("--kinds tpu", "possible values: cpu, gpu"),
        ("--dims 4", "2..=3"),
        ("--noise 2", "fraction from 0 to 1"),
        ("--gpu-memory 0", "must be at least 1 byte"),
    ] {
        home.pdawl(&format!("profile stencil --machine k40 {line}"))
            .assert()
            .code(2)
            .stderr(contains(part));
    }
    home.pdawl("profile stencil --machine k40 --sizes 50000")
        .assert()
        .code(1)
        .stderr(contains("two grids of size 50000 need 37.3 GiB"));
    home.pdawl("profile stencil --machine k40 --kinds gpu --gpu-memory 100")
        .assert()
        .code(1)
        .stderr(contains("no configuration fits"));
    home.pdawl("profile stencil --machine k41")
        .assert()
        .code(1)
        .stderr(contains("`k41`").and(contains("k40")));
}

#[cfg(target_os = "linux")]
#[test]
fn what_is_interrupted_keeps_its_rows_and_goes_on() {
    let home = Home::new();
    // Long enough to be interrupted after a few rows.
    let line = "profile stencil --machine k20-32 --configurations 60 --repeats 3 --steps 40 \
                --out runs.csv";
    let child = listening(home.process(&format!("{line} --format json")));
    while rows_in(&home.path("runs.csv")) < 5 {
        std::thread::sleep(Duration::from_millis(2));
    }
    interrupt(&child);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["interrupted"], true);
    let first = kept(&home, "runs.csv");
    let count = |report: &Value, what: &str| report["rows"][what].as_u64().unwrap();
    assert_eq!(count(&report, "measured"), first.len() as u64);
    assert_eq!(count(&report, "measured") + count(&report, "left"), 360);

    // Continue a shorter design, so that the test is quick.
    let shorter = line.replace("--configurations 60", "--configurations 8");
    let report = home.json(&shorter);
    assert_eq!(report["interrupted"], false);
    assert_eq!(count(&report, "measured") + count(&report, "kept"), 48);
    assert!(count(&report, "kept") >= 1);
    let all = kept(&home, "runs.csv");
    assert_eq!(all[..first.len()], first);
    assert_eq!(
        all.len() as u64,
        first.len() as u64 + count(&report, "measured")
    );
}

/// The number of complete rows of a dataset, without its provenance lines.
#[cfg(target_os = "linux")]
fn rows_in(path: &Path) -> usize {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let rows = text.lines().filter(|line| !line.starts_with('#'));
    rows.count().saturating_sub(1)
}

#[test]
fn this_machine_is_profiled_with_what_it_counts() {
    let home = Home::new();
    home.pdawl("machine save mine --copy-size 16MiB")
        .assert()
        .success();
    let line = "profile stencil --configurations 4 --repeats 2 --max-size 400 --budget 2m \
                --kinds cpu";
    let report = home.json(line);
    assert_eq!(report["machine"], "mine");
    assert_eq!(report["simulated"], false);
    assert_eq!(report["rows"]["measured"], 8);
    let source = report["counters"]["source"].as_str().unwrap();
    let rows = kept(&home, "datasets/mine.csv");
    assert_eq!(rows.len(), 8);
    for row in &rows {
        assert!(!row.simulated);
        assert_eq!(row.counters, source, "{}", row.configuration);
        assert!((3..=100).contains(&row.steps));
        let sum = |name: &str| row.features[&format!("trace.{name}_seconds")];
        assert!(sum("kernel") > 0.0 && sum("launch") > 0.0);
        assert_eq!(sum("h2d") + sum("d2h") + sum("overlap"), 0.0);
        if source != "none" {
            // Idle workers spin for a while, and no thread is counted twice.
            let clock = row.features["counter.task_clock_seconds"];
            let workers = row.features["known.workers_count"];
            assert!(clock > 0.0, "{}", row.configuration);
            assert!(
                clock < 1.5 * (workers + 1.0) * row.seconds + 0.05,
                "{clock}: {row:?}"
            );
        }
    }
    let named = home.json(&format!("{line} --machine mine"));
    assert_eq!(named["rows"]["kept"], 8);

    home.pdawl(&format!("{line} --noise 0.1"))
        .assert()
        .code(2)
        .stderr(contains("--noise is for simulated machines"));
    // Simulated runs are not added to a dataset of measured ones.
    let mixed = SMALL.replace("k40", "laptop");
    home.pdawl(&format!("{mixed} --out datasets/mine.csv"))
        .assert()
        .code(1)
        .stderr(contains("has runs of machine mine"));
}
