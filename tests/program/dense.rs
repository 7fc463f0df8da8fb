//! `pdawl run matmul` and `pdawl run cholesky`: results, files, reports, and what they
//! refuse.

use std::fs;
use std::path::Path;

use half::{bf16, f16};
use predicates::prelude::*;
use predicates::str::contains;
use serde_json::Value;

use crate::command::{Home, pdawl};

/// Writes a matrix of doubles or singles, in C or Fortran order.
fn write(path: &Path, double: bool, fortran: bool, rows: &[Vec<f64>]) {
    write_as(path, if double { "<f8" } else { "<f4" }, fortran, rows);
}

fn write_as(path: &Path, descr: &str, fortran: bool, rows: &[Vec<f64>]) {
    let columns = rows[0].len();
    let order = if fortran { "True" } else { "False" };
    let shape = format!("({}, {columns})", rows.len());
    let header = format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    let mut number = |number: f64| match descr {
        "<f8" => bytes.extend(number.to_le_bytes()),
        "<f4" => bytes.extend((number as f32).to_le_bytes()),
        "<f2" => bytes.extend(f16::from_f64(number).to_le_bytes()),
        _ => bytes.extend(f16::from_f64(number).to_be_bytes()),
    };
    match fortran {
        true => (0..columns).for_each(|c| rows.iter().for_each(|row| number(row[c]))),
        false => rows.iter().flatten().for_each(|of| number(*of)),
    }
    fs::write(path, bytes).unwrap();
}

/// Reads a matrix that the program wrote, in C order.
fn read(path: &Path, (rows, columns): (usize, usize)) -> Vec<Vec<f64>> {
    let bytes = fs::read(path).unwrap();
    let length = u16::from_le_bytes([bytes[8], bytes[9]]) as usize;
    let (header, numbers) = bytes[10..].split_at(length);
    let header = String::from_utf8(header.to_vec()).unwrap();
    assert!(header.contains("'fortran_order': False"), "{header}");
    assert!(header.contains(&format!("({rows}, {columns}")), "{header}");
    let numbers: Vec<f64> = match header.contains("<f8") {
        true => numbers
            .chunks(8)
            .map(|of| f64::from_le_bytes(of.try_into().unwrap()))
            .collect(),
        false => (numbers.chunks(4))
            .map(|of| f32::from_le_bytes(of.try_into().unwrap()).into())
            .collect(),
    };
    assert_eq!(numbers.len(), rows * columns);
    numbers.chunks(columns).map(<[f64]>::to_vec).collect()
}

/// A matrix of small whole numbers, of which every sum is exact.
fn whole_numbers(rows: usize, columns: usize, seed: u64) -> Vec<Vec<f64>> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut row = || {
        (0..columns)
            .map(|_| f64::from(random.i32(-9..10)))
            .collect()
    };
    (0..rows).map(|_| row()).collect()
}

fn product(a: &[Vec<f64>], b: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let number = |row: &[f64], j: usize| row.iter().zip(b).map(|(a, b)| a * b[j]).sum();
    a.iter()
        .map(|row| (0..b[0].len()).map(|j| number(row, j)).collect())
        .collect()
}

/// `L L^T` of a triangle of whole numbers with large ones on the diagonal, and the
/// triangle.
fn definite(rows: usize) -> (Vec<Vec<f64>>, Vec<Vec<f64>>) {
    let mut l = whole_numbers(rows, rows, 5);
    for (i, row) in l.iter_mut().enumerate() {
        row[i] = 64.0;
        row[i + 1..].fill(0.0);
    }
    let transposed: Vec<Vec<f64>> = (0..rows)
        .map(|j| l.iter().map(|row| row[j]).collect())
        .collect();
    (product(&l, &transposed), l)
}

/// Devices of several kinds, with little memory: simulated ones, PoCL with its own
/// memory, and the host.
const MACHINES: [&str; 3] = [
    "--machine v100x2 --gpu-memory 16KiB --policy dmdar+luf",
    "--devices host:1,opencl0.0:1=own --gpu-memory 16KiB --policy eager",
    "--devices host:1",
];

#[test]
fn a_product_of_files_is_exact() {
    let (a, b) = (whole_numbers(50, 37, 1), whole_numbers(37, 41, 2));
    let right = product(&a, &b);
    for (number, machine) in MACHINES.into_iter().enumerate() {
        let home = Home::new();
        let double = number != 1;
        write(&home.path("a.npy"), double, false, &a);
        write(&home.path("b.npy"), double, true, &b);
        let line = "run matmul --a a.npy --b b.npy --output c.npy --tile 16 --verify";
        let report = home.json(&format!("{line} {machine}"));
        assert_eq!(
            report["workload"]["parameters"]["precision"],
            if double { "f64" } else { "f32" }
        );
        assert_eq!(report["workload"]["parameters"]["tasks"], 4 * 3 * 3);
        assert_eq!(report["verification"]["right"], true);
        assert!(read(&home.path("c.npy"), (50, 41)) == right, "{machine}");
    }
}

