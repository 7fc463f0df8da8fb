//! Ctrl-C: the first ends a run at its next barrier, the second immediately.

#![cfg(target_os = "linux")]

use std::process::Child;
use std::time::Duration;

use serde_json::Value;

use crate::command::{Home, interrupt, listening, process, send};

#[test]
fn ctrl_c_ends_a_run_with_the_report_so_far() {
    let child = listening(process(
        "run stencil --size 512 --steps 4000000 --devices host:1 --format json",
    ));
    interrupt(&child);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    crate::schemas::conforms(&report);
    assert_eq!(report["interrupted"], true);
    let steps = report["details"]["steps"].as_array().unwrap().len();
    assert!(steps > 0 && steps < 4_000_000, "{steps}");
}

/// Each signal ends a run as Ctrl-C does, with a status of its own.
#[test]
fn other_signals_have_the_status_that_shells_expect() {
    for (signal, status, name) in [("TERM", 143, "SIGTERM"), ("HUP", 129, "SIGHUP")] {
        let child = listening(process(
            "run stencil --size 512 --steps 4000000 --devices host:1 --format json",
        ));
        send(&child, signal);
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{said}");
        assert!(said.contains(name) && !said.contains("Ctrl-C"), "{said}");
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(report["interrupted"], true);
    }
}

/// A run under `nohup` goes on when its terminal is closed.
#[test]
fn a_signal_that_is_ignored_stays_ignored() {
    let mut shell = std::process::Command::new("sh");
    let run = process("run stencil --size 256 --steps 4000000 --devices host:1");
    let arguments = run
        .get_args()
        .map(|word| word.to_string_lossy().into_owned());
    let line: Vec<String> = arguments.collect();
    let program = run.get_program().to_string_lossy().into_owned();
    shell.args([
        "-c",
        &format!("trap '' HUP; exec {program} {}", line.join(" ")),
    ]);
    let child = listening(shell);
    send(&child, "HUP");
    send(&child, "TERM");
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(143));
}

/// A limit of a file's size is reported, as a full disk is.
#[test]
fn a_file_that_grows_too_large_is_reported() {
    for output in ["--csv big.csv", "--trace big.json", "--gantt big.html"] {
        let home = Home::new();
        let run = home.process(&format!(
            "run stencil --machine k40 --size 500 --steps 400 --strategy gpu {output}"
        ));
        let mut shell = std::process::Command::new("sh");
        shell.current_dir(run.get_current_dir().unwrap());
        let line: Vec<_> = run
            .get_args()
            .map(|word| word.to_string_lossy().into_owned())
            .collect();
        let program = run.get_program().to_string_lossy().into_owned();
        let given = run
            .get_envs()
            .filter_map(|(name, value)| Some((name, value?)));
        shell.envs(given);
        shell.args([
            "-c",
            &format!("ulimit -f 1; exec {program} {}", line.join(" ")),
        ]);
        let ended = shell.output().unwrap();
        let said = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(1), "{said}");
        assert!(
            said.contains("cannot write big.") && said.contains("ulimit -f"),
            "{said}"
        );
        assert_eq!(
            std::fs::read_dir(home.path(".")).unwrap().count(),
            0,
            "no half file"
        );
    }
}

/// Seconds of processors that a process has used.
fn used(child: &Child) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split(' ').collect();
    // `utime`, the 14th field of `proc(5)`; the second one, with blanks, was cut off.
    fields[12].parse::<f64>().unwrap() / 100.0
}

#[test]
fn a_second_ctrl_c_does_not_wait_for_a_step() {
    // One step takes long, and the reference after it longer.
    let home = Home::new();
    let child = listening(home.process(
        "run stencil --size 4000 --steps 4000000 --devices host:1 --verify --output last.npy",
    ));
    let files = || std::fs::read_dir(home.folder()).unwrap().count();
    // The reference of no step would be there at once.
    while used(&child) < 3.0 {
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(files(), 1, "the result has a temporary file");
    interrupt(&child);
    // The handler runs on a separate thread; two pending signals count as one.
    std::thread::sleep(Duration::from_millis(50));
    interrupt(&child);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    // After a step there would be a report.
    assert_eq!(String::from_utf8_lossy(&output.stdout), "");
    assert_eq!(files(), 0);
}

#[test]
fn what_is_interrupted_before_its_trace_writes_none_and_says_so() {
    let home = Home::new();
    let child = listening(home.process(
        "run transformer --heads 2 --beta 64 --repeats 4000000 --devices host:1 --trace t.json \
         --format json",
    ));
    interrupt(&child);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("stopping; Ctrl-C again ends at once"),
        "{said}"
    );
    assert!(said.contains("no trace was written"), "{said}");
    assert!(!home.path("t.json").exists());
}
