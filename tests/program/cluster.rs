//! `pdawl run` as on a cluster, with one node: files of inputs and results, page ranks, and
//! options that runs over nodes do not have.

use std::fs;
use std::path::Path;

use predicates::prelude::*;
use predicates::str::contains;
use serde_json::Value;

use crate::command::{Home, json, pdawl};

/// Writes an NPY file of version 1 with these numbers.
fn write(path: &Path, descr: &str, shape: &str, numbers: &[f32]) {
    let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
    fs::write(path, bytes).unwrap();
}

/// The header and the numbers of a file, by the size of a number.
fn read<const SIZE: usize>(path: &Path) -> (String, Vec<[u8; SIZE]>) {
    let bytes = fs::read(path).unwrap();
    let length = usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    let header = String::from_utf8(bytes[10..10 + length].to_vec()).unwrap();
    let numbers = bytes[10 + length..].as_chunks();
    assert!(numbers.1.is_empty());
    (header, numbers.0.to_vec())
}

fn singles(path: &Path, shape: &str) -> Vec<f32> {
    let (header, numbers) = read(path);
    assert!(header.contains(shape), "{header}");
    numbers.into_iter().map(f32::from_le_bytes).collect()
}

#[test]
fn an_image_of_a_file_is_convolved_into_a_file() {
    let home = Home::new();
    let image: Vec<f32> = (0..7 * 9 * 2).map(|at| (at * 5 % 11) as f32).collect();
    write(&home.path("a.npy"), "<f4", "(7, 9, 2)", &image);
    // The filter takes the pixel on the right.
    let mut filter = [0.0; 9];
    filter[5] = 1.0;
    write(&home.path("f.npy"), "<f4", "(3, 3)", &filter);
    let line = "run convolution --image a.npy --filter-file f.npy --output b.npy --tile 4 --verify";
    let report = home.json(&format!("{line} --devices host:1"));
    assert_eq!(report["verification"]["right"], true);
    let found = singles(&home.path("b.npy"), "(7, 9, 2");
    for row in 0..7_usize {
        for column in 0..9 {
            for channel in 0..2 {
                let at = |column| (row * 9 + column) * 2 + channel;
                let right = if column == 8 {
                    0.0
                } else {
                    image[at(column + 1)]
                };
                assert_eq!(found[at(column)], right);
            }
        }
    }
}

#[test]
fn a_transform_and_factors_of_files_are_written() {
    let home = Home::new();
    let mut point = [0.0; 2 * 8 * 16];
    point[0] = 3.0;
    write(&home.path("a.npy"), "<c8", "(8, 16)", &point);
    let line = "run fft --input a.npy --output b.npy --verify --devices host:1";
    assert_eq!(home.json(line)["verification"]["right"], true);
    let (header, found) = read::<8>(&home.path("b.npy"));
    assert!(
        header.contains("<c8") && header.contains("(8, 16"),
        "{header}"
    );
    let three = [3.0f32.to_le_bytes(), [0; 4]].concat();
    assert!(found.iter().all(|number| number[..4] == three[..4]));

    let matrix = [0.0, 2.0, 4.0, 1.0];
    write(&home.path("m.npy"), "<f4", "(2, 2)", &matrix);
    let line = "run lu --input m.npy --output lu.npy --pivots p.npy --verify --devices host:1";
    assert_eq!(home.json(line)["verification"]["right"], true);
    assert_eq!(singles(&home.path("lu.npy"), "(2, 2"), [4.0, 1.0, 0.0, 2.0]);
    let (header, pivots) = read::<4>(&home.path("p.npy"));
    assert!(
        header.contains("<i4") && header.contains("(2, "),
        "{header}"
    );
    assert_eq!(pivots, [1u32, 1].map(u32::to_le_bytes));
}

#[test]
fn numbers_are_sorted() {
    let home = Home::new();
    let numbers = [3.0, -1.0, f32::NAN, 2.0, -0.0, 0.0, 2.0];
    write(&home.path("a.npy"), "<f4", "(7,)", &numbers);
    let line = "run sort --input a.npy --output b.npy --verify --devices host:1";
    let report = home.json(line);
    assert_eq!(report["verification"]["right"], true);
    assert_eq!(report["verification"]["numbers"], 7);
    assert_eq!(report["workload"]["parameters"]["subtasks"], 1);
    let sorted = singles(&home.path("b.npy"), "(7,");
    assert_eq!(sorted[..6], [-1.0, -0.0, 0.0, 2.0, 2.0, 3.0]);
    assert!(sorted[1].is_sign_negative() && sorted[6].is_nan());
    let generated = json("run sort --size 300000 --verify");
    assert_eq!(generated["verification"]["numbers"], 300_000);
}

