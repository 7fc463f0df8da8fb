//! A stencil over several nodes.

use pdawl::workload::Supersteps;
use pdawl::workload::cluster::BandsWorkload;
use pdawl::workload::stencil::Stencil;

use super::prepared::PreparedWorkload;

/// What has its own placement, and no subtasks that a policy spreads.
pub const BANDS: &str = "a stencil, whose nodes share its rows or planes in one co-run";

/// So many steps of a stencil.
pub fn prepare(stencil: Stencil, supersteps: Supersteps) -> PreparedWorkload {
    let steps = supersteps.steps;
    let (nx, ny, nz) = stencil.shape();
    let third = nz.map_or(String::new(), |nz| format!(" x {nz}"));
    let seed = stencil.seed();
    let size = format!("{nx} x {ny}{third}, {steps} steps, seed {seed}");
    PreparedWorkload::of_bands(
        BandsWorkload::stencil(stencil, steps).with_superstep(supersteps.size),
        size,
    )
}
