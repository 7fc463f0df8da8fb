//! What a queue does between two synchronisations.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::sync::Arc;

use crate::command::Command;
use crate::handle::{AddressHasher, Ref};
use crate::mem::Mem;
use crate::records::KernelRecord;

/// An epoch of a queue.
#[derive(Clone, Default)]
pub struct Epoch {
    /// The kernels that it launches, in the order of their first launches, and how often.
    pub kernels: Vec<(Arc<KernelRecord>, u64)>,
    /// Where each is in that order, by its record's number.
    positions: HashMap<usize, usize, BuildHasherDefault<AddressHasher>>,
    /// The memory objects that it uses.
    pub uses: Vec<EpochUse>,
}

/// How an epoch uses a memory object.
#[derive(Clone, Default)]
pub struct EpochUse {
    /// Its handle: an epoch keeps no object alive.
    pub mem: usize,
    /// Kernels read it, and write it.
    pub read: bool,
    pub written: bool,
    /// The host writes it before the kernels, and reads it after them.
    pub upload: bool,
    pub download: bool,
}

impl Epoch {
    /// Whether no kernel was launched.
    pub fn is_empty(&self) -> bool {
        self.kernels.is_empty()
    }

    pub fn has(&self, record: &KernelRecord) -> bool {
        self.positions.contains_key(&record.number)
    }

    /// Notes a launch.
    pub fn launch(&mut self, record: &Arc<KernelRecord>, command: &Command) {
        let position = self.positions.entry(record.number);
        let position = *position.or_insert_with(|| {
            self.kernels.push((Arc::clone(record), 0));
            self.kernels.len() - 1
        });
        self.kernels[position].1 += 1;
        for used in &command.uses {
            let entry = self.entry(&used.mem);
            entry.read |= used.reads;
            entry.written |= used.writes;
        }
    }

    /// Notes a command of the host's.
    pub fn transfer(&mut self, command: &Command) {
        for used in &command.uses {
            let entry = self.entry(&used.mem);
            entry.upload |= used.writes;
            entry.download |= used.reads;
        }
    }

    fn entry(&mut self, mem: &Ref<Mem>) -> &mut EpochUse {
        let root = mem.parent.as_ref().map_or(mem, |(parent, _)| parent);
        let handle = root.handle() as usize;
        let index = self.uses.iter().position(|used| used.mem == handle);
        let index = index.unwrap_or_else(|| {
            self.uses.push(EpochUse {
                mem: handle,
                ..EpochUse::default()
            });
            self.uses.len() - 1
        });
        &mut self.uses[index]
    }
}
