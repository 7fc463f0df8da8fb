//! Runs of several processes, which `examples/exchange.rs` is. The tests need Open MPI:
//! its `mpirun` and its options.
//!
//! Cargo builds a library that is only a `cdylib` for no integration test, so the tests
//! have cargo build it and the example. That takes no time when nothing has changed.

#[path = "../../tests/fixtures/own_home.rs"]
mod own_home;

use std::env;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::LazyLock;

/// The folder of the build profile, which has the library.
static BUILT: LazyLock<PathBuf> = LazyLock::new(|| {
    let test = env::current_exe().expect("the test has a path");
    let folder = test.ancestors().nth(2).expect("tests are in `deps`");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet", "--lib", "--example", "exchange"]);
    cargo.args(["--package", env!("CARGO_PKG_NAME"), "--target-dir"]);
    cargo.arg(folder.parent().expect("a profile is in the target folder"));
    cargo.current_dir(env!("CARGO_MANIFEST_DIR"));
    if folder.ends_with("release") {
        cargo.arg("--release");
    }
    let built = cargo.status().expect("cargo starts");
    assert!(built.success(), "the library is not built");
    folder.to_owned()
});

/// What a run printed, and its status.
struct Run {
    output: Output,
    printed: String,
    errors: String,
}

impl Run {
    /// The lines with this text.
    fn lines(&self, text: &str) -> usize {
        let lines = self.printed.lines().chain(self.errors.lines());
        lines.filter(|line| line.contains(text)).count()
    }

    fn succeeds(self) -> Self {
        let (printed, errors) = (&self.printed, &self.errors);
        assert!(self.output.status.success(), "{printed}{errors}");
        self
    }
}

/// Runs the example. `options` are mpirun's.
fn run(ranks: usize, options: &str, arguments: &[&str]) -> Run {
    let mut command = Command::new("timeout");
    command.args(["120", "mpirun", "--oversubscribe"]);
    // Containers have no other user.
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1");
    command.env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    command.args(["-n", &ranks.to_string()]);
    command.args(options.split_whitespace());
    command.arg(BUILT.join("examples/exchange")).args(arguments);
    let output = command.output().expect("`timeout` starts");
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    Run {
        printed: text(&output.stdout),
        errors: text(&output.stderr),
        output,
    }
}

/// Runs a task with the library.
fn task(ranks: usize, options: &str, task: &str) -> Run {
    let library = BUILT.join("libpdawl_wire_mpi.so");
    run(ranks, options, &[task, &library.to_string_lossy()])
}

#[test]
fn messages_arrive_whole_and_in_order() {
    for ranks in 1..=4 {
        let run = task(ranks, "", "exchange").succeeds();
        assert_eq!(run.lines("in order"), ranks, "{}", run.errors);
    }
}

#[test]
fn messages_arrive_over_tcp() {
    let run = task(3, "--mca btl tcp,self", "exchange").succeeds();
    assert_eq!(run.lines("in order"), 3, "{}", run.errors);
}

#[test]
fn large_messages_travel_in_pieces() {
    let run = task(3, "-x PDAWL_WIRE_PIECE=1000", "exchange").succeeds();
    assert_eq!(run.lines("in order"), 3, "{}", run.errors);
}

#[test]
fn a_rank_that_does_something_else_is_not_lost() {
    let run = task(3, "", "busy").succeeds();
    assert_eq!(run.lines("in order"), 3, "{}", run.errors);
}

#[test]
fn times_are_printed() {
    let run = task(2, "", "speed").succeeds();
    assert_eq!(run.lines("GB/s"), 4, "{}", run.errors);
}

/// The option of `mpirun` with which the others go on, and whether MPI tells them of losses.
fn tolerance() -> (&'static str, bool) {
    let version = Command::new("mpirun").arg("--version").output();
    let version = version.expect("Open MPI is there").stdout;
    match String::from_utf8_lossy(&version).contains("(Open MPI) 4.") {
        true => ("--enable-recovery", false),
        false => ("--with-ft ulfm", true),
    }
}

const TOLD: &str = "MPI says that its process has failed";

#[test]
fn survivors_hear_of_a_killed_rank_and_go_on() {
    let (option, tells) = tolerance();
    let run = task(3, option, "lose");
    assert_eq!(run.lines("heard of the loss"), 2, "{}", run.errors);
    assert_eq!(run.lines("in order"), 2, "{}", run.errors);
    // MPI may also refuse to send to the rank before.
    assert!(
        !tells || run.lines("nothing was heard") == 0,
        "{}",
        run.printed
    );
}

/// As the library was built with headers that do not know the fault tolerance.
#[test]
fn the_fault_tolerance_of_mpi_is_found_when_the_run_begins() {
    let folder = env::temp_dir().join(format!("failing-mpi-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("there is a folder for temporary files");
    let fake = folder.join("failing_mpi.so");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/failing_mpi.c");
    let mut compiler = Command::new("mpicc");
    compiler
        .args(["-shared", "-fPIC", "-o"])
        .arg(&fake)
        .arg(source);
    assert!(compiler.status().expect("mpicc starts").success());
    let (option, _) = tolerance();
    let (fake, numbers) = (fake.display(), folder.display());
    let options = format!("{option} -x LD_PRELOAD={fake} -x FAILING_MPI={numbers}");
    let run = task(3, &options, "lose");
    assert_eq!(run.lines(TOLD), 2, "{}{}", run.printed, run.errors);
    assert_eq!(run.lines("in order"), 2, "{}", run.errors);
    std::fs::remove_dir_all(&folder).expect("the folder is there");
}

#[test]
fn a_wrong_limit_is_refused() {
    let run = task(1, "-x PDAWL_WIRE_PIECE=0", "exchange");
    assert!(!run.output.status.success());
    assert_eq!(run.lines("PDAWL_WIRE_PIECE is 0"), 1, "{}", run.errors);
}

#[test]
fn without_the_library_one_rank_says_how_to_build_it() {
    let run = run(3, "", &["exchange"]);
    assert_eq!(run.output.status.code(), Some(1));
    let command = "cargo build --release -p pdawl-wire-mpi";
    assert_eq!(run.lines(command), 1, "{}", run.errors);
}
