//! Profiles, models and predictions of sparse matrix products, on a simulated
//! machine with small matrices.

use predicates::str::contains;

use crate::command::Home;

const MATRICES: [&str; 12] = [
    "uniform:20000,12",
    "web:3000",
    "circuit:4000",
    "banded:30000,3",
    "rmat:12,9",
    "uniform:90000,2",
    "web:20000",
    "circuit:30000",
    "banded:3000,20",
    "rmat:15,5",
    "uniform:3000,60",
    "banded:120000,1",
];

fn profile(matrices: &[&str], rest: &str) -> String {
    let matrices: String = matrices
        .iter()
        .map(|m| format!(" --matrices {m}"))
        .collect();
    format!("profile spmv --machine k40 --repeats 1{matrices} {rest}")
}

/// Profiles matrices, trains a model, and uses it: for predictions, for plans, and
/// for its errors on matrices that it was not trained on.
#[test]
fn products_are_profiled_learned_predicted_and_planned() {
    let home = Home::new();
    let report = home.json(&profile(&MATRICES, "--noise 0.01 --out learned.csv"));
    assert_eq!(report["schema"], "pdawl-profile/1");
    assert_eq!(report["codelet"], "spmv-f64");
    // Two configurations on the host and three on the GPU, each once.
    assert_eq!(report["rows"]["measured"], 12 * 5);
    let again = home.json(&profile(&MATRICES, "--noise 0.01 --out learned.csv"));
    assert_eq!(
        (&again["rows"]["measured"], &again["rows"]["kept"]),
        (&0.into(), &60.into())
    );

    home.pdawl("train --dataset learned.csv --workload stencil")
        .assert()
        .code(2)
        .stderr(contains("none of its 60 runs is of --workload stencil"));
    let trained = home.json("train --dataset learned.csv --workload spmv --name k40");
    let groups = trained["groups"].as_array().unwrap();
    assert_eq!(groups.len(), 2);
    assert!(groups.iter().all(|group| group["codelet"] == "spmv-f64"));

    home.json(&profile(
        &["like:FullChip@0.005", "like:in-2004@0.01"],
        "--seed 9 --noise 0.01 --out held.csv",
    ));
    let check = home.json("model check k40 --dataset held.csv");
    for group in check["held_out"]["groups"].as_array().unwrap() {
        let error = group["model"]["mape"].as_f64().unwrap();
        let naive = &group["baselines"][1];
        assert_eq!(naive["name"], "naive");
        assert!(error < 0.15, "{group}");
        assert!(error < naive["accuracy"]["mape"].as_f64().unwrap());
    }

    let matrix = "--matrix web:10000 --steps 20";
    let predicted = home.json(&format!("predict spmv {matrix} --machine k40"));
    let predictions = predicted["predictions"].as_array().unwrap();
    assert_eq!(predicted["workload"]["name"], "spmv");
    for prediction in predictions {
        let strategy = prediction["strategy"].as_str().unwrap();
        let run = home.json(&format!(
            "run spmv {matrix} --machine k40 --noise 0 --strategy {strategy}"
        ));
        let (said, took) = (prediction["seconds"].as_f64(), run["seconds"].as_f64());
        let ratio = said.unwrap() / took.unwrap();
        assert!((0.8..1.25).contains(&ratio), "{strategy}: {ratio}");
    }
    let adaptive = home.json(&format!(
        "run spmv {matrix} --machine k40 --adaptive --verify"
    ));
    assert_eq!(adaptive["policy"], "pdawl");
    assert_eq!(adaptive["verification"]["right"], true);
    assert_eq!(adaptive["details"]["probe_seconds"], 0.0);
}

#[test]
fn what_cannot_be_is_refused() {
    let home = Home::new();
    for (line, status, part) in [
        (
            "profile spmv --matrices like:nobody",
            2,
            "no look-alike of `nobody`",
        ),
        ("profile spmv --count 51", 2, "51"),
        ("profile spmv --irregular 2", 2, "from 0 to 1"),
        ("profile spmv --matrices web:few", 2, "write web:ROWS"),
        (
            "predict spmv --matrix web:2000 --machine k40 --precision f32",
            1,
            "pdawl train --machine k40 --workload spmv --precision f32",
        ),
    ] {
        home.pdawl(line)
            .assert()
            .code(status)
            .stderr(contains(part));
    }
}
