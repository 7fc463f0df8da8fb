//! `pdawl run lu`.

use std::sync::Arc;

use pdawl::cluster::space::{Block, Extent};
use pdawl::workload::cluster::{LuWorkload, generated};

use super::options::ClusterOptions;
use super::run::{ClusterJob, run_job};
use crate::cli::failure::Failure;
use crate::cli::integer::integer;

const EXAMPLES: &str = "Examples:\n  pdawl run lu --size 8192 --verify\n  \
                        mpirun -n 4 pdawl run lu --size 16384 --tile 1024";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Rows and columns of the matrix
    #[arg(long, value_name = "N", default_value_t = 4096, value_parser = integer(1..=1_u64 << 20))]
    size: u64,

    /// Rows and columns of a block [default: a sixteenth of the matrix, from 64 to 2048]
    #[arg(long, value_name = "N", value_parser = integer(1..=16384_u64))]
    tile: Option<u64>,

    #[command(flatten)]
    options: ClusterOptions,
}

/// Runs the subcommand.
pub fn run(args: &Args) -> Result<(), Failure> {
    let size = args.size;
    let tile = args.tile.unwrap_or(size.div_ceil(16).clamp(64, 2048));
    let extent = Extent {
        rows: size,
        columns: size,
        element: 4,
    };
    let uniform = generated(extent, args.options.seed);
    // Rows are exchanged within blocks only, so the diagonal must be large enough that no
    // block is nearly singular. Eigenvalues of the rest are about the square root of a
    // third of the size at most.
    let more = 2.0 * (size as f32).sqrt();
    let matrix = Arc::new(move |block: &Block, bytes: &mut [u8]| {
        uniform(block, bytes)?;
        for row in block.rows.clone().filter(|row| block.columns.contains(row)) {
            let place = (row - block.rows.start) * block.width() + row - block.columns.start;
            let at = 4 * place as usize;
            let number = bytes[at..at + 4]
                .first_chunk()
                .map_or(0.0, |four| f32::from_ne_bytes(*four));
            bytes[at..at + 4].copy_from_slice(&(number + more).to_ne_bytes());
        }
        Ok(())
    });
    let workload = LuWorkload {
        size,
        tile,
        placement: args.options.nodes.placement(args.options.seed),
        matrix,
    };
    run_job(&ClusterJob::new(
        &workload,
        format!(
            "{size} x {size}, blocks of {tile}, seed {}",
            args.options.seed
        ),
        tile,
        &args.options,
    ))
}
