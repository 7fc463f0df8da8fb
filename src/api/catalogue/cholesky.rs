//! The Cholesky factor of a dense matrix.

use super::{Entry, Given, Made, ORDER, Parameter, REPEATS, TILE, Unfit, WINDOW, input};
use crate::matrix::npy::{ElementType, NpyMatrix};
use crate::workload::cluster::{Cholesky, definite, of_file};

/// Rows and columns by default.
const SIZE: u64 = 4096;

pub const ENTRY: Entry = Entry {
    name: "cholesky",
    about: "The Cholesky factor of a dense matrix that no GPU needs to hold",
    examples: "Examples:\n  pdawl run cholesky --size 16384 --gpu-memory 1GiB --verify\n  \
               pdawl run cholesky --input a.npy --output l.npy\n  \
               pdawl run cholesky --size 20000 --precision f64 --machine v100x4",
    parameters: &[
        Parameter {
            excludes: &["input"],
            ..Parameter::number(
                "size",
                (1, u32::MAX as u64),
                "Rows and columns of the matrix [default: 4096]",
            )
        },
        Parameter {
            more: "A is symmetric and positive definite. Only its lower triangle counts. Without a \
                   file, A is generated: uniform from -1 to 1, and 2 sqrt(N) + 1 more on the \
                   diagonal.",
            ..Parameter::file(
                "input",
                "Read A from an NPY file of float32 or float64, in C or Fortran order",
            )
        },
        Parameter::choice(
            "precision",
            input::REALS,
            "Floating-point type [default: that of the file, otherwise f32]",
        ),
        TILE,
        ORDER,
        WINDOW,
        REPEATS,
    ],
    results: &[Parameter::file(
        "output",
        "Write the factor L, with zeros above the diagonal, to an NPY file",
    )],
    nodes: None,
    hosts_only: false,
    make,
};

fn make(given: &Given) -> Result<Made, Unfit> {
    let asked = given.values.word("precision").and_then(input::named);
    let file = given.file("input");
    let file = file.map(|path| input::matrix(path, NpyMatrix::open).and_then(input::square));
    let (size, precision, matrix) = match file.transpose()? {
        Some(a) => {
            let precision = input::precision(&[&a], asked)?.sums();
            (a.rows(), precision, of_file(a))
        }
        None => {
            let precision = input::precision(&[], asked)?.sums();
            let size = given.number("size").unwrap_or(SIZE);
            (size, precision, definite(precision, size, given.seed))
        }
    };
    let cholesky = Cholesky {
        size,
        precision,
        matrix,
    };
    Ok(Made {
        operation: cholesky.operation(),
        arrays: vec![(vec![size, size], ElementType::Real(precision))],
    })
}
