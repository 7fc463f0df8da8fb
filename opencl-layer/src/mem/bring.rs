//! Hidden copies of buffers' bytes.
//!
//! A driver may read the source of a write when the write is enqueued, before the events of
//! its wait list have ended; NVIDIA's does so for up to 64 KiB of pageable memory. A write
//! from the host's copy is therefore enqueued only once the bytes are there. What goes from
//! device to device goes through pinned memory, for which drivers wait.

use std::ops::Range;
use std::sync::Arc;

use opencl_sys::{CL_DEVICE_TYPE_CPU, CL_INVALID_MEM_OBJECT, cl_mem};

use super::{Copies, Mem, wide};
use crate::call::Call;
use crate::late::{self, LateWrite};
use crate::native::Native;
use crate::queue::{Queue, State};
use crate::report;
use crate::status::Fallible;

/// What goes from device to device at a time, so that one device's read and the other's write
/// of large copies run beside each other, and a copy needs little pinned memory.
const PIECE: usize = 4 << 20;
/// Pieces of a copy that are on their way at once.
const SLOTS: usize = 4;

/// The queue of a hidden copy, and what it waits for.
struct Copying<'a> {
    queue: &'a Queue,
    state: &'a mut State,
    before: &'a [Arc<Native>],
}

impl Mem {
    /// Copies to a place what it does not have of a range, after `before`. The result is
    /// what must end before the bytes are there. The place after the last is the host.
    pub fn bring(
        &self,
        queue: &Queue,
        state: &mut State,
        range: &Range<usize>,
        place: usize,
        before: &[Arc<Native>],
    ) -> Fallible<Vec<Arc<Native>>> {
        let (root, range) = self.in_root(range);
        let host = root.context.places.len();
        let absent: Vec<_> = {
            let mut copies = root.copies();
            copies.forget_ended();
            copies.regions.missing(wide(&range), place).collect()
        };
        let mut copying = Copying {
            queue,
            state,
            before,
        };
        for (part, holders) in absent {
            let part = part.start as usize..part.end as usize;
            let device = (0..host).find(|place| holders.has(*place));
            let is_there = holders.has(host) && root.copies().arriving_at(&part, host).is_empty();
            match device {
                Some(from) if place == host => root.read_to_host(&mut copying, &part, from)?,
                None if !holders.has(host) => return Err(CL_INVALID_MEM_OBJECT),
                _ if is_there => root.write_now(&mut copying, &part, place)?,
                Some(from) => root.across(&mut copying, &part, from, place)?,
                None => root.write_later(&mut copying, &part, place)?,
            }
        }
        Ok(root.copies().arriving_at(&range, place))
    }

    /// Hidden copies that bring a range to a place and may not have ended.
    pub fn arriving(&self, range: &Range<usize>, place: usize) -> Vec<Arc<Native>> {
        let (root, range) = self.in_root(range);
        root.copies().arriving_at(&range, place)
    }

    /// An earlier copy may still be on its way to the same bytes: what is shown to a thread of
    /// the program that waits is not ordered before what another thread enqueues.
    fn read_to_host(&self, by: &mut Copying, range: &Range<usize>, from: usize) -> Fallible<()> {
        let host = self.context.places.len();
        let to = self.copies().host_address(self, range.start)?;
        let earlier = self.copies().arriving_at(range, host);
        let native = self.read(by, range, from, to, &earlier)?;
        self.copies().arrived(range, host, native);
        Ok(())
    }

    fn write_now(&self, by: &mut Copying, range: &Range<usize>, to: usize) -> Fallible<()> {
        let from = self.copies().host_address(self, range.start)?;
        let native = self.write(by, range, to, from, &[])?;
        self.copies().arrived(range, to, native);
        Ok(())
    }

    /// From device to device: piece by piece through pinned memory, or through the host's copy
    /// if there is no room for a copy more.
    fn across(
        &self,
        by: &mut Copying,
        range: &Range<usize>,
        from: usize,
        to: usize,
    ) -> Fallible<()> {
        let pins = self.pins(from, to);
        let domain = self.context.places[pins].domain;
        let ring = range.len().min(SLOTS * PIECE);
        let written = self.context.transits[domain].through(
            self.context.site(pins),
            ring,
            |pinned, users| {
                let mut written: Vec<(Range<usize>, Arc<Native>)> = Vec::new();
                for (number, start) in range.clone().step_by(PIECE).enumerate() {
                    let piece = start..(start + PIECE).min(range.end);
                    let slot = pinned.wrapping_add(number % SLOTS * PIECE);
                    // The slot is free when the piece that was there is written.
                    let there = number.checked_sub(SLOTS).map(|there| &written[there].1);
                    let before: Vec<_> = there.cloned().into_iter().collect();
                    let read = self.read(by, &piece, from, slot, &before)?;
                    users.push_back(Arc::clone(&read));
                    let native = self.write(by, &piece, to, slot, &[read])?;
                    users.push_back(Arc::clone(&native));
                    written.push((piece, native));
                }
                Ok(written)
            },
        )?;
        let Some(written) = written else {
            self.read_to_host(by, range, from)?;
            return self.write_later(by, range, to);
        };
        for (piece, native) in written {
            self.copies().arrived(&piece, to, native);
        }
        Ok(())
    }