/// By the host, by PoCL with our kernels, and on simulated devices, which add to a tile in
/// several tasks.
#[test]
fn products_of_every_precision_are_right() {
    for (precision, factors) in [("f16", 2), ("bf16", 2), ("tf32", 4), ("f64", 8)] {
        for machine in MACHINES {
            let home = Home::new();
            let line = "run matmul --rows 70 --columns 33 --depth 51 --tile 16 --verify";
            let report = home.json(&format!(
                "{line} --precision {precision} --output c.npy {machine}"
            ));
            let parameters = &report["workload"]["parameters"];
            assert_eq!(parameters["precision"], precision);
            assert_eq!(
                report["verification"]["right"], true,
                "{precision}: {machine}"
            );
            // Products are singles, unless they are doubles.
            let c = read(&home.path("c.npy"), (70, 33));
            assert!(c.iter().flatten().all(|number| number.is_finite()));
            let bytes = fs::metadata(home.path("c.npy")).unwrap().len();
            assert_eq!(bytes, 128 + 70 * 33 * if factors == 8 { 8 } else { 4 });
        }
    }
}

#[test]
fn files_are_multiplied_in_formats_of_fewer_bits() {
    let (a, b) = (whole_numbers(50, 37, 1), whole_numbers(37, 41, 2));
    for machine in MACHINES {
        for (stored, precision, asked) in [
            (["<f4", "<f4"], "tf32", "--precision tf32"),
            (["<f4", "<f4"], "f16", "--precision f16"),
            (["<f4", "<f4"], "bf16", "--precision bf16"),
            (["<f2", ">f2"], "f16", ""),
        ] {
            let home = Home::new();
            write_as(&home.path("a.npy"), stored[0], false, &a);
            write_as(&home.path("b.npy"), stored[1], true, &b);
            let line = "run matmul --a a.npy --b b.npy --output c.npy --tile 16 --verify";
            let report = home.json(&format!("{line} {asked} {machine}"));
            assert_eq!(report["workload"]["parameters"]["precision"], precision);
            assert_eq!(report["verification"]["right"], true);
            // Small whole numbers have less than 8 bits.
            assert!(read(&home.path("c.npy"), (50, 41)) == product(&a, &b));
        }
    }
}

/// Numbers with more bits than a format has are rounded to it.
#[test]
fn files_of_singles_are_rounded() {
    let third = vec![vec![1.0 / 3.0; 5]; 5];
    for (precision, rounded) in [
        ("f16", f64::from(f16::from_f64(1.0 / 3.0))),
        ("bf16", f64::from(bf16::from_f64(1.0 / 3.0))),
    ] {
        let home = Home::new();
        write(&home.path("a.npy"), false, false, &third);
        home.json(&format!(
            "run matmul --a a.npy --b a.npy --output c.npy --precision {precision} --verify \
             --devices host:1"
        ));
        let c = read(&home.path("c.npy"), (5, 5));
        let right = 5.0 * rounded * rounded;
        let of = |number: &f64| (number - right).abs() < 1e-6;
        assert!(c.iter().flatten().all(of), "{precision}: {c:?} {right}");
    }
}

#[test]
fn a_factor_of_a_file_is_right() {
    let (a, right) = definite(45);
    for (number, machine) in MACHINES.into_iter().enumerate() {
        let home = Home::new();
        let double = number != 1;
        write(&home.path("a.npy"), double, number == 0, &a);
        let line = "run cholesky --input a.npy --output l.npy --tile 16 --verify";
        let report = home.json(&format!("{line} {machine}"));
        assert_eq!(report["workload"]["parameters"]["tasks"], 10);
        assert_eq!(report["verification"]["right"], true);
        let found = read(&home.path("l.npy"), (45, 45));
        let allowed = if double { 1e-11 } else { 1e-2 };
        for (found, right) in found.iter().flatten().zip(right.iter().flatten()) {
            assert!(
                (found - right).abs() <= allowed,
                "{machine}: {found} {right}"
            );
        }
    }
}

