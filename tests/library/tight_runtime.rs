//! A runtime whose devices have less memory than they say.

use std::collections::HashMap;
use std::ops::Range;
use std::time::Duration;

use pdawl_api::codelet::Codelet;
use pdawl_api::machine::Device;
use pdawl_api::runtime::{
    AdoptedMemory, BufferId, Command, Completion, DeviceId, Devices, EventId, HostMemoryId, Nanos,
    NotAdopted, QueueId, QueueKind, Runtime, RuntimeError,
};

/// A runtime whose devices have `left` bytes of memory together.
pub struct TightRuntime<R> {
    inner: R,
    left: u64,
    taken: HashMap<BufferId, u64>,
}

impl<R: Runtime> TightRuntime<R> {
    pub fn new(inner: R, left: u64) -> Self {
        Self {
            inner,
            left,
            taken: HashMap::new(),
        }
    }

    /// Whether no memory is allocated.
    pub fn is_bare(&self) -> bool {
        self.taken.is_empty()
    }
}

impl<R: Runtime> Devices for TightRuntime<R> {
    fn alloc(&mut self, device: DeviceId, bytes: u64) -> Result<BufferId, RuntimeError> {
        let left = (self.left.checked_sub(bytes)).ok_or_else(|| RuntimeError::OutOfMemory {
            device: "tight".to_owned(),
            requested: bytes,
            why: format!("{} are free", self.left),
        })?;
        let buffer = self.inner.alloc(device, bytes)?;
        self.left = left;
        self.taken.insert(buffer, bytes);
        Ok(buffer)
    }

    fn free(&mut self, buffer: BufferId) {
        self.left += self.taken.remove(&buffer).unwrap_or(0);
        self.inner.free(buffer);
    }

    fn devices(&self) -> &[Device] {
        self.inner.devices()
    }

    fn open_queue(&mut self, device: DeviceId, kind: QueueKind) -> Result<QueueId, RuntimeError> {
        self.inner.open_queue(device, kind)
    }

    fn free_queue(&mut self, queue: QueueId) {
        self.inner.free_queue(queue);
    }

    fn load(&mut self, queue: QueueId, codelet: &Codelet) -> Result<(), RuntimeError> {
        self.inner.load(queue, codelet)
    }

    fn submit(
        &mut self,
        queue: QueueId,
        command: Command,
        wait: &[EventId],
        event: Option<EventId>,
    ) -> Result<(), RuntimeError> {
        self.inner.submit(queue, command, wait, event)
    }
}

impl<R: Runtime> Runtime for TightRuntime<R> {
    fn now(&self) -> Nanos {
        self.inner.now()
    }

    fn simulated(&self) -> bool {
        self.inner.simulated()
    }

    fn alloc_host(&mut self, bytes: u64) -> Result<HostMemoryId, RuntimeError> {
        self.inner.alloc_host(bytes)
    }

    fn free_host(&mut self, memory: HostMemoryId) {
        self.inner.free_host(memory);
    }

    fn adopt_host(&mut self, memory: AdoptedMemory) -> Result<HostMemoryId, NotAdopted> {
        self.inner.adopt_host(memory)
    }

    fn take_host(&mut self, memory: HostMemoryId) -> Result<AdoptedMemory, RuntimeError> {
        self.inner.take_host(memory)
    }

    fn host_range(
        &mut self,
        memory: HostMemoryId,
        range: Range<u64>,
    ) -> Result<&mut [u8], RuntimeError> {
        self.inner.host_range(memory, range)
    }

    fn host_read(
        &mut self,
        memory: HostMemoryId,
        range: Range<u64>,
    ) -> Result<&[u8], RuntimeError> {
        self.inner.host_read(memory, range)
    }

    fn wait(&mut self, timeout: Option<Duration>) -> Result<Option<Completion>, RuntimeError> {
        self.inner.wait(timeout)
    }
}
