//! Kernels that leave their buffers, and compilers that end the process.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde_json::Value;

use super::fixtures::Folder;
use crate::command::process;

/// A kernel `k` of `items` work-items that reads `a` of `given` numbers and writes `out`.
fn spec(items: u64, given: u64, written: u64) -> String {
    format!(
        r#"{{"src": "k.cl", "name": "k", "workDimension": 1, "globalWorkSize": {items},
        "inputBuffers": [{{"type": "int", "size": {given}, "pos": 0}}],
        "outputBuffers": [{{"type": "int", "size": {written}, "pos": 1}}]}}"#
    )
}

fn source(statement: &str) -> String {
    format!(
        "__kernel void k(__global const int *a, __global int *out) {{
            const size_t i = get_global_id(0);
            {statement}
        }}"
    )
}

fn folder(spec: &str, statement: &str) -> Folder {
    Folder::with(&[("spec.json", spec), ("k.cl", &source(statement))])
}

fn run(folder: &Folder, more: &str) -> Command {
    let file = folder.spec();
    let mut command = process(&format!(
        "run kernel {} --steps 2 --format json {more}",
        file.display()
    ));
    command.env("NO_COLOR", "1");
    command
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_kernel_that_leaves_its_buffers_is_an_error_that_names_them() {
    const READS: &str = "reads or writes";
    for (items, given, written, statement, parts) in [
        // A wrong size: 1024 numbers of 1048576.
        (
            1 << 20,
            1024,
            1 << 20,
            "out[i] = a[i];",
            [READS, "past the end of buffer `a` (argument 0, 4096 bytes)"],
        ),
        (
            1024,
            1024,
            1024,
            "out[i] = a[i + 1];",
            [READS, "past the end of buffer `a` (argument 0, 4096 bytes)"],
        ),
        (
            1024,
            64,
            1024,
            "out[i] = a[(long)i - 8192];",
            [
                READS,
                "before the beginning of buffer `a` (argument 0, 256 bytes)",
            ],
        ),
        // Bytes on the same page.
        (
            1000,
            1000,
            1000,
            "out[i + 1] = a[i];",
            [
                READS,
                "past the end of buffer `out` (argument 1, 4000 bytes) by 1 bytes",
            ],
        ),
        // Where a pointer is taken for one to another type, buffers are aligned.
        (
            1000,
            1000,
            1000,
            "((__global int *)out)[i + 1] = a[i];",
            [
                "writes",
                "past the end of buffer `out` (argument 1, 4000 bytes) by 1 bytes",
            ],
        ),
        (
            900,
            900,
            900,
            "out[i] = a[(long)i - 1];",
            [
                READS,
                "before the beginning of buffer `a` (argument 0, 3600 bytes) by 4 bytes",
            ],
        ),
        (
            900,
            900,
            900,
            "out[(long)i - 1] = a[i];",
            [
                "writes",
                "before the beginning of buffer `out` (argument 1, 3600 bytes)",
            ],
        ),
        (
            64,
            64,
            64,
            "out[i] = a[i]; *(volatile __global int *)(i + 16) = 1;",
            [READS, "at an address outside of all its buffers"],
        ),
    ] {
        let folder = folder(&spec(items, given, written), statement);
        let output = run(&folder, "").output().expect("the program runs");
        let said = said(&output);
        assert_eq!(output.status.code(), Some(1), "{statement}: {said}");
        let wanted = format!("kernel `k` {} {}", parts[0], parts[1]);
        for part in [&wanted, "on opencl", "try: other sizes in"] {
            assert!(said.contains(part), "{statement}: no {part} in {said}");
        }
        assert!(output.stdout.is_empty());
    }
}

/// Standard output is the report's, and what is loaded comes from a pipe, which can be
/// read only once.
#[test]
fn good_kernels_run_as_before() {
    let statement = "out[a[i]] = i; if (i == 0) printf(\"said by the kernel\\n\");";
    let folder = folder(&spec(1000, 1000, 1000), statement);
    let save = folder.path("out.bin");
    let more = format!("--load 0=/dev/stdin --save 1={} --verify", save.display());
    let mut command = run(&folder, &more);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.stderr(Stdio::null()).spawn().expect("the program");
    let reversed: Vec<u8> = (0..1000i32).rev().flat_map(i32::to_ne_bytes).collect();
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin.write_all(&reversed).expect("it reads");
    drop(stdin);
    let output = child.wait_with_output().expect("an end");
    let report: Value = serde_json::from_slice(&output.stdout).expect("a report alone");
    assert_eq!(report["verification"]["right"], true, "{report}");
    let notes = report["notes"].to_string();
    assert!(!notes.contains("process of its own"), "{notes}");
    assert_eq!(std::fs::read(save).expect("a file"), reversed);
}

/// As a rank of `mpirun` is bound: the whole device has more units than this process cores.
#[test]
fn a_part_of_a_device_is_tried_as_that_part() {
    let folder = folder(&spec(1000, 1000, 1000), "out[i] = a[i];");
    let mut cores = sched_getaffinity(None).expect("the cores of this thread");
    let first = (0..CpuSet::MAX_CPU).find(|core| cores.is_set(*core));
    let first = first.expect("a core");
    cores.clear();
    cores.set(first);
    // Of the test's own thread, from which the program inherits it.
    sched_setaffinity(None, &cores).expect("one core");
    let mut command = run(&folder, "--devices opencl0.0:1=own --verify");
    let output = command.output().expect("the program runs");
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let report: Value = serde_json::from_slice(&output.stdout).expect("a report");
    let notes = report["notes"].to_string();
    assert!(!notes.contains("process of its own"), "{notes}");
}

#[test]
fn a_graph_with_a_kernel_that_leaves_its_buffers_is_an_error_as_well() {
    let part = spec(1024, 1024, 1024);
    let folder = Folder::with(&[
        ("k.cl", &source("out[i] = a[i + (a[i] == 77)];")),
        ("first.cl", &source("out[i] = 77 + 0 * a[i];")),
        ("k.json", &part),
        ("first.json", &part.replace("k.cl", "first.cl")),
        ("g.dag", "0 first.json\n1 k.json\n---\n0 1->1 0\n---\n"),
    ]);
    let run = format!("run dag {}", folder.path("g.dag").display());
    let output = process(&run).output().expect("the program runs");
    let said = said(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    let wanted = "kernel `k` reads or writes past the end of buffer `a` (argument 0, 4096 bytes)";
    assert!(said.contains(wanted), "{said}");
}

/// Makes a loader whose `clBuildProgram` ends the process for the first device, or for all.
fn aborting_loader(file: &Path, all: bool) {
    let source = format!(
        r#"#include <dlfcn.h>
        #include <stdlib.h>
        int clGetPlatformIDs(unsigned, void **, unsigned *);
        int clGetDeviceIDs(void *, unsigned long, unsigned, void **, unsigned *);
        int clBuildProgram(void *program, unsigned count, void **devices, const char *options,
                           void *function, void *data) {{
            void *platform, *first;
            clGetPlatformIDs(1, &platform, 0);
            clGetDeviceIDs(platform, 0xffffffff, 1, &first, 0);
            if ({all} || (count > 0 && devices[0] == first)) abort();
            int (*build)(void *, unsigned, void **, const char *, void *, void *);
            *(void **)&build = dlsym(dlopen("libOpenCL.so.1", RTLD_NOW), "clBuildProgram");
            return build(program, count, devices, options, function, data);
        }}"#,
        all = i32::from(all)
    );
    let code = file.with_extension("c");
    let mut written = File::create(&code).expect("a file");
    written.write_all(source.as_bytes()).expect("a file");
    let options = ["-shared", "-fPIC", "-Wl,--no-as-needed", "-o"];
    let mut compiler = Command::new("cc");
    compiler.args(options).arg(file).arg(&code);
    let status = compiler.args(["-l:libOpenCL.so.1", "-ldl"]).status();
    assert!(status.expect("a C compiler").success());
}

#[test]
fn a_device_whose_compiler_ends_the_process_is_left_out() {
    let folder = folder(&spec(1000, 1000, 1000), "out[i] = a[i];");
    let loader = folder.path("libaborts.so");
    let of_both = |folder: &Folder| {
        let mut command = run(folder, "--devices opencl0.0,opencl0.1 --verify");
        command.env("OPENCL_DYLIB_PATH", &loader);
        command.env("POCL_DEVICES", "pthread pthread");
        command.output().expect("the program runs")
    };
    aborting_loader(&loader, false);
    let output = of_both(&folder);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let report: Value = serde_json::from_slice(&output.stdout).expect("a report");
    assert_eq!(report["verification"]["right"], true);
    assert_eq!(
        report["machine"]["devices"][0]["name"], "opencl0.1",
        "{report}"
    );
    let notes = report["notes"].to_string();
    for part in [
        "opencl0.0",
        "is left out: its driver ends the process with SIGABRT",
    ] {
        assert!(notes.contains(part), "no {part} in {notes}");
    }
    aborting_loader(&loader, true);
    let output = of_both(&folder);
    let said = said(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("no device is left for"), "{said}");
    assert!(
        said.contains("try: another version of the driver"),
        "{said}"
    );
}
