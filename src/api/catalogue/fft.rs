//! The 2-D Fourier transform.

use super::{Entry, Given, Made, OUTPUT, Parameter, Unfit, input};
use crate::cluster::space::Extent;
use crate::codelet::Precision;
use crate::matrix::npy::{ElementType, NpyMatrix};
use crate::workload::cluster::{FftWorkload, Placement, generated, of_file};

/// Rows and columns by default, and at most.
const SIZE: u64 = 4096;
const MOST: u64 = 1 << 20;

pub const ENTRY: Entry = Entry {
    name: "fft",
    about: "A 2-D Fourier transform, over the nodes of a cluster",
    examples: "Examples:\n  pdawl run fft --size 4096 --verify\n  \
               mpirun -n 4 pdawl run fft --size 16384 --tile 256\n  \
               pdawl run fft --size 32768 --cluster four\n  \
               mpirun -n 4 pdawl run fft --input a.npy --output b.npy",
    parameters: &[
        Parameter::number(
            "size",
            (1, MOST),
            "Rows and columns of the matrix of complex numbers [default: 4096]",
        ),
        Parameter::tile(
            (1, 65536),
            "Rows or columns of a subtask [default: by the nodes; on one machine, an eighth of the \
             matrix]",
        ),
        Parameter {
            excludes: &["size"],
            ..Parameter::file(
                "input",
                "Read the matrix from an NPY file of complex64; all nodes must see it",
            )
        },
    ],
    results: &[OUTPUT],
    nodes: Some(Placement::Rows),
    hosts_only: false,
    make,
};

fn make(given: &Given) -> Result<Made, Unfit> {
    let (rows, columns, matrix) = match given.file("input") {
        Some(path) => {
            let matrix = input::singles(path, NpyMatrix::open_complex)?;
            (matrix.rows(), matrix.columns(), of_file(matrix))
        }
        None => {
            let size = given.number("size").unwrap_or(SIZE);
            let extent = Extent {
                rows: size,
                columns: size,
                element: 8,
            };
            (size, size, generated(extent, given.seed))
        }
    };
    if rows.max(columns) > MOST {
        return Err(Unfit::input(
            format!("a matrix of {rows} x {columns}"),
            format!("at most {MOST} rows and columns"),
        ));
    }
    let transform = FftWorkload {
        rows,
        columns,
        precision: Precision::F32,
        placement: given.placement,
        matrix,
    };
    Ok(Made {
        operation: transform.operation(),
        arrays: vec![(vec![rows, columns], ElementType::Complex)],
    })
}
