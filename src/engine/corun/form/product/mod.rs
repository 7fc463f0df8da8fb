//! A sparse matrix and its vectors. The matrix is in host memory and, unit by
//! unit, in the memory of the devices that compute it; vectors are whole
//! everywhere.
//!
//! `host` is what lies in host memory, and `store` a device's memory
//! and how that is divided. `exchange` has what moves between steps:
//! units that change hands and, where a result is the next step's vector, the
//! parts of it that others read. Here is what a step takes: launches, chunks,
//! results.
//!
//! At a barrier of an iteration the present vector in host memory has every
//! number that a unit reads which is not held, or which another device holds
//! than the number, to which no direct way leads from there. Each device has the
//! numbers of its own rows, except for rows cut into pieces, which the host adds up.

mod exchange;
mod host;
mod store;
mod sums;

use std::ops::Range;
use std::sync::atomic::AtomicBool;

pub use store::{ProductDivision, ProductEstimate, fixed_bytes, lacking};

use super::{Arrivals, Form, Later, OnDevices, Space, When, data, too_small};
use crate::corun::context::{Context, HELD_QUEUES, MAIN, Purpose, READS};
use crate::corun::layout::{Layout, length};
use crate::corun::memory::memory_limit;
use crate::corun::{CorunError, EDGE, GATHER, Options, VECTOR};
use crate::runtime::{DeviceId, HostMemoryId};
use crate::scope::RuntimeScope;
use crate::verify::Compared;
use crate::workload::spmv::{self, Spmv};
use host::HostProduct;
use store::Store;

/// A store is probed with this part of the units: it is filled with them in any
/// case, but for slow devices.
const PROBED_PART: u64 = 8;

/// A product in a run.
pub(super) struct ProductForm<'a> {
    host: HostProduct<'a>,
    stores: OnDevices<Store>,
}

impl<'a> ProductForm<'a> {
    /// Allocates the matrix and the vectors in host memory, and the devices'
    /// stores.
    pub fn open(
        runtime: &mut RuntimeScope,
        spmv: &'a Spmv,
        units: &Range<u64>,
        (options, lost): (&Options, &[bool]),
    ) -> Result<(Self, Vec<Space>), CorunError> {
        let host = HostProduct::open(runtime, spmv, units.clone())?;
        let (stores, spaces) = OnDevices::open(runtime, lost, |runtime, id, device| {
            let limit = memory_limit(device.memory, options.gpu_memory);
            let (largest, stream) = (device.max_allocation, options.stream);
            let division = ProductDivision::of_units(spmv, length(units), limit, largest, stream)
                .map_err(|needed| too_small(device, limit, needed))?;
            let store = Store::open(runtime, id, spmv, division)?;
            let space = Space {
                capacity: Some(division.held.units),
                slots: None,
                longest_chunk: Some(division.chunk.units),
                least_chunk: 1,
                held_queues: HELD_QUEUES,
                chunk_queues: store.streams.len(),
            };
            Ok((store, space))
        })?;
        Ok((Self { host, stores }, spaces))
    }
}

impl ProductForm<'_> {
    fn is_of(&self, form: spmv::Form) -> bool {
        self.host.spmv.options().form == form
    }
}

