//! Starts the program `pdawl`, in the home of the tests (`own_home`) or in a temporary one.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Child, Command as Process, Stdio};
use std::time::Duration;

use assert_cmd::Command;
use assert_cmd::cargo::cargo_bin;
use pdawl_profiler::bundle::Bundle;
use pdawl_profiler::train::Family;
use serde_json::Value;
use tempfile::TempDir;

use crate::schemas;
use crate::synthetic_models::{machine, model, samples};

/// A command `pdawl` with these arguments, separated by spaces.
pub fn pdawl(line: &str) -> Command {
    command(process(line))
}

/// Returns the JSON report of `pdawl` with these arguments, which must succeed
/// print nothing on standard error, and conform to its schema.
pub fn json(line: &str) -> Value {
    parsed_output(pdawl(&format!("{line} --format json")))
}

/// [`pdawl`] as a plain process, for tests that signal it or read while it runs.
pub fn process(line: &str) -> Process {
    let mut process = Process::new(cargo_bin("pdawl"));
    process.args(line.split_whitespace());
    process
}

fn command(process: Process) -> Command {
    let mut command = Command::from_std(process);
    command.timeout(Duration::from_secs(120));
    command
}

fn parsed_output(mut command: Command) -> Value {
    let output = command.assert().success().stderr("").get_output().clone();
    let printed = serde_json::from_slice(&output.stdout).expect("JSON on standard output");
    schemas::conforms(&printed);
    printed
}

/// Temporary directories for a user's files, removed when the value is dropped.
pub struct Home(TempDir);

impl Home {
    /// An empty home.
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// A home with this model.
    pub fn with(model: &Bundle) -> Self {
        let home = Self::new();
        std::fs::create_dir(home.path("models")).unwrap();
        model.write(&home.model(&model.name)).unwrap();
        home
    }

    /// A home with a model of `k40` that predicts what the simulator's formulas
    /// give, under this name.
    pub fn with_k40_model(name: &str) -> Self {
        let machine = machine("k40");
        let samples = samples(&machine, |_| 1.0);
        let mut model = model(&machine, &samples, &[Family::PriorConstant]);
        model.name = name.to_owned();
        Self::with(&model)
    }

    pub fn folder(&self) -> &Path {
        self.0.path()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder().join(name)
    }

    pub fn model(&self, name: &str) -> PathBuf {
        self.path("models").join(format!("{name}.json"))
    }

    pub fn dataset(&self, name: &str) -> PathBuf {
        self.path("datasets").join(format!("{name}.csv"))
    }

    /// A command `pdawl` with these arguments, in this home.
    pub fn pdawl(&self, line: &str) -> Command {
        command(self.process(line))
    }

    pub fn json(&self, line: &str) -> Value {
        parsed_output(self.pdawl(&format!("{line} --format json")))
    }

    /// A shell that runs a script in this home, where `pdawl` is the program, and ends with
    /// the first command that fails.
    pub fn shell(&self, script: &str) -> Command {
        let mut folders = vec![cargo_bin("pdawl").parent().unwrap().to_owned()];
        folders.extend(env::split_paths(&env::var_os("PATH").unwrap_or_default()));
        let mut shell = Process::new("sh");
        shell.args(["-e", "-c", script]);
        shell.env("PATH", env::join_paths(folders).unwrap());
        self.enter(&mut shell);
        command(shell)
    }

    pub fn process(&self, line: &str) -> Process {
        let mut process = process(line);
        self.enter(&mut process);
        process
    }

    /// Lets a process run in this home, with its files.
    fn enter(&self, process: &mut Process) {
        process.current_dir(self.folder());
        for kind in ["machines", "clusters", "models", "datasets", "kernels"] {
            let variable = format!("PDAWL_{}", kind.to_uppercase());
            process.env(variable, self.path(kind));
        }
    }
}

/// Starts a process and waits until it handles signals, or ignores them.
#[cfg(target_os = "linux")]
pub fn listening(mut process: Process) -> Child {
    let child = process
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let status = format!("/proc/{}/status", child.id());
    let listens = || {
        let status = std::fs::read_to_string(&status).unwrap();
        let signals = |name: &str| {
            let set = status.lines().find_map(|line| line.strip_prefix(name));
            u64::from_str_radix(set.unwrap().trim(), 16).unwrap()
        };
        // One after the other: SIGHUP, SIGINT and SIGTERM are signals 1, 2 and 15, and signal
        // n is bit n - 1.
        let all = 1 | 1 << 1 | 1 << 14;
        (signals("SigCgt:") | signals("SigIgn:")) & all == all
    };
    while !listens() {
        std::thread::sleep(Duration::from_millis(5));
    }
    child
}

/// Sends SIGINT, as Ctrl-C does.
#[cfg(target_os = "linux")]
pub fn interrupt(child: &Child) {
    send(child, "INT");
}

/// Sends the signal of this name.
#[cfg(target_os = "linux")]
pub fn send(child: &Child, signal: &str) {
    let signalled = Process::new("kill")
        .args([format!("-{signal}"), child.id().to_string()])
        .status()
        .unwrap();
    assert!(signalled.success());
}
