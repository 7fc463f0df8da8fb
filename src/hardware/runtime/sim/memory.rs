//! Simulated memory: the bytes taken of each device's memory, and their contents if
//! the run has data.

use std::ops::Range;

use memmap2::MmapMut;

use super::RuntimeError;
use crate::codelet::{HostValue, Memory};
use crate::runtime::adopted::{LEAST_ALIGNMENT, not_adopted};
use crate::runtime::{AdoptedMemory, IdMap, Launch, Location, NotAdopted, Rows};

/// The contents of fresh memory: not a number as `f64` and as `f32`, so that a read
/// of what was never written gives a wrong result.
const POISON: u8 = 0xff;

struct Block {
    /// The device that has it; `None` for the host.
    device: Option<usize>,
    bytes: u64,
    contents: Contents,
    /// Commands in flight that use it.
    users: u32,
    freed: bool,
    /// Its device was lost, and its bytes count no more.
    lost: bool,
}

/// What a block consists of.
#[derive(Default)]
enum Contents {
    /// Nothing, in a run without data.
    #[default]
    Absent,
    Own(MmapMut),
    /// The user's memory. A run without data leaves it alone.
    Adopted(AdoptedMemory),
}

impl Contents {
    /// The bytes, in a run with data; at least as many as the block has.
    fn bytes(&mut self, with_data: bool) -> Option<&mut [u8]> {
        match self {
            _ if !with_data => None,
            Self::Absent => None,
            Self::Own(map) => Some(map),
            Self::Adopted(memory) => Some(memory.as_mut_slice()),
        }
    }

    /// The first byte, in a run with data.
    fn address(&mut self, with_data: bool) -> Option<*mut u8> {
        match self {
            _ if !with_data => None,
            Self::Absent => None,
            Self::Own(map) => Some(map.as_mut_ptr()),
            Self::Adopted(memory) => Some(memory.address().as_ptr()),
        }
    }
}

/// A memory's size and the bytes taken of it.
struct Capacity {
    name: String,
    bytes: u64,
    taken: u64,
}

impl Capacity {
    /// Refuses more bytes than are free.
    fn check(&self, bytes: u64) -> Result<(), RuntimeError> {
        let free = self.bytes - self.taken;
        match bytes <= free {
            true => Ok(()),
            false => {
                let all = self.bytes;
                Err(self.refusal(bytes, format!("{free} of its {all} bytes are free")))
            }
        }
    }

