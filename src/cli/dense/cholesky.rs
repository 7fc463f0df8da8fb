//! `pdawl run cholesky`.

use std::path::PathBuf;

use pdawl::codelet::Precision;
use pdawl::workload::cluster::of_file;
use pdawl::workload::dense::{Inputs, Operation};

use super::input;
use super::options::DenseOptions;
use super::run_job::{DenseJob, run_job};
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
    let machine = args.options.machine.machine_path();
    let input = args.input.as_deref();
    let paths = Paths::reading(input.into_iter().chain(machine));
    let precision = args.precision.map(Precision::from);
    let job = match input {
        Some(path) => {
            let a = input::open(path)?;
            let precision = input::precision(&[&a], precision)?;
            let (rows, columns) = input::size(&a)?;
            if rows != columns {
                return Err(Failure::failed(
                    format!("{}: is {rows} x {columns}, not square", path.display()),
                    "a symmetric matrix",
                ));
            }
            let operation = Operation::Factorisation { rows };
            DenseJob {
                operation,
                precision,
                inputs: Inputs::given(operation, of_file(a), None),
                files: vec![path.to_owned()],
            }
        }
        None => {
            let operation = Operation::Factorisation { rows: args.size };
            {
                let precision = precision.unwrap_or(Precision::F32);
                DenseJob::generated(operation, precision, &args.options)
            }
        }
    };
    run_job(job, &args.options, paths, args.output.as_deref())
}
