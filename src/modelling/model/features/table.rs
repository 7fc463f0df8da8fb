//! The table of all features: the name of each, and where its value comes from.
//!
//! A feature that is `kept` is a field of the case or of the machine's
//! descriptors: datasets have it as a column, and [`super::super::record`] reads it
//! back. All others follow from the kept ones. The order is that of the columns
//! that models are fitted to.

use super::{Facts, Feature, Field, Figure, Source, whole};
use crate::model::case::{DevicePart, StepWork};
use crate::model::descriptors::{DeviceFigures, HostFigures, LinkFigures};
use crate::model::matrix::MatrixFigures;

/// How many features there are.
pub const COUNT: usize = 100;

/// Every feature, by its name.
pub static FEATURES: [Feature; COUNT] = [
    host("machine.cores_count", |of| &mut of.cores),
    host("machine.sockets_count", |of| &mut of.sockets),
    host("machine.clock_mhz", |of| &mut of.clock_mhz),
    host("machine.l2_bytes", |of| &mut of.l2),
    host("machine.l3_bytes", |of| &mut of.l3),
    host("machine.memory_bytes", |of| &mut of.memory),
    host("machine.bandwidth_bytes_per_second", |of| &mut of.bandwidth),
    host("machine.core_bandwidth_bytes_per_second", |of| {
        &mut of.core_bandwidth
    }),
    host("machine.flops_per_second", |of| &mut of.flops),
    host("machine.launch_seconds", |of| &mut of.launch_seconds),
    host("machine.completion_seconds", |of| {
        &mut of.completion_seconds
    }),
    host("machine.efficiency_ratio", |of| &mut of.efficiency),
    device("machine.device_units_count", |of| &mut of.compute_units),
    device("machine.device_clock_mhz", |of| &mut of.clock_mhz),
    device("machine.device_memory_bytes", |of| &mut of.memory),
    device("machine.device_bandwidth_bytes_per_second", |of| {
        &mut of.bandwidth
    }),
    device("machine.device_flops_per_second", |of| &mut of.flops),
    device("machine.copy_engines_count", |of| &mut of.copy_engines),
    device("machine.device_launch_seconds", |of| &mut of.launch_seconds),
    device("machine.device_enqueue_seconds", |of| {
        &mut of.enqueue_seconds
    }),
    device("machine.device_completion_seconds", |of| {
        &mut of.completion_seconds
    }),
    device("machine.device_efficiency_ratio", |of| &mut of.efficiency),
    link("machine.h2d_bytes_per_second", |of| &mut of.h2d),
    link("machine.d2h_bytes_per_second", |of| &mut of.d2h),
    link("machine.both_ways_bytes_per_second", |of| &mut of.both_ways),
    link("machine.link_latency_seconds", |of| &mut of.latency_seconds),
    unless_zero(device("machine.turns_ratio", |of| &mut of.turns)),
    unless_zero(link("machine.launch_delay_seconds", |of| {
        &mut of.launch_delay_seconds
    })),
    work("known.units_count", |of| &mut of.units),
    work("known.unit_bytes", |of| &mut of.unit_bytes),
    work("known.unit_points_count", |of| &mut of.unit_points),
    work("known.element_bytes", |of| &mut of.element_bytes),
    work("known.dimensions_count", |of| &mut of.dimensions),
    work("known.unit_flops", |of| &mut of.unit_flops),
    work("known.unit_traffic_bytes", |of| &mut of.unit_traffic),
    part("known.chunk_units_count", |of| match of {
        DevicePart::Host { chunk, .. } | DevicePart::Discrete { chunk, .. } => Some(chunk),
    }),
    part("known.workers_count", |of| match of {
        DevicePart::Host { workers, .. } => Some(workers),
        DevicePart::Discrete { .. } => None,
    }),
    part("known.sockets_count", |of| match of {
        DevicePart::Host { sockets, .. } => Some(sockets),
        DevicePart::Discrete { .. } => None,
    }),
    part("known.pool_units_count", |of| match of {
        DevicePart::Host { units, .. } => Some(units),
        DevicePart::Discrete { .. } => None,
    }),
    part("known.held_units_count", |of| match of {
        DevicePart::Discrete { held, .. } => Some(held),
        DevicePart::Host { .. } => None,
    }),
    part("known.slots_count", |of| match of {
        DevicePart::Discrete { slots, .. } => Some(slots),
        DevicePart::Host { .. } => None,
    }),
    part("known.streamed_units_count", |of| match of {
        DevicePart::Discrete { streamed, .. } => Some(streamed),
        DevicePart::Host { .. } => None,
    }),
    part("known.queues_count", |of| match of {
        DevicePart::Discrete { queues, .. } => Some(queues),
        DevicePart::Host { .. } => None,
    }),
    part("known.solo_ratio", |of| match of {
        DevicePart::Discrete { solo, .. } => Some(solo),
        DevicePart::Host { .. } => None,
    }),
    matrix("known.matrix_rows_count", |of| &mut of.rows),
    matrix("known.matrix_columns_count", |of| &mut of.columns),
    matrix("known.matrix_nonzeros_count", |of| &mut of.nonzeros),
    matrix("known.nonzeros_over_rows_ratio", |of| &mut of.mean),
    matrix("known.deviation_over_mean_ratio", |of| &mut of.variation),
    matrix("known.row_most_count", |of| &mut of.most),
    matrix("known.matrix_bandwidth_count", |of| &mut of.bandwidth),
    matrix("known.irregular_ratio", |of| &mut of.irregular),
    matrix("known.near_lines_ratio", |of| &mut of.near_lines),
    matrix("known.far_lines_ratio", |of| &mut of.far_lines),
    matrix("known.near_jumps_ratio", |of| &mut of.near_jumps),
    matrix("known.far_jumps_ratio", |of| &mut of.far_jumps),
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

/// A figure of the host in a machine file.
const fn host(name: &'static str, field: Field<HostFigures>) -> Feature {
    feature(name, Source::Host(field))
}

/// A figure of the device, which cases on the host's cores do not have.
const fn device(name: &'static str, field: Field<DeviceFigures>) -> Feature {
    feature(name, Source::Device(field))
}

/// A figure of the device's link.
const fn link(name: &'static str, field: Field<LinkFigures>) -> Feature {
    feature(name, Source::Link(field))
}

/// A figure of the workload.
const fn work(name: &'static str, field: Field<StepWork>) -> Feature {
    feature(name, Source::Work(field))
}

/// A figure of a product's matrix.
const fn matrix(name: &'static str, field: Field<MatrixFigures>) -> Feature {
    feature(name, Source::Matrix(field))
}

/// A figure of the device's part, which other parts do not have.
const fn part(
    name: &'static str,
    field: fn(&mut DevicePart) -> Option<&mut dyn Figure>,
) -> Feature {
    feature(name, Source::Part(field))
}

/// The same; a row without it means 0, so that rows of older programs stay valid.
const fn unless_zero(feature: Feature) -> Feature {
    Feature {
        unless_zero: true,
        ..feature
    }
}

const fn feature(name: &'static str, source: Source) -> Feature {
    Feature {
        name,
        source,
        unless_zero: false,
    }
}

/// A number that follows from the kept ones.
const fn counted(name: &'static str, formula: fn(&Facts) -> Option<f64>) -> Feature {
    feature(name, Source::Counted(formula))
}

/// Seconds of a term of the prior, or of what the prior leaves out, as a part of the
/// prior's total.
const fn bound(name: &'static str, formula: fn(&Facts) -> Option<f64>) -> Feature {
    feature(name, Source::Bound(formula))
}

/// Seconds of a term of a grid's step on cores, as a part of the prior's total.
const fn summand(name: &'static str, formula: fn(&Facts) -> Option<f64>) -> Feature {
    feature(name, Source::Summand(formula))
}
