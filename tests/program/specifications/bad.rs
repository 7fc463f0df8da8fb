//! A mistake in each field of a specification: one message names the file, the
//! position and the remedy.

use std::process::Command;

use super::fixtures::{Folder, SOURCE, SPEC};

/// Returns what `pdawl spec check` prints for a file, and its exit status.
fn checked(folder: &Folder, file: &str, more: &[&str]) -> (String, Option<i32>) {
    let output = Command::new(env!("CARGO_BIN_EXE_pdawl"))
        .args(["spec", "check"])
        .arg(folder.path(file))
        .args(more)
        .env("NO_COLOR", "1")
        .output()
        .expect("the program runs");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    (text, output.status.code())
}

/// Asserts that the one message names the file and contains these parts.
fn refuses(what: &str, said: &(String, Option<i32>), parts: &[&str]) {
    let (text, status) = said;
    assert_eq!(*status, Some(1), "{what}: {text}");
    assert!(!text.contains("panicked"), "{what}: {text}");
    for part in parts {
        assert!(text.contains(part), "{what}: no `{part}` in {text}");
    }
}

#[test]
fn a_right_file_is_right() {
    let folder = Folder::with(&[("spec.json", SPEC), ("scale.cl", SOURCE)]);
    let (text, status) = checked(&folder, "spec.json", &[]);
    assert_eq!(status, Some(0), "{text}");
}

