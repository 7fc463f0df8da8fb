//! `pdawl spec infer`: kernel files made from OpenCL C sources.

use std::process::Command;

use serde_json::Value;

use super::fixtures::{Folder, example};

fn pdawl(args: &[&str]) -> (String, String, Option<i32>) {
    let output = Command::new(env!("CARGO_BIN_EXE_pdawl"))
        .args(args)
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

fn path(path: &std::path::Path) -> &str {
    path.to_str().expect("a path of letters")
}

#[test]
fn what_the_source_tells_is_written_and_the_rest_is_asked_for() {
    let source = example("matmul.cl");
    let (out, err, status) = pdawl(&["spec", "infer", path(&source), "-D", "TS=16"]);
    assert_eq!(status, Some(0), "{err}");
    let file: Value = serde_json::from_str(&out).expect("a kernel file");
    assert_eq!(file["name"], "matmul");
    assert_eq!(file["workDimension"], 2);
    assert_eq!(file["inputBuffers"].as_array().map(Vec::len), Some(2));
    assert_eq!(file["outputBuffers"][0]["pos"], 2);
    assert_eq!(file["varArguments"][0]["type"], "int");
    for part in [
        "globalWorkSize",
        "localWorkSize",
        "outputBuffers[0].size",
        "varArguments[0].value",
    ] {
        assert!(err.contains(part), "no {part} in {err}");
    }
    // With its blanks filled in, the file is valid.
    let filled = out.replacen("\"?\",\n    \"?\"", "64,\n    64", 1);
    let filled = filled.replace("\"size\": \"?\"", "\"size\": \"64*64\"");
    let filled = filled.replace("\"value\": \"?\"", "\"value\": \"64\"");
    let filled = filled.trim_end().trim_end_matches('}').to_owned()
        + r#", "localWorkSize": [16, 16], "macros_values": {"TS": 16}}"#;
    let text = std::fs::read_to_string(&source).expect("the source");
    let folder = Folder::with(&[("m.json", &filled), ("matmul.cl", &text)]);
    let (_, err, status) = pdawl(&[
        "spec",
        "check",
        path(&folder.path("m.json")),
        "--no-compile",
    ]);
    assert_eq!(status, Some(0), "{err}\n{filled}");
    // Before that, it is not.
    let folder = Folder::with(&[("m.json", &out), ("matmul.cl", &text)]);
    let (_, err, status) = pdawl(&[
        "spec",
        "check",
        path(&folder.path("m.json")),
        "--no-compile",
    ]);
    assert_eq!(status, Some(1), "{err}");
    assert!(err.contains("to be filled in"), "{err}");
}

#[test]
fn of_several_kernels_one_can_be_chosen() {
    let source = example("softmax.cl");
    let (out, _, _) = pdawl(&["spec", "infer", path(&source)]);
    let all: Value = serde_json::from_str(&out).expect("a list");
    assert_eq!(all.as_array().map(Vec::len), Some(2));
    let args = [
        "spec",
        "infer",
        path(&source),
        "--kernel",
        "transpose",
        "--format",
        "json",
    ];
    let (out, _, _) = pdawl(&args);
    let one: Value = serde_json::from_str(&out).expect("a report");
    assert_eq!(one["schema"], "pdawl-infer/1");
    assert_eq!(one["kernels"][0]["file"]["name"], "transpose");
    let (_, err, status) = pdawl(&["spec", "infer", path(&source), "--kernel", "nobody"]);
    assert_eq!(status, Some(1));
    assert!(err.contains("it has softmax, transpose"), "{err}");
    let folder = Folder::with(&[("empty.cl", "int x;")]);
    let (_, err, status) = pdawl(&["spec", "infer", path(&folder.path("empty.cl"))]);
    assert_eq!(status, Some(1));
    assert!(err.contains("empty.cl: it has no kernel"), "{err}");
}

#[test]
fn a_graph_is_drawn_whole() {
    let (dot, err, status) = pdawl(&["graph", "show", path(&example("three.json"))]);
    assert_eq!(status, Some(0), "{err}");
    assert!(dot.starts_with("digraph \"") && dot.ends_with("}\n"));
    let kernels = dot
        .lines()
        .filter(|line| line.starts_with("  k") && line.contains("label="));
    assert_eq!(kernels.count(), 3);
    for part in [
        "0 matmul",
        "1 softmax",
        "2: 4096 float",
        "label=\"T0\"",
        "label=\"T1\"",
        "\\ncpu\"",
        "\\ngpu\"",
    ] {
        assert!(dot.contains(part), "no {part}");
    }
    let folder = Folder::with(&[]);
    let out = folder.path("d.dot");
    let head = example("head.dag");
    let args = [
        "graph",
        "show",
        path(&head),
        "--out",
        path(&out),
        "--format",
        "json",
    ];
    let (report, err, status) = pdawl(&args);
    assert_eq!(status, Some(0), "{err}");
    let report: Value = serde_json::from_str(&report).expect("a report");
    assert_eq!(
        (&report["kernels"], &report["edges"]),
        (&8.into(), &7.into())
    );
    assert!(out.is_file());
}
