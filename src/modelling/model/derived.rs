//! Figures that follow from a case and a machine's descriptors by counting: operations,
//! bytes, launches, and the parts of caches and memories that they occupy.

use super::case::{Case, DevicePart, StepWork};
use super::descriptors::Descriptors;
use crate::balance::windows::window;
use crate::codelet::Cost;
use crate::codelet::Stores;
use crate::runtime::tiles::Tiles;

/// Units of the neighbours on either side that a range of units needs, as on the
/// engine's rings.
pub(super) const HALO: u64 = 1;

/// The amounts that a step of a case moves and computes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Derived {
    pub flops: f64,
    /// Bytes that cross the memory interface of the computing device.
    pub traffic_bytes: f64,
    /// Bytes over the link, each way.
    pub h2d_bytes: f64,
    pub d2h_bytes: f64,
    /// Bytes of the memory it computes in that the part keeps or touches.
    pub working_set_bytes: f64,
    /// The working set over the L2 caches of its workers' cores, over the L3 caches of
    /// its sockets, and over the memory. `None` where a size is unknown, or where the
    /// caches are not the host's.
    pub over_l2: Option<f64>,
    pub over_l3: Option<f64>,
    pub over_memory: f64,
    pub launches: f64,
    pub chunks: f64,
    /// Pieces of a chunk that workers claim. `None` where there are none.
    pub tiles: Option<f64>,
    /// 1 where the work does not stay in the host's last cache, so that
    /// kernels store past it; else 0. `None` as for `over_l3`.
    pub past_caches: Option<f64>,
}

/// The tiles into which a pool cuts `units` for its workers.
pub(super) fn tiles(work: &StepWork, units: u64, workers: u32) -> Tiles {
    let cost = Cost {
        flops: f64::from(work.steps()) * units as f64 * work.unit_flops,
        bytes: units as f64 * work.unit_traffic,
    };
    Tiles::of(units, cost, workers as usize)
}

impl Derived {
    /// Counts what `case` does in a step.
    pub fn of(case: &Case, descriptors: &Descriptors) -> Self {
        let work = &case.work;
        let units = case.part.units() as f64;
        let bytes = |units: u64| units as f64 * work.unit_bytes as f64;
        let (chunks, windows) = (case.part.chunks(), case.part.windows());
        let memory = descriptors
            .device
            .map_or(descriptors.host.memory, |device| device.memory);
        let steps = f64::from(work.steps());
        let mut derived = Self {
            flops: steps * units * work.unit_flops,
            traffic_bytes: units * work.unit_traffic,
            h2d_bytes: 0.0,
            d2h_bytes: 0.0,
            // The present versions and the next.
            working_set_bytes: 2.0 * bytes(case.part.units()),
            over_l2: None,
            over_l3: None,
            over_memory: 0.0,
            launches: (chunks + windows) as f64,
            chunks: chunks as f64,
            tiles: None,
            past_caches: None,
        };
        if let Some(matrix) = &work.matrix {
            // The matrix once, and both vectors.
            let numbers = (matrix.rows + matrix.columns) * work.number_bytes();
            derived.working_set_bytes = bytes(case.part.units()) + numbers as f64;
        }
        match case.part {
            DevicePart::Host {
                workers, sockets, ..
            } => {
                if descriptors.device.is_none() {
                    let of = |count: u32, size: Option<u64>| {
                        let all = f64::from(count.max(1)) * size.filter(|s| *s > 0)? as f64;
                        Some(derived.working_set_bytes / all)
                    };
                    derived.over_l2 = of(workers, descriptors.host.l2);
                    derived.over_l3 = of(sockets, descriptors.host.l3);
                    derived.past_caches = descriptors.host.l3.map(|cache| {
                        let bytes = derived.working_set_bytes as u64;
                        f64::from(u8::from(Stores::choose(bytes, cache) == Stores::Stream))
                    });
                    let chunk = case.part.chunk().min(units as u64);
                    derived.tiles = Some(tiles(work, chunk, workers).count as f64);
                }
            }
            DevicePart::Discrete { streamed, .. } if let Some(matrix) = &work.matrix => {
                let part = streamed as f64 / work.units.max(1) as f64;
                derived.h2d_bytes = bytes(streamed);
                derived.d2h_bytes = part * (matrix.rows * work.number_bytes()) as f64;
            }
            DevicePart::Discrete {
                held,
                slots,
                streamed,
                chunk,
                queues,
                ..
            } => {
                let halo = HALO * u64::from(work.steps());
                let borders = if held > 0 && held < work.units {
                    halo
                } else {
                    0
                };
                // A device keeps nothing in caches from one step to the next.
                derived.traffic_bytes *= steps;
                derived.launches *= steps;
                derived.h2d_bytes = bytes(streamed + 2 * halo * chunks + borders);
                derived.d2h_bytes = bytes(streamed + borders);
                let ring = match held {
                    0 => 0,
                    _ => held + window(held, slots),
                };
                let buffers = u64::from(queues).min(chunks) * 2 * (chunk + halo);
                derived.working_set_bytes = bytes(ring + buffers);
            }
        }
        derived.over_memory = derived.working_set_bytes / memory.max(1) as f64;
        derived
    }
}