    /// From the host's copy, which does not have all bytes yet.
    fn write_later(&self, by: &mut Copying, range: &Range<usize>, to: usize) -> Fallible<()> {
        let from = self.copies().host_address(self, range.start)?;
        let (mem, at, size) = (self.at(to)?, range.start, range.len());
        let mut before = by.before.to_vec();
        for place in [self.context.places.len(), to] {
            before.extend(self.copies().arriving_at(range, place));
        }
        // What it waits for in this queue is only known once it has begun.
        by.state.flush()?;
        let write = LateWrite {
            mem,
            at,
            size,
            from: from.cast(),
        };
        let native = late::write(&self.context, to, write, &before)?;
        let lane = self.context.lane_for_questions(to);
        report::moved(by.state, &lane, size, false, &native);
        self.copies().arrived(range, to, native);
        Ok(())
    }

    /// The place whose driver pins memory for a copy: only drivers of GPUs do so.
    fn pins(&self, from: usize, to: usize) -> usize {
        let is_cpu = |place: usize| self.context.places[place].real.kind & CL_DEVICE_TYPE_CPU != 0;
        if is_cpu(to) { from } else { to }
    }

    fn read(
        &self,
        by: &mut Copying,
        range: &Range<usize>,
        place: usize,
        to: *mut u8,
        after: &[Arc<Native>],
    ) -> Fallible<Arc<Native>> {
        self.copy(by, (range, place), (true, after), |call, mem| {
            call.read(mem, range.start, range.len(), to.cast())
        })
    }

    fn write(
        &self,
        by: &mut Copying,
        range: &Range<usize>,
        place: usize,
        from: *mut u8,
        after: &[Arc<Native>],
    ) -> Fallible<Arc<Native>> {
        self.copy(by, (range, place), (false, after), |call, mem| {
            call.write(mem, range.start, range.len(), from.cast())
        })
    }

    /// Has a driver copy a range from or to a place, after what brings the bytes there and
    /// `after`.
    fn copy(
        &self,
        by: &mut Copying,
        (range, place): (&Range<usize>, usize),
        (to_host, after): (bool, &[Arc<Native>]),
        give: impl FnOnce(&Call, cl_mem) -> Fallible<()>,
    ) -> Fallible<Arc<Native>> {
        let (lane, mem) = (by.queue.lane(by.state, place)?, self.at(place)?);
        let mut before = by.before.to_vec();
        before.extend_from_slice(after);
        before.extend(self.copies().arriving_at(range, place));
        let waits = self.context.waits(lane.domain, before)?;
        let native = lane.given(&waits, |call| give(call, mem))?;
        report::moved(by.state, &lane, range.len(), to_host, &native);
        Ok(native)
    }
}

impl Copies {
    /// What must end before a place has the bytes of a range that it is said to have.
    fn arriving_at(&self, range: &Range<usize>, place: usize) -> Vec<Arc<Native>> {
        let meets = |other: &Range<usize>| other.start < range.end && range.start < other.end;
        let arriving = self.arriving.iter();
        let arriving = arriving.filter(|(part, at, _)| *at == place && meets(part));
        let mut all: Vec<_> = arriving.map(|(_, _, native)| Arc::clone(native)).collect();
        if place == self.mems.len() {
            let merging = self.merging.iter().filter(|(part, _)| meets(part));
            all.extend(merging.map(|(_, native)| Arc::clone(native)));
        }
        all
    }

    /// Notes a copy, which waits for earlier ones to the same bytes. It stands for those: were
    /// they waited for as well, each copy of a buffer that moves from device to device would
    /// wait for all before it, and drivers take long over long lists.
    fn arrived(&mut self, range: &Range<usize>, place: usize, native: Arc<Native>) {
        self.regions.copied(wide(range), place);
        let within = |other: &Range<usize>| range.start <= other.start && other.end <= range.end;
        (self.arriving).retain(|(other, at, _)| *at != place || !within(other));
        self.arriving.push((range.clone(), place, native));
    }

    fn forget_ended(&mut self) {
        self.arriving.retain(|(_, _, native)| native.is_pending());
        self.merging.retain(|(_, native)| native.is_pending());
    }
}
