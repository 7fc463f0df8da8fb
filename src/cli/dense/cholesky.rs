//! `pdawl run cholesky`.

use std::path::{Path, PathBuf};

use pdawl::codelet::Precision;
use pdawl::matrix::npy::ElementType;
use pdawl::workload::cluster::{Cholesky, definite, of_file};

use super::input;
use super::options::DenseOptions;
use crate::cluster::{ResultArray, ResultFile, alone};
use crate::failure::Failure;
use crate::grid::PrecisionArg;
use crate::integer::integer;
use crate::paths::Paths;

const EXAMPLES: &str = "Examples:\n  pdawl run cholesky --size 16384 --gpu-memory 1GiB --verify\n  \
                        pdawl run cholesky --input a.npy --output l.npy\n  \
                        pdawl run cholesky --size 20000 --precision f64 --machine v100x4";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, mut_arg("host_memory", |limit| limit.hide(true)))]
pub struct Args {
    /// Rows and columns of the matrix
    #[arg(long, value_name = "N", value_parser = integer(1..=u32::MAX), default_value_t = 4096,
          conflicts_with = "input")]
    size: u32,

    /// Read A from an NPY file of float32 or float64, in C or Fortran order
    ///
    /// A is symmetric and positive definite. Only its lower triangle counts. Without a
    /// file, A is generated: uniform from -1 to 1, and 2 sqrt(N) + 1 more on the
    /// diagonal.
    #[arg(long, value_name = "FILE")]
    input: Option<PathBuf>,

    /// Write the factor L, with zeros above the diagonal, to an NPY file
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    output: Option<PathBuf>,

    /// Floating-point type [default: that of the file, otherwise f32]
    #[arg(long, value_enum)]
    precision: Option<PrecisionArg>,

    #[command(flatten)]
    options: DenseOptions,
}

/// Runs the subcommand.
pub fn run(args: &Args) -> Result<(), Failure> {
    let options = &args.options;
    let machine = options.machine.machine_path();
    let input: Vec<&Path> = args.input.iter().map(PathBuf::as_path).collect();
    let mut paths = Paths::reading(input.iter().copied().chain(machine));
    let asked = args.precision.map(Precision::from);
    let (size, precision, matrix) = match input[..] {
        [path, ..] => {
            let a = input::open(path)?;
            let precision = input::precision(&[&a], asked)?.sums();
            let (rows, columns) = input::size(&a)?;
            if rows != columns {
                return Err(Failure::failed(
                    format!("{}: is {rows} x {columns}, not square", path.display()),
                    "a symmetric matrix",
                ));
            }
            (rows.into(), precision, of_file(a))
        }
        [] => {
            let (size, precision) = (args.size.into(), asked.unwrap_or(Precision::F32));
            (size, precision, definite(precision, size, options.seed))
        }
    };
    let operation = Cholesky {
        size,
        precision,
        matrix,
    };
    let operation = operation.operation();
    let array = ResultArray {
        space: operation.outputs[0],
        shape: &[size, size],
        element: ElementType::Real(precision),
    };
    let result = ResultFile::prepare(args.output.as_deref(), &mut paths, &array)?;
    let job = options.operation(operation, &input)?;
    alone::run(&options.alone(), &job, result.into_iter().collect(), paths)
}
