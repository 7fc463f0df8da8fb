//! Queues of drivers, and what their commands wait for.

use std::ptr;
use std::sync::Arc;

use opencl_sys::cl_icd::cl_icd_dispatch;
use opencl_sys::{cl_command_queue, cl_event, cl_uint};

use crate::domain::Domain;
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
    /// Has the commands start that the queue has got.
    pub fn flush(&self) -> Fallible<()> {
        check(driver!(self.table, clFlush(self.queue)))
    }

    /// An event that ends when all that the queue has got has ended.
    pub fn marker(&self) -> Fallible<Arc<Native>> {
        let mut event = ptr::null_mut();
        check(driver!(
            self.table,
            clEnqueueMarkerWithWaitList(self.queue, 0, ptr::null(), &mut event)
        ))?;
        Ok(self.native(event))
    }

    /// An event of this queue that ends when some others have ended. It stands for them.
    pub fn joined(&self, waits: &Waits, parts: Vec<Arc<Native>>) -> Fallible<Arc<Native>> {
        let mut event = ptr::null_mut();
        let (count, list) = (waits.count(), waits.events());
        check(driver!(
            self.table,
            clEnqueueMarkerWithWaitList(self.queue, count, list, &mut event)
        ))?;
        let (table, domain, queue) = (self.table, self.domain, self.queue);
        Ok(Native::of_parts(
            table, event, domain, queue, self.clock, parts,
        ))
    }

    /// Owns an event of this queue.
    pub fn native(&self, event: cl_event) -> Arc<Native> {
        Native::timed(self.table, event, self.domain, self.queue, self.clock)
    }
}

/// A wait list for a driver.
pub struct Waits(Vec<cl_event>);

impl Waits {
    /// The events of a list for the queues of a domain of this number. They live as long as
    /// the list.
    pub fn new(inner: &Domain, domain: usize, natives: &[Arc<Native>]) -> Fallible<Self> {
        let events = natives.iter().map(|native| native.within(inner, domain));
        Ok(Self(events.collect::<Fallible<_>>()?))
    }

    pub fn count(&self) -> cl_uint {
        self.0.len() as cl_uint
    }

    /// The events, or null if there are none.
    pub fn events(&self) -> *const cl_event {
        match self.0.is_empty() {
            true => ptr::null(),
            false => self.0.as_ptr(),
        }
    }
}
