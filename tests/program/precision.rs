//! `--precision` of transformers and codelets, and of workloads that do not take all values.

use predicates::prelude::*;
use predicates::str::contains;

use crate::command::{Home, pdawl};

const FORMATS: [&str; 4] = ["f16", "bf16", "tf32", "f32"];

/// By the host, by PoCL with our kernels, and on simulated devices.
const MACHINES: [&str; 3] = [
    "--devices host:1",
    "--devices host:1,opencl0.0:1=own --policy eager",
    "--machine k40",
];

#[test]
fn transformers_are_right_in_every_precision() {
    for precision in FORMATS {
        for machine in MACHINES {
            for form in ["--layers 2", "--batch"] {
                let home = Home::new();
                let line = "run transformer --heads 3 --beta 36 --verify";
                let report = home.json(&format!("{line} --precision {precision} {form} {machine}"));
                let what = format!("{precision} {form} {machine}");
                assert_eq!(report["verification"]["right"], true, "{what}");
                let workload = &report["workload"];
                assert_eq!(workload["parameters"]["precision"], precision, "{what}");
                let title = workload["title"].as_str().unwrap();
                assert!(title.contains(precision), "{title}");
            }
        }
    }
}

#[test]
fn policies_are_compared_in_the_precision() {
    let line = "bench transformer --machine k40 --heads 2 --beta 16 --repeats 1 --most-queues 2";
    let home = Home::new();
    let report = home.json(&format!("{line} --verify --precision bf16"));
    assert_eq!(report["precision"], "bf16");
    let mut text = home.pdawl(&format!("{line} --precision f16"));
    text.assert().success().stdout(contains("layers: 1, f16"));
}

#[test]
fn codelets_are_compared_in_the_precision() {
    let home = Home::new();
    for codelet in ["gemm", "softmax", "transpose", "add-norm"] {
        let line = format!("bench codelet {codelet} --size 65 --devices host:1 --repeats 1");
        for precision in FORMATS {
            let report = home.json(&format!("{line} --precision {precision}"));
            let title = report["codelet"].as_str().unwrap();
            assert!(title.ends_with(precision), "{title}");
            assert_eq!(
                report["devices"][0]["variants"][0]["right"], true,
                "{title}"
            );
        }
    }
}

#[test]
fn other_workloads_name_what_they_take() {
    for (line, values) in [
        ("run stencil --size 64", "f64, f32"),
        ("run spmv --matrix rmat:5,3", "f64, f32"),
        ("run pagerank --matrix rmat:5,3", "f64, f32"),
        ("run cholesky --size 64", "f64, f32"),
        ("run lu --size 64", "f64, f32"),
    ] {
        for precision in ["f16", "bf16", "tf32"] {
            pdawl(&format!("{line} --precision {precision}"))
                .assert()
                .code(2)
                .stderr(contains(format!("possible values: {values}")).and(contains(precision)));
        }
    }
    for line in ["run transformer", "bench transformer", "bench codelet gemm"] {
        pdawl(&format!("{line} --precision f64"))
            .assert()
            .code(2)
            .stderr(contains("possible values: f32, f16, bf16, tf32"));
    }
}
