//! `pdawl run tasks`, and comparisons of policies on it: reports, what is refused, and Ctrl-C.

use predicates::prelude::*;
use predicates::str::contains;
use serde_json::Value;

use crate::command::{json, pdawl};

/// Two sizes under three policies.
const SMALL: &str = "bench --vary n=3,6 --vary policy=eager,dmdar,darts+luf --repeats 2 \
                     run tasks --set matmul2d --machine v100x2 --gpu-memory 100MiB";

/// A figure of a report, the sum over its devices.
fn sum(report: &Value, figure: &str) -> f64 {
    let devices = report["devices"].as_array().unwrap().iter();
    devices.map(|device| device[figure].as_f64().unwrap()).sum()
}

/// The runs of a comparison.
fn runs(bench: &Value) -> &[Value] {
    bench["runs"].as_array().unwrap()
}

#[test]
fn a_row_for_every_size_and_policy() {
    let bench = json(&format!("{SMALL} --outputs --order random"));
    assert_eq!(bench["schema"], "pdawl-bench/2");
    assert_eq!(bench["varied"], serde_json::json!(["n", "policy"]));
    let of = |run: &Value| (run["values"]["n"].clone(), run["values"]["policy"].clone());
    let policies = ["eager", "dmdar", "darts+luf"];
    let expected = ["3", "6"].map(|n| policies.map(|name| (n.into(), name.into())));
    assert_eq!(
        runs(&bench).iter().map(of).collect::<Vec<_>>(),
        expected.concat()
    );
    for run in runs(&bench) {
        let report = &run["report"];
        assert_eq!(report["schema"], "pdawl-report/2");
        assert_eq!(report["machine"]["name"], "v100x2");
        assert_eq!(report["machine"]["simulated"], true);
        // Only the GPUs.
        let devices = report["devices"].as_array().unwrap().iter();
        let names: Vec<_> = devices.map(|device| device["name"].clone()).collect();
        assert_eq!(names, ["gpu0", "gpu1"]);
        assert_eq!(report["details"]["gpu_memory_bytes"], 100 << 20);
        let set = &report["workload"]["parameters"];
        let n = set["n"].as_f64().unwrap();
        assert_eq!(
            (&set["set"], &set["tile"]),
            (&"matmul2d".into(), &960.into())
        );
        assert_eq!(
            (set["tasks"].as_f64(), &set["order"]),
            (Some(n * n), &"random".into())
        );
        // Without noise, and with one seed, both repeats are alike.
        let seconds = report["seconds"].as_f64().unwrap();
        assert_eq!(run["seconds"], serde_json::json!([seconds, seconds]));
        let flops = 2.0 * 960.0 * 960.0 * 3840.0 * n * n;
        let rate = report["throughput"]["value"].as_f64().unwrap();
        assert!((rate - flops / seconds).abs() < 1e-6 * rate, "{report}");
        assert!(report["details"]["least_seconds"].as_f64().unwrap() <= seconds);
        assert!(sum(report, "bytes_h2d") >= 2.0 * n * 960.0 * 3840.0 * 4.0);
        assert_eq!(sum(report, "bytes_d2h"), n * n * 960.0 * 960.0 * 4.0);
        assert!(report["details"]["deciding_seconds"].as_f64().unwrap() > 0.0);
    }
    // The machine has direct links.
    let peer = runs(&bench)
        .iter()
        .map(|run| sum(&run["report"], "bytes_peer"));
    assert!(peer.sum::<f64>() > 0.0);
    let ratio = runs(&bench)[1]["to_first"].as_f64().unwrap();
    let seconds = |run: usize| runs(&bench)[run]["report"]["seconds"].as_f64().unwrap();
    assert_eq!(ratio, seconds(0) / seconds(1));
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
        let policies =
            "eager,dmdar+luf,partition,mhfp,darts,darts+luf+3inputs,darts+luf+opti,locality";
        let bench = json(&format!(
            "bench --vary policy={policies} --repeats 1 run tasks --set {set} --machine v100x4 \
             --gpu-memory 150MiB"
        ));
        assert_eq!(runs(&bench).len(), 8, "{set}");
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
        let devices: Vec<_> = (0..gpus).map(|gpu| format!("gpu{gpu}")).collect();
        let devices = devices.join(",");
        let report = json(&format!(
            "run tasks --set {set} --n {n} --machine v100x{gpus} --devices {devices} \
             --gpu-memory 500MiB"
        ));
        assert_eq!(report["policy"], "locality");
        let rate = report["throughput"]["value"].as_f64().unwrap() / 1e9;
        let recorded = recorded(set, n, gpus);
        assert!(
            rate > 0.98 * recorded,
            "{set} {n} on {gpus}: {rate} {recorded}"
        );
    }
}

