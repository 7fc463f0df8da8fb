//! Events of drivers.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::{Arc, Mutex, PoisonError};

use libc::c_void;
use opencl_sys::cl_icd::cl_icd_dispatch;
use opencl_sys::{
    CL_COMPLETE, CL_EVENT_COMMAND_EXECUTION_STATUS, cl_command_queue, cl_event, cl_int,
};

use crate::context::Context;
use crate::status::{Fallible, check, driver, driver_object};

/// An event of a driver. Queues of other drivers wait for a user event of theirs, which
/// is set when this one ends.
pub struct Native {
    pub table: &'static cl_icd_dispatch,
    pub event: cl_event,
    /// Its driver's context, as an index in our context.
    pub domain: usize,
    /// Flushed before somebody else waits; null for a user event.
    queue: cl_command_queue,
    /// What to add to its times; see `clock.rs`.
    pub clock: i64,
    /// User events by domain.
    bridges: Mutex<Vec<(usize, UserEvent)>>,
}

// SAFETY: drivers' handles may be used by every thread.
unsafe impl Send for Native {}
// SAFETY: as above.
unsafe impl Sync for Native {}

impl Native {
    /// Owns an event of a queue, or a user event.
    pub fn new(
        table: &'static cl_icd_dispatch,
        event: cl_event,
        domain: usize,
        queue: cl_command_queue,
    ) -> Arc<Self> {
        Self::timed(table, event, domain, queue, 0)
    }

    /// Owns an event of a queue whose times need something added.
    pub fn timed(
        table: &'static cl_icd_dispatch,
        event: cl_event,
        domain: usize,
        queue: cl_command_queue,
        clock: i64,
    ) -> Arc<Self> {
        Arc::new(Self {
            table,
            event,
            domain,
            queue,
            clock,
            bridges: Mutex::default(),
        })
    }

    /// The event, or one that ends with it, for the queues of a domain. It lives as
    /// long as `self`.
    pub fn within(&self, context: &Context, domain: usize) -> Fallible<cl_event> {
        if domain == self.domain {
            return Ok(self.event);
        }
        let mut bridges = self.bridges.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, user)) = bridges.iter().find(|(other, _)| *other == domain) {
            return Ok(user.event);
        }
        let other = &context.domains[domain];
        let user = UserEvent::new(other.table, other.context)?;
        let event = user.event;
        let twin = Box::new(user.share()?);
        bridges.push((domain, user));
        drop(bridges);
        if !self.queue.is_null() {
            check(driver!(self.table, clFlush(self.queue)))?;
        }
        let data = Box::into_raw(twin);
        let set = driver!(
            self.table,
            clSetEventCallback(self.event, CL_COMPLETE, Some(ended), data.cast())
        );
        if set != opencl_sys::CL_SUCCESS {
            // SAFETY: the driver did not take the pointer.
            drop(unsafe { Box::from_raw(data) });
            return Err(set);
        }
        Ok(event)
    }

    /// The execution status: a negative code after a failure.
    pub fn execution_status(&self) -> Fallible<cl_int> {
        let mut status: cl_int = 0;
        let (size, value) = (size_of::<cl_int>(), ptr::from_mut(&mut status).cast());
        let what = CL_EVENT_COMMAND_EXECUTION_STATUS;
        check(driver!(
            self.table,
            clGetEventInfo(self.event, what, size, value, ptr::null_mut())
        ))?;
        Ok(status)
    }

    /// Runs a task when it has ended, on a driver's thread; not at all if the driver
    /// refuses.
    pub fn when_ended(&self, task: impl FnOnce() + Send + 'static) {
        let data = Box::into_raw(Box::new(Box::new(task) as Task));
        let set = driver!(
            self.table,
            clSetEventCallback(self.event, CL_COMPLETE, Some(run_task), data.cast())
        );
        if set != opencl_sys::CL_SUCCESS {
            // SAFETY: the driver did not take the pointer.
            drop(unsafe { Box::from_raw(data) });
        }
    }

    /// Waits until it has ended.
    pub fn wait(&self) -> Fallible<()> {
        check(driver!(self.table, clWaitForEvents(1, &self.event)))
    }
}

impl Drop for Native {
    fn drop(&mut self) {
        let _ = driver!(self.table, clReleaseEvent(self.event));
    }
}

/// A user event of a driver.
pub struct UserEvent {
    pub table: &'static cl_icd_dispatch,
    pub event: cl_event,
}

// SAFETY: drivers' handles may be used by every thread.
unsafe impl Send for UserEvent {}

impl UserEvent {
    pub fn new(table: &'static cl_icd_dispatch, context: opencl_sys::cl_context) -> Fallible<Self> {
        let event = driver_object!(table, clCreateUserEvent(context))?;
        Ok(Self { table, event })
    }

    /// Another owner of the same event.
    pub fn share(&self) -> Fallible<Self> {
        check(driver!(self.table, clRetainEvent(self.event)))?;
        Ok(Self {
            table: self.table,
            event: self.event,
        })
    }

    /// Ends it well. Drivers disagree on user events that fail (PoCL never ends commands
    /// that wait for them), so failures are not passed on this way.
    pub fn complete(&self) {
        let _ = driver!(self.table, clSetUserEventStatus(self.event, CL_COMPLETE));
    }
}

impl Drop for UserEvent {
    fn drop(&mut self) {
        let _ = driver!(self.table, clReleaseEvent(self.event));
    }
}

type Task = Box<dyn FnOnce() + Send>;

unsafe extern "C" fn run_task(_event: cl_event, _status: cl_int, data: *mut c_void) {
    let _ = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: the box that `when_ended` gave away; drivers call once.
        let task = unsafe { Box::from_raw(data.cast::<Task>()) };
        task();
    }));
}

unsafe extern "C" fn ended(_event: cl_event, _status: cl_int, data: *mut c_void) {
    let _ = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: the box that `within` gave away; drivers call once.
        let user = unsafe { Box::from_raw(data.cast::<UserEvent>()) };
        user.complete();
    }));
}
