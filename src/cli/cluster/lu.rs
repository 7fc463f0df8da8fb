//! `pdawl run lu`.

use std::path::{Path, PathBuf};

use pdawl::cluster::space::Extent;
use pdawl::codelet::Precision;
use pdawl::matrix::npy::{ElementType, NpyMatrix};
use pdawl::workload::cluster::{Fill, LuWorkload, Placement, generated_as, of_file};

use super::files::{self, ResultArray, ResultFile};
use super::options::ClusterOptions;
use super::prepared::OperationJob;
use super::run::{ClusterJob, Prepared, run_job};
use crate::dense;
use crate::failure::Failure;
use crate::grid::PrecisionArg;
use crate::integer::integer;
use crate::paths::Paths;

/// Rows and columns by default, and at most.
const SIZE: u64 = 4096;
const MOST: u64 = 1 << 20;

const EXAMPLES: &str = "Examples:\n  pdawl run lu --size 8192 --verify\n  \
                        mpirun -n 4 pdawl run lu --size 16384 --tile 1024\n  \
                        pdawl run lu --size 32768 --cluster four --nodes 16\n  \
                        mpirun -n 4 pdawl run lu --input a.npy --output lu.npy --pivots p.npy\n\n\
                        In Python: scipy.linalg.lu_solve((numpy.load(\"lu.npy\"), \
                        numpy.load(\"p.npy\")), b)";

/// The sizes of a matrix and its blocks.
#[derive(Debug, clap::Args)]
pub struct Sizes {
    /// Rows and columns of the matrix [default: 4096]
    #[arg(long, value_name = "N", value_parser = integer(1..=MOST))]
    size: Option<u64>,

    /// Rows and columns of a block [default: by the nodes, from 64 to 2048; on one machine,
    /// whose blocks are whole columns, by its devices]
    #[arg(long, value_name = "N", value_parser = integer(1..=16384_u64))]
    tile: Option<u64>,

    /// The floating-point type [default: that of --input, or f32]
    #[arg(long, value_enum)]
    precision: Option<PrecisionArg>,
}

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    sizes: Sizes,

    /// Read the matrix A from an NPY file of float32 or float64; all nodes must see it
    ///
    /// Pivots are the greatest numbers of their columns (partial pivoting, as in LAPACK). A
    /// matrix that is singular, or whose numbers grow beyond the type, is an error that names
    /// the column. Without a file, A is generated: uniform from -1 to 1.
    #[arg(long, value_name = "FILE", conflicts_with = "size")]
    input: Option<PathBuf>,

    /// Write the exchanges of rows to an NPY file of int32: row i was exchanged with row p[i],
    /// for ascending i, as in scipy.linalg.lu_factor
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pivots: Option<PathBuf>,

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
    let inputs: Vec<&Path> = args.input.iter().map(PathBuf::as_path).collect();
    let (size, precision, matrix) = match &args.input {
        Some(path) => {
            let matrix = files::square(files::open_real(path, NpyMatrix::open)?)?;
            let asked = args.sizes.precision.map(Precision::from);
            let precision = dense::precision(&[&matrix], asked)?.sums();
            (matrix.rows(), precision, of_file(matrix))
        }
        None => uniform(&args.sizes, seed),
    };
    if size > MOST {
        return Err(Failure::failed(
            format!("a matrix of {size} rows"),
            format!("at most {MOST}"),
        ));
    }
    let placement = options.placement(Placement::ColumnCyclic);
    let operation = LuWorkload::operation(size, precision, placement, matrix);
    let factors = ResultArray {
        space: operation.outputs[0],
        shape: &[size, size],
        element: ElementType::Real(precision),
    };
    let pivots = ResultArray {
        space: LuWorkload::PIVOTS,
        shape: &[size],
        element: ElementType::I32,
    };
    let mut paths = Paths::reading(inputs.iter().copied());
    let files = [
        ResultFile::prepare(options.output.as_deref(), &mut paths, &factors)?,
        ResultFile::prepare(args.pivots.as_deref(), &mut paths, &pivots)?,
    ];
    let operation = OperationJob::new(operation, args.sizes.tile, &inputs, seed);
    Ok(Prepared::new(operation, files.into_iter().flatten(), paths))
}

/// A generated matrix: its rows, its precision and its contents.
fn uniform(args: &Sizes, seed: u64) -> (u64, Precision, Fill) {
    let size = args.size.unwrap_or(SIZE);
    let precision = args.precision.map_or(Precision::F32, Precision::from);
    let extent = Extent {
        rows: size,
        columns: size,
        element: precision.bytes(),
    };
    (size, precision, generated_as(precision, extent, seed))
}
