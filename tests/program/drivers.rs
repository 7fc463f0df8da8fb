//! `pdawl devices` where a driver or the loader is wrong, and kernels where two drivers
//! show the same CPU.

#![cfg(target_os = "linux")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use predicates::prelude::*;
use predicates::str::contains;

use crate::command::{Home, process};

/// `pdawl devices` with the drivers of a folder.
fn devices(vendors: &Path) -> Output {
    let mut command = process("devices");
    command.env("OCL_ICD_VENDORS", vendors).output().unwrap()
}

/// Makes a library, linked with another one.
fn library(file: &Path, source: &str, with: Option<&Path>) {
    let code = file.with_extension("c");
    fs::write(&code, source).unwrap();
    let mut compiler = Command::new("cc");
    compiler
        .arg("-shared")
        .arg("-fPIC")
        .arg("-o")
        .arg(file)
        .arg(&code);
    compiler.args(with);
    assert!(compiler.status().unwrap().success());
}

#[test]
fn files_that_loaders_do_not_survive_are_named() {
    for content in [
        &b"\0\0\0\0"[..],
        b"\0libpocl.so.2\n",
        &vec![b'x'; 20_000_000],
    ] {
        let home = Home::new();
        fs::write(home.path("bad.icd"), content).unwrap();
        let output = devices(&home.path("."));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(0), "{said}");
        assert!(
            said.contains("bad.icd") && said.contains("or remove it"),
            "{said}"
        );
        assert!(said.len() < 4000, "{}", said.len());
        assert!(String::from_utf8_lossy(&output.stdout).contains("host"));
    }
}

#[test]
fn a_driver_that_lacks_a_library_is_reported_with_the_reason() {
    let home = Home::new();
    let (needed, driver) = (home.path("libneeded.so"), home.path("libdriver.so"));
    library(&needed, "int needed(void) { return 1; }", None);
    library(
        &driver,
        "int needed(void); int use(void) { return needed(); }",
        Some(&needed),
    );
    fs::remove_file(&needed).unwrap();
    fs::write(home.path("a.icd"), format!("{}\n", driver.display())).unwrap();
    let text = home.path("libtext.so");
    fs::write(&text, "no library, but long enough to look at. ".repeat(9)).unwrap();
    fs::write(home.path("b.icd"), format!("{}\n", text.display())).unwrap();
    let said = devices(&home.path("."));
    let said = String::from_utf8_lossy(&said.stderr).into_owned();
    let why = contains("a.icd").and(contains("libneeded.so: cannot open shared object file"));
    assert!(why.eval(&said), "{said}");
    assert!(
        contains("b.icd")
            .and(contains("invalid ELF header"))
            .eval(&said),
        "{said}"
    );
}

#[test]
fn a_loader_that_lacks_a_library_is_reported_with_the_reason() {
    let home = Home::new();
    let (needed, loader) = (home.path("libneeded.so"), home.path("libOpenCL.so.1"));
    library(&needed, "int needed(void) { return 1; }", None);
    library(
        &loader,
        "int needed(void); int use(void) { return needed(); }",
        Some(&needed),
    );
    fs::remove_file(&needed).unwrap();
    let mut command = process("devices");
    let output = command
        .env("LD_LIBRARY_PATH", home.path("."))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{said}");
    let why = contains("the OpenCL loader cannot be loaded").and(contains("libneeded.so"));
    assert!(why.eval(&said), "{said}");
}

/// PoCL shows the CPU as often as it is asked to, as two drivers would.
#[test]
fn each_core_takes_part_once_by_default() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels/examples");
    for (line, file) in [
        (
            "run kernel FILE -D n=64 --steps 2 --format json",
            "matmul.json",
        ),
        ("run dag FILE --format json", "head.dag"),
    ] {
        let path = examples.join(file).display().to_string();
        let mut command = process(&line.replace("FILE", &path));
        let output = command
            .env("POCL_DEVICES", "pthread pthread")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(0), "{said}");
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert!(
            report["notes"]
                .to_string()
                .contains("its cores are those of"),
            "{report}"
        );
    }
}

/// An option that a workload refuses is not in its help.
#[test]
fn the_help_has_no_memory_limit_where_there_is_none() {
    for (workload, has) in [
        ("matmul", false),
        ("cholesky", false),
        ("dag", false),
        ("transformer", false),
        ("stencil", true),
    ] {
        let output = process(&format!("run {workload} --help")).output().unwrap();
        let help = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(help.contains("--host-memory"), has, "{workload}");
    }
}

/// PoCL has no devices, or compiles nothing, where it has no folder for its cache.
#[test]
fn pocl_without_its_cache_is_reported_with_the_remedy() {
    let vadd = Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels/examples/vadd.json");
    for (variable, value, folder) in [
        ("XDG_CACHE_HOME", "/proc/x", "/proc/x/pocl/kcache"),
        ("HOME", "/dev/null", "/dev/null/.cache/pocl/kcache"),
        ("POCL_CACHE_DIR", "/proc/x", "/proc/x"),
        ("POCL_CACHE_DIR", "/dev/null", "/dev/null"),
        ("POCL_CACHE_DIR", "", "POCL_CACHE_DIR is empty"),
    ] {
        let mut command = process(&format!("run kernel {}", vadd.display()));
        for other in ["HOME", "XDG_CACHE_HOME", "POCL_CACHE_DIR"] {
            command.env_remove(other);
        }
        let output = command.env(variable, value).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{said}");
        let remedy = contains(folder).and(contains("set POCL_CACHE_DIR to a folder"));
        let remedy = remedy.or(contains(folder).and(contains("set it to a folder")));
        assert!(remedy.eval(&said), "{variable}={value}: {said}");
        assert!(!said.contains("hardware is visible"), "{said}");
    }
}

/// A driver that is loaded leaves a file.
#[test]
fn what_needs_no_device_loads_no_driver() {
    let home = Home::new();
    let loaded = home.path("loaded");
    let source = format!(
        "#include <stdio.h>\n__attribute__((constructor)) static void leave(void) {{ \
         fclose(fopen(\"{}\", \"w\")); }}",
        loaded.display()
    );
    let driver = home.path("libdriver.so");
    library(&driver, &source, None);
    fs::create_dir(home.path("cuda")).unwrap();
    library(&home.path("cuda/libcuda.so.1"), &source, None);
    fs::write(home.path("a.icd"), format!("{}\n", driver.display())).unwrap();
    fs::write(
        home.path("a.mtx"),
        "%%MatrixMarket matrix coordinate real general\n2 2 1\n1 1 1.0\n",
    )
    .unwrap();
    let loads = |line: &str| {
        let mut command = process(line);
        command
            .current_dir(home.folder())
            .env("OCL_ICD_VENDORS", home.folder());
        if line != "devices" {
            command.env("LD_LIBRARY_PATH", home.path("cuda"));
        }
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{line}: {said}");
        loaded.exists()
    };
    for line in [
        "--help",
        "machine show k40",
        "model list",
        "matrix stats a.mtx",
        "predict stencil --machine k40 --size 1000",
        "run stencil --machine k40 --size 100 --steps 2",
        "run spmv --matrix a.mtx --machine v100x1 --steps 2",
        "run lu --machine v100x2 --size 100",
        "run transformer --machine titan --heads 1 --beta 64",
        "run matmul --size 100 --cluster four",
    ] {
        assert!(!loads(line), "{line} loads a driver");
    }
    assert!(loads("devices"), "the driver leaves its file");
}
