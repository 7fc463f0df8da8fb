//! What moves at a barrier, and from where: units that change hands, and the halos of held
//! ranges, which neighbours have computed. Pure arithmetic on ranges.
//!
//! A device gets units of the present version from the memory of another one where a direct
//! way leads from there, and through host memory otherwise. Host memory gets what is read
//! from it, if it is not there: the pool with its halo, and what goes through it.

use std::ops::Range;

use super::{Arrivals, GridForm};
use crate::codelet::Memory;
use crate::corun::context::{Context, MAIN, Purpose};
use crate::corun::layout::{Layout, without};
use crate::corun::{CorunError, HALO, MOVE};
use crate::runtime::{Command, EventId, Location, Rows};
use crate::workload::Ring;

/// Who has units of the present version in memory of its own.
#[derive(Clone, Debug, Default)]
pub(super) struct Copies {
    /// Units that came from other devices directly: halos.
    pub received: Vec<Range<u64>>,
    /// Units of its own that host memory has, too: edges.
    pub published: Vec<Range<u64>>,
}

/// Units that a device gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Need {
    pub units: Range<u64>,
    /// The device whose memory they come from; `None`: host memory.
    pub from: Option<usize>,
    /// Whether it holds them from now on; else they are its halo.
    pub is_own: bool,
}

/// What moves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Moves {
    /// By device: what it brings to host memory.
    pub to_host: Vec<Vec<Range<u64>>>,
    /// By device: what it gets.
    pub to_device: Vec<Vec<Need>>,
}

/// What the moves follow from.
struct Situation<'a> {
    /// Where the present version was computed, and where the next one will be.
    pub before: &'a Layout,
    pub after: &'a Layout,
    /// Units on either side that a unit reads, and those of the whole grid.
    pub halo: u64,
    pub units: u64,
    /// By device.
    pub copies: &'a [Copies],
    /// Whether host memory has all of the present version.
    pub host_has_all: bool,
}

impl Situation<'_> {
    /// What moves, where units go from one device to another one directly if `is_direct`,
    /// and to devices that are `there`.
    pub fn moves(
        &self,
        there: impl Fn(usize) -> bool,
        is_direct: impl Fn(usize, usize) -> bool,
    ) -> Moves {
        let devices = self.after.held.len();
        let mut moves = Moves {
            to_host: vec![Vec::new(); devices],
            to_device: vec![Vec::new(); devices],
        };
        let mut from_host: Vec<Range<u64>> = self.of_pool().into_iter().collect();
        for device in (0..devices).filter(|device| there(*device)) {
            let (old, new) = (&self.before.held[device], &self.after.held[device]);
            let [low, high] = without(new, old);
            let [below, above] = match new.is_empty() {
                true => [0..0, 0..0],
                false => halos(new, self.halo, self.units),
            };
            let mut has = self.copies[device].received.clone();
            has.push(old.clone());
            let needed = [(low, true), (high, true), (below, false), (above, false)];
            for (units, is_own) in needed {
                for units in minus(units, &has) {
                    let mut rest = vec![units.clone()];
                    for from in (0..devices).filter(|from| is_direct(*from, device)) {
                        let units = common(&units, &self.before.held[from]);
                        if !units.is_empty() {
                            rest = rest.into_iter().flat_map(|r| without(&r, &units)).collect();
                            rest.retain(|units| !units.is_empty());
                            let from = Some(from);
                            moves.to_device[device].push(Need {
                                units,
                                from,
                                is_own,
                            });
                        }
                    }
                    for units in rest {
                        from_host.push(units.clone());
                        moves.to_device[device].push(Need {
                            units,
                            from: None,
                            is_own,
                        });
                    }
                }
            }
        }
        if !self.host_has_all {
            for (device, old) in self.before.held.iter().enumerate() {
                let mut known = self.copies[device].published.clone();
                for units in &from_host {
                    let read = minus(common(units, old), &known);
                    known.extend(read.iter().cloned());
                    moves.to_host[device].extend(read);
                }
            }
        }
        moves
    }

    /// What is read for the pool, if there is one.
    fn of_pool(&self) -> Option<Range<u64>> {
        let pool = &self.after.pool;
        let [below, above] = halos(pool, self.halo, self.units);
        (!pool.is_empty()).then_some(below.start..above.end)
    }
}

