//! Candidates for pools of the host's cores, and for devices that share its
//! memory. Pure.

use super::space::SizedGrid;
use super::{Candidate, Gpu, Space, chunks_of};
use crate::machine::host::Placement;
use crate::profile::configuration::{Configuration, ModelKind, Setting};

/// Chunks into which the units are cut: whole, and some divisions.
const CUTS: [u64; 5] = [1, 3, 8, 24, 64];

/// Weights of the coordinates: size, aspect, workers, placement, cuts.
const WEIGHTS: [f64; 5] = [1.5, 0.4, 1.0, 0.3, 0.6];

/// A pool of workers and their placement.
struct Pool {
    workers: u32,
    sockets: u32,
    placement: Option<Placement>,
}

/// The candidates for pools of cores.
pub fn pools(space: &Space, grids: &[SizedGrid]) -> Vec<Candidate> {
    let pools = placed(space);
    let all = space.topology.cores().max(1) as f64;
    let mut candidates = Vec::new();
    for sized in grids {
        for pool in &pools {
            for (cuts, chunk) in chunks_of(sized.grid.units(), &CUTS) {
                let setting = Setting::Host {
                    workers: pool.workers,
                    sockets: pool.sockets,
                    placement: pool.placement,
                    chunk,
                };
                let workers = f64::from(pool.workers).ln() / all.max(2.0).ln();
                let spread = f64::from(u8::from(pool.placement == Some(Placement::Spread)));
                candidates.push(Candidate::new(
                    Configuration::new(sized.grid, ModelKind::Cpu, "host", setting),
                    sized,
                    [sized.size, sized.aspect, workers, spread, cuts],
                    WEIGHTS,
                ));
            }
        }
    }
    candidates
}

/// The candidates for a device on host memory.
pub fn shared(gpu: &Gpu, grids: &[SizedGrid]) -> Vec<Candidate> {
    let mut candidates = Vec::new();
    for sized in grids {
        for (cuts, chunk) in chunks_of(sized.grid.units(), &CUTS) {
            let setting = Setting::Shared {
                workers: gpu.compute_units,
                chunk,
            };
            let [size, aspect, _, _, cut] = WEIGHTS;
            candidates.push(Candidate::new(
                Configuration::new(sized.grid, ModelKind::Gpu, &gpu.name, setting),
                sized,
                [sized.size, sized.aspect, cuts],
                [size, aspect, cut],
            ));
        }
    }
    candidates
}

/// 1, 2, 4 ... workers and all, close together and far apart where that is
/// not the same.
fn placed(space: &Space) -> Vec<Pool> {
    let topology = &space.topology;
    let cores: Vec<usize> = topology.numbers();
    let all = cores.len();
    let mut counts: Vec<usize> = (0..usize::BITS)
        .map(|bit| 1usize << bit)
        .take_while(|count| *count < all)
        .collect();
    counts.push(all);
    let mut pools = Vec::new();
    for count in counts {
        let mut pool = |placement: Option<Placement>| {
            let taken = topology.take(count, placement, &cores);
            pools.push(Pool {
                workers: count as u32,
                sockets: topology.sockets_of(&taken) as u32,
                placement,
            });
            taken
        };
        if count == all || !topology.is_uneven() {
            pool(None);
            continue;
        }
        let compact = pool(Some(Placement::Compact));
        if topology.take(count, Some(Placement::Spread), &cores) != compact {
            pool(Some(Placement::Spread));
        }
    }
    pools
}
