//! Small matrices for tests, here and within the library.

#![allow(dead_code, reason = "each test uses a part of this module")]

use std::collections::BTreeSet;

use fastrand::Rng;
use pdawl::matrix::Csr;

/// A matrix of rows of these lengths, in random columns with random values.
pub fn matrix(columns: u32, lengths: &[u32], seed: u64) -> Csr {
    let mut random = Rng::with_seed(seed);
    let mut starts = vec![0];
    let (mut of, mut values) = (Vec::new(), Vec::new());
    for length in lengths {
        let mut row: Vec<u32> = match length * 2 > columns {
            true => random.choose_multiple(0..columns, *length as usize),
            false => {
                let mut chosen = BTreeSet::new();
                while chosen.len() < *length as usize {
                    chosen.insert(random.u32(0..columns));
                }
                chosen.into_iter().collect()
            }
        };
        row.sort_unstable();
        values.extend(row.iter().map(|_| random.f64() * 2.0 - 1.0));
        of.append(&mut row);
        starts.push(of.len() as u64);
    }
    Csr::new(lengths.len() as u32, columns, starts, of, values).unwrap()
}

/// Matrices that are awkward in one way each.
pub fn awkward() -> Vec<(&'static str, Csr)> {
    let mut random = Rng::with_seed(7);
    let mut skewed: Vec<u32> = (0..701).map(|_| random.u32(0..9)).collect();
    skewed[13] = 5000;
    skewed[600] = 2500;
    skewed[601] = 130;
    let with = |mut matrix: Csr, value: f64| {
        let mut values = matrix.values().to_vec();
        let middle = values.len() / 2;
        values[middle] = value;
        let (rows, columns) = (matrix.rows(), matrix.columns());
        let (starts, of) = (matrix.row_starts().to_vec(), matrix.column_of().to_vec());
        matrix = Csr::new(rows, columns, starts, of, values).unwrap();
        matrix
    };
    vec![
        ("no rows", matrix(0, &[], 1)),
        ("no columns", matrix(0, &[0; 3], 1)),
        ("no entries", matrix(17, &[0; 17], 1)),
        ("one number", matrix(1, &[1], 1)),
        ("one column", matrix(1, &[1, 0, 1, 1, 0], 1)),
        ("one dense row", matrix(3001, &[3001], 1)),
        ("dense", matrix(61, &[61; 61], 1)),
        ("empty rows between", matrix(97, &[0, 5, 0, 0, 97, 1, 0], 2)),
        ("regular", matrix(997, &[7; 997], 3)),
        ("many short rows", matrix(3000, &[1; 3000], 4)),
        ("wide", matrix(5003, &[11; 101], 5)),
        ("tall", matrix(23, &[3; 2111], 6)),
        ("skewed", matrix(6007, &skewed, 7)),
        ("long rows only", matrix(4001, &[3989; 5], 8)),
        (
            "a number that is none",
            with(matrix(311, &[9; 311], 9), f64::NAN),
        ),
        (
            "an infinite number",
            with(matrix(2600, &[2500, 3, 3], 9), f64::INFINITY),
        ),
    ]
}