#[test]
fn page_ranks_are_right_and_written() {
    let home = Home::new();
    // A star: the last vertex has no link.
    let star = "%%MatrixMarket matrix coordinate pattern general\n3 3 2\n1 3\n2 3\n";
    fs::write(home.path("star.mtx"), star).unwrap();
    let line = "run pagerank --matrix star.mtx --damping 0.5 --steps 60 --output r.npy";
    let report = home.json(&format!("{line} --no-cache --verify --devices host:1"));
    assert_eq!(report["verification"]["right"], true);
    assert_eq!(report["workload"]["name"], "pagerank");
    assert!(report["details"]["change"].as_f64().unwrap() < 1e-15);
    assert_eq!(report["workload"]["parameters"]["form"], "ranks");
    assert_eq!(report["workload"]["parameters"]["damping"], 0.5);
    let (header, numbers) = read::<8>(&home.path("r.npy"));
    assert!(
        header.contains("<f8") && header.contains("(3, "),
        "{header}"
    );
    for (number, right) in numbers.into_iter().zip([0.25, 0.25, 0.5]) {
        assert!((f64::from_le_bytes(number) - right).abs() < 1e-14);
    }
    let generated = json("run pagerank --matrix rmat:10,8 --precision f32 --steps 5 --verify");
    assert_eq!(generated["verification"]["right"], true);
}

#[test]
fn a_tolerance_ends_a_page_rank_and_the_steps_are_reported() {
    let home = Home::new();
    let ranks = "run pagerank --matrix rmat:9,8 --verify --devices host:1 --output r.npy";
    let long = home.json(&format!("{ranks} --tolerance 1e-4 --steps 100"));
    let steps = |report: &Value| report["details"]["steps"].as_array().map(Vec::len);
    let done = steps(&long).expect("steps");
    assert!((2..100).contains(&done), "{done}");
    assert!(long["details"]["change"].as_f64().unwrap() <= 1e-4);
    let parameters = &long["workload"]["parameters"];
    assert_eq!(parameters["steps"], 100);
    assert_eq!(parameters["tolerance"], 1e-4);
    assert_eq!(long["verification"]["right"], true);
    let (_, early) = read::<8>(&home.path("r.npy"));
    // As many steps without a tolerance have the same ranks.
    let same = home.json(&format!("{ranks} --steps {done}"));
    assert_eq!(steps(&same), Some(done));
    assert_eq!(read::<8>(&home.path("r.npy")).1, early);
    let short = home.json(&format!("{ranks} --tolerance 1e-4 --steps {}", done - 1));
    assert_eq!(steps(&short), Some(done - 1));
    assert!(short["details"]["change"].as_f64().unwrap() > 1e-4);
    let mut text = home.pdawl(&format!("{ranks} --tolerance 1e-4 --steps 100"));
    let text = text.output().expect("it runs").stdout;
    let text = String::from_utf8(text).expect("text");
    assert!(
        text.contains(&format!("{done} of 100, tolerance 1e-4")),
        "{text}"
    );
    // A simulated machine computes ranks where they are needed.
    let simulated =
        home.json("run pagerank --matrix rmat:9,8 --machine k40 --tolerance 1e-4 --steps 100");
    assert_eq!(steps(&simulated), Some(done));
}

#[test]
fn reports_of_one_simulated_machine_say_what_those_of_other_workloads_say() {
    for workload in [
        "lu --size 512",
        "fft --size 256",
        "convolution --size 256 --filter 5",
        "sort --size 1000",
    ] {
        let line = format!("run {workload} --machine k40");
        let plain = json(&line);
        let drawn = Home::new().json(&format!("{line} --gantt g.svg"));
        for report in [&plain, &drawn] {
            assert!(
                report["bounds"]["area_seconds"].as_f64() > Some(0.0),
                "{line}"
            );
            assert!(report["setup_seconds"].as_f64() > Some(0.0), "{line}");
            assert_eq!(report["lost"].as_array().map(Vec::len), Some(0), "{line}");
            assert!(report["devices"][0]["kind"].is_string(), "{line}");
        }
        assert_eq!(plain["bounds"], drawn["bounds"], "{line}");
        if workload.starts_with("sort") {
            continue;
        }
        let lost = json(&format!("{line} --fault gpu0:lost@0s"));
        assert_eq!(lost["lost"][0]["device"], "gpu0", "{line}");
        assert_eq!(lost["lost"][0]["node"], Value::Null, "{line}");
    }
}

#[test]
fn what_no_device_computes_is_named_with_the_reason() {
    for (line, part) in [
        (
            "fft --size 6000",
            "GPUs transform lines of a power of two from 2 to 8192 numbers",
        ),
        (
            "fft --size 16384",
            "fft-rows-f32 can be computed on none of the devices, gpu0",
        ),
        ("fft --size 6000 --tile 7", "and the host all others"),
    ] {
        let mut command = pdawl(&format!("run {line} --machine v100x1 --devices gpu0"));
        let refused = command.assert().code(1);
        refused.stderr(contains(part).and(contains("lost").not()));
    }
}