/// Whether others than devices with a direct way from `device` read an edge of what it
/// holds: the pool, other nodes, which have the units beyond those `here`, and devices
/// without such a way.
pub(super) fn is_read_in_host(
    (device, edge): (usize, &Range<u64>),
    (layout, here): (&Layout, &Range<u64>),
    (halo, units): (u64, u64),
    is_direct: impl Fn(usize) -> bool,
) -> bool {
    let reads = |reader: &Range<u64>| {
        let [below, above] = halos(reader, halo, units);
        !reader.is_empty() && !common(edge, &(below.start..above.end)).is_empty()
    };
    let (held, others) = (
        layout.held.iter().enumerate(),
        [0..here.start, here.end..units],
    );
    let mut devices = held.filter(|(other, _)| *other != device && !is_direct(*other));
    reads(&layout.pool) || others.iter().any(reads) || devices.any(|(_, units)| reads(units))
}

/// Whether a ring of so many slots has room for what a device held and for what it is to
/// hold, with its halos, in slots of their own.
fn fit(slots: u64, old: &Range<u64>, new: &Range<u64>, halo: u64) -> bool {
    if old.is_empty() || new.is_empty() {
        return true;
    }
    let start = old.start.min(new.start.saturating_sub(halo));
    old.end.max(new.end + halo) - start <= slots
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

/// What two ranges have in common.
fn common(one: &Range<u64>, other: &Range<u64>) -> Range<u64> {
    let start = one.start.max(other.start);
    start..one.end.min(other.end).max(start)
}

/// The parts of a range outside all others.
fn minus(units: Range<u64>, others: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut rest = vec![units];
    for other in others {
        rest = rest.iter().flat_map(|r| without(r, other)).collect();
    }
    rest.retain(|units| !units.is_empty());
    rest
}

impl GridForm<'_> {
    /// Brings units that are read in host memory there, and units that a device holds from
    /// now on, and its halos, into its ring.
    pub(super) fn exchange(
        &mut self,
        context: &mut Context,
        before: &Layout,
        step: u32,
    ) -> Result<Arrivals, CorunError> {
        let (host, halo) = (self.host, self.beside.superstep);
        let after = context.layout.clone();
        let devices = after.held.len();
        let mut copies = vec![Copies::default(); devices];
        let mut fits = vec![true; devices];
        let mut rings = vec![None; devices];
        for (device, own) in self.devices.iter_mut() {
            copies[device] = std::mem::take(&mut own.copies);
            let (old, new) = (&before.held[device], &after.held[device]);
            fits[device] = fit(own.held.present().slots, old, new, halo);
            rings[device] = Some(own.held.present());
        }
        let situation = Situation {
            before,
            after: &after,
            halo,
            units: host.units,
            copies: &copies,
            host_has_all: host.has_all,
        };
        let is_there = |device: usize| context.devices[device].alive && rings[device].is_some();
        let moves = situation.moves(is_there, |from, to| {
            fits[from] && fits[to] && context.is_direct(from, to)
        });
        let mut arrivals = Arrivals::default();
        for (device, own) in self.devices.iter_mut() {
            let purpose = Purpose::new(device, MAIN, step, MOVE);
            for units in &moves.to_host[device] {
                if context.devices[device].alive {
                    let reads = host.reads(units.clone(), 0, &own.held.present());
                    arrivals.add(units, context.submit_each(purpose, reads, &[])?);
                }
            }
        }
        let mut leaving: Vec<Vec<EventId>> = vec![Vec::new(); devices];
        for (device, own) in self.devices.iter_mut() {
            if !context.devices[device].alive {
                continue;
            }
            let new = &after.held[device];
            if *new != before.held[device] {
                own.hold(new.clone());
            }
            let ring = own.held.present();
            for need in &moves.to_device[device] {
                let units = need.units.clone();
                let label = if need.is_own { MOVE } else { HALO };
                let purpose = Purpose::new(device, MAIN, step, label);
                match need.from.and_then(|from| Some((from, rings[from]?))) {
                    Some((from, source)) => {
                        let commands = copies_of(host.unit_bytes, units, &source, &ring);
                        leaving[from].extend(context.submit_each(purpose, commands, &[])?);
                    }
                    None => {
                        let wait = arrivals.of(&units);
                        context.submit_each(purpose, host.writes(units, &ring), &wait)?;
                    }
                }
            }
        }
        for (device, own) in self.devices.iter_mut() {
            own.leaving = std::mem::take(&mut leaving[device]);
            own.copies = std::mem::take(&mut copies[device]);
            let needs = moves.to_device[device].iter();
            let direct = needs.filter(|need| need.from.is_some());
            let received = direct.map(|need| need.units.clone());
            own.copies.received.extend(received);
        }
        Ok(arrivals)
    }

    /// Copies edges of the next version to the devices that read them, where a direct way
    /// leads. A device's own queue has these copies behind its launches, which read
    /// what they overwrite.
    pub(super) fn send_edges(
        &mut self,
        context: &mut Context,
        step: u32,
    ) -> Result<(), CorunError> {
        let (unit_bytes, all) = (self.host.unit_bytes, self.host.units);
        let halo = self.beside.superstep;
        let steps = self.supersteps.length(step);
        let held = context.layout.held.clone();
        let mut copied: Vec<Vec<EventId>> = vec![Vec::new(); held.len()];
        let mut sources = Vec::new();
        for (from, own) in self.devices.iter_mut() {
            if context.devices[from].alive && !own.edges.is_empty() {
                sources.push((from, own.held.next(steps), own.edges.clone()));
            }
        }
        for (device, own) in self.devices.iter_mut() {
            if held[device].is_empty() {
                continue;
            }
            let ring = own.held.next(steps);
            let purpose = Purpose::new(device, MAIN, step, HALO);
            for near in halos(&held[device], halo, all) {
                for (from, source, edges) in &sources {
                    let units = common(&near, &held[*from]);
                    if units.is_empty()
                        || !context.devices[device].alive
                        || !context.is_direct(*from, device)
                    {
                        continue;
                    }
                    let of = edges
                        .iter()
                        .filter(|(edge, _)| !common(edge, &units).is_empty());
                    let wait: Vec<EventId> = of.map(|(_, event)| *event).collect();
                    let commands = copies_of(unit_bytes, units.clone(), source, &ring);
                    copied[*from].extend(context.submit_each(purpose, commands, &wait)?);
                    own.next_copies.received.push(units);
                }
            }
        }
        // Devices that do not wait for a barrier may overwrite the edges before.
        for (device, own) in self.devices.iter_mut() {
            own.leaving = std::mem::take(&mut copied[device]);
        }
        Ok(())
    }
}

