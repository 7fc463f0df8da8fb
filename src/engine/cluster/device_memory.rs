//! The memory of a device that has its own.

use std::collections::{BTreeMap, HashMap};

use crate::runtime::{BufferId, DeviceId, EventId, HostMemoryId, Runtime, RuntimeError};

/// Buffers of a device with memory of its own: its inputs, kept while there is room, and
/// those of results, which are used again.
pub(super) struct DeviceMemory {
    /// Bytes that inputs may take.
    most: u64,
    bytes: u64,
    inputs: HashMap<HostMemoryId, Cached>,
    free: BTreeMap<u64, Vec<BufferId>>,
    /// Bytes of the free buffers.
    free_bytes: u64,
    clock: u64,
}

/// An input in a device's memory.
struct Cached {
    buffer: BufferId,
    bytes: u64,
    /// Its write, until that has ended.
    written: Option<EventId>,
    users: usize,
    used: u64,
}

impl DeviceMemory {
    pub fn new(most: u64) -> Self {
        Self {
            most,
            bytes: 0,
            inputs: HashMap::new(),
            free: BTreeMap::new(),
            free_bytes: 0,
            clock: 0,
        }
    }

    pub fn take(
        &mut self,
        runtime: &mut dyn Runtime,
        device: DeviceId,
        bytes: u64,
    ) -> Result<BufferId, RuntimeError> {
        let bytes = bytes.max(1);
        match self.free.get_mut(&bytes).and_then(Vec::pop) {
            Some(buffer) => {
                self.free_bytes -= bytes;
                Ok(buffer)
            }
            None => runtime.alloc(device, bytes),
        }
    }

    pub fn give_back(&mut self, buffer: BufferId, bytes: u64) {
        let bytes = bytes.max(1);
        self.free_bytes += bytes;
        self.free.entry(bytes).or_default().push(buffer);
    }

    /// The buffer of an input, for one more user; the write that fills it, if that has not
    /// ended; and whether it must be written.
    pub fn input(
        &mut self,
        runtime: &mut dyn Runtime,
        device: DeviceId,
        memory: HostMemoryId,
        bytes: u64,
    ) -> Result<(BufferId, Option<EventId>, bool), RuntimeError> {
        self.clock += 1;
        if let Some(cached) = self.inputs.get_mut(&memory) {
            cached.users += 1;
            cached.used = self.clock;
            return Ok((cached.buffer, cached.written, false));
        }
        while self.bytes + bytes > self.most {
            let unused = self.inputs.iter().filter(|(_, cached)| cached.users == 0);
            let oldest = unused.min_by_key(|(_, cached)| cached.used);
            let Some(oldest) = oldest.map(|(memory, _)| *memory) else {
                break;
            };
            self.forget(runtime, oldest);
        }
        let buffer = self.take(runtime, device, bytes)?;
        self.bytes += bytes;
        self.inputs.insert(
            memory,
            Cached {
                buffer,
                bytes,
                written: None,
                users: 1,
                used: self.clock,
            },
        );
        Ok((buffer, None, true))
    }

    /// The write of an input is on its way.
    pub fn writes(&mut self, memory: HostMemoryId, event: EventId) {
        if let Some(cached) = self.inputs.get_mut(&memory) {
            cached.written = Some(event);
        }
    }

    /// A write has ended.
    pub fn written(&mut self, event: EventId) {
        let mut inputs = self.inputs.values_mut();
        if let Some(cached) = inputs.find(|cached| cached.written == Some(event)) {
            cached.written = None;
        }
    }

    pub fn leave(&mut self, memory: HostMemoryId) {
        if let Some(cached) = self.inputs.get_mut(&memory) {
            cached.users = cached.users.saturating_sub(1);
        }
    }

    pub fn forget(&mut self, runtime: &mut dyn Runtime, memory: HostMemoryId) {
        if let Some(cached) = self.inputs.remove(&memory) {
            self.bytes -= cached.bytes;
            // The next input has the same size as a rule.
            match self.bytes + self.free_bytes + cached.bytes <= self.most / 2 {
                true => self.give_back(cached.buffer, cached.bytes),
                false => runtime.free(cached.buffer),
            }
        }
    }

    /// Releases what no subtask uses.
    pub fn release(self, runtime: &mut dyn Runtime) {
        let inputs = self.inputs.into_values().map(|cached| cached.buffer);
        for buffer in self.free.into_values().flatten().chain(inputs) {
            runtime.free(buffer);
        }
    }
}
