//! A device's window: the components that the policy gave it, and their data.
//!
//! In the order in which the policy gave them, components get room for all their data
//! in the device's memory, and their inputs are loaded while earlier components
//! compute. Of those, the policy says which one begins. What a component in the window needs
//! is pinned, so nothing that was loaded for it leaves before its use, and the first one
//! always gets its room in the end.

use std::collections::VecDeque;

use super::GraphRunError;
use super::run::GraphRun;
use super::state::ComponentState;
use crate::policy::Prefetch;
use crate::residency::Room;
use crate::runtime::{DeviceId, RuntimeError};

/// Components of a window that each queue of the device has at once: one computes, and the
/// next one follows it without the host.
const DEPTH: usize = 2;

/// A component that waits for a device.
#[derive(Debug)]
pub(super) struct Waiting {
    pub component: usize,
    /// How many of its slots are pinned.
    pinned: usize,
    /// Whether all are, and what was absent is on its way.
    is_prepared: bool,
}

/// The components that a device has not begun.
#[derive(Debug, Default)]
pub(super) struct Window {
    pub waiting: VecDeque<Waiting>,
    /// Components that the device has begun and not ended.
    pub begun: usize,
    /// Bytes that are on their way out, to make room.
    pub leaving: u64,
    /// Copies to the device that are in flight.
    pub loads: usize,
    /// What the policy wants loaded next, and there was no room for.
    pub wanted: Option<Prefetch>,
}

impl GraphRun<'_> {
    /// Puts a component at the end of a device's window.
    pub(super) fn assign(&mut self, component: usize, device: usize) {
        let run = &mut self.known.state.components[component];
        run.state = ComponentState::Running(device);
        run.written = 0;
        self.known.running[device] += 1;
        self.known.windows[device].waiting.push_back(Waiting {
            component,
            pinned: 0,
            is_prepared: false,
        });
    }

    /// The next component that a device can begin. It begins before data are loaded for later
    /// ones: to enqueue a load takes time, too.
    ///
    /// # Errors
    /// What the runtime refuses.
    pub(super) fn next_to_begin(&mut self) -> Result<Option<(usize, usize)>, RuntimeError> {
        loop {
            let mut has_prepared = false;
            for device in 0..self.known.windows.len() {
                if let Some(component) = self.take_prepared(device) {
                    return Ok(Some((component, device)));
                }
                has_prepared |= self.prepare_next(device)?;
            }
            if !has_prepared {
                return Ok(None);
            }
        }
    }

    /// Takes the component that begins now out of a device's window.
    fn take_prepared(&mut self, device: usize) -> Option<usize> {
        let depth = match self.known.windowed {
            true => DEPTH * self.options.of(device).0,
            false => usize::MAX,
        };
        let window = &self.known.windows[device];
        if window.begun == depth || !window.waiting.front()?.is_prepared {
            return None;
        }
        let prepared = window.waiting.iter().take_while(|one| one.is_prepared);
        let prepared: Vec<usize> = prepared.map(|one| one.component).collect();
        let place = self.policy.begins(&prepared);
        let window = &mut self.known.windows[device];
        let next = window.waiting.remove(place)?;
        window.begun += 1;
        Some(next.component)
    }

    /// The error of a component that waits for room which does not come.
    pub(super) fn lacking_room(&self) -> Option<GraphRunError> {
        let first = |window: &Window| window.waiting.front().map(|first| first.component);
        let mut waiting = self.known.windows.iter().map(first).enumerate();
        let (device, component) = waiting.find_map(|(device, first)| Some((device, first?)))?;
        self.prepared.check_room(device, component).err()
    }

    /// Pins and loads the data of the first component in a window that has not all. `false` if
    /// there is none, or no room.
    fn prepare_next(&mut self, device: usize) -> Result<bool, RuntimeError> {
        let mut waiting = self.known.windows[device].waiting.iter();
        let Some(index) = waiting.position(|one| !one.is_prepared) else {
            return Ok(false);
        };
        if !self.pin(device, index)? {
            return Ok(false);
        }
        let component = self.known.windows[device].waiting[index].component;
        if self.known.windowed && !self.prepared.devices[device].shares {
            self.load_inputs(device, component, |_| true)?;
        }
        self.known.windows[device].waiting[index].is_prepared = true;
        Ok(true)
    }

    /// Pins the slots of a component. `false` if there is no room for them yet.
    fn pin(&mut self, device: usize, index: usize) -> Result<bool, RuntimeError> {
        loop {
            if self.is_taken(device, index) {
                return Ok(false);
            }
            let waiting = &self.known.windows[device].waiting[index];
            let component = waiting.component;
            let slots = &self.prepared.storage.slots[component];
            let Some(slot) = slots.get(waiting.pinned).copied() else {
                return Ok(true);
            };
            if !self.pin_slot(device, component, slot)? {
                return Ok(false);
            }
            self.known.windows[device].waiting[index].pinned += 1;
        }
    }

    /// Pins a slot that a component needs. `false` if there is no room for it yet.
    pub(super) fn pin_slot(
        &mut self,
        device: usize,
        component: usize,
        slot: usize,
    ) -> Result<bool, RuntimeError> {
        loop {
            let Some(space) = self.prepared.storage.residency.space_mut(device) else {
                return Ok(true);
            };
            match space.pin(slot) {
                Room::Held => return Ok(true),
                Room::Allocate(bytes) => match self.runtime.alloc(DeviceId(device), bytes) {
                    Ok(buffer) => space.give(slot, buffer),
                    // The driver has less than it said. It is not asked for as much
                    // again, in later runs neither, so another buffer leaves first. The
                    // error stands where none can.
                    Err(RuntimeError::OutOfMemory { .. })
                        if space.has_unused() || self.known.running[device] > 1 =>
                    {
                        space.set_capacity((space.allocated() + bytes).saturating_sub(1));
                    }
                    Err(error) => return Err(error),
                },
                Room::Free(buffers) => {
                    for buffer in buffers {
                        self.runtime.free(buffer);
                    }
                }
                Room::Full => {
                    if !self.make_room(device, component, self.slot_bytes(slot))? {
                        return Ok(false);
                    }
                }
            }
        }
    }

    /// Whether the next slot that a component needs holds a version for others that it
    /// would overwrite. Without losses precedences exclude that.
    fn is_taken(&self, device: usize, index: usize) -> bool {
        let waiting = &self.known.windows[device].waiting[index];
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

    /// A component has ended: its data may leave the device.
    pub(super) fn leave_window(&mut self, component: usize, device: usize) {
        self.known.windows[device].begun -= 1;
        let storage = &mut self.prepared.storage;
        let Some(space) = storage.residency.space_mut(device) else {
            return;
        };
        for slot in &storage.slots[component] {
            space.unpin(*slot);
        }
        for index in 0..storage.slots[component].len() {
            if !self.known.windowed {
                break;
            }
            let slot = self.prepared.storage.slots[component][index];
            if self.is_dead(device, slot) && self.can_leave(device, slot) {
                self.evict(device, slot);
            }
        }
    }

    /// Forgets what waits. Nothing is in flight.
    pub(super) fn clear_windows(&mut self) {
        self.known.windows.fill_with(Window::default);
    }
}