/// Copies of `units` from one device's ring to another one's.
fn copies_of(
    unit_bytes: u64,
    units: Range<u64>,
    from: &Ring,
    to: &Ring,
) -> Vec<(Range<u64>, Command)> {
    let (Memory::Device(source), Memory::Device(target)) = (from.memory, to.memory) else {
        return Vec::new();
    };
    let runs = from.runs(units).flat_map(|(run, _)| to.runs(run));
    let copy = |(run, slot): (Range<u64>, u64)| {
        let command = Command::Copy {
            from: Location::device(source, from.slot_of(run.start) * unit_bytes),
            to: Location::device(target, slot * unit_bytes),
            rows: Rows::one((run.end - run.start) * unit_bytes),
        };
        (run, command)
    };
    runs.map(copy).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use proptest::prelude::*;

    use super::*;

    const UNITS: u64 = 24;

    /// A pool, and what three devices hold.
    fn layout(cuts: &[u64]) -> Layout {
        let mut cuts: Vec<u64> = cuts.to_vec();
        cuts.sort_unstable();
        let [pool, first, second] = [cuts[0], cuts[1], cuts[2]];
        Layout {
            pool: 0..pool,
            segments: Vec::new(),
            held: vec![pool..first, first..second, second..UNITS],
        }
    }

    proptest! {
        /// Plays the moves on sets of units: each comes from where the present version is,
        /// and afterwards everybody has what the next step reads.
        #[test]
        fn everybody_gets_what_the_next_step_reads(
            old in proptest::collection::vec(0..=UNITS, 3),
            new in proptest::collection::vec(0..=UNITS, 3),
            ways in proptest::collection::vec(any::<bool>(), 9),
            halo in 1u64..4,
            host_has_all in any::<bool>(),
        ) {
            let (before, after) = (layout(&old), layout(&new));
            let is_direct = |from: usize, to: usize| from != to && ways[3 * from + to];
            // As after a step: edges are where they are read.
            let here = 0..UNITS;
            let mut copies = vec![Copies::default(); 3];
            let mut host: HashSet<u64> = before.pool.clone().collect();
            let mut devices: Vec<HashSet<u64>> =
                before.held.iter().map(|held| held.clone().collect()).collect();
            for device in 0..3 {
                let held = &before.held[device];
                for edge in edges(held, halo, UNITS) {
                    let read = is_read_in_host(
                        (device, &edge), (&before, &here), (halo, UNITS),
                        |to| is_direct(device, to),
                    );
                    if read && !edge.is_empty() && !held.is_empty() {
                        host.extend(edge.clone());
                        copies[device].published.push(edge);
                    }
                }
                for near in halos(held, halo, UNITS) {
                    for from in (0..3).filter(|from| is_direct(*from, device)) {
                        let units = common(&near, &before.held[from]);
                        if !held.is_empty() && !units.is_empty() {
                            devices[device].extend(units.clone());
                            copies[device].received.push(units);
                        }
                    }
                }
            }
            if host_has_all {
                host.extend(here.clone());
            }
            let situation = Situation {
                before: &before, after: &after, halo, units: UNITS, copies: &copies, host_has_all,
            };
            let moves = situation.moves(|_| true, is_direct);
            for (device, units) in moves.to_host.iter().enumerate() {
                let mut times: HashMap<u64, u32> = HashMap::new();
                for unit in units.iter().cloned().flatten() {
                    *times.entry(unit).or_default() += 1;
                    prop_assert!(before.held[device].contains(&unit));
                    host.insert(unit);
                }
                prop_assert!(times.values().all(|times| *times == 1), "{units:?}");
            }
            let had = devices.clone();
            for (device, needs) in moves.to_device.iter().enumerate() {
                for need in needs {
                    for unit in need.units.clone() {
                        match need.from {
                            Some(from) => {
                                prop_assert!(is_direct(from, device));
                                prop_assert!(before.held[from].contains(&unit));
                                prop_assert!(had[from].contains(&unit));
                            }
                            None => prop_assert!(host.contains(&unit), "{unit} {need:?}"),
                        }
                        prop_assert_eq!(need.is_own, after.held[device].contains(&unit));
                        devices[device].insert(unit);
                    }
                }
            }
            let read = |units: &Range<u64>| {
                let [below, above] = halos(units, halo, UNITS);
                if units.is_empty() { 0..0 } else { below.start..above.end }
            };
            for unit in read(&after.pool) {
                prop_assert!(host.contains(&unit), "{unit} of the pool");
            }
            for (has, held) in devices.iter().zip(&after.held) {
                for unit in read(held) {
                    prop_assert!(has.contains(&unit), "{unit} of {held:?}");
                }
            }
        }

        /// Slots of units that a device gets are not those of units that it had.
        #[test]
        fn what_fits_has_slots_of_its_own(
            a in 0u64..20, b in 0u64..20, c in 0u64..20, d in 0u64..20,
            halo in 1u64..4, slots in 1u64..40,
        ) {
            let (old, new) = (a.min(b)..a.max(b), c.min(d)..c.max(d));
            if fit(slots, &old, &new, halo) && !old.is_empty() && !new.is_empty() {
                let [below, above] = halos(&new, halo, u64::MAX);
                for got in (below.start..above.end).filter(|unit| !old.contains(unit)) {
                    for had in old.clone() {
                        prop_assert_ne!(got % slots, had % slots);
                    }
                }
            }
        }
    }

    #[test]
    fn neighbours_with_a_direct_way_need_no_host() {
        let both = layout(&[0, 12, UNITS]);
        let here = 0..UNITS;
        let read = |device: usize, edge: Range<u64>, direct: bool| {
            is_read_in_host((device, &edge), (&both, &here), (1, UNITS), |_| direct)
        };
        assert!(!read(0, 11..12, true) && !read(1, 12..13, true));
        assert!(read(0, 11..12, false) && read(1, 12..13, false));
        let pooled = layout(&[4, 12, UNITS]);
        let read = |device: usize, edge: Range<u64>, all: u64| {
            is_read_in_host((device, &edge), (&pooled, &here), (1, all), |_| true)
        };
        assert!(read(0, 4..5, UNITS), "the pool reads it");
        assert!(!read(0, 11..12, UNITS));
        assert!(
            !read(1, 23..24, UNITS) && read(1, 23..24, 30),
            "another node reads it"
        );
    }
}
