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

/// A repeated command on a device: its address, as it is held so that its address stays unique, and
/// what else tells such commands apart.
type Key<K> = (usize, usize, K);

/// What was prepared for repeated commands.
pub(in crate::runtime) struct Repeats<C, P, K = ()> {
    /// With the number of what was prepared.
    kept: IdMap<Key<K>, (u64, Arc<C>, P)>,
    /// By memory: commands that use it, as many buffers come and go in a run, and the number, as an
    /// address may be another command's meanwhile.
    users: IdMap<Memory, Vec<(Key<K>, u64)>>,
    last: u64,
    /// Memories that were freed since those that nobody else holds any more were dropped.
    freed: usize,
}

impl<C, P, K> Default for Repeats<C, P, K> {
    fn default() -> Self {
        Self {
            kept: IdMap::default(),
            users: IdMap::default(),
            last: 0,
            freed: 0,
        }
    }
}

impl<C, P, K: Copy + Eq + Hash> Repeats<C, P, K> {
    /// Drops what is for commands that use memory about to be freed, and sometimes what is for those
    /// that nobody else holds any more: to look for them each time would cost as much as there are.
    pub(in crate::runtime) fn forget(&mut self, memory: Memory) {
        for (user, number) in self.users.remove(&memory).unwrap_or_default() {
            if self.kept.get(&user).is_some_and(|kept| kept.0 == number) {
                self.kept.remove(&user);
            }
        }
        self.freed += 1;
        if self.freed > self.kept.len() {
            self.freed = 0;
            self.kept.retain(|_, (_, of, _)| Arc::strong_count(of) > 1);
            self.users.retain(|_, users| {
                users.retain(|(user, _)| self.kept.contains_key(user));
                !users.is_empty()
            });
        }
    }

    /// What was prepared, if it is kept.
    pub(in crate::runtime) fn kept(&self, device: usize, of: &Arc<C>, more: K) -> Option<&P> {
        let known = self.kept.get(&(device, Arc::as_ptr(of).addr(), more));
        known.map(|(_, _, prepared)| prepared)
    }

    /// Keeps what was prepared for a command that uses these memories.
    pub(in crate::runtime) fn keep(
        &mut self,
        device: usize,
        (of, memories): (&Arc<C>, impl Iterator<Item = Memory>),
        more: K,
        prepared: P,
    ) {
        let key = (device, Arc::as_ptr(of).addr(), more);
        self.last += 1;
        for memory in memories {
            self.users.entry(memory).or_default().push((key, self.last));
        }
        self.kept.insert(key, (self.last, Arc::clone(of), prepared));
    }

    /// Drops what was prepared.
    pub(in crate::runtime) fn drop_kept(&mut self, device: usize, of: &Arc<C>, more: K) {
        self.kept.remove(&(device, Arc::as_ptr(of).addr(), more));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is prepared is kept until its memory is freed or nobody holds the command, in any order
    /// of events.
    #[test]
    fn what_is_prepared_is_kept_as_long_as_its_memory() {
        let mut random = fastrand::Rng::with_seed(7);
        let mut repeats: Repeats<[Memory; 2], usize> = Repeats::default();
        let mut live: Vec<(Arc<[Memory; 2]>, usize)> = Vec::new();
        let mut memories: Vec<Memory> = Vec::new();
        for number in 0..2000 {
            while memories.len() < 8 {
                memories.push(Memory::Device(BufferId::fresh()));
            }
            let two = [0, 1].map(|_| memories[random.usize(..8)]);
            let command = Arc::new(two);
            assert_eq!(repeats.kept(0, &command, ()), None);
            repeats.keep(0, (&command, two.into_iter()), (), number);
            live.push((command, number));
            if random.bool() {
                live.swap_remove(random.usize(..live.len()));
            }
            if random.u8(..16) == 0 {
                let freed = memories.swap_remove(random.usize(..8));
                repeats.forget(freed);
                for (command, _) in live.extract_if(.., |(command, _)| command.contains(&freed)) {
                    assert_eq!(repeats.kept(0, &command, ()), None);
                }
            }
            for (command, number) in &live {
                assert_eq!(repeats.kept(0, command, ()), Some(number));
            }
        }
        (0..=repeats.kept.len()).for_each(|_| repeats.forget(Memory::Device(BufferId::fresh())));
        assert!(repeats.kept.len() <= live.len() && repeats.users.len() <= memories.len());
    }
}
