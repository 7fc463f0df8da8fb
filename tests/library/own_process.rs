//! Tests that need a process of their own.

use std::process::{Command, Output};

const MARK: &str = "PDAWL_TEST_OWN_PROCESS";

/// Runs the test `name` again in a new process with these environment variables,
/// and asserts that it passes. Returns true in the new process, where the test must
/// continue, and false in the calling one, where it is done.
pub fn in_own_process(name: &str, variables: &[(&str, &str)]) -> bool {
    if std::env::var_os(MARK).is_some() {
        return true;
    }
    let output = run_again(name, &[variables, &[(MARK, "1")]].concat());
    assert!(
        output.status.success(),
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    let passed = String::from_utf8_lossy(&output.stdout).contains("1 passed");
    assert!(passed, "no test is named {name}");
    false
}

/// Runs the test `name` in a new process with these environment variables.
pub fn run_again(name: &str, variables: &[(&str, &str)]) -> Output {
    Command::new(std::env::current_exe().expect("the path of this program"))
        .args([name, "--exact", "--nocapture"])
        .envs(variables.iter().copied())
        .output()
        .expect("this program runs again")
}
