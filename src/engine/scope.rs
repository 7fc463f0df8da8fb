//! Short-lived use of a runtime: memory and queues that are released together.
//!
//! [`RuntimeScope`] wraps a runtime. What is allocated through it is freed when
//! it is dropped, after a success and after an error alike. It also runs commands
//! one after the other, for what measures, compares or checks kernels:
//! [`RuntimeScope::run`] enqueues a command and waits for its end,
//! [`DeviceArray`] is memory for a kernel that the host fills and reads.

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};

use crate::parallel;
use crate::runtime::{
    AdoptedMemory, BufferId, Command, Completion, DeviceId, EventId, HostMemoryId, Memory,
    NotAdopted, Notice, QueueId, Runtime, RuntimeError, Status,
};

/// A runtime, with the memory and the queues to release at the end.
pub struct RuntimeScope<'a> {
    /// `None` while what it allocated [waits](Self::moved) for a runtime.
    runtime: Option<&'a mut dyn Runtime>,
    host: Vec<HostMemoryId>,
    buffers: Vec<BufferId>,
    /// Bytes of the buffers, by device.
    allocated: BTreeMap<DeviceId, u64>,
    queues: Vec<QueueId>,
    /// Commands enqueued by [`Self::enqueue`] whose completions are still to come.
    in_flight: usize,
}

/// Memory that a device's kernels work on, with host memory of the same length
/// to fill it and to read it back.
#[derive(Clone, Copy, Debug)]
pub struct DeviceArray {
    pub host: HostMemoryId,
    /// `None` where the device computes in host memory.
    pub buffer: Option<BufferId>,
    pub bytes: u64,
}

impl DeviceArray {
    /// The memory that a kernel takes as its argument.
    pub fn memory(&self) -> Memory {
        self.buffer.map_or(Memory::Host(self.host), Memory::Device)
    }
}

impl<'a> RuntimeScope<'a> {
    pub fn on(runtime: &'a mut dyn Runtime) -> Self {
        Self {
            runtime: Some(runtime),
            host: Vec::new(),
            buffers: Vec::new(),
            allocated: BTreeMap::new(),
            queues: Vec::new(),
            in_flight: 0,
        }
    }
}

