//! The program as its users meet it.

mod json_schema;

use std::io::{BufRead, BufReader};
use std::process::{Command as Process, Stdio};
use std::time::Duration;

use assert_cmd::Command;
use predicates::prelude::*;
use predicates::str::{contains, starts_with};
use serde_json::Value;

/// `pdawl` with these words.
fn pdawl(line: &str) -> Command {
    let mut command = Command::cargo_bin("pdawl").unwrap();
    command.args(line.split_whitespace());
    // A user's own machine files and models must not change what is tested.
    command.env("PDAWL_MACHINES", "/nonexistent/pdawl-machines");
    command.env("PDAWL_MODELS", "/nonexistent/pdawl-models");
    command.timeout(Duration::from_secs(120));
    command
}

fn json(line: &str) -> Value {
    let output = pdawl(line).assert().success().get_output().stdout.clone();
    serde_json::from_slice(&output).expect("JSON on standard output")
}

fn conforms(report: &Value) {
    let found = json_schema::violations(&json_schema::report_schema(), report);
    assert!(found.is_empty(), "{found:#?}");
}

const SIMULATED: &str = "run stencil --machine k40 --size 256 --steps 5";

#[test]
fn every_help_holds_an_example() {
    for line in [
        "",
        "devices",
        "machine",
        "machine save",
        "machine list",
        "machine show",
        "run",
        "run stencil",
        "run spmv",
        "bench",
        "bench stencil",
        "bench spmv",
        "profile",
        "profile stencil",
        "predict",
        "predict stencil",
    ] {
        pdawl(&format!("{line} --help"))
            .assert()
            .success()
            .stdout(contains("Example").and(contains("  pdawl ")));
    }
}

#[test]
fn wrong_usage_exits_with_2_and_says_what_is_right() {
    for (line, part) in [
        ("run stencil --gpu-memory 0", "leaves nothing to work in"),
        ("run stencil --gpu-memory 2GiG", "not a unit of bytes"),
        ("run stencil --host-memory much", "this is not a size"),
        ("run stencil --gpu-memory -1", "this is not a size"),
        ("run stencil --size 0", "nx is 0"),
        ("run stencil --size 1", "nx is 1"),
        ("run stencil --size 2", "at least 3 points"),
        ("run stencil --size -3", "not a number of points"),
        ("run stencil --size 1e30", "not a number of points"),
        (
            "run stencil --nx 5000000000 --ny 5000000000",
            "at most 2147483647 points",
        ),
        (
            "run stencil --size 2000000000 --dims 3",
            "more bytes than can be counted",
        ),
        ("run stencil --nx 7", "--ny"),
        ("run stencil --nx 7 --ny 7 --dims 3", "needs --nz"),
        ("run stencil --nx 7 --ny 7 --nz 7 --dims 2", "--dims says 2"),
        ("run stencil --steps 0", "0 is not in 1.."),
        ("run stencil --strategy fixed:1.5", "outside 0 to 1"),
        ("run stencil --strategy fixed:abc", "'abc' is not a number"),
        (
            "run stencil --strategy fixed:0,0",
            "at least one must be above 0",
        ),
        (
            "run stencil --size 64 --devices host:1 --strategy fixed:0.5,0.5",
            "2 shares for 1 devices",
        ),
        ("run stencil --strategy fastest", "known are cpu, gpu"),
        (
            "run stencil --strategy cpu --adaptive",
            "cannot be used with",
        ),
        ("run stencil --gantt run.png", "must end in .html or .svg"),
        (
            "run stencil --trace a --csv a",
            "two outputs have the path a",
        ),
        ("run stencil --fault gpu0:slow:2", "must end in the step"),
        ("run stencil --fault gpu0:slow:0@1", "above 0"),
        ("run stencil --noise 2", "fraction from 0 to 1"),
        (
            "run stencil --devices host --fault host:slow:2@1",
            "for simulated machines",
        ),
        (
            "run stencil --devices host --noise 0.1",
            "for simulated machines",
        ),
        ("run stencil --devices fast", "`fast` is no device"),
        ("run stencil --devices host,host", "named twice"),
        ("run stencil --devices host:1000000", "1000000"),
        (
            "run stencil --devices host:1,host:1000000",
            "name the same cores",
        ),
        ("run stencil --devices host:0", "asks for no units"),
        (
            "run stencil --devices host:1=own",
            "write host:1 without =own",
        ),
        ("run stencil --devices opencl0.0:1=mine", "is no device"),
        ("run stencil --devices host:1@wide", "@compact or @spread"),
        (
            "run stencil --devices opencl0.0@spread",
            "only the host's cores are placed",
        ),
        (
            "run stencil --machine k40 --devices host:1@wide",
            "@compact or @spread",
        ),
        (
            "run stencil --machine k40 --devices gpu0@spread",
            "only the host's cores are placed",
        ),
        ("run stencil --devices opencl99.0", "there is no opencl99.0"),
        ("run stencil --machine k40 --devices gpu0=own", "`gpu0=own`"),
        ("run stencil --devices host --strategy gpu", "needs a GPU"),
        ("run stencil --machine k40 --devices gpu7", "gpu7"),
        ("run stencil --machine k40 --devices host:9", "8"),
        (
            "run stencil --machine k40 --fault gpu7:lost@1",
            "no device `gpu7`",
        ),
        (
            "run stencil --machine k40 --strategy fixed:0.1,0.2,0.7",
            "3 shares for 2 devices",
        ),
        ("bench stencil --strategies cpu,cpu", "named twice"),
        ("bench stencil --repeats 0", "0 is not in 1.."),
        ("run", "pdawl"),
        ("dance", "unrecognized subcommand"),
    ] {
        pdawl(line)
            .assert()
            .code(2)
            .stdout("")
            .stderr(contains(part).and(contains("panicked").not()));
    }
}

