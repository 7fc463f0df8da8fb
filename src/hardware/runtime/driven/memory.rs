//! The memory that commands may name, and what was prepared for commands that name it.

use std::hash::Hash;
use std::sync::Arc;

use super::{BufferId, HostMemoryId, HostRegion, OpenDevice, unknown};
use crate::codelet::Memory;
use crate::runtime::{IdMap, Location, Rows, RuntimeError};

/// What must outlive a command.
pub(in crate::runtime) type KeepAlive = Arc<dyn Send + Sync>;

/// A buffer on a device.
pub(in crate::runtime) struct Buffer<M> {
    pub memory: Arc<M>,
    /// Index of its device.
    pub device: usize,
    pub bytes: u64,
}

/// The memory that commands may name.
pub(in crate::runtime) struct Memories<M> {
    pub buffers: IdMap<BufferId, Buffer<M>>,
    pub hosts: IdMap<HostMemoryId, HostRegion>,
}

/// One end of a copy, checked.
pub(in crate::runtime) enum End<'a, M> {
    Host(&'a HostRegion),
    Buffer(&'a Buffer<M>),
}

impl<M: Send + Sync + 'static> End<'_, M> {
    /// What must outlive the copy.
    pub(in crate::runtime) fn keeper(&self) -> KeepAlive {
        match self {
            Self::Host(region) => Arc::clone(&region.keeper),
            Self::Buffer(buffer) => Arc::clone(&buffer.memory) as KeepAlive,
        }
    }
}

impl<M> Default for Memories<M> {
    fn default() -> Self {
        Self {
            buffers: IdMap::default(),
            hosts: IdMap::default(),
        }
    }
}

impl<M> Memories<M> {
    /// A buffer of this device.
    pub(in crate::runtime) fn buffer(
        &self,
        id: BufferId,
        device: usize,
    ) -> Result<&Buffer<M>, RuntimeError> {
        let buffer = self.buffers.get(&id).filter(|b| b.device == device);
        buffer.ok_or_else(|| unknown("buffer of this device"))
    }

    /// Host memory.
    pub(in crate::runtime) fn host(&self, id: HostMemoryId) -> Result<&HostRegion, RuntimeError> {
        self.hosts.get(&id).ok_or_else(|| unknown("host memory"))
    }

    /// Both ends of a copy, which lie within their memory. One of them at least is a buffer of
    /// the device of this index.
    pub(in crate::runtime) fn ends<D>(
        &self,
        (index, device): (usize, &OpenDevice<D>),
        (from, to, rows): (Location, Location, Rows),
    ) -> Result<[End<'_, M>; 2], RuntimeError> {
        let [read, written] = rows.spans();
        let ends = [
            self.end(from, read, device)?,
            self.end(to, written, device)?,
        ];
        let is_own = |end: &End<M>| matches!(end, End::Buffer(buffer) if buffer.device == index);
        match ends.iter().any(is_own) {
            true => Ok(ends),
            false => Err(unknown("buffer of this device")),
        }
    }

    fn end<D>(
        &self,
        Location { memory, offset }: Location,
        bytes: u64,
        device: &OpenDevice<D>,
    ) -> Result<End<'_, M>, RuntimeError> {
        let (what, length, end) = match memory {
            Memory::Host(id) => {
                let region = self.host(id)?;
                ("host memory", region.bytes, End::Host(region))
            }
            Memory::Device(id) => {
                let buffer = self.buffers.get(&id).ok_or_else(|| unknown("buffer"))?;
                ("buffer", buffer.bytes, End::Buffer(buffer))
            }
        };
        match offset.checked_add(bytes).is_some_and(|end| end <= length) {
            true => Ok(end),
            false => Err(device.refused(
                "a copy",
                format!("{bytes} bytes at {offset} do not lie within a {what} of {length} bytes"),
            )),
        }
    }
}

/// What was prepared for repeated commands, by device, address of the command, which is held so
/// that its address stays unique, and what else tells them apart.
pub(in crate::runtime) struct Repeats<C, P, K = ()>(IdMap<(usize, usize, K), (Arc<C>, P)>);

impl<C, P, K: Eq + Hash> Default for Repeats<C, P, K> {
    fn default() -> Self {
        Self(IdMap::default())
    }
}

impl<C, P, K: Eq + Hash> Repeats<C, P, K> {
    /// Drops what is for commands that use memory about to be freed, and for those that nobody
    /// else holds any more.
    pub(in crate::runtime) fn forget(&mut self, uses: impl Fn(&C) -> bool) {
        self.0
            .retain(|_, (command, _)| Arc::strong_count(command) > 1 && !uses(command));
    }

    /// What was prepared, if it is kept.
    pub(in crate::runtime) fn kept(&self, device: usize, of: &Arc<C>, more: K) -> Option<&P> {
        let known = self.0.get(&(device, Arc::as_ptr(of).addr(), more));
        known.map(|(_, prepared)| prepared)
    }

    /// Keeps what was prepared.
    pub(in crate::runtime) fn keep(&mut self, device: usize, of: &Arc<C>, more: K, prepared: P) {
        let key = (device, Arc::as_ptr(of).addr(), more);
        self.0.insert(key, (Arc::clone(of), prepared));
    }

    /// Drops what was prepared.
    pub(in crate::runtime) fn drop_kept(&mut self, device: usize, of: &Arc<C>, more: K) {
        self.0.remove(&(device, Arc::as_ptr(of).addr(), more));
    }
}
