//! Copies from one device's own memory to another one's that go through host memory.
//!
//! Such a copy is divided into pieces. Each is read into a slot of pinned host memory and
//! written from there, on a queue of its own on either device, so that the read of a
//! piece and the writes of those before it overlap. Everything is submitted at once,
//! ordered by events. On the driver's queue an empty command waits for what the copy
//! waits for, and another one, which has the copy's event, for the last write.
//!
//! The two queues belong to the driver's queue, so a failure reaches what is behind it
//! there and nothing else.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{SHIFT, Union};
use crate::codelet::{BufferId, HostMemoryId, Memory};
use crate::runtime::{
    Command, CommandKind, Completion, DeviceId, Devices, EventId, HostRegion, IdMap, Location,
    Nanos, QueueId, QueueKind, Rows, Runtime, RuntimeError, Status,
};

/// Bytes of a slot, and so of the largest pieces.
const SLOT: u64 = 4 << 20;
/// Slots of a pair of queues: while one is read, others are written or wait for their
/// devices to notice that they can be.
const SLOTS: usize = 4;
/// Smaller pieces would take as long to enqueue as to copy.
const LEAST_PIECE: u64 = 1 << 20;
/// Pieces of a copy that has less than this many slots' bytes. The first read and the
/// last write overlap nothing.
const PIECES: u64 = 8;

/// Bytes of the pieces of a copy.
fn piece_bytes(bytes: u64) -> u64 {
    bytes.div_ceil(PIECES).clamp(LEAST_PIECE, SLOT)
}

/// A copy between the memories of two devices.
#[derive(Clone, Copy)]
pub(super) struct PeerCopy {
    from: Location,
    to: Location,
    bytes: u64,
    source: DeviceId,
    target: DeviceId,
}

/// A buffer's device and length.
#[derive(Clone, Copy)]
pub(super) struct OwnMemory {
    pub device: DeviceId,
    pub bytes: u64,
}

/// What a command in flight is to the driver.
pub(super) enum Role {
    /// A command of its own.
    Command,
    /// The begin of the staged copy with this event.
    Begin(EventId),
    /// A piece of a staged copy.
    Piece,
    /// The end of a staged copy, with the event of all of it.
    End { bytes: u64 },
}

/// When a staged copy began.
#[derive(Clone, Copy)]
pub(super) struct Begun {
    queued: Nanos,
    submitted: Nanos,
    started: Nanos,
}

/// The queues and the memory for the copies of one direction on a driver's queue.
#[derive(Clone, Copy)]
pub(super) struct Lane {
    source: DeviceId,
    target: DeviceId,
    reads: QueueId,
    writes: QueueId,
    memory: HostMemoryId,
    /// By slot: the write that empties it.
    emptied: [Option<EventId>; SLOTS],
    /// The slot of the next piece.
    next: usize,
}

/// The state of staged copies.
#[derive(Default)]
pub(super) struct Staging {
    /// By the driver's queue.
    pub(super) lanes: IdMap<QueueId, Vec<Lane>>,
    /// Memory of closed lanes.
    spare: Vec<HostMemoryId>,
    /// By the event of a copy that has not ended.
    pub(super) begun: IdMap<EventId, Option<Begun>>,
}

impl Union {
    /// The copy that a command is, if it must go through host memory.
    pub(super) fn staged_copy(&self, command: &Command) -> Option<PeerCopy> {
        let Command::Copy { from, to, rows } = *command else {
            return None;
        };
        let device = |memory: Memory| match memory {
            Memory::Device(buffer) => Some(self.buffers.get(&buffer)?.device),
            Memory::Host(_) => None,
        };
        let (source, target) = (device(from.memory)?, device(to.memory)?);
        let is_direct = source == target
            || (self.paths.get(&(source, target))).is_some_and(|path| !path.through_host);
        // Rows with gaps are copied between host and device only.
        (!is_direct && rows.count == 1).then_some(PeerCopy {
            from,
            to,
            bytes: rows.total(),
            source,
            target,
        })
    }

