//! A user's kernel: its buffers in host memory, and whole copies of them in
//! the memory of devices that have their own.
//!
//! Devices that share the host's memory compute in it, in place. Each of the
//! others has an *image* of every buffer (`slices`); a launch with a global
//! offset works on it as the undivided one would. What a launch needs is
//! written before it where the image lacks it, and what it wrote comes back:
//! of a buffer that is divided as the work is, the units' slices behind each
//! chunk; of others the whole image at the barrier, where what has changed is
//! taken ([`difference`]).
//!
//! [`examine()`] finds out beforehand, by running parts of the kernel, along which
//! dimension it can be divided and which buffers are.
//!
//! Every written buffer has two versions in host memory: the *base*, which a
//! step begins with, and the *result*. If a buffer is read and written, the
//! result is the next step's base.
//!
//! The examination holds for the data that it has seen. Where stores depend on data that
//! change, two images may have unlike changes of one byte. Then the step runs again from
//! its base, undivided (`undivided`).

mod examine;
mod slices;
mod undivided;

pub use examine::{Examined, SliceTrials, examine};
pub use slices::lacking;
pub use undivided::undivided;

use std::ops::Range;
use std::sync::atomic::AtomicBool;

use self::slices::Images;
use self::undivided::{Clash, Clashes};
use super::{Arrivals, Form, Later, OnDevices, Space, data, too_small};
use crate::corun::context::{Context, Purpose};
use crate::corun::layout::Layout;
use crate::corun::memory::QUEUES;
use crate::corun::{CorunError, GATHER, INPUT, Options};
use crate::residency::difference::{self, Twice};
use crate::runtime::{Command, DeviceId, HostMemoryId, Memory, RuntimeError};
use crate::scope::RuntimeScope;
use crate::verify::Compared;
use crate::workload::Divisible;
use crate::workload::kernel::{UserKernel, ranges};
use pdawl_core::graph::spec::Direction;

/// A buffer of a kernel in host memory.
#[derive(Clone, Debug)]
struct HostBuffer {
    position: usize,
    bytes: u64,
    direction: Direction,
    /// What a step begins with; of a buffer that is only read, all there is.
    base: HostMemoryId,
    /// What it leaves; `base` for a buffer that is only read.
    result: HostMemoryId,
    /// A unit needs its slice of it only.
    read_sliced: bool,
    /// A unit writes its slice of it only.
    written_sliced: bool,
}

impl HostBuffer {
    /// What the last step left. Of what is read and written, that has become
    /// the base.
    fn final_version(&self) -> HostMemoryId {
        match self.direction.reads() {
            true => self.base,
            false => self.result,
        }
    }
}

/// A user's kernel in a run.
pub(super) struct KernelForm<'a> {
    user: &'a UserKernel,
    buffers: Vec<HostBuffer>,
    images: OnDevices<Images>,
    /// Whether trials were made since the buffers were filled.
    tried: bool,
    /// For images that are read whole, as long as the longest such buffer;
    /// `None` where there is none.
    scratch: Option<HostMemoryId>,
    /// Steps that ran again undivided.
    clashes: Option<Clashes>,
}

/// What it means that two parts wrote the same value to a byte: nothing, unless they may
/// have counted there, each from the same base.
fn equal_writes(user: &UserKernel) -> Twice {
    match user.info().atomics {
        true => Twice::Clashes,
        false => Twice::MayAgree,
    }
}