#[test]
fn errors_begin_with_the_programs_name_and_name_a_remedy() {
    pdawl("run stencil --devices host --noise 0.1")
        .assert()
        .stderr(starts_with("pdawl: ").and(contains("\n  try: --machine NAME")));
    pdawl("run stencil --size x")
        .assert()
        .stderr(starts_with("pdawl: invalid value").and(contains("--help")));
}

#[test]
fn an_unknown_machine_is_told_with_the_known_ones() {
    pdawl("run stencil --machine k41")
        .assert()
        .code(1)
        .stderr(contains("`k41`").and(contains("k40")));
    pdawl("machine show k41").assert().code(1);
}

#[test]
fn a_machine_cannot_have_any_name() {
    pdawl("machine save a/b")
        .assert()
        .code(1)
        .stderr(contains("cannot name a machine"));
}

#[test]
fn this_machine_is_measured_and_not_simulated() {
    let folder = tempfile::tempdir().unwrap();
    let here = |line: &str| {
        let mut command = pdawl(line);
        command.env("PDAWL_MACHINES", folder.path());
        command
    };
    here("machine save mine --copy-size 64MiB")
        .assert()
        .success();
    let shown = here("machine show mine --format json").assert().success();
    let shown: Value = serde_json::from_slice(&shown.get_output().stdout).unwrap();
    assert!(shown["host"]["memory_bandwidth"].as_f64().unwrap() > 1e8);
    let run = here("run stencil --machine mine --size 64 --steps 2 --format json").assert();
    let report: Value = serde_json::from_slice(&run.success().get_output().stdout).unwrap();
    assert_eq!(report["machine"]["simulated"], false);
    assert_eq!(report["machine"]["name"], "mine");
}

#[test]
fn a_machine_file_with_a_missing_field_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let whole = pdawl("machine show k40").assert().success();
    let text = String::from_utf8(whole.get_output().stdout.clone()).unwrap();
    let without: Vec<&str> = text.lines().filter(|l| !l.starts_with("cores =")).collect();
    std::fs::write(folder.path().join("broken.toml"), without.join("\n")).unwrap();
    pdawl("run stencil --machine broken")
        .env("PDAWL_MACHINES", folder.path())
        .assert()
        .code(1)
        .stderr(contains("broken.toml").and(contains("cores")));
}

#[test]
fn a_file_that_is_no_machine_is_told_with_the_place() {
    let folder = tempfile::tempdir().unwrap();
    let whole = include_str!("../datasets/machines/k40.toml");
    let many = whole.replace("cores = ", "cores = \"many\" # ");
    for (name, contents, part) in [
        (
            "type.toml",
            many.as_bytes(),
            "invalid type: string \"many\"",
        ),
        ("words.toml", b"this is ][ not", "line 1"),
        ("other.toml", b"name = 'x'", "the first key must be"),
        ("bytes.toml", b"\xff\xfe\x00", "UTF-8"),
    ] {
        let path = folder.path().join(name);
        std::fs::write(&path, contents).unwrap();
        pdawl(&format!("run stencil --machine {}", path.display()))
            .assert()
            .code(1)
            .stdout("")
            .stderr(contains(name).and(contains(part)));
    }
    pdawl("run stencil --machine /nonexistent/pdawl.toml")
        .assert()
        .code(1)
        .stderr(contains("/nonexistent/pdawl.toml: cannot be read"));
}

/// The host must serve where OpenCL does not, and be told why.
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
        assert_eq!(report["verified"], true);
        assert!(report["notes"].to_string().contains(part), "{report}");
        here("run stencil --devices opencl0.0")
            .assert()
            .code(2)
            .stdout("")
            .stderr(contains("there is no opencl0.0").and(contains(part)));
    }
}

