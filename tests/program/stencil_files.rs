//! `pdawl run stencil` from a file to a file, with coefficients and without, and what it
//! refuses.

use std::fs;
use std::path::Path;

use predicates::prelude::*;
use predicates::str::contains;
use serde_json::json;

use crate::command::{Home, pdawl};

/// Writes an array in C order.
fn write(path: &Path, descr: &str, shape: &[usize], numbers: &[f64]) {
    write_as(path, descr, "False", shape, numbers);
}

fn write_as(path: &Path, descr: &str, fortran: &str, shape: &[usize], numbers: &[f64]) {
    let axes: String = shape.iter().map(|axis| format!("{axis}, ")).collect();
    let header =
        format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': ({axes}), }}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    for number in numbers {
        match descr {
            "<f8" => bytes.extend(number.to_le_bytes()),
            "<f4" => bytes.extend((*number as f32).to_le_bytes()),
            _ => bytes.extend((*number as i32).to_le_bytes()),
        }
    }
    fs::write(path, bytes).unwrap();
}

/// Reads an array of this type and shape that the program wrote.
fn read(path: &Path, descr: &str, shape: &[usize]) -> Vec<f64> {
    let bytes = fs::read(path).unwrap();
    let length = u16::from_le_bytes([bytes[8], bytes[9]]) as usize;
    let (header, numbers) = bytes[10..].split_at(length);
    let header = String::from_utf8(header.to_vec()).unwrap();
    assert!(header.contains("'fortran_order': False"), "{header}");
    assert!(header.contains(&format!("'{descr}'")), "{header}");
    let axes: Vec<String> = shape.iter().map(usize::to_string).collect();
    assert!(
        header.contains(&format!("({}", axes.join(", "))),
        "{header}"
    );
    let numbers: Vec<f64> = match descr {
        "<f8" => (numbers.chunks(8))
            .map(|of| f64::from_le_bytes(of.try_into().unwrap()))
            .collect(),
        _ => (numbers.chunks(4))
            .map(|of| f32::from_le_bytes(of.try_into().unwrap()).into())
            .collect(),
    };
    assert_eq!(numbers.len(), shape.iter().product::<usize>());
    numbers
}

/// Numbers without a pattern.
fn numbers(count: usize) -> Vec<f64> {
    let mut random = fastrand::Rng::with_seed(count as u64);
    (0..count)
        .map(|_| f64::from(random.f32() * 8.0 - 4.0))
        .collect()
}

/// The grid after some steps in doubles; `by` has the factors of a point and those around it.
fn computed(shape: &[usize], mut grid: Vec<f64>, by: &[f64], steps: usize) -> Vec<f64> {
    let (nx, plane): (usize, usize) = (
        shape[shape.len() - 1],
        shape[shape.len() - 2..].iter().product(),
    );
    for _ in 0..steps {
        let before = grid.clone();
        for (i, point) in grid.iter_mut().enumerate() {
            let places = match shape {
                [_, _] => vec![(i / nx, shape[0]), (i % nx, nx)],
                _ => vec![
                    (i / plane, shape[0]),
                    (i % plane / nx, shape[1]),
                    (i % nx, nx),
                ],
            };
            if places
                .iter()
                .any(|(at, count)| *at == 0 || at + 1 == *count)
            {
                continue;
            }
            let term = |at: usize, by: f64| before[at] * by;
            let cross = (term(i - nx, by[1]) + term(i + nx, by[2]))
                + (term(i - 1, by[3]) + term(i + 1, by[4]));
            let sides = match by {
                [_, _, _, _, _, below, above] => {
                    cross + (term(i - plane, *below) + term(i + plane, *above))
                }
                _ => cross,
            };
            *point = sides + term(i, by[0]);
        }
    }
    grid
}

const FLAT: &str = "0.3,0.25,-0.125,0.1,0.2";
const SOLID: &str = "-0.5,0.25,0.125,0.1,0.2,0.3,0.05";

fn factors(text: &str) -> Vec<f64> {
    text.split(',').map(|of| of.parse().unwrap()).collect()
}

/// One pool, PoCL with memory of its own beside it, and simulated devices.
const MACHINES: [&str; 3] = [
    "--devices host:1",
    "--devices host:1,opencl0.0:1=own --gpu-memory 64KiB",
    "--machine k40 --verify",
];