#[test]
fn generated_matrices_are_right_under_every_policy() {
    let on = "--machine v100x2 --gpu-memory 24KiB --verify";
    let home = Home::new();
    for policy in [
        "eager",
        "dmdar",
        "partition",
        "mhfp+luf",
        "darts",
        "darts+luf+3inputs",
        "locality",
        "heft",
        "adaptive",
        "clustering",
        "auto-fit",
        "round-robin",
    ] {
        for (line, tasks) in [
            (
                "matmul --rows 70 --columns 33 --depth 51 --tile 16",
                5 * 3 * 4,
            ),
            (
                "cholesky --size 75 --tile 16 --precision f64 --order random",
                35,
            ),
        ] {
            let report = home.json(&format!("run {line} {on} --policy {policy}"));
            assert_eq!(report["schema"], "pdawl-report/2");
            assert_eq!(report["policy"], policy);
            assert_eq!(report["verification"]["right"], true, "{line} {policy}");
            let devices = report["devices"].as_array().unwrap();
            let sum = |name: &str| {
                devices
                    .iter()
                    .map(|d| d[name].as_f64().unwrap())
                    .sum::<f64>()
            };
            assert_eq!(sum("units"), f64::from(tasks));
            assert!((sum("share") - 1.0).abs() < 1e-9);
            let figure = |name: &str| report[name].as_f64().unwrap();
            let flops = report["workload"]["parameters"]["flops"].as_f64().unwrap();
            let rate = flops / figure("seconds");
            let reported = report["throughput"]["value"].as_f64().unwrap();
            assert!((reported - rate).abs() < 1e-6 * rate);
        }
    }
}

#[test]
fn the_text_and_the_chart_say_that_they_are_simulated() {
    let home = Home::new();
    let line = "run matmul --size 24576 --gpu-memory 2GiB --machine v100x2 --gantt g.svg";
    let output = home.pdawl(line).assert().success().get_output().clone();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("1728 tasks on tiles of 2048"), "{text}");
    assert!(text.contains("flop/s simulated"), "{text}");
    assert!(
        fs::read_to_string(home.path("g.svg"))
            .unwrap()
            .contains("simulated")
    );
}

#[test]
fn wrong_files_are_reported() {
    let home = Home::new();
    let ones = |rows: usize, columns: usize| vec![vec![1.0; columns]; rows];
    write(&home.path("a.npy"), false, false, &ones(4, 5));
    write(&home.path("b.npy"), false, false, &ones(6, 5));
    write(&home.path("d.npy"), true, false, &ones(5, 5));
    let mut short = fs::read(home.path("d.npy")).unwrap();
    short.truncate(short.len() - 1);
    fs::write(home.path("short.npy"), short).unwrap();
    let mut negative = ones(20, 20);
    (0..20).for_each(|i| negative[i][i] = if i == 13 { -1.0 } else { 40.0 });
    write(&home.path("negative.npy"), true, false, &negative);
    for (name, number) in [("nan.npy", f64::NAN), ("inf.npy", f64::NEG_INFINITY)] {
        let mut odd = negative.clone();
        // Above the diagonal nothing counts.
        (odd[2][19], odd[15][9], odd[17][3]) = (f64::NAN, number, f64::NAN);
        write(&home.path(name), false, name == "inf.npy", &odd);
    }
    write(&home.path("none.npy"), false, false, &[vec![]]);
    fs::write(home.path("text.npy"), "1 2 3").unwrap();
    for (line, code, part) in [
        (
            "matmul --a a.npy --b b.npy",
            1,
            "a.npy has 5 columns, and b.npy has 6 rows",
        ),
        (
            "matmul --a a.npy --b d.npy",
            1,
            "a.npy has f32, and d.npy has f64",
        ),
        (
            "matmul --a a.npy --b missing.npy",
            1,
            "missing.npy: cannot be read",
        ),
        (
            "matmul --a text.npy --b b.npy",
            1,
            "text.npy: is not an NPY file",
        ),
        (
            "matmul --a none.npy --b b.npy",
            1,
            "none.npy: has 1 x 0 numbers",
        ),
        ("matmul --a a.npy", 2, "--b <FILE>"),
        (
            "matmul --a d.npy --b d.npy --precision f32",
            2,
            "--precision f32: d.npy has f64",
        ),
        (
            "matmul --a d.npy --b d.npy --precision f16",
            2,
            "--precision f16: d.npy has f64",
        ),
        (
            "matmul --a d.npy --b d.npy --output d.npy",
            2,
            "would be overwritten",
        ),
        ("cholesky --input short.npy", 1, "short.npy: is truncated"),
        ("cholesky --input a.npy", 1, "a.npy: is 4 x 5, not square"),
        (
            "cholesky --input negative.npy --tile 8",
            1,
            "the pivot of row 13",
        ),
        (
            "cholesky --input nan.npy --tile 8",
            1,
            "the matrix has NaN in row 15 and column 9",
        ),
        (
            "cholesky --input inf.npy",
            1,
            "has -inf in row 15 and column 9",
        ),
        (
            "cholesky --input negative.npy --output none/l.npy",
            1,
            "its folder does not exist",
        ),
    ] {
        let devices = "--devices host:1";
        home.pdawl(&format!("run {line} {devices}"))
            .assert()
            .code(code)
            .stdout("")
            .stderr(contains(part).and(contains("panicked").not()));
    }
}