/// The text to replace, its replacement, and parts of the expected message.
const WRONG: [(&str, &str, &str); 37] = [
    (
        r#""src": "scale.cl""#,
        r#""src": "none.cl""#,
        "src: there is no `none.cl`",
    ),
    (r#""src": "scale.cl","#, "", "missing field `src`"),
    (
        r#""src": "scale.cl""#,
        r#""src": 7"#,
        "src: invalid type: integer `7`, expected a string",
    ),
    (r#""name": "scale""#, r#""name": "scales""#, "name: "),
    (
        r#""name": "scale""#,
        r#""name": "not a name""#,
        "name: `not a name` is no name",
    ),
    (
        r#""workDimension": 1"#,
        r#""workDimension": 4"#,
        "workDimension: 4 is not 1, 2 or 3",
    ),
    (
        r#""workDimension": 1"#,
        r#""workDimension": -1"#,
        "workDimension: invalid type: a negative number",
    ),
    (
        r#""[dataset]""#,
        r#""[dataset*]""#,
        "globalWorkSize: `[dataset*]`, character 10",
    ),
    (
        r#""[dataset]""#,
        r#""[dataset/0]""#,
        "globalWorkSize[0]: `dataset/0`, character 8: division by zero",
    ),
    (
        r#""[dataset]""#,
        r#""[datasets]""#,
        "globalWorkSize[0]: `datasets`: `datasets` has no value (known: TS, dataset",
    ),
    (
        r#""[dataset]""#,
        r#""[dataset-64]""#,
        "globalWorkSize[0]: `dataset-64` is 0",
    ),
    (
        r#""[dataset]""#,
        r#""[1, 2, 3, 4]""#,
        "globalWorkSize: 4 sizes",
    ),
    (r#""[dataset]""#, "[]", "globalWorkSize: it has no size"),
    (
        r#""[dataset]""#,
        r#""[dataset/2.0]""#,
        "globalWorkSize[0]: `dataset/2.0`: an integer is needed",
    ),
    (
        r#""[dataset]""#,
        r#""[?]""#,
        "globalWorkSize: `?` marks a value that is to be filled in",
    ),
    (
        r#""[dataset]""#,
        r#""[dataset*9223372036854775807]""#,
        "does not fit in 64 bits",
    ),
    (
        r#""[TS]""#,
        r#""[7]""#,
        "localWorkSize: 7 work-items of a group do not divide the 64",
    ),
    (
        r#""type": "float", "size": "dataset", "pos": 0"#,
        r#""type": "flaot", "size": "dataset", "pos": 0"#,
        "inputBuffers[0].type: `flaot` is not a type",
    ),
    (
        r#""type": "float", "size": "dataset", "pos": 0"#,
        r#""type": "image2d_t", "size": "dataset", "pos": 0"#,
        "inputBuffers[0].type: `image2d_t` is a type of OpenCL C, and",
    ),
    (
        r#""type": "float", "size": "dataset", "pos": 0"#,
        r#""type": "sampler_t", "size": "dataset", "pos": 0"#,
        "`pdawl exec PROGRAM` runs OpenCL programs",
    ),
    (
        r#""type": "float", "size": "dataset", "pos": 0"#,
        r#""type": "pipe int", "size": "dataset", "pos": 0"#,
        "`pipe int` is a type of OpenCL C, and",
    ),
    (
        r#""type": "float", "size": "dataset", "pos": 0"#,
        r#""type": "int", "size": "dataset", "pos": 0"#,
        "inputBuffers[0].type: argument 0 of `scale`, `in`, is of type float, not int",
    ),
    (
        r#""size": "dataset", "pos": 1"#,
        r#""size": "-1", "pos": 1"#,
        "outputBuffers[0].size: `-1` is -1 elements",
    ),
    (
        r#""size": "dataset", "pos": 1"#,
        r#""size": [1], "pos": 1"#,
        "outputBuffers[0].size: invalid type: sequence",
    ),
    (
        r#""pos": 1, "break": 1"#,
        r#""pos": 0, "break": 1"#,
        "outputBuffers[0].pos: position 0 is that of inputBuffers[0] already",
    ),
    (
        r#""pos": 1, "break": 1"#,
        r#""pos": 9, "break": 1"#,
        "while nothing describes argument 1",
    ),
    (
        r#""pos": 1, "break": 1"#,
        r#""pos": 1, "break": 3"#,
        "outputBuffers[0].break: invalid value: integer `3`, expected 0 or 1",
    ),
    (
        r#"{"type": "int", "value": "partition_round(dataset, size_percent)", "pos": 3}"#,
        "",
        "varArguments: nothing describes argument 3 of `scale`, `int n`",
    ),
    (
        r#""type": "int", "value""#,
        r#""type": "float", "value""#,
        "varArguments[0].type: argument 3 of `scale`, `n`, is of type int, not float",
    ),
    (
        "partition_round(dataset, size_percent)",
        "partition_round(dataset)",
        "varArguments[0].value: `partition_round(dataset)`: partition_round takes two",
    ),
    (
        "partition_round(dataset, size_percent)",
        "2**40",
        "varArguments[0].value: 1099511627776 is not a value of type int",
    ),
    (
        "partition_round(dataset, size_percent)",
        "0.5",
        "varArguments[0].value: 0.5 is not a value of type int",
    ),
    (
        r#""size": "TS", "pos": 2"#,
        r#""size": "TS-8", "pos": 2"#,
        "localArguments[0].size: `TS-8` is 0 elements",
    ),
    (
        r#"{"TS": "TS"}"#,
        r#"{"TS": "T"}"#,
        "macros_values.TS: `T`: `T` has no value",
    ),
    (
        r#"{"TS": "TS"}"#,
        r#"{"TS": [1]}"#,
        "macros_values.TS: a number, an expression or a type",
    ),
    (
        r#""dataset": 64"#,
        r#""dataset": "64+""#,
        "symbolicVariables.dataset: `64+`, character 4: it is incomplete",
    ),
    (
        r#""partition": 3"#,
        r#""partition": 11"#,
        "partition: 11 is not a whole number from 0",
    ),
];

#[test]
fn each_field_wrong_in_turn_is_reported_with_file_and_field() {
    for (right, wrong, part) in WRONG {
        assert!(SPEC.contains(right), "{right}");
        let text = SPEC.replacen(right, wrong, 1);
        let folder = Folder::with(&[("spec.json", &text), ("scale.cl", SOURCE)]);
        let said = checked(&folder, "spec.json", &["--no-compile"]);
        refuses(wrong, &said, &["spec.json", part]);
    }
}

#[test]
fn what_is_no_specification_at_all_is_reported() {
    let folder = Folder::with(&[
        ("cut.json", &SPEC[..200]),
        ("empty.json", "  \n"),
        ("words.json", "this is no specification\n"),
        ("scale.cl", SOURCE),
    ]);
    for (file, part) in [
        ("none.json", "there is no such file"),
        ("cut.json", "cut.json, line "),
        ("empty.json", "it is empty"),
        ("words.json", "words.json"),
    ] {
        refuses(file, &checked(&folder, file, &[]), &[file, part]);
    }
    let (text, status) = checked(&folder, "cut.json", &["-D", "n"]);
    assert_eq!(status, Some(2), "{text}");
    assert!(text.contains("NAME=VALUE"), "{text}");
}

#[test]
fn a_kernel_that_does_not_compile_is_reported_with_the_compilers_words() {
    let broken = SOURCE.replace("2 * part", "2 * partt");
    let folder = Folder::with(&[("spec.json", SPEC), ("scale.cl", &broken)]);
    let said = checked(&folder, "spec.json", &[]);
    refuses("broken", &said, &["spec.json", "src", "partt"]);
}

const VADD: &str = "__kernel void add(__global const float *a, __global float *b) {
    b[get_global_id(0)] = a[get_global_id(0)] + 1;
}
";

fn node(id: u32, more: &str) -> String {
    format!(
        r#"{{"id": {id}, "src": "add.cl", "name": "add", "workDimension": 1,
            "globalWorkSize": [16],
            "inputBuffers": [{{"type": "float", "size": 16, "pos": 0{more}}}],
            "outputBuffers": [{{"type": "float", "size": 16, "pos": 1}}]}}"#
    )
}

