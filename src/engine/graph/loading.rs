//! Loading the inputs of a component that waits in a device's window: from the host's
//! memory, or from another device's where a direct link exists or the host has no copy.

use std::sync::Arc;

use super::dispatch::Destination;
use super::run::GraphRun;
use super::state::ComponentState;
use super::timeline::Purpose;
use crate::policy::Prefetch;
use crate::residency::{Room, State};
use crate::runtime::{Command, DeviceId, Location, Rows, RuntimeError};
use pdawl_core::graph::DatumId;

impl GraphRun<'_> {
    /// Loads what a component reads and the device has not, of the slots that `which` names.
    pub(super) fn load_inputs(
        &mut self,
        device: usize,
        component: usize,
        which: impl Fn(usize) -> bool,
    ) -> Result<(), RuntimeError> {
        let components = Arc::clone(&self.components);
        let graph = Arc::clone(&self.graph);
        let to = Destination {
            component,
            device,
            queue: self.load_queue(device),
        };
        for kernel in &components.list()[component].kernels {
            for datum in graph.kernel(*kernel).inputs() {
                let maker = graph.producer(datum).map(|kernel| components.of(kernel));
                let residency = &self.prepared.storage.residency;
                if maker == Some(component)
                    || residency.state(device, datum.0) != State::Absent
                    || !which(residency.slot(datum.0))
                {
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

    /// Loads what the policy wants ahead of the components that need it, while the device
    /// loads nothing else.
    pub(super) fn prefetch(&mut self, device: usize) -> Result<(), RuntimeError> {
        while self.known.windows[device].loads == 0 {
            let known = self.known.windows[device].wanted.take();
            let Some(wanted) = known.or_else(|| self.policy.prefetch(device)) else {
                return Ok(());
            };
            let Prefetch { component, datum } = wanted;
            let residency = &self.prepared.storage.residency;
            if self.known.state.components[component].state != ComponentState::Ready
                || residency.version(device, datum).is_some()
            {
                continue;
            }
            if !self.pin_for_prefetch(device, component, datum)? {
                self.known.windows[device].wanted = Some(wanted);
                return Ok(());
            }
            self.load_inputs(device, component, |slot| slot == datum)?;
            if let Some(space) = self.prepared.storage.residency.space_mut(device) {
                space.unpin(datum);
            }
        }
        Ok(())
    }

    /// Pins a slot if there is room without evicting what a kernel that has not run
    /// needs: that datum would have to be loaded again.
    fn pin_for_prefetch(
        &mut self,
        device: usize,
        component: usize,
        slot: usize,
    ) -> Result<bool, RuntimeError> {
        let Some(space) = self.prepared.storage.residency.space_mut(device) else {
            return Ok(false);
        };
        match space.pin(slot) {
            Room::Held => return Ok(true),
            Room::Allocate(_) => {}
            Room::Free(buffers) => {
                for buffer in buffers {
                    self.runtime.free(buffer);
                }
            }
            Room::Full => {
                let Some(dead) = self.unneeded(device, self.slot_bytes(slot)) else {
                    return Ok(false);
                };
                self.evict(device, dead);
            }
        }
        self.pin_slot(device, component, slot)
    }

    /// A slot of at least so many bytes that may leave a device and that nobody needs.
    fn unneeded(&self, device: usize, bytes: u64) -> Option<usize> {
        let mut unpinned = (self.prepared.storage.residency.space(device)?).unpinned();
        unpinned.find(|slot| {
            self.slot_bytes(*slot) >= bytes
                && self.can_leave(device, *slot)
                && self.is_dead(device, *slot)
        })
    }

    /// The device with the fastest way to `device` of those that have a datum or get it.
    /// A way through host memory begins with the copy that the host perhaps has.
    fn peer(&self, device: usize, datum: DatumId) -> Option<usize> {
        let residency = &self.prepared.storage.residency;
        let has = |peer: &usize| {
            matches!(
                residency.state(*peer, datum.0),
                State::Valid | State::Arriving(_)
            )
        };
        let storage = &self.prepared.storage;
        let in_host = storage.in_host(&self.graph, datum) || self.storing(datum).is_some();
        let bandwidth = |peer: usize| {
            let path = self.runtime.peer_path(DeviceId(peer), DeviceId(device))?;
            (!path.through_host || !in_host).then_some((peer, path.bandwidth))
        };
        let peers = (0..self.known.windows.len())
            .filter(has)
            .filter_map(bandwidth);
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
            rows: Rows::one(self.graph.datum(datum).bytes),
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

    /// The queue for a device's loads.
    fn load_queue(&self, device: usize) -> usize {
        self.options.of(device).0
    }

    /// The queue for copies from a device to the host.
    pub(super) fn store_queue(&self, device: usize) -> usize {
        match self.known.windowed {
            true => self.options.of(device).0 + 1,
            false => 0,
        }
    }
}
