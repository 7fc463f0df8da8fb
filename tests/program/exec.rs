//! `pdawl exec` with a small OpenCL program, over two devices of PoCL.
//!
//! The tests need a C compiler and OpenCL's headers, which `scripts/install-opencl.sh`
//! installs. They need the layer, which is another package of the workspace: `make test`
//! builds it together with them.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command as Process, Stdio};
use std::sync::LazyLock;
use std::time::SystemTime;

use assert_cmd::Command;
use predicates::prelude::*;
use predicates::str::contains;
use serde_json::Value;
use tempfile::TempDir;

use crate::command::process;
use crate::schemas::conforms;

/// The library, in the folder of the program `pdawl`, where the program looks for it.
pub static LAYER: LazyLock<PathBuf> = LazyLock::new(|| {
    let deps = env::current_exe().unwrap().parent().unwrap().to_owned();
    let name = "libpdawl_opencl.so";
    let built = deps.join(name);
    let source = Path::new(env!("CARGO_MANIFEST_DIR"));
    let changed = newest(&source.join("src")).max(newest(&source.join("opencl-layer/src")));
    let made = fs::metadata(&built).and_then(|file| file.modified()).ok();
    assert!(
        made.is_some_and(|made| made >= changed),
        "{} is missing or older than its sources: `cargo test --workspace` builds it, as does \
         `cargo test -p pdawl-opencl-layer --no-run`",
        built.display()
    );
    let (beside, part) = (
        deps.parent().unwrap().join(name),
        deps.join(format!("{name}.{}", std::process::id())),
    );
    fs::hard_link(&built, &part).unwrap();
    // A link that is renamed to another one of the same file stays.
    fs::rename(&part, &beside).unwrap();
    let _ = fs::remove_file(&part);
    beside
});

/// When the newest file of a folder was changed.
fn newest(folder: &Path) -> SystemTime {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    let changed = entries.map(|entry| match entry.file_type().unwrap().is_dir() {
        true => newest(&entry.path()),
        false => entry.metadata().unwrap().modified().unwrap(),
    });
    changed.max().unwrap_or(SystemTime::UNIX_EPOCH)
}

/// The OpenCL program.
static PROGRAM: LazyLock<PathBuf> = LazyLock::new(|| {
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("opencl_program");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/opencl_program.c");
    let mut compiler = Process::new("cc");
    compiler
        .args(["-O1", "-Wall", "-Wextra", "-o"])
        .arg(&program)
        .arg(source)
        .arg("-lOpenCL");
    let compiled = compiler.status().expect("a C compiler");
    assert!(
        compiled.success(),
        "the program needs OpenCL's headers: sh scripts/install-opencl.sh"
    );
    program
});

/// A folder for reports and for kernel profiles, so that no test reads the user's.
struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// `pdawl exec` with these options and the OpenCL program with these arguments.
    fn exec(&self, options: &str, arguments: &str) -> Command {
        let mut exec = Command::from_std(self.process(options));
        exec.arg(&*PROGRAM).args(arguments.split_whitespace());
        exec.timeout(std::time::Duration::from_secs(120));
        exec
    }

    fn process(&self, options: &str) -> Process {
        LazyLock::force(&LAYER);
        let mut exec = process(&format!("exec {options}"));
        exec.current_dir(self.0.path())
            .env("PDAWL_KERNELS", self.path("kernels"));
        // Two devices of one driver. Other drivers do not know the variable.
        exec.env("POCL_DEVICES", "pthread pthread")
            .env_remove("OPENCL_LAYERS");
        exec
    }

    fn json(&self, name: &str) -> Value {
        serde_json::from_slice(&fs::read(self.path(name)).unwrap()).unwrap()
    }
}

