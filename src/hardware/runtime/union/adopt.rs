//! The user's memory: known to all backends while it is host memory, and returned when
//! nothing refers to it any more.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{Released, Union};
use crate::runtime::adopted::{LEAST_ALIGNMENT, not_adopted};
use crate::runtime::{AdoptedMemory, HostMemoryId, HostRegion, HostSpan, NotAdopted, RuntimeError};

/// Alignment in bytes that a GPU in host memory needs. Its driver may copy other
/// memory for each queue, and copies of one region would overwrite each other's results.
const PAGE: usize = 4096;

/// For how long a driver's or a worker's thread may hold memory whose last command has
/// completed. Such a thread sends the completion and then releases what the command used.
const RELEASE: Duration = Duration::from_secs(1);

/// After so long the backends collect again what their commands used.
const PAUSE: Duration = Duration::from_micros(100);

impl Union {
    pub(super) fn adopt(&mut self, memory: AdoptedMemory) -> Result<HostMemoryId, NotAdopted> {
        let alignment = match self.has_gpu_in_host_memory() {
            true => PAGE,
            false => LEAST_ALIGNMENT,
        };
        let mut memory = Arc::new(memory.check(alignment)?);
        let id = HostMemoryId::fresh();
        let Err(error) = self.register(id, &memory) else {
            return Ok(id);
        };
        loop {
            // No command has used it, so nobody keeps it.
            match sole_owner(memory, RELEASE) {
                Ok(memory) => return Err(NotAdopted { memory, error }),
                Err(shared) => memory = shared,
            }
        }
    }

    pub(super) fn take(&mut self, id: HostMemoryId) -> Result<AdoptedMemory, RuntimeError> {
        self.drain();
        let region = self.regions.get(&id).ok_or(RuntimeError::Unknown {
            what: "host memory",
        })?;
        if !self.adopted.contains_key(&id) {
            return Err(not_adopted());
        }
        if self.is_used(&HostSpan::new(id, 0..region.bytes)) {
            return Err(RuntimeError::Busy);
        }
        self.regions.remove(&id);
        let mut memory = self.adopted.remove(&id).ok_or_else(not_adopted)?;
        let deadline = Instant::now() + RELEASE;
        loop {
            // A backend may have to collect what its commands used.
            self.release(Released::Host(id));
            memory = match sole_owner(memory, PAUSE) {
                Ok(memory) => return Ok(memory),
                Err(shared) => shared,
            };
            if Instant::now() >= deadline {
                self.register(id, &memory)?;
                return Err(RuntimeError::Busy);
            }
        }
    }

    /// Makes memory known to all backends.
    fn register(
        &mut self,
        id: HostMemoryId,
        memory: &Arc<AdoptedMemory>,
    ) -> Result<(), RuntimeError> {
        let region = HostRegion {
            id,
            address: memory.address(),
            bytes: memory.length(),
            keeper: Arc::clone(memory) as Arc<dyn Send + Sync>,
        };
        self.adopt_everywhere(&region)?;
        for backend in &mut self.backends {
            backend.pin_host(id);
        }
        self.regions.insert(id, region);
        self.adopted.insert(id, Arc::clone(memory));
        Ok(())
    }

    /// Makes a region that was allocated here host memory.
    pub(super) fn keep_region(&mut self, region: HostRegion) -> Result<HostMemoryId, RuntimeError> {
        self.adopt_everywhere(&region)?;
        let id = region.id;
        self.regions.insert(id, region);
        Ok(id)
    }

    /// Registers a region with every backend, or with none.
    fn adopt_everywhere(&mut self, region: &HostRegion) -> Result<(), RuntimeError> {
        for index in 0..self.backends.len() {
            if let Err(error) = self.backends[index].adopt_host(region.clone()) {
                self.release(Released::Host(region.id));
                return Err(error);
            }
        }
        Ok(())
    }
}

/// The memory, if nothing else refers to it within `patience`.
fn sole_owner(
    mut memory: Arc<AdoptedMemory>,
    patience: Duration,
) -> Result<AdoptedMemory, Arc<AdoptedMemory>> {
    let deadline = Instant::now() + patience;
    loop {
        memory = match Arc::try_unwrap(memory) {
            Ok(memory) => return Ok(memory),
            Err(shared) if Instant::now() >= deadline => return Err(shared),
            Err(shared) => shared,
        };
        std::thread::yield_now();
    }
}