#[test]
fn an_opencl_cpu_can_be_taken_for_a_device_apart() {
    let listing = json("devices --format json");
    let devices = listing["devices"].as_array().unwrap();
    let cpu = devices
        .iter()
        .find(|d| d["runtime"] == "opencl" && d["kind"] == "cpu");
    let cpu = cpu.expect("an OpenCL CPU device: apt-get install pocl-opencl-icd");
    let name = format!("{}:1=own", cpu["name"].as_str().unwrap());
    let run = format!("run stencil --size 200 --steps 4 --verify --devices host:1,{name}");
    let report = json(&format!(
        "{run} --gpu-memory 64KiB --strategy fixed:0.5,0.5 --format json"
    ));
    conforms(&report);
    assert_eq!(report["verified"], true);
    assert_eq!(report["devices"][1]["name"], name.as_str());
    assert!(report["devices"][1]["bytes_h2d"].as_u64().unwrap() > 0);
    pdawl(&format!("{run} --gpu-memory 1KiB"))
        .assert()
        .code(1)
        .stderr(contains(name).and(contains("raise the memory limit")));
    // What it holds lies in the host's memory, too.
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

#[test]
fn a_path_that_cannot_be_written_is_refused_before_the_run() {
    for option in ["--trace", "--csv"] {
        // Nobody can create a file there, not even the administrator.
        for (path, part) in [
            ("/proc/pdawl.out", "no file can be created in that folder"),
            ("/dev/null/pdawl.out", "cannot write /dev/null/pdawl.out"),
            ("/nonexistent/pdawl.out", "its folder does not exist"),
            ("/", "it is a folder"),
        ] {
            pdawl(&format!("{SIMULATED} {option} {path}"))
                .assert()
                .code(1)
                .stdout("")
                .stderr(contains(part).and(contains("try: ")));
        }
    }
}

#[test]
fn a_grid_that_exceeds_memory_is_told_with_the_figures() {
    pdawl("run stencil --size 8192 --host-memory 64MiB")
        .assert()
        .code(1)
        .stderr(contains(
            "1.00 GiB of host memory, and 64.0 MiB may be used",
        ));
    let report = json("run stencil --machine k40 --steps 2 --host-memory 64MiB --format json");
    assert_eq!(report["workload"]["parameters"]["nx"], 2048);
}

#[test]
fn the_devices_are_listed() {
    let listing = json("devices --format json");
    assert_eq!(listing["schema"], "pdawl-devices/1");
    assert_eq!(listing["devices"][0]["name"], "host");
    pdawl("devices").assert().success().stdout(contains("host"));
}

#[test]
fn what_runs_can_be_observed_with_is_listed_with_what_is_missing_and_why() {
    let profiling = &json("devices --format json")["profiling"];
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
fn the_machines_are_listed_and_shown() {
    let listing = json("machine list --format json");
    let names: Vec<&str> = listing["machines"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|m| m["name"].as_str())
        .collect();
    for name in ["k20-32", "k20-40", "k40", "titan", "h200", "laptop"] {
        assert!(names.contains(&name), "{name} in {names:?}");
    }
    assert_eq!(json("machine show h200 --format json")["name"], "h200");
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
    let line = format!("{SIMULATED} --noise 0.02 --seed 7 --format json");
    let mut report = json(&line);
    conforms(&report);
    assert_eq!(report["machine"]["simulated"], true);
    assert_eq!(report["verified"], Value::Null);
    assert_eq!(report["comparison"][0]["strategy"], "cpu");
    let mut again = json(&line);
    for report in [&mut report, &mut again] {
        // The engine's own time is real, in a simulation, too.
        report["engine_seconds"].take();
    }
    assert_eq!(report, again);
}

#[test]
fn a_simulated_result_is_right_for_every_strategy() {
    for strategy in ["cpu", "gpu", "fixed:0.3", "guided", "dawl", "oracle"] {
        let report = json(&format!(
            "{SIMULATED} --strategy {strategy} --verify --format json"
        ));
        assert_eq!(report["verified"], true, "{strategy}");
        assert_eq!(report["max_abs_error"], 0.0, "{strategy}");
        assert_eq!(report["strategy"], strategy);
    }
}

#[test]
fn a_lost_device_is_told_and_the_result_is_right() {
    let report = json(&format!(
        "{SIMULATED} --fault gpu0:lost@2 --verify --format json"
    ));
    conforms(&report);
    assert_eq!(report["lost"][0]["device"], "gpu0");
    assert_eq!(report["verified"], true);
    assert_eq!(report["points"], 256 * 256 * 5);
}

#[test]
fn a_run_on_this_machine_is_right_and_conforms() {
    let folder = tempfile::tempdir().unwrap();
    let chart = folder.path().join("run.html");
    let report = json(&format!(
        "run stencil --nx 17 --ny 409 --steps 7 --devices host --verify --format json --gantt {}",
        chart.display()
    ));
    conforms(&report);
    assert_eq!(report["machine"]["simulated"], false);
    assert_eq!(report["verified"], true);
    assert_eq!(report["points"], 17 * 409 * 7);
    assert_eq!(report["steps"].as_array().unwrap().len(), 7);
    assert!(
        std::fs::read_to_string(chart)
            .unwrap()
            .contains("(measured)")
    );
}

#[test]
fn cores_may_be_placed() {
    let line = "run stencil --size 129 --steps 2 --strategy cpu --format json";
    let simulated = json(&format!("{line} --machine k20-32 --devices host:4@spread"));
    let plain = json(&format!("{line} --machine k20-32 --devices host:4"));
    assert_eq!(simulated["seconds"], plain["seconds"]);
    let here = json(&format!("{line} --devices host:1@compact --verify"));
    assert_eq!(here["devices"][0]["name"], "host:1@compact");
    assert_eq!(here["verified"], true);
}

#[test]
fn strategies_are_compared() {
    let bench = json(
        "bench stencil --machine k40 --size 512 --steps 10 --strategies cpu,gpu,dawl,oracle \
         --repeats 2 --format json",
    );
    assert_eq!(bench["schema"], "pdawl-bench/1");
    let results = bench["results"].as_array().unwrap();
    assert_eq!(results.len(), 4);
    for result in results {
        for list in ["seconds", "setup_seconds", "gather_seconds"] {
            assert_eq!(result[list].as_array().unwrap().len(), 2, "{list}");
        }
        assert!(result["to_best_single"].as_f64().unwrap() > 0.0);
    }
    assert_eq!(results[3]["to_oracle"], 1.0);
    let gathered = |result: usize| results[result]["gather_seconds"][0].as_f64().unwrap();
    assert_eq!(gathered(0), 0.0, "the host's result is where it shall be");
    assert!(gathered(1) > 0.0, "a GPU's has to be copied");
    let ratio = bench["host"]["ratio"].as_f64().unwrap();
    assert!(ratio > 0.0 && ratio <= 1.0, "{ratio}");
}

#[test]
fn no_colour_goes_into_a_pipe() {
    pdawl(SIMULATED)
        .assert()
        .success()
        .stdout(contains("\u{1b}").not())
        .stderr("");
}

#[test]
fn a_reader_that_leaves_early_is_no_failure() {
    let mut child = Process::new(assert_cmd::cargo::cargo_bin("pdawl"))
        .args("run stencil --machine k40 --size 64 --steps 2000 --format json".split(' '))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert_eq!(line, "{\n");
    // The reader is dropped here, with far more to come than a pipe holds.
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert!(output.status.success(), "{}", output.status);
}

/// A run that has begun to listen for Ctrl-C.
#[cfg(target_os = "linux")]
fn listening(line: &str) -> std::process::Child {
    let child = Process::new(assert_cmd::cargo::cargo_bin("pdawl"))
        .args(line.split_whitespace())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let status = format!("/proc/{}/status", child.id());
    let listens = || {
        let status = std::fs::read_to_string(&status).unwrap();
        let caught = status.lines().find_map(|l| l.strip_prefix("SigCgt:"));
        let caught = u64::from_str_radix(caught.unwrap().trim(), 16).unwrap();
        // SIGINT is signal 2, and bit 1.
        caught & 2 != 0
    };
    while !listens() {
        std::thread::sleep(Duration::from_millis(5));
    }
    child
}

#[cfg(target_os = "linux")]
fn interrupt(child: &std::process::Child) {
    let signalled = Process::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status()
        .unwrap();
    assert!(signalled.success());
}

#[cfg(target_os = "linux")]
#[test]
fn ctrl_c_ends_a_run_with_the_report_so_far() {
    let child = listening("run stencil --size 512 --steps 4000000 --devices host:1 --format json");
    interrupt(&child);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    conforms(&report);
    assert_eq!(report["interrupted"], true);
    let steps = report["steps"].as_array().unwrap().len();
    assert!(steps > 0 && steps < 4_000_000, "{steps}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_second_ctrl_c_does_not_wait_for_a_step() {
    // A step of this takes long, and the reference after it longer.
    let child = listening("run stencil --size 4000 --steps 4000000 --devices host:1 --verify");
    let began = std::time::Instant::now();
    interrupt(&child);
    // The handler runs on a thread of its own; two signals at once are one.
    std::thread::sleep(Duration::from_millis(50));
    interrupt(&child);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "");
    assert!(began.elapsed() < Duration::from_secs(2));
}
