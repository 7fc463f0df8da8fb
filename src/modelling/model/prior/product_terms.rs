//! The terms of a product's step beside bytes and operations: its entries, its rows,
//! and waiting for lines of the vector.
//!
//! Each is in seconds of a typical processor with all workers. No machine file gives
//! them: a model learns the weight of each term (`prior x parts`), so the figures here
//! only need the right proportion to the case.

use crate::model::case::{Case, DevicePart};
use crate::model::derived::Derived;
use crate::model::descriptors::Descriptors;

/// An entry: two loads, a gather and a product of one core.
const ENTRY: f64 = 1e-9;
/// A row's end: its sum, its store, and a branch that was not foreseen.
const ROW: f64 = 5e-9;
/// A line from a shared cache, while several are loaded at once ...
const NEAR: f64 = 6e-9;
/// ... and a line from memory.
const FAR: f64 = 30e-9;

/// The part of a shared cache up to which a working set stays in it: other programs use
/// the cache as well ...
const KEPT: f64 = 0.5;
/// ... and the part from which nothing of it stays.
const LOST: f64 = 0.75;

/// Seconds of a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProductTerms {
    pub entries: f64,
    pub rows: f64,
    /// Lines that a core's own cache misses, and a shared one.
    pub near_jumps: f64,
    pub far_jumps: f64,
    /// Bytes that the host's last cache does not keep from step to step, at a core's
    /// bandwidth each. `None` for devices.
    pub beyond_cache: Option<f64>,
    /// The end of a step, which the driver must see.
    pub barrier: f64,
}

impl ProductTerms {
    /// The terms of a product; `None` for other work.
    pub fn of(case: &Case, descriptors: &Descriptors) -> Option<Self> {
        let matrix = case.work.matrix.as_ref()?;
        let part = case.part.units() as f64 / case.work.units.max(1) as f64;
        let workers = match case.part {
            DevicePart::Host { workers, .. } => workers,
            DevicePart::Discrete { .. } => descriptors.device?.compute_units,
        };
        let each = part / f64::from(workers.max(1));
        let entries = matrix.nonzeros as f64 * each;
        let host = &descriptors.host;
        let beyond_cache = match descriptors.device {
            Some(_) => None,
            None => {
                let derived = Derived::of(case, descriptors);
                let lost = derived.over_l3.map_or(1.0, lost);
                let rate = f64::from(workers.max(1)) * host.core_bandwidth;
                Some(lost * derived.traffic_bytes / rate)
            }
        };
        Some(Self {
            entries: entries * ENTRY,
            rows: matrix.rows as f64 * each * ROW,
            near_jumps: entries * matrix.near_jumps * NEAR,
            far_jumps: entries * matrix.far_jumps * FAR,
            beyond_cache,
            barrier: match &descriptors.device {
                Some(device) => device.enqueue_seconds + device.completion_seconds,
                None => host.launch_seconds + host.completion_seconds,
            },
        })
    }
}

/// The part of a working set of `over` times the cache that is loaded again in each
/// step.
pub(super) fn lost(over: f64) -> f64 {
    ((over - KEPT) / (LOST - KEPT)).clamp(0.0, 1.0)
}
