//! Kernels of whose end nobody hears by itself.
//!
//! A queue is in order, so the end of a command tells of all before it, and an
//! event for each is a price without a use: of NVIDIA's 6.7 us for a kernel 1.3
//! are its event's (580.159 on an H200). What such kernels use is *owed* by
//! their queue until a command with an event comes, which takes it along.

use std::sync::Arc;

use cl3::command_queue::finish;
use cl3::error_codes::{DLOPEN_FUNCTION_NOT_AVAILABLE, DLOPEN_RUNTIME_LOAD_FAILED};
use cl3::types::{cl_event, cl_int, cl_kernel};
use cl3::{OpenClRuntime, load_library};

use super::completion::Keep;
use super::device::Shared;
use super::handle::Event;
use super::queue::{OpenQueue, list};
use crate::codelet::NdRange;
use crate::runtime::EventId;

/// What the commands without an event have in use, and what they wait for.
#[derive(Default)]
pub(super) struct Owed {
    pub keeps: Vec<Keep>,
    pub waits: Vec<EventId>,
    /// Whether there are any commands behind the last one that is heard of.
    any: bool,
}

impl Owed {
    /// A command is on its way that uses and waits for this.
    pub(super) fn add(&mut self, uses: Vec<Keep>, events: Vec<Arc<Event>>, waits: &[EventId]) {
        self.keeps.extend(uses);
        self.keeps
            .extend(events.into_iter().map(|event| event as Keep));
        self.waits.extend_from_slice(waits);
        self.any = true;
    }
}

impl OpenQueue {
    /// Waits for what has no event behind it.
    pub(super) fn settle(&mut self, device: &Shared) {
        if self.owed.any && device.check().is_ok() {
            // A device that fails here is found out by the next call.
            let _ = finish(self.raw.raw());
        }
        self.owed = Owed::default();
    }

    /// Enqueues a kernel without an event; what the crate offers makes one
    /// always.
    ///
    /// # Safety
    /// The kernel's arguments are set, the sizes have as many dimensions as
    /// `sizes.global`, the events are alive, and what the arguments name outlives
    /// the command.
    pub(super) unsafe fn enqueue_unheard(
        &self,
        kernel: cl_kernel,
        sizes: &NdRange,
        local: Option<&[usize]>,
        wait: &[cl_event],
    ) -> Result<(), cl_int> {
        let (count, events) = list(wait);
        call(|library| {
            library.clEnqueueNDRangeKernel(
                self.raw.raw(),
                kernel,
                sizes.global.len() as u32,
                (sizes.offset.as_ref()).map_or(std::ptr::null(), |o| o.as_ptr()),
                sizes.global.as_ptr(),
                local.map_or(std::ptr::null(), <[usize]>::as_ptr),
                count,
                events,
                std::ptr::null_mut(),
            )
        })
    }
}

/// Calls the driver's library itself.
pub(super) fn call(function: impl FnOnce(&OpenClRuntime) -> Option<cl_int>) -> Result<(), cl_int> {
    let library = load_library()
        .as_ref()
        .map_err(|_| DLOPEN_RUNTIME_LOAD_FAILED)?;
    match function(library) {
        Some(0) => Ok(()),
        Some(code) => Err(code),
        None => Err(DLOPEN_FUNCTION_NOT_AVAILABLE),
    }
}