    /// Submits a copy through host memory.
    pub(super) fn submit_staged(
        &mut self,
        queue: QueueId,
        copy: PeerCopy,
        wait: &[EventId],
        event: EventId,
    ) -> Result<(), RuntimeError> {
        let own = match self.device_of(queue)? {
            device if device == copy.source => copy.from,
            device if device == copy.target => copy.to,
            _ => {
                return Err(RuntimeError::Unknown {
                    what: "buffer of this device",
                });
            }
        };
        for (device, end) in [(copy.source, copy.from), (copy.target, copy.to)] {
            self.locate(device)?;
            self.check_end(end, copy.bytes)?;
        }
        let index = self.lane(queue, copy.source, copy.target)?;
        self.staging.begun.insert(event, None);
        let submitted = self.submit_pieces((queue, index), copy, own, wait, event);
        if submitted.is_err() {
            self.staging.begun.remove(&event);
        }
        submitted
    }

    fn submit_pieces(
        &mut self,
        (queue, index): (QueueId, usize),
        copy: PeerCopy,
        own: Location,
        wait: &[EventId],
        event: EventId,
    ) -> Result<(), RuntimeError> {
        let lane = self.staging.lanes[&queue][index];
        let empty = Command::Copy {
            from: Location::host(lane.memory, 0),
            to: own,
            rows: Rows::one(0),
        };
        let begin = EventId::fresh();
        self.submit_as(queue, empty.clone(), wait, begin, Role::Begin(event))?;
        let mut last = begin;
        let piece = piece_bytes(copy.bytes);
        for at in (0..copy.bytes).step_by(piece as usize) {
            let bytes = piece.min(copy.bytes - at);
            let (slot, emptied) = self.next_slot(queue, index);
            let staged = Location::host(lane.memory, slot as u64 * SLOT);
            let behind = |Location { memory, offset }| Location {
                memory,
                offset: offset + at,
            };
            // Later reads are behind the first one.
            let mut wait: Vec<EventId> = emptied.into_iter().collect();
            wait.extend((at == 0).then_some(begin));
            let read = Command::Copy {
                from: behind(copy.from),
                to: staged,
                rows: Rows::one(bytes),
            };
            let filled = EventId::fresh();
            self.submit_as(lane.reads, read, &wait, filled, Role::Piece)?;
            let write = Command::Copy {
                from: staged,
                to: behind(copy.to),
                rows: Rows::one(bytes),
            };
            last = EventId::fresh();
            self.submit_as(lane.writes, write, &[filled], last, Role::Piece)?;
            if let Some(lanes) = self.staging.lanes.get_mut(&queue) {
                lanes[index].emptied[slot] = Some(last);
            }
        }
        let end = Role::End { bytes: copy.bytes };
        self.submit_as(queue, empty, &[last], event, end)
    }

    /// Refuses a copy of `bytes` bytes that does not lie within its buffer.
    fn check_end(&self, end: Location, bytes: u64) -> Result<(), RuntimeError> {
        let Memory::Device(buffer) = end.memory else {
            return Ok(());
        };
        let own = self.own_memory(buffer)?;
        let last = end.offset.checked_add(bytes);
        match last.is_some_and(|last| last <= own.bytes) {
            true => Ok(()),
            false => Err(RuntimeError::Call {
                device: self.devices[own.device.0].name.clone(),
                call: "copy",
                why: format!(
                    "{bytes} bytes at {} do not lie within a buffer of {} bytes",
                    end.offset, own.bytes
                ),
            }),
        }
    }

    fn own_memory(&self, buffer: BufferId) -> Result<OwnMemory, RuntimeError> {
        let own = self.buffers.get(&buffer).copied();
        own.ok_or(RuntimeError::Unknown { what: "buffer" })
    }

