//! `pdawl run matmul`.

use std::path::{Path, PathBuf};

use pdawl::cluster::space::Extent;
use pdawl::codelet::ProductPrecision;
use pdawl::matrix::npy::ElementType;
use pdawl::workload::cluster::{Placement, Product, generated_as, rounded};

use super::input;
use super::options::DenseOptions;
use crate::cluster::{ClusterJob, NodeOptions, Prepared, ResultArray, ResultFile, run_job};
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
    /// The product of generated matrices.
    pub fn generated(&self, precision: ProductPrecision, seed: u64) -> Product {
        let square = self.size.unwrap_or(SIZE);
        let lengths = [self.rows, self.columns, self.depth];
        let [rows, columns, depth] = lengths.map(|given| given.unwrap_or(square).into());
        let element = precision.factors();
        let uniform = |rows, columns, seed| {
            let extent = Extent {
                rows,
                columns,
                element: element.bytes(),
            };
            generated_as(element, extent, seed)
        };
        Product {
            rows,
            columns,
            depth,
            precision,
            a: uniform(rows, depth, seed),
            b: uniform(depth, columns, seed.wrapping_add(1)),
        }
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
    let options = &args.options;
    let machine = &options.machine;
    let job = ClusterJob {
        devices: machine.devices.as_deref(),
        nodes: &args.nodes,
        alone: Some(options.alone()),
        noise: machine.noise,
        seed: options.seed,
        verify: options.verify,
        format: options.format,
        files: &options.files,
    };
    run_job(&job, || args.prepared())
}

impl Args {
    /// The product, of files if some are named, which are opened when all nodes have joined.
    fn prepared(&self) -> Result<Prepared, Failure> {
        let options = &self.options;
        let files = [&self.a, &self.b].into_iter().flatten();
        let files: Vec<&Path> = files.map(PathBuf::as_path).collect();
        let machine = options.machine.machine_path();
        let mut paths = Paths::reading(files.iter().copied().chain(machine));
        let product = match files[..] {
            [a, b] => self.given([a, b])?,
            _ => {
                let precision = self.precision.unwrap_or_default();
                self.sizes.generated(precision.into(), options.seed)
            }
        };
        let array = ResultArray {
            space: Product::RESULT,
            shape: &[product.rows, product.columns],
            element: ElementType::Real(product.precision.sums()),
        };
        let result = ResultFile::prepare(self.output.as_deref(), &mut paths, &array)?;
        let placement = (self.nodes.spread).placement(Placement::Grid, options.seed);
        let operation = options.operation(product.operation(placement), &files)?;
        Ok(Prepared::new(operation, result, paths))
    }

    /// The product of two files.
    fn given(&self, files: [&Path; 2]) -> Result<Product, Failure> {
        let [a, b] = files.map(input::open_factor);
        let (a, b) = (a?, b?);
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
        let [rows, columns, depth] = [rows, columns, depth].map(u64::from);
        Ok(Product {
            rows,
            columns,
            depth,
            precision,
            a: rounded(a, precision.factors()),
            b: rounded(b, precision.factors()),
        })
    }
}
