//! `pdawl run` over three processes that `mpirun` starts on this machine. Messages go over
//! shared memory.
//!
//! The tests need Open MPI and libclang, so `cargo test` alone leaves them out and says so;
//! `make test` includes them where both are there.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::LazyLock;
use std::time::Duration;

use assert_cmd::cargo::cargo_bin;
use serde_json::Value;

/// The wire over MPI, in the folder of the program. Cargo builds it, which takes no time
/// when nothing has changed.
static WIRE: LazyLock<PathBuf> = LazyLock::new(|| {
    let program = cargo_bin("pdawl");
    let folder = program.parent().expect("the program is in a folder");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet", "--lib", "--package", "pdawl-wire-mpi"]);
    cargo.arg("--target-dir");
    cargo.arg(folder.parent().expect("a profile is in the target folder"));
    cargo.current_dir(env!("CARGO_MANIFEST_DIR"));
    if folder.ends_with("release") {
        cargo.arg("--release");
    }
    let built = cargo.status().expect("cargo starts");
    assert!(built.success(), "the wire over MPI is not built");
    folder.join("libpdawl_wire_mpi.so")
});

/// Runs `pdawl run` with these arguments over three processes, each with one worker thread.
fn run(arguments: &str) -> Output {
    let mut command = Command::new("timeout");
    command.args(["120", "mpirun", "-n", "3", "--oversubscribe"]);
    // `vader` is Open MPI's shared memory.
    command.args(["--bind-to", "none", "--mca", "btl", "vader,self"]);
    // Containers have no other user.
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1");
    command.env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    command.arg(cargo_bin("pdawl")).arg("run");
    command.args(arguments.split_whitespace());
    command.args(["--devices", "host:1", "--wire"]).arg(&*WIRE);
    command.output().expect("`timeout` starts")
}

/// Starts processes in groups, with some options of `mpirun` and a command line each.
fn run_groups(groups: &[(&str, &str)]) -> Output {
    let mut command = Command::new("timeout");
    command.args(["120", "mpirun", "--enable-recovery", "--oversubscribe"]);
    command.args(["--bind-to", "none", "--mca", "btl", "vader,self"]);
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1");
    command.env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    for (number, (options, line)) in groups.iter().enumerate() {
        if number > 0 {
            command.arg(":");
        }
        command.args(options.split_whitespace());
        if line.is_empty() {
            command.arg("/bin/true");
            continue;
        }
        command.arg(cargo_bin("pdawl")).arg("run");
        command.args(line.split_whitespace());
        // The host runs no OpenCL C.
        if !line.starts_with("kernel") {
            command.args(["--devices", "host:1"]);
        }
        command.arg("--wire").arg(&*WIRE);
    }
    command.output().expect("`timeout` starts")
}

