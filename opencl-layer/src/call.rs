//! Calls that give commands to a queue of a driver.

use std::ptr;
use std::sync::Arc;

use libc::c_void;
use opencl_sys::cl_icd::cl_icd_dispatch;
use opencl_sys::{cl_bool, cl_command_queue, cl_event, cl_kernel, cl_mem, cl_uint};

use crate::domain::Domain;
use crate::native::Native;
use crate::shape::Shape;
use crate::status::Fallible;

/// A wait list for a driver, with what keeps its events alive.
#[derive(Default)]
pub struct Waits {
    events: Vec<cl_event>,
    _natives: Vec<Arc<Native>>,
}

impl Waits {
    /// The events of a list for the queues of a domain of this number.
    pub fn new(inner: &Domain, domain: usize, natives: Vec<Arc<Native>>) -> Fallible<Self> {
        let events = natives.iter().map(|native| native.within(inner, domain));
        Ok(Self {
            events: events.collect::<Fallible<_>>()?,
            _natives: natives,
        })
    }
}

/// How a command is given to a driver: to which queue, after what, and where its event goes.
pub struct Call<'a> {
    pub table: &'static cl_icd_dispatch,
    pub queue: cl_command_queue,
    pub waits: Option<&'a Waits>,
    /// Null if nobody wants the event.
    pub event: *mut cl_event,
    /// Whether reads and writes return when they have ended.
    pub blocking: cl_bool,
}

/// Calls an enqueueing function of a driver: its queue comes before the arguments, and the wait
/// list and the event after them.
macro_rules! enqueue {
    ($call:expr, $name:ident($($argument:expr),* $(,)?)) => {{
        let call = $call;
        let (count, events) = call.list();
        $crate::status::check($crate::status::driver!(
            call.table,
            $name(call.queue, $($argument,)* count, events, call.event)
        ))
    }};
}
pub(crate) use enqueue;

impl Call<'_> {
    /// The wait list; null if there is none.
    pub fn list(&self) -> (cl_uint, *const cl_event) {
        match self.waits {
            Some(Waits { events, .. }) if !events.is_empty() => {
                (events.len() as cl_uint, events.as_ptr())
            }
            _ => (0, ptr::null()),
        }
    }

    pub fn read(&self, mem: cl_mem, at: usize, size: usize, to: *mut c_void) -> Fallible<()> {
        enqueue!(self, clEnqueueReadBuffer(mem, self.blocking, at, size, to))
    }

    pub fn write(&self, mem: cl_mem, at: usize, size: usize, from: *const c_void) -> Fallible<()> {
        enqueue!(
            self,
            clEnqueueWriteBuffer(mem, self.blocking, at, size, from)
        )
    }

    pub fn copy(
        &self,
        (from, from_at): (cl_mem, usize),
        (to, to_at): (cl_mem, usize),
        size: usize,
    ) -> Fallible<()> {
        enqueue!(self, clEnqueueCopyBuffer(from, to, from_at, to_at, size))
    }

    /// Ends when what it waits for has ended, or all before it.
    pub fn marker(&self) -> Fallible<()> {
        enqueue!(self, clEnqueueMarkerWithWaitList())
    }

    pub fn launch(&self, kernel: cl_kernel, shape: &Shape) -> Fallible<()> {
        let pointer =
            |list: &Option<Vec<usize>>| list.as_ref().map_or(ptr::null(), |list| list.as_ptr());
        let (offset, local) = (pointer(&shape.offset), pointer(&shape.local));
        let (dimensions, global) = (shape.global.len() as cl_uint, shape.global.as_ptr());
        enqueue!(
            self,
            clEnqueueNDRangeKernel(kernel, dimensions, offset, global, local)
        )
    }
}
