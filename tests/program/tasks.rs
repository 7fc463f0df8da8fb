//! `pdawl bench tasks`: its report, what it refuses, and Ctrl-C.

use predicates::prelude::*;
use predicates::str::contains;
use serde_json::Value;

use crate::command::{json, pdawl};

const SMALL: &str = "bench tasks --set matmul2d --n 3,6 --machine v100x2 --gpu-memory 100MiB \
                     --policies eager,dmdar,darts+luf";

#[test]
fn a_row_for_every_size_and_policy() {
    let report = json(&format!("{SMALL} --outputs --order random --repeats 2"));
    assert_eq!(report["schema"], "pdawl-tasks/1");
    assert_eq!(report["machine"], "v100x2");
    assert_eq!(report["simulated"], true);
    // Only the GPUs.
    assert_eq!(report["devices"], serde_json::json!(["gpu0", "gpu1"]));
    assert_eq!(report["gpu_memory_bytes"], 100 << 20);
    assert_eq!(
        (&report["set"], &report["tile"]),
        (&"matmul2d".into(), &960.into())
    );
    let rows = report["rows"].as_array().unwrap();
    let of = |row: &Value| (row["n"].as_u64().unwrap(), row["policy"].clone());
    let expected = [3, 6].map(|n| ["eager", "dmdar", "darts+luf"].map(|name| (n, name.into())));
    assert_eq!(rows.iter().map(of).collect::<Vec<_>>(), expected.concat());
    for row in rows {
        let figure = |name: &str| row[name].as_f64().unwrap();
        let n = figure("n");
        assert_eq!(figure("tasks"), n * n);
        assert_eq!((&row["order"], figure("repeats")), (&"random".into(), 2.0));
        let flops = 2.0 * 960.0 * 960.0 * 3840.0 * n * n;
        let rate = flops / figure("seconds") / 1e9;
        assert!((figure("gflops") - rate).abs() < 1e-6 * rate, "{row}");
        assert!(rate <= figure("bound_gflops"), "{row}");
        assert!(
            figure("loaded_bytes") >= 2.0 * n * 960.0 * 3840.0 * 4.0,
            "{row}"
        );
        assert_eq!(figure("written_back_bytes"), n * n * 960.0 * 960.0 * 4.0);
        assert!(row["evictions"].is_u64() && figure("deciding_seconds") > 0.0);
    }
    // The machine has direct links.
    assert!(
        rows.iter()
            .any(|row| row["peer_bytes"].as_f64() > Some(0.0))
    );
}

#[test]
fn every_set_runs() {
    for set in [
        "matmul3d --n 4",
        "matmul3d --n 4 --sum",
        "cholesky --n 5",
        "cholesky --n 5 --dependencies",
        "sparse --n 30 --outputs",
        "random --n 40",
        "random --n 40 --outputs --dependencies",
    ] {
        let line = format!(
            "bench tasks --set {set} --machine v100x4 --gpu-memory 150MiB --policies \
             eager,dmdar+luf,partition,mhfp,darts,darts+luf+3inputs,darts+luf+opti,locality"
        );
        let report = json(&line);
        assert_eq!(report["rows"].as_array().unwrap().len(), 8, "{set}");
    }
}

/// `locality` has the rates that are on record, whatever else changes.
#[test]
fn recorded_rates_are_reached() {
    let recorded = std::fs::read_to_string("datasets/reports/tasks-policies/rates.tsv").unwrap();
    let recorded = |set: &str, n: u32, gpus: u32| -> f64 {
        let cell = format!("{set}\t{n}\t{gpus}\tlocality\t");
        let line = recorded.lines().find_map(|line| line.strip_prefix(&cell));
        line.expect("a recorded cell").parse().unwrap()
    };
    for (set, n, gpus) in [
        ("matmul2d", 40, 1),
        ("matmul2d --order random", 40, 2),
        ("matmul2d --outputs", 40, 4),
        ("matmul3d", 12, 1),
        ("matmul3d", 16, 4),
        ("cholesky", 12, 1),
        ("cholesky", 24, 1),
        ("cholesky --dependencies", 16, 1),
        ("cholesky --dependencies", 24, 2),
        ("sparse", 80, 1),
    ] {
        let report = json(&format!(
            "bench tasks --set {set} --n {n} --machine v100x{gpus} --gpu-memory 500MiB \
             --policies locality"
        ));
        let rate = report["rows"][0]["gflops"].as_f64().unwrap();
        let recorded = recorded(set, n, gpus);
        assert!(
            rate > 0.98 * recorded,
            "{set} {n} on {gpus}: {rate} {recorded}"
        );
    }
}