#[test]
fn a_file_becomes_the_file_that_its_coefficients_make() {
    for (shape, by) in [(&[57, 83][..], FLAT), (&[11, 13, 17], SOLID)] {
        let first = numbers(shape.iter().product());
        let expected = computed(shape, first.clone(), &factors(by), 9);
        for machine in MACHINES {
            let home = Home::new();
            write(&home.path("first.npy"), "<f8", shape, &first);
            let line = "run stencil --input first.npy --output last.npy --steps 9";
            let report = home.json(&format!("{line} --coefficients {by} {machine}"));
            // Bit for bit: the operations are in the order of the documentation.
            let last = read(&home.path("last.npy"), "<f8", shape);
            assert!(last == expected, "{shape:?} on {machine}");
            let parameters = &report["workload"]["parameters"];
            assert_eq!(parameters["input"], "first.npy");
            assert_eq!(parameters["coefficients"], json!(factors(by)));
            let axes = ["nz", "ny", "nx"].map(|axis| parameters[axis].as_u64());
            let axes: Vec<u64> = axes.into_iter().flatten().collect();
            assert!(axes.iter().map(|n| *n as usize).eq(shape.iter().copied()));
        }
    }
}

#[test]
fn singles_are_verified_and_keep_their_type_and_border() {
    let home = Home::new();
    let (shape, first) = ([40, 31], numbers(40 * 31));
    write(&home.path("first.npy"), "<f4", &shape, &first);
    for rule in ["", "--coefficients 0.2,.3,1e-1,-0.4,0.5"] {
        let line = "run stencil --input first.npy --output last.npy --steps 5 --verify";
        let report = home.json(&format!("{line} --devices host:1,opencl0.0:1 {rule}"));
        assert_eq!(report["verification"]["right"], true);
        assert_eq!(report["workload"]["parameters"]["precision"], "f32");
        let last = read(&home.path("last.npy"), "<f4", &shape);
        let by = match rule.split(' ').nth(1) {
            Some(rule) => factors(rule),
            None => vec![0.2; 5],
        };
        let expected = computed(&shape, first.clone(), &by, 5);
        let (mut changed, mut kept) = (0, 0);
        for (i, (last, expected)) in last.iter().zip(&expected).enumerate() {
            assert!((last - expected).abs() < 1e-4, "{rule}: {last}, {expected}");
            let (row, column) = (i / 31, i % 31);
            match row % 39 == 0 || column % 30 == 0 {
                true => kept += usize::from(*last == first[i]),
                false => changed += usize::from(*last != first[i]),
            }
        }
        assert_eq!(kept, 2 * 31 + 2 * 38, "{rule}");
        assert!(changed > 29 * 38 - 20, "{rule}: {changed}");
    }
}

/// The last version of one run is the first one of the next, whatever the devices.
#[test]
fn a_run_goes_on_where_another_ended() {
    let home = Home::new();
    write(&home.path("a.npy"), "<f8", &[33, 47], &numbers(33 * 47));
    let run = |line: &str| drop(home.json(&format!("run stencil --coefficients {FLAT} {line}")));
    run("--input a.npy --output b.npy --steps 4 --devices host:1");
    run("--input b.npy --output c.npy --steps 5 --machine k40");
    run("--input a.npy --output d.npy --steps 9 --devices host:1");
    let bytes = |name: &str| fs::read(home.path(name)).unwrap();
    assert!(bytes("c.npy") == bytes("d.npy"));
    // An output needs no input, and neither one coefficients.
    home.json("run stencil --nx 9 --ny 7 --output e.npy --devices host:1");
    read(&home.path("e.npy"), "<f8", &[7, 9]);
}

#[test]
fn wrong_files_are_reported() {
    let home = Home::new();
    let path = |name: &str| home.path(name);
    let mut one_wrong = numbers(12 * 10);
    one_wrong[3 * 10 + 7] = f64::NAN;
    write(&path("nan.npy"), "<f8", &[12, 10], &one_wrong);
    let mut one_wrong = numbers(60);
    one_wrong[31] = f64::INFINITY;
    write(&path("inf.npy"), "<f4", &[3, 4, 5], &one_wrong);
    write(&path("row.npy"), "<f8", &[12], &numbers(12));
    write(&path("thin.npy"), "<f8", &[2, 6], &numbers(12));
    write(&path("deep.npy"), "<f8", &[3, 3, 3, 3], &numbers(81));
    write(&path("whole.npy"), "<i4", &[4, 4], &numbers(16));
    write(&path("short.npy"), "<f8", &[4, 4], &numbers(15));
    fs::write(path("text.npy"), "0 1 2").unwrap();
    for (name, part) in [
        (
            "nan",
            "nan.npy: the number in row 3, column 7 (counted from 0) is NaN",
        ),
        (
            "inf",
            "inf.npy: the number in plane 1, row 2, column 1 (counted from 0) is inf",
        ),
        (
            "row",
            "shape [12], and a grid of 2 or 3, each of at least 3 points",
        ),
        (
            "thin",
            "shape [2, 6], and a grid of 2 or 3, each of at least 3",
        ),
        ("deep", "shape [3, 3, 3, 3]"),
        (
            "whole",
            "has numbers of type '<i4', and float32 (<f4) or float64 (<f8) are needed",
        ),
        ("short", "is truncated"),
        ("text", "is not an NPY file"),
        ("missing", "missing.npy: cannot be read"),
    ] {
        for machine in ["--devices host:1", "--machine k40"] {
            home.pdawl(&format!(
                "run stencil --input {name}.npy --output out.npy {machine}"
            ))
            .assert()
            .code(1)
            .stdout("")
            .stderr(contains(part).and(contains("panicked").not()));
            assert!(!path("out.npy").exists(), "{name}");
        }
    }
}