/// As `mpirun` starts it. What the command line tells is refused before processes join.
#[test]
fn options_that_kernels_over_nodes_do_not_have_are_reported() {
    for (line, part) in [
        ("--strategy gpu", "--strategy is for a run on one node"),
        ("--gpu-memory 1GiB", "--gpu-memory"),
        ("--placement rows", "--placement"),
        ("--cluster four", "cannot be simulated"),
    ] {
        let mut command = pdawl(&format!("run kernel none.json {line}"));
        command.env("OMPI_COMM_WORLD_RANK", "1");
        command.env("OMPI_COMM_WORLD_SIZE", "2");
        command.assert().code(2).stderr(contains(part));
    }
}

#[test]
fn wrong_files_and_options_are_reported() {
    let home = Home::new();
    write(&home.path("a.npy"), "<f4", "(2, 3)", &[1.0; 6]);
    write(&home.path("even.npy"), "<f4", "(2, 2)", &[1.0; 4]);
    write(&home.path("d.npy"), "<f8", "(2, 1)", &[1.0; 4]);
    let pattern = "%%MatrixMarket matrix coordinate pattern general\n";
    for (name, rest) in [("empty.mtx", "0 0 0\n"), ("wide.mtx", "2 3 1\n1 3\n")] {
        fs::write(home.path(name), format!("{pattern}{rest}")).unwrap();
    }
    for (line, status, part) in [
        ("lu --input a.npy", 1, "a.npy: is 2 x 3, not square"),
        ("lu --input d.npy", 1, "d.npy: is 2 x 1, not square"),
        ("lu --input even.npy", 1, "singular: column 1 "),
        ("lu --input even.npy --precision f64", 2, "even.npy has f32"),
        ("fft --input a.npy", 1, "complex64 (<c8) are needed"),
        ("sort --input a.npy", 1, "an array of 1 is needed"),
        (
            "sort --size 1000 --tile 3 --cluster four",
            2,
            "--tile 4 or more",
        ),
        ("sort --devices opencl0.0", 2, "only hosts do"),
        (
            "sort --cluster four --output x.npy",
            2,
            "--output is for runs that compute",
        ),
        ("lu --input missing.npy", 1, "missing.npy: cannot be read"),
        ("lu --input even.npy --size 3", 2, "--input"),
        (
            "lu --input even.npy --output even.npy",
            2,
            "is read by this command",
        ),
        (
            "lu --size 9 --output x.npy --pivots x.npy",
            2,
            "two outputs",
        ),
        (
            "convolution --image even.npy --filter-file even.npy",
            2,
            "without a middle",
        ),
        (
            "pagerank --matrix empty.mtx --no-cache",
            2,
            "nothing to compute",
        ),
        (
            "pagerank --matrix wide.mtx --no-cache",
            2,
            "only a square one",
        ),
        (
            "pagerank --matrix uniform:9,2 --damping 1",
            2,
            "a probability",
        ),
        (
            "pagerank --matrix uniform:9,2 --placement rows",
            2,
            "--placement",
        ),
        ("spmv --matrix uniform:9,2 --spread steal", 2, "--spread"),
        (
            "pagerank --matrix uniform:9,2 --tolerance=-1",
            2,
            "a sum of changes",
        ),
        (
            "pagerank --matrix uniform:9,2 --tolerance 1e-6 --cluster four",
            2,
            "--steps N",
        ),
    ] {
        let mut command = home.pdawl(&format!("run {line}"));
        command.assert().code(status).stderr(contains(part));
    }
}

/// As `mpirun` starts it.
#[test]
fn options_of_one_node_are_refused_over_several() {
    for (options, part) in [
        ("--spread steal", "--spread"),
        ("--strategy cpu", "--strategy"),
        ("--machine k40", "--machine"),
        ("--placement central", "--placement"),
        ("--host-memory 1GiB", "--host-memory"),
    ] {
        let mut command = pdawl(&format!("run spmv --matrix uniform:9,2 {options}"));
        command.env("OMPI_COMM_WORLD_RANK", "0");
        command.env("OMPI_COMM_WORLD_SIZE", "2");
        command.assert().code(2).stderr(contains(part));
    }
    let mut command = pdawl("run pagerank --matrix none.mtx --placement rows");
    command.env("OMPI_COMM_WORLD_RANK", "1");
    command.env("OMPI_COMM_WORLD_SIZE", "2");
    command.assert().code(2).stderr(contains("--placement"));
}

#[test]
fn simulated_runs_have_traces_charts_and_tables() {
    let home = Home::new();
    let files = "--trace t.json --gantt g.html --csv c.csv";
    let report = home.json(&format!(
        "run convolution --size 8192 --cluster four {files}"
    ));
    let subtasks = report["workload"]["parameters"]["subtasks"]
        .as_u64()
        .unwrap() as usize;
    let text = fs::read_to_string(home.path("t.json")).unwrap();
    let trace: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(trace["otherData"]["simulated"], true);
    let events = trace["traceEvents"].as_array().unwrap();
    let kernels = events.iter().filter(|event| event["cat"] == "ndrange");
    assert!(kernels.count() >= subtasks);
    let table = fs::read_to_string(home.path("c.csv")).unwrap();
    assert!(table.contains("node 3, "), "{table}");
    let chart = fs::read_to_string(home.path("g.html")).unwrap();
    assert!(chart.contains("node 3, "));
}
