//! A user's kernel: its buffers in host memory, and whole copies of them in
//! the memory of devices that have their own.
//!
//! Devices that share the host's memory compute in it, in place. Each of the
//! others has an *image* of every buffer (`images`); a launch with a global
//! offset works on it as the undivided one would. What a launch needs is
//! written before it where the image lacks it, and what it wrote comes back:
//! of a buffer that is divided as the work is, the units' slices behind each
//! chunk; of others the whole image at the barrier, where what has changed is
//! taken (`steps`, [`merge`]).
//!
//! [`examine()`] finds out beforehand, by running parts of the kernel, along which
//! dimension it can be divided and which buffers are.
//!
//! Every written buffer has two versions in host memory: the *base*, which a
//! step begins with, and the *result*. If a buffer is read and written, the
//! result is the next step's base.

mod bench;
mod examine;
mod images;
pub mod merge;
mod slices;
mod steps;
mod verify;

pub use examine::{Examined, examine};
pub use images::{Images, lacking};

use std::ops::Range;

use super::claims::Claims;
use super::drive::{Drive, Kept};
use super::place::Place;
use super::{CorunError, INPUT};
use crate::engine::corun::drive::For;
use crate::graph::spec::Direction;
use crate::runtime::{EventId, HostMemoryId, RuntimeError};
use crate::workload::kernel::UserKernel;

/// A buffer of a kernel in host memory.
#[derive(Clone, Debug)]
pub(super) struct HostBuffer {
    pub position: usize,
    pub bytes: u64,
    pub direction: Direction,
    /// What a step begins with; of a buffer that is only read, all there is.
    pub base: HostMemoryId,
    /// What it leaves; `base` for a buffer that is only read.
    pub result: HostMemoryId,
    /// A unit needs its slice of it only.
    pub read_sliced: bool,
    /// A unit writes its slice of it only.
    pub written_sliced: bool,
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

/// A kernel's data, and how far it is.
pub struct Whole<'a> {
    pub(super) user: &'a UserKernel,
    pub(super) buffers: Vec<HostBuffer>,
    /// Whether trials were made since the buffers were filled.
    tried: bool,
    /// For images that are read whole, as long as the longest such buffer;
    /// `None` where there is none.
    scratch: Option<HostMemoryId>,
}

impl<'a> Whole<'a> {
    /// Allocates the buffers. Returns the two memories that stand for the
    /// versions elsewhere as well.
    pub fn open(
        runtime: &mut Claims,
        user: &'a UserKernel,
    ) -> Result<([HostMemoryId; 2], Self), CorunError> {
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
        let shares = |device: &crate::machine::Device| device.shares_host_memory;
        let images = !runtime.devices().iter().all(shares);
        let longest = (buffers.iter())
            .filter(|b| b.direction.writes() && !b.written_sliced)
            .map(|buffer| buffer.bytes)
            .max();
        let scratch = match longest.filter(|_| images) {
            Some(bytes) => Some(runtime.alloc_host(bytes)?),
            None => None,
        };
        let first = buffers.first().ok_or(CorunError::NoBuffer)?;
        let memories = [first.base, first.result];
        let whole = Self {
            user,
            buffers,
            tried: true,
            scratch,
        };
        Ok((memories, whole))
    }

    /// Whether a step can begin on what the one before left, and a unit can be
    /// computed again after half of it: nothing is read that is written, and no
    /// image comes back as a whole, with what earlier steps wrote.
    pub fn is_repeatable(&self) -> bool {
        self.user.slices().pure && self.scratch.is_none()
    }
}

impl<'a> Drive<'a> {
    pub(super) fn whole(&self) -> Option<&Whole<'a>> {
        match &self.kept {
            Kept::Kernel(whole) => Some(whole),
            Kept::Grid(_) | Kept::Product(_) => None,
        }
    }

    /// Writes what the buffers begin with, here and into images.
    pub(super) fn fill_kernel(&mut self) -> Result<(), CorunError> {
        let Kept::Kernel(whole) = &mut self.kept else {
            return Ok(());
        };
        let user = whole.user;
        for buffer in &whole.buffers {
            match self.runtime.host_bytes(buffer.base) {
                Ok(bytes) => user.fill(buffer.position, &mut bytes[..buffer.bytes as usize]),
                Err(RuntimeError::NoData) => {}
                Err(error) => return Err(error.into()),
            }
        }
        whole.tried = true;
        self.reset_results()?;
        for device in 0..self.places.len() {
            if let Place::Images(images) = &mut self.places[device] {
                images.forget();
            }
            if self.alive[device] {
                self.write_whole(device, 0, true)?;
            }
        }
        self.drain()?;
        self.nothing_to_await();
        Ok(())
    }

    /// Writes base versions into a device's images: all that are not sliced if
    /// `all`, else those that a step changed. Whoever launches waits for that.
    pub(super) fn write_whole(
        &mut self,
        device: usize,
        step: u32,
        all: bool,
    ) -> Result<(), CorunError> {
        let Some(whole) = self.whole() else {
            return Ok(());
        };
        let wanted: Vec<(usize, HostBuffer)> = (whole.buffers.iter().cloned().enumerate())
            .filter(|(_, buffer)| {
                let written = buffer.direction.writes();
                let sliced = buffer.read_sliced && buffer.direction.reads();
                !sliced && (all || written)
            })
            .collect();
        let Place::Images(images) = &self.places[device] else {
            return Ok(());
        };
        let whose = For {
            device,
            lane: images.lanes[0],
            job: None,
            step,
            label: INPUT,
        };
        let commands: Vec<_> = (wanted.iter())
            .map(|(index, buffer)| images.write(*index, buffer.base, 0..buffer.bytes))
            .collect();
        let units = 0..self.workload.units();
        let mut ready = Vec::new();
        for command in commands {
            ready.extend(self.submit(whose, command, units.clone(), &[])?);
        }
        if let Place::Images(images) = &mut self.places[device] {
            images.ready = ready;
        }
        Ok(())
    }

    /// Sets the results to what a step begins with.
    pub(super) fn reset_results(&mut self) -> Result<(), CorunError> {
        let Kept::Kernel(whole) = &mut self.kept else {
            return Ok(());
        };
        for buffer in whole.buffers.iter().filter(|b| b.direction.writes()) {
            merge::copy(&mut *self.runtime, buffer.base, buffer.result, buffer.bytes)?;
        }
        Ok(())
    }

    /// Everything that launches had to wait for has ended.
    pub(super) fn nothing_to_await(&mut self) {
        for place in &mut self.places {
            if let Place::Images(images) = place {
                images.ready.clear();
            }
        }
    }

    /// The events that a launch on a device's images has to wait for.
    pub(super) fn images_ready(&self, device: usize) -> Vec<EventId> {
        match &self.places[device] {
            Place::Images(images) => images.ready.clone(),
            _ => Vec::new(),
        }
    }
}

/// Runs of consecutive units that `lacks` says are lacking.
pub(super) fn runs(units: &Range<u64>, lacks: impl Fn(u64) -> bool) -> Vec<Range<u64>> {
    let mut all: Vec<Range<u64>> = Vec::new();
    for unit in units.clone().filter(|unit| lacks(*unit)) {
        match all.last_mut() {
            Some(last) if last.end == unit => last.end = unit + 1,
            _ => all.push(unit..unit + 1),
        }
    }
    all
}
