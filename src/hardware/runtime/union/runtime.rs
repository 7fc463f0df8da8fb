//! The union as a [`Runtime`].

use std::ops::Range;
use std::ptr::NonNull;
use std::time::{Duration, Instant};

use pdawl_base::parallel;

use super::staging::{OwnMemory, Role};
use super::{Held, InFlight, Released, Union};
use crate::codelet::{Codelet, KernelArgument, OpenClKernel};
use crate::machine::{Device, LinkSpec};
use crate::runtime::{
    AdoptedMemory, BufferId, Command, Comparison, Completion, DeviceId, Devices, EventId,
    HostMemoryId, HostRegion, HostSpan, Nanos, NotAdopted, Notice, PeerPath, QueueId, QueueKind,
    Runtime, RuntimeError, guarded,
};

impl Devices for Union {
    fn devices(&self) -> &[Device] {
        &self.devices
    }

    fn alloc(&mut self, device: DeviceId, bytes: u64) -> Result<BufferId, RuntimeError> {
        let (backend, local) = self.locate(device)?;
        let buffer = self.backends[backend].alloc(local, bytes)?;
        self.buffers.insert(buffer, OwnMemory { device, bytes });
        Ok(buffer)
    }

    fn free(&mut self, buffer: BufferId) {
        self.release_in_time(Released::Buffer(buffer));
    }

    fn peer_path(&self, from: DeviceId, to: DeviceId) -> Option<PeerPath> {
        self.paths.get(&(from, to)).copied()
    }

    fn host_bandwidth(&self) -> Option<f64> {
        self.host_bandwidth
    }

    fn set_host_bandwidth(&mut self, bandwidth: Option<f64>) {
        self.host_bandwidth = bandwidth;
    }

    fn set_link(&mut self, device: DeviceId, link: &LinkSpec) {
        if let Some(device) = self.devices.get_mut(device.0) {
            device.link_bandwidth = Some(link.both_ways);
            device.one_way = Some([link.h2d, link.d2h]);
        }
    }

    fn set_peer_path(
        &mut self,
        from: DeviceId,
        to: DeviceId,
        path: PeerPath,
    ) -> Result<(), RuntimeError> {
        let ((source, local_from), (target, local_to)) = (self.locate(from)?, self.locate(to)?);
        let has_own = |device: DeviceId| !self.devices[device.0].shares_host_memory;
        let can_directly =
            || source == target && self.backends[source].copies_directly(local_from, local_to);
        if from == to || !(has_own(from) && has_own(to)) || !(path.through_host || can_directly()) {
            return Err(RuntimeError::Unsupported {
                device: self.devices[from.0].name.clone(),
                what: "this way of copies to the other device",
            });
        }
        self.paths.insert((from, to), path);
        Ok(())
    }

    fn open_queue(&mut self, device: DeviceId, kind: QueueKind) -> Result<QueueId, RuntimeError> {
        let (backend, local) = self.locate(device)?;
        let queue = self.backends[backend].open_queue(local, kind)?;
        self.queues.insert(queue, device);
        self.order.open(queue, backend);
        Ok(queue)
    }

    fn free_queue(&mut self, queue: QueueId) {
        self.close_lanes(queue);
        if let Some(device) = self.queues.remove(&queue) {
            let (backend, _) = self.local_ids[device.0];
            self.release_in_time(Released::Queue(queue, backend));
        }
    }

    fn load(&mut self, queue: QueueId, codelet: &Codelet) -> Result<(), RuntimeError> {
        let (backend, _) = self.locate(self.device_of(queue)?)?;
        self.backends[backend].load(queue, codelet)
    }

    fn know_implementations(&mut self, known: &[Comparison]) {
        for backend in &mut self.backends {
            backend.know_implementations(known);
        }
    }

    fn implementations(&mut self) -> Vec<Comparison> {
        let backends = self.backends.iter_mut();
        backends
            .flat_map(|backend| backend.implementations())
            .collect()
    }

    fn driver_time(&self) -> Nanos {
        self.backends.iter().map(|b| b.driver_time()).sum()
    }

    fn runs_graphs(&self, device: DeviceId) -> bool {
        let located = self.locate(device);
        located.is_ok_and(|(backend, local)| self.backends[backend].runs_graphs(local))
    }

    fn arguments(
        &mut self,
        device: DeviceId,
        kernel: &OpenClKernel,
    ) -> Result<Vec<KernelArgument>, RuntimeError> {
        let (backend, local) = self.locate(device)?;
        self.backends[backend].arguments(local, kernel)
    }