#[test]
fn the_text_is_one_table_labelled_simulated() {
    let output = pdawl(SMALL).assert().success().get_output().clone();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.contains("gpu0, gpu1, 100 MiB of each one's memory simulated"),
        "{text}"
    );
    assert!(
        text.lines()
            .take(13)
            .all(|line| line.chars().count() <= 120),
        "{text}"
    );
    assert!(text.contains("darts+luf"), "{text}");
}

#[test]
fn devices_can_be_named() {
    let report = json(&format!("{SMALL} --devices host,gpu1"));
    assert_eq!(report["devices"], serde_json::json!(["host", "gpu1"]));
}

#[test]
fn tasks_run_on_real_devices() {
    let report = json(
        "bench tasks --set matmul2d --n 3 --tile 16 --outputs --devices host:1 \
         --policies eager,darts+luf",
    );
    assert_eq!(report["simulated"], false);
    let rows = report["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2);
    assert!(rows.iter().all(|row| row["bound_gflops"].is_null()));
}

#[test]
fn wrong_usage_is_reported() {
    let on = "--machine v100x2";
    for (line, part) in [
        (format!("--set matmul2d --n 0 {on}"), "0 is not in 1..="),
        (format!("--set matmul2d --n 5,x {on}"), "not a whole number"),
        (format!("--set matmul2d --n 5, {on}"), "not a whole number"),
        (format!("--set matmul2d {on}"), "--n <LIST>"),
        (format!("--set matmul2d --n 5,5 {on}"), "--n names 5 twice"),
        (
            format!("--set matmul3d --n 1000 {on}"),
            "--n 1000: the set has 1000000000 tasks",
        ),
        (format!("--set lu --n 5 {on}"), "possible values: matmul2d"),
        (
            format!("--set matmul2d --n 5 --order sorted {on}"),
            "possible values: natural, random",
        ),
        (
            format!("--set matmul2d --n 5 --policies darts+fifo {on}"),
            "no variant `+fifo`; known are adaptive",
        ),
        (
            format!("--set matmul2d --n 5 --policies fifo {on}"),
            "`fifo` is not a policy; known are adaptive",
        ),
        (
            format!("--set matmul2d --n 5 --policies darts,darts+lru {on}"),
            "darts is named twice",
        ),
        (
            format!("--set matmul2d --n 5 --sum {on}"),
            "--sum is for --set matmul3d",
        ),
        (
            format!("--set matmul3d --n 5 --dependencies {on}"),
            "--dependencies is for --set cholesky, random",
        ),
        (
            format!("--set matmul2d --n 5 --gpu-memory 0 {on}"),
            "must be at least 1 byte",
        ),
        (
            "--set matmul2d --n 5".to_owned(),
            "on real devices, the tasks of matmul2d need results",
        ),
        (
            "--set random --n 5".to_owned(),
            "only run on simulated machines",
        ),
        (format!("--set matmul2d --n 5 {on} --devices gpu7"), "gpu7"),
    ] {
        pdawl(&format!("bench tasks {line}"))
            .assert()
            .code(2)
            .stdout("")
            .stderr(contains(part).and(contains("panicked").not()));
    }
}

#[test]
fn a_memory_that_is_too_small_is_reported_with_the_size_and_the_policy() {
    pdawl("bench tasks --set matmul2d --n 2 --machine v100x1 --gpu-memory 20MiB --policies darts")
        .assert()
        .code(1)
        .stdout("")
        .stderr(contains(
            "n 2, policy darts: task `gemm.0.0` needs 28.1 MiB of the memory of gpu0 at once, \
             which has 20.0 MiB",
        ))
        .stderr(contains("a greater --gpu-memory"));
}

#[test]
fn a_lost_device_is_noted() {
    let report = json(&format!("{SMALL} --fault gpu1:lost@0.001s"));
    let notes = report["notes"].to_string();
    assert!(
        notes.contains("n 6, policy darts+luf: gpu1 was lost"),
        "{notes}"
    );
}

#[cfg(target_os = "linux")]
#[test]
fn ctrl_c_keeps_what_was_measured() {
    use crate::command::{interrupt, listening, process};

    let child = listening(process(&format!("{SMALL} --repeats 1000000 --format json")));
    std::thread::sleep(std::time::Duration::from_millis(1500));
    interrupt(&child);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["interrupted"], true);
    let rows = report["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 3);
    assert!(
        rows.iter()
            .all(|row| row["n"] == 3 && row["repeats"].as_u64() > Some(0))
    );
}

#[test]
fn host_memory_of_sums_counts_once() {
    // 16 tiles each of A, B and C, of 1 KiB.
    let line = "bench tasks --set matmul3d --sum --n 4 --tile 16 --devices host:1 \
                --policies eager --host-memory";
    assert_eq!(json(&format!("{line} 48KiB"))["rows"][0]["tasks"], 64);
    pdawl(&format!("{line} 47KiB"))
        .assert()
        .code(1)
        .stderr(contains("it needs 48.0 KiB of host memory"));
}
