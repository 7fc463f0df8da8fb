//! What this library does at a device that the program has not asked for: in a queue of its own,
//! with memory and kernels of its own.

use std::ffi::CStr;
use std::ops::Range;
use std::ptr;
use std::sync::Arc;

use libc::c_void;
use opencl_sys::cl_icd::cl_icd_dispatch;
use opencl_sys::*;

use crate::call::{Call, Waits};
use crate::domain::{Domain, Own, set_argument};
use crate::form::{Form, ProgramKey};
use crate::native::Native;
use crate::shape::Shape;
use crate::status::{Fallible, check, driver};

/// A device in a context of its driver.
#[derive(Clone)]
pub struct Site {
    pub domain: Domain,
    pub id: cl_device_id,
}

// SAFETY: drivers' handles may be used by every thread.
unsafe impl Send for Site {}

/// A queue in order, at a device.
pub struct OwnQueue {
    site: Site,
    queue: Own,
}

/// Memory at a device.
pub struct Memory {
    own: Own,
    pub bytes: usize,
}

impl Memory {
    pub fn mem(&self) -> cl_mem {
        self.own.handle()
    }
}

/// A kernel of a program that is built for a queue's device.
pub struct Built<'a> {
    queue: &'a OwnQueue,
    kernel: Own,
    program: Arc<Own>,
}

impl OwnQueue {
    pub fn new(site: Site) -> Fallible<Self> {
        let queue = site.domain.queue(site.id, 0)?;
        Ok(Self { site, queue })
    }

    pub fn handle(&self) -> cl_command_queue {
        self.queue.handle()
    }

    /// Calls that wait for nothing but what was given before; reads and writes are waited for.
    pub fn now(&self) -> Call<'static> {
        Call {
            table: self.site.domain.table,
            queue: self.handle(),
            waits: None,
            event: ptr::null_mut(),
            blocking: CL_TRUE,
        }
    }

    /// Waits for all that was begun.
    pub fn finish(&self) -> Fallible<()> {
        check(driver!(self.site.domain.table, clFinish(self.handle())))
    }

    /// Memory at the device.
    pub fn memory(&self, bytes: usize) -> Fallible<Memory> {
        let own = (self.site.domain).buffer(CL_MEM_READ_WRITE, bytes, ptr::null_mut())?;
        Ok(Memory { own, bytes })
    }

    /// The bytes of memory, after all that was begun.
    pub fn read(&self, memory: &Memory) -> Fallible<Vec<u8>> {
        let mut made = vec![0_u8; memory.bytes];
        let to = made.as_mut_ptr().cast();
        self.now().read(memory.mem(), 0, made.len(), to)?;
        Ok(made)
    }

    /// Replaces the first bytes of memory.
    pub fn write(&self, memory: &Memory, contents: &[u8]) -> Fallible<()> {
        let (from, bytes) = (contents.as_ptr().cast(), contents.len());
        self.now().write(memory.mem(), 0, bytes, from)
    }

    /// Begins to copy a range, after what was begun before.
    pub fn copy(&self, from: &Memory, to: &Memory, range: Range<usize>) -> Fallible<()> {
        let (at, size) = (range.start, range.len());
        self.now().copy((from.mem(), at), (to.mem(), at), size)
    }

    /// Builds a program, and makes a kernel of it.
    pub fn program(&self, text: &[u8], options: &CStr, kernel: &CStr) -> Fallible<Built<'_>> {
        let Site { domain, id } = &self.site;
        let program = domain.program(text)?;
        domain.build(program.handle(), &[*id], options)?;
        Ok(Built {
            queue: self,
            kernel: domain.kernel(program.handle(), kernel)?,
            program: Arc::new(program),
        })
    }
}

impl Built<'_> {
    /// Another kernel of the same program.
    pub fn other(&self, kernel: &CStr) -> Fallible<Self> {
        let domain = &self.queue.site.domain;
        Ok(Self {
            queue: self.queue,
            kernel: domain.kernel(self.program.handle(), kernel)?,
            program: Arc::clone(&self.program),
        })
    }

    /// Sets a plain argument.
    pub fn set(&self, index: usize, value: &[u8]) -> Fallible<()> {
        self.set_value(index, (value.len(), value.as_ptr().cast()))
    }

    /// Sets an argument that is a buffer.
    pub fn set_memory(&self, index: usize, memory: &Memory) -> Fallible<()> {
        self.set(index, &(memory.mem() as usize).to_ne_bytes())
    }

    /// Sets an argument: its size, and its bytes or null.
    pub fn set_value(&self, index: usize, value: (usize, *const c_void)) -> Fallible<()> {
        let table = self.queue.site.domain.table;
        set_argument(table, self.kernel.handle(), index, value)
    }

    /// Begins to run a range, after what was begun before.
    pub fn launch(&self, shape: &Shape) -> Fallible<()> {
        self.queue.now().launch(self.kernel.handle(), shape)
    }
}

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
