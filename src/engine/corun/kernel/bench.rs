//! Trials of a user's kernel on one device: buffers set, parts run, contents
//! looked at.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::super::CorunError;
use super::super::TRIAL;
use super::super::claims::Claims;
use crate::runtime::{
    BufferId, Command, DeviceId, DeviceSpan, HostMemoryId, HostSpan, Launch, Memory, QueueId,
    Runtime, Status, Tag,
};
use crate::workload::Divisible;
use crate::workload::kernel::UserKernel;

/// A buffer on the device, and what stands for it in host memory: itself where
/// the device shares that.
struct Slot {
    bytes: u64,
    host: HostMemoryId,
    image: Option<BufferId>,
    reads: bool,
    writes: bool,
}

/// One device with a kernel's buffers.
pub struct Bench<'a> {
    runtime: Claims<'a>,
    device: DeviceId,
    queue: QueueId,
    slots: Vec<Slot>,
    stop: &'a AtomicBool,
}

/// Contents of all written buffers, in the order of their positions.
pub type Contents = Vec<Vec<u8>>;

impl<'a> Bench<'a> {
    /// Allocates everything on a device. When `stop` is set, no further run
    /// begins.
    pub fn open(
        runtime: &'a mut dyn Runtime,
        device: usize,
        user: &UserKernel,
        stop: &'a AtomicBool,
    ) -> Result<Self, CorunError> {
        let mut runtime = Claims::on(runtime);
        let shares = (runtime.devices().get(device)).is_none_or(|d| d.shares_host_memory);
        let device = DeviceId(device);
        let queue = runtime.queue(device)?;
        let mut slots = Vec::new();
        for (_, buffer) in user.buffers() {
            let bytes = buffer.bytes();
            slots.push(Slot {
                bytes,
                host: runtime.alloc_host(bytes)?,
                image: match shares {
                    true => None,
                    false => Some(runtime.alloc(device, bytes)?),
                },
                reads: buffer.direction.reads(),
                writes: buffer.direction.writes(),
            });
        }
        Ok(Self {
            runtime,
            device,
            queue,
            slots,
            stop,
        })
    }

    /// Indices of the buffers that are written.
    pub fn written(&self) -> Vec<usize> {
        let written = |index: &usize| self.slots[*index].writes;
        (0..self.slots.len()).filter(written).collect()
    }

    /// Indices of the buffers that are read, and not written.
    pub fn only_read(&self) -> Vec<usize> {
        let read = |index: &usize| !self.slots[*index].writes;
        (0..self.slots.len()).filter(read).collect()
    }

    /// Whether a buffer is read as well.
    pub fn reads(&self, index: usize) -> bool {
        self.slots[index].reads
    }

    /// Sets a buffer.
    pub fn set(&mut self, index: usize, contents: &[u8]) -> Result<(), CorunError> {
        let Slot {
            bytes, host, image, ..
        } = self.slots[index];
        self.runtime.host_bytes(host)?[..contents.len()].copy_from_slice(contents);
        let Some(image) = image else {
            return Ok(());
        };
        self.submit(Command::Write {
            from: HostSpan {
                memory: host,
                offset: 0,
                bytes,
            },
            to: DeviceSpan {
                buffer: image,
                offset: 0,
            },
        })?;
        self.finish()
    }

    /// A buffer's contents.
    pub fn get(&mut self, index: usize) -> Result<Vec<u8>, CorunError> {
        let Slot {
            bytes, host, image, ..
        } = self.slots[index];
        if let Some(image) = image {
            self.submit(Command::Read {
                from: DeviceSpan {
                    buffer: image,
                    offset: 0,
                },
                to: HostSpan {
                    memory: host,
                    offset: 0,
                    bytes,
                },
            })?;
            self.finish()?;
        }
        Ok(self.runtime.host_bytes(host)?[..bytes as usize].to_vec())
    }

    /// Sets all written buffers, runs these units, one launch a range, and
    /// returns what the written buffers have then.
    ///
    /// # Errors
    /// [`CorunError::Interrupted`] on request, and what the runtime refuses.
    pub fn run(
        &mut self,
        user: &UserKernel,
        base: &Contents,
        parts: &[Range<u64>],
    ) -> Result<Contents, CorunError> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(CorunError::Interrupted);
        }
        let written = self.written();
        for (index, contents) in written.iter().zip(base) {
            self.set(*index, contents)?;
        }
        let memories: Vec<Memory> = (self.slots.iter())
            .map(|slot| slot.image.map_or(Memory::Host(slot.host), Memory::Device))
            .collect();
        let codelet = user.codelet();
        let parts = parts.iter().filter(|units| !units.is_empty());
        for units in parts.flat_map(|units| user.launches(units)) {
            self.submit(Command::Launch(Launch {
                codelet: Arc::clone(&codelet),
                args: user.args(&memories),
                cost: user.cost(&units),
                units,
            }))?;
        }
        self.finish()?;
        written.into_iter().map(|index| self.get(index)).collect()
    }

    /// The same for all units at once.
    pub fn whole(&mut self, user: &UserKernel, base: &Contents) -> Result<Contents, CorunError> {
        let all = 0..user.units();
        self.run(user, base, std::slice::from_ref(&all))
    }

    /// What the written buffers have after these steps of the undivided
    /// kernel.
    pub fn steps(&mut self, user: &UserKernel, steps: u32) -> Result<Contents, CorunError> {
        let mut base = self.begin(user)?;
        let mut results = base.clone();
        for _ in 0..steps {
            results = self.whole(user, &base)?;
            let written = self.written();
            for ((index, base), result) in written.into_iter().zip(&mut base).zip(&results) {
                if self.reads(index) {
                    base.clone_from(result);
                }
            }
        }
        Ok(results)
    }

    /// Sets all buffers to what they begin with; returns that of the written
    /// ones.
    pub fn begin(&mut self, user: &UserKernel) -> Result<Contents, CorunError> {
        let mut base = Vec::new();
        let positions: Vec<usize> = user.buffers().map(|(position, _)| position).collect();
        for (index, position) in positions.into_iter().enumerate() {
            let mut contents = vec![0; self.slots[index].bytes as usize];
            user.fill(position, &mut contents);
            self.set(index, &contents)?;
            if self.slots[index].writes {
                base.push(contents);
            }
        }
        Ok(base)
    }

    fn submit(&mut self, command: Command) -> Result<(), CorunError> {
        let tag = Tag {
            step: 0,
            label: TRIAL.into(),
            units: 0..1,
        };
        self.runtime.submit(self.queue, command, &[], tag)?;
        Ok(())
    }

    fn finish(&mut self) -> Result<(), CorunError> {
        let mut failed = None;
        while let Some(completion) = self.runtime.wait(None)? {
            if let Status::Failed(why) | Status::DeviceLost(why) = completion.status {
                failed.get_or_insert(why);
            }
        }
        match failed {
            None => Ok(()),
            Some(why) => Err(CorunError::Trial {
                device: self.runtime.devices()[self.device.0].name.clone(),
                why,
            }),
        }
    }
}
