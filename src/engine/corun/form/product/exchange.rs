//! What moves: units that change hands, and what each device needs of the vector that
//! others have computed. That comes from the memory of the device that has computed it
//! where a direct way leads from there, as soon as it is computed, and otherwise through
//! host memory at the barrier.

use std::ops::Range;

use super::host::HostProduct;
use super::store::Store;
use super::{Arrivals, ProductForm};
use crate::corun::context::{Context, MAIN, Purpose, READS};
use crate::corun::layout::{Layout, length, without};
use crate::corun::{CorunError, HALO, MOVE};
use crate::runtime::{Command, EventId, Location, Rows};

impl ProductForm<'_> {
    /// Writes units that a device now holds besides, and gives everyone what it
    /// reads of the present vector.
    pub(super) fn exchange(
        &mut self,
        context: &mut Context,
        before: &Layout,
        step: u32,
    ) -> Result<Arrivals, CorunError> {
        let host = &self.host;
        let (changed, iterates) = (*before != context.layout, host.spmv.iterates());
        let mut arrivals = Arrivals::default();
        // Whoever a device's numbers go to may need any of them.
        for (device, store) in self.stores.iter_mut() {
            let own = context.devices[device].alive && !store.valid.is_empty();
            if changed && iterates && own {
                let purpose = Purpose::new(device, MAIN, step, MOVE);
                let command = host.read_numbers(&store.valid, store.x(), host.x());
                let event = context.submit(purpose, command, store.valid.clone(), &[])?;
                arrivals.add(&context.units, event);
            }
        }
        for (device, store) in self.stores.iter_mut() {
            if !context.devices[device].alive {
                continue;
            }
            let (old, new) = (store.units(), context.layout.held[device].clone());
            store.hold(new.clone());
            let purpose = Purpose::new(device, MAIN, step, MOVE);
            for units in without(&new, &old) {
                for command in host.write_units(&units, &store.slots) {
                    context.submit(purpose, command, units.clone(), &[])?;
                }
            }
        }
        if !iterates {
            return Ok(arrivals);
        }
        for (device, store) in self.stores.iter_mut() {
            if !context.devices[device].alive {
                continue;
            }
            if changed {
                parts(host, store, context, device);
            }
            receive(host, store, context, (device, step), changed, &arrivals)?;
        }
        Ok(arrivals)
    }

    /// Copies to each device what it reads of others' results, where a direct way leads.
    pub(super) fn send_results(
        &mut self,
        context: &mut Context,
        step: u32,
    ) -> Result<(), CorunError> {
        let number = self.host.spmv.number();
        let mut sources = Vec::new();
        for (device, store) in self.stores.iter_mut() {
            sources.extend(store.launched.map(|event| (device, store.y(), event)));
        }
        for (device, store) in self.stores.iter_mut() {
            let purpose = Purpose::new(device, READS, step, HALO);
            for (from, part) in store.from_peers.clone() {
                let source = sources.iter().find(|(source, ..)| *source == from);
                // Without a launch, its device is lost, and the step is void.
                let Some((_, source, event)) = source.filter(|_| context.devices[device].alive)
                else {
                    continue;
                };
                let at = part.start * number;
                let command = Command::Copy {
                    from: Location::device(*source, at),
                    to: Location::device(store.y(), at),
                    rows: Rows::one((part.end - part.start) * number),
                };
                context.submit(purpose, command, part, &[*event])?;
            }
        }
        Ok(())
    }
}

/// Notes what a device reads of the vector that it does not compute, and what is read in
/// host memory of what it does.
fn parts(host: &HostProduct, store: &mut Store, context: &Context, device: usize) {
    let (readers, layout) = (host.spmv.readers(), &context.layout);
    let places = 0..u64::from(host.spmv.matrix().columns());
    let held = &layout.held;
    let streams = match length(&layout.segments[device]) {
        0 => 0..0,
        _ => layout.pool.clone(),
    };
    let own = host.own_rows(&held[device]);
    let reads = [held[device].clone(), streams];
    let mut outside = vec![places.start..own.start.min(places.end), own.end..places.end];
    store.from_peers.clear();
    for (peer, units) in held.iter().enumerate() {
        let rows = host.own_rows(units);
        if peer != device && !rows.is_empty() && context.is_direct(peer, device) {
            let parts = readers.read(&reads, &rows).into_iter();
            store.from_peers.extend(parts.map(|part| (peer, part)));
            outside = outside
                .iter()
                .flat_map(|part| without(part, &rows))
                .collect();
        }
    }
    store.receives = (outside.iter().filter(|part| !part.is_empty()))
        .flat_map(|part| readers.read(&reads, part))
        .collect();
    let mut others: Vec<Range<u64>> = (held.iter().enumerate())
        .filter(|(other, _)| *other != device && !context.is_direct(device, *other))
        .map(|(_, units)| units.clone())
        .collect();
    others.push(layout.pool.clone());
    others.extend(host.peers.iter().cloned());
    store.sends = readers.read(&others, &own);
}

/// Gives a device its parts of the present vector.
fn receive(
    host: &HostProduct,
    store: &mut Store,
    context: &mut Context,
    (device, step): (usize, u32),
    changed: bool,
    arrivals: &Arrivals,
) -> Result<(), CorunError> {
    if store.complete {
        return Ok(());
    }
    let mut parts = store.receives.clone();
    if changed {
        parts.extend(store.from_peers.iter().map(|(_, part)| part.clone()));
        // What it takes over was computed by someone else.
        let own = host.own_rows(&context.layout.held[device]);
        let kept = store.valid.start.max(own.start)..store.valid.end.min(own.end);
        parts.extend(without(&own, &kept));
    }
    let purpose = Purpose::new(device, MAIN, step, HALO);
    store.ready = write_vector(host, store, context, purpose, parts, &arrivals.all())?;
    Ok(())
}

/// Gives a device all of the present vector that it has not got, for units that
/// nobody expected there. Returns the events to wait for.
pub(super) fn complete_vector(
    host: &HostProduct,
    store: &mut Store,
    context: &mut Context,
    purpose: Purpose,
    wait: &[EventId],
) -> Result<Vec<EventId>, CorunError> {
    if store.complete {
        return Ok(store.ready.clone());
    }
    store.complete = true;
    let mut had = store.receives.clone();
    had.extend(store.from_peers.iter().map(|(_, part)| part.clone()));
    had.push(host.own_rows(&context.layout.held[purpose.device]));
    had.sort_by_key(|part| part.start);
    let (mut parts, mut at) = (Vec::new(), 0);
    for part in had.iter().filter(|part| !part.is_empty()) {
        parts.push(at..part.start);
        at = at.max(part.end);
    }
    parts.push(at..u64::from(host.spmv.matrix().columns()));
    let events = write_vector(host, store, context, purpose, parts, wait)?;
    store.ready.extend(events);
    Ok(store.ready.clone())
}

/// Writes parts of the host's present vector to a device's.
fn write_vector(
    host: &HostProduct,
    store: &Store,
    context: &mut Context,
    purpose: Purpose,
    parts: Vec<Range<u64>>,
    wait: &[EventId],
) -> Result<Vec<EventId>, CorunError> {
    let writes = parts
        .into_iter()
        .filter(|part| !part.is_empty())
        .map(|part| (part.clone(), host.write_numbers(&part, store.x())));
    context.submit_each(purpose, writes.collect(), wait)
}
