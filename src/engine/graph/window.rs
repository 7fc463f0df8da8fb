//! A device's window: the components that the policy gave it, and their data.
//!
//! In the order in which the policy gave them, components get room for all their data
//! in the device's memory, and their inputs are loaded while earlier components
//! compute. What a component in the window needs is pinned, so nothing that was loaded
//! for it leaves before its use, and the first one always gets its room in the end.

use std::collections::VecDeque;

use super::GraphRunError;
use super::dispatch::Destination;
use super::run::GraphRun;
use super::state::ComponentState;
use super::timeline::Purpose;
use crate::graph::{DatumId, KernelId};
use crate::residency::{Room, State};
use crate::runtime::{Command, DeviceId, Location, RuntimeError};

/// Components of a window that the device has at once: one computes, and the next one
/// follows it without the host.
const DEPTH: usize = 2;

/// A component that waits for a device.
#[derive(Debug)]
struct Waiting {
    component: usize,
    /// How many of its slots are pinned.
    pinned: usize,
    /// Whether all are, and what was absent is on its way.
    is_prepared: bool,
}

/// The components that a device has not begun.
#[derive(Debug, Default)]
pub(super) struct Window {
    waiting: VecDeque<Waiting>,
    /// Components that the device has begun and not ended.
    pub begun: usize,
    /// Bytes that are on their way out, to make room.
    leaving: u64,
}

