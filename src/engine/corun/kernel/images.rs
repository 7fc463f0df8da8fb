//! A device's own memory: an image of every buffer, queues, and which units'
//! slices the images have.

use std::ops::Range;

use super::super::claims::Claims;
use super::super::place::{Lane, Lanes, QUEUES, memory_limit};
use super::super::{CorunError, Options};
use crate::machine::Device;
use crate::runtime::{BufferId, Command, DeviceId, DeviceSpan, EventId, HostMemoryId, HostSpan};
use crate::workload::Divisible;
use crate::workload::kernel::UserKernel;

/// Images on one device.
#[derive(Clone, Debug)]
pub struct Images {
    pub(in super::super) lanes: Vec<Lane>,
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
    /// Allocates images and queues.
    pub fn prepare(
        runtime: &mut Claims,
        id: DeviceId,
        device: &Device,
        user: &UserKernel,
        options: &Options,
    ) -> Result<Self, CorunError> {
        if let Some((limit, needed)) = lacking(user, device, options.gpu_memory) {
            return Err(CorunError::DeviceMemory {
                device: device.name.clone(),
                limit,
                needed,
            });
        }
        let mut lanes = Lanes::of(id);
        let queues = options.stream.queues.unwrap_or(QUEUES).max(1);
        let lanes = (0..queues)
            .map(|_| lanes.open(runtime))
            .collect::<Result<_, _>>()?;
        let buffers = (user.buffers())
            .map(|(_, buffer)| runtime.alloc(id, buffer.bytes()))
            .collect::<Result<_, _>>()?;
        let units = user.units() as usize;
        Ok(Self {
            lanes,
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
        Command::Write {
            from: host(from, &bytes),
            to: self.part(index, &bytes),
        }
    }

    /// A read of part of an image into a host memory of the same form.
    pub(super) fn read(&self, index: usize, to: HostMemoryId, bytes: Range<u64>) -> Command {
        Command::Read {
            from: self.part(index, &bytes),
            to: host(to, &bytes),
        }
    }

    fn part(&self, index: usize, bytes: &Range<u64>) -> DeviceSpan {
        DeviceSpan {
            buffer: self.buffers[index],
            offset: bytes.start,
        }
    }
}

fn host(memory: HostMemoryId, bytes: &Range<u64>) -> HostSpan {
    HostSpan {
        memory,
        offset: bytes.start,
        bytes: bytes.end - bytes.start,
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