    /// The index of a queue's lane from one device to another, opened if there is none.
    fn lane(
        &mut self,
        queue: QueueId,
        source: DeviceId,
        target: DeviceId,
    ) -> Result<usize, RuntimeError> {
        let lanes = self.staging.lanes.entry(queue).or_default();
        let known = (lanes.iter()).position(|lane| (lane.source, lane.target) == (source, target));
        if let Some(index) = known {
            return Ok(index);
        }
        let memory = match self.staging.spare.pop() {
            Some(memory) => memory,
            None => self.alloc_host(SLOT * SLOTS as u64)?,
        };
        // Events tell when pieces have ended, and nobody asks for their times.
        let opened = self.open_queue(source, QueueKind::Plain).and_then(|reads| {
            let writes = self.open_queue(target, QueueKind::Plain);
            writes
                .inspect_err(|_| self.free_queue(reads))
                .map(|writes| (reads, writes))
        });
        let (reads, writes) = opened.inspect_err(|_| self.staging.spare.push(memory))?;
        let lanes = self.staging.lanes.entry(queue).or_default();
        lanes.push(Lane {
            source,
            target,
            reads,
            writes,
            memory,
            emptied: [None; SLOTS],
            next: 0,
        });
        Ok(lanes.len() - 1)
    }

    /// Takes a lane's next slot. Returns it, and the write that empties it.
    fn next_slot(&mut self, queue: QueueId, index: usize) -> (usize, Option<EventId>) {
        let Some(lanes) = self.staging.lanes.get_mut(&queue) else {
            return (0, None);
        };
        let lane = &mut lanes[index];
        let slot = lane.next;
        lane.next = (slot + 1) % SLOTS;
        (slot, lane.emptied[slot])
    }

    /// Releases a queue's lanes. Copies that are still on them end as usual.
    pub(super) fn close_lanes(&mut self, queue: QueueId) {
        for lane in self.staging.lanes.remove(&queue).unwrap_or_default() {
            let queues = [lane.reads, lane.writes];
            let mut in_flight = self.in_flight.values();
            match in_flight.any(|command| queues.contains(&command.queue)) {
                true => self.free_host(lane.memory),
                false => self.staging.spare.push(lane.memory),
            }
            for queue in queues {
                self.free_queue(queue);
            }
        }
    }

    /// Hands a command's completion to the driver, if it is of interest there.
    pub(super) fn deliver(&mut self, role: Role, completion: Completion) {
        match role {
            Role::Command => self.arrived.push_back(completion),
            Role::Begin(_) | Role::Piece => {
                if let Role::Begin(copy) = role
                    && let Some(begun) = self.staging.begun.get_mut(&copy)
                {
                    *begun = Some(Begun {
                        queued: completion.queued,
                        submitted: completion.submitted,
                        started: completion.ended,
                    });
                }
                // The copy itself is only skipped.
                if matches!(completion.status, Status::Failed(_) | Status::DeviceLost(_)) {
                    self.arrived.push_back(completion);
                }
            }
            Role::End { bytes } => {
                let begun = self.staging.begun.remove(&completion.event).flatten();
                let begun = begun.unwrap_or(Begun {
                    queued: completion.queued,
                    submitted: completion.submitted,
                    started: completion.started,
                });
                self.arrived.push_back(Completion {
                    kind: CommandKind::Copy,
                    queued: begun.queued,
                    submitted: begun.submitted,
                    started: begun.started,
                    bytes,
                    ..completion
                });
            }
        }
    }
}

// Freed pinned memory, which serves later allocations of its length.
//
// To make and pin pages takes longer than to copy them. So a pinned region that is freed stays
// pinned, as long as all pinned memory together is no more than the union once had in use.
// The process keeps unpinned memory itself; see `crate::runtime::host`.

/// What a spare region's contents are set to where debug assertions are on: memory that is
/// allocated has no contents to rely on.
const POISON: u8 = 0xA5;

/// The spare pinned regions of a union.
#[derive(Default)]
pub(super) struct Spare {
    /// By bytes; the latest freed last.
    regions: BTreeMap<u64, Vec<HostRegion>>,
    /// Bytes of them.
    bytes: u64,
    /// Bytes of the regions in use, and the most that ever were.
    used: u64,
    most_used: u64,
}

