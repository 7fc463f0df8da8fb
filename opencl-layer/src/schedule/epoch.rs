//! What a queue does between two synchronisations.

use pdawl::profile::kernels::KernelKey;

use crate::command::Command;
use crate::handle::Ref;
use crate::mem::Mem;

/// An epoch of a queue.
#[derive(Clone, Default)]
pub struct Epoch {
    /// The kernels that it launches, in the order of their first launches, and how often.
    pub kernels: Vec<(KernelKey, u64)>,
    /// The memory objects that it uses.
    pub uses: Vec<EpochUse>,
}

/// How an epoch uses a memory object.
#[derive(Clone)]
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

    pub fn has(&self, key: &KernelKey) -> bool {
        self.kernels.iter().any(|(other, _)| other == key)
    }

    /// Notes a launch.
    pub fn launch(&mut self, key: &KernelKey, command: &Command) {
        match self.kernels.iter_mut().find(|(other, _)| other == key) {
            Some((_, count)) => *count += 1,
            None => self.kernels.push((key.clone(), 1)),
        }
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
                read: false,
                written: false,
                upload: false,
                download: false,
            });
            self.uses.len() - 1
        });
        &mut self.uses[index]
    }
}
