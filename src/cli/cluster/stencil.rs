//! `pdawl run stencil` over several nodes.

use std::sync::Arc;

use pdawl::workload::Divisible;
use pdawl::workload::cluster::StencilWorkload;
use pdawl::workload::stencil::Stencil;

use super::options::NodeOptions;
use super::run::{ClusterJob, run_job};
use crate::cli::args::Format;
use crate::cli::failure::Failure;

/// Bands of a step. Enough that a node gets a part that suits it, few enough that their
/// halos stay small.
const BANDS: u64 = 64;

/// Runs a stencil.
///
/// # Errors
/// As [`run_job`].
pub fn run(
    stencil: Stencil,
    steps: u32,
    devices: Option<&str>,
    nodes: &NodeOptions,
    (verify, format): (bool, Format),
) -> Result<(), Failure> {
    let units = stencil.units();
    let tile = units.div_ceil(BANDS);
    let (nx, ny, nz) = stencil.shape();
    let third = nz.map_or(String::new(), |nz| format!(" x {nz}"));
    let seed = stencil.seed();
    let size = format!("{nx} x {ny}{third}, {steps} steps, bands of {tile}, seed {seed}");
    let workload = StencilWorkload {
        stencil: Arc::new(stencil),
        steps: steps.into(),
        tile,
    };
    let job = ClusterJob {
        workload: &workload,
        size,
        devices,
        nodes,
        tile,
        seed,
        verify,
        format,
        notes: Vec::new(),
    };
    run_job(&job, Vec::new())
}
