//! The table of all features: the name of each, and where its value comes from.
//!
//! A feature that is `kept` is a field of the case or of the machine's
//! descriptors: datasets have it as a column, and [`super::super::record`] reads it
//! back. All others follow from the kept ones. The order is that of the columns
//! that models are fitted to.

use super::{Facts, Feature, Source, whole};
use crate::model::case::DevicePart;

/// How many features there are.
pub const COUNT: usize = 100;

/// Every feature, by its name.
pub static FEATURES: [Feature; COUNT] = [
    kept("machine.cores_count", |k| Some(&mut k.host().cores)),
    kept("machine.sockets_count", |k| Some(&mut k.host().sockets)),
    kept("machine.clock_mhz", |k| Some(&mut k.host().clock_mhz)),
    kept("machine.l2_bytes", |k| Some(&mut k.host().l2)),
    kept("machine.l3_bytes", |k| Some(&mut k.host().l3)),
    kept("machine.memory_bytes", |k| Some(&mut k.host().memory)),
    kept("machine.bandwidth_bytes_per_second", |k| {
        Some(&mut k.host().bandwidth)
    }),
    kept("machine.core_bandwidth_bytes_per_second", |k| {
        Some(&mut k.host().core_bandwidth)
    }),
    kept("machine.flops_per_second", |k| Some(&mut k.host().flops)),
    kept("machine.launch_seconds", |k| {
        Some(&mut k.host().launch_seconds)
    }),
    kept("machine.completion_seconds", |k| {
        Some(&mut k.host().completion_seconds)
    }),
    kept("machine.efficiency_ratio", |k| {
        Some(&mut k.host().efficiency)
    }),
    kept("machine.device_units_count", |k| {
        Some(&mut k.device()?.compute_units)
    }),
    kept("machine.device_clock_mhz", |k| {
        Some(&mut k.device()?.clock_mhz)
    }),
    kept("machine.device_memory_bytes", |k| {
        Some(&mut k.device()?.memory)
    }),
    kept("machine.device_bandwidth_bytes_per_second", |k| {
        Some(&mut k.device()?.bandwidth)
    }),
    kept("machine.device_flops_per_second", |k| {
        Some(&mut k.device()?.flops)
    }),
    kept("machine.copy_engines_count", |k| {
        Some(&mut k.device()?.copy_engines)
    }),
    kept("machine.device_launch_seconds", |k| {
        Some(&mut k.device()?.launch_seconds)
    }),
    kept("machine.device_enqueue_seconds", |k| {
        Some(&mut k.device()?.enqueue_seconds)
    }),
    kept("machine.device_completion_seconds", |k| {
        Some(&mut k.device()?.completion_seconds)
    }),
    kept("machine.device_efficiency_ratio", |k| {
        Some(&mut k.device()?.efficiency)
    }),
    kept("machine.h2d_bytes_per_second", |k| Some(&mut k.link()?.h2d)),
    kept("machine.d2h_bytes_per_second", |k| Some(&mut k.link()?.d2h)),
    kept("machine.both_ways_bytes_per_second", |k| {
        Some(&mut k.link()?.both_ways)
    }),
    kept("machine.link_latency_seconds", |k| {
        Some(&mut k.link()?.latency_seconds)
    }),
    kept_unless_zero("machine.turns_ratio", |k| Some(&mut k.device()?.turns)),
    kept_unless_zero("machine.launch_delay_seconds", |k| {
        Some(&mut k.link()?.launch_delay_seconds)
    }),
    kept("known.units_count", |k| Some(&mut k.case.work.units)),
    kept("known.unit_bytes", |k| Some(&mut k.case.work.unit_bytes)),
    kept("known.unit_points_count", |k| {
        Some(&mut k.case.work.unit_points)
    }),
    kept("known.element_bytes", |k| {
        Some(&mut k.case.work.element_bytes)
    }),
    kept("known.dimensions_count", |k| {
        Some(&mut k.case.work.dimensions)
    }),
    kept("known.unit_flops", |k| Some(&mut k.case.work.unit_flops)),
    kept("known.unit_traffic_bytes", |k| {
        Some(&mut k.case.work.unit_traffic)
    }),
    kept("known.chunk_units_count", |k| match &mut k.case.part {
        DevicePart::Host { chunk, .. } | DevicePart::Discrete { chunk, .. } => Some(chunk),
    }),
    kept("known.workers_count", |k| match &mut k.case.part {
        DevicePart::Host { workers, .. } => Some(workers),
        DevicePart::Discrete { .. } => None,
    }),
    kept("known.sockets_count", |k| match &mut k.case.part {
        DevicePart::Host { sockets, .. } => Some(sockets),
        DevicePart::Discrete { .. } => None,
    }),
    kept("known.pool_units_count", |k| match &mut k.case.part {
        DevicePart::Host { units, .. } => Some(units),
        DevicePart::Discrete { .. } => None,
    }),
    kept("known.held_units_count", |k| match &mut k.case.part {
        DevicePart::Discrete { held, .. } => Some(held),
        DevicePart::Host { .. } => None,
    }),
    kept("known.slots_count", |k| match &mut k.case.part {
        DevicePart::Discrete { slots, .. } => Some(slots),
        DevicePart::Host { .. } => None,
    }),
    kept("known.streamed_units_count", |k| match &mut k.case.part {
        DevicePart::Discrete { streamed, .. } => Some(streamed),
        DevicePart::Host { .. } => None,
    }),
    kept("known.queues_count", |k| match &mut k.case.part {
        DevicePart::Discrete { queues, .. } => Some(queues),
        DevicePart::Host { .. } => None,
    }),
    kept("known.solo_ratio", |k| match &mut k.case.part {
        DevicePart::Discrete { solo, .. } => Some(solo),
        DevicePart::Host { .. } => None,
    }),
    kept("known.matrix_rows_count", |k| Some(&mut k.matrix()?.rows)),
    kept("known.matrix_columns_count", |k| {
        Some(&mut k.matrix()?.columns)
    }),
    kept("known.matrix_nonzeros_count", |k| {
        Some(&mut k.matrix()?.nonzeros)
    }),
    kept("known.nonzeros_over_rows_ratio", |k| {
        Some(&mut k.matrix()?.mean)
    }),
    kept("known.deviation_over_mean_ratio", |k| {
        Some(&mut k.matrix()?.variation)
    }),
    kept("known.row_most_count", |k| Some(&mut k.matrix()?.most)),
    kept("known.matrix_bandwidth_count", |k| {
        Some(&mut k.matrix()?.bandwidth)
    }),
    kept("known.irregular_ratio", |k| {
        Some(&mut k.matrix()?.irregular)
    }),
    kept("known.near_lines_ratio", |k| {
        Some(&mut k.matrix()?.near_lines)
    }),
    kept("known.far_lines_ratio", |k| {
        Some(&mut k.matrix()?.far_lines)
    }),
    kept("known.near_jumps_ratio", |k| {
        Some(&mut k.matrix()?.near_jumps)
    }),
    kept("known.far_jumps_ratio", |k| {
        Some(&mut k.matrix()?.far_jumps)
    }),
    counted("derived.vector_bytes", |f| {
        let work = &f.known.case.work;
        Some(whole(
            work.matrix.as_ref()?.vector_bytes(work.number_bytes()),
        ))
    }),
    counted("derived.near_gather_bytes", |f| {
        f.gathered_bytes(|m| m.near_lines)
    }),
    counted("derived.far_gather_bytes", |f| {
        f.gathered_bytes(|m| m.far_lines)
    }),
    counted("derived.gather_over_traffic_ratio", |f| {
        f.over_traffic(f.gathered_bytes(|m| m.far_lines)?)
    }),
    counted("derived.flops", |f| Some(f.derived.flops)),
    counted("derived.traffic_bytes", |f| Some(f.derived.traffic_bytes)),
    counted("derived.h2d_bytes", |f| Some(f.derived.h2d_bytes)),
    counted("derived.d2h_bytes", |f| Some(f.derived.d2h_bytes)),
    counted("derived.intensity_flops_per_byte", |f| {
        f.over_traffic(f.derived.flops)
    }),
    counted("derived.working_set_bytes", |f| {
        Some(f.derived.working_set_bytes)
    }),
    counted("derived.working_set_over_l2_ratio", |f| f.derived.over_l2),
    counted("derived.working_set_over_l3_ratio", |f| f.derived.over_l3),
    counted("derived.working_set_over_memory_ratio", |f| {
        Some(f.derived.over_memory)
    }),
    counted("derived.launches_count", |f| Some(f.derived.launches)),
    counted("derived.chunks_count", |f| Some(f.derived.chunks)),
    counted("derived.tiles_count", |f| f.derived.tiles),
    counted("derived.tile_units_count", |f| {
        let part = f.known.case.part;
        Some(whole(part.chunk().min(part.units())) / f.derived.tiles?)
    }),
    counted("derived.past_caches_ratio", |f| f.derived.past_caches),
    counted("prior.compute_seconds", |f| Some(f.prior.compute)),
    counted("prior.memory_seconds", |f| Some(f.prior.memory)),
    counted("prior.link_seconds", |f| Some(f.prior.link)),
    counted("prior.overhead_seconds", |f| Some(f.prior.overhead)),
    bound("prior.compute_ratio", |f| Some(f.prior.compute)),
    bound("prior.memory_ratio", |f| Some(f.prior.memory)),
    bound("prior.link_ratio", |f| Some(f.prior.link)),
    bound("prior.overhead_ratio", |f| Some(f.prior.overhead)),
    counted("prior.held_enqueue_ratio", |f| {
        f.over_prior(f.prior.held_enqueue)
    }),
    counted("prior.streamed_enqueue_ratio", |f| {
        f.over_prior(f.prior.streamed_enqueue)
    }),
    bound("prior.entries_ratio", |f| Some(f.product?.entries)),
    bound("prior.rows_ratio", |f| Some(f.product?.rows)),
    bound("prior.near_jumps_ratio", |f| Some(f.product?.near_jumps)),
    bound("prior.far_jumps_ratio", |f| Some(f.product?.far_jumps)),
    bound("prior.beyond_cache_ratio", |f| f.product?.beyond_cache),
    bound("prior.barrier_ratio", |f| Some(f.product?.barrier)),
    summand("prior.smooth_memory_ratio", |f| Some(f.grid?.memory)),
    summand("prior.smooth_cache_ratio", |f| Some(f.grid?.cache)),
    summand("prior.shared_memory_ratio", |f| Some(f.grid?.shared)),
    summand("prior.wide_rows_ratio", |f| Some(f.grid?.wide_rows)),
    summand("prior.borders_ratio", |f| Some(f.grid?.borders)),
    summand("prior.chunks_ratio", |f| Some(f.grid?.chunks)),
    summand("prior.wakes_ratio", |f| Some(f.grid?.wakes)),
    summand("prior.begun_rows_ratio", |f| Some(f.grid?.rows)),
    summand("prior.end_ratio", |f| Some(f.grid?.end)),
    counted("prior.total_seconds", |f| Some(f.prior.total)),
];

type Field = super::Field;
type Formula = fn(&Facts) -> Option<f64>;

/// A field of the case or of the machine.
const fn kept(name: &'static str, field: Field) -> Feature {
    let source = Source::Kept {
        field,
        unless_zero: false,
    };
    Feature { name, source }
}

/// The same; a row without it means 0, so that rows of older programs stay valid.
const fn kept_unless_zero(name: &'static str, field: Field) -> Feature {
    let source = Source::Kept {
        field,
        unless_zero: true,
    };
    Feature { name, source }
}

/// A number that follows from the kept ones.
const fn counted(name: &'static str, formula: Formula) -> Feature {
    let source = Source::Counted(formula);
    Feature { name, source }
}

/// Seconds of a term of the prior, or of what the prior leaves out, as a part of the
/// prior's total.
const fn bound(name: &'static str, formula: Formula) -> Feature {
    let source = Source::Bound(formula);
    Feature { name, source }
}

/// Seconds of a term of a grid's step on cores, as a part of the prior's total.
const fn summand(name: &'static str, formula: Formula) -> Feature {
    let source = Source::Summand(formula);
    Feature { name, source }
}
