//! The union as a [`Runtime`].

use std::time::{Duration, Instant};

use crossbeam_channel::RecvTimeoutError;

use super::{Flying, Held, Released, Union};
use crate::codelet::{Codelet, KernelArgument, OpenClKernel};
use crate::machine::Device;
use crate::runtime::{
    BufferId, Command, Completion, DeviceId, Errand, EventId, HostMemoryId, Nanos, QueueId,
    Runtime, RuntimeError, Tag,
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
        // What is quiet has ended by now, even where that is told later.
        if self.flying.values().any(|flying| !flying.quiet) {
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
        let (backend, local) = self.place(device)?;
        let buffer = self.backends[backend].alloc(local, bytes)?;
        self.buffers.insert(buffer, backend);
        Ok(buffer)
    }

    fn free(&mut self, buffer: BufferId) {
        self.release_in_time(Released::Buffer(buffer));
    }

    fn queue(&mut self, device: DeviceId) -> Result<QueueId, RuntimeError> {
        let (backend, local) = self.place(device)?;
        let queue = self.backends[backend].queue(local)?;
        self.opened(queue, device, backend);
        Ok(queue)
    }

    fn unstamped_queue(&mut self, device: DeviceId) -> Result<QueueId, RuntimeError> {
        let (backend, local) = self.place(device)?;
        let queue = self.backends[backend].unstamped_queue(local)?;
        self.opened(queue, device, backend);
        Ok(queue)
    }

    fn load(&mut self, queue: QueueId, codelet: &Codelet) -> Result<(), RuntimeError> {
        let device = self.queues.get(&queue).copied();
        let device = device.ok_or(RuntimeError::Unknown { what: "queue" })?;
        let (backend, _) = self.place(device)?;
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
        let (backend, local) = self.place(device)?;
        self.backends[backend].arguments(local, kernel)
    }

    fn free_queue(&mut self, queue: QueueId) {
        let device = self.queues.remove(&queue);
        if let Some((backend, _)) = device.and_then(|device| self.place(device).ok()) {
            self.release_in_time(Released::Queue(queue, backend));
        }
    }

    fn submit(
        &mut self,
        queue: QueueId,
        command: Command,
        wait: &[EventId],
        tag: Tag,
    ) -> Result<EventId, RuntimeError> {
        self.drain();
        let device = self.queues.get(&queue).copied();
        let device = device.ok_or(RuntimeError::Unknown { what: "queue" })?;
        let event = EventId::fresh();
        self.quiet_since = Instant::now();
        let queued = self.now();
        let flying = Flying {
            queue,
            device,
            queued,
            quiet: false,
        };
        self.flying.insert(event, flying);
        if let Some(wait) = self.order.pass(queue, event, wait) {
            if let Err(error) = self.send(event, command, &wait, tag) {
                self.flying.remove(&event);
                self.order.withdrawn(event);
                return Err(error);
            }
        } else {
            self.order.hold(
                queue,
                event,
                wait,
                Held {
                    command,
                    tag,
                    refusal: None,
                },
            );
            self.advance();
        }
        Ok(event)
    }

    fn submit_quietly(
        &mut self,
        queue: QueueId,
        command: Command,
        wait: &[EventId],
        tag: Tag,
    ) -> Result<(), RuntimeError> {
        let device = self.queues.get(&queue).copied();
        let device = device.ok_or(RuntimeError::Unknown { what: "queue" })?;
        let (backend, _) = self.place(device)?;
        let passes = match self.backends[backend].quiet() {
            true => self.order.pass_quietly(queue, wait),
            false => None,
        };
        match passes {
            Some(wait) => self.backends[backend].submit_quietly(queue, command, &wait, tag),
            None => {
                let event = self.submit(queue, command, wait, tag)?;
                if let Some(flying) = self.flying.get_mut(&event) {
                    flying.quiet = true;
                }
                Ok(())
            }
        }
    }

    fn quiesce(&mut self, queue: QueueId) {
        let device = self.queues.get(&queue).copied();
        if let Some((backend, _)) = device.and_then(|device| self.place(device).ok()) {
            self.backends[backend].quiesce(queue);
        }
    }

    fn begin_batch(&mut self) {
        for backend in &mut self.backends {
            backend.begin_batch();
        }
    }

    fn end_batch(&mut self) {
        for backend in &mut self.backends {
            backend.end_batch();
        }
    }

    fn wait(&mut self, timeout: Option<Duration>) -> Result<Option<Completion>, RuntimeError> {
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        self.drain();
        while self.arrived.is_empty() && !self.flying.is_empty() {
            let suspicious = self.quiet_since + self.silence;
            let until = deadline.map_or(suspicious, |deadline| deadline.min(suspicious));
            let received = if self.look() {
                self.glance()
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
                    self.quiet_since = Instant::now();
                }
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(RuntimeError::Call {
                        device: "every device".to_owned(),
                        call: "waiting for a completion",
                        why: format!(
                            "all backends have ended with {} commands in flight",
                            self.flying.len()
                        ),
                    });
                }
            }
        }
        Ok(self.arrived.pop_front())
    }

    fn mark_step(&mut self, step: u32) {
        for backend in &mut self.backends {
            backend.mark_step(step);
        }
    }

    fn begin_driving(&mut self) {
        for backend in &mut self.backends {
            backend.begin_driving();
        }
    }

    fn end_driving(&mut self) {
        for backend in &mut self.backends {
            backend.end_driving();
        }
    }

    fn on_each_worker(&mut self, errand: &Errand) {
        for backend in &mut self.backends {
            backend.on_each_worker(errand);
        }
    }
}
