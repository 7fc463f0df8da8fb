//! Queues of drivers for the commands of one of ours.

use std::ptr;
use std::sync::Arc;

use opencl_sys::cl_icd::cl_icd_dispatch;
use opencl_sys::{CL_FALSE, cl_command_queue, cl_event};

use crate::call::{Call, Waits};
use crate::domain::Own;
use crate::form::{Form, ProgramKey};
use crate::native::Native;
use crate::status::{Fallible, check, driver};

/// A queue of a driver.
#[derive(Clone, Copy)]
pub struct Lane {
    pub table: &'static cl_icd_dispatch,
    pub queue: cl_command_queue,
    pub place: usize,
    pub domain: usize,
    /// The variant of programs that it runs; see `variant.rs`.
    pub variant: u32,
    /// What to add to its times; see `clock.rs`.
    pub clock: i64,
}

// SAFETY: drivers' handles may be used by every thread.
unsafe impl Send for Lane {}

impl Lane {
    /// The program of which it runs kernels in a form.
    pub fn program(&self, form: Form) -> ProgramKey {
        ProgramKey {
            domain: self.domain,
            variant: self.variant,
            form,
        }
    }

    /// Has the commands start that the queue has got.
    pub fn flush(&self) -> Fallible<()> {
        check(driver!(self.table, clFlush(self.queue)))
    }

    /// How a command is given to the queue; nothing waits.
    pub fn call<'a>(&self, waits: &'a Waits, event: *mut cl_event) -> Call<'a> {
        Call {
            table: self.table,
            queue: self.queue,
            waits: Some(waits),
            event,
            blocking: CL_FALSE,
        }
    }

    /// The event of a command that is given to the queue.
    pub fn given(
        &self,
        waits: &Waits,
        give: impl FnOnce(&Call) -> Fallible<()>,
    ) -> Fallible<Arc<Native>> {
        let mut event = ptr::null_mut();
        give(&self.call(waits, &raw mut event))?;
        Ok(self.native(event))
    }

    /// An event that ends when all that the queue has got has ended.
    pub fn marker(&self) -> Fallible<Arc<Native>> {
        self.given(&Waits::default(), |call| call.marker())
    }

    /// An event of this queue that ends when some others have ended. It stands for them.
    pub fn joined(&self, waits: &Waits, parts: Vec<Arc<Native>>) -> Fallible<Arc<Native>> {
        let mut event = ptr::null_mut();
        self.call(waits, &raw mut event).marker()?;
        Ok(self.standing_for(event, parts))
    }

    /// Owns an event of this queue.
    pub fn native(&self, event: cl_event) -> Arc<Native> {
        self.standing_for(event, Vec::new())
    }

    fn standing_for(&self, event: cl_event, parts: Vec<Arc<Native>>) -> Arc<Native> {
        let own = Own::new(event, self.table.clReleaseEvent);
        let mut native = Native::new(self.table, Arc::new(own), self.domain, self.queue);
        native.clock = self.clock;
        native.parts = parts;
        Arc::new(native)
    }
}
