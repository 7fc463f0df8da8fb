//! The sort of numbers.

use super::{Entry, Given, Made, OUTPUT, Parameter, Unfit, input};
use crate::codelet::Precision;
use crate::matrix::npy::{ElementType, NpyMatrix};
use crate::workload::cluster::{self, MOST_BANDS, Placement, least_tile, of_file};

/// Numbers by default, and at most.
const SIZE: u64 = 1 << 26;
const MOST: u64 = 1 << 40;

pub const ENTRY: Entry = Entry {
    name: "sort",
    about: "Numbers in ascending order, over the nodes of a cluster",
    examples: "Examples:\n  pdawl run sort --size 100000000 --verify\n  \
               mpirun -n 4 pdawl run sort --input a.npy --output sorted.npy\n  \
               pdawl run sort --size 1000000000 --cluster four",
    parameters: &[
        Parameter::number(
            "size",
            (1, MOST),
            "Numbers to be sorted, singles from -1 to 1 [default: 67108864]",
        ),
        Parameter::tile(
            (1, MOST),
            "Numbers of a subtask over nodes [default: by the nodes]",
        ),
        Parameter {
            excludes: &["size"],
            ..Parameter::file(
                "input",
                "Read the numbers from an NPY file of float32 or float64 with one dimension; all \
                 nodes must see it",
            )
        },
    ],
    results: &[OUTPUT],
    nodes: Some(Placement::Rows),
    hosts_only: true,
    make,
};

fn make(given: &Given) -> Result<Made, Unfit> {
    let (count, precision, keys) = match given.file("input") {
        Some(path) => {
            let row = input::reals(path, NpyMatrix::open_vector)?;
            (row.columns(), row.precision(), of_file(row))
        }
        None => {
            let count = given.number("size").unwrap_or(SIZE);
            let keys = given.generated(Precision::F32, 1, count, given.seed);
            (count, Precision::F32, keys)
        }
    };
    let (most, least) = (MOST_BANDS, least_tile(count));
    if let Some(tile) = given.values.tile().filter(|tile| *tile < least) {
        return Err(Unfit::value(
            format!("--tile {tile} makes more than {most} subtasks of {count} numbers"),
            format!("--tile {least} or more"),
        ));
    }
    Ok(Made {
        operation: match precision {
            Precision::F32 => cluster::sort::<f32>(1, count, keys),
            Precision::F64 => cluster::sort::<f64>(1, count, keys),
        },
        arrays: vec![(vec![count], ElementType::Real(precision))],
    })
}