impl GraphRun<'_> {
    /// Puts a component at the end of a device's window.
    pub(super) fn assign(&mut self, component: usize, device: usize) {
        let run = &mut self.state.components[component];
        run.state = ComponentState::Running(device);
        run.written = 0;
        self.running[device] += 1;
        self.windows[device].waiting.push_back(Waiting {
            component,
            pinned: 0,
            is_prepared: false,
        });
    }

    /// The next component that a device can begin.
    ///
    /// # Errors
    /// What the runtime refuses.
    pub(super) fn next_to_begin(&mut self) -> Result<Option<(usize, usize)>, RuntimeError> {
        let depth = if self.windowed { DEPTH } else { usize::MAX };
        for device in 0..self.windows.len() {
            self.prepare_window(device)?;
            let window = &mut self.windows[device];
            let is_prepared = (window.waiting.front()).is_some_and(|first| first.is_prepared);
            if is_prepared
                && window.begun < depth
                && let Some(first) = window.waiting.pop_front()
            {
                window.begun += 1;
                return Ok(Some((first.component, device)));
            }
        }
        Ok(None)
    }

    /// The error of a component that waits for room which does not come.
    pub(super) fn lacking_room(&self) -> Option<GraphRunError> {
        let first = |window: &Window| window.waiting.front().map(|first| first.component);
        let mut waiting = self.windows.iter().map(first).enumerate();
        let (device, component) = waiting.find_map(|(device, first)| Some((device, first?)))?;
        self.prepared.check_room(device, component).err()
    }

    /// Pins and loads the data of the components in a window, as far as there is room.
    fn prepare_window(&mut self, device: usize) -> Result<(), RuntimeError> {
        for index in 0..self.windows[device].waiting.len() {
            if self.windows[device].waiting[index].is_prepared {
                continue;
            }
            if !self.pin(device, index)? {
                return Ok(());
            }
            let component = self.windows[device].waiting[index].component;
            if self.windowed && !self.prepared.devices[device].shares {
                self.load_inputs(device, component)?;
            }
            self.windows[device].waiting[index].is_prepared = true;
        }
        Ok(())
    }

    /// Pins the slots of a component. `false` if there is no room for them yet.
    fn pin(&mut self, device: usize, index: usize) -> Result<bool, RuntimeError> {
        loop {
            if self.is_taken(device, index) {
                return Ok(false);
            }
            let waiting = &mut self.windows[device].waiting[index];
            let storage = &mut self.prepared.storage;
            let Some(space) = storage.residency.space_mut(device) else {
                return Ok(true);
            };
            let slots = &storage.slots[waiting.component];
            let Some(slot) = slots.get(waiting.pinned).copied() else {
                return Ok(true);
            };
            match space.pin(slot) {
                Room::Held => waiting.pinned += 1,
                Room::Allocate(bytes) => match self.runtime.alloc(DeviceId(device), bytes) {
                    Ok(buffer) => space.give(slot, buffer),
                    // The driver has less than it said. What there is may do.
                    Err(RuntimeError::OutOfMemory { .. })
                        if space.unpinned().next().is_some() || self.running[device] > 1 =>
                    {
                        space.set_capacity(space.allocated());
                    }
                    Err(error) => return Err(error),
                },
                Room::Free(buffers) => {
                    for buffer in buffers {
                        self.runtime.free(buffer);
                    }
                }
                Room::Full if self.make_room(device, self.slot_bytes(slot))? => {}
                Room::Full => return Ok(false),
            }
        }
    }

    /// Whether the next slot that a component needs holds a version for others that it
    /// would overwrite. Without losses precedences exclude that.
    fn is_taken(&self, device: usize, index: usize) -> bool {
        let waiting = &self.windows[device].waiting[index];
        let storage = &self.prepared.storage;
        let residency = &storage.residency;
        let Some(slot) = storage.slots[waiting.component].get(waiting.pinned) else {
            return false;
        };
        let is_pinned = (residency.space(device))
            .is_some_and(|space| space.buffer(*slot).is_some() && !space.is_unpinned(*slot));
        let Some(version) = residency.version(device, *slot).filter(|_| is_pinned) else {
            return false;
        };
        let kernels = &self.components.list()[waiting.component].kernels;
        let mut inputs = kernels.iter().flat_map(|k| self.graph.kernel(*k).inputs());
        inputs.all(|datum| datum.0 != version)
    }

    fn slot_bytes(&self, slot: usize) -> u64 {
        self.graph.data()[slot].bytes
    }

    /// Evicts something. `false` if nothing can leave now: either nothing is left that
    /// may, or enough for `bytes` is on its way to the host.
    fn make_room(&mut self, device: usize, bytes: u64) -> Result<bool, RuntimeError> {
        while self.windows[device].leaving < bytes {
            let Some(slot) = self.victim(device) else {
                return Ok(false);
            };
            let residency = &mut self.prepared.storage.residency;
            let version = residency.version(device, slot).map(DatumId);
            let stays =
                |version: &DatumId| self.must_be_kept(*version) || self.storing(*version).is_some();
            match version.filter(stays) {
                None => {
                    self.evict(device, slot);
                    return Ok(true);
                }
                Some(version) => {
                    (self.prepared.storage.residency).set(device, version.0, State::Leaving);
                    self.windows[device].leaving += self.slot_bytes(slot);
                    let level_of = self.windows[device].waiting.front();
                    let component = level_of.map_or(0, |waiting| waiting.component);
                    self.store(component, device, version, &[])?;
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
        if !self.windowed {
            // Temporary data stay where they are until their room is needed.
            let is_dead = |slot: &usize| {
                let version = residency.version(device, *slot).map(DatumId);
                version.is_none_or(|version| !self.is_needed(version))
            };
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

    /// Whether the host or a kernel that has not run needs a datum.
    fn is_needed(&self, datum: DatumId) -> bool {
        let not_done = |kernel: &KernelId| !self.state.is_done(*kernel);
        self.graph.datum(datum).wanted || self.graph.readers(datum).iter().any(not_done)
    }

    /// Whether a datum must be written to the host before it leaves a device.
    fn must_be_kept(&self, datum: DatumId) -> bool {
        let storage = &self.prepared.storage;
        // The overwriter's version must stay in the host memory that both share.
        let overwriter = storage.overwritten(&self.graph, datum);
        let is_overwritten = overwriter.is_some_and(|kernel| self.state.was_launched(kernel));
        !is_overwritten && !storage.residency.in_host(datum.0) && self.is_needed(datum)
    }

    fn evict(&mut self, device: usize, slot: usize) {
        self.prepared.storage.residency.evict(device, slot);
        self.tell_left(device, slot);
        self.uses[device].evictions += 1;
    }

    /// Tells the policy, once, that a device has a slot's datum or gets it.
    pub(super) fn tell_arrived(&mut self, device: usize, slot: usize) {
        if !std::mem::replace(&mut self.told[device][slot], true) {
            self.policy.arrived(device, slot);
        }
    }

    fn tell_left(&mut self, device: usize, slot: usize) {
        if std::mem::replace(&mut self.told[device][slot], false) {
            self.policy.evicted(device, slot);
        }
    }

    /// Tells the policy what devices that are left have no more after a loss.
    pub(super) fn tell_absent(&mut self, lost: &[usize]) {
        for device in 0..self.windows.len() {
            for slot in 0..self.told[device].len() {
                if lost.contains(&device) {
                    self.told[device][slot] = false;
                } else if self
                    .prepared
                    .storage
                    .residency
                    .version(device, slot)
                    .is_none()
                {
                    self.tell_left(device, slot);
                }
            }
        }
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
        if self.windowed && self.graph.datum(datum).wanted && !is_in_host {
            self.store(component, device, datum, &[])?;
        }
        Ok(())
    }

    /// Takes the older versions of a slot out of the devices other than `maker`.
    pub(super) fn drop_older(&mut self, maker: usize, slot: usize, datum: DatumId) {
        if self.graph.first_version(datum) == datum {
            return;
        }
        for device in (0..self.windows.len()).filter(|device| *device != maker) {
            let residency = &mut self.prepared.storage.residency;
            if residency
                .version(device, slot)
                .is_none_or(|version| version == datum.0)
            {
                continue;
            }
            let version = residency.version(device, slot).map(DatumId);
            let is_evictable = residency.is_evictable(device, slot);
            let is_read = version.is_some_and(|version| self.storing(version).is_some());
            if self.windowed && is_evictable && !is_read {
                self.evict(device, slot);
            } else {
                self.tell_left(device, slot);
            }
        }
    }

    /// Loads what a component reads and the device has not.
    fn load_inputs(&mut self, device: usize, component: usize) -> Result<(), RuntimeError> {
        let components = std::sync::Arc::clone(&self.components);
        let graph = std::sync::Arc::clone(&self.graph);
        let to = Destination {
            component,
            device,
            queue: self.load_queue(device),
        };
        for kernel in &components.list()[component].kernels {
            for datum in graph.kernel(*kernel).inputs() {
                let maker = graph.producer(datum).map(|kernel| components.of(kernel));
                let residency = &self.prepared.storage.residency;
                if maker == Some(component) || residency.state(device, datum.0) != State::Absent {
                    continue;
                }
                match self.peer(device, datum) {
                    Some(peer) => self.load_from(peer, to, datum)?,
                    None => _ = self.load(to, Purpose::Load(datum), datum, &mut Vec::new())?,
                }
            }
        }
        Ok(())
    }

    /// The device with the fastest direct link to `device` of those that have a datum
    /// or get it.
    fn peer(&self, device: usize, datum: DatumId) -> Option<usize> {
        let residency = &self.prepared.storage.residency;
        let has = |peer: &usize| {
            matches!(
                residency.state(*peer, datum.0),
                State::Valid | State::Arriving(_)
            )
        };
        let bandwidth = |peer: usize| {
            let bandwidth = self
                .runtime
                .peer_bandwidth(DeviceId(peer), DeviceId(device));
            Some((peer, bandwidth?))
        };
        let peers = (0..self.windows.len()).filter(has).filter_map(bandwidth);
        let fastest = peers.max_by(|one, other| one.1.total_cmp(&other.1));
        fastest.map(|(peer, _)| peer)
    }

    /// Copies a datum from another device's memory, where it stays meanwhile.
    fn load_from(
        &mut self,
        peer: usize,
        to: Destination,
        datum: DatumId,
    ) -> Result<(), RuntimeError> {
        let to = Destination {
            queue: to.queue + 2,
            ..to
        };
        let mut wait = Vec::new();
        self.replace_versions(to, datum, &mut wait)?;
        let storage = &mut self.prepared.storage;
        if let State::Arriving((event, _)) = storage.residency.state(peer, datum.0) {
            wait.push(event);
        }
        let command = Command::Copy {
            from: Location::device(storage.buffer(datum, peer)?, 0),
            to: Location::device(storage.buffer(datum, to.device)?, 0),
            bytes: self.graph.datum(datum).bytes,
        };
        let slot = storage.residency.slot(datum.0);
        if let Some(space) = storage.residency.space_mut(peer) {
            space.pin(slot);
        }
        let event = self.submit(to, Purpose::PeerLoad(datum, peer), command, &wait)?;
        self.arriving(to, datum, event);
        Ok(())
    }

    /// A copy from another device has ended. Where it failed, that device may be lost
    /// without another sign of it.
    pub(super) fn loaded_from(&mut self, peer: usize, datum: DatumId, well: bool) {
        let residency = &mut self.prepared.storage.residency;
        let slot = residency.slot(datum.0);
        if let Some(space) = residency.space_mut(peer) {
            space.unpin(slot);
        }
        if !well
            && let Err(error) = self
                .runtime
                .alloc(DeviceId(peer), 1)
                .map(|b| self.runtime.free(b))
        {
            self.refused(error);
        }
    }

    /// A datum has been copied to the host.
    pub(super) fn stored(&mut self, datum: DatumId) {
        self.fetching.retain(|(fetched, _)| *fetched != datum);
        (self.prepared.storage).set_in_host(&self.graph, datum, true);
        // Several devices may have waited for the one copy.
        for device in 0..self.windows.len() {
            let residency = &mut self.prepared.storage.residency;
            if residency.state(device, datum.0) != State::Leaving {
                continue;
            }
            let slot = residency.slot(datum.0);
            residency.set(device, datum.0, State::Valid);
            let leaves = residency.is_evictable(device, slot);
            self.windows[device].leaving -= self.slot_bytes(slot);
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
            self.windows[device].leaving -= self.graph.datum(datum).bytes;
        }
        residency.set(device, datum.0, State::Absent);
    }

    /// A component has ended: its data may leave the device.
    pub(super) fn leave_window(&mut self, component: usize, device: usize) {
        self.windows[device].begun -= 1;
        let storage = &mut self.prepared.storage;
        let Some(space) = storage.residency.space_mut(device) else {
            return;
        };
        for slot in &storage.slots[component] {
            space.unpin(*slot);
        }
        for index in 0..storage.slots[component].len() {
            if !self.windowed {
                break;
            }
            let slot = self.prepared.storage.slots[component][index];
            let residency = &self.prepared.storage.residency;
            let version = residency.version(device, slot).map(DatumId);
            let is_dead = version.is_none_or(|version| !self.is_needed(version));
            let is_read = version.is_some_and(|version| self.storing(version).is_some());
            if is_dead && !is_read && residency.is_evictable(device, slot) {
                self.evict(device, slot);
            }
        }
    }

    /// Forgets what waits. Nothing is in flight.
    pub(super) fn clear_windows(&mut self) {
        self.windows.fill_with(Window::default);
    }

    /// The queue for a device's loads.
    fn load_queue(&self, device: usize) -> usize {
        self.options.of(device).0
    }

    /// The queue for copies from a device to the host.
    pub(super) fn store_queue(&self, device: usize) -> usize {
        match self.windowed {
            true => self.options.of(device).0 + 1,
            false => 0,
        }
    }
}
