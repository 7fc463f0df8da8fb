//! A device's own memory: an image of every buffer, and which units' slices the
//! images have.

use std::ops::Range;

use crate::corun::CorunError;
use crate::corun::memory::memory_limit;
use crate::machine::Device;
use crate::runtime::{BufferId, Command, DeviceId, EventId, HostMemoryId, Runtime, RuntimeError};
use crate::scope::RuntimeScope;
use crate::workload::Divisible;
use crate::workload::kernel::UserKernel;

/// Images on one device.
#[derive(Clone, Debug)]
pub struct Images {
    /// One for each buffer, in the order of positions.
    pub(super) buffers: Vec<BufferId>,
    /// Units whose slices of what is only read are here.
    pub(super) has: Vec<bool>,
    /// Units whose slices of what is read and written are here in the present
    /// version.
    pub(super) fresh: Vec<bool>,
    /// What launches must wait for.
    pub(super) ready: Vec<EventId>,
    /// Whether it computed something in this step.
    pub(super) worked: bool,
}

impl Images {
    /// Allocates images.
    pub fn open(
        runtime: &mut RuntimeScope,
        id: DeviceId,
        user: &UserKernel,
    ) -> Result<Self, CorunError> {
        let buffers = (user.buffers())
            .map(|(_, buffer)| runtime.alloc(id, buffer.bytes()))
            .collect::<Result<_, _>>()?;
        let units = user.units() as usize;
        Ok(Self {
            buffers,
            has: vec![false; units],
            fresh: vec![false; units],
            ready: Vec::new(),
            worked: false,
        })
    }

    /// The images have no unit's slices.
    pub(super) fn forget(&mut self) {
        self.has.fill(false);
        self.fresh.fill(false);
        self.ready.clear();
        self.worked = false;
    }

    /// A write of part of a buffer into its image.
    pub(super) fn write(&self, index: usize, from: HostMemoryId, bytes: Range<u64>) -> Command {
        Command::write(from, bytes.clone(), self.buffers[index], bytes.start)
    }

    /// A read of part of an image into a host memory of the same form.
    pub(super) fn read(&self, index: usize, to: HostMemoryId, bytes: Range<u64>) -> Command {
        Command::read(self.buffers[index], bytes.start, to, bytes)
    }
}

/// The bytes of a device's memory that may be used, and those that a kernel's
/// images need, if the latter are more.
pub fn lacking(user: &UserKernel, device: &Device, limit: Option<u64>) -> Option<(u64, u64)> {
    if device.shares_host_memory {
        return None;
    }
    let limit = memory_limit(device.memory, limit);
    let longest = user.buffers().map(|(_, b)| b.bytes()).max().unwrap_or(0);
    let needed = user.bytes();
    let fits = needed <= limit && longest <= device.max_allocation;
    (!fits).then_some((limit.min(device.max_allocation), needed))
}

/// Bytes copied at a time: they stay in a cache in between.
const PIECE: usize = 256 << 10;

/// Copies host memory.
pub(super) fn copy(
    runtime: &mut dyn Runtime,
    from: HostMemoryId,
    to: HostMemoryId,
    bytes: u64,
) -> Result<(), RuntimeError> {
    let mut piece = vec![0; PIECE.min(bytes as usize)];
    let mut at = 0;
    while at < bytes as usize {
        let end = (at + PIECE).min(bytes as usize);
        let piece = &mut piece[..end - at];
        match runtime.host_bytes(from) {
            Ok(from) => piece.copy_from_slice(&from[at..end]),
            Err(RuntimeError::NoData) => return Ok(()),
            Err(error) => return Err(error),
        }
        runtime.host_bytes(to)?[at..end].copy_from_slice(piece);
        at = end;
    }
    Ok(())
}