/// The results of a window leave room for what is used again.
#[test]
fn results_of_a_window_do_not_fill_small_memories() {
    let rate = |policy: &str| {
        let report = json(&format!(
            "run tasks --set matmul2d --outputs --n 88 --machine v100x2 --devices gpu0,gpu1 \
             --gpu-memory 250MiB --policy {policy}"
        ));
        report["throughput"]["value"].as_f64().unwrap()
    };
    let (locality, darts) = (rate("locality"), rate("darts+luf"));
    assert!(locality > darts, "{locality} {darts}");
}

#[test]
fn the_text_is_one_table_labelled_simulated() {
    let output = pdawl(SMALL).assert().success().get_output().clone();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("on v100x2 simulated"), "{text}");
    assert!(
        text.lines()
            .skip(1)
            .take(12)
            .all(|line| line.chars().count() <= 120),
        "{text}"
    );
    assert!(text.contains("darts+luf"), "{text}");
    pdawl("run tasks --set matmul2d --n 3 --machine v100x2 --gpu-memory 100MiB")
        .assert()
        .success()
        .stdout(contains("9 tasks on tiles of 960").and(contains("100 MiB of each GPU's memory")))
        .stdout(contains("Bound").and(contains("of the time")));
}

#[test]
fn devices_can_be_named() {
    let report = json("run tasks --set matmul2d --n 3 --machine v100x2 --devices host,gpu1");
    let devices = report["devices"].as_array().unwrap().iter();
    let names: Vec<_> = devices.map(|device| device["name"].clone()).collect();
    assert_eq!(names, ["host", "gpu1"]);
}

#[test]
fn tasks_run_on_real_devices() {
    let bench = json(
        "bench --vary policy=eager,darts+luf --repeats 1 run tasks --set matmul2d --n 3 --tile 16 \
         --outputs --devices host:1",
    );
    assert_eq!(runs(&bench).len(), 2);
    for run in runs(&bench) {
        assert_eq!(run["report"]["machine"]["simulated"], false);
        assert!(run["report"]["details"]["least_seconds"].is_null());
    }
}

#[test]
fn wrong_usage_is_reported() {
    let on = "--machine v100x2";
    for (line, part) in [
        (format!("--set matmul2d --n 0 {on}"), "0 is not in 1..="),
        (format!("--set matmul2d --n 5,x {on}"), "not a whole number"),
        (format!("--set matmul2d {on}"), "--n <N>"),
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
            format!("--set matmul2d --n 5 --policy darts+fifo {on}"),
            "no variant `+fifo`; known are adaptive",
        ),
        (
            format!("--set matmul2d --n 5 --policy fifo {on}"),
            "`fifo` is not a policy; known are adaptive",
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
        // In a comparison as in a run.
        for command in ["run tasks", "bench --repeats 1 run tasks"] {
            pdawl(&format!("{command} {line}"))
                .assert()
                .code(2)
                .stdout("")
                .stderr(contains(part).and(contains("panicked").not()));
        }
    }
}

#[test]
fn a_memory_that_is_too_small_is_reported_with_the_run() {
    let line = "run tasks --set matmul2d --n 2 --machine v100x1 --gpu-memory 20MiB";
    pdawl(&format!("bench --vary policy=darts {line}"))
        .assert()
        .code(1)
        .stdout("")
        .stderr(contains(
            "task `gemm.0.0` needs 28.1 MiB of the memory of gpu0 at once, which has 20.0 MiB",
        ))
        .stderr(contains("a greater --gpu-memory").and(contains("--policy=darts: exit status")));
}

