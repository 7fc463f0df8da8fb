//! The LU factors of a dense matrix.

use super::{Entry, Given, Made, OUTPUT, Parameter, Unfit, input};
use crate::matrix::npy::{ElementType, NpyMatrix};
use crate::workload::cluster::{LuWorkload, Placement, of_file};

/// Rows and columns by default, and at most.
const SIZE: u64 = 4096;
const MOST: u64 = 1 << 20;

pub const ENTRY: Entry = Entry {
    name: "lu",
    about: "The LU factors of a dense matrix, over the nodes of a cluster",
    examples: "Examples:\n  pdawl run lu --size 8192 --verify\n  \
               mpirun -n 4 pdawl run lu --size 16384 --tile 1024\n  \
               pdawl run lu --size 32768 --cluster four --nodes 16\n  \
               mpirun -n 4 pdawl run lu --input a.npy --output lu.npy --pivots p.npy\n\n\
               In Python: scipy.linalg.lu_solve((numpy.load(\"lu.npy\"), numpy.load(\"p.npy\")), b)",
    parameters: &[
        Parameter::number(
            "size",
            (1, MOST),
            "Rows and columns of the matrix [default: 4096]",
        ),
        Parameter::tile(
            (1, 16384),
            "Rows and columns of a block [default: by the nodes, from 64 to 2048; on one machine, \
             whose blocks are whole columns, by its devices]",
        ),
        Parameter::choice(
            "precision",
            input::REALS,
            "The floating-point type [default: that of --input, or f32]",
        ),
        Parameter {
            more: "Pivots are the greatest numbers of their columns (partial pivoting, as in \
                   LAPACK). A matrix that is singular, or whose numbers grow beyond the type, is \
                   an error that names the column. Without a file, A is generated: uniform from -1 \
                   to 1.",
            excludes: &["size"],
            ..Parameter::file(
                "input",
                "Read the matrix A from an NPY file of float32 or float64; all nodes must see it",
            )
        },
    ],
    results: &[
        OUTPUT,
        Parameter::file(
            "pivots",
            "Write the exchanges of rows to an NPY file of int32: row i was exchanged with row \
             p[i], for ascending i, as in scipy.linalg.lu_factor",
        ),
    ],
    nodes: Some(Placement::ColumnCyclic),
    hosts_only: false,
    make,
};

fn make(given: &Given) -> Result<Made, Unfit> {
    let asked = given.values.word("precision").and_then(input::named);
    let file = given.file("input");
    let file = file.map(|path| input::reals(path, NpyMatrix::open).and_then(input::square));
    let (size, precision, matrix) = match file.transpose()? {
        Some(matrix) => {
            let precision = input::precision(&[&matrix], asked)?.sums();
            (matrix.rows(), precision, of_file(matrix))
        }
        None => {
            let precision = input::precision(&[], asked)?.sums();
            let size = given.number("size").unwrap_or(SIZE);
            let matrix = given.generated(precision, size, size, given.seed);
            (size, precision, matrix)
        }
    };
    if size > MOST {
        let what = format!("a matrix of {size} rows");
        return Err(Unfit::input(what, format!("at most {MOST}")));
    }
    Ok(Made {
        operation: LuWorkload::operation(size, precision, given.placement, matrix),
        arrays: vec![
            (vec![size, size], ElementType::Real(precision)),
            (vec![size], ElementType::I32),
        ],
    })
}
