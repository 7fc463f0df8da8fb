//! A workload in a simulated cluster.

use super::tasks::Source;
use super::{Cluster, Options, Report, SimulateError, run};
use crate::cluster::space::Spaces;
use crate::workload::cluster::ClusterWorkload;

/// Runs all tasks of a workload, each with the data where the tasks before it left them.
/// `tile` is the height and the width of blocks, where the placement of inputs has some.
/// Nothing is computed, and no contents are generated.
///
/// # Errors
/// As [`simulate`](super::simulate).
pub fn simulate_workload(
    cluster: &Cluster,
    workload: &dyn ClusterWorkload,
    tile: u64,
    options: &Options,
) -> Result<Report, SimulateError> {
    let mut spaces = Spaces::default();
    let nodes = cluster.nodes.len() as u32;
    let ids = workload.spaces().into_iter().map(|space| {
        let placed = space.contents.map(|(placement, _)| placement);
        let blocks = placed.map(|placement| placement.blocks(space.extent, [tile, tile], nodes));
        spaces.add(space.extent, blocks.unwrap_or_default())
    });
    let ids = ids.collect();
    let tasks = Source::Workload {
        workload,
        spaces: ids,
    };
    run(cluster, &spaces, tasks, options)
}