impl RuntimeScope<'_> {
    /// The same without its runtime, which others may have for a while, or on it again. Meanwhile
    /// nothing is freed, and only what needs no runtime may be asked. No command is in flight.
    pub fn moved<'b>(mut self, runtime: Option<&'b mut dyn Runtime>) -> RuntimeScope<'b> {
        self.runtime = None;
        RuntimeScope {
            runtime,
            host: std::mem::take(&mut self.host),
            buffers: std::mem::take(&mut self.buffers),
            allocated: std::mem::take(&mut self.allocated),
            queues: std::mem::take(&mut self.queues),
            in_flight: 0,
        }
    }

    /// See [`Runtime::alloc_host`].
    pub fn alloc_host(&mut self, bytes: u64) -> Result<HostMemoryId, RuntimeError> {
        let memory = self.deref_mut().alloc_host(bytes)?;
        self.host.push(memory);
        Ok(memory)
    }

    /// See [`Runtime::adopt_host`]. The memory is dropped with the scope.
    pub fn adopt_host(&mut self, memory: AdoptedMemory) -> Result<HostMemoryId, NotAdopted> {
        let memory = self.deref_mut().adopt_host(memory)?;
        self.host.push(memory);
        Ok(memory)
    }

    /// See [`crate::runtime::Devices::alloc`].
    pub fn alloc(&mut self, device: DeviceId, bytes: u64) -> Result<BufferId, RuntimeError> {
        let buffer = self.deref_mut().alloc(device, bytes)?;
        self.buffers.push(buffer);
        *self.allocated.entry(device).or_default() += bytes;
        Ok(buffer)
    }

    /// Bytes of each device's memory that were allocated through it.
    pub fn allocated(&self) -> &BTreeMap<DeviceId, u64> {
        &self.allocated
    }

    /// A queue whose completions have the device's times; see [`crate::runtime::Devices::open_queue`].
    pub fn queue(&mut self, device: DeviceId) -> Result<QueueId, RuntimeError> {
        let queue = self.deref_mut().queue(device)?;
        self.queues.push(queue);
        Ok(queue)
    }

    /// Memory for kernels of a device. Its contents are unspecified.
    pub fn array(&mut self, device: DeviceId, bytes: u64) -> Result<DeviceArray, RuntimeError> {
        // Drivers refuse to allocate nothing.
        let host = self.alloc_host(bytes.max(1))?;
        self.array_over(host, device, bytes)
    }

    /// As [`Self::array`], with host memory that another array has.
    pub fn array_over(
        &mut self,
        host: HostMemoryId,
        device: DeviceId,
        bytes: u64,
    ) -> Result<DeviceArray, RuntimeError> {
        let shared = (self.devices().get(device.0)).is_none_or(|d| d.shares_host_memory);
        let buffer = match shared {
            true => None,
            false => Some(self.alloc(device, bytes.max(1))?),
        };
        Ok(DeviceArray {
            host,
            buffer,
            bytes,
        })
    }

    /// Sets the first bytes of an array, by a command on `queue` where the device
    /// has memory of its own.
    ///
    /// # Errors
    /// What the runtime refuses, and a transfer that fails.
    pub fn fill(
        &mut self,
        queue: QueueId,
        array: &DeviceArray,
        contents: &[u8],
    ) -> Result<(), RuntimeError> {
        let to = &mut self.host_bytes(array.host)?[..contents.len()];
        parallel::copy(to, contents);
        match array.buffer.filter(|_| array.bytes > 0) {
            Some(buffer) => self.run(queue, Command::write(array.host, 0..array.bytes, buffer, 0)),
            None => Ok(()),
        }
    }

    /// The contents of an array.
    ///
    /// # Errors
    /// As [`Self::fill`].
    pub fn contents(
        &mut self,
        queue: QueueId,
        array: &DeviceArray,
    ) -> Result<&mut [u8], RuntimeError> {
        if let Some(buffer) = array.buffer.filter(|_| array.bytes > 0) {
            self.run(queue, Command::read(buffer, 0, array.host, 0..array.bytes))?;
        }
        Ok(&mut self.host_bytes(array.host)?[..array.bytes as usize])
    }

    /// Enqueues a command that waits for `wait`.
    pub fn enqueue(
        &mut self,
        queue: QueueId,
        command: Command,
        wait: &[EventId],
    ) -> Result<EventId, RuntimeError> {
        let event = self.deref_mut().enqueue(queue, command, wait)?;
        self.in_flight += 1;
        Ok(event)
    }

    /// Waits for the completions of this many enqueued commands.
    ///
    /// # Errors
    /// [`RuntimeError::Failed`] for the first that did not end well; all of them
    /// have ended then.
    pub fn completions(&mut self, commands: usize) -> Result<Vec<Completion>, RuntimeError> {
        let mut all = Vec::with_capacity(commands);
        let mut failure = None;
        while all.len() < commands {
            let Some(completion) = self.wait(None)? else {
                self.in_flight = 0;
                break;
            };
            self.in_flight = self.in_flight.saturating_sub(1);
            failure = failure.or_else(|| self.failure(&completion));
            all.push(completion);
        }
        if all.len() < commands {
            failure = failure.or(Some(RuntimeError::Failed {
                device: "the runtime".to_owned(),
                what: "command",
                why: "it never completed".to_owned(),
            }));
        }
        failure.map_or(Ok(all), Err)
    }

    /// Enqueues a command and waits for its end.
    ///
    /// # Errors
    /// What the runtime refuses, and a command that fails.
    pub fn run(&mut self, queue: QueueId, command: Command) -> Result<(), RuntimeError> {
        self.enqueue(queue, command, &[])?;
        self.completions(self.in_flight).map(drop)
    }

    /// The error of a command that did not end well.
    fn failure(&self, completion: &Completion) -> Option<RuntimeError> {
        let why = match &completion.status {
            Status::Done => return None,
            Status::Failed(why) | Status::DeviceLost(why) => why.clone(),
            Status::Skipped => "a command before it failed".to_owned(),
        };
        Some(RuntimeError::Failed {
            device: self.devices()[completion.device.0].name.clone(),
            what: completion.kind.name(),
            why,
        })
    }

    /// Frees all queues before the scope ends.
    pub fn free_queues(&mut self) {
        for queue in std::mem::take(&mut self.queues) {
            self.free_queue(queue);
        }
    }

    /// Frees all device memory before the scope ends.
    pub fn free_buffers(&mut self) {
        for buffer in std::mem::take(&mut self.buffers) {
            self.free(buffer);
        }
    }
}

impl<'a> Deref for RuntimeScope<'a> {
    type Target = dyn Runtime + 'a;

    fn deref(&self) -> &Self::Target {
        match &self.runtime {
            Some(runtime) => *runtime,
            None => unreachable!("a scope without its runtime is asked"),
        }
    }
}

impl DerefMut for RuntimeScope<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        match &mut self.runtime {
            Some(runtime) => *runtime,
            None => unreachable!("a scope without its runtime is asked"),
        }
    }
}

impl Drop for RuntimeScope<'_> {
    fn drop(&mut self) {
        if self.runtime.is_none() {
            return;
        }
        // The next user of the runtime must not meet these completions.
        let _ = self.completions(self.in_flight);
        self.notify(Notice::DrivingEnds);
        self.free_queues();
        self.free_buffers();
        for memory in std::mem::take(&mut self.host) {
            self.free_host(memory);
        }
    }
}