    fn refusal(&self, requested: u64, why: String) -> RuntimeError {
        RuntimeError::OutOfMemory {
            device: self.name.clone(),
            requested,
            why,
        }
    }
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
        capacity.check(bytes)?;
        let refuse = |why: String| capacity.refusal(bytes, why);
        let contents = if with_data {
            let length = usize::try_from(bytes.max(1)).map_err(|e| refuse(e.to_string()))?;
            let mut map = MmapMut::map_anon(length)
                .map_err(|e| refuse(format!("this machine cannot hold the data: {e}")))?;
            map.fill(POISON);
            Contents::Own(map)
        } else {
            Contents::Absent
        };
        self.insert(id, device, bytes, contents);
        Ok(())
    }

    /// Takes memory of the host for the user's bytes.
    pub fn adopt(&mut self, id: Memory, memory: AdoptedMemory) -> Result<(), NotAdopted> {
        let memory = memory.check(LEAST_ALIGNMENT)?;
        let bytes = memory.length();
        match self.host.check(bytes) {
            Ok(()) => self.insert(id, None, bytes, Contents::Adopted(memory)),
            Err(error) => return Err(NotAdopted { memory, error }),
        }
        Ok(())
    }

    /// Gives the user's bytes back, unless a command in flight uses them.
    pub fn take(&mut self, id: Memory) -> Result<AdoptedMemory, RuntimeError> {
        let block = self.block(id)?;
        if !matches!(block.contents, Contents::Adopted(_)) {
            return Err(not_adopted());
        }
        if block.users > 0 {
            return Err(RuntimeError::Busy);
        }
        let contents = std::mem::take(&mut block.contents);
        self.free(id);
        match contents {
            Contents::Adopted(memory) => Ok(memory),
            Contents::Absent | Contents::Own(_) => Err(not_adopted()),
        }
    }

    fn insert(&mut self, id: Memory, device: Option<usize>, bytes: u64, contents: Contents) {
        self.capacity(device).taken += bytes;
        let block = Block {
            device,
            bytes,
            contents,
            users: 0,
            freed: false,
            lost: false,
        };
        self.blocks.insert(id, block);
    }

    /// A block not yet given back.
    fn block(&mut self, id: Memory) -> Result<&mut Block, RuntimeError> {
        let block = self.blocks.get_mut(&id).filter(|block| !block.freed);
        block.ok_or(RuntimeError::Unknown {
            what: "host memory",
        })
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
            let counts = !block.lost;
            self.blocks.remove(&id);
            if counts {
                self.capacity(device).taken -= bytes;
            }
        }
    }

    /// Device (`None`: the host) and length of memory not yet given back.
    pub fn lookup(&self, id: Memory) -> Option<(Option<usize>, u64)> {
        let block = self.blocks.get(&id).filter(|b| !b.freed)?;
        Some((block.device, block.bytes))
    }

    /// The bytes of memory not yet given back.
    pub fn bytes(&mut self, id: Memory) -> Result<&mut [u8], RuntimeError> {
        let with_data = self.with_data;
        let block = self.block(id)?;
        let length = block.bytes as usize;
        let data = (block.contents.bytes(with_data)).ok_or(RuntimeError::NoData)?;
        Ok(&mut data[..length])
    }

    /// A device is lost: its memory is overwritten, and all of it is free if the device
    /// comes back.
    pub fn lose(&mut self, device: usize) {
        let lost = |block: &&mut Block| block.device == Some(device);
        for block in self.blocks.values_mut().filter(lost) {
            if let Some(data) = block.contents.bytes(self.with_data) {
                data.fill(POISON);
            }
            block.lost = true;
        }
        self.devices[device].taken = 0;
    }

    /// The device with which a memory was lost.
    pub fn lost_with(&self, id: Memory) -> Option<usize> {
        self.blocks.get(&id).filter(|block| block.lost)?.device
    }

    /// Copies bytes between two blocks, whose ranges were checked.
    pub fn copy(&mut self, from: Location, to: Location, rows: Rows) {
        let with_data = self.with_data;
        if from.memory == to.memory {
            return self.copy_within(from, to, rows);
        }
        let Some(block) = self.blocks.get_mut(&to.memory) else {
            return;
        };
        let mut target = std::mem::take(&mut block.contents);
        let source = self.blocks.get_mut(&from.memory);
        if let Some(source) = source.and_then(|block| block.contents.bytes(with_data))
            && let Some(data) = target.bytes(with_data)
        {
            for (at, there) in places(from, to, rows) {
                data[there].copy_from_slice(&source[at]);
            }
        }
        if let Some(block) = self.blocks.get_mut(&to.memory) {
            block.contents = target;
        }
    }

    fn copy_within(&mut self, from: Location, to: Location, rows: Rows) {
        let with_data = self.with_data;
        let block = self.blocks.get_mut(&to.memory);
        if let Some(data) = block.and_then(|block| block.contents.bytes(with_data)) {
            for (at, there) in places(from, to, rows) {
                data.copy_within(at, there.start);
            }
        }
    }

    /// Computes a launch with its native implementation, if there is data.
    pub fn compute(&mut self, launch: &Launch) {
        let Some(host) = launch.codelet.host.as_ref().filter(|_| self.with_data) else {
            return;
        };
        let mut arguments = Vec::with_capacity(launch.args.len());
        for value in &launch.args {
            if let Some(id) = value.memory() {
                let block = self.blocks.get_mut(&id);
                let found = block.and_then(|b| Some((b.contents.address(true)?, b.bytes)));
                let Some((address, bytes)) = found else {
                    return;
                };
                arguments.push(HostValue::Memory { address, bytes });
            }
            arguments.extend(value.plain());
        }
        // SAFETY: the addresses are of blocks that the launch keeps alive, and
        // the simulator runs one kernel at a time in the thread that owns
        // them. As on every runtime, the caller of `submit` guarantees that the
        // arguments are those that the codelet documents.
        unsafe { host.run(&arguments, launch.units.start, launch.units.clone()) };
    }
}

/// Where the rows of a copy are read and written.
fn places(
    from: Location,
    to: Location,
    rows: Rows,
) -> impl Iterator<Item = (Range<usize>, Range<usize>)> {
    let place = move |first: u64, pitch: u64, row: u64| {
        let begin = (first + row * pitch) as usize;
        begin..begin + rows.bytes as usize
    };
    (0..rows.count).map(move |row| {
        (
            place(from.offset, rows.from_pitch, row),
            place(to.offset, rows.to_pitch, row),
        )
    })
}
