//! `pdawl run spmv`, and comparisons of it: files and generated matrices, lost
//! devices, limits of memory.

use predicates::prelude::*;
use predicates::str::contains;

use crate::command::{json, pdawl};

#[test]
fn a_file_is_run_and_verified() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("small.mtx.gz");
    let path = path.display();
    pdawl(&format!("matrix generate rmat:10,8 {path}"))
        .assert()
        .success();
    let run = format!("run spmv --matrix {path} --verify --steps 4");
    for more in [
        "",
        "--iterate",
        "--precision f32",
        "--strategy cpu --no-cache",
    ] {
        let report = json(&format!("{run} {more}"));
        let parameters = &report["workload"]["parameters"];
        assert_eq!(parameters["matrix"], "small");
        assert_eq!(parameters["rows"], 1024);
        assert_eq!(report["verification"]["right"], true, "{more}");
        assert_eq!(
            report["details"]["eigenvalue"].is_number(),
            more == "--iterate"
        );
        assert_eq!(report["throughput"]["unit"], "nonzeros/s");
        let nonzeros = parameters["nonzeros"].as_u64().unwrap();
        assert_eq!(report["details"]["points"].as_u64(), Some(4 * nonzeros));
    }
}

/// The rows are 3 4 5, 0 0 0, 0 7 0 and so on; every machine gives the same numbers.
#[test]
fn a_given_vector_is_multiplied_and_the_result_written() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let header = "%%MatrixMarket matrix coordinate real general\n4 3 5\n";
    let entries = "1 1 3\n1 2 4\n1 3 5\n3 2 7\n4 3 0.5\n";
    std::fs::write(path("a.mtx"), format!("{header}{entries}")).unwrap();
    let x = [2.0, -1.5, 8.0];
    let y = [40.0, 0.0, -10.5, 4.0];
    write_npy(
        &path("x.npy"),
        "<f8",
        x.iter().flat_map(|x: &f64| x.to_le_bytes()),
    );
    let singles = x.iter().flat_map(|x| (*x as f32).to_be_bytes());
    write_npy(&path("single.npy"), ">f4", singles);
    let run = format!("run spmv --matrix {} --steps 3 --verify", path("a.mtx"));
    for (vector, more) in [
        ("x.npy", "--devices host:1"),
        ("single.npy", "--devices host:1 --precision f32"),
        ("single.npy", "--machine k40 --strategy fixed:0.5"),
        ("x.npy", "--strategy dawl"),
    ] {
        let (vector, output) = (path(vector), path("y.npy"));
        let report = json(&format!("{run} --vector {vector} --output {output} {more}"));
        assert_eq!(report["verification"]["right"], true, "{more}");
        let bytes = std::fs::read(output).unwrap();
        let numbers = match more.contains("f32") {
            true => bytes[128..]
                .chunks_exact(4)
                .map(|n| f32::from_le_bytes(n.try_into().unwrap()).into())
                .collect::<Vec<f64>>(),
            false => bytes[128..]
                .chunks_exact(8)
                .map(|n| f64::from_le_bytes(n.try_into().unwrap()))
                .collect(),
        };
        assert_eq!(numbers, y, "{more}");
    }
    for (wrong, status, part) in [
        ("--vector none.npy", 1, "none.npy"),
        (
            &*format!("--vector {}", path("a.mtx")),
            1,
            "is not an NPY file",
        ),
        (
            &*format!("--vector {} --precision f32", path("x.npy")),
            2,
            "has float64",
        ),
        (
            &*format!("--vector {0} --output {0}", path("x.npy")),
            2,
            "would be overwritten",
        ),
        ("--vector x.npy --cluster four", 2, "--vector is for"),
    ] {
        let output = pdawl(&format!("{run} {wrong}")).assert().code(status);
        output.stderr(contains(part));
    }
    let banded = format!("run spmv --matrix banded:9,1 --vector {}", path("x.npy"));
    let refused = pdawl(&banded).assert().code(1);
    refused.stderr(contains("has 3 numbers, and the matrix has 9 columns"));
}

fn write_npy(path: &str, descr: &str, numbers: impl Iterator<Item = u8>) {
    let mut bytes = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
    let numbers: Vec<u8> = numbers.collect();
    let length = numbers.len() / descr[2..].parse::<usize>().unwrap();
    let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({length},), }}");
    bytes.extend(format!("{header:117}\n").into_bytes());
    bytes.extend(numbers);
    std::fs::write(path, bytes).unwrap();
}

