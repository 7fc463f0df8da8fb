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
    pdawl("run transformer --precision f64")
        .assert()
        .code(2)
        .stderr(contains("possible values: f32, f16, bf16, tf32"));
}
