//! Specification files that are truncated, misspelt or oversized, and values for
//! names that a file does not have.

use std::process::Command;

use super::fixtures::{Folder, SOURCE, SPEC, example};

/// Returns what `pdawl` prints, standard output before standard error, and its
/// exit status.
fn pdawl(folder: &Folder, args: &[&str]) -> (String, Option<i32>) {
    let output = Command::new(env!("CARGO_BIN_EXE_pdawl"))
        .args(args)
        .current_dir(folder.path(""))
        .env("NO_COLOR", "1")
        .output()
        .expect("the program runs");
    let both = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&both).into_owned();
    (text, output.status.code())
}

fn refused(folder: &Folder, args: &[&str], status: i32, parts: &[&str]) {
    let (text, is) = pdawl(folder, args);
    assert_eq!(is, Some(status), "{args:?}: {text}");
    assert!(text.len() < 1000, "{args:?}: {} characters", text.len());
    for part in parts {
        assert!(text.contains(part), "{args:?}: no `{part}` in {text}");
    }
}

#[test]
fn a_source_that_is_cut_off_is_reported_with_its_line() {
    let whole = "__kernel void scale(__global const float *in, __global float *out,\n\
                 __local float *part, int n) { /* one\n line */ float x = in[get_global_id(0)];\n\
                 out[get_global_id(0)] = 2 * x;\n}\n";
    // Truncate the file at every position where a bracket is open.
    let cuts = (0..whole.len()).filter(|at| {
        let before = &whole[..*at];
        let count = |signs: [char; 3]| before.matches(signs).count();
        count(['(', '[', '{']) != count([')', ']', '}'])
    });
    for at in cuts {
        let folder = Folder::with(&[("spec.json", SPEC), ("scale.cl", &whole[..at])]);
        let checked: &[&str] = &["spec", "check", "spec.json", "--no-compile"];
        refused(&folder, checked, 1, &["scale.cl, line ", "is never closed"]);
    }
    let folder = Folder::with(&[("spec.json", SPEC), ("scale.cl", &whole[..whole.len() - 2])]);
    let part = "scale.cl, line 2: `{` is never closed";
    for args in [
        &["spec", "infer", "scale.cl"][..],
        &["spec", "check", "spec.json", "--no-compile"],
        &["run", "kernel", "spec.json"],
    ] {
        refused(&folder, args, 1, &[part]);
    }
    // Continued lines, comments and directives count as lines.
    let far = "#define A 1 \\\n + 2\n// b {\n/* c\n*/ kernel void v() {\n get_global_id(0;\n}\n";
    let folder = Folder::with(&[
        ("far.cl", far),
        ("in.cl", "kernel void v(){get_global_id(0"),
    ]);
    refused(&folder, &["spec", "infer", "far.cl"], 1, &["line 6: `(`"]);
    refused(&folder, &["spec", "infer", "in.cl"], 1, &["line 1: `(`"]);
}

#[test]
fn sizes_beyond_everything_are_reported_with_their_field() {
    let long = format!("\"[{}]\"", vec!["1"; 40_000].join("+"));
    let deep = format!("\"[{}1{}]\"", "(".repeat(9000), ")".repeat(9000));
    for (global, part) in [
        (long.as_str(), "globalWorkSize: `"),
        (deep.as_str(), "nested more than"),
        (
            r#"["2**40", "2**40"]"#,
            "globalWorkSize: [1099511627776, 1099511627776] work-items",
        ),
        (
            r#"["2**62"]"#,
            "globalWorkSize[0]: `2**62` is 4611686018427387904; 2**48 work-items",
        ),
    ] {
        let text = SPEC.replacen(r#""[dataset]""#, global, 1);
        let text = text.replacen(r#""localWorkSize": "[TS]","#, "", 1);
        let text = text.replacen(r#""workDimension": 1"#, r#""workDimension": 2"#, 1);
        let folder = Folder::with(&[("spec.json", &text), ("scale.cl", SOURCE)]);
        for args in [
            &["spec", "check", "spec.json", "--no-compile"][..],
            &["run", "kernel", "spec.json"],
        ] {
            refused(&folder, args, 1, &["spec.json", part]);
        }
    }
}

const ADD: &str = r#"{"src": "add.cl", "name": "add", "workDimension": 1,
    "globalWorkSize": "n", "inputBuffers": [{"type": "float", "size": "n", "pos": 0}],
    "outputBuffers": [{"type": "float", "size": "n", "pos": 1}]}"#;

const ADD_SOURCE: &str = "__kernel void add(__global const float *a, __global float *b) {
    b[get_global_id(0)] = a[get_global_id(0)] + 1;
}
";

fn graph(text: &str) -> Folder {
    Folder::with(&[("g.dag", text), ("add.json", ADD), ("add.cl", ADD_SOURCE)])
}

const CHECK: [&str; 4] = ["spec", "check", "g.dag", "--no-compile"];

#[test]
fn misspelt_fields_of_a_graph_are_ignored_with_a_warning() {
    let folder = graph(
        r#"{"kernels": [{"id": 0, "name": "add", "devv": "cpu"}, {"id": 1, "name": "add"}],
            "edgs": ["0,1 -> 1,0"], "symbolicVariables": {"n": 8}}"#,
    );
    let (text, status) = pdawl(&folder, &CHECK);
    assert_eq!(status, Some(0), "{text}");
    for part in [
        "edgs is an unknown field",
        "kernels[0].devv is an unknown field",
    ] {
        assert!(text.contains(part), "no {part} in {text}");
    }
}

