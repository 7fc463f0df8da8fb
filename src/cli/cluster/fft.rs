//! `pdawl run fft`.

use pdawl::cluster::space::Extent;
use pdawl::workload::cluster::{FftWorkload, Placement, generated};

use super::options::ClusterOptions;
use super::prepared::PreparedWorkload;
use super::run::{ClusterJob, run_job};
use crate::cli::failure::Failure;
use crate::cli::integer::integer;

const EXAMPLES: &str = "Examples:\n  pdawl run fft --size 4096 --verify\n  \
                        mpirun -n 4 pdawl run fft --size 16384 --tile 256\n  \
                        pdawl run fft --size 32768 --cluster four";

/// The sizes of a matrix and its subtasks.
#[derive(Debug, clap::Args)]
pub struct Sizes {
    /// Rows and columns of the matrix of complex numbers
    #[arg(long, value_name = "N", default_value_t = 4096, value_parser = integer(1..=1_u64 << 20))]
    size: u64,

    /// Rows or columns of a subtask [default: a thirty-second of the matrix]
    #[arg(long, value_name = "N", value_parser = integer(1..=65536_u64))]
    tile: Option<u64>,
}

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    sizes: Sizes,

    #[command(flatten)]
    options: ClusterOptions,
}

/// Runs the subcommand.
pub fn run(args: &Args) -> Result<(), Failure> {
    let prepared = prepare(&args.sizes, args.options.placement(), args.options.seed);
    run_job(&ClusterJob::new(&prepared, &args.options))
}

/// The transform of a generated matrix.
pub fn prepare(args: &Sizes, placement: Placement, seed: u64) -> PreparedWorkload {
    let size = args.size;
    let tile = args.tile.unwrap_or(size.div_ceil(32));
    let extent = Extent {
        rows: size,
        columns: size,
        element: 8,
    };
    let workload = FftWorkload {
        rows: size,
        columns: size,
        tile,
        placement,
        matrix: generated(extent, seed),
    };
    PreparedWorkload {
        workload: Box::new(workload),
        size: format!("{size} x {size}, {tile} lines a subtask, seed {seed}"),
        tile,
    }
}
