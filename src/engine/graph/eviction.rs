//! Making room in a device's memory, and what leaves it.

use super::run::GraphRun;
use crate::residency::State;
use crate::runtime::RuntimeError;
use pdawl_core::graph::DatumId;

impl GraphRun<'_> {
    pub(super) fn slot_bytes(&self, slot: usize) -> u64 {
        self.graph.data()[slot].bytes
    }

    /// Evicts something for a component that needs `bytes`. `false` if nothing can leave
    /// now: either nothing is left that may, or enough is on its way to the host.
    pub(super) fn make_room(
        &mut self,
        device: usize,
        component: usize,
        bytes: u64,
    ) -> Result<bool, RuntimeError> {
        while self.known.windows[device].leaving < bytes {
            let Some(slot) = self.victim(device) else {
                return Ok(false);
            };
            match self.version(device, slot) {
                Some(version) if self.must_be_kept(version) || !self.can_leave(device, slot) => {
                    (self.prepared.storage.residency).set(device, version.0, State::Leaving);
                    self.known.windows[device].leaving += self.slot_bytes(slot);
                    self.store(component, device, version)?;
                }
                _ => {
                    self.evict(device, slot);
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// The slot that is to leave a device's memory.
    fn victim(&mut self, device: usize) -> Option<usize> {
        let residency = &self.prepared.storage.residency;
        let evictable = |slot: usize| residency.is_evictable(device, slot);
        let unpinned = || {
            residency
                .space(device)
                .into_iter()
                .flat_map(|space| space.unpinned())
        };
        if !self.known.windowed {
            // Temporary data stay where they are until their room is needed.
            let is_dead = |slot: &usize| self.is_dead(device, *slot);
            let mut candidates = unpinned().filter(|slot| evictable(*slot));
            if let Some(dead) = candidates.find(is_dead) {
                return Some(dead);
            }
        }
        let chosen = self.policy.victim(device, &evictable);
        chosen
            .filter(|slot| evictable(*slot))
            .or_else(|| unpinned().find(|slot| evictable(*slot)))
    }

    /// The version of a slot that a device's memory has or gets.
    fn version(&self, device: usize, slot: usize) -> Option<DatumId> {
        let residency = &self.prepared.storage.residency;
        residency.version(device, slot).map(DatumId)
    }

    /// Whether nobody needs what a device's memory has in a slot.
    pub(super) fn is_dead(&self, device: usize, slot: usize) -> bool {
        self.version(device, slot)
            .is_none_or(|version| !self.is_needed(version))
    }

    /// Whether a slot may be evicted, and its datum is not on its way to the host.
    pub(super) fn can_leave(&self, device: usize, slot: usize) -> bool {
        let is_stored = |version| self.storing(version).is_some();
        self.prepared.storage.residency.is_evictable(device, slot)
            && !self.version(device, slot).is_some_and(is_stored)
    }

    /// Whether the host needs a datum, or a kernel that has not run or not arrived.
    fn is_needed(&self, datum: DatumId) -> bool {
        self.graph.datum(datum).wanted
            || self.prepared.storage.held[datum.0]
            || self.is_to_be_read(datum)
    }

    /// Whether a kernel that has not run reads a datum.
    pub(super) fn is_to_be_read(&self, datum: DatumId) -> bool {
        let mut readers = self.graph.readers(datum).iter();
        readers.any(|kernel| !self.known.state.is_done(*kernel))
    }

    /// Whether a datum must be written to the host before it leaves a device.
    fn must_be_kept(&self, datum: DatumId) -> bool {
        // The overwriter's version must stay in the host memory that both share. A view is
        // made of its pieces again.
        self.graph.datum(datum).pieces.is_empty()
            && !self.is_overwritten(datum)
            && !self.prepared.storage.residency.in_host(datum.0)
            && self.is_needed(datum)
    }

    /// Whether the kernel was launched that makes the next version in the same host memory.
    fn is_overwritten(&self, datum: DatumId) -> bool {
        let overwriters = self.prepared.storage.overwritten(&self.graph, datum);
        (overwriters.into_iter()).any(|kernel| self.known.state.was_launched(kernel))
    }

    pub(super) fn evict(&mut self, device: usize, slot: usize) {
        self.prepared.storage.residency.evict(device, slot);
        self.tell_left(device, slot);
        self.known.uses[device].evictions += 1;
    }

    /// A datum has been copied to the host.
    pub(super) fn stored(&mut self, datum: DatumId) {
        self.known.fetching.retain(|(fetched, _)| *fetched != datum);
        // A host device that overwrites it may have been heard of before this copy, on
        // which it waited: completions of several devices come in any order.
        if !self.is_overwritten(datum) {
            (self.prepared.storage).set_in_host(&self.graph, datum, true);
        }
        // Several devices may have waited for the one copy.
        for device in 0..self.known.windows.len() {
            let residency = &mut self.prepared.storage.residency;
            if residency.state(device, datum.0) != State::Leaving {
                continue;
            }
            let slot = residency.slot(datum.0);
            residency.set(device, datum.0, State::Valid);
            let leaves = residency.is_evictable(device, slot);
            self.known.windows[device].leaving -= self.slot_bytes(slot);
            // A component that came meanwhile may need it.
            if leaves {
                self.evict(device, slot);
            }
        }
    }

    /// Another version gets into a datum's buffer on a device. If the datum was on its
    /// way to the host to make room, the buffer stays nevertheless.
    pub(super) fn replaced(&mut self, device: usize, datum: DatumId) {
        let residency = &mut self.prepared.storage.residency;
        if residency.state(device, datum.0) == State::Leaving {
            self.known.windows[device].leaving -= self.graph.datum(datum).bytes;
        }
        residency.set(device, datum.0, State::Absent);
    }

    /// A kernel of a component has made a version of a slot in a device's own memory.
    /// Other devices have an older one, if any. What the host wants goes there at once,
    /// before another kernel overwrites it.
    pub(super) fn made(
        &mut self,
        component: usize,
        device: usize,
        datum: DatumId,
    ) -> Result<(), RuntimeError> {
        let residency = &mut self.prepared.storage.residency;
        if residency.state(device, datum.0) == State::Absent {
            residency.set(device, datum.0, State::Valid);
        }
        let slot = residency.slot(datum.0);
        let is_in_host = residency.in_host(datum.0);
        self.tell_arrived(device, slot);
        self.drop_older(device, slot, datum);
        if self.known.windowed && self.graph.datum(datum).wanted && !is_in_host {
            self.store(component, device, datum)?;
        }
        Ok(())
    }

    /// Takes the older versions of a slot out of the devices other than `maker`.
    pub(super) fn drop_older(&mut self, maker: usize, slot: usize, datum: DatumId) {
        if self.graph.first_version(datum) == datum {
            return;
        }
        for device in (0..self.known.windows.len()).filter(|device| *device != maker) {
            // After a loss a version may be made again when there is a later one.
            let storage = &self.prepared.storage;
            let is_older = |version| storage.is_before(&self.graph, version, datum);
            if !self.version(device, slot).is_some_and(is_older) {
                continue;
            }
            if self.known.windowed && self.can_leave(device, slot) {
                self.evict(device, slot);
            } else {
                self.tell_left(device, slot);
            }
        }
    }

    /// Tells the policy, once, that a device has a slot's datum or gets it.
    pub(super) fn tell_arrived(&mut self, device: usize, slot: usize) {
        if !std::mem::replace(&mut self.known.reported[device][slot], true) {
            self.policy.arrived(device, slot);
        }
    }

    fn tell_left(&mut self, device: usize, slot: usize) {
        if std::mem::replace(&mut self.known.reported[device][slot], false) {
            self.policy.evicted(device, slot);
        }
    }

    /// Tells the policy what devices that are left have no more after a loss.
    pub(super) fn tell_absent(&mut self, lost: &[usize]) {
        for device in 0..self.known.windows.len() {
            for slot in 0..self.known.reported[device].len() {
                if lost.contains(&device) {
                    self.known.reported[device][slot] = false;
                } else if self.version(device, slot).is_none() {
                    self.tell_left(device, slot);
                }
            }
        }
    }
}