#[test]
fn a_graph_as_text_ends_with_its_second_line() {
    for text in [
        "0 add.json {\"n\":8}\n---\n",
        "0 add.json {\"n\":8}\n---\n0 1->0 0",
    ] {
        refused(
            &graph(text),
            &CHECK,
            1,
            &["g.dag: the line of `---` after its edges is missing"],
        );
    }
}

#[test]
fn what_a_graph_gives_is_blamed_on_the_graph() {
    let lines = "# parts\n0 add.json {\"n\":8}\n1 add.json {\"n\":8,\"partition\":11}\n---\n---\n";
    let parts = [
        "g.dag, line 3: with n 8, partition 11",
        "add.json, partition: 11 is not",
    ];
    refused(&graph(lines), &CHECK, 1, &parts);
    let figure = r#"{"kernels": [{"id": 0, "name": "add", "symbolicVariables": {"n": -2}}]}"#;
    let parts = [
        "g.dag, kernels[0]: with n -2",
        "add.json, globalWorkSize[0]: `n` is -2",
    ];
    refused(&graph(figure), &CHECK, 1, &parts);
}

#[test]
fn queues_for_no_device_or_no_number_are_reported() {
    for (queues, part) in [
        (r#"{"tpu": 1}"#, "cq.tpu: `tpu` is no device"),
        (r#"{"gpu": -1}"#, "cq.gpu: -1 queues; give a device 1 to 64"),
        (r#"{"gpu": "two"}"#, "cq.gpu: \"two\" queues"),
        ("[2, 65]", "cq.r2: 65 queues"),
        ("3", "cq: 3 is neither"),
    ] {
        let text = format!(
            r#"{{"kernels": [{{"id": 0, "name": "add"}}], "symbolicVariables": {{"n": 8}},
                "cq": {queues}}}"#
        );
        refused(&graph(&text), &CHECK, 1, &["g.dag, ", part]);
    }
    let text = r#"{"kernels": [{"id": 0, "name": "add"}], "symbolicVariables": {"n": 8},
                   "cq": {"gpu": 2, "cpu": 1, "r1": 3, "opencl0.0": 4}}"#;
    let (text, status) = pdawl(&graph(text), &CHECK);
    assert_eq!(status, Some(0), "{text}");
}

#[test]
fn values_for_symbols_that_are_not_there_are_refused() {
    let folder = Folder::with(&[
        ("spec.json", SPEC),
        ("scale.cl", SOURCE),
        ("add.json", ADD),
        ("add.cl", ADD_SOURCE),
        ("g.dag", "0 add.json {\"n\":8}\n---\n---\n"),
    ]);
    let known = "one of TS, dataset, localWorkSize, partition, size_percent";
    for command in [
        &["spec", "check"][..],
        &["run", "kernel"],
        &["graph", "show"],
    ] {
        let args = [command, &["spec.json", "-D", "datset=1000"]].concat();
        let parts = ["-D datset: spec.json has no symbol `datset`", known];
        refused(&folder, &args, 2, &parts);
    }
    refused(
        &folder,
        &["run", "dag", "g.dag", "-D", "m=1"],
        2,
        &["has no symbol `m`"],
    );
    let given = ["-D", "n=4", "-D", "partition=3", "-D", "localWorkSize=2"];
    let (text, status) = pdawl(&folder, &[&CHECK[..], &given].concat());
    assert_eq!(status, Some(0), "{text}");
    for wrong in ["1x", "", "=2", "a b"] {
        refused(
            &folder,
            &["spec", "infer", "add.cl", "-D", wrong],
            2,
            &["NAME=VALUE"],
        );
    }
    let sources = ["--sources", "/nowhere"];
    let args = [&["spec", "check", "spec.json"][..], &sources].concat();
    refused(
        &folder,
        &args,
        2,
        &["--sources: there is no folder /nowhere"],
    );
}

