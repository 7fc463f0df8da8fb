//! Sources of kernels as they come: with a byte order mark, macros that make names,
//! required work-groups, names of types, structures, and output of their own.

use std::process::Command;

use serde_json::Value;

use super::fixtures::Folder;

/// Standard output, standard error and the exit status of the program in a folder.
fn pdawl(folder: &Folder, args: &str) -> (String, String, Option<i32>) {
    let output = Command::new(env!("CARGO_BIN_EXE_pdawl"))
        .args(args.split_whitespace())
        .current_dir(folder.path("."))
        .env("NO_COLOR", "1")
        .output()
        .expect("the program runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (
        text(&output.stdout),
        text(&output.stderr),
        output.status.code(),
    )
}

/// The specification of a kernel with one output of 64 elements and more fields.
fn spec(name: &str, element: &str, more: &str) -> String {
    format!(
        r#"{{"src": "k.cl", "name": "{name}", "workDimension": 1, "globalWorkSize": 64,
        "outputBuffers": [{{"type": "{element}", "pos": 0, "size": 64, "break": 1}}]{more}}}"#
    )
}

/// Checks, compiles and runs a kernel.
fn runs(source: &str, spec: &str) -> (Value, String) {
    let folder = Folder::with(&[("k.cl", source), ("spec.json", spec)]);
    let (_, err, status) = pdawl(&folder, "spec check spec.json");
    assert_eq!(status, Some(0), "{err}");
    let (out, err, status) = pdawl(
        &folder,
        "run kernel spec.json --steps 2 --verify --format json",
    );
    assert_eq!(status, Some(0), "{err}");
    let report: Value = serde_json::from_str(&out).unwrap_or_else(|e| panic!("{e}: {out}"));
    assert_eq!(report["verification"]["right"], true);
    (report, err)
}

#[test]
fn a_byte_order_mark_is_dropped() {
    let source = "\u{feff}__kernel void k(__global float *x) { x[get_global_id(0)] = 1; }";
    runs(source, &spec("k", "float", ""));
    runs(source, &format!("\u{feff}{}", spec("k", "float", "")));
}

#[test]
fn names_that_macros_make_are_found() {
    for source in [
        "#define K(t) __kernel void k_##t(__global t *x) { x[get_global_id(0)] = 1; }\nK(float)",
        "#define J(a, b) a##_##b\n#define X(a, b) J(a, b)\n#define T float\n\
         __kernel void X(k, T)(__global T *x) { x[get_global_id(0)] = 1; }",
        "#define F(...) __VA_ARGS__\n#define N k##_float\n\
         __kernel void N(F(__global float *x)) { x[get_global_id(0)] = 1; }",
    ] {
        runs(source, &spec("k_float", "float", ""));
    }
}

#[test]
fn names_of_types_are_followed() {
    let source = "typedef float DATA_TYPE;\ntypedef DATA_TYPE real;\n\
                  __kernel void k(__global real *x) { x[get_global_id(0)] = 1; }";
    runs(source, &spec("k", "float", ""));
    let folder = Folder::with(&[("k.cl", source), ("spec.json", &spec("k", "int", ""))]);
    let (_, err, status) = pdawl(&folder, "spec check spec.json --no-compile");
    assert_eq!(status, Some(1));
    assert!(err.contains("is of type float, not int"), "{err}");
    let (out, err, status) = pdawl(&folder, "spec infer k.cl");
    assert_eq!(status, Some(0), "{err}");
    let file: Value = serde_json::from_str(&out).expect("a kernel file");
    assert_eq!(file["outputBuffers"][0]["type"], "float");
}

#[test]
fn required_work_groups_are_compared_and_used() {
    let source = |size: &str| {
        format!(
            "#define TS 4\n__kernel __attribute__((reqd_work_group_size({size}, 1, 1)))\n\
             void k(__global float *x) {{ x[get_global_id(0)] = get_local_size(0); }}"
        )
    };
    for size in ["4", "TS", "TS * (1 + 1)"] {
        let (report, _) = runs(&source(size), &spec("k", "float", ""));
        let local = &report["workload"]["parameters"]["local"];
        assert_eq!(local[0], if size.contains('*') { 8 } else { 4 });
    }
    runs(
        &source("TS"),
        &spec("k", "float", r#", "localWorkSize": 4"#),
    );
    for (size, more, part) in [
        (
            "TS",
            r#", "localWorkSize": 8"#,
            "requires groups of [4, 1, 1]",
        ),
        ("8 * 3", "", "no multiple of the 24"),
        ("TS", r#", "localWorkSize": 1"#, "localWorkSize"),
    ] {
        let spec = spec("k", "float", more);
        let folder = Folder::with(&[("k.cl", &source(size)), ("spec.json", &spec)]);
        for command in ["spec check spec.json --no-compile", "run kernel spec.json"] {
            let (_, err, status) = pdawl(&folder, command);
            assert_eq!(status, Some(1), "{err}");
            assert!(err.contains(part), "{err}");
        }
    }
}

#[test]
fn structures_are_passed_by_their_bytes() {
    let source = "typedef struct { float a; int b; float c[3]; } pair;\n\
                  __kernel void k(__global pair *x, pair p) {\n\
                  int i = get_global_id(0); x[i].a = p.a + i; x[i].b = p.b;\n\
                  for (int j = 0; j < 3; j++) x[i].c[j] = p.c[j]; }";
    let value = r#", "varArguments": [{"type": "struct:20", "pos": 1, "value": 0}]"#;
    let spec = spec("k", "struct:20", value);
    let folder = Folder::with(&[("k.cl", source), ("spec.json", &spec)]);
    let floats = [1.5f32.to_ne_bytes(), 7i32.to_ne_bytes()].concat();
    let bytes = [
        floats,
        [2.0f32, 3.0, 4.0]
            .iter()
            .flat_map(|x| x.to_ne_bytes())
            .collect(),
    ]
    .concat();
    std::fs::write(folder.path("p.bin"), &bytes).expect("a file");
    let run = "run kernel spec.json --steps 1 --load 1=p.bin --save 0=x.bin --verify";
    let (_, err, status) = pdawl(&folder, run);
    assert_eq!(status, Some(0), "{err}");
    let saved = std::fs::read(folder.path("x.bin")).expect("the result");
    assert_eq!(saved.len(), 64 * 20);
    assert_eq!(saved[20..24], 2.5f32.to_ne_bytes());
    assert_eq!(saved[24..40], bytes[4..]);
    std::fs::write(folder.path("p.bin"), &bytes[..19]).expect("a file");
    let (_, err, status) = pdawl(&folder, run);
    assert_eq!(status, Some(2));
    assert!(
        err.contains("19 bytes, and the value at position 1 has 20"),
        "{err}"
    );
}

/// What a kernel prints does not get into a report.
#[test]
fn kernels_print_to_standard_error() {
    let source = "__kernel void k(__global float *x) { int i = get_global_id(0); x[i] = 1;\n\
                  if (i == 0) printf(\"of the kernel\\n\"); }";
    let (_, err) = runs(source, &spec("k", "float", ""));
    assert!(err.contains("of the kernel"), "{err}");
    let folder = Folder::with(&[("k.cl", source), ("spec.json", &spec("k", "float", ""))]);
    let (out, err, status) = pdawl(&folder, "run kernel spec.json --steps 1");
    assert_eq!(status, Some(0), "{err}");
    assert!(
        !out.contains("of the kernel") && err.contains("of the kernel"),
        "{out}"
    );
}