#[test]
fn options_that_contradict_a_file_are_refused() {
    let home = Home::new();
    write(&home.path("flat.npy"), "<f8", &[4, 6], &numbers(24));
    write(&home.path("solid.npy"), "<f4", &[3, 4, 6], &numbers(72));
    for (line, part) in [
        (
            "--input flat.npy --size 4",
            "--size: flat.npy has 6 x 4 points",
        ),
        (
            "--input flat.npy --nx 4 --ny 6",
            "--nx: flat.npy has 6 x 4 points",
        ),
        ("--input flat.npy --nx 6 --ny 5", "--ny: flat.npy"),
        ("--input flat.npy --nx 6 --ny 4 --nz 3", "--nz: flat.npy"),
        (
            "--input solid.npy --nx 6 --ny 4 --nz 4",
            "--nz: solid.npy has 6 x 4 x 3",
        ),
        (
            "--input solid.npy --nx 6 --ny 4",
            "--nx and --ny without --nz: solid.npy",
        ),
        ("--input flat.npy --dims 3", "--dims: flat.npy"),
        (
            "--input flat.npy --precision f32",
            "--precision f32: flat.npy has f64",
        ),
        (
            "--input solid.npy --precision f64",
            "--precision f64: solid.npy has f32",
        ),
        ("--input flat.npy --seed 2", "cannot be used with"),
        (
            "--input flat.npy --coefficients 1,2,3,4,5,6,7",
            "7 coefficients, and a 2-D stencil has 5: centre, north, south, west, east",
        ),
        (
            "--input solid.npy --coefficients 1,2,3,4,5",
            "5 coefficients, and a 3-D stencil has 7",
        ),
        (
            "--coefficients 1,2,3,4",
            "4 numbers; write 5 in 2-D (centre, north",
        ),
        (
            "--coefficients 1,2,nan,4,5",
            "of south, 'nan', is not finite",
        ),
        ("--coefficients 1,2,3,4,e", "of east, 'e', is not a number"),
        (
            "--size 9 --precision f32 --coefficients 1,2,3,1e99,5",
            "of west, 1e99, is not finite in f32",
        ),
        ("--input flat.npy --output flat.npy", "would be overwritten"),
    ] {
        home.pdawl(&format!("run stencil {line}"))
            .assert()
            .code(2)
            .stdout("")
            .stderr(contains(part).and(contains("panicked").not()));
    }
    // What agrees with the file may be given.
    let agrees = "--nx 6 --ny 4 --nz 3 --dims 3 --precision f32 --steps 2";
    home.json(&format!(
        "run stencil --input solid.npy {agrees} --machine k40"
    ));
    home.pdawl("run stencil --input flat.npy --output none/x.npy")
        .assert()
        .code(1)
        .stderr(contains("cannot write none/x.npy").and(contains("its folder does not exist")));
}

#[test]
fn models_that_do_not_know_coefficients_say_so() {
    let home = Home::with_k40_model("known");
    let line = format!("stencil --size 300 --machine k40 --coefficients {FLAT}");
    let report = home.json(&format!("run {line} --steps 3"));
    assert_eq!(report["policy"], "dawl");
    let notes = report["notes"].to_string();
    assert!(
        notes.contains("no model covers codelet stencil5-f64-weighted"),
        "{notes}"
    );
    home.pdawl(&format!("predict {line}"))
        .assert()
        .code(2)
        .stderr(contains("no model covers stencil5-f64-weighted"));
    pdawl(&format!("run {line} --strategy pdawl"))
        .assert()
        .code(1)
        .stderr(contains(
            "strategy pdawl needs a cost model, and no model covers",
        ));
}
