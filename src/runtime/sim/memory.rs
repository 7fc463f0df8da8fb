//! Simulated memory: the bytes taken of each device's memory, and their contents if
//! the run has data.

use memmap2::MmapMut;

use super::RuntimeError;
use crate::codelet::{HostValue, Memory, Value};
use crate::runtime::{IdMap, Launch, Location};

/// The contents of fresh memory: not a number as `f64` and as `f32`, so that a read
/// of what was never written gives a wrong result.
const POISON: u8 = 0xff;

struct Block {
    /// The device that has it; `None` for the host.
    device: Option<usize>,
    bytes: u64,
    data: Option<MmapMut>,
    /// Commands in flight that use it.
    users: u32,
    freed: bool,
}

/// A memory's size and the bytes taken of it.
struct Capacity {
    name: String,
    bytes: u64,
    taken: u64,
}

/// All memory of a simulated machine.
pub(super) struct SimMemory {
    with_data: bool,
    host: Capacity,
    devices: Vec<Capacity>,
    blocks: IdMap<Memory, Block>,
}

impl SimMemory {
    /// Memory of a host and of devices, each with name and bytes.
    pub fn new(with_data: bool, host: u64, devices: impl Iterator<Item = (String, u64)>) -> Self {
        let unused = |name, bytes| Capacity {
            name,
            bytes,
            taken: 0,
        };
        Self {
            with_data,
            host: unused("host".to_owned(), host),
            devices: devices.map(|(name, bytes)| unused(name, bytes)).collect(),
            blocks: IdMap::default(),
        }
    }

    /// Whether memory has bytes.
    pub fn has_data(&self) -> bool {
        self.with_data
    }

    fn capacity(&mut self, device: Option<usize>) -> &mut Capacity {
        match device {
            None => &mut self.host,
            Some(d) => &mut self.devices[d],
        }
    }

    /// Takes memory, poisoned if there is data.
    pub fn alloc(
        &mut self,
        id: Memory,
        device: Option<usize>,
        bytes: u64,
    ) -> Result<(), RuntimeError> {
        let with_data = self.with_data;
        let capacity = self.capacity(device);
        let free = capacity.bytes - capacity.taken;
        let refuse = |why: String| RuntimeError::OutOfMemory {
            device: capacity.name.clone(),
            requested: bytes,
            why,
        };
        if bytes > free {
            let all = capacity.bytes;
            return Err(refuse(format!("{free} of its {all} bytes are free")));
        }
        let data = if with_data {
            let length = usize::try_from(bytes.max(1)).map_err(|e| refuse(e.to_string()))?;
            let mut map = MmapMut::map_anon(length)
                .map_err(|e| refuse(format!("this machine cannot hold the data: {e}")))?;
            map.fill(POISON);
            Some(map)
        } else {
            None
        };
        capacity.taken += bytes;
        self.blocks.insert(
            id,
            Block {
                device,
                bytes,
                data,
                users: 0,
                freed: false,
            },
        );
        Ok(())
    }

    /// Gives memory back as soon as nothing in flight uses it.
    pub fn free(&mut self, id: Memory) {
        if let Some(block) = self.blocks.get_mut(&id) {
            block.freed = true;
        }
        self.drop_unused(id);
    }

    /// A command in flight uses this memory.
    pub fn retain(&mut self, id: Memory) {
        if let Some(block) = self.blocks.get_mut(&id) {
            block.users += 1;
        }
    }

    /// A command that used this memory has ended.
    pub fn release(&mut self, id: Memory) {
        if let Some(block) = self.blocks.get_mut(&id) {
            block.users -= 1;
        }
        self.drop_unused(id);
    }

    fn drop_unused(&mut self, id: Memory) {
        if let Some(block) = self.blocks.get(&id)
            && block.freed
            && block.users == 0
        {
            let (device, bytes) = (block.device, block.bytes);
            self.blocks.remove(&id);
            self.capacity(device).taken -= bytes;
        }
    }

    /// Device (`None`: the host) and length of memory not yet given back.
    pub fn lookup(&self, id: Memory) -> Option<(Option<usize>, u64)> {
        let block = self.blocks.get(&id).filter(|b| !b.freed)?;
        Some((block.device, block.bytes))
    }

    /// The bytes of memory not yet given back.
    pub fn bytes(&mut self, id: Memory) -> Result<&mut [u8], RuntimeError> {
        let block = self.blocks.get_mut(&id).filter(|b| !b.freed);
        let block = block.ok_or(RuntimeError::Unknown {
            what: "host memory",
        })?;
        let length = block.bytes as usize;
        let data = block.data.as_mut().ok_or(RuntimeError::NoData)?;
        Ok(&mut data[..length])
    }

    /// Overwrites a lost device's memory.
    pub fn poison(&mut self, device: usize) {
        let lost = |block: &&mut Block| block.device == Some(device);
        for block in self.blocks.values_mut().filter(lost) {
            if let Some(data) = &mut block.data {
                data.fill(POISON);
            }
        }
    }

    /// Copies bytes between two blocks, whose ranges were checked.
    pub fn copy(&mut self, from: Location, to: Location, bytes: u64) {
        let target = self.blocks.get_mut(&to.memory);
        let Some(mut data) = target.and_then(|block| block.data.take()) else {
            return;
        };
        if let Some(source) = self.blocks.get(&from.memory).and_then(|b| b.data.as_ref()) {
            let (at, there, bytes) = (from.offset as usize, to.offset as usize, bytes as usize);
            data[there..there + bytes].copy_from_slice(&source[at..at + bytes]);
        }
        if let Some(block) = self.blocks.get_mut(&to.memory) {
            block.data = Some(data);
        }
    }

    /// Computes a launch with its native implementation, if there is data.
    pub fn compute(&mut self, launch: &Launch) {
        let Some(kernel) = launch.codelet.host.filter(|_| self.with_data) else {
            return;
        };
        let mut arguments = Vec::with_capacity(launch.args.len());
        for value in &launch.args {
            if let Value::Memory(id) = value {
                let block = self.blocks.get_mut(id);
                let Some((data, bytes)) = block.and_then(|b| Some((b.data.as_mut()?, b.bytes)))
                else {
                    return;
                };
                arguments.push(HostValue::Memory {
                    address: data.as_mut_ptr(),
                    bytes,
                });
            }
            arguments.extend(value.plain());
        }
        // SAFETY: the addresses are of blocks that the launch keeps alive, and
        // the simulator runs one kernel at a time in the thread that owns
        // them. As on every runtime, the caller of `submit` guarantees that the
        // arguments are those that the codelet documents.
        unsafe { kernel(&arguments, launch.units.start, launch.units.clone()) };
    }
}
