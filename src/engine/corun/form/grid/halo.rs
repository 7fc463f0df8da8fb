//! What moves at a barrier: units that change hands, and the halos of held ranges,
//! which neighbours have computed.

use std::ops::Range;

use super::{Arrivals, GridForm};
use crate::engine::corun::context::{Context, MAIN, Purpose};
use crate::engine::corun::layout::{Layout, without};
use crate::engine::corun::{CorunError, HALO, MOVE};

impl GridForm<'_> {
    /// Brings units that a device no longer holds to host memory, and writes units
    /// that it holds from now on, and its halos, into its ring.
    pub(super) fn exchange(
        &mut self,
        context: &mut Context,
        before: &Layout,
        step: u32,
    ) -> Result<Arrivals, CorunError> {
        let (host, halo) = (self.host, self.grid.halo());
        let mut arrivals = Arrivals::default();
        for (device, own) in self.devices.iter_mut() {
            let (old, new) = (&before.held[device], context.layout.held[device].clone());
            if !context.devices[device].alive || *old == new {
                continue;
            }
            let purpose = Purpose::new(device, MAIN, step, MOVE);
            for units in leaving(old, &new, halo) {
                let reads = host.reads(units.clone(), 0, &own.held.present());
                arrivals.add(&units, context.submit_each(purpose, reads, &[])?);
            }
        }
        for (device, own) in self.devices.iter_mut() {
            let (old, new) = (&before.held[device], context.layout.held[device].clone());
            if !context.devices[device].alive {
                continue;
            }
            if *old != new {
                own.hold(new.clone());
            }
            if new.is_empty() {
                continue;
            }
            let ring = own.held.present();
            for (label, ranges) in [
                (MOVE, without(&new, old)),
                (HALO, halos(&new, halo, host.units)),
            ] {
                for units in ranges.into_iter().filter(|units| !units.is_empty()) {
                    let wait = arrivals.of(&units);
                    let purpose = Purpose::new(device, MAIN, step, label);
                    context.submit_each(purpose, host.writes(units, &ring), &wait)?;
                }
            }
        }
        Ok(arrivals)
    }
}

/// What a device that held `old` and is to hold `new` brings to host memory: the
/// units that it no longer holds, and those that have become an edge of what it
/// still holds.
fn leaving(old: &Range<u64>, new: &Range<u64>, halo: u64) -> [Range<u64>; 2] {
    let [mut low, mut high] = without(old, new);
    let stay = old.start.max(new.start)..old.end.min(new.end);
    if !low.is_empty() && !stay.is_empty() {
        low.end = stay.end.min(stay.start + halo);
    }
    if !high.is_empty() {
        let edge = stay.start.max(stay.end.saturating_sub(halo));
        high.start = match low.is_empty() {
            true => edge,
            false => edge.max(low.end),
        };
    }
    [low, high]
}

/// The units below and above a range that it reads.
pub(super) fn halos(units: &Range<u64>, halo: u64, all: u64) -> [Range<u64>; 2] {
    let below = units.start.saturating_sub(halo)..units.start;
    [below, units.end..all.min(units.end + halo)]
}

/// The edges of a range that others read: as many of its first and last units as
/// a halo has, where there are units beyond.
pub(super) fn edges(units: &Range<u64>, halo: u64, all: u64) -> [Range<u64>; 2] {
    let low = match units.start {
        0 => 0..0,
        start => start..units.end.min(start + halo),
    };
    let high = match units.end == all {
        true => all..all,
        false => low.end.max(units.end.saturating_sub(halo)).max(units.start)..units.end,
    };
    [low, high]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::engine::corun::layout::length;

    proptest! {
        /// After a move the host has all that another device or the pool reads.
        #[test]
        fn what_others_read_is_brought_to_the_host(
            a in 0u64..20, b in 0u64..20, c in 0u64..20, d in 0u64..20, halo in 1u64..4,
        ) {
            let (old, new) = (a.min(b)..a.max(b), c.min(d)..c.max(d));
            let before = edges(&old, halo, 20);
            let read = leaving(&old, &new, halo);
            prop_assert!(length(&read[0]) == 0 || length(&read[1]) == 0 || read[0].end <= read[1].start);
            let has = |unit: u64| {
                !old.contains(&unit) || before.iter().chain(&read).any(|r| r.contains(&unit))
            };
            for unit in (0..20).filter(|unit| !new.contains(unit)) {
                prop_assert!(has(unit), "{unit}: {old:?} to {new:?}");
            }
            for unit in edges(&new, halo, 20).into_iter().flatten() {
                prop_assert!(has(unit), "{unit} at the edge: {old:?} to {new:?}");
            }
            for range in &read {
                prop_assert!(range.is_empty() || old.start <= range.start && range.end <= old.end);
            }
        }
    }
}
