//! Host memory for subtasks: what they read, assembled of the blocks that the node has, and
//! room for what they write.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::copying::{Copying, PIECE};
use super::error::ClusterError;
use super::store::Store;
use crate::cluster::space::{Part, Spaces};
use crate::runtime::{AdoptedMemory, HostMemoryId, Runtime, RuntimeError};

/// Host memory that is used again, since pinning memory takes longer than filling it.
pub(super) struct HostPool {
    free: BTreeMap<u64, Vec<HostMemoryId>>,
    copying: Arc<Copying>,
    /// Whether devices with memory of their own copy from it.
    pinned: bool,
}

impl HostPool {
    pub fn new(copying: Arc<Copying>, pinned: bool) -> Self {
        Self {
            free: BTreeMap::new(),
            copying,
            pinned,
        }
    }

    pub fn take(
        &mut self,
        runtime: &mut dyn Runtime,
        bytes: u64,
    ) -> Result<HostMemoryId, RuntimeError> {
        // Nothing cannot be allocated.
        let bytes = bytes.max(1);
        match self.free.get_mut(&bytes).and_then(Vec::pop) {
            Some(memory) => Ok(memory),
            None => self.allocate(runtime, bytes),
        }
    }

    fn allocate(
        &self,
        runtime: &mut dyn Runtime,
        bytes: u64,
    ) -> Result<HostMemoryId, RuntimeError> {
        if self.pinned
            && bytes > PIECE as u64
            && let Ok(memory) = self.copying.memory(bytes as usize)
        {
            return Ok(runtime.adopt_host(AdoptedMemory::new(memory))?);
        }
        runtime.alloc_host(bytes)
    }

    pub fn give_back(&mut self, memory: HostMemoryId, bytes: u64) {
        self.free.entry(bytes.max(1)).or_default().push(memory);
    }

    pub fn release(&mut self, runtime: &mut dyn Runtime) {
        for memory in std::mem::take(&mut self.free).into_values().flatten() {
            runtime.free_host(memory);
        }
    }
}

/// An argument in host memory: a part, or several, one after the other.
#[derive(Debug)]
struct Input {
    parts: Vec<Part>,
    bytes: u64,
    /// Subtasks in flight that read it.
    users: usize,
    used: u64,
    /// Whether nobody shall find it any longer.
    is_old: bool,
}

/// The parts that subtasks read. Subtasks that read the same part share it, and parts stay
/// until their room is needed or they are written (Unicorn, section IV.A).
pub(super) struct Inputs {
    found: HashMap<Vec<Part>, HostMemoryId>,
    all: HashMap<HostMemoryId, Input>,
    /// Those without users, by when they were used last.
    unused: BTreeMap<u64, HostMemoryId>,
    bytes: u64,
    /// Bytes beyond which parts without users are forgotten.
    most: u64,
    clock: u64,
}

impl Inputs {
    pub fn new(most: u64) -> Self {
        Self {
            found: HashMap::new(),
            all: HashMap::new(),
            unused: BTreeMap::new(),
            bytes: 0,
            most,
            clock: 0,
        }
    }

    /// Memory with the bytes of parts, one after the other, for one more user. Parts that are
    /// read `once` are not kept for another one. The list gets the memory that parts had which
    /// were forgotten for it.
    pub fn take(
        &mut self,
        runtime: &mut dyn Runtime,
        pool: &mut HostPool,
        (store, spaces): (&Store, &Spaces),
        (parts, once): (&[Part], bool),
        forgotten: &mut Vec<HostMemoryId>,
    ) -> Result<HostMemoryId, ClusterError> {
        self.clock += 1;
        if let Some(memory) = self.found.get(parts)
            && let Some(input) = self.all.get_mut(memory)
        {
            self.unused.remove(&input.used);
            input.users += 1;
            input.used = self.clock;
            return Ok(*memory);
        }
        let bytes = parts.iter().map(|part| spaces.bytes(part)).sum();
        while self.bytes + bytes > self.most {
            let Some((_, oldest)) = self.unused.pop_first() else {
                break;
            };
            self.forget(oldest, pool, forgotten);
        }
        let memory = pool.take(runtime, bytes)?;
        let to = runtime.host_range(memory, 0..bytes)?;
        if let Err(error) = assemble(store, spaces, parts, to) {
            pool.give_back(memory, bytes);
            return Err(error);
        }
        self.bytes += bytes;
        if !once {
            self.found.insert(parts.to_vec(), memory);
        }
        let input = Input {
            parts: parts.to_vec(),
            bytes,
            users: 1,
            used: self.clock,
            is_old: once,
        };
        self.all.insert(memory, input);
        Ok(memory)
    }

    /// One user of an input less.
    pub fn give_back(
        &mut self,
        memory: HostMemoryId,
        pool: &mut HostPool,
        forgotten: &mut Vec<HostMemoryId>,
    ) {
        let Some(input) = self.all.get_mut(&memory) else {
            return;
        };
        input.users = input.users.saturating_sub(1);
        match input.users {
            0 if input.is_old => self.forget(memory, pool, forgotten),
            0 => {
                self.unused.insert(input.used, memory);
            }
            _ => {}
        }
    }

    /// Forgets parts that have other contents now. Those with users go with the last one.
    pub fn forget_where(
        &mut self,
        pool: &mut HostPool,
        forgotten: &mut Vec<HostMemoryId>,
        is_old: impl Fn(&Part) -> bool,
    ) {
        self.found.retain(|parts, _| !parts.iter().any(&is_old));
        let mut unused = Vec::new();
        for (memory, input) in &mut self.all {
            input.is_old |= input.parts.iter().any(&is_old);
            if input.is_old && input.users == 0 {
                unused.push(*memory);
            }
        }
        for memory in unused {
            self.forget(memory, pool, forgotten);
        }
    }

    fn forget(
        &mut self,
        memory: HostMemoryId,
        pool: &mut HostPool,
        forgotten: &mut Vec<HostMemoryId>,
    ) {
        if let Some(input) = self.all.remove(&memory) {
            self.bytes -= input.bytes;
            self.unused.remove(&input.used);
            if self.found.get(&input.parts) == Some(&memory) {
                self.found.remove(&input.parts);
            }
            pool.give_back(memory, input.bytes);
            forgotten.push(memory);
        }
    }
}

/// Writes parts one after the other.
fn assemble(
    store: &Store,
    spaces: &Spaces,
    parts: &[Part],
    to: &mut [u8],
) -> Result<(), ClusterError> {
    let mut rest = to;
    for part in parts {
        let (part_of, behind) = rest.split_at_mut(spaces.bytes(part) as usize);
        store.copy(spaces, part, part_of)?;
        rest = behind;
    }
    Ok(())
}
