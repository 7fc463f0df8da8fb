//! `pdawl run lu`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pdawl::cluster::space::{Block, Extent};
use pdawl::codelet::Precision;
use pdawl::matrix::npy::{ElementType, NpyMatrix};
use pdawl::workload::cluster::{Fill, LuWorkload, Placement, generated, of_file};

use super::files::{self, ResultArray, ResultFile};
use super::options::ClusterOptions;
use super::prepared::PreparedWorkload;
use super::run::{ClusterJob, run_job};
use crate::cli::failure::Failure;
use crate::cli::integer::integer;
use crate::cli::paths::Paths;

/// Rows and columns by default, and at most.
const SIZE: u64 = 4096;
const MOST: u64 = 1 << 20;

const EXAMPLES: &str = "Examples:\n  pdawl run lu --size 8192 --verify\n  \
                        mpirun -n 4 pdawl run lu --size 16384 --tile 1024\n  \
                        pdawl run lu --size 32768 --cluster four --nodes 16\n  \
                        mpirun -n 4 pdawl run lu --input a.npy --output lu.npy --pivots p.npy";

/// The sizes of a matrix and its blocks.
#[derive(Debug, clap::Args)]
pub struct Sizes {
    /// Rows and columns of the matrix [default: 4096]
    #[arg(long, value_name = "N", value_parser = integer(1..=MOST))]
    size: Option<u64>,

    /// Rows and columns of a block [default: a sixteenth of the matrix, from 64 to 2048]
    #[arg(long, value_name = "N", value_parser = integer(1..=16384_u64))]
    tile: Option<u64>,
}

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    sizes: Sizes,

    /// Read the matrix from an NPY file of float32; all nodes must see it
    ///
    /// Rows are exchanged within diagonal blocks only, so none of these may be nearly
    /// singular when its turn comes. A larger --tile makes that less likely; --verify tells.
    #[arg(long, value_name = "FILE", conflicts_with = "size")]
    input: Option<PathBuf>,

    /// Write the exchanges of rows to an NPY file: for each row of a diagonal block, in
    /// their order, the row of the block that it was exchanged with
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pivots: Option<PathBuf>,

    #[command(flatten)]
    options: ClusterOptions,
}

/// Runs the subcommand.
pub fn run(args: &Args) -> Result<(), Failure> {
    let options = &args.options;
    (options.nodes).refuse_simulated([
        ("--input", args.input.is_some()),
        ("--output", options.output.is_some()),
        ("--pivots", args.pivots.is_some()),
    ])?;
    let seed = options.seed;
    let (size, matrix) = match &args.input {
        Some(path) => {
            let matrix = files::open_square(path, NpyMatrix::open)?;
            (matrix.rows(), of_file(matrix))
        }
        None => dominant(&args.sizes, seed),
    };
    if size > MOST {
        return Err(Failure::failed(
            format!("a matrix of {size} rows"),
            format!("at most {MOST}"),
        ));
    }
    let inputs: Vec<&Path> = args.input.iter().map(PathBuf::as_path).collect();
    let given = (size, matrix, files::named(&inputs));
    let prepared = prepared(&args.sizes, given, options.placement(), seed);
    let factors = ResultArray {
        space: prepared.workload.result(),
        shape: &[size, size],
        element: ElementType::Real(Precision::F32),
    };
    let pivots = ResultArray {
        space: LuWorkload::PIVOTS,
        shape: &[size],
        element: ElementType::U32,
    };
    let mut paths = Paths::reading(inputs);
    let files = [
        ResultFile::prepare(options.output.as_deref(), &mut paths, &factors)?,
        ResultFile::prepare(args.pivots.as_deref(), &mut paths, &pivots)?,
    ];
    let job = ClusterJob::new(&prepared, options);
    run_job(&job, files.into_iter().flatten().collect(), &mut paths)
}

/// The factors of a generated matrix.
pub fn prepare(args: &Sizes, placement: Placement, seed: u64) -> PreparedWorkload {
    let (size, matrix) = dominant(args, seed);
    prepared(args, (size, matrix, String::new()), placement, seed)
}

/// The factors of a matrix, whose file is `name` if it has one.
fn prepared(
    args: &Sizes,
    (size, matrix, name): (u64, Fill, String),
    placement: Placement,
    seed: u64,
) -> PreparedWorkload {
    let tile = args.tile.unwrap_or(size.div_ceil(16).clamp(64, 2048));
    PreparedWorkload {
        workload: Box::new(LuWorkload {
            size,
            tile,
            placement,
            matrix,
        }),
        size: format!("{name}{size} x {size}, blocks of {tile}, seed {seed}"),
        tile,
        tolerance: None,
        notes: Vec::new(),
    }
}

/// A generated matrix, whose diagonal blocks are far from singular, with its rows.
fn dominant(args: &Sizes, seed: u64) -> (u64, Fill) {
    let size = args.size.unwrap_or(SIZE);
    let extent = Extent {
        rows: size,
        columns: size,
        element: 4,
    };
    let uniform = generated(extent, seed);
    // Rows are exchanged within blocks only, so the diagonal must be large enough that no
    // block is nearly singular. Eigenvalues of the rest are about the square root of a
    // third of the size at most.
    let more = 2.0 * (size as f32).sqrt();
    let fill: Fill = Arc::new(move |block: &Block, bytes: &mut [u8]| {
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
    (size, fill)
}
