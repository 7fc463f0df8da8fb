//! Described clusters: runs in virtual time, and cluster files.

use predicates::prelude::*;
use predicates::str::contains;
use serde_json::Value;

use crate::command::{Home, json, pdawl};

const WORKLOADS: [&str; 8] = [
    "convolution --size 2048",
    "matmul --size 2048",
    "lu --size 2048",
    "fft --size 2048",
    // So large that all nodes take part.
    "stencil --size 4096 --steps 3",
    "spmv --matrix uniform:10000,1000 --steps 2 --iterate",
    "pagerank --matrix uniform:10000,1000 --steps 2",
    "sort --size 3000000",
];

fn sum(report: &Value, field: &str) -> u64 {
    let nodes = report["nodes"].as_array().unwrap().iter();
    nodes.map(|node| node[field].as_u64().unwrap()).sum()
}

#[test]
fn every_workload_is_simulated_on_a_described_cluster() {
    for workload in WORKLOADS {
        let line = format!("run {workload} --cluster four --noise 0.05");
        let report = json(&line);
        assert_eq!(report["schema"], "pdawl-report/2", "{workload}");
        assert_eq!(report["machine"]["simulated"], true);
        assert_eq!(report["machine"]["name"], "four");
        assert_eq!(report["nodes"].as_array().unwrap().len(), 4);
        assert_eq!(report["nodes"][3]["name"], "k40");
        let parameters = &report["workload"]["parameters"];
        let (counted, all) = (sum(&report, "subtasks"), &parameters["subtasks"]);
        match all.as_u64() {
            // A co-run has none, and each node computes in each step.
            Some(0) => assert!(counted >= 4 * parameters["tasks"].as_u64().unwrap()),
            _ => assert_eq!(counted, *all),
        }
        assert_eq!(json(&line), report, "virtual times repeat: {workload}");
    }
    pdawl("run lu --size 2048 --cluster four --nodes 6")
        .assert()
        .success()
        .stdout(contains("on 6 nodes of four simulated").and(contains("has 4 nodes")));
}

#[test]
fn noise_and_policy_are_those_that_were_asked_for() {
    let seconds = |more: &str| {
        let report = json(&format!("run lu --size 2048 --cluster four {more}"));
        report["seconds"].as_f64().unwrap()
    };
    let plain = seconds("");
    for other in [
        "--noise 0.3",
        "--spread static",
        "--placement central",
        "--nodes 2",
    ] {
        assert_ne!(seconds(other), plain, "{other}");
    }
    assert_eq!(seconds("--noise 0"), plain);
}

#[test]
fn options_of_runs_that_compute_are_refused_by_name() {
    for (options, part) in [
        ("lu --verify", "--verify is for"),
        ("lu --devices host", "--devices is for"),
        ("stencil --input a.npy", "--input is for"),
        ("fft --wire x.so", "--wire is for"),
        ("matmul --verify", "--verify is for"),
        ("matmul --policy eager", "--policy is for"),
        ("matmul --precision bf16", "--precision bf16 is for"),
        ("matmul --output c.npy", "--output is for"),
        ("matmul --a a.npy --b b.npy", "--a is for"),
        ("lu --input a.npy", "--input is for"),
        ("lu --pivots p.npy", "--pivots is for"),
        ("fft --input a.npy", "--input is for"),
        ("convolution --image a.npy", "--image is for"),
        ("convolution --filter-file f.npy", "--filter-file is for"),
        (
            "pagerank --matrix rmat:8,4 --output r.npy",
            "--output is for",
        ),
        ("pagerank --matrix rmat:8,4 --verify", "--verify is for"),
        ("spmv --matrix rmat:8,4 --verify", "--verify is for"),
        (
            "spmv --matrix rmat:8,4 --placement rows",
            "--placement is for",
        ),
        ("stencil --spread static", "--spread is for"),
        ("spmv --matrix rmat:8,4 --prefetch 2", "--prefetch is for"),
        ("stencil --placement rows", "--placement is for"),
        ("stencil --verify", "--verify is for"),
        ("stencil --input a.npy", "--input is for"),
        ("stencil --output a.npy", "--output is for"),
        ("stencil --machine k40", "--machine is for"),
        ("stencil --adaptive", "--adaptive is for"),
        ("fft --gpu-memory 1MiB", "--gpu-memory is for"),
        ("fft --fault gpu0:lost@0.001s", "--fault is for"),
        ("lu --libraries off", "--libraries is for"),
        ("sort --policy eager", "--policy is for"),
        ("convolution --host-memory 1GiB", "--host-memory is for"),
    ] {
        pdawl(&format!("run {options} --cluster four"))
            .assert()
            .code(2)
            .stderr(contains(part).and(contains("try:")));
    }
    pdawl("run lu --noise 0.1")
        .assert()
        .code(2)
        .stderr(contains("--noise is for simulated machines").and(contains("--machine NAME")));
    pdawl("run lu --nodes 3")
        .assert()
        .code(2)
        .stderr(contains("--cluster"));
    pdawl("run lu --cluster four")
        .env("OMPI_COMM_WORLD_RANK", "0")
        .env("OMPI_COMM_WORLD_SIZE", "2")
        .assert()
        .code(2)
        .stderr(contains("mpirun"));
}