/// The last vector of an iteration is the eigenvector, as long as the eigenvalue.
#[test]
fn an_eigenvector_is_written() {
    let directory = tempfile::tempdir().unwrap();
    let output = directory.path().join("x.npy");
    let line = "run spmv --matrix banded:200,2 --iterate --steps 100 --output";
    let report = json(&format!("{line} {}", output.display()));
    let bytes = std::fs::read(output).unwrap();
    let numbers = bytes[128..].chunks_exact(8);
    let squares = numbers.map(|n| f64::from_le_bytes(n.try_into().unwrap()).powi(2));
    let length = squares.sum::<f64>().sqrt();
    let eigenvalue = report["details"]["eigenvalue"].as_f64().unwrap();
    assert!(
        (length - eigenvalue.abs()).abs() < 1e-9 * length,
        "{length} {eigenvalue}"
    );
}

#[test]
fn a_look_alike_is_called_so_and_simulated() {
    let line = "run spmv --matrix like:FullChip@0.002 --machine k40 --steps 5 --verify";
    pdawl(line).assert().success().stdout(
        contains("look-alike of FullChip at 0.002")
            .and(contains("simulated"))
            .and(contains("right"))
            .and(contains("nonzero/s")),
    );
    let report = json(&format!("{line} --iterate --strategy fixed:0.5"));
    assert_eq!(report["verification"]["right"], true);
    assert_eq!(report["machine"]["simulated"], true);
    for device in report["devices"].as_array().unwrap() {
        let share = device["share"].as_f64().unwrap();
        assert!((0.4..0.6).contains(&share), "{device}");
    }
}

#[test]
fn a_lost_device_is_survived() {
    let report = json(
        "run spmv --matrix rmat:12,8 --machine k40 --fault gpu0:lost@3 --steps 8 --verify \
         --strategy fixed:0.5",
    );
    assert_eq!(report["verification"]["right"], true);
    assert_eq!(report["lost"][0]["device"], "gpu0");
}

#[test]
fn a_device_without_room_for_the_vectors_is_left_out() {
    let line = "run spmv --matrix banded:20000,3 --machine k40 --gpu-memory 100KiB --steps 3";
    let report = json(line);
    assert_eq!(report["devices"].as_array().unwrap().len(), 1);
    let notes = report["notes"].to_string();
    assert!(notes.contains("gpu0 is left out"), "{notes}");
    pdawl(&format!("{line} --strategy gpu"))
        .assert()
        .code(2)
        .stderr(contains("needs a GPU"));
}

#[test]
fn what_cannot_be_run_says_why() {
    for (more, code, what) in [
        ("", 2, "--matrix"),
        ("--matrix nosuch.mtx", 1, "nosuch.mtx"),
        ("--matrix like:nosuch", 2, "FullChip"),
        ("--matrix banded:100,2 --steps 0", 2, "--steps"),
        ("--matrix banded:100,2 --irregular 1.5", 2, "from 0 to 1"),
        (
            "--matrix banded:100,2 --adaptive --strategy cpu",
            2,
            "--adaptive",
        ),
        (
            "--matrix banded:100,2 --strategy pdawl",
            1,
            "pdawl train --workload spmv",
        ),
        (
            "--matrix banded:100000,9 --host-memory 20MB",
            1,
            "memory are available",
        ),
        (
            "--matrix banded:100000,9 --host-memory 24MB",
            1,
            "of host memory beside the matrix",
        ),
    ] {
        pdawl(&format!("run spmv {more}"))
            .assert()
            .code(code)
            .stderr(contains(what));
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("wide.mtx");
    let text = "%%MatrixMarket matrix coordinate real general\n2 3 1\n1 3 0.5\n";
    std::fs::write(&path, text).unwrap();
    let path = path.display();
    pdawl(&format!("run spmv --matrix {path} --iterate"))
        .assert()
        .code(2)
        .stderr(contains("only a square one can be iterated"));
    pdawl(&format!("run spmv --matrix {path} --verify"))
        .assert()
        .success();
}

#[test]
fn strategies_are_compared() {
    let strategies = ["cpu", "gpu", "guided", "dawl", "pdawl", "oracle"];
    let bench = json(&format!(
        "bench --vary strategy={} --repeats 1 run spmv --matrix uniform:20000,9 --machine k40 \
         --steps 5",
        strategies.join(",")
    ));
    let runs = bench["runs"].as_array().unwrap();
    let policies = runs
        .iter()
        .filter_map(|run| run["report"]["policy"].as_str());
    assert_eq!(policies.collect::<Vec<_>>(), strategies);
    assert_eq!(runs[0]["report"]["throughput"]["unit"], "nonzeros/s");
}
