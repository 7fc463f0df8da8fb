//! `pdawl run fft`.

use std::path::{Path, PathBuf};

use pdawl::cluster::space::Extent;
use pdawl::matrix::npy::{ElementType, NpyMatrix};
use pdawl::workload::cluster::{ClusterWorkload, FftWorkload, generated, of_file};

use super::files::{self, ResultArray, ResultFile};
use super::options::ClusterOptions;
use super::run::{ClusterJob, run_job};
use crate::cli::failure::Failure;
use crate::cli::integer::integer;
use crate::cli::paths::Paths;

/// Rows and columns by default, and at most.
const SIZE: u64 = 4096;
const MOST: u64 = 1 << 20;

const EXAMPLES: &str = "Examples:\n  pdawl run fft --size 4096 --verify\n  \
                        mpirun -n 4 pdawl run fft --size 16384 --tile 256\n  \
                        mpirun -n 4 pdawl run fft --input a.npy --output b.npy";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Rows and columns of the matrix of complex numbers [default: 4096]
    #[arg(long, value_name = "N", value_parser = integer(1..=MOST), conflicts_with = "input")]
    size: Option<u64>,

    /// Read the matrix from an NPY file of complex64; all nodes must see it
    #[arg(long, value_name = "FILE")]
    input: Option<PathBuf>,

    /// Rows or columns of a subtask [default: a thirty-second of the matrix]
    #[arg(long, value_name = "N", value_parser = integer(1..=65536_u64))]
    tile: Option<u64>,

    #[command(flatten)]
    options: ClusterOptions,
}

/// Runs the subcommand.
pub fn run(args: &Args) -> Result<(), Failure> {
    let seed = args.options.seed;
    let (rows, columns, matrix) = match &args.input {
        Some(path) => {
            let matrix = files::open(path, NpyMatrix::open_complex)?;
            (matrix.rows(), matrix.columns(), of_file(matrix))
        }
        None => {
            let size = args.size.unwrap_or(SIZE);
            let extent = Extent {
                rows: size,
                columns: size,
                element: 8,
            };
            (size, size, generated(extent, seed))
        }
    };
    if rows.max(columns) > MOST {
        return Err(Failure::failed(
            format!("a matrix of {rows} x {columns}"),
            format!("at most {MOST} rows and columns"),
        ));
    }
    let tile = args.tile.unwrap_or(rows.max(columns).div_ceil(32));
    let workload = FftWorkload {
        rows,
        columns,
        tile,
        placement: args.options.nodes.placement(seed),
        matrix,
    };
    let inputs: Vec<&Path> = args.input.iter().map(PathBuf::as_path).collect();
    let size = format!(
        "{}{rows} x {columns}, {tile} lines a subtask, seed {seed}",
        files::named(&inputs)
    );
    let array = ResultArray {
        space: workload.result(),
        shape: &[rows, columns],
        element: ElementType::Complex,
    };
    let mut paths = Paths::reading(inputs);
    let result = ResultFile::prepare(args.options.output.as_deref(), &mut paths, &array)?;
    let job = ClusterJob::new(&workload, size, tile, &args.options);
    run_job(&job, result.into_iter().collect())
}
