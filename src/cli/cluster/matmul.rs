//! `pdawl run matmul` over several nodes.

use std::path::Path;
use std::sync::Arc;

use pdawl::cluster::space::Extent;
use pdawl::codelet::Precision;
use pdawl::engine::cluster::simulate::Computing;
use pdawl::matrix::npy::{ElementType, NpyMatrix};
use pdawl::workload::cluster::{Fill, Fit, MatmulWorkload, Placement, generated, of_file};

use super::files::{self, ResultArray, ResultFile};
use super::options::NodeOptions;
use super::prepared::{FittedWorkload, PreparedWorkload};
use super::run::{ClusterJob, Prepared, run_job};
use crate::dense::options::{DenseOptions, TileArg};
use crate::failure::Failure;
use crate::paths::Paths;

/// The matrices and the file of the product.
pub struct Product<'a> {
    /// Rows and columns of the product, and columns of the first matrix.
    pub size: [u64; 3],
    /// A and B, of singles; generated without.
    pub given: Option<[NpyMatrix; 2]>,
    pub output: Option<&'a Path>,
    pub paths: Paths,
}

/// Runs a product. `open` opens its files when all nodes have joined.
///
/// # Errors
/// As [`run_job`].
pub fn run<'a>(
    options: &DenseOptions,
    nodes: &NodeOptions,
    open: impl FnOnce() -> Result<Product<'a>, Failure>,
) -> Result<(), Failure> {
    let machine = &options.machine;
    let job = ClusterJob {
        devices: machine.devices.as_deref(),
        nodes,
        alone: None,
        noise: machine.noise,
        seed: options.seed,
        verify: options.verify,
        format: options.format,
        files: &options.files,
    };
    run_job(&job, || prepared_of(open()?, options, nodes))
}

fn prepared_of(
    product: Product,
    options: &DenseOptions,
    nodes: &NodeOptions,
) -> Result<Prepared, Failure> {
    let Product {
        size,
        given,
        output,
        mut paths,
    } = product;
    let tile = match options.tile {
        TileArg::Rows(rows) => Some(rows.into()),
        TileArg::Auto => None,
    };
    let seed = options.seed;
    let placement = nodes.spread.placement(Placement::Grid, seed);
    let workload = match given {
        Some([a, b]) => {
            let names = files::named(&[a.path(), b.path()]);
            let given = ([of_file(a), of_file(b)], names);
            prepared(size, tile, given, placement, seed)
        }
        None => prepare(size, tile, placement, seed),
    };
    let array = ResultArray {
        space: workload.workload.result(),
        shape: &size[..2],
        element: ElementType::Real(Precision::F32),
    };
    let result = ResultFile::prepare(output, &mut paths, &array)?;
    Ok(Prepared::new(workload, result, paths))
}

/// The product of generated matrices. `size` has the rows and columns of the product and the
/// columns of the first matrix; `tile` the rows and columns of a block, by default by the nodes.
pub fn prepare(
    size: [u64; 3],
    tile: Option<u64>,
    placement: Placement,
    seed: u64,
) -> PreparedWorkload {
    let [rows, columns, depth] = size;
    let singles = |rows, columns| Extent {
        rows,
        columns,
        element: 4,
    };
    let a = generated(singles(rows, depth), seed);
    let b = generated(singles(depth, columns), seed.wrapping_add(1));
    prepared(size, tile, ([a, b], String::new()), placement, seed)
}

/// The product of two matrices, whose files are `names` if they have some.
fn prepared(
    [rows, columns, depth]: [u64; 3],
    tile: Option<u64>,
    ([a, b], names): ([Fill; 2], String),
    placement: Placement,
    seed: u64,
) -> PreparedWorkload {
    let given = tile;
    let fits = move |fit: Fit| {
        let tile = given.unwrap_or_else(|| fit.product(rows, columns));
        FittedWorkload {
            workload: Box::new(MatmulWorkload {
                rows,
                columns,
                depth,
                tile,
                placement,
                a: Arc::clone(&a),
                b: Arc::clone(&b),
            }),
            size: format!(
                "{names}{rows} x {depth} by {depth} x {columns}, blocks of {tile}, seed {seed}"
            ),
            tile,
        }
    };
    PreparedWorkload::fitted(Computing::All, Box::new(fits), None)
}
