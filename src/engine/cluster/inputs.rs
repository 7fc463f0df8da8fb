//! Host memory for subtasks: what they read, assembled of the blocks that the node has, and
//! room for what they write.

use std::collections::{BTreeMap, HashMap};

use super::error::ClusterError;
use super::store::Store;
use crate::cluster::space::{Part, Spaces};
use crate::runtime::{HostMemoryId, Runtime, RuntimeError};

/// Host memory that is used again, since pinning memory takes longer than filling it.
#[derive(Debug, Default)]
pub(super) struct HostPool {
    free: BTreeMap<u64, Vec<HostMemoryId>>,
}

impl HostPool {
    pub fn take(
        &mut self,
        runtime: &mut dyn Runtime,
        bytes: u64,
    ) -> Result<HostMemoryId, RuntimeError> {
        // Nothing cannot be allocated.
        let bytes = bytes.max(1);
        match self.free.get_mut(&bytes).and_then(Vec::pop) {
            Some(memory) => Ok(memory),
            None => runtime.alloc_host(bytes),
        }
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

/// A part in host memory.
#[derive(Debug)]
struct Input {
    memory: HostMemoryId,
    bytes: u64,
    /// Subtasks in flight that read it.
    users: usize,
    used: u64,
}

/// The parts that subtasks read. Subtasks that read the same part share it, and parts stay
/// until their room is needed or they are written (Unicorn, section IV.A).
#[derive(Debug)]
pub(super) struct Inputs {
    parts: HashMap<Part, Input>,
    bytes: u64,
    /// Bytes beyond which parts without users are forgotten.
    most: u64,
    clock: u64,
}

impl Inputs {
    pub fn new(most: u64) -> Self {
        Self {
            parts: HashMap::new(),
            bytes: 0,
            most,
            clock: 0,
        }
    }

    /// Memory with a part's bytes, for one more user. The list gets the memory that
    /// parts had which were forgotten for it.
    pub fn take(
        &mut self,
        runtime: &mut dyn Runtime,
        pool: &mut HostPool,
        (store, spaces): (&Store, &Spaces),
        part: &Part,
        forgotten: &mut Vec<HostMemoryId>,
    ) -> Result<HostMemoryId, ClusterError> {
        self.clock += 1;
        if let Some(input) = self.parts.get_mut(part) {
            input.users += 1;
            input.used = self.clock;
            return Ok(input.memory);
        }
        let bytes = spaces.bytes(part);
        while self.bytes + bytes > self.most {
            let unused = self.parts.iter().filter(|(_, input)| input.users == 0);
            let oldest = unused.min_by_key(|(_, input)| input.used);
            let Some(oldest) = oldest.map(|(part, _)| part.clone()) else {
                break;
            };
            self.forget(&oldest, pool, forgotten);
        }
        let memory = pool.take(runtime, bytes)?;
        let to = runtime.host_range(memory, 0..bytes)?;
        let copied = store.copy(spaces, part, to);
        if let Err(block) = copied {
            pool.give_back(memory, bytes);
            return Err(ClusterError::Missing {
                space: part.space,
                block,
            });
        }
        self.bytes += bytes;
        let input = Input {
            memory,
            bytes,
            users: 1,
            used: self.clock,
        };
        self.parts.insert(part.clone(), input);
        Ok(memory)
    }

    /// One user of a part less.
    pub fn give_back(&mut self, part: &Part) {
        if let Some(input) = self.parts.get_mut(part) {
            input.users = input.users.saturating_sub(1);
        }
    }

    /// Forgets parts that are written now.
    pub fn forget_where(
        &mut self,
        pool: &mut HostPool,
        forgotten: &mut Vec<HostMemoryId>,
        is_old: impl Fn(&Part) -> bool,
    ) {
        let old = self.parts.keys().filter(|part| is_old(part));
        let old: Vec<Part> = old.cloned().collect();
        for part in old {
            self.forget(&part, pool, forgotten);
        }
    }

    fn forget(&mut self, part: &Part, pool: &mut HostPool, forgotten: &mut Vec<HostMemoryId>) {
        if let Some(input) = self.parts.remove(part) {
            self.bytes -= input.bytes;
            pool.give_back(input.memory, input.bytes);
            forgotten.push(input.memory);
        }
    }
}
