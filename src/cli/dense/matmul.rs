//! `pdawl run matmul`.

use std::path::{Path, PathBuf};

use pdawl::codelet::{Precision, ProductPrecision};
use pdawl::matrix::npy::NpyMatrix;
use pdawl::workload::cluster::rounded;
use pdawl::workload::dense::{Inputs, Operation};

use super::input;
use super::options::DenseOptions;
use super::run_job::{DenseJob, run_job};
use crate::cluster::{self, NodeOptions};
use crate::failure::Failure;
use crate::integer::integer;
use crate::paths::Paths;
use crate::precision::ProductPrecisionArg;

/// Rows and columns by default.
const SIZE: u32 = 4096;

const EXAMPLES: &str = "Examples:\n  pdawl run matmul --size 24576 --gpu-memory 2GiB --verify\n  \
                        pdawl run matmul --a a.npy --b b.npy --output c.npy\n  \
                        pdawl run matmul --rows 5000 --columns 300 --depth 20000 --precision f64\n  \
                        pdawl run matmul --size 16384 --precision bf16 --verify\n  \
                        pdawl run matmul --size 24576 --machine v100x2 --gpu-memory 2GiB \
                        --policy dmdar --gantt run.html\n  \
                        mpirun -n 4 pdawl run matmul --size 16384 --verify\n  \
                        pdawl run matmul --size 65536 --cluster unicorn\n  \
                        mpirun -n 4 pdawl run matmul --a a.npy --b b.npy --output c.npy";

/// The sizes of generated matrices.
#[derive(Clone, Debug, clap::Args)]
pub struct Sizes {
    /// Rows and columns of square matrices [default: 4096]
    #[arg(long, value_name = "N", value_parser = integer(1..=u32::MAX),
          conflicts_with_all = ["rows", "columns", "depth"])]
    size: Option<u32>,

    /// Rows of A and C
    #[arg(long, value_name = "M", value_parser = integer(1..=u32::MAX),
          requires_all = ["columns", "depth"])]
    rows: Option<u32>,

    /// Columns of B and C
    #[arg(long, value_name = "N", value_parser = integer(1..=u32::MAX), requires = "rows")]
    columns: Option<u32>,

    /// Columns of A, rows of B
    #[arg(long, value_name = "K", value_parser = integer(1..=u32::MAX), requires = "rows")]
    depth: Option<u32>,
}

impl Sizes {
    /// Rows and columns of the product, and columns of the first matrix.
    pub fn shape(&self) -> [u32; 3] {
        let square = self.size.unwrap_or(SIZE);
        [self.rows, self.columns, self.depth].map(|given| given.unwrap_or(square))
    }
}

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, mut_arg("host_memory", |limit| limit.hide(true)))]
pub struct Args {
    #[command(flatten)]
    sizes: Sizes,

    /// Read A from an NPY file of float16, float32 or float64, in C or Fortran order
    ///
    /// Without files, the matrices are generated: uniform from -1 to 1.
    #[arg(long, value_name = "FILE", requires = "b",
          conflicts_with_all = ["size", "rows", "columns", "depth"])]
    a: Option<PathBuf>,

    /// Read B from an NPY file
    #[arg(long, value_name = "FILE", requires = "a")]
    b: Option<PathBuf>,

    /// The precision [default: that of the files, otherwise f32]
    ///
    /// f16, bf16 and tf32 are those of the factors. Sums and the product are f32. Files of f32
    /// can be multiplied in these, too: their numbers are rounded to f16 and bf16.
    #[arg(long, value_enum)]
    precision: Option<ProductPrecisionArg>,

    /// Write the product to an NPY file
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    output: Option<PathBuf>,

    #[command(flatten)]
    options: DenseOptions,

    #[command(flatten)]
    nodes: NodeOptions,
}

/// Runs the subcommand.
pub fn run(args: &Args) -> Result<(), Failure> {
    let files = args.files();
    let options = match args.options.machine.on_one_node(&args.nodes)? {
        Some(machine) => &DenseOptions {
            machine,
            ..args.options.clone()
        },
        None if args.nodes.several() => {
            return cluster::matmul::run(&args.options, &args.nodes, || over_nodes(args));
        }
        None => &args.options,
    };
    let job = match args.given()? {
        Some(Given {
            size: [rows, columns, depth],
            precision,
            matrices: [a, b],
        }) => {
            let operation = Operation::Product {
                rows,
                columns,
                depth,
            };
            DenseJob {
                operation,
                precision,
                inputs: Inputs::given(
                    operation,
                    rounded(a, precision.factors()),
                    Some(rounded(b, precision.factors())),
                ),
                files: args.a.iter().chain(&args.b).cloned().collect(),
            }
        }
        None => {
            let [rows, columns, depth] = args.sizes.shape();
            let operation = Operation::Product {
                rows,
                columns,
                depth,
            };
            DenseJob::generated(operation, args.precision.unwrap_or_default(), options)
        }
    };
    let machine = options.machine.machine_path();
    let paths = Paths::reading(files.into_iter().chain(machine));
    run_job(job, options, paths, args.output.as_deref())
}

/// Matrices of files.
struct Given {
    /// Rows and columns of the product, and columns of A.
    size: [u32; 3],
    precision: ProductPrecision,
    matrices: [NpyMatrix; 2],
}

impl Args {
    fn files(&self) -> Vec<&Path> {
        let files = [&self.a, &self.b].into_iter().flatten();
        files.map(PathBuf::as_path).collect()
    }

    /// Opens the files, if some are named.
    fn given(&self) -> Result<Option<Given>, Failure> {
        let [a, b] = self.files()[..] else {
            return Ok(None);
        };
        let (a, b) = (input::open_factor(a)?, input::open_factor(b)?);
        let precision = input::precision(&[&a, &b], self.precision)?;
        let ((rows, depth), (b_rows, columns)) = (input::size(&a)?, input::size(&b)?);
        if depth != b_rows {
            return Err(Failure::failed(
                format!(
                    "{} has {depth} columns, and {} has {b_rows} rows",
                    a.path().display(),
                    b.path().display()
                ),
                "a B with as many rows as A has columns",
            ));
        }
        Ok(Some(Given {
            size: [rows, columns, depth],
            precision,
            matrices: [a, b],
        }))
    }
}

fn over_nodes(args: &Args) -> Result<cluster::matmul::Product<'_>, Failure> {
    let given = args.given()?;
    let other = (given.as_ref()).filter(|given| given.precision != Precision::F32.into());
    if let Some(Given { precision, .. }) = other {
        return Err(Failure::failed(
            format!(
                "the files have {}, and products over nodes are of f32",
                precision.name()
            ),
            "the run without mpirun; matrix.astype(\"float32\") rounds float64 to 7 digits",
        ));
    }
    let size = match &given {
        Some(given) => given.size,
        None => args.sizes.shape(),
    };
    Ok(cluster::matmul::Product {
        size: size.map(u64::from),
        given: given.map(|given| given.matrices),
        output: args.output.as_deref(),
        paths: Paths::reading(args.files()),
    })
}
