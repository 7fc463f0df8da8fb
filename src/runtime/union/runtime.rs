//! The union as a [`Runtime`].

use std::time::{Duration, Instant};

use crossbeam_channel::RecvTimeoutError;

use super::{Held, InFlight, Released, Union};
use crate::codelet::{Codelet, KernelArgument, OpenClKernel};
use crate::machine::Device;
use crate::runtime::{
    BroadcastTask, BufferId, Command, Completion, DeviceId, EventId, HostMemoryId, Nanos, Notice,
    QueueId, Runtime, RuntimeError, Tag,
};

impl Runtime for Union {
    fn devices(&self) -> &[Device] {
        &self.devices
    }

    fn now(&self) -> Nanos {
        self.epoch.elapsed().as_nanos() as Nanos
    }

    fn alloc_host(&mut self, bytes: u64) -> Result<HostMemoryId, RuntimeError> {
        let pinning = self.backends.iter().position(|b| b.pins_host_memory());
        let owner = pinning.unwrap_or(0);
        let shift = self.next_shift();
        let backend = self
            .backends
            .get_mut(owner)
            .ok_or(RuntimeError::Unknown { what: "device" })?;
        let whole = backend.alloc_host(bytes.saturating_add(shift))?;
        let region = whole.from(shift);
        for index in 0..self.backends.len() {
            if let Err(error) = self.backends[index].adopt_host(region.clone()) {
                self.release(Released::Host(region.id));
                return Err(error);
            }
        }
        let id = region.id;
        self.regions.insert(id, region);
        Ok(id)
    }

    fn free_host(&mut self, memory: HostMemoryId) {
        if self.regions.remove(&memory).is_some() {
            self.release_in_time(Released::Host(memory));
        }
    }

    fn host_bytes(&mut self, memory: HostMemoryId) -> Result<&mut [u8], RuntimeError> {
        self.drain();
        // Commands without an event have ended here, even if their completions
        // are still to come: a later completion covers them.
        if self
            .in_flight
            .values()
            .any(|command| !command.without_event)
        {
            return Err(RuntimeError::Busy);
        }
        let region = self.regions.get(&memory).ok_or(RuntimeError::Unknown {
            what: "host memory",
        })?;
        // SAFETY: the region is mapped, initialised by the system and this
        // long; no command is in flight, and none can be submitted while the
        // slice borrows the runtime.
        Ok(unsafe {
            std::slice::from_raw_parts_mut(region.address.as_ptr(), region.bytes as usize)
        })
    }

    fn alloc(&mut self, device: DeviceId, bytes: u64) -> Result<BufferId, RuntimeError> {
        let (backend, local) = self.locate(device)?;
        let buffer = self.backends[backend].alloc(local, bytes)?;
        self.buffers.insert(buffer, backend);
        Ok(buffer)
    }

    fn free(&mut self, buffer: BufferId) {
        self.release_in_time(Released::Buffer(buffer));
    }

    fn open_queue(&mut self, device: DeviceId, profiling: bool) -> Result<QueueId, RuntimeError> {
        let (backend, local) = self.locate(device)?;
        let queue = self.backends[backend].open_queue(local, profiling)?;
        self.queues.insert(queue, device);
        self.order.open(queue, backend);
        Ok(queue)
    }

    fn free_queue(&mut self, queue: QueueId) {
        if let Some(device) = self.queues.remove(&queue) {
            let (backend, _) = self.local_ids[device.0];
            self.release_in_time(Released::Queue(queue, backend));
        }
    }

    fn load(&mut self, queue: QueueId, codelet: &Codelet) -> Result<(), RuntimeError> {
        let (backend, _) = self.locate(self.device_of(queue)?)?;
        self.backends[backend].load(queue, codelet)
    }

    fn driver_time(&self) -> Nanos {
        self.backends.iter().map(|b| b.driver_time()).sum()
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
        tag: Tag,
    ) -> Result<EventId, RuntimeError> {
        self.drain();
        let device = self.device_of(queue)?;
        self.locate(device)?;
        let refusal = self.faults.strike(device, &command);
        let event = EventId::fresh();
        self.silent_since = Instant::now();
        let entry = InFlight {
            queue,
            device,
            queued: self.now(),
            without_event: false,
        };
        self.in_flight.insert(event, entry);
        let passes = match refusal {
            None => self.order.pass(queue, wait),
            Some(_) => None,
        };
        if let Some(wait) = passes {
            self.order.sent(queue, event);
            if let Err(error) = self.send(event, command, &wait, tag) {
                self.in_flight.remove(&event);
                self.order.withdrawn(event);
                return Err(error);
            }
        } else {
            let refused = refusal.is_some();
            let held = Held {
                command,
                tag,
                refusal,
            };
            self.order.hold(queue, event, wait, held, refused);
            self.advance();
        }
        Ok(event)
    }

    fn submit_without_event(
        &mut self,
        queue: QueueId,
        command: Command,
        wait: &[EventId],
        tag: Tag,
    ) -> Result<(), RuntimeError> {
        let (backend, _) = self.locate(self.device_of(queue)?)?;
        let backend = &mut self.backends[backend];
        if backend.can_omit_events()
            && self.faults.is_empty()
            && let Some(wait) = self.order.pass(queue, wait)
        {
            return backend.submit_without_event(queue, command, &wait, tag);
        }
        let event = self.submit(queue, command, wait, tag)?;
        if let Some(entry) = self.in_flight.get_mut(&event) {
            entry.without_event = true;
        }
        Ok(())
    }

    fn finish(&mut self, queue: QueueId) {
        if let Some(device) = self.queues.get(&queue) {
            let (backend, _) = self.local_ids[device.0];
            self.backends[backend].finish(queue);
        }
    }

    fn wait(&mut self, timeout: Option<Duration>) -> Result<Option<Completion>, RuntimeError> {
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        self.drain();
        while self.arrived.is_empty() && !self.in_flight.is_empty() {
            let suspicious = self.silent_since + self.silence;
            let until = deadline.map_or(suspicious, |deadline| deadline.min(suspicious));
            let received = if self.poll() {
                self.try_receive()
            } else {
                self.completions.recv_deadline(until)
            };
            match received {
                Ok(completion) => self.take_in(completion),
                Err(RecvTimeoutError::Timeout) if Instant::now() < until => {}
                Err(RecvTimeoutError::Timeout) if deadline.is_some_and(|d| d <= until) => break,
                Err(RecvTimeoutError::Timeout) => {
                    for backend in &mut self.backends {
                        backend.inspect();
                    }
                    self.silent_since = Instant::now();
                }
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(RuntimeError::Call {
                        device: "every device".to_owned(),
                        call: "waiting for a completion",
                        why: format!(
                            "all backends have ended with {} commands in flight",
                            self.in_flight.len()
                        ),
                    });
                }
            }
        }
        let next = self.arrived.pop_front();
        if let Some(completion) = &next {
            self.faults.report(completion.device, &completion.status);
        }
        Ok(next)
    }

    fn notify(&mut self, notice: Notice) {
        if let Notice::StepBegins(step) = notice {
            self.faults.step = step;
        }
        for backend in &mut self.backends {
            backend.notify(notice);
        }
    }

    fn on_each_worker(&mut self, task: &BroadcastTask) {
        for backend in &mut self.backends {
            backend.on_each_worker(task);
        }
    }
}