#[test]
fn what_nodes_have_no_room_for_is_refused() {
    pdawl("run matmul --size 100000 --cluster four")
        .assert()
        .code(1)
        .stderr(contains("a node's part, 1/4 of 100000").and(contains("more --nodes")));
    pdawl("run matmul --size 40000 --cluster four --nodes 1")
        .assert()
        .code(1)
        .stderr(contains("of host memory"));
    pdawl("run lu --size 100000 --tile 16 --cluster thousand")
        .assert()
        .code(1)
        .stderr(contains("at most 1000000 are simulated").and(contains("--tile")));
}

/// Nothing of them may be made: the first one would take 8 TB.
#[test]
fn sizes_that_no_machine_has_are_refused_at_once() {
    for (line, part) in [
        (
            "matmul --size 4294967295 --cluster four",
            "at most 1000000 are simulated",
        ),
        (
            "matmul --size 4294967295 --tile 1 --cluster thousand",
            "at most 1000000 are",
        ),
        ("matmul --size 4294967295 --machine k40", "of host memory"),
        (
            "matmul --size 3000 --tile 1 --machine k40",
            "27000000000 tasks are too many",
        ),
        (
            "matmul --size 4294967295 --devices host:1",
            "of host memory",
        ),
        (
            "cholesky --size 4294967295 --tile 1 --machine k40",
            "of host memory",
        ),
        (
            "cholesky --size 4294967295 --devices host:1",
            "of host memory",
        ),
        (
            "convolution --size 20000000 --filter 3 --devices host:1",
            "of host memory",
        ),
        (
            "convolution --size 4294967295 --filter 3 --tile 1 --cluster four",
            "at most 1000000 are",
        ),
        (
            "convolution --size 4000 --filter 3 --tile 1 --machine k40",
            "16000000 tasks are too many",
        ),
        (
            "convolution --size 4294967295 --machine k40",
            "of host memory",
        ),
        (
            "lu --size 1048576 --tile 1 --devices host:1",
            "of host memory",
        ),
        (
            "lu --size 5000 --tile 1 --machine k40",
            "tasks are too many",
        ),
        (
            "lu --size 1048576 --tile 1 --cluster four",
            "at most 1000000 are",
        ),
        (
            "fft --size 1048576 --tile 1 --cluster four",
            "at most 1000000 are",
        ),
        ("fft --size 1048576 --devices host:1", "of host memory"),
        (
            "sort --size 1099511627776 --devices host:1",
            "of host memory",
        ),
        ("sort --size 1099511627776 --cluster four", "of host memory"),
        (
            "stencil --size 2147483647 --cluster four",
            "more bytes than can be counted",
        ),
        (
            "stencil --size 9223372036854775808 --cluster four",
            "at most",
        ),
        (
            "matmul --size 18446744073709551615 --cluster four",
            "is not in 1..=4294967295",
        ),
        (
            "spmv --matrix uniform:2147483647,4000 --cluster four",
            "making a uniform matrix needs",
        ),
        ("lu --nodes 4294967295 --cluster unicorn", "at most 65536"),
    ] {
        let mut command = pdawl(&format!("run {line}"));
        let refused = command.output().unwrap();
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(
            matches!(refused.status.code(), Some(1 | 2)),
            "{line}: {said}"
        );
        assert!(said.contains(part), "{line}: {said}");
    }
}