/// What processes say that all end without a result.
fn refused(groups: &[(&str, &str)]) -> String {
    let output = run_groups(groups);
    // The status of `timeout` when the time is over.
    assert_ne!(output.status.code(), Some(124), "{groups:?} hangs");
    assert_eq!(output.stdout, b"", "{groups:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
#[ignore = "needs Open MPI and libclang: make test-mpi"]
fn processes_that_are_started_unlike_all_end_and_say_why() {
    for (first, other, expected) in [
        (
            "lu --size 200",
            "lu --size 200 --placement central",
            "--placement is the usual one at node 0, and is central at node 2",
        ),
        (
            "fft --size 256 --prefetch 1 --seed 1",
            "fft --size 256 --seed 3",
            "--seed is 1 at node 0, and is 3 at node 2",
        ),
        (
            "spmv --matrix uniform:5000,9 --steps 3",
            "spmv --matrix uniform:5000,9 --steps 3 --iterate",
            "--iterate is false at node 0, and is true at node 2",
        ),
        (
            "convolution --size 300 --filter 7",
            "sort --size 30000",
            "the command is run convolution at node 0, and is run sort at node 2",
        ),
    ] {
        let errors = refused(&[("-n 2", first), ("-n 1", other)]);
        assert_eq!(
            errors.matches(expected).count(),
            1,
            "{first}, {other}: {errors}"
        );
    }
}

#[test]
#[ignore = "needs Open MPI and libclang: make test-mpi"]
fn processes_may_have_devices_and_outputs_of_their_own() {
    let line = "lu --size 200 --tile 32 --verify --format json";
    let other = "lu --size=200 --tile 32 --verify --seed 1 --spread together";
    let output = run_groups(&[("-n 2", line), ("-n 1", other)]);
    let report: Value = serde_json::from_slice(&output.stdout).expect("one report in JSON");
    assert_eq!(report["verification"]["right"], true);
    assert_eq!(report["nodes"].as_array().map(Vec::len), Some(3));
}

#[test]
#[ignore = "needs Open MPI and libclang: make test-mpi"]
fn a_process_that_cannot_do_its_part_ends_all() {
    let (here, there) = (tempfile::tempdir(), tempfile::tempdir());
    let (here, there) = (here.expect("a folder"), there.expect("a folder"));
    let matrix = "%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 1.0\n2 2 2.0\n";
    std::fs::write(here.path().join("a.mtx"), matrix).expect("a file");
    let line = "pagerank --matrix a.mtx --no-cache";
    let within = |count: u32, folder: &tempfile::TempDir| {
        format!("-n {count} -wdir {}", folder.path().display())
    };
    for (groups, lost) in [
        ([within(2, &here), within(1, &there)], "node 2"),
        ([within(1, &there), within(2, &here)], "node 0"),
    ] {
        let errors = refused(&[(&groups[0], line), (&groups[1], line)]);
        let expected = format!("{lost}: a.mtx");
        assert_eq!(errors.matches(&expected).count(), 1, "{errors}");
    }
}

#[test]
#[ignore = "needs Open MPI and libclang: make test-mpi"]
fn kernels_that_cannot_be_divided_are_reported_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let count = "__kernel void k(__global const int *x, __global int *n) {
        if (x[get_global_id(0)] > 3) atomic_inc(n);
    }";
    let turn = "__kernel void k(__global const int *x, __global int *n) {
        n[4999 - get_global_id(0)] = x[get_global_id(0)];
    }";
    for (name, source, size) in [("count", count, 1), ("turn", turn, 5000)] {
        let write = |ending: &str, text: &str| {
            let path = folder.path().join(format!("{name}.{ending}"));
            std::fs::write(path, text).expect("a file");
        };
        write("cl", source);
        let spec = format!(
            r#"{{"src": "{name}.cl", "name": "k", "workDimension": 1, "globalWorkSize": 5000,
            "inputBuffers": [{{"type": "int", "size": 5000, "pos": 0}}],
            "ioBuffers": [{{"type": "int", "size": {size}, "pos": 1, "break": 1}}]}}"#
        );
        write("json", &spec);
    }
    let options = format!("-n 2 -wdir {}", folder.path().display());
    for (line, expected) in [
        (
            "count.json",
            "node 0: count.json: the kernel cannot be divided: work-groups",
        ),
        (
            "turn.json",
            "node 0: turn.json: argument 1 is written, and it was not found",
        ),
        (
            "turn.json --load 1=none.bin",
            "node 0: --load: cannot read none.bin",
        ),
        ("turn.json --devices host", "runs no OpenCL C"),
    ] {
        let errors = refused(&[(&options, &format!("kernel {line}"))]);
        assert_eq!(errors.matches(expected).count(), 1, "{line}: {errors}");
    }
}

#[test]
#[ignore = "needs Open MPI and libclang: make test-mpi"]
fn processes_do_not_wait_for_ever_for_one_that_never_joins() {
    let line = "lu --size 200";
    let errors = refused(&[("-n 2", line), ("-n 1", "")]);
    assert!(
        errors.contains("not all nodes have joined within 10 s"),
        "{errors}"
    );
}

