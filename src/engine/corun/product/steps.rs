//! A step of a product: launches on what is held, chunks, and at the barrier
//! what the host does of it.

use std::ops::Range;

use super::super::drive::{Drive, For, Kept};
use super::super::layout::length;
use super::super::place::Place;
use super::super::step::Piece;
use super::super::{CorunError, EDGE, GATHER, HELD, PROBE};
use super::exchange::whose;
use super::{read, squares, total};
use crate::codelet::Precision;
use crate::runtime::{BufferId, Command, EventId, RuntimeError};
use crate::workload::spmv::Placed;

/// A store is probed with this part of the units: it is filled with them in any
/// case, but for slow devices.
const PROBED_PART: u64 = 8;

impl Drive<'_> {
    /// Launches what devices hold.
    pub(in super::super) fn launch_stores(&mut self, step: u32) -> Result<(), CorunError> {
        for device in 0..self.places.len() {
            let units = self.layout.held[device].clone();
            if units.is_empty() || self.store(device).is_none() {
                continue;
            }
            let now = self.runtime.now();
            let job = self.ledger.job(device, None, units, now);
            self.launch_store(device, step, job)?;
        }
        Ok(())
    }

    /// Launches what a device holds, and reads what others need of the result.
    pub(in super::super) fn launch_store(
        &mut self,
        device: usize,
        step: u32,
        job: usize,
    ) -> Result<(), CorunError> {
        let Some(store) = self.store(device) else {
            return Ok(());
        };
        let (units, placed) = (store.units(), store.placed(&store.slots));
        let (main, reads) = (store.main, store.reads);
        let (y, sends) = (store.y(), store.sends.clone());
        let sums = store.sums;
        let held = For {
            job: Some(job),
            ..whose(device, main, step, HELD)
        };
        let Some(after) = self.launch_product(held, units.clone(), &placed, &[])? else {
            return Ok(());
        };
        if !self.iterates() {
            return Ok(());
        }
        let edges = whose(device, reads, step, EDGE);
        let (next, number) = (self.grids[1 - self.present], self.number());
        for part in sends {
            let command = read(y, next, part.start * number, length(&part) * number);
            self.submit(edges, command, part, &[after])?;
        }
        self.read_sums(edges, units, sums, &[after])
    }

    fn read_sums(
        &mut self,
        whose: For,
        units: Range<u64>,
        from: BufferId,
        wait: &[EventId],
    ) -> Result<(), CorunError> {
        if let Some(command) = self.sums_of(&units, from) {
            self.submit(whose, command, units, wait)?;
        }
        Ok(())
    }

    /// The read of what units add up to.
    fn sums_of(&self, units: &Range<u64>, from: BufferId) -> Option<Command> {
        let (to, number) = (self.product()?.sums, self.number());
        let (at, bytes) = (units.start * number, length(units) * number);
        Some(read(from, to, at, bytes))
    }

    fn launch_product(
        &mut self,
        whose: For,
        units: Range<u64>,
        placed: &Placed,
        wait: &[EventId],
    ) -> Result<Option<EventId>, CorunError> {
        let Some(product) = self.product() else {
            return Ok(None);
        };
        let args = product.spmv.args(&units, placed, product.scale);
        self.launch(whose, units, args, wait)
    }

    /// The commands of a chunk: a launch in place, or writes, launch and reads.
    pub(in super::super) fn product_chunk(
        &mut self,
        piece: Piece,
        units: Range<u64>,
        wait: &[EventId],
    ) -> Result<(), CorunError> {
        let (x, y) = (self.grids[self.present], self.grids[1 - self.present]);
        let Some(product) = self.product() else {
            return Err(self.misplaced(piece.device));
        };
        let (on_host, rows) = (product.on_host(x, y), product.own_rows(&units));
        let scale = product.scale;
        let pieces = u64::from(product.spmv.arrangement().pieces());
        let lane = match &self.places[piece.device] {
            Place::Host { lanes } => lanes[piece.lane],
            Place::Store(store) => store.streams[piece.lane].lane,
            Place::Own(_) | Place::Images(_) => return Err(self.misplaced(piece.device)),
        };
        let whose = For {
            device: piece.device,
            lane,
            job: piece.job,
            step: piece.step,
            label: piece.label,
        };
        let Place::Store(store) = &self.places[piece.device] else {
            self.launch_product(whose, units, &on_host, wait)?;
            return Ok(());
        };
        let arrangement = product.spmv.arrangement();
        let entry = arrangement.unit_entries()[units.start as usize];
        let row = arrangement.unit_rows()[units.start as usize];
        let slots = store.streams[piece.lane].slots.from(entry, row.into());
        let (placed, result, sums) = (store.placed(&slots), store.y(), store.sums);
        let args = product.spmv.args(&units, &placed, scale);
        let mut ready = self.complete_vector(whose, wait)?;
        ready.retain(|event| self.ledger.is_pending(*event));
        let mut commands = self.writes_of(&units, &slots);
        if !ready.is_empty() {
            // Only the kernel waits for the vector.
            let writes = std::mem::take(&mut commands);
            self.submit_together(whose, writes, &units, &[])?;
        }
        commands.push(self.launch_of(&units, args));
        let number = self.number();
        if !rows.is_empty() {
            commands.push(read(result, y, rows.start * number, length(&rows) * number));
        }
        if units.start < pieces || self.iterates() {
            commands.extend(self.sums_of(&units, sums));
        }
        self.submit_together(whose, commands, &units, &ready)?;
        Ok(())
    }

    /// Writes what [`Self::probe_store`] computes: some of the last units, where
    /// a device of this kind begins and what it has stays. Enough of them that
    /// its kernel's start does not count, though `units` may be few. Returns
    /// them.
    pub(in super::super) fn write_store_probe(
        &mut self,
        device: usize,
        units: u64,
    ) -> Result<Range<u64>, CorunError> {
        let all = self.workload.units();
        let units = units.max(all / PROBED_PART).min(self.capacity[device]);
        let Some(store) = self.store(device).filter(|_| units > 0) else {
            return Ok(0..0);
        };
        let held = all - units..all;
        store.hold(held.clone());
        let (whose, slots) = (whose(device, store.main, 0, PROBE), store.slots);
        self.write_units(whose, held.clone(), &slots)?;
        Ok(held)
    }

    /// A probe of what a store holds.
    pub(in super::super) fn probe_store(
        &mut self,
        device: usize,
    ) -> Result<Option<usize>, CorunError> {
        let now = self.runtime.now();
        let Some(store) = self.store(device).filter(|s| !s.units().is_empty()) else {
            return Ok(None);
        };
        let (main, units, placed) = (store.main, store.units(), store.placed(&store.slots));
        let job = self.ledger.job(device, None, units.clone(), now);
        let whose = For {
            job: Some(job),
            ..whose(device, main, 0, PROBE)
        };
        self.launch_product(whose, units, &placed, &[])?;
        Ok(Some(job))
    }

    /// What was computed becomes the present vector, if it is one.
    pub(in super::super) fn turn_vectors(&mut self) {
        if !self.iterates() {
            return;
        }
        self.present = 1 - self.present;
        for device in 0..self.places.len() {
            let valid = self
                .product()
                .map(|p| p.own_rows(&self.layout.held[device]));
            if let Some((store, valid)) = self.store(device).zip(valid) {
                store.turn();
                store.valid = valid;
            }
        }
    }

    /// After a step of an iteration: the long rows of the vector, and its
    /// length.
    pub(in super::super) fn end_iteration(&mut self) -> Result<(), CorunError> {
        if !self.iterates() {
            return Ok(());
        }
        let Some(squares) = self.add_pieces(self.present)? else {
            return Ok(());
        };
        if let Kept::Product(product) = &mut self.kept {
            product.length = Some(squares.sqrt());
            product.scale = product.spmv.scale_of(squares);
        }
        Ok(())
    }

    /// Adds the pieces of long rows, and writes them into a vector. Returns the
    /// sum of the squares of the whole vector; without meaning where nobody has
    /// computed squares, and `None` in a simulation without data.
    fn add_pieces(&mut self, vector: usize) -> Result<Option<f64>, CorunError> {
        let Kept::Product(product) = &self.kept else {
            return Ok(None);
        };
        let (spmv, number) = (product.spmv, product.spmv.number() as usize);
        let arrangement = spmv.arrangement();
        let sums = match self.runtime.host_bytes(product.sums) {
            Err(RuntimeError::NoData) => return Ok(None),
            other => &other?[..arrangement.units() as usize * number],
        };
        let (pieces, units) = sums.split_at(arrangement.pieces() as usize * number);
        let mut long: Vec<f64> = Vec::new();
        for (_, own) in arrangement.long_rows() {
            let own = &pieces[own.start as usize * number..own.end as usize * number];
            long.push(total(spmv, own, |sum| sum));
        }
        let mut whole = total(spmv, units, |squares| squares);
        let long_bytes = &mut self.runtime.host_bytes(self.grids[vector])?[..long.len() * number];
        match spmv.options().precision {
            Precision::F64 => long_bytes.copy_from_slice(bytemuck::cast_slice(&long)),
            Precision::F32 => {
                let long: Vec<f32> = long.iter().map(|sum| *sum as f32).collect();
                long_bytes.copy_from_slice(bytemuck::cast_slice(&long));
            }
        }
        whole += squares(spmv, long_bytes);
        Ok(Some(whole))
    }

    /// Reads the result from where it was computed.
    pub(in super::super) fn gather_product(&mut self, step: u32) -> Result<(), CorunError> {
        let iterates = self.iterates();
        for device in 0..self.places.len() {
            let rows = self
                .product()
                .map(|p| p.own_rows(&self.layout.held[device]));
            let pieces = self.product().map_or(0, |p| p.spmv.arrangement().pieces());
            let Some((store, rows)) = self.store(device).zip(rows) else {
                continue;
            };
            let (units, sums) = (store.units(), store.sums);
            if units.is_empty() {
                continue;
            }
            let (from, to) = match iterates {
                true => (store.x(), self.present),
                false => (store.y(), 1),
            };
            let Some(reads) = self.store(device).map(|store| store.reads) else {
                continue;
            };
            let (whose, number) = (whose(device, reads, step, GATHER), self.number());
            if !rows.is_empty() {
                let at = rows.start * number;
                let command = read(from, self.grids[to], at, length(&rows) * number);
                self.submit(whose, command, units.clone(), &[])?;
            }
            let cut = units.start..units.end.min(pieces.into());
            if !iterates && !cut.is_empty() {
                self.read_sums(whose, cut, sums, &[])?;
            }
        }
        Ok(())
    }

    /// Completes a gathered result: a product's long rows. An iteration's were
    /// added up in its last step.
    pub(in super::super) fn complete_product(&mut self) -> Result<(), CorunError> {
        match self.product() {
            Some(product) if !product.spmv.iterates() => self.add_pieces(1).map(drop),
            _ => Ok(()),
        }
    }
}
