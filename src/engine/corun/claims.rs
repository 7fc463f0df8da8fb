//! What a run has taken of its runtime. Everything goes back when the run
//! ends, also when it ends before it began.

use std::ops::{Deref, DerefMut};

use crate::runtime::{BufferId, DeviceId, HostMemoryId, QueueId, Runtime, RuntimeError};

/// A runtime, and what to give back to it.
pub struct Claims<'a> {
    runtime: &'a mut dyn Runtime,
    host: Vec<HostMemoryId>,
    buffers: Vec<BufferId>,
    queues: Vec<QueueId>,
}

impl<'a> Claims<'a> {
    pub fn on(runtime: &'a mut dyn Runtime) -> Self {
        Self {
            runtime,
            host: Vec::new(),
            buffers: Vec::new(),
            queues: Vec::new(),
        }
    }

    /// See [`Runtime::alloc_host`].
    pub fn alloc_host(&mut self, bytes: u64) -> Result<HostMemoryId, RuntimeError> {
        let memory = self.runtime.alloc_host(bytes)?;
        self.host.push(memory);
        Ok(memory)
    }

    /// See [`Runtime::alloc`].
    pub fn alloc(&mut self, device: DeviceId, bytes: u64) -> Result<BufferId, RuntimeError> {
        let buffer = self.runtime.alloc(device, bytes)?;
        self.buffers.push(buffer);
        Ok(buffer)
    }

    /// See [`Runtime::queue`].
    pub fn queue(&mut self, device: DeviceId) -> Result<QueueId, RuntimeError> {
        let queue = self.runtime.queue(device)?;
        self.queues.push(queue);
        Ok(queue)
    }
}

impl Claims<'_> {
    /// Gives devices' memory back before the run has ended.
    pub fn free_buffers(&mut self) {
        for buffer in self.buffers.drain(..) {
            self.runtime.free(buffer);
        }
    }
}

impl<'a> Deref for Claims<'a> {
    type Target = dyn Runtime + 'a;

    fn deref(&self) -> &Self::Target {
        self.runtime
    }
}

impl DerefMut for Claims<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        self.runtime
    }
}

impl Drop for Claims<'_> {
    fn drop(&mut self) {
        self.runtime.end_driving();
        for queue in self.queues.drain(..) {
            self.runtime.free_queue(queue);
        }
        self.free_buffers();
        for memory in self.host.drain(..) {
            self.runtime.free_host(memory);
        }
    }
}