/// The report of a run that succeeds.
fn report(arguments: &str) -> Value {
    let output = run(&format!("{arguments} --verify --format json"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments}: {errors}");
    serde_json::from_slice(&output.stdout).expect("one report in JSON")
}

#[test]
#[ignore = "needs Open MPI and libclang: make test-mpi"]
fn three_processes_compute_right_results_together() {
    for arguments in [
        // Of small ones, fewer nodes take part, unless a policy is named.
        "convolution --size 301 --filter 7 --tile 32 --spread oblivious",
        "convolution --size 1200 --filter 21 --tile 100",
        "matmul --size 1023 --tile 128",
        "lu --size 200 --tile 32 --spread steal",
        "fft --size 2048",
        "stencil --size 3000 --steps 5",
        "spmv --matrix uniform:200000,40 --iterate --steps 3",
        "pagerank --matrix rmat:17,16 --steps 5",
    ] {
        let report = report(arguments);
        assert_eq!(report["verification"]["right"], true, "{arguments}");
        let nodes = report["nodes"].as_array().expect("nodes");
        assert_eq!(nodes.len(), 3, "{arguments}");
        let sum = |key| nodes.iter().filter_map(|node| node[key].as_u64()).sum();
        let (computed, sent): (u64, u64) = (sum("subtasks"), sum("sent_bytes"));
        let parameters = &report["workload"]["parameters"];
        let count = |key: &str| parameters[key].as_u64().expect("a number");
        match count("subtasks") {
            // A co-run has none, and each node computes in each step.
            0 => assert!(computed >= 3 * count("tasks"), "{arguments}: {computed}"),
            subtasks => assert_eq!(subtasks, computed, "{arguments}"),
        }
        assert!(sent > 0, "{arguments}: nothing was sent");
    }
}

/// The nodes read their rows of a grid's file, and the first one writes all of the last version:
/// the file of one process.
#[test]
#[ignore = "needs Open MPI and libclang: make test-mpi"]
fn three_processes_go_from_a_grid_in_a_file_to_another() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let alone = |line: &str| {
        let mut command = Command::new(cargo_bin("pdawl"));
        command.args(["run", "stencil", "--devices", "host:1"]);
        let status = command.args(line.split_whitespace()).output();
        assert!(status.expect("pdawl starts").status.success(), "{line}");
    };
    let rule = "--coefficients 0.3,0.25,-0.125,0.1,0.2";
    alone(&format!(
        "--nx 71 --ny 93 --steps 1 --output {}",
        path("a.npy")
    ));
    let line = format!("--input {} {rule} --steps 12", path("a.npy"));
    alone(&format!("{line} --output {}", path("alone.npy")));
    let report = report(&format!("stencil {line} --output {}", path("nodes.npy")));
    assert_eq!(report["verification"]["right"], true);
    let size = &report["workload"]["parameters"]["size"];
    let size = size.as_str().expect("a text");
    assert!(
        size.contains("coefficients 0.3,0.25,-0.125,0.1,0.2, 12 steps, from "),
        "{size}"
    );
    let bytes = |name: &str| std::fs::read(path(name)).expect("a file");
    assert!(bytes("nodes.npy") == bytes("alone.npy"));

    let mut wrong = bytes("a.npy");
    let last = wrong.len() - 8;
    wrong[last..].copy_from_slice(&f64::NAN.to_le_bytes());
    std::fs::write(path("nan.npy"), wrong).expect("a file");
    let output = run(&format!("stencil --input {}", path("nan.npy")));
    assert!(!output.status.success());
    let errors = String::from_utf8_lossy(&output.stderr);
    let expected = "node 0: ".to_owned() + &path("nan.npy") + ": the number in row 92, column 70";
    assert!(errors.contains(&expected), "{errors}");
}

/// An NPY file of matrices of singles, or of pairs of them that are complex numbers.
fn write(path: &Path, descr: &str, shape: &str, numbers: &[f32]) {
    let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
    std::fs::write(path, bytes).expect("a file");
}

/// Numbers that JSON has not, some with bits of their own, travel as others do: every run ends
/// with a report, or says what is wrong with the matrix.
#[test]
#[ignore = "needs Open MPI and libclang: make test-mpi"]
fn numbers_that_are_not_finite_travel_between_processes() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    let odd = [
        0x7fc0_0123,
        0xff80_0001,
        0x7f80_0000,
        0x8000_0000,
        1,
        0xff80_0000,
    ];
    let mut numbers: Vec<f32> = (0..64 * 64).map(|i| (i % 17) as f32 - 8.0).collect();
    for (at, bits) in (7..).step_by(600).zip(odd) {
        numbers[at] = f32::from_bits(bits);
    }
    write(&path("square.npy"), "<f4", "(64, 64)", &numbers);
    write(&path("complex.npy"), "<c8", "(64, 32)", &numbers);
    write(&path("row.npy"), "<f4", "(4096,)", &numbers);
    for (line, may_fail) in [
        ("fft --input complex.npy --tile 4", ""),
        ("convolution --image square.npy --filter 3 --tile 8", ""),
        ("matmul --a square.npy --b square.npy --tile 16", ""),
        ("sort --input row.npy", ""),
        ("lu --input square.npy --tile 16", "infinite or no number"),
    ] {
        let words = line
            .split_whitespace()
            .map(|word| match word.ends_with(".npy") {
                true => path(word).display().to_string(),
                false => word.to_owned(),
            });
        let line = words.collect::<Vec<_>>().join(" ");
        let output = run(&format!("{line} --verify --format json"));
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(!errors.contains("no message"), "{line}: {errors}");
        match may_fail {
            "" => {
                let report: Value = serde_json::from_slice(&output.stdout).expect("a report");
                assert_eq!(report["verification"]["wrong"], 0, "{line}: {errors}");
            }
            why => assert!(errors.contains(why), "{line}: {errors}"),
        }
    }
}