    fn submit(
        &mut self,
        queue: QueueId,
        command: Command,
        wait: &[EventId],
        event: Option<EventId>,
    ) -> Result<(), RuntimeError> {
        let Some(event) = event else {
            return self.submit_covered(queue, command, wait);
        };
        if let Some(copy) = self.staged_copy(&command) {
            return self.submit_staged(queue, copy, wait, event);
        }
        if let Command::Series(parts) = &command
            && parts.iter().any(|part| self.staged_copy(part).is_some())
        {
            return Err(RuntimeError::Unsupported {
                device: self.devices[self.device_of(queue)?.0].name.clone(),
                what: "a copy through host memory within a series",
            });
        }
        self.submit_as(queue, command, wait, event, Role::Command)
    }

    fn finish(&mut self, queue: QueueId) {
        if let Some(device) = self.queues.get(&queue) {
            let (backend, _) = self.local_ids[device.0];
            // A command to which the union gave an event is unknown to `finish` of its
            // backend, and perhaps held back.
            while self.in_flight.values().any(|c| c.queue == queue) {
                // All backends have ended, and their commands with them.
                if self.receive(None).is_err() {
                    break;
                }
            }
            self.backends[backend].finish(queue);
            self.uncovered.remove(&queue);
        }
    }

    fn notify(&mut self, notice: Notice) {
        if let Notice::PhaseBegins(phase) = notice {
            self.faults.begin(phase, self.now());
        }
        for backend in &mut self.backends {
            backend.notify(notice);
        }
    }
}

impl Runtime for Union {
    fn now(&self) -> Nanos {
        self.epoch.elapsed().as_nanos() as Nanos
    }

    fn alloc_host(&mut self, bytes: u64) -> Result<HostMemoryId, RuntimeError> {
        if let Some(exact) = self.guards {
            return self.keep_region(guarded::allocate(bytes, exact)?);
        }
        let shift = self.next_shift();
        let Some(owner) = self.pinning() else {
            let region = self.allocate(0, bytes, shift)?;
            return self.keep_region(region);
        };
        let spare = self.spare.take(bytes, shift);
        let region = match spare {
            Some(region) => HostRegion {
                id: HostMemoryId::fresh(),
                ..region
            },
            None => {
                self.spare.make_room(bytes);
                match self.allocate(owner, bytes, shift) {
                    // What is spare may be what is missing.
                    Err(RuntimeError::OutOfMemory { .. }) if self.spare.clear() => {
                        self.allocate(owner, bytes, shift)
                    }
                    allocated => allocated,
                }?
            }
        };
        let id = self.keep_region(region)?;
        self.spare.used(bytes);
        Ok(id)
    }

    fn free_host(&mut self, memory: HostMemoryId) {
        if let Some(region) = self.regions.remove(&memory) {
            let is_adopted = self.adopted.remove(&memory).is_some();
            self.release_in_time(Released::Host(memory));
            if !is_adopted && self.guards.is_none() && self.pinning().is_some() {
                self.spare.put(region);
            }
        }
    }

    fn adopt_host(&mut self, memory: AdoptedMemory) -> Result<HostMemoryId, NotAdopted> {
        self.adopt(memory)
    }

    fn take_host(&mut self, memory: HostMemoryId) -> Result<AdoptedMemory, RuntimeError> {
        self.take(memory)
    }

    fn host_range(
        &mut self,
        memory: HostMemoryId,
        range: Range<u64>,
    ) -> Result<&mut [u8], RuntimeError> {
        let (first, leased) = self.leased(memory, range)?;
        if self.is_used(&leased) {
            return Err(RuntimeError::Busy);
        }
        // SAFETY: the region is mapped, initialised and this long; no
        // command that is in flight uses the range, and none can be submitted while
        // the slice borrows the runtime.
        Ok(unsafe { std::slice::from_raw_parts_mut(first.as_ptr(), leased.bytes as usize) })
    }

    fn host_read(
        &mut self,
        memory: HostMemoryId,
        range: Range<u64>,
    ) -> Result<&[u8], RuntimeError> {
        let (first, leased) = self.leased(memory, range)?;
        let mut uses = self.uses();
        if uses.any(|span| span.is_written && span.overlaps(&leased)) {
            return Err(RuntimeError::Busy);
        }
        // SAFETY: the region is mapped, initialised and this long; no command that is in
        // flight writes the range, and none can be submitted while the slice borrows the
        // runtime.
        Ok(unsafe { std::slice::from_raw_parts(first.as_ptr(), leased.bytes as usize) })
    }