impl<'a> KernelForm<'a> {
    /// Allocates the buffers, and their images.
    pub fn open(
        runtime: &mut RuntimeScope,
        user: &'a UserKernel,
        options: &Options,
    ) -> Result<(Self, Vec<Space>), CorunError> {
        let slices = user.slices();
        let mut buffers = Vec::new();
        for (position, buffer) in user.buffers() {
            let bytes = buffer.bytes();
            let base = runtime.alloc_host(bytes)?;
            let result = match buffer.direction.writes() {
                true => runtime.alloc_host(bytes)?,
                false => base,
            };
            buffers.push(HostBuffer {
                position,
                bytes,
                direction: buffer.direction,
                base,
                result,
                read_sliced: slices.read.contains(&position),
                written_sliced: slices.written.contains(&position),
            });
        }
        let mut devices = runtime.devices().iter();
        let has_images = devices.any(|device| !device.shares_host_memory);
        let longest = (buffers.iter())
            .filter(|b| b.direction.writes() && !b.written_sliced)
            .map(|buffer| buffer.bytes)
            .max();
        let scratch = match longest.filter(|_| has_images) {
            Some(bytes) => Some(runtime.alloc_host(bytes)?),
            None => None,
        };
        if buffers.is_empty() {
            return Err(CorunError::NoBuffer);
        }
        let (images, spaces) = OnDevices::open(runtime, &[], |runtime, id, device| {
            if let Some((limit, needed)) = lacking(user, device, options.gpu_memory) {
                return Err(too_small(device, limit, needed));
            }
            let space = Space {
                capacity: Some(0),
                slots: None,
                longest_chunk: None,
                least_chunk: 1,
                held_queues: 0,
                chunk_queues: options.stream.queues.unwrap_or(QUEUES).max(1) as usize,
            };
            Ok((Images::open(runtime, id, user)?, space))
        })?;
        let form = Self {
            user,
            buffers,
            images,
            tried: true,
            scratch,
            clashes: None,
        };
        Ok((form, spaces))
    }

    /// Whether a step can begin on what the one before left, and a unit can be
    /// computed again after half of it: nothing is read that is written, and no
    /// image comes back as a whole, with what earlier steps wrote.
    fn is_repeatable(&self) -> bool {
        self.user.slices().pure && self.scratch.is_none()
    }

    /// Writes base versions into the images of these devices: all that are not sliced if
    /// `all`, else those that a step changed. Launches wait for that.
    fn write_whole(
        &mut self,
        context: &mut Context,
        devices: Range<usize>,
        step: u32,
        all: bool,
    ) -> Result<(), CorunError> {
        let units = 0..self.user.units();
        for (device, images) in self.images.iter_mut() {
            if !context.devices[device].alive || !devices.contains(&device) {
                continue;
            }
            let purpose = Purpose::new(device, 0, step, INPUT);
            images.ready.clear();
            for (index, buffer) in self.buffers.iter().enumerate() {
                let sliced = buffer.read_sliced && buffer.direction.reads();
                if !sliced && (all || buffer.direction.writes()) {
                    let command = images.write(index, buffer.base, 0..buffer.bytes);
                    let event = context.submit(purpose, command, units.clone(), &[])?;
                    images.ready.extend(event);
                }
            }
        }
        Ok(())
    }

    /// Waits until the images are written.
    fn written(&mut self, context: &mut Context) -> Result<(), CorunError> {
        context.drain()?;
        for (_, images) in self.images.iter_mut() {
            images.ready.clear();
        }
        Ok(())
    }

