//! The memory that commands may name, and commands resolved to addresses.

use std::collections::HashMap;
use std::sync::Arc;

use super::job::Work;
use crate::codelet::{HostValue, Memory, Value};
use crate::runtime::tiles::Tiles;
use crate::runtime::{
    BufferId, DeviceSpan, HostMemoryId, HostRegion, HostSpan, Launch, RuntimeError,
};

/// Host regions, shared with other backends, and the pools' own buffers.
#[derive(Default)]
pub struct Memories {
    pub regions: HashMap<HostMemoryId, HostRegion>,
    pub buffers: HashMap<BufferId, HostRegion>,
}

/// Who will run a command.
#[derive(Clone, Copy)]
pub struct Place<'a> {
    pub name: &'a str,
    pub workers: usize,
}

/// A command, checked and resolved.
pub struct Prepared {
    pub work: Work,
    pub tiles: Tiles,
    pub keep: Vec<Arc<dyn Send + Sync>>,
}

impl Memories {
    fn region(&self, memory: Memory) -> Result<&HostRegion, RuntimeError> {
        match memory {
            Memory::Host(id) => self.regions.get(&id).ok_or(RuntimeError::Unknown {
                what: "host memory",
            }),
            Memory::Device(id) => self
                .buffers
                .get(&id)
                .ok_or(RuntimeError::Unknown { what: "buffer" }),
        }
    }

    /// Checks a launch and finds its arguments.
    pub fn launch(&self, place: Place<'_>, launch: &Launch) -> Result<Prepared, RuntimeError> {
        let kernel = launch
            .codelet
            .host
            .ok_or_else(|| RuntimeError::NoImplementation {
                device: place.name.to_owned(),
                codelet: launch.codelet.name.to_string(),
            })?;
        let mut keep = Vec::new();
        let mut args = Vec::with_capacity(launch.args.len());
        for arg in &launch.args {
            if let Value::Memory(memory) = arg {
                let region = self.region(*memory)?;
                keep.push(Arc::clone(&region.keeper));
                args.push(HostValue::Memory {
                    address: region.address.as_ptr(),
                    bytes: region.bytes,
                });
            }
            args.extend(arg.plain());
        }
        let units = launch.units.clone();
        let count = units.end.saturating_sub(units.start);
        Ok(Prepared {
            tiles: Tiles::of(count, launch.cost, place.workers),
            work: Work::Kernel {
                kernel,
                args,
                units,
            },
            keep,
        })
    }

    /// Checks a transfer into a pool's buffer.
    pub fn write(
        &self,
        place: Place<'_>,
        from: HostSpan,
        to: DeviceSpan,
    ) -> Result<Prepared, RuntimeError> {
        let own = self.locate(place, Memory::Device(to.buffer), to.offset, from.bytes)?;
        let host = self.locate(place, Memory::Host(from.memory), from.offset, from.bytes)?;
        Ok(copy(place, host, own, from.bytes))
    }

    /// Checks a transfer out of a pool's buffer.
    pub fn read(
        &self,
        place: Place<'_>,
        from: DeviceSpan,
        to: HostSpan,
    ) -> Result<Prepared, RuntimeError> {
        let own = self.locate(place, Memory::Device(from.buffer), from.offset, to.bytes)?;
        let host = self.locate(place, Memory::Host(to.memory), to.offset, to.bytes)?;
        Ok(copy(place, own, host, to.bytes))
    }

    fn locate(
        &self,
        place: Place<'_>,
        memory: Memory,
        offset: u64,
        bytes: u64,
    ) -> Result<Located, RuntimeError> {
        let region = self.region(memory)?;
        let end = offset.checked_add(bytes);
        if end.is_none_or(|end| end > region.bytes) {
            return Err(RuntimeError::Call {
                device: place.name.to_owned(),
                call: "a transfer",
                why: format!(
                    "{bytes} bytes from byte {offset} on do not lie within the {} bytes there",
                    region.bytes
                ),
            });
        }
        Ok(Located {
            // SAFETY: the offset lies within the region or at its end.
            address: unsafe { region.address.add(offset as usize) }.as_ptr(),
            keeper: Arc::clone(&region.keeper),
        })
    }
}

/// An end of a transfer.
struct Located {
    address: *mut u8,
    keeper: Arc<dyn Send + Sync>,
}

fn copy(place: Place<'_>, from: Located, to: Located, bytes: u64) -> Prepared {
    Prepared {
        work: Work::Copy {
            from: from.address,
            to: to.address,
        },
        tiles: Tiles::of_copy(bytes, place.workers),
        keep: vec![from.keeper, to.keeper],
    }
}
