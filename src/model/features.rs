//! The features that plan: everything that is known before a run, as numbers
//! with names.
//!
//! | group | what |
//! |---|---|
//! | `machine` | what the machine file says, see [`Descriptors`] |
//! | `known` | the work, and the configuration of the device's part |
//! | `derived` | what follows from these by counting |
//! | `prior` | the terms of [`super::prior`]; never kept in a dataset |
//!
//! Counters, traces and telemetry are not among them: they are known only
//! after a run, and so can explain a time, not plan it.

use super::case::{Case, DevicePart};
use super::derived::Derived;
use super::descriptors::{Descriptors, DeviceFigures, LinkFigures};
use super::matrix::MatrixFigures;
use super::prior::{self, GridTerms, ProductTerms, Terms};

/// Everything that a feature is made of.
struct Facts<'a> {
    case: &'a Case,
    descriptors: &'a Descriptors,
    derived: Derived,
    prior: Terms,
    /// Of a product.
    product_terms: Option<ProductTerms>,
    /// Of a grid on a host's cores.
    grid_terms: Option<GridTerms>,
}

type Feature = (&'static str, fn(&Facts) -> Option<f64>);

/// Bytes of a cache line.
const LINE_BYTES: f64 = 64.0;

const COUNT: usize = 100;

/// Every feature, by its name. One that a case does not have is `None`.
const FEATURES: [Feature; COUNT] = [
    ("machine.cores_count", |f| some(f.descriptors.host.cores)),
    ("machine.sockets_count", |f| {
        some(f.descriptors.host.sockets)
    }),
    ("machine.clock_mhz", |f| {
        f.descriptors.host.clock_mhz.map(f64::from)
    }),
    ("machine.l2_bytes", |f| f.descriptors.host.l2.map(whole)),
    ("machine.l3_bytes", |f| f.descriptors.host.l3.map(whole)),
    ("machine.memory_bytes", |f| {
        Some(whole(f.descriptors.host.memory))
    }),
    ("machine.bandwidth_bytes_per_second", |f| {
        Some(f.descriptors.host.bandwidth)
    }),
    ("machine.core_bandwidth_bytes_per_second", |f| {
        Some(f.descriptors.host.core_bandwidth)
    }),
    ("machine.flops_per_second", |f| f.descriptors.host.flops),
    ("machine.launch_seconds", |f| {
        Some(f.descriptors.host.launch_seconds)
    }),
    ("machine.completion_seconds", |f| {
        Some(f.descriptors.host.completion_seconds)
    }),
    ("machine.efficiency_ratio", |f| {
        Some(f.descriptors.host.efficiency)
    }),
    ("machine.device_units_count", |f| {
        f.device(|d| f64::from(d.compute_units))
    }),
    ("machine.device_clock_mhz", |f| {
        f.descriptors.device?.clock_mhz.map(f64::from)
    }),
    ("machine.device_memory_bytes", |f| {
        f.device(|d| whole(d.memory))
    }),
    ("machine.device_bandwidth_bytes_per_second", |f| {
        f.device(|d| d.bandwidth)
    }),
    ("machine.device_flops_per_second", |f| {
        f.descriptors.device?.flops
    }),
    ("machine.copy_engines_count", |f| {
        f.device(|d| f64::from(d.copy_engines))
    }),
    ("machine.device_launch_seconds", |f| {
        f.device(|d| d.launch_seconds)
    }),
    ("machine.device_enqueue_seconds", |f| {
        f.device(|d| d.enqueue_seconds)
    }),
    ("machine.device_completion_seconds", |f| {
        f.device(|d| d.completion_seconds)
    }),
    ("machine.device_efficiency_ratio", |f| {
        f.device(|d| d.efficiency)
    }),
    ("machine.h2d_bytes_per_second", |f| f.link(|l| l.h2d)),
    ("machine.d2h_bytes_per_second", |f| f.link(|l| l.d2h)),
    ("machine.both_ways_bytes_per_second", |f| {
        f.link(|l| l.both_ways)
    }),
    ("machine.link_latency_seconds", |f| {
        f.link(|l| l.latency_seconds)
    }),
    // Absent rather than 0, so that rows of other machines stay as they were.
    ("machine.turns_ratio", |f| {
        f.descriptors.device?.turns.then_some(1.0)
    }),
    ("machine.launch_delay_seconds", |f| {
        let delay = f.link(|l| l.launch_delay_seconds);
        delay.filter(|delay| *delay > 0.0)
    }),
    ("known.units_count", |f| Some(whole(f.case.work.units))),
    ("known.unit_bytes", |f| Some(whole(f.case.work.unit_bytes))),
    ("known.unit_points_count", |f| {
        Some(whole(f.case.work.unit_points))
    }),
    ("known.element_bytes", |f| {
        Some(whole(f.case.work.element_bytes))
    }),
    ("known.dimensions_count", |f| some(f.case.work.dimensions)),
    ("known.unit_flops", |f| Some(f.case.work.unit_flops)),
    ("known.unit_traffic_bytes", |f| {
        Some(f.case.work.unit_traffic)
    }),
    ("known.chunk_units_count", |f| match f.case.part {
        DevicePart::Host { chunk, .. } | DevicePart::Discrete { chunk, .. } => Some(whole(chunk)),
    }),
    ("known.workers_count", |f| match f.case.part {
        DevicePart::Host { workers, .. } => some(workers),
        DevicePart::Discrete { .. } => None,
    }),
    ("known.sockets_count", |f| match f.case.part {
        DevicePart::Host { sockets, .. } => some(sockets),
        DevicePart::Discrete { .. } => None,
    }),
    ("known.pool_units_count", |f| match f.case.part {
        DevicePart::Host { units, .. } => Some(whole(units)),
        DevicePart::Discrete { .. } => None,
    }),
    ("known.held_units_count", |f| match f.case.part {
        DevicePart::Discrete { held, .. } => Some(whole(held)),
        DevicePart::Host { .. } => None,
    }),
    ("known.slots_count", |f| match f.case.part {
        DevicePart::Discrete { slots, .. } => Some(whole(slots)),
        DevicePart::Host { .. } => None,
    }),
    ("known.streamed_units_count", |f| match f.case.part {
        DevicePart::Discrete { streamed, .. } => Some(whole(streamed)),
        DevicePart::Host { .. } => None,
    }),
    ("known.queues_count", |f| match f.case.part {
        DevicePart::Discrete { queues, .. } => some(queues),
        DevicePart::Host { .. } => None,
    }),
    ("known.solo_ratio", |f| match f.case.part {
        DevicePart::Discrete { solo, .. } => some(u8::from(solo)),
        DevicePart::Host { .. } => None,
    }),
    ("known.matrix_rows_count", |f| f.matrix(|m| whole(m.rows))),
    ("known.matrix_columns_count", |f| {
        f.matrix(|m| whole(m.columns))
    }),
    ("known.matrix_nonzeros_count", |f| {
        f.matrix(|m| whole(m.nonzeros))
    }),
    ("known.nonzeros_over_rows_ratio", |f| f.matrix(|m| m.mean)),
    ("known.deviation_over_mean_ratio", |f| {
        f.matrix(|m| m.variation)
    }),
    ("known.row_most_count", |f| f.matrix(|m| whole(m.most))),
    ("known.matrix_bandwidth_count", |f| {
        f.matrix(|m| whole(m.bandwidth))
    }),
    ("known.irregular_ratio", |f| f.matrix(|m| m.irregular)),
    ("known.near_lines_ratio", |f| f.matrix(|m| m.near_lines)),
    ("known.far_lines_ratio", |f| f.matrix(|m| m.far_lines)),
    ("known.near_jumps_ratio", |f| f.matrix(|m| m.near_jumps)),
    ("known.far_jumps_ratio", |f| f.matrix(|m| m.far_jumps)),
    ("derived.vector_bytes", |f| {
        f.matrix(|m| whole(m.vector_bytes(f.case.work.number_bytes())))
    }),
    ("derived.near_gather_bytes", |f| {
        f.gathered(|m| m.near_lines)
    }),
    ("derived.far_gather_bytes", |f| f.gathered(|m| m.far_lines)),
    ("derived.gather_over_traffic_ratio", |f| {
        let gathered = f.gathered(|m| m.far_lines)?;
        let traffic = f.derived.traffic_bytes;
        (traffic > 0.0).then(|| gathered / traffic)
    }),
    ("derived.flops", |f| Some(f.derived.flops)),
    ("derived.traffic_bytes", |f| Some(f.derived.traffic_bytes)),
    ("derived.h2d_bytes", |f| Some(f.derived.h2d_bytes)),
    ("derived.d2h_bytes", |f| Some(f.derived.d2h_bytes)),
    ("derived.intensity_flops_per_byte", |f| {
        let traffic = f.derived.traffic_bytes;
        (traffic > 0.0).then(|| f.derived.flops / traffic)
    }),
    ("derived.working_set_bytes", |f| {
        Some(f.derived.working_set_bytes)
    }),
    ("derived.working_set_over_l2_ratio", |f| f.derived.over_l2),
    ("derived.working_set_over_l3_ratio", |f| f.derived.over_l3),
    ("derived.working_set_over_memory_ratio", |f| {
        Some(f.derived.over_memory)
    }),
    ("derived.launches_count", |f| Some(f.derived.launches)),
    ("derived.chunks_count", |f| Some(f.derived.chunks)),
    ("derived.tiles_count", |f| f.derived.tiles),
    ("derived.tile_units_count", |f| {
        let chunk = f.case.part.chunk().min(f.case.part.units());
        Some(whole(chunk) / f.derived.tiles?)
    }),
    ("derived.past_caches_ratio", |f| f.derived.past_caches),
    ("prior.compute_seconds", |f| Some(f.prior.compute)),
    ("prior.memory_seconds", |f| Some(f.prior.memory)),
    ("prior.link_seconds", |f| Some(f.prior.link)),
    ("prior.overhead_seconds", |f| Some(f.prior.overhead)),
    ("prior.compute_ratio", |f| f.part(f.prior.compute)),
    ("prior.memory_ratio", |f| f.part(f.prior.memory)),
    ("prior.link_ratio", |f| f.part(f.prior.link)),
    ("prior.overhead_ratio", |f| f.part(f.prior.overhead)),
    ("prior.held_enqueue_ratio", |f| f.part(f.prior.held_enqueue)),
    ("prior.streamed_enqueue_ratio", |f| {
        f.part(f.prior.streamed_enqueue)
    }),
    ("prior.entries_ratio", |f| {
        f.share(|product_terms| product_terms.entries)
    }),
    ("prior.rows_ratio", |f| {
        f.share(|product_terms| product_terms.rows)
    }),
    ("prior.near_jumps_ratio", |f| {
        f.share(|product_terms| product_terms.near_jumps)
    }),
    ("prior.far_jumps_ratio", |f| {
        f.share(|product_terms| product_terms.far_jumps)
    }),
    ("prior.beyond_cache_ratio", |f| {
        f.part(f.product_terms?.beyond_cache?)
    }),
    ("prior.barrier_ratio", |f| {
        f.share(|product_terms| product_terms.barrier)
    }),
    ("prior.smooth_memory_ratio", |f| {
        f.pass(|grid_terms| grid_terms.memory)
    }),
    ("prior.smooth_cache_ratio", |f| {
        f.pass(|grid_terms| grid_terms.cache)
    }),
    ("prior.shared_memory_ratio", |f| {
        f.pass(|grid_terms| grid_terms.shared)
    }),
    ("prior.wide_rows_ratio", |f| {
        f.pass(|grid_terms| grid_terms.wide_rows)
    }),
    ("prior.borders_ratio", |f| {
        f.pass(|grid_terms| grid_terms.borders)
    }),
    ("prior.chunks_ratio", |f| {
        f.pass(|grid_terms| grid_terms.chunks)
    }),
    ("prior.wakes_ratio", |f| {
        f.pass(|grid_terms| grid_terms.wakes)
    }),
    ("prior.begun_rows_ratio", |f| {
        f.pass(|grid_terms| grid_terms.rows)
    }),
    ("prior.end_ratio", |f| f.pass(|grid_terms| grid_terms.end)),
    ("prior.total_seconds", |f| Some(f.prior.total)),
];

/// Those that are parts of the prior, or of what it leaves out, by the same
/// whole: a model may say how much of each a step takes.
pub const PARTS: [&str; 10] = [
    "prior.compute_ratio",
    "prior.memory_ratio",
    "prior.link_ratio",
    "prior.overhead_ratio",
    "prior.entries_ratio",
    "prior.rows_ratio",
    "prior.near_jumps_ratio",
    "prior.far_jumps_ratio",
    "prior.beyond_cache_ratio",
    "prior.barrier_ratio",
];

/// The same of a grid's step on cores, where the bounds are no parts: what hides
/// behind another bound adds nothing. They correlate with all that other models
/// are made of, and only add up.
pub const GRID_TERMS: [&str; 9] = [
    "prior.smooth_memory_ratio",
    "prior.smooth_cache_ratio",
    "prior.shared_memory_ratio",
    "prior.wide_rows_ratio",
    "prior.borders_ratio",
    "prior.chunks_ratio",
    "prior.wakes_ratio",
    "prior.begun_rows_ratio",
    "prior.end_ratio",
];

/// The features' names, in the order of [`values`].
pub const NAMES: [&str; COUNT] = {
    let mut names = [""; COUNT];
    let mut i = 0;
    while i < COUNT {
        names[i] = FEATURES[i].0;
        i += 1;
    }
    names
};

/// Where the prior's seconds of a step stand among them.
pub const PRIOR: usize = COUNT - 1;

/// The features of a case on a machine, in the order of [`NAMES`]; NaN for one
/// that it does not have. Allocates nothing.
pub fn values(case: &Case, descriptors: &Descriptors) -> [f64; COUNT] {
    let derived = Derived::of(case, descriptors);
    let facts = Facts {
        case,
        descriptors,
        prior: prior::terms(case, descriptors),
        product_terms: ProductTerms::of(case, descriptors),
        grid_terms: GridTerms::of(case, descriptors, &derived),
        derived,
    };
    FEATURES.map(|(_, of)| of(&facts).unwrap_or(f64::NAN))
}

/// Where a feature stands in [`NAMES`].
pub fn index(name: &str) -> Option<usize> {
    NAMES.iter().position(|known| *known == name)
}

/// Whether a feature may stand in a dataset: the prior's terms follow from
/// the others, and change with the physics.
pub fn is_kept(name: &str) -> bool {
    !name.starts_with("prior.")
}

impl Facts<'_> {
    fn device(&self, of: impl Fn(&DeviceFigures) -> f64) -> Option<f64> {
        self.descriptors.device.as_ref().map(of)
    }

    fn link(&self, of: impl Fn(&LinkFigures) -> f64) -> Option<f64> {
        self.descriptors.device.as_ref()?.link.as_ref().map(of)
    }

    fn matrix(&self, of: impl Fn(&MatrixFigures) -> f64) -> Option<f64> {
        self.case.work.matrix.as_ref().map(of)
    }

    /// Bytes of the vector's lines that the part's entries touch, so many of
    /// them an entry.
    fn gathered(&self, lines: impl Fn(&MatrixFigures) -> f64) -> Option<f64> {
        let entries = whole(self.case.part.units() * self.case.work.unit_points);
        self.matrix(|m| lines(m) * entries * LINE_BYTES)
    }

    /// A share of a product's step as a part of the prior's whole.
    fn share(&self, of: impl Fn(&ProductTerms) -> f64) -> Option<f64> {
        self.part(of(self.product_terms.as_ref()?))
    }

    /// The same of what a grid's step is made of.
    fn pass(&self, of: impl Fn(&GridTerms) -> f64) -> Option<f64> {
        self.part(of(self.grid_terms.as_ref()?))
    }

    /// A term of the prior as a part of the whole.
    fn part(&self, term: f64) -> Option<f64> {
        (self.prior.total > 0.0).then(|| term / self.prior.total)
    }
}

fn some(count: impl Into<f64>) -> Option<f64> {
    Some(count.into())
}

/// Exact below 2^53.
fn whole(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn names_are_unique_found_and_end_with_the_priors_total() {
        let unique: HashSet<&str> = NAMES.into_iter().collect();
        assert_eq!(unique.len(), COUNT);
        assert_eq!(NAMES[PRIOR], "prior.total_seconds");
        assert!(NAMES.iter().enumerate().all(|(i, n)| index(n) == Some(i)));
        assert_eq!(index("known.nothing_count"), None);
        let parts = PARTS.iter().chain(&GRID_TERMS);
        assert!(parts.into_iter().all(|part| index(part).is_some()));
    }
}