#[test]
#[ignore = "needs Open MPI and libclang: make test-mpi"]
fn what_is_interrupted_leaves_no_temporary_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let files = || {
        std::fs::read_dir(folder.path())
            .expect("the folder")
            .count()
    };
    let mut command = Command::new("mpirun");
    command.args(["-n", "3", "--oversubscribe", "--bind-to", "none"]);
    command.args(["--mca", "btl", "vader,self"]);
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1");
    command.env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    command.arg(cargo_bin("pdawl")).current_dir(folder.path());
    let line = "run lu --size 6000 --output x.npy --pivots p.npy --devices host:1 --wire";
    command.args(line.split(' ')).arg(&*WIRE);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().expect("mpirun starts");
    while files() < 2 {
        assert!(
            child.try_wait().expect("a status").is_none(),
            "it has ended"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
    crate::command::interrupt(&child);
    child.wait().expect("a status");
    assert_eq!(files(), 0);
}

/// The static policy gives each node its part, so all three compute.
#[test]
#[ignore = "needs Open MPI and libclang: make test-mpi"]
fn each_of_three_processes_computes_its_part() {
    let report = report("convolution --size 192 --filter 3 --tile 16 --spread static");
    let nodes = report["nodes"].as_array().expect("nodes");
    // Twelve by twelve blocks.
    for node in nodes {
        assert_eq!(node["subtasks"], 48);
    }
}

#[test]
#[ignore = "needs Open MPI and libclang: make test-mpi"]
fn a_trace_has_the_devices_of_all_three_processes() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("trace.json");
    let line = "convolution --size 192 --filter 3 --tile 16 --spread static --trace";
    report(&format!("{line} {}", path.display()));
    let text = std::fs::read_to_string(&path).expect("a trace");
    let trace: Value = serde_json::from_str(&text).expect("JSON");
    let events = trace["traceEvents"].as_array().expect("events");
    for node in 0..3 {
        let is_of_node = |event: &&Value| {
            let name = event["args"]["name"].as_str().unwrap_or_default();
            event["name"] == "process_name" && name.starts_with(&format!("node {node}, "))
        };
        let device = events.iter().find(is_of_node).expect("the node's device");
        let own = events.iter().filter(|event| event["pid"] == device["pid"]);
        let kernels = own.filter(|event| event["cat"] == "ndrange");
        assert_eq!(kernels.count(), 48, "node {node}");
    }
}

/// The word count of `examples/`: node 0 alone has the result, which is that of one process.
#[test]
#[ignore = "needs Open MPI and libclang: make test-mpi"]
fn a_program_of_a_user_runs_over_three_processes() {
    let folder = cargo_bin("pdawl");
    let folder = folder.parent().expect("the program is in a folder");
    let mut cargo = Command::new(env!("CARGO"));
    // The features of the tests' own build, so that the library is not compiled again.
    cargo.args([
        "build",
        "--quiet",
        "--workspace",
        "--exclude",
        "pdawl-wire-mpi",
    ]);
    cargo.args(["--example", "word_count", "--target-dir"]);
    cargo.arg(folder.parent().expect("a profile is in the target folder"));
    cargo.current_dir(env!("CARGO_MANIFEST_DIR"));
    if folder.ends_with("release") {
        cargo.arg("--release");
    }
    assert!(cargo.status().expect("cargo starts").success());
    let example = folder.join("examples/word_count");
    let alone = Command::new(&example).output().expect("the example starts");
    let counts = String::from_utf8_lossy(&alone.stdout).into_owned();
    assert!(counts.contains("node: "), "{alone:?}");

    let mut command = Command::new("timeout");
    command.args(["120", "mpirun", "-n", "3", "--oversubscribe"]);
    command.args(["--bind-to", "none", "--mca", "btl", "vader,self"]);
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1");
    command.env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    command.env("PDAWL_WIRE", &*WIRE);
    let nodes = command.arg(&example).output().expect("`timeout` starts");
    let errors = String::from_utf8_lossy(&nodes.stderr);
    assert!(nodes.status.success(), "{errors}");
    assert_eq!(String::from_utf8_lossy(&nodes.stdout), counts);
}
