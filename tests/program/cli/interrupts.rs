//! Ctrl-C: the first ends a run at its next barrier, the second immediately.

#![cfg(target_os = "linux")]

use std::time::Duration;

use serde_json::Value;

use crate::command::{Home, interrupt, listening, process};
use crate::json_schema::conforms;

#[test]
fn ctrl_c_ends_a_run_with_the_report_so_far() {
    let child = listening(process(
        "run stencil --size 512 --steps 4000000 --devices host:1 --format json",
    ));
    interrupt(&child);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    conforms(&report);
    assert_eq!(report["interrupted"], true);
    let steps = report["steps"].as_array().unwrap().len();
    assert!(steps > 0 && steps < 4_000_000, "{steps}");
}

#[test]
fn a_second_ctrl_c_does_not_wait_for_a_step() {
    // One step takes long, and the reference after it longer.
    let child = listening(process(
        "run stencil --size 4000 --steps 4000000 --devices host:1 --verify",
    ));
    let began = std::time::Instant::now();
    interrupt(&child);
    // The handler runs on a separate thread; two pending signals count as one.
    std::thread::sleep(Duration::from_millis(50));
    interrupt(&child);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "");
    assert!(began.elapsed() < Duration::from_secs(2));
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