#[test]
fn no_output_goes_over_another_file_of_the_command() {
    let folder = Folder::with(&[
        ("spec.json", SPEC),
        ("scale.cl", SOURCE),
        ("add.json", ADD),
        ("add.cl", ADD_SOURCE),
        ("in.bin", ""),
        ("g.dag", "0 add.json {\"n\":8}\n---\n---\n"),
    ]);
    let kernel = ["run", "kernel", "spec.json"];
    let two = "two outputs have the path";
    let over = "is read by this command, and would be overwritten";
    let cases: [(&[&str], &[&str], &str); 12] = [
        (&kernel, &["--save", "1=same.csv", "--csv", "same.csv"], two),
        (&kernel, &["--save", "1=a", "--save", "1=./a"], two),
        (&kernel, &["--csv", "spec.json"], over),
        (&kernel, &["--save", "1=scale.cl"], over),
        (&kernel, &["--trace", "a", "--csv", "a"], two),
        (&["run", "dag", "g.dag"], &["--csv", "g.dag"], over),
        (&["run", "dag", "g.dag"], &["--csv", "add.json"], over),
        (&["run", "dag", "g.dag"], &["--trace", "add.cl"], over),
        (&["spec", "infer"], &["add.cl", "--out", "./add.cl"], over),
        (
            &["graph", "show"],
            &["g.dag", "--out", "g.dag"],
            "must end in .dot",
        ),
        (
            &["graph", "show"],
            &["g.dag", "--out", "g.pdf"],
            "must end in .dot",
        ),
        (
            &["run", "spmv"],
            &["--matrix", "in.bin", "--csv", "in.bin"],
            over,
        ),
    ];
    for (command, more, part) in cases {
        refused(&folder, &[command, more].concat(), 2, &[part]);
    }
    for (name, text) in [("add.cl", ADD_SOURCE), ("spec.json", SPEC)] {
        assert_eq!(
            std::fs::read_to_string(folder.path(name)).expect("a file"),
            text
        );
    }
    let drawn = folder.path("g.dot");
    std::fs::copy(example("vadd.json"), &drawn).expect("a copy");
    std::fs::copy(example("vadd.cl"), folder.path("vadd.cl")).expect("a copy");
    refused(
        &folder,
        &["graph", "show", "g.dot", "--out", "g.dot"],
        2,
        &[over],
    );
}

#[test]
fn what_has_no_room_is_refused_with_its_greatest_part() {
    let folder = graph("0 add.json {\"n\":1000000000000}\n---\n---\n");
    let parts = [
        "TiB of host memory, and",
        "of 0 add, is 3.64 TiB",
        "smaller sizes",
    ];
    refused(&folder, &["run", "dag", "g.dag"], 1, &parts);
    let folder = Folder::with(&[("spec.json", SPEC), ("scale.cl", SOURCE)]);
    let args = [
        "run",
        "kernel",
        "spec.json",
        "-D",
        "dataset=1048576",
        "--host-memory",
        "32MiB",
    ];
    let parts = [
        "buffers of 8.00 MiB need 64.0 MiB of host memory, 8 times as much",
        "32.0 MiB may",
    ];
    refused(&folder, &args, 1, &parts);
}

#[test]
fn devices_are_refused_by_what_is_wrong_with_them() {
    let folder = Folder::with(&[("spec.json", SPEC), ("scale.cl", SOURCE)]);
    let args = ["spec", "check", "spec.json", "--device", "nope"];
    refused(&folder, &args, 2, &["--device: `nope` is no device"]);
    let local = ["-D", "dataset=1048576", "-D", "TS=1048576"];
    let args = [&["run", "kernel", "spec.json"][..], &local].concat();
    refused(&folder, &args, 1, &["spec.json, localWorkSize: "]);
    let output = Command::new(env!("CARGO_BIN_EXE_pdawl"))
        .args(["run", "kernel", "spec.json"])
        .current_dir(folder.path(""))
        .env("NO_COLOR", "1")
        .env("OCL_ICD_VENDORS", "/nonexistent")
        .output()
        .expect("the program runs");
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("OCL_ICD_VENDORS is /nonexistent"), "{text}");
}
