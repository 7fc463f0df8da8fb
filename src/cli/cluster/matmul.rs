//! `pdawl run matmul` over several nodes.

use pdawl::cluster::space::Extent;
use pdawl::codelet::Precision;
use pdawl::workload::cluster::{MatmulWorkload, generated};
use pdawl::workload::dense::Operation;

use super::options::NodeOptions;
use super::run::{ClusterJob, run_job};
use crate::cli::dense::options::{DenseOptions, TileArg};
use crate::cli::failure::Failure;

/// Runs a product of generated matrices.
///
/// # Errors
/// Options that a run over nodes does not have, and as [`run_job`].
pub fn run(
    operation: Operation,
    options: &DenseOptions,
    nodes: &NodeOptions,
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
    let unused = [
        ("--machine", machine.machine.is_some()),
        ("--gpu-memory", machine.gpu_memory.is_some()),
        ("--fault", !machine.fault.is_empty()),
        ("--window", options.window.is_some()),
        (
            "--precision f64",
            options
                .precision
                .is_some_and(|of| Precision::from(of) == Precision::F64),
        ),
        ("a chart or trace", options.files.wanted()),
    ];
    if let Some((name, _)) = unused.into_iter().find(|(_, given)| *given) {
        return Err(Failure::usage(
            format!("{name} is for products on one node"),
            "the run without it, or without mpirun",
        ));
    }
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
    let workload = MatmulWorkload {
        rows,
        columns,
        depth,
        tile,
        placement: nodes.placement,
        a: generated(singles(rows, depth), seed),
        b: generated(singles(depth, columns), seed.wrapping_add(1)),
    };
    run_job(&ClusterJob {
        workload: &workload,
        size: format!("{rows} x {depth} by {depth} x {columns}, blocks of {tile}, seed {seed}"),
        devices: machine.devices.as_deref(),
        nodes,
        tile,
        seed,
        verify: options.verify,
        format: options.format,
    })
}