/// What the program prints without pdawl.
fn native() -> String {
    let output = Process::new(&*PROGRAM).output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn every_policy_gives_the_programs_output() {
    let expected = native();
    for policy in [
        "--policy off",
        "--policy round-robin",
        "--policy auto-fit",
        "--policy divide",
        "--policy divide:equal",
        "--policy divide:equal --exact",
        "--map 1,0",
    ] {
        for devices in [0, 1, 2] {
            let options = format!("{policy} --virtual {devices}");
            let folder = Folder::new();
            folder
                .exec(&options, "")
                .assert()
                .success()
                .stdout(expected.clone())
                .stderr("");
        }
    }
}

#[test]
fn the_program_sees_the_devices_that_are_asked_for() {
    let folder = Folder::new();
    let listed = contains("device 0 gpu")
        .and(contains("device 2 gpu"))
        .and(contains("device 3").not());
    folder
        .exec("--virtual 3", "--devices")
        .assert()
        .success()
        .stdout(listed);
    let listed = contains("device 0 cpu").and(contains("device 1").not());
    folder
        .exec("--device-type cpu", "--devices")
        .assert()
        .success()
        .stdout(listed);
}

#[test]
fn the_report_says_what_the_queues_did() {
    let folder = Folder::new();
    let options = "--policy auto-fit --report report.json --trace trace.json --format json";
    let output = folder
        .exec(options, "--steps 6")
        .assert()
        .success()
        .get_output()
        .clone();
    let report = folder.json("report.json");
    let printed: Value = serde_json::from_slice(&output.stderr).unwrap();
    assert_eq!(report, printed);
    conforms(&report);
    for file in fs::read_dir(folder.path("kernels")).unwrap() {
        let path = file.unwrap().path();
        // Beside it is the file that locks it.
        if path.extension().is_some_and(|ending| ending == "json") {
            conforms(&serde_json::from_slice(&fs::read(path).unwrap()).unwrap());
        }
    }
    assert_eq!(report["format"], "pdawl-exec/1");
    assert_eq!(report["status"], 0);
    assert_eq!(report["settings"]["policy"], "auto-fit");
    let [process] = &report["processes"].as_array().unwrap()[..] else {
        panic!("{report}");
    };
    assert_eq!(process["complete"], true);
    let queues = process["queues"].as_array().unwrap();
    assert_eq!(queues.len(), 3);
    let sum = |list: &Value, field: &str| -> u64 {
        list.as_array()
            .unwrap()
            .iter()
            .map(|device| device[field].as_u64().unwrap())
            .sum()
    };
    for queue in queues {
        assert_eq!(sum(&queue["devices"], "launches"), 12, "{queue}");
        assert_eq!(sum(&queue["devices"], "epochs"), 6, "{queue}");
        assert!(sum(&queue["devices"], "predicted_epochs") > 0, "{queue}");
    }
    let kernels = process["kernels"].as_array().unwrap();
    let names: Vec<&str> = kernels
        .iter()
        .map(|kernel| kernel["name"].as_str().unwrap())
        .collect();
    assert!(
        names.contains(&"add") && names.contains(&"sum"),
        "{names:?}"
    );
    for kernel in kernels {
        assert_eq!(sum(&kernel["devices"], "launches"), 18, "{kernel}");
        assert!(
            kernel["devices"][0]["seconds"].as_f64().unwrap() > 0.0,
            "{kernel}"
        );
    }
    assert!(process["own"]["commands"].as_u64().unwrap() >= 108);
    let trace = folder.json("trace.json");
    let events = trace["traceEvents"].as_array().unwrap();
    let launches = events
        .iter()
        .filter(|event| event["ph"] == "X" && event["name"] == "add");
    assert_eq!(launches.count(), 18);
}

#[test]
fn several_processes_have_reports() {
    let folder = Folder::new();
    let mut exec = folder.process("--report report.json sh -c");
    let program = PROGRAM.display();
    exec.arg(format!("{program} && {program}"));
    assert!(exec.status().unwrap().success());
    assert_eq!(
        folder.json("report.json")["processes"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
}

#[test]
fn the_exit_status_is_the_programs() {
    let folder = Folder::new();
    folder.exec("", "--exit 7").assert().code(7);
    folder
        .exec("--report killed.json", "--signal 9")
        .assert()
        .code(137);
    let report = folder.json("killed.json");
    assert_eq!(report["signal"], 9);
    assert_eq!(report["processes"][0]["complete"], false);
}

#[test]
fn a_signal_reaches_the_program() {
    let folder = Folder::new();
    let mut exec = folder.process("--report stopped.json");
    exec.arg(&*PROGRAM).arg("--wait").stdout(Stdio::piped());
    let mut child = exec.spawn().unwrap();
    let mut line = String::new();
    let mut out = std::io::BufReader::new(child.stdout.take().unwrap());
    std::io::BufRead::read_line(&mut out, &mut line).unwrap();
    assert!(line.starts_with("total"), "{line}");
    let kill = Process::new("kill")
        .args(["-TERM", &child.id().to_string()])
        .status();
    assert!(kill.unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(128 + 15));
    assert_eq!(folder.json("stopped.json")["signal"], 15);
}

#[test]
fn a_program_that_cannot_be_started_is_named() {
    let folder = Folder::new();
    let run = |program: &str| Command::from_std(folder.process(program)).assert();
    run("./absent")
        .code(127)
        .stderr(contains("./absent is not found"));
    run("/etc/passwd")
        .code(126)
        .stderr(contains("/etc/passwd cannot be started"));
    run("").code(2).stderr(contains("<PROGRAM>"));
    run("--virtual 65 true").code(2);
    run("true")
        .success()
        .stderr(contains("no process of the program"));
}

#[test]
fn what_fails_before_the_start_is_named() {
    let folder = Folder::new();
    let wrong = folder.exec("--devices opencl9.9", "").assert().code(2);
    wrong
        .stdout("")
        .stderr(contains("no OpenCL device is called opencl9.9"));
    for (options, said) in [
        ("--exact", "--policy divide"),
        ("--policy off --exact", "--policy divide"),
        ("--map 0,x", "--map"),
        ("--map 0,1 --policy off", "--policy"),
        ("--runtime cuda", "programs that use OpenCL"),
    ] {
        let wrong = folder.exec(options, "").assert().code(2);
        wrong.stdout("").stderr(contains(said));
    }
    let absent = folder.exec("--layer absent.so", "").assert().code(1);
    absent
        .stdout("")
        .stderr(contains("cargo build --release -p pdawl-opencl-layer"));
    let place = folder
        .exec("--report absent/report.json", "")
        .assert()
        .code(1);
    place.stdout("").stderr(contains("absent/report.json"));
    let same = folder
        .exec("--report same.json --trace same.json", "")
        .assert()
        .code(2);
    same.stdout("").stderr(contains("same.json"));
    let vendors = folder
        .exec("", "")
        .env("OCL_ICD_VENDORS", folder.path("none"))
        .assert()
        .code(1);
    vendors.stdout("").stderr(contains("driver"));
}

#[test]
fn a_missing_or_old_loader_is_named() {
    let folder = Folder::new();
    // The search for the loader ends at a file of its name that is no library.
    fs::write(folder.path("libOpenCL.so.1"), "no library").unwrap();
    let missing = folder
        .exec("", "")
        .env("LD_LIBRARY_PATH", folder.0.path())
        .assert()
        .code(1);
    missing
        .stdout("")
        .stderr(contains("libOpenCL.so.1: file too short").and(contains("pdawl devices")));
    // A library without layers, as old loaders are.
    let (source, loader) = (folder.path("old.c"), folder.path("libOpenCL.so.1"));
    fs::write(&source, "int clGetPlatformIDs(void) { return -1001; }\n").unwrap();
    let mut compiler = Process::new("cc");
    compiler
        .args(["-shared", "-fPIC", "-o"])
        .arg(&loader)
        .arg(&source);
    assert!(compiler.status().unwrap().success());
    let old = folder
        .exec("", "")
        .env("LD_LIBRARY_PATH", folder.0.path())
        .assert()
        .code(1);
    old.stdout("")
        .stderr(contains("knows no layers").and(contains("2.3")));
}

#[test]
fn other_layers_stay() {
    let folder = Folder::new();
    let other = folder
        .exec("", "")
        .env("OPENCL_LAYERS", "/nonexistent/layer.so")
        .assert();
    other.success().stderr(contains("/nonexistent/layer.so"));
}
