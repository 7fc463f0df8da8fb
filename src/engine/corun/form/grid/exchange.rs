//! Moves what [`super::moves`] says, and hands edges over to the devices that read them.

use std::ops::Range;

use super::moves::{Copies, Situation, common, fit, halos};
use super::{Arrivals, GridForm};
use crate::codelet::Memory;
use crate::corun::context::{Context, MAIN, Purpose};
use crate::corun::layout::Layout;
use crate::corun::{CorunError, HALO, MOVE};
use crate::runtime::{Command, EventId, Location, Rows};
use crate::workload::Ring;

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