#[test]
fn more_nodes_are_simulated_to_be_faster() {
    for workload in WORKLOADS {
        let line = format!("bench --vary nodes=1,2,4 --repeats 1 run {workload} --cluster four");
        let report = json(&line);
        let runs = report["runs"].as_array().unwrap();
        assert_eq!(runs.len(), 3, "{workload}");
        let seconds = |run: usize| runs[run]["report"]["seconds"].as_f64().unwrap();
        for (place, run) in runs.iter().enumerate() {
            let speedup = run["to_first"].as_f64().unwrap();
            assert_eq!(speedup, seconds(0) / seconds(place), "{workload}");
            assert_eq!(run["report"]["machine"]["simulated"], true);
        }
        for run in &runs[1..] {
            let share = run["report"]["details"]["busiest"]["share"].as_f64();
            assert!(
                share.is_some_and(|share| share > 0.0 && share <= 1.0),
                "{workload}"
            );
        }
        let run = json(&format!("run {workload} --cluster four --nodes 2"));
        assert_eq!(run["seconds"], runs[1]["report"]["seconds"], "{workload}");
    }
    let line = "bench --vary nodes=1,4 --repeats 1 run convolution --size 8192 --cluster four";
    let speedup = json(line)["runs"][1]["to_first"].as_f64().unwrap();
    assert!(speedup > 2.0, "{speedup}");
}

/// A cluster of one node computes as its machine does by itself.
#[test]
fn one_node_is_its_machine() {
    for workload in WORKLOADS {
        let seconds = |place: &str| {
            let report = json(&format!("run {workload} {place}"));
            assert_eq!(report["machine"]["name"], "k40", "{workload} {place}");
            assert_eq!(report["machine"]["simulated"], true, "{workload} {place}");
            report["seconds"].as_f64().unwrap()
        };
        let (node, machine) = (
            seconds("--cluster four --nodes 1"),
            seconds("--machine k40"),
        );
        assert_eq!(node, machine, "{workload}");
    }
    for (options, part) in [
        ("stencil --machine k40", "--machine is for"),
        ("lu --devices host", "--devices is for"),
        ("matmul --verify", "--verify is for"),
        (
            "pagerank --matrix rmat:8,4 --output r.npy",
            "--output is for",
        ),
        (
            "spmv --matrix rmat:8,4 --fault gpu0:lost@1",
            "--fault is for",
        ),
    ] {
        pdawl(&format!("run {options} --cluster four --nodes 1"))
            .assert()
            .code(2)
            .stderr(contains(part).and(contains("try:")));
    }
}

#[test]
fn unlike_nodes_are_taken_in_their_order() {
    let home = Home::new();
    let text = include_str!("../../datasets/clusters/four.toml");
    let two = "count = 1\n\n[[node]]\nmachine = \"m2070x2\"\ncount = 2";
    std::fs::write(home.path("mixed.toml"), text.replace("count = 4", two)).unwrap();
    let names = |nodes: u32| -> Vec<String> {
        let line = format!("run fft --size 1024 --cluster mixed.toml --nodes {nodes}");
        let report = home.json(&line);
        let nodes = report["nodes"].as_array().unwrap().iter();
        nodes
            .map(|node| node["name"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(names(1), ["k40"]);
    assert_eq!(names(3), ["k40", "m2070x2", "m2070x2"]);
    home.pdawl("run fft --size 1024 --cluster mixed.toml --nodes 4")
        .assert()
        .code(1)
        .stderr(contains("has 3 nodes of unlike machines").and(contains("at most 3")));
}

#[test]
fn clusters_are_listed_shown_and_found() {
    let home = Home::new();
    std::fs::create_dir(home.path("clusters")).unwrap();
    let text = include_str!("../../datasets/clusters/four.toml");
    let mine = text.replace("name = \"four\"", "name = \"mine\"");
    std::fs::write(home.path("clusters/mine.toml"), mine).unwrap();
    let listing = home.json("cluster list");
    let clusters = listing["clusters"].as_array().unwrap();
    let names: Vec<_> = clusters
        .iter()
        .map(|c| c["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["four", "mine", "thousand", "unicorn"]);
    let shown = home.json("cluster show mine");
    assert_eq!(shown["network"]["bandwidth"], 1.25e9);
    home.pdawl("cluster show mine")
        .assert()
        .success()
        .stdout(contains("pdawl-cluster-file/1"));
    let report = home.json("run fft --size 1024 --cluster mine");
    assert_eq!(report["machine"]["name"], "mine");
    home.pdawl("run fft --cluster five")
        .assert()
        .code(1)
        .stderr(contains("known are four, mine, thousand, unicorn"));
    home.pdawl("run fft --cluster ./five.toml")
        .assert()
        .code(1)
        .stderr(contains("cluster file"));
}

#[test]
fn a_lone_process_measures_no_cluster() {
    pdawl("cluster measure mine")
        .assert()
        .code(1)
        .stderr(contains("started alone").and(contains("mpirun")));
}
