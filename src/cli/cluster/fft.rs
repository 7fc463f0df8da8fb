//! `pdawl run fft`.

use std::path::{Path, PathBuf};

use pdawl::cluster::space::Extent;
use pdawl::matrix::npy::{ElementType, NpyMatrix};
use pdawl::workload::cluster::{FftWorkload, Fill, Placement, generated, of_file};

use super::files::{self, ResultArray, ResultFile};
use super::options::ClusterOptions;
use super::prepared::OperationJob;
use super::run::{ClusterJob, Prepared, run_job};
use crate::failure::Failure;
use crate::integer::integer;
use crate::paths::Paths;

/// Rows and columns by default, and at most.
const SIZE: u64 = 4096;
const MOST: u64 = 1 << 20;

const EXAMPLES: &str = "Examples:\n  pdawl run fft --size 4096 --verify\n  \
                        mpirun -n 4 pdawl run fft --size 16384 --tile 256\n  \
                        pdawl run fft --size 32768 --cluster four\n  \
                        mpirun -n 4 pdawl run fft --input a.npy --output b.npy";

/// The sizes of a matrix and its subtasks.
#[derive(Debug, clap::Args)]
pub struct Sizes {
    /// Rows and columns of the matrix of complex numbers [default: 4096]
    #[arg(long, value_name = "N", value_parser = integer(1..=MOST))]
    size: Option<u64>,

    /// Rows or columns of a subtask [default: by the nodes; on one machine, an eighth of the
    /// matrix]
    #[arg(long, value_name = "N", value_parser = integer(1..=65536_u64))]
    tile: Option<u64>,
}

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    sizes: Sizes,

    /// Read the matrix from an NPY file of complex64; all nodes must see it
    #[arg(long, value_name = "FILE", conflicts_with = "size")]
    input: Option<PathBuf>,

    #[command(flatten)]
    options: ClusterOptions,
}

/// Runs the subcommand.
pub fn run(args: &Args) -> Result<(), Failure> {
    run_job(&ClusterJob::new(&args.options), || given(args))
}

fn given(args: &Args) -> Result<Prepared, Failure> {
    let options = &args.options;
    let seed = options.seed;
    let (shape, matrix) = match &args.input {
        Some(path) => {
            let matrix = files::open(path, NpyMatrix::open_complex)?;
            ([matrix.rows(), matrix.columns()], of_file(matrix))
        }
        None => random(&args.sizes, seed),
    };
    let [rows, columns] = shape;
    if rows.max(columns) > MOST {
        return Err(Failure::failed(
            format!("a matrix of {rows} x {columns}"),
            format!("at most {MOST} rows and columns"),
        ));
    }
    let inputs: Vec<&Path> = args.input.iter().map(PathBuf::as_path).collect();
    let transform = FftWorkload {
        rows,
        columns,
        placement: options.placement(Placement::Rows),
        matrix,
    };
    let operation = transform.operation();
    let array = ResultArray {
        space: operation.outputs[0],
        shape: &shape,
        element: ElementType::Complex,
    };
    let mut paths = Paths::reading(inputs.iter().copied());
    let result = ResultFile::prepare(options.output.as_deref(), &mut paths, &array)?;
    let operation = OperationJob::new(operation, args.sizes.tile, &inputs, seed);
    Ok(Prepared::new(operation, result, paths))
}

/// A generated matrix, with its rows and columns.
fn random(args: &Sizes, seed: u64) -> ([u64; 2], Fill) {
    let size = args.size.unwrap_or(SIZE);
    let extent = Extent {
        rows: size,
        columns: size,
        element: 8,
    };
    ([size; 2], generated(extent, seed))
}
