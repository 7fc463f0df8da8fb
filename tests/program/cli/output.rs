//! Where results are written: files, pipes, and pipes that are closed early.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use predicates::prelude::*;
use predicates::str::contains;

use super::SIMULATED;
use crate::command::{pdawl, process};

#[test]
fn a_path_that_cannot_be_written_is_refused_before_the_run() {
    for option in ["--trace", "--csv"] {
        // Not even root can create a file there.
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
fn no_colour_goes_into_a_pipe() {
    pdawl(SIMULATED)
        .assert()
        .success()
        .stdout(contains("\u{1b}").not())
        .stderr("");
}

#[test]
fn a_reader_that_leaves_early_is_no_failure() {
    let mut child = process("run stencil --machine k40 --size 64 --steps 2000 --format json")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert_eq!(line, "{\n");
    // The reader is dropped here, while more output follows than a pipe holds.
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert!(output.status.success(), "{}", output.status);
}
