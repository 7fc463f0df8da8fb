//! Dividers from C and Fortran.

use std::path::Path;
use std::process::Command;

/// Compiles a program with `compiler`, and returns what it prints.
fn run(compiler: &str, source: &str, flags: &[&str]) -> Option<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let test = std::env::current_exe().expect("a test");
    // Cargo builds the library beside its tests.
    let libraries = test.parent().expect("a folder");
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("program");
    let mut compile = Command::new(compiler);
    compile
        .arg(root.join(source))
        .args(flags)
        .arg("-o")
        .arg(&program);
    compile.arg("-I").arg(root).arg("-L").arg(libraries);
    compile.arg(format!("-Wl,-rpath,{}", libraries.display()));
    let compiled = compile
        .args(["-lpdawl_c", "-lm"])
        .current_dir(folder.path())
        .output()
        .ok()?;
    assert!(
        compiled.status.success(),
        "{}",
        String::from_utf8_lossy(&compiled.stderr)
    );
    let ran = Command::new(&program).output().expect("it starts");
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{said}");
    Some(String::from_utf8(ran.stdout).expect("text"))
}

const STRICT: [&str; 4] = ["-Wall", "-Wextra", "-Werror", "-g"];

#[test]
fn every_function_of_c_is_right_and_refuses_what_is_wrong() {
    let flags = [&STRICT[..], &["-fsanitize=address,undefined", "-pthread"]].concat();
    let printed = run("cc", "tests/every_function.c", &flags).expect("a C compiler");
    assert_eq!(printed, "right\n");
}

#[test]
fn threads_of_openmp_share_a_loop() {
    let flags = [&STRICT[..], &["-O2", "-fopenmp"]].concat();
    let printed = run("cc", "../../examples/divider/openmp.c", &flags).expect("a C compiler");
    assert!(
        printed.contains("part 1: ") && printed.ends_with("\n0 wrong\n"),
        "{printed}"
    );
}

#[test]
fn fortran_calls_the_interface_of_c() {
    let Some(printed) = run("gfortran", "../../examples/divider/fortran.f90", &["-O2"]) else {
        eprintln!("SKIPPED: gfortran is missing");
        return;
    };
    let units: Vec<u64> = printed
        .split_whitespace()
        .filter_map(|word| word.parse().ok())
        .collect();
    assert!(
        matches!(units[..], [one, other] if one + other == 300_000 && one > other),
        "{printed}"
    );
}