impl Spare {
    /// A region of these bytes that no command uses any more, shifted like this if one is; see
    /// [`SHIFT`].
    pub(super) fn take(&mut self, bytes: u64, shift: u64) -> Option<HostRegion> {
        let regions = self.regions.get_mut(&bytes)?;
        // Whoever uses a region holds its keeper.
        let is_unused = |region: &mut HostRegion| Arc::get_mut(&mut region.keeper).is_some();
        let is_shifted = |region: &HostRegion| region.address.addr().get() as u64 & SHIFT == shift;
        let mut all = regions.iter_mut();
        let latest = all.rposition(|region| is_shifted(region) && is_unused(region));
        let free = latest.or_else(|| regions.iter_mut().rposition(is_unused))?;
        let region = regions.swap_remove(free);
        if regions.is_empty() {
            self.regions.remove(&bytes);
        }
        self.bytes -= bytes;
        if cfg!(debug_assertions) {
            // SAFETY: the region has so many bytes, and nothing else refers to them.
            unsafe { region.address.write_bytes(POISON, bytes as usize) };
        }
        Some(region)
    }

    /// A region of these bytes is to be allocated: drops spare ones until all are no more
    /// than the most that were in use.
    pub(super) fn make_room(&mut self, bytes: u64) {
        let wanted = self.used.saturating_add(bytes);
        let most = self.most_used.max(wanted);
        while wanted.saturating_add(self.bytes) > most {
            let Some(mut largest) = self.regions.last_entry() else {
                return;
            };
            if let Some(region) = largest.get_mut().pop() {
                self.bytes -= region.bytes;
            }
            if largest.get().is_empty() {
                largest.remove();
            }
        }
    }

    /// Drops all spare regions. Whether there were any.
    pub(super) fn clear(&mut self) -> bool {
        self.bytes = 0;
        !std::mem::take(&mut self.regions).is_empty()
    }

    /// A region of these bytes is in use.
    pub(super) fn used(&mut self, bytes: u64) {
        self.used += bytes;
        self.most_used = self.most_used.max(self.used);
    }

    /// A region was freed. Commands may still use it.
    pub(super) fn put(&mut self, region: HostRegion) {
        self.used -= region.bytes;
        self.bytes += region.bytes;
        self.regions.entry(region.bytes).or_default().push(region);
    }
}

#[cfg(test)]
mod tests {
    use std::ptr::NonNull;

    use super::*;
    use crate::runtime::HostMemoryId;

    /// A region of these bytes, as the union allocates it.
    fn allocated(spare: &mut Spare, bytes: u64) -> HostRegion {
        let region = spare.take(bytes, 0).unwrap_or_else(|| {
            spare.make_room(bytes);
            fresh(bytes)
        });
        spare.used(bytes);
        region
    }

    fn fresh(bytes: u64) -> HostRegion {
        let mut memory = vec![0u128; bytes.div_ceil(16) as usize].into_boxed_slice();
        HostRegion {
            id: HostMemoryId::fresh(),
            address: NonNull::new(memory.as_mut_ptr().cast()).unwrap(),
            bytes,
            keeper: Arc::new(memory),
        }
    }

    #[test]
    fn a_freed_region_serves_once_nothing_uses_it() {
        let mut spare = Spare::default();
        let region = allocated(&mut spare, 100);
        let (address, command) = (region.address, Arc::clone(&region.keeper));
        spare.put(region);
        assert!(spare.take(100, 0).is_none());
        drop(command);
        assert!(spare.take(99, 0).is_none());
        assert_eq!(spare.take(100, 0).unwrap().address, address);
        assert!(spare.take(100, 0).is_none());
    }

    #[test]
    fn all_regions_together_never_exceed_the_most_in_use() {
        let mut spare = Spare::default();
        for round in 1..50u64 {
            let lengths = [1000 - round, 3 * round, 700, round];
            let held: Vec<_> = (lengths.iter())
                .map(|bytes| allocated(&mut spare, *bytes))
                .collect();
            assert_eq!(spare.used, lengths.iter().sum::<u64>());
            assert!(spare.used + spare.bytes <= spare.most_used);
            held.into_iter().for_each(|region| spare.put(region));
            let kept = spare.regions.values().flatten().map(|region| region.bytes);
            assert_eq!(kept.sum::<u64>(), spare.bytes);
        }
        assert!(spare.clear());
        assert!(!spare.clear());
        assert_eq!((spare.bytes, spare.used), (0, 0));
    }
}