    fn host_copy(
        &mut self,
        from: HostMemoryId,
        to: HostMemoryId,
        bytes: u64,
    ) -> Result<(), RuntimeError> {
        let given = NonNull::from(self.host_read(from, 0..bytes)?);
        let target = self.host_range(to, 0..bytes)?;
        if from != to {
            // SAFETY: nothing writes or frees the one region while the other one is written.
            parallel::copy(target, unsafe { given.as_ref() });
        }
        Ok(())
    }

    fn wait(&mut self, timeout: Option<Duration>) -> Result<Option<Completion>, RuntimeError> {
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        self.drain();
        while self.arrived.is_empty() && !self.in_flight.is_empty() && self.receive(deadline)? {}
        let next = self.arrived.pop_front();
        if let Some(completion) = &next {
            self.faults.report(completion.device, &completion.status);
        }
        Ok(next)
    }
}

impl Union {
    /// The first byte of a range of host memory that is to be read or filled, and the range
    /// without what lies behind the memory. What has ended is known.
    fn leased(
        &mut self,
        memory: HostMemoryId,
        range: Range<u64>,
    ) -> Result<(NonNull<u8>, HostSpan), RuntimeError> {
        self.drain();
        let region = self.regions.get(&memory).ok_or(RuntimeError::Unknown {
            what: "host memory",
        })?;
        let end = range.end.min(region.bytes);
        let leased = HostSpan::new(memory, range.start.min(end)..end);
        // SAFETY: the offset lies within the region or at its end.
        let first = unsafe { region.address.add(leased.offset as usize) };
        Ok((first, leased))
    }

    /// Submits a command to its backend, or holds it back.
    pub(super) fn submit_as(
        &mut self,
        queue: QueueId,
        command: Command,
        wait: &[EventId],
        event: EventId,
        role: Role,
    ) -> Result<(), RuntimeError> {
        self.drain();
        let device = self.device_of(queue)?;
        self.locate(device)?;
        let refusal = self.faults.strike(device, &command, self.now());
        self.silent_since = Instant::now();
        // This completion covers the commands before it, too.
        let covered = self.uncovered.remove(&queue).unwrap_or_default();
        let spans = covered.iter().map(|(_, span)| *span);
        let uses = spans.chain(command.host_spans()).collect();
        let entry = InFlight {
            queue,
            device,
            queued: self.now(),
            role,
            uses,
        };
        self.in_flight.insert(event, entry);
        let passes = match refusal {
            None => self.order.pass(queue, wait),
            Some(_) => None,
        };
        if let Some(wait) = passes {
            self.order.sent(queue, event);
            if let Err(error) = self.send(event, command, &wait) {
                self.in_flight.remove(&event);
                self.note_uncovered(queue, covered);
                self.order.withdrawn(event);
                return Err(error);
            }
        } else {
            let refused = refusal.is_some();
            let held = Held { command, refusal };
            self.order.hold(queue, event, wait, held, refused);
            self.advance();
        }
        Ok(())
    }

    /// Submits a command without an event of its own.
    fn submit_covered(
        &mut self,
        queue: QueueId,
        command: Command,
        wait: &[EventId],
    ) -> Result<(), RuntimeError> {
        let (backend, _) = self.locate(self.device_of(queue)?)?;
        let is_whole = self.staged_copy(&command).is_none();
        let backend = &mut self.backends[backend];
        if is_whole
            && backend.can_omit_events()
            && self.faults.is_empty()
            && let Some(wait) = self.order.pass(queue, wait)
        {
            let uses: Vec<HostSpan> = command.host_spans().collect();
            backend.submit(queue, command, &wait, None)?;
            self.note_uncovered(queue, uses.into_iter().map(|span| (None, span)).collect());
            return Ok(());
        }
        let event = EventId::fresh();
        self.submit(queue, command, wait, Some(event))?;
        // Its completion may come later than that of the command that covers it.
        if let Some(entry) = self.in_flight.get_mut(&event) {
            let uses = std::mem::take(&mut entry.uses).into_iter();
            self.note_uncovered(queue, uses.map(|span| (Some(event), span)).collect());
        }
        Ok(())
    }

    /// Notes the host memory of commands that no completion covers yet.
    fn note_uncovered(&mut self, queue: QueueId, uses: Vec<(Option<EventId>, HostSpan)>) {
        if !uses.is_empty() {
            self.uncovered.entry(queue).or_default().extend(uses);
        }
    }
}
