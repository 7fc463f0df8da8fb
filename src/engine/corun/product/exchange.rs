//! What moves at a barrier: units that change hands, and what each device needs
//! of the vector that others have computed.

use std::ops::Range;

use super::super::drive::{Drive, For};
use super::super::layout::{Layout, length, without};
use super::super::moves::Home;
use super::super::place::{Lane, Place};
use super::super::{CorunError, HALO, MOVE};
use super::store::{Slots, Store, runs};
use super::{read, write};
use crate::runtime::{Command, EventId};
use crate::workload::spmv::ENDS;

impl Drive<'_> {
    /// A living device's store of a product.
    pub(super) fn store(&mut self, device: usize) -> Option<&mut Store> {
        match &mut self.places[device] {
            Place::Store(store) if self.alive[device] => Some(store),
            _ => None,
        }
    }

    /// Writes units that a device now holds besides, and gives everyone what it
    /// reads of the present vector. `home` gets the events after which the
    /// host's vector is complete.
    pub(in super::super) fn relocate_product(
        &mut self,
        before: &Layout,
        step: u32,
        home: &mut Home,
    ) -> Result<(), CorunError> {
        if self.product().is_none() {
            return Ok(());
        }
        let changed = *before != self.layout;
        if changed && self.iterates() {
            for device in 0..self.places.len() {
                self.send_all(device, step, home)?;
            }
        }
        for device in 0..self.places.len() {
            self.take_units(device, step)?;
        }
        if !self.iterates() {
            return Ok(());
        }
        if changed {
            self.find_parts();
        }
        for device in 0..self.places.len() {
            self.receive(device, before, step, home)?;
        }
        Ok(())
    }

    /// Reads all that a device has computed of the present vector: whoever it
    /// goes to may need any of it.
    fn send_all(&mut self, device: usize, step: u32, home: &mut Home) -> Result<(), CorunError> {
        let vector = self.grids[self.present];
        let (units, number) = (self.workload.units(), self.number());
        let Some(store) = self.store(device).filter(|store| !store.valid.is_empty()) else {
            return Ok(());
        };
        let (whose, places) = (whose(device, store.main, step, MOVE), store.valid.clone());
        let command = read(
            store.x(),
            vector,
            places.start * number,
            length(&places) * number,
        );
        let event = self.submit(whose, command, places, &[])?;
        home.0.extend(event.map(|event| (0..units, event)));
        Ok(())
    }

    /// Writes the units that a device holds from now on and did not before.
    fn take_units(&mut self, device: usize, step: u32) -> Result<(), CorunError> {
        let new = self.layout.held[device].clone();
        let Some(store) = self.store(device) else {
            return Ok(());
        };
        let old = store.units();
        store.hold(new.clone());
        let (whose, slots) = (whose(device, store.main, step, MOVE), store.slots);
        for units in without(&new, &old) {
            self.write_units(whose, units, &slots)?;
        }
        Ok(())
    }

    /// Writes units' entries and rows into slots.
    pub(super) fn write_units(
        &mut self,
        whose: For,
        units: Range<u64>,
        slots: &Slots,
    ) -> Result<(), CorunError> {
        for command in self.writes_of(&units, slots) {
            self.submit(whose, command, units.clone(), &[])?;
        }
        Ok(())
    }

    /// These writes.
    pub(super) fn writes_of(&self, units: &Range<u64>, slots: &Slots) -> Vec<Command> {
        let Some(product) = self.product() else {
            return Vec::new();
        };
        let (spmv, number) = (product.spmv, product.spmv.number());
        let arrangement = spmv.arrangement();
        let entries = runs(units, slots.entries, |unit| {
            arrangement.unit_entries()[unit as usize]
        });
        let rows = runs(units, slots.rows, |unit| {
            arrangement.unit_rows()[unit as usize].into()
        });
        let mut commands = Vec::new();
        for (runs, from, to, each) in [
            (&entries, product.columns, slots.columns, 4),
            (&entries, product.values, slots.values, number),
            (&rows, product.ends, slots.ends, ENDS),
        ] {
            for (run, at) in runs {
                let bytes = length(run) * each;
                commands.push(write(from, run.start * each, to, at * each, bytes));
            }
        }
        commands
    }

    /// Finds what each device reads that it does not compute, and what others
    /// read of what it does.
    fn find_parts(&mut self) {
        let Some(product) = self.product() else {
            return;
        };
        let readers = product.spmv.readers();
        let places = 0..u64::from(product.spmv.matrix().columns());
        let held = &self.layout.held;
        let streams = |device: usize| match length(&self.layout.segments[device]) {
            0 => 0..0,
            _ => self.layout.pool.clone(),
        };
        let parts: Vec<_> = (0..self.places.len())
            .map(|device| {
                let own = product.own_rows(&held[device]);
                let reads = [held[device].clone(), streams(device)];
                let outside = [places.start..own.start.min(places.end), own.end..places.end];
                let receives: Vec<_> = (outside.iter())
                    .flat_map(|part| readers.read(&reads, part))
                    .collect();
                let mut others: Vec<Range<u64>> = (held.iter().enumerate())
                    .filter(|(other, _)| *other != device)
                    .map(|(_, units)| units.clone())
                    .collect();
                others.push(self.layout.pool.clone());
                (receives, readers.read(&others, &own))
            })
            .collect();
        for (device, (receives, sends)) in parts.into_iter().enumerate() {
            if let Some(store) = self.store(device) {
                store.receives = receives;
                store.sends = sends;
            }
        }
    }

    /// Gives a device its parts of the present vector.
    fn receive(
        &mut self,
        device: usize,
        before: &Layout,
        step: u32,
        home: &Home,
    ) -> Result<(), CorunError> {
        let own = self
            .product()
            .map(|p| p.own_rows(&self.layout.held[device]));
        let stays = *before == self.layout;
        let wait: Vec<EventId> = home.0.iter().map(|(_, event)| *event).collect();
        let Some((store, own)) = self.store(device).zip(own) else {
            return Ok(());
        };
        if store.complete {
            return Ok(());
        }
        let whose = whose(device, store.main, step, HALO);
        let mut parts = store.receives.clone();
        if !stays {
            // What it takes over was computed by someone else.
            let kept = store.valid.start.max(own.start)..store.valid.end.min(own.end);
            parts.extend(without(&own, &kept));
        }
        let events = self.write_vector(whose, parts, &wait)?;
        if let Some(store) = self.store(device) {
            store.ready = events;
        }
        Ok(())
    }

    /// Gives a device all of the present vector that it has not got, for units
    /// that nobody expected there. Returns the events to wait for.
    pub(super) fn complete_vector(
        &mut self,
        whose: For,
        wait: &[EventId],
    ) -> Result<Vec<EventId>, CorunError> {
        let Some(places) = self.product().map(|p| p.spmv.matrix().columns()) else {
            return Ok(Vec::new());
        };
        let own = self
            .product()
            .map(|p| p.own_rows(&self.layout.held[whose.device]));
        let Some((store, own)) = self.store(whose.device).zip(own) else {
            return Ok(Vec::new());
        };
        if store.complete {
            return Ok(store.ready.clone());
        }
        store.complete = true;
        let mut had = store.receives.clone();
        had.push(own);
        had.sort_by_key(|part| part.start);
        let (mut parts, mut at) = (Vec::new(), 0);
        for part in had.iter().filter(|part| !part.is_empty()) {
            parts.push(at..part.start);
            at = at.max(part.end);
        }
        parts.push(at..u64::from(places));
        let events = self.write_vector(whose, parts, wait)?;
        let Some(store) = self.store(whose.device) else {
            return Ok(events);
        };
        store.ready.extend(events);
        Ok(store.ready.clone())
    }

    /// Writes parts of the host's present vector to a device's.
    fn write_vector(
        &mut self,
        whose: For,
        parts: Vec<Range<u64>>,
        wait: &[EventId],
    ) -> Result<Vec<EventId>, CorunError> {
        let (vector, number) = (self.grids[self.present], self.number());
        let mut events = Vec::new();
        for part in parts.into_iter().filter(|part| !part.is_empty()) {
            let Some(x) = self.store(whose.device).map(|store| store.x()) else {
                break;
            };
            let at = part.start * number;
            let command = write(vector, at, x, at, length(&part) * number);
            events.extend(self.submit(whose, command, part, wait)?);
        }
        Ok(events)
    }

    /// Bytes of a number.
    pub(super) fn number(&self) -> u64 {
        self.product().map_or(1, |product| product.spmv.number())
    }
}

/// Commands of no job on a device's lane.
pub(super) fn whose(device: usize, lane: Lane, step: u32, label: &'static str) -> For {
    For {
        device,
        lane,
        job: None,
        step,
        label,
    }
}
