//! The product of dense matrices.

use super::{Entry, Given, Made, ORDER, OUTPUT, Parameter, REPEATS, TILE, Unfit, WINDOW, input};
use crate::matrix::npy::{ElementType, NpyMatrix};
use crate::workload::cluster::{Placement, Product, rounded};

/// Rows and columns by default.
const SIZE: u64 = 4096;
const LENGTH: (u64, u64) = (1, u32::MAX as u64);

const PRECISIONS: &[(&str, &str)] = &[
    ("f32", ""),
    ("f64", ""),
    ("f16", "Factors of IEEE's half precision, sums of singles"),
    ("bf16", "Factors of bfloat16, sums of singles"),
    (
        "tf32",
        "Singles, whose products have factors rounded to 10 bits of the mantissa",
    ),
];

pub const ENTRY: Entry = Entry {
    name: "matmul",
    about: "A product of dense matrices that no GPU needs to hold",
    examples: "Examples:\n  pdawl run matmul --size 24576 --gpu-memory 2GiB --verify\n  \
               pdawl run matmul --a a.npy --b b.npy --output c.npy\n  \
               pdawl run matmul --rows 5000 --columns 300 --depth 20000 --precision f64\n  \
               pdawl run matmul --size 16384 --precision bf16 --verify\n  \
               pdawl run matmul --size 24576 --machine v100x2 --gpu-memory 2GiB --policy dmdar \
               --gantt run.html\n  \
               mpirun -n 4 pdawl run matmul --size 16384 --verify\n  \
               pdawl run matmul --size 65536 --cluster unicorn\n  \
               mpirun -n 4 pdawl run matmul --a a.npy --b b.npy --output c.npy",
    parameters: &[
        Parameter {
            excludes: &["rows", "columns", "depth"],
            ..Parameter::number(
                "size",
                LENGTH,
                "Rows and columns of square matrices [default: 4096]",
            )
        },
        Parameter {
            needs: &["columns", "depth"],
            ..Parameter::number("rows", LENGTH, "Rows of A and C")
        },
        Parameter {
            needs: &["rows"],
            ..Parameter::number("columns", LENGTH, "Columns of B and C")
        },
        Parameter {
            needs: &["rows"],
            ..Parameter::number("depth", LENGTH, "Columns of A, rows of B")
        },
        Parameter {
            more: "Without files, the matrices are generated: uniform from -1 to 1.",
            needs: &["b"],
            excludes: &["size", "rows", "columns", "depth"],
            ..Parameter::file(
                "a",
                "Read A from an NPY file of float16, float32 or float64, in C or Fortran order",
            )
        },
        Parameter {
            needs: &["a"],
            ..Parameter::file("b", "Read B from an NPY file")
        },
        Parameter {
            more: "f16, bf16 and tf32 are those of the factors. Sums and the product are f32. \
                   Files of f32 can be multiplied in these, too: their numbers are rounded to f16 \
                   and bf16.",
            ..Parameter::choice(
                "precision",
                PRECISIONS,
                "The precision [default: that of the files, otherwise f32]",
            )
        },
        TILE,
        ORDER,
        WINDOW,
        REPEATS,
    ],
    results: &[OUTPUT],
    nodes: Some(Placement::Grid),
    hosts_only: false,
    make,
};

fn make(given: &Given) -> Result<Made, Unfit> {
    let asked = given.values.word("precision").and_then(input::named);
    let product = match (given.file("a"), given.file("b")) {
        (Some(a), Some(b)) => {
            let a = input::matrix(a, NpyMatrix::open_factor)?;
            let b = input::matrix(b, NpyMatrix::open_factor)?;
            let precision = input::precision(&[&a, &b], asked)?;
            if a.columns() != b.rows() {
                return Err(Unfit::input(
                    format!(
                        "{} has {} columns, and {} has {} rows",
                        a.path().display(),
                        a.columns(),
                        b.path().display(),
                        b.rows()
                    ),
                    "a B with as many rows as A has columns",
                ));
            }
            Product {
                rows: a.rows(),
                columns: b.columns(),
                depth: a.columns(),
                precision,
                a: rounded(a, precision.factors()),
                b: rounded(b, precision.factors()),
            }
        }
        _ => {
            let precision = input::precision(&[], asked)?;
            let square = given.number("size").unwrap_or(SIZE);
            let length = |name| given.number(name).unwrap_or(square);
            let (rows, columns, depth) = (length("rows"), length("columns"), length("depth"));
            let (element, seed) = (precision.factors(), given.seed);
            Product {
                rows,
                columns,
                depth,
                precision,
                a: given.generated(element, rows, depth, seed),
                b: given.generated(element, depth, columns, seed.wrapping_add(1)),
            }
        }
    };
    let element = ElementType::Real(product.precision.sums());
    Ok(Made {
        arrays: vec![(vec![product.rows, product.columns], element)],
        operation: product.operation(given.placement),
    })
}