    /// Sets the results to what a step begins with.
    fn reset_results(&mut self, context: &mut Context) -> Result<(), CorunError> {
        for buffer in self.buffers.iter().filter(|b| b.direction.writes()) {
            let HostBuffer { base, result, .. } = *buffer;
            match context.runtime.host_copy(base, result, buffer.bytes) {
                Ok(()) | Err(RuntimeError::NoData) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Reads the images of buffers that are not divided from the devices that
    /// worked, and takes what they changed. Returns the first place where two clash.
    fn merge_images(
        &mut self,
        context: &mut Context,
        step: u32,
    ) -> Result<Option<Clash>, CorunError> {
        let twice = equal_writes(self.user);
        let mut clash = None;
        let whole = |buffer: &HostBuffer| buffer.direction.writes() && !buffer.written_sliced;
        let units = 0..self.user.units();
        let mut workers = context.jobs.all.iter().map(|job| job.device);
        let first = workers.next();
        let is_alone = workers.all(|device| Some(device) == first);
        for (device, images) in self.images.iter_mut() {
            let worked = std::mem::take(&mut images.worked);
            let Some(scratch) = self.scratch.filter(|_| worked && clash.is_none()) else {
                continue;
            };
            let purpose = Purpose::new(device, 0, step, GATHER);
            for (index, buffer) in self.buffers.iter().enumerate().filter(|(_, b)| whole(b)) {
                if !context.devices[device].alive {
                    break;
                }
                // Nothing is to be merged with what has computed everything.
                let to = if is_alone { buffer.result } else { scratch };
                let read = images.read(index, to, 0..buffer.bytes);
                context.submit(purpose, read, units.clone(), &[])?;
                context.drain()?;
                if context.spoiled || !context.devices[device].alive {
                    break;
                }
                if is_alone {
                    continue;
                }
                let length = buffer.bytes as usize;
                let base = context.runtime.host_bytes(buffer.base)?[..length].to_vec();
                let part = context.runtime.host_bytes(scratch)?[..length].to_vec();
                let all = &mut context.runtime.host_bytes(buffer.result)?[..length];
                if let Err(byte) = difference::merge(&base, &part, all, twice) {
                    clash = Some(Clash {
                        step,
                        argument: buffer.position,
                        byte,
                    });
                    break;
                }
            }
        }
        Ok(clash)
    }
}

impl Form for KernelForm<'_> {
    /// Bytes say little of what a kernel computes, and its buffers are mostly
    /// where they are needed.
    fn bytes_tell_time(&self) -> bool {
        false
    }

    /// Writes what the buffers begin with, here and into images.
    fn fill(&mut self, context: &mut Context, _later: Option<&Later>) -> Result<(), CorunError> {
        for buffer in &self.buffers {
            if let Some(bytes) = data(&mut *context.runtime, buffer.base)? {
                let bytes = &mut bytes[..buffer.bytes as usize];
                self.user.fill(buffer.position, bytes);
            }
        }
        self.tried = true;
        self.reset_results(context)?;
        for (_, images) in self.images.iter_mut() {
            images.forget();
        }
        self.write_whole(context, 0..usize::MAX, 0, true)?;
        self.written(context)
    }

    fn rejoin(&mut self, context: &mut Context, device: usize) -> Result<(), CorunError> {
        let (user, runtime) = (self.user, &mut context.runtime);
        (self.images).renew(device, |_| Images::open(runtime, DeviceId(device), user))?;
        self.write_whole(context, device..device + 1, 0, true)?;
        self.written(context)
    }

    /// Sets the results to what the step begins with, and gives the images the
    /// present version.
    fn begin_step(&mut self, context: &mut Context, step: u32) -> Result<bool, CorunError> {
        let tried = std::mem::take(&mut self.tried);
        if self.is_repeatable() {
            return Ok(true);
        }
        for (_, images) in self.images.iter_mut().filter(|_| tried) {
            // Trials have computed there what the first step reads.
            images.fresh.fill(false);
            images.worked = false;
        }
        self.reset_results(context)?;
        self.write_whole(context, 0..usize::MAX, step, false)?;
        Ok(false)
    }

    fn relocate(
        &mut self,
        _context: &mut Context,
        _before: &Layout,
        _step: u32,
    ) -> Result<Arrivals, CorunError> {
        Ok(Arrivals::default())
    }

    fn launch(
        &mut self,
        _context: &mut Context,
        purpose: Purpose,
        _publish: bool,
    ) -> Result<bool, CorunError> {
        let device = purpose.device;
        Err(CorunError::NoMemory { device })
    }

    /// A launch in place, or writes of what an image lacks, a launch, and reads of
    /// what it wrote.
    fn chunk(
        &mut self,
        context: &mut Context,
        purpose: Purpose,
        units: Range<u64>,
        _arrivals: &Arrivals,
    ) -> Result<(), CorunError> {
        let user = self.user;
        let Some(images) = self.images.find(purpose.device) else {
            let in_host = |buffer: &HostBuffer| Memory::Host(buffer.result);
            let memories: Vec<Memory> = self.buffers.iter().map(in_host).collect();
            for part in user.launches(&units) {
                context.submit_launch(purpose, part, user.args(&memories), &[])?;
            }
            return Ok(());
        };
        images.worked = true;
        let lacking = ranges(&units, |unit| !images.has[unit as usize]);
        let stale = ranges(&units, |unit| !images.fresh[unit as usize]);
        let here = units.start as usize..units.end as usize;
        images.has[here.clone()].fill(true);
        images.fresh[here].fill(true);
        let mut writes: Vec<(Range<u64>, Command)> = Vec::new();
        let mut reads = Vec::new();
        for (index, buffer) in self.buffers.iter().enumerate() {
            let slice = |units: &Range<u64>| user.axis().slice(buffer.bytes, units);
            if buffer.read_sliced && buffer.direction.reads() {
                let missing = match buffer.direction.writes() {
                    true => &stale,
                    false => &lacking,
                };
                for run in missing {
                    let bytes = slice(run).map(|bytes| images.write(index, buffer.base, bytes));
                    writes.extend(bytes.map(|command| (run.clone(), command)));
                }
            }
            if buffer.written_sliced {
                let read = slice(&units).map(|bytes| images.read(index, buffer.result, bytes));
                reads.extend(read.map(|command| (units.clone(), command)));
            }
        }
        let memories: Vec<Memory> = images.buffers.iter().map(|b| Memory::Device(*b)).collect();
        let wait = images.ready.clone();
        context.submit_each(purpose, writes, &[])?;
        for part in user.launches(&units) {
            context.submit_launch(purpose, part, user.args(&memories), &wait)?;
        }
        context.submit_each(purpose, reads, &[])?;
        Ok(())
    }

    /// Merges what images have that is read whole; results become the next step's
    /// base.
    fn turn(&mut self, context: &mut Context, step: u32) -> Result<(), CorunError> {
        if let Some(clash) = self.merge_images(context, step)? {
            self.run_again(context, clash)?;
        }
        for (_, images) in self.images.iter_mut() {
            images.ready.clear();
        }
        if context.spoiled {
            return Ok(());
        }
        let mut turned = false;
        for buffer in &mut self.buffers {
            if buffer.direction.reads() && buffer.direction.writes() {
                std::mem::swap(&mut buffer.base, &mut buffer.result);
                turned = true;
            }
        }
        // The version that a device has of its own units is the present one;
        // that of others is not.
        let jobs = context.jobs.all.iter();
        for job in jobs.filter(|job| turned && !job.failed) {
            let units = job.units.start as usize..job.units.end as usize;
            for (device, images) in self.images.iter_mut() {
                if device != job.device {
                    images.fresh[units.clone()].fill(false);
                }
            }
        }
        Ok(())
    }

    /// Results are in host memory after each step.
    fn gather(&mut self, _context: &mut Context, _step: u32) -> Result<(), CorunError> {
        Ok(())
    }

    fn deliver(&mut self, context: &mut Context) -> Result<(), CorunError> {
        for buffer in self.buffers.iter().filter(|b| b.direction.writes()) {
            let bytes = context.runtime.host_bytes(buffer.final_version())?;
            self.user
                .deliver(buffer.position, &bytes[..buffer.bytes as usize]);
        }
        Ok(())
    }

    fn verify(
        &mut self,
        context: &mut Context,
        steps: u32,
        stop: &AtomicBool,
    ) -> Result<Option<Compared>, CorunError> {
        self.compare(context, steps, stop)
    }

    fn notes(&self) -> Vec<String> {
        self.clashes.iter().map(Clashes::to_string).collect()
    }

    /// Images hold nothing, and are probed as streams.
    fn hold_probe(
        &mut self,
        _context: &mut Context,
        _purpose: Purpose,
        _units: u64,
        _write: bool,
    ) -> Result<Range<u64>, CorunError> {
        Ok(0..0)
    }

    fn end_probes(&mut self) -> bool {
        true
    }
}