impl Form for ProductForm<'_> {
    /// An iteration needs every barrier: the host adds up the pieces of long rows
    /// and the vector's length.
    fn hands_over(&self) -> bool {
        true
    }

    fn runs_ahead(&self, _several: bool) -> bool {
        !self.host.spmv.iterates()
    }

    /// Writes the matrix once, and the first vector, here and on devices.
    fn fill(&mut self, context: &mut Context, later: Option<&Later>) -> Result<(), CorunError> {
        self.host.fill(&mut *context.runtime, later)?;
        for (device, store) in self.stores.iter_mut() {
            store.renew();
            if context.devices[device].alive {
                self.host.write_tables(context, store, device)?;
            }
        }
        context.drain()
    }

    fn rejoin(&mut self, context: &mut Context, device: usize) -> Result<(), CorunError> {
        let (host, id) = (&self.host, DeviceId(device));
        let runtime = &mut context.runtime;
        let renewed = (self.stores).renew(device, |store| {
            Store::open(runtime, id, host.spmv, store.division)
        })?;
        let Some(store) = renewed else {
            return Ok(());
        };
        host.write_tables(context, store, device)?;
        // The host's present vector of an iteration has gaps, where other devices have it.
        store.complete = !host.spmv.iterates();
        context.drain()
    }

    fn relocate(
        &mut self,
        context: &mut Context,
        before: &Layout,
        step: u32,
    ) -> Result<Arrivals, CorunError> {
        self.exchange(context, before, step)
    }

    /// Launches all that a device holds, and reads what others need of the result.
    fn launch(
        &mut self,
        context: &mut Context,
        purpose: Purpose,
        publish: bool,
    ) -> Result<bool, CorunError> {
        let host = &self.host;
        let store = self.stores.get(purpose.device)?;
        let units = store.units();
        let args = host.args(&units, &store.placed(&store.slots));
        let launched = context.submit_launch(purpose, units.clone(), args, &[])?;
        store.launched = launched;
        let Some(after) = launched.filter(|_| publish && host.spmv.iterates()) else {
            return Ok(false);
        };
        let edges = Purpose {
            queue: READS,
            label: EDGE,
            job: None,
            ..purpose
        };
        for part in store.sends.clone() {
            let command = host.read_numbers(&part, store.y(), host.y());
            context.submit(edges, command, part, &[after])?;
        }
        let sums = host.read_sums(&units, store.sums);
        context.submit(edges, sums, units, &[after])?;
        Ok(false)
    }

    fn hand_over(&mut self, context: &mut Context, step: u32) -> Result<(), CorunError> {
        match self.host.spmv.iterates() {
            true => self.send_results(context, step),
            false => Ok(()),
        }
    }

    fn chunk(
        &mut self,
        context: &mut Context,
        purpose: Purpose,
        units: Range<u64>,
        arrivals: &Arrivals,
    ) -> Result<(), CorunError> {
        let host = &self.host;
        let wait = arrivals.of(&units);
        let Some(store) = self.stores.find(purpose.device) else {
            let args = host.args(&units, &host.placed());
            context.submit_launch(purpose, units, args, &wait)?;
            return Ok(());
        };
        let arrangement = host.spmv.arrangement();
        let entry = arrangement.unit_entries()[units.start as usize];
        let row = arrangement.unit_rows()[units.start as usize];
        let slots = store.streams[purpose.queue - HELD_QUEUES].from(entry, row.into());
        let args = host.args(&units, &store.placed(&slots));
        let mut ready = exchange::complete_vector(host, store, context, purpose, &wait)?;
        ready.retain(|event| context.jobs.is_pending(*event));
        let mut commands = host.write_units(&units, &slots);
        if !ready.is_empty() {
            // Only the kernel waits for the vector.
            let writes = std::mem::take(&mut commands);
            context.submit_together(purpose, writes, &units, &[])?;
        }
        commands.push(context.launch(&units, args));
        let rows = host.own_rows(&units);
        if !rows.is_empty() {
            commands.push(host.read_numbers(&rows, store.y(), host.y()));
        }
        if units.start < u64::from(arrangement.pieces()) || host.spmv.iterates() {
            commands.push(host.read_sums(&units, store.sums));
        }
        context.submit_together(purpose, commands, &units, &ready)?;
        Ok(())
    }

    /// What an iteration computed becomes the present vector.
    fn turn(&mut self, context: &mut Context, _step: u32) -> Result<(), CorunError> {
        if !self.host.spmv.iterates() {
            return Ok(());
        }
        self.host.present = 1 - self.host.present;
        for (device, store) in self.stores.iter_mut() {
            if context.devices[device].alive {
                store.turn();
                store.valid = self.host.own_rows(&context.layout.held[device]);
            }
        }
        Ok(())
    }

    /// Numbers of rows that a unit has whole. Those of long rows all nodes add up.
    fn parts(&self, owner: &Range<u64>, reader: &Range<u64>, begins: bool) -> Vec<Range<u64>> {
        let spmv = self.host.spmv;
        if !spmv.iterates() {
            return Vec::new();
        }
        let own = self.host.own_rows(owner);
        let read = |within| spmv.readers().read(std::slice::from_ref(reader), &within);
        let mut parts = Vec::new();
        match begins {
            false => parts.extend(read(own)),
            true => {
                parts.push(0..self.host.long_rows);
                // It compares its first results with those of its own rows.
                let rows = self.host.own_rows(reader);
                let common = rows.start.max(own.start)..rows.end.min(own.end);
                match common.is_empty() {
                    true => parts.extend(read(own)),
                    false => {
                        parts.extend(read(own.start..common.start));
                        parts.push(common.clone());
                        parts.extend(read(common.end..own.end));
                    }
                }
            }
        }
        parts.retain(|part| !part.is_empty());
        let number = spmv.number();
        let bytes = parts
            .into_iter()
            .map(|part| part.start * number..part.end * number);
        bytes.collect()
    }

    /// Writes the vector here and on all devices.
    fn set_input(&mut self, context: &mut Context, numbers: &[f64]) -> Result<(), CorunError> {
        let host = &self.host;
        host.set_vector(&mut *context.runtime, numbers)?;
        let all = 0..u64::from(host.spmv.matrix().columns());
        for (device, store) in self.stores.iter_mut() {
            if context.devices[device].alive && !all.is_empty() {
                let purpose = Purpose::new(device, MAIN, 0, VECTOR);
                let write = host.write_numbers(&all, store.x());
                context.submit(purpose, write, all.clone(), &[])?;
            }
        }
        context.drain()
    }

    fn present(&self) -> Option<(HostMemoryId, u64)> {
        Some((self.host.result(), 0))
    }

    fn publish(&mut self, readers: Vec<Range<u64>>) {
        self.host.peers = readers;
    }

    fn sums(&self, context: &mut Context, when: When) -> Result<Option<Vec<u8>>, CorunError> {
        self.host.own_sums(&mut *context.runtime, when)
    }

    fn add_up(
        &mut self,
        context: &mut Context,
        when: When,
        others: &[(Range<u64>, Vec<u8>)],
    ) -> Result<(), CorunError> {
        self.host.add_up(&mut *context.runtime, when, others)
    }

    fn gather(&mut self, context: &mut Context, step: u32) -> Result<(), CorunError> {
        let host = &self.host;
        let (iterates, pieces) = (host.spmv.iterates(), host.spmv.arrangement().pieces());
        for (device, store) in self.stores.iter_mut() {
            let units = store.units();
            if !context.devices[device].alive || units.is_empty() {
                continue;
            }
            let rows = host.own_rows(&context.layout.held[device]);
            let from = if iterates { store.x() } else { store.y() };
            let purpose = Purpose::new(device, READS, step, GATHER);
            if !rows.is_empty() {
                let command = host.read_numbers(&rows, from, host.result());
                context.submit(purpose, command, units.clone(), &[])?;
            }
            let cut = units.start..units.end.min(pieces.into());
            if !iterates && !cut.is_empty() {
                let command = host.read_sums(&cut, store.sums);
                context.submit(purpose, command, cut, &[])?;
            }
        }
        context.drain()
    }

    fn verify(
        &mut self,
        context: &mut Context,
        steps: u32,
        _stop: &AtomicBool,
    ) -> Result<Option<Compared>, CorunError> {
        let spmv = self.host.spmv;
        let bytes = u64::from(spmv.matrix().rows()) * spmv.number();
        let result = context.runtime.host_bytes(self.host.result())?;
        Ok(Some(spmv.verify(steps, &result[..bytes as usize])))
    }

    fn eigenvalue(&self) -> Option<f64> {
        let last = self
            .host
            .last
            .filter(|_| self.is_of(spmv::Form::Iteration))?;
        Some(last[0].sqrt())
    }

    fn change(&self) -> Option<f64> {
        let last = self.host.last.filter(|_| self.is_of(spmv::Form::Ranks))?;
        Some(last[1])
    }

    fn total(&self) -> Option<[f64; 2]> {
        self.host.last
    }

    fn deliver(&mut self, context: &mut Context) -> Result<(), CorunError> {
        let spmv = self.host.spmv;
        if let Some(result) = data(&mut *context.runtime, self.host.result())? {
            spmv.deliver(&result[..(u64::from(spmv.matrix().rows()) * spmv.number()) as usize]);
        }
        Ok(())
    }

    /// Some of the last units, where a device of this kind begins and where they
    /// stay. They are enough that the kernel's start does not count, though
    /// `units` may be few.
    fn hold_probe(
        &mut self,
        context: &mut Context,
        purpose: Purpose,
        units: u64,
        write: bool,
    ) -> Result<Range<u64>, CorunError> {
        let store = self.stores.get(purpose.device)?;
        if !write {
            return Ok(store.units());
        }
        let (all, end) = (length(&context.units), context.units.end);
        let held = end - units.max(all / PROBED_PART).min(store.division.held.units)..end;
        if held.is_empty() {
            return Ok(held);
        }
        store.hold(held.clone());
        for command in self.host.write_units(&held, &store.slots) {
            context.submit(purpose, command, held.clone(), &[])?;
        }
        Ok(held)
    }

    /// A matrix never changes: what a store has, it keeps.
    fn end_probes(&mut self) -> bool {
        true
    }
}
