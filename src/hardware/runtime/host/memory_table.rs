//! The memory that commands may name. Checks commands and resolves them to
//! addresses.

use std::collections::HashMap;
use std::sync::Arc;

use super::job::{Prepared, Work};
use crate::codelet::{HostValue, Memory};
use crate::runtime::tiles::Tiles;
use crate::runtime::{BufferId, HostMemoryId, HostRegion, Launch, Location, Rows, RuntimeError};

/// Host regions, shared with other backends, and the pools' own buffers.
#[derive(Default)]
pub struct MemoryTable {
    pub regions: HashMap<HostMemoryId, HostRegion>,
    pub buffers: HashMap<BufferId, HostRegion>,
}

/// The pool that will run a command.
#[derive(Clone, Copy)]
pub struct Pool<'a> {
    pub name: &'a str,
    pub workers: usize,
}

impl MemoryTable {
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
    pub fn launch(&self, pool: Pool<'_>, launch: &Launch) -> Result<Prepared, RuntimeError> {
        let code = launch
            .codelet
            .host
            .clone()
            .ok_or_else(|| RuntimeError::NoImplementation {
                device: pool.name.to_owned(),
                codelet: launch.codelet.name.to_string(),
            })?;
        let mut keep = Vec::new();
        let mut args = Vec::with_capacity(launch.args.len());
        for arg in &launch.args {
            if let Some(memory) = arg.memory() {
                let region = self.region(memory)?;
                keep.push(Arc::clone(&region.keeper));
                args.push(HostValue::Memory {
                    address: region.address.as_ptr(),
                    bytes: region.bytes,
                });
            }
            args.extend(arg.plain());
        }
        let units = launch.units.clone();
        let count = match code.is_shared() {
            // A tile is a worker's part in it.
            true => pool.workers as u64,
            false => units.end.saturating_sub(units.start),
        };
        Ok(Prepared {
            tiles: Tiles::of(count, launch.cost, pool.workers),
            work: match code.is_shared() {
                true => Work::Shared { code, args, units },
                false => Work::Kernel { code, args, units },
            },
            keep,
        })
    }

    /// Checks a copy between two memories.
    pub fn copy(
        &self,
        pool: Pool<'_>,
        from: Location,
        to: Location,
        rows: Rows,
    ) -> Result<Prepared, RuntimeError> {
        // Nobody copies rows within host memory: a device that computes there needs no copy.
        if rows.count > 1 {
            return Err(RuntimeError::Unsupported {
                device: pool.name.to_owned(),
                what: "a copy of rows with gaps between them",
            });
        }
        let bytes = rows.total();
        let from = self.locate(pool, from, bytes)?;
        let to = self.locate(pool, to, bytes)?;
        Ok(Prepared {
            work: Work::Copy {
                from: from.address,
                to: to.address,
            },
            tiles: Tiles::of_copy(bytes, pool.workers),
            keep: vec![from.keeper, to.keeper],
        })
    }

    fn locate(
        &self,
        pool: Pool<'_>,
        Location { memory, offset }: Location,
        bytes: u64,
    ) -> Result<Located, RuntimeError> {
        let region = self.region(memory)?;
        let end = offset.checked_add(bytes);
        if end.is_none_or(|end| end > region.bytes) {
            return Err(RuntimeError::Call {
                device: pool.name.to_owned(),
                call: "a copy",
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

/// One end of a copy.
struct Located {
    address: *mut u8,
    keeper: Arc<dyn Send + Sync>,
}
