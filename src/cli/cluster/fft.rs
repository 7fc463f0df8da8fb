//! `pdawl run fft`.

use pdawl::cluster::space::Extent;
use pdawl::workload::cluster::{FftWorkload, generated};

use super::options::NodeOptions;
use super::run::{ClusterJob, run_job};
use crate::cli::args::Format;
use crate::cli::failure::Failure;
use crate::cli::integer::integer;

const EXAMPLES: &str = "Examples:\n  pdawl run fft --size 4096 --verify\n  \
                        mpirun -n 4 pdawl run fft --size 16384 --tile 256";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Rows and columns of the matrix of complex numbers
    #[arg(long, value_name = "N", default_value_t = 4096, value_parser = integer(1..=1_u64 << 20))]
    size: u64,

    /// Rows or columns of a subtask [default: a thirty-second of the matrix]
    #[arg(long, value_name = "N", value_parser = integer(1..=65536_u64))]
    tile: Option<u64>,

    /// Seed of the generated matrix
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = integer(0..=u64::MAX))]
    seed: u64,

    /// Devices that each node uses; as in `pdawl run stencil`
    ///
    /// OpenCL devices transform lengths that are powers of two up to 4096.
    #[arg(long, value_name = "LIST")]
    devices: Option<String>,

    #[command(flatten)]
    nodes: NodeOptions,

    /// Compare numbers of the result with sums in double precision; a wrong one fails
    #[arg(long, help_heading = "Output")]
    verify: bool,

    /// How the report is printed
    #[arg(long, value_enum, default_value_t, help_heading = "Output")]
    format: Format,
}

/// Runs the subcommand.
pub fn run(args: &Args) -> Result<(), Failure> {
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
        placement: args.nodes.placement,
        matrix: generated(extent, args.seed),
    };
    run_job(&ClusterJob {
        workload: &workload,
        size: format!(
            "{size} x {size}, {tile} lines a subtask, seed {}",
            args.seed
        ),
        devices: args.devices.as_deref(),
        nodes: &args.nodes,
        tile,
        seed: args.seed,
        verify: args.verify,
        format: args.format,
    })
}
