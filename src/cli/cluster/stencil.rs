//! A stencil over several nodes.

use std::sync::Arc;

use pdawl::engine::cluster::simulate::Computing;
use pdawl::workload::Divisible;
use pdawl::workload::cluster::StencilWorkload;
use pdawl::workload::stencil::Stencil;

use super::prepared::PreparedWorkload;

/// Bands of a step. Enough that a node gets a part that suits it, few enough that their
/// halos stay small.
const BANDS: u64 = 64;

/// So many steps of a stencil.
pub fn prepare(stencil: Stencil, steps: u32) -> PreparedWorkload {
    let units = stencil.units();
    let tile = units.div_ceil(BANDS);
    let (nx, ny, nz) = stencil.shape();
    let third = nz.map_or(String::new(), |nz| format!(" x {nz}"));
    let seed = stencil.seed();
    PreparedWorkload {
        computing: Computing::All,
        size: format!("{nx} x {ny}{third}, {steps} steps, bands of {tile}, seed {seed}"),
        workload: Box::new(StencilWorkload {
            stencil: Arc::new(stencil),
            steps: steps.into(),
            tile,
        }),
        tile,
        tolerance: None,
        notes: Vec::new(),
        fits: None,
        alone: None,
    }
}