const KERNEL: &str = r#"{"src": "add.cl", "name": "add", "workDimension": 1,
    "globalWorkSize": "n", "inputBuffers": [{"type": "float", "size": "n", "pos": 0}],
    "outputBuffers": [{"type": "float", "size": "n", "pos": 1}]}"#;

#[test]
fn of_a_field_that_is_given_twice_the_last_counts() {
    let twice = KERNEL.replace(
        "\"workDimension\": 1,",
        "\"workDimension\": 7,\n\"workDimension\": 1,",
    );
    assert_ne!(twice, KERNEL);
    let folder = Folder::with(&[("spec.json", &twice), ("add.cl", VADD)]);
    let output = Command::new(env!("CARGO_BIN_EXE_pdawl"))
        .args(["spec", "check", "-D", "n=16"])
        .arg(folder.path("spec.json"))
        .output()
        .expect("the program runs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    let warning = "`workDimension` is on line 1 and again on line 2; the value on line 2 counts";
    assert!(text.contains(warning), "{text}");
}

#[test]
fn wrong_lists_of_kernels_are_reported() {
    let from = |kernel: u32, pos: u32| format!(r#", "from": {{"kernel": {kernel}, "pos": {pos}}}"#);
    let two = |first: &str, second: &str| format!("[{}, {}]", node(0, first), node(1, second));
    let cases = [
        (
            "twice",
            format!("[{}, {}]", node(3, ""), node(3, "")),
            "[1].id: two kernels have the id 3",
        ),
        (
            "nobody",
            two("", &from(7, 1)),
            "[1].inputBuffers[0].from: there is no kernel 7",
        ),
        (
            "input",
            two("", &from(0, 0)),
            "kernel 0 writes no argument 0",
        ),
        (
            "cycle",
            two(&from(1, 1), &from(0, 1)),
            "kernels 0, 1 wait for one another in a cycle",
        ),
        (
            "own",
            two(&from(0, 1), ""),
            "kernels 0 wait for one another in a cycle",
        ),
        ("none", "[]".to_owned(), "it has no kernel"),
        (
            "size",
            two("", &from(0, 1)).replacen(r#""size": 16, "pos": 1"#, r#""size": 8, "pos": 1"#, 1),
            "both are the same data and must have the same size",
        ),
        (
            "depends",
            format!(
                "[{}]",
                node(0, "").replace(r#""id": 0"#, r#""id": 0, "depends": [5]"#)
            ),
            "[0].depends[0]: there is no kernel 5",
        ),
        (
            "no id",
            format!("[{}]", node(0, "").replace(r#""id": 0,"#, "")),
            "[0].id: the kernel has no id",
        ),
        (
            "field",
            two("", "").replacen(r#""size": 16"#, r#""size": "16+""#, 1),
            "[0].inputBuffers[0].size: `16+`",
        ),
    ];
    for (what, text, part) in cases {
        let folder = Folder::with(&[("spec.json", &text), ("add.cl", VADD)]);
        let said = checked(&folder, "spec.json", &["--no-compile"]);
        refuses(what, &said, &["spec.json", part]);
    }
}

#[test]
fn wrong_lines_of_a_graph_are_reported_with_their_numbers() {
    let cases = [
        (
            "0 add.json {\"n\":8}\n1 add.json {\"n\":8}\n---\n0 1->2 0\n---\n",
            "line 4: there is no kernel 2",
        ),
        (
            "0 add.json {\"n\":8}\n1 add.json {\"n\":8}\n---\n0 1 1 0\n---\n",
            "line 4: `0 1 1 0` is not an edge",
        ),
        (
            "0 add.json {\"n\":8}\n1 add.json {\"n\":9}\n---\n0 1->1 0\n---\n",
            "line 4: kernel 0's argument 1 is 8 x float",
        ),
        (
            "0 add.json {\"n\":8}\n1 add.json {\"n\":8}\n---\n0 1->1 0\n1 1->0 0\n---\n",
            "line 5: kernels 0, 1 wait",
        ),
        (
            "0 add.json {\"n\":8}\n1 add.json {\"n\":8}\n2 add.json {\"n\":8}\n---\n0 1->2 0\n1 1->2 0\n---\n",
            "line 6: argument 0 of kernel 2 comes from kernel 0 already",
        ),
        ("zero add.json\n---\n---\n", "line 1: `zero` is not an id"),
        (
            "0 none.json {}\n---\n---\n",
            "line 1: there is no kernel file `none.json`",
        ),
        (
            "0 add.json {n}\n---\n---\n",
            "line 1: `{n}` is not an object of symbols",
        ),
        (
            "0 add.json {\"n\":\"8/0\"}\n---\n---\n",
            "line 1: n: `8/0`, character 2: division by zero",
        ),
        (
            "0 add.json {\"n\":8}\n0 add.json {\"n\":8}\n---\n---\n",
            "line 2: two kernels have the id 0",
        ),
        (
            "0 add.json {\"n\":8}\n",
            "neither JSON nor a list of kernels",
        ),
        (
            "0 add.json {\"n\":8}\n---\n---\nmore\n",
            "line 4: `more` stands after",
        ),
        ("0 add.json {}\n---\n---\n", "`n` has no value"),
    ];
    for (text, part) in cases {
        let files = [("spec.dag", text), ("add.json", KERNEL), ("add.cl", VADD)];
        let folder = Folder::with(&files);
        let said = checked(&folder, "spec.dag", &["--no-compile"]);
        refuses(part, &said, &[part]);
    }
}

#[test]
fn wrong_components_and_queues_are_reported() {
    let figure = |devices: [&str; 3], more: &str| {
        let kernel =
            |(id, dev): (usize, &str)| format!(r#"{{"id": {id}, "name": "add", "dev": "{dev}"}}"#);
        let kernels: Vec<String> = devices.into_iter().enumerate().map(kernel).collect();
        format!(
            r#"{{"kernels": [{}], "edges": ["0,1 -> 1,0", "1,1 -> 2,0"],
                "symbolicVariables": {{"n": 8}}{more}}}"#,
            kernels.join(", ")
        )
    };
    let gpu = ["gpu"; 3];
    let cases = [
        (
            figure(["gpu", "cpu", "gpu"], r#", "tc": [[0, 1], [2]]"#),
            "tc[0]: component 0 has kernel 0 for one kind of device and kernel 1",
        ),
        (
            figure(gpu, r#", "tc": [[0, 2], [1]]"#),
            "tc: components 0, 1 wait for one another in a cycle",
        ),
        (
            figure(gpu, r#", "tc": [[0, 1]]"#),
            "tc: kernel 2 is in no component",
        ),
        (
            figure(gpu, r#", "tc": [[0, 1], [1, 2]]"#),
            "tc[1][0]: kernel 1 is in component 0 already",
        ),
        (
            figure(gpu, r#", "tc": [[0, 1], [9, 2]]"#),
            "tc[1][0]: there is no kernel 9",
        ),
        (figure(gpu, r#", "cq": {"gpu": 0}"#), "cq.gpu: 0 queues"),
        (
            figure(["gpu", "tpu", "gpu"], ""),
            "kernels[1].dev: `tpu` is neither cpu nor gpu",
        ),
        (
            figure(gpu, "").replace("0,1 -> 1,0", "0,1 to 1,0"),
            "edges[0]: `0,1 to 1,0` is not an edge",
        ),
        (
            figure(gpu, "").replacen(r#""name": "add""#, r#""name": "sub""#, 1),
            "kernels[0].name: there is no kernel file `sub.json`",
        ),
    ];
    for (text, part) in cases {
        let files = [
            ("spec.json", text.as_str()),
            ("add.json", KERNEL),
            ("add.cl", VADD),
        ];
        let folder = Folder::with(&files);
        let said = checked(&folder, "spec.json", &["--no-compile"]);
        refuses(part, &said, &["spec.json", part]);
    }
}
