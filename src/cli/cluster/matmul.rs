//! `pdawl run matmul` over several nodes.

use std::path::Path;

use pdawl::cluster::space::Extent;
use pdawl::codelet::Precision;
use pdawl::matrix::npy::{ElementType, NpyMatrix};
use pdawl::workload::cluster::{ClusterWorkload, MatmulWorkload, generated, of_file};
use pdawl::workload::dense::Operation;

use super::files::{self, ResultArray, ResultFile};
use super::options::{NodeOptions, refuse};
use super::run::{ClusterJob, run_job};
use crate::cli::dense::options::{DenseOptions, POLICY, TileArg};
use crate::cli::failure::Failure;
use crate::cli::paths::Paths;
use crate::cli::tasks::OrderName;

/// The given matrices and the file of the product.
pub struct Files<'a> {
    /// A and B, of singles; generated without.
    pub given: Option<[NpyMatrix; 2]>,
    pub output: Option<&'a Path>,
    pub paths: Paths,
}

/// Runs a product.
///
/// # Errors
/// Options that a run over nodes does not have, and as [`run_job`].
pub fn run(
    operation: Operation,
    options: &DenseOptions,
    nodes: &NodeOptions,
    mut files: Files,
) -> Result<(), Failure> {
    let Operation::Product {
        rows,
        columns,
        depth,
    } = operation
    else {
        return Err(Failure::usage(
            "a factorisation over nodes is an LU one",
            "`pdawl run lu`",
        ));
    };
    let machine = &options.machine;
    let is_f64 = |of| Precision::from(of) == Precision::F64;
    let given = [
        ("--machine", machine.machine.is_some()),
        ("--gpu-memory", machine.gpu_memory.is_some()),
        ("--host-memory", machine.host_memory.is_some()),
        ("--fault", !machine.fault.is_empty()),
        ("--noise", machine.noise.is_some()),
        ("--policy", options.policy.to_string() != POLICY),
        ("--window", options.window.is_some()),
        ("--order random", options.order != OrderName::default()),
        ("--repeats", options.repeats != 1),
        ("--precision f64", options.precision.is_some_and(is_f64)),
        ("a chart or trace", options.files.wanted()),
    ];
    let remedy = "the run without it, or without mpirun";
    refuse(given, "products on one node", remedy)?;
    let [rows, columns, depth] = [rows, columns, depth].map(u64::from);
    let tile = match options.tile {
        TileArg::Rows(rows) => rows.into(),
        TileArg::Auto => rows.max(columns).div_ceil(16).clamp(1, 2048),
    };
    let singles = |rows, columns| Extent {
        rows,
        columns,
        element: 4,
    };
    let seed = options.seed;
    let (names, a, b) = match files.given.take() {
        Some([a, b]) => {
            let names = files::named(&[a.path(), b.path()]);
            (names, of_file(a), of_file(b))
        }
        None => {
            let a = generated(singles(rows, depth), seed);
            let b = generated(singles(depth, columns), seed.wrapping_add(1));
            (String::new(), a, b)
        }
    };
    let workload = MatmulWorkload {
        rows,
        columns,
        depth,
        tile,
        placement: nodes.placement(seed),
        a,
        b,
    };
    let array = ResultArray {
        space: workload.result(),
        shape: &[rows, columns],
        element: ElementType::Real(Precision::F32),
    };
    let result = ResultFile::prepare(files.output, &mut files.paths, &array)?;
    let job = ClusterJob {
        workload: &workload,
        size: format!(
            "{names}{rows} x {depth} by {depth} x {columns}, blocks of {tile}, seed {seed}"
        ),
        devices: machine.devices.as_deref(),
        nodes,
        tile,
        seed,
        verify: options.verify,
        format: options.format,
        notes: Vec::new(),
    };
    run_job(&job, result.into_iter().collect())
}
