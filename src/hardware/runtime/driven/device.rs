//! An open device: its clock, whether it is lost, and how much of its memory is in use.

use std::ops::{Deref, DerefMut};
use std::sync::OnceLock;

use super::{Code, Failure};
use crate::machine::Device;
use crate::runtime::RuntimeError;
use crate::runtime::device_clock::Clock;

/// An open device; `D` is what its driver has of it.
pub(in crate::runtime) struct OpenDevice<D> {
    pub info: Device,
    pub clock: Clock,
    /// Whether its driver stamps commands with their times.
    pub has_stamps: bool,
    own: D,
    /// Bytes allocated here, and the most that were at once.
    allocated: u64,
    most_allocated: u64,
    /// Why it is lost.
    lost: OnceLock<String>,
}

impl<D> Deref for OpenDevice<D> {
    type Target = D;

    fn deref(&self) -> &D {
        &self.own
    }
}

impl<D> DerefMut for OpenDevice<D> {
    fn deref_mut(&mut self) -> &mut D {
        &mut self.own
    }
}

impl<D> OpenDevice<D> {
    /// A device whose clock is not calibrated yet.
    pub(in crate::runtime) fn new(info: Device, clock: Clock, own: D) -> Self {
        Self {
            info,
            clock,
            has_stamps: true,
            own,
            allocated: 0,
            most_allocated: 0,
            lost: OnceLock::new(),
        }
    }

    /// Refuses a lost device.
    pub(in crate::runtime) fn check(&self) -> Result<(), RuntimeError> {
        match self.loss() {
            None => Ok(()),
            Some(why) => Err(RuntimeError::DeviceLost {
                device: self.info.name.clone(),
                why: why.to_owned(),
            }),
        }
    }

    /// Why it is lost; the first reason.
    pub(in crate::runtime) fn loss(&self) -> Option<&str> {
        self.lost.get().map(String::as_str)
    }

    /// Records that it is lost; the first reason is kept, and returned.
    pub(in crate::runtime) fn mark_lost(&self, why: &str) -> &str {
        self.lost.get_or_init(|| why.to_owned())
    }

    /// The error of a failed call; records a loss.
    pub(in crate::runtime) fn failed<C: Code>(&self, failure: Failure<C>) -> RuntimeError {
        let error = failure.on(&self.info.name);
        if let RuntimeError::DeviceLost { why, .. } = &error {
            self.mark_lost(why);
        }
        error
    }

    /// The error of a call that was refused before the driver saw it.
    pub(in crate::runtime) fn refused(&self, call: &'static str, why: String) -> RuntimeError {
        RuntimeError::Call {
            device: self.info.name.clone(),
            call,
            why,
        }
    }

    /// Refuses so many bytes if the device has not as many left.
    pub(super) fn has_room(&self, bytes: u64) -> Result<(), RuntimeError> {
        self.check()?;
        match bytes > self.info.memory.saturating_sub(self.allocated) {
            true => Err(self.out_of_memory(bytes, "more than the device has left")),
            false => Ok(()),
        }
    }

    /// Records that so many bytes were allocated.
    pub(super) fn allocated(&mut self, bytes: u64) {
        self.allocated += bytes;
        self.most_allocated = self.most_allocated.max(self.allocated);
    }

    /// Records that so many bytes were freed.
    pub(super) fn freed(&mut self, bytes: u64) {
        self.allocated = self.allocated.saturating_sub(bytes);
    }

    /// How many bytes more than now were allocated once.
    pub(in crate::runtime) fn below_most(&self) -> u64 {
        self.most_allocated.saturating_sub(self.allocated)
    }

    /// The error of memory that is not there.
    pub(in crate::runtime) fn out_of_memory(&self, requested: u64, why: &str) -> RuntimeError {
        RuntimeError::OutOfMemory {
            device: self.info.name.clone(),
            requested,
            why: format!(
                "{why}; of its {} bytes {} are allocated here, and one allocation may have {}; \
                 choose a smaller size or limit the memory that is used",
                self.info.memory, self.allocated, self.info.max_allocation
            ),
        }
    }

    /// The error of so many bytes that could not be allocated.
    pub(in crate::runtime) fn no_memory<C: Code>(
        &self,
        bytes: u64,
        failure: Failure<C>,
    ) -> RuntimeError {
        match failure.is_out_of_memory() {
            true => self.out_of_memory(bytes, &failure.describe()),
            false => self.failed(failure),
        }
    }
}