#[test]
fn wrong_usage_is_reported() {
    for (line, code, part) in [
        ("matmul --size 0", 2, "0 is not in 1..="),
        ("matmul --rows 5 --columns 5", 2, "--depth <N>"),
        (
            "matmul --size 5 --tile 6",
            2,
            "--tile 6: the tile is larger than the matrices",
        ),
        (
            "matmul --size 5 --tile 0",
            2,
            "0 is not in 1..=65536; or write auto",
        ),
        (
            "matmul --size 30000 --tile 100",
            2,
            "27000000 tasks are too many",
        ),
        (
            "matmul --size 5 --policy fifo",
            2,
            "`fifo` is not a policy; known are adaptive",
        ),
        (
            "matmul --size 5 --host-memory 1GiB",
            2,
            "--host-memory is for workloads",
        ),
        ("matmul --size 5 --devices gpu7", 2, "gpu7"),
        (
            "matmul --size 4096 --tile 1024 --gpu-memory 10MiB",
            1,
            "task `gemm.0.0.0` needs 12.0 MiB of the memory of gpu0 at once, which has 10.0 MiB",
        ),
        ("cholesky --size 4000000", 1, "of host memory, and"),
        (
            "matmul --size 5 --precision f8",
            2,
            "invalid value 'f8' for '--precision <NAME>'",
        ),
        (
            "cholesky --size 5 --precision f16",
            2,
            "[possible values: f64, f32]",
        ),
    ] {
        pdawl(&format!("run {line} --machine v100x2"))
            .assert()
            .code(code)
            .stdout("")
            .stderr(contains(part).and(contains("panicked").not()));
    }
}

#[test]
fn a_lost_device_is_reported() {
    let home = Home::new();
    let line = "run matmul --size 8192 --machine v100x2 --fault gpu1:lost@0.002s";
    let report: Value = home.json(line);
    assert_eq!(report["lost"][0]["device"], "gpu1");
}

#[test]
fn a_real_device_can_be_lost() {
    let home = Home::new();
    let devices = "--devices host:1,opencl0.0:1=own --gpu-memory 1MiB --verify";
    for (line, policy) in [
        ("matmul --size 700 --tile 64", "locality"),
        ("cholesky --size 700 --tile 64 --precision f64", "darts+luf"),
    ] {
        for at in ["0s", "0.003s"] {
            let fault = format!("--policy {policy} --fault opencl0.0:1=own:lost@{at}");
            let report = home.json(&format!("run {line} {devices} {fault}"));
            let lost = &report["lost"][0];
            assert_eq!(lost["device"], "opencl0.0:1=own");
            assert_eq!(lost["why"], "lost on purpose");
            assert_eq!(report["verification"]["right"], true, "{line} {fault}");
            assert_eq!(report["runs"].as_array().unwrap().len(), 1);
        }
    }
    for (fault, code, part) in [
        (
            "gpu7:lost@0s",
            2,
            "--fault: no device `gpu7` takes part\n  try: one of host:1, opencl0.0:1=own",
        ),
        (
            "opencl0.0:1=own:lost@0",
            2,
            "only the loss of a device at a time",
        ),
        (
            "opencl0.0:1=own:slow:2@1s",
            2,
            "try: opencl0.0:1=own:lost@0.5s",
        ),
    ] {
        home.pdawl(&format!("run matmul --size 64 {devices} --fault {fault}"))
            .assert()
            .code(code)
            .stdout("")
            .stderr(contains(part).and(contains("panicked").not()));
    }
    let alone = "run matmul --size 64 --devices opencl0.0:1=own --fault opencl0.0:1=own:lost@0s";
    home.pdawl(alone)
        .assert()
        .code(1)
        .stderr(contains("lost on purpose").and(contains("panicked").not()));
    // Other commands lose only simulated devices.
    home.pdawl("run stencil --size 64 --devices host:1 --fault host:1:lost@0s")
        .assert()
        .code(2)
        .stderr(contains("--fault is for simulated machines"));
}
