//! `pdawl devices` and `--devices`, with and without OpenCL.

use predicates::prelude::*;
use predicates::str::contains;
use serde_json::Value;

use crate::command::{json, pdawl};

#[test]
fn the_devices_are_listed() {
    let listing = json("devices");
    assert_eq!(listing["schema"], "pdawl-devices/1");
    assert_eq!(listing["devices"][0]["name"], "host");
    pdawl("devices").assert().success().stdout(contains("host"));
}

#[test]
fn what_runs_can_be_observed_with_is_listed_with_what_is_missing_and_why() {
    let profiling = &json("devices")["profiling"];
    let texts = |value: &Value| -> Vec<String> {
        let texts = value.as_array().unwrap().iter();
        texts.map(|text| text.as_str().unwrap().into()).collect()
    };
    let counters = &profiling["counters"];
    let mut names = texts(&counters["counted"]);
    let source = counters["source"].as_str().unwrap();
    assert!(["hardware", "software", "none"].contains(&source));
    assert_eq!(source == "none", names.is_empty());
    let mut out = vec![format!("Counters    {source}")];
    for missing in counters["missing"].as_array().unwrap() {
        names.extend(texts(&missing["names"]));
        out.push(missing["why"].as_str().unwrap().into());
        out.push(missing["remedy"].as_str().unwrap().into());
    }
    for name in ["cycles_count", "cache_misses_count", "task_clock_seconds"] {
        let feature = format!("counter.{name}");
        let times = names.iter().filter(|name| **name == feature).count();
        assert_eq!(times, 1, "{feature} in {counters}");
    }
    let telemetry = &profiling["telemetry"];
    for gpu in telemetry["gpus"].as_array().unwrap() {
        out.push(gpu["model"].as_str().unwrap().into());
    }
    let none = telemetry["gpus"].as_array().unwrap().is_empty();
    for said in ["why", "remedy"] {
        assert_eq!(telemetry[said].is_string(), none, "{telemetry}");
        out.extend(telemetry[said].as_str().map(String::from));
    }
    let text = pdawl("devices").assert().success();
    let text = String::from_utf8_lossy(&text.get_output().stdout).into_owned();
    for part in out {
        assert!(text.contains(&part), "{part} in\n{text}");
    }
}

#[test]
fn cores_may_be_placed() {
    let line = "run stencil --size 129 --steps 2 --strategy cpu";
    let simulated = json(&format!("{line} --machine k20-32 --devices host:4@spread"));
    let plain = json(&format!("{line} --machine k20-32 --devices host:4"));
    assert_eq!(simulated["seconds"], plain["seconds"]);
    let here = json(&format!("{line} --devices host:1@compact --verify"));
    assert_eq!(here["devices"][0]["name"], "host:1@compact");
    assert_eq!(here["verification"]["right"], true);
}

#[test]
fn an_opencl_cpu_can_be_taken_for_a_separate_device() {
    let listing = json("devices");
    let devices = listing["devices"].as_array().unwrap();
    let cpu = devices
        .iter()
        .find(|d| d["runtime"] == "opencl" && d["kind"] == "cpu");
    let cpu = cpu.expect("an OpenCL CPU device: apt-get install pocl-opencl-icd");
    let name = format!("{}:1=own", cpu["name"].as_str().unwrap());
    let run = format!("run stencil --size 200 --steps 4 --verify --devices host:1,{name}");
    let report = json(&format!(
        "{run} --gpu-memory 64KiB --strategy fixed:0.5,0.5"
    ));
    assert_eq!(report["verification"]["right"], true);
    assert_eq!(report["devices"][1]["name"], name.as_str());
    assert!(report["devices"][1]["bytes_h2d"].as_u64().unwrap() > 0);
    pdawl(&format!("{run} --gpu-memory 1KiB"))
        .assert()
        .code(1)
        .stderr(contains(name).and(contains("raise the memory limit")));
    // Its device memory is host memory as well.
    let size = format!(
        "--size 1024 --host-memory 20MiB --devices host:1,{}",
        cpu["name"].as_str().unwrap()
    );
    pdawl(&format!("run stencil {size}:1=own"))
        .assert()
        .code(1)
        .stderr(contains("4 grids of"));
    pdawl(&format!("run stencil {size}:1=own --gpu-memory 2MiB"))
        .assert()
        .success();
}

/// Without OpenCL the program runs on the host and says why.
#[test]
fn without_opencl_drivers_the_host_serves() {
    let folder = tempfile::tempdir().unwrap();
    let broken = folder.path().join("broken.icd");
    std::fs::write(&broken, "libpdawl-absent.so.9\n").unwrap();
    let empty = tempfile::tempdir().unwrap();
    for (vendors, part) in [
        (folder.path(), "names libpdawl-absent.so.9, which is not"),
        (empty.path(), "where there is no .icd file"),
        ("/nonexistent".as_ref(), "OCL_ICD_VENDORS is /nonexistent"),
    ] {
        let here = |line: &str| {
            let mut command = pdawl(line);
            command.env("OCL_ICD_VENDORS", vendors);
            command
        };
        here("devices")
            .assert()
            .success()
            .stdout(contains("host"))
            .stderr(contains("warning: ").and(contains(part)));
        let run = here("run stencil --size 64 --steps 3 --verify --format json").assert();
        let report: Value = serde_json::from_slice(&run.success().get_output().stdout).unwrap();
        assert_eq!(report["verification"]["right"], true);
        assert!(report["notes"].to_string().contains(part), "{report}");
        here("run stencil --devices opencl0.0")
            .assert()
            .code(2)
            .stdout("")
            .stderr(contains("there is no opencl0.0").and(contains(part)));
    }
}