#[test]
fn a_lost_device_is_noted() {
    pdawl(&format!("{SMALL} --fault gpu1:lost@0.001s"))
        .assert()
        .success()
        .stdout(contains("n 6, policy darts+luf: gpu1 was lost"));
}

#[cfg(target_os = "linux")]
#[test]
fn ctrl_c_keeps_what_was_measured() {
    use crate::command::{interrupt, listening, process};

    let line = SMALL.replace("--repeats 2", "--repeats 1000000");
    let child = listening(process(&format!("{line} --format json")));
    std::thread::sleep(std::time::Duration::from_millis(4000));
    interrupt(&child);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["interrupted"], true);
    let first = &runs(&report)[0];
    assert_eq!(first["values"]["policy"], "eager");
    assert!(!first["seconds"].as_array().unwrap().is_empty());
}

#[test]
fn host_memory_of_sums_counts_once() {
    // 16 tiles each of A, B and C, of 1 KiB.
    let line = "run tasks --set matmul3d --sum --n 4 --tile 16 --devices host:1 --host-memory";
    let report = json(&format!("{line} 48KiB"));
    assert_eq!(report["workload"]["parameters"]["tasks"], 64);
    pdawl(&format!("{line} 47KiB"))
        .assert()
        .code(1)
        .stderr(contains("it needs 48.0 KiB of host memory"));
}

/// What StarPU did takes in the simulator what it took, and policies place the same tasks.
#[test]
fn recordings_of_starpu_are_replayed() {
    for (recording, tasks) in [("cholesky", 220), ("product", 216)] {
        let run = |more: &str| {
            json(&format!(
                "run dag --starpu datasets/starpu/{recording} {more}"
            ))
        };
        let seconds = |report: &Value| report["seconds"].as_f64().unwrap();
        let replayed = run("--policy recorded");
        let recorded = &replayed["workload"]["parameters"]["recorded_seconds"];
        let ratio = seconds(&replayed) / recorded.as_f64().unwrap();
        assert!((0.95..1.05).contains(&ratio), "{recording}: {ratio}");
        assert_eq!(replayed["policy"], "recorded");
        assert_eq!(replayed["machine"]["simulated"], true);
        assert_eq!(sum(&replayed, "units"), f64::from(tasks));
        assert_eq!(run("")["policy"], "locality");
        for policy in ["locality", "heft"] {
            let report = run(&format!("--policy {policy}"));
            let ratio = seconds(&report) / recorded.as_f64().unwrap();
            assert!(
                (0.9..1.1).contains(&ratio),
                "{recording}, {policy}: {ratio}"
            );
            let shares = report["devices"].as_array().unwrap().iter();
            assert!(
                shares
                    .map(|of| of["share"].as_f64().unwrap())
                    .all(|share| share > 0.4)
            );
        }
        // A worker that is lost leaves its tasks to the other one.
        let lost = run("--policy recorded --fault cpu1:lost@0.5s");
        assert!(seconds(&lost) > 1.2 * seconds(&replayed));
    }
    for (more, said) in [
        ("datasets", "tasks.rec: there is no such file"),
        (
            "datasets/starpu/product --devices gpu0",
            "has no device `gpu0`; it has host, cpu0, cpu1",
        ),
        (
            "datasets/starpu/product --policy recorded --devices cpu0",
            "recorded needs all workers",
        ),
        (
            "datasets/starpu/product --machine k40",
            "--machine is for graphs of kernels",
        ),
    ] {
        let failed = pdawl(&format!("run dag --starpu {more}"))
            .assert()
            .failure();
        let said_all = String::from_utf8(failed.get_output().stderr.clone()).unwrap();
        let words = said_all
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
            .replace(" try:", "; try:");
        assert!(words.contains(said), "{more}: {words}");
    }
}
