//! A kernel at one device, for trials: on copies of its buffers, in a queue of its own.

use std::ffi::{CStr, CString};
use std::ops::Range;
use std::ptr;
use std::sync::Arc;

use opencl_sys::cl_icd::cl_icd_dispatch;
use opencl_sys::*;

use crate::form::Form;
use crate::shape::Shape;
use crate::status::{Fallible, check, driver, driver_object};

/// The device of a trial.
#[derive(Clone, Copy)]
pub struct Device {
    pub table: &'static cl_icd_dispatch,
    pub context: cl_context,
    pub id: cl_device_id,
}

// SAFETY: drivers' handles may be used by every thread.
unsafe impl Send for Device {}

/// Memory at the device of a trial.
pub struct Memory {
    table: &'static cl_icd_dispatch,
    pub mem: cl_mem,
    pub bytes: usize,
}

// SAFETY: drivers' handles may be used by every thread.
unsafe impl Send for Memory {}
// SAFETY: the same.
unsafe impl Sync for Memory {}

impl Memory {
    /// Memory of a device.
    pub fn new(device: &Device, bytes: usize) -> Fallible<Self> {
        let (table, none) = (device.table, ptr::null_mut());
        let mem = driver_object!(
            table,
            clCreateBuffer(device.context, CL_MEM_READ_WRITE, bytes, none)
        )?;
        Ok(Self { table, mem, bytes })
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        let _ = driver!(self.table, clReleaseMemObject(self.mem));
    }
}

/// An argument.
pub enum Given {
    /// A copy of a buffer.
    Buffer {
        copy: Arc<Memory>,
        written: bool,
    },
    /// Local memory, or a null pointer.
    Local(usize),
    Bytes(Vec<u8>),
}

/// A kernel's program.
#[derive(Clone)]
pub struct Source {
    pub text: CString,
    pub options: CString,
    pub kernel: CString,
}

/// What a trial needs, with what it must release.
pub struct Trial {
    pub device: Device,
    pub source: Source,
    pub arguments: Vec<Given>,
    queue: cl_command_queue,
}

/// A kernel of a form of the program.
pub struct Built<'a> {
    pub trial: &'a Trial,
    program: cl_program,
    kernel: cl_kernel,
}

// SAFETY: drivers' handles may be used by every thread.
unsafe impl Send for Trial {}

impl Trial {
    /// Takes over the copies, and keeps the driver's context.
    pub fn new(device: Device, source: Source, arguments: Vec<Given>) -> Fallible<Self> {
        let mut trial = Self {
            device,
            source,
            arguments,
            queue: ptr::null_mut(),
        };
        let (table, context, id) = (trial.device.table, trial.device.context, trial.device.id);
        check(driver!(table, clRetainContext(context)))?;
        trial.queue = driver_object!(table, clCreateCommandQueue(context, id, 0))?;
        Ok(trial)
    }

    /// The same trial at another device, with copies without contents.
    pub fn at(&self, device: &Device) -> Fallible<Self> {
        let mut trial = Self::new(*device, self.source.clone(), Vec::new())?;
        for given in &self.arguments {
            let given = match given {
                Given::Buffer { copy, written } => Given::Buffer {
                    copy: Arc::new(trial.memory(copy.bytes)?),
                    written: *written,
                },
                Given::Local(bytes) => Given::Local(*bytes),
                Given::Bytes(bytes) => Given::Bytes(bytes.clone()),
            };
            trial.arguments.push(given);
        }
        Ok(trial)
    }

    /// Memory at the device.
    pub fn memory(&self, bytes: usize) -> Fallible<Memory> {
        Memory::new(&self.device, bytes)
    }

    /// The copies of buffers, by argument, and whether the kernel writes them.
    pub fn buffers(&self) -> impl Iterator<Item = (usize, &Arc<Memory>, bool)> + '_ {
        let arguments = self.arguments.iter().enumerate();
        arguments.filter_map(|(index, given)| match given {
            Given::Buffer { copy, written } => Some((index, copy, *written)),
            _ => None,
        })
    }

    /// Builds the program in a form, and sets the arguments of the kernel.
    pub fn build(&self, form: Form) -> Fallible<Built<'_>> {
        let text = [form.preamble().as_bytes(), self.source.text.as_bytes()].concat();
        let options = [self.source.options.as_bytes(), b" -DPDAWL_TRIAL"].concat();
        let options = CString::new(options).map_err(|_| CL_INVALID_BUILD_OPTIONS)?;
        let built = self.program(&text, &options, &self.source.kernel)?;
        for (index, given) in self.arguments.iter().enumerate() {
            match given {
                Given::Buffer { copy, .. } => built.set_memory(index, copy)?,
                Given::Local(bytes) => built.set_value(index, *bytes, ptr::null())?,
                Given::Bytes(bytes) => built.set(index, bytes)?,
            }
        }
        Ok(built)
    }

    /// Builds a program, and makes a kernel of it.
    pub fn program(&self, text: &[u8], options: &CStr, kernel: &CStr) -> Fallible<Built<'_>> {
        let (table, context) = (self.device.table, self.device.context);
        let (mut text, length) = (text.as_ptr().cast(), text.len());
        let program = driver_object!(
            table,
            clCreateProgramWithSource(context, 1, &raw mut text, &raw const length)
        )?;
        let mut built = Built {
            trial: self,
            program,
            kernel: ptr::null_mut(),
        };
        let none = ptr::null_mut();
        check(driver!(
            table,
            clBuildProgram(program, 1, &self.device.id, options.as_ptr(), None, none)
        ))?;
        built.kernel = driver_object!(table, clCreateKernel(program, kernel.as_ptr()))?;
        Ok(built)
    }

    /// The bytes of memory, after all that was begun.
    pub fn read(&self, memory: &Memory) -> Fallible<Vec<u8>> {
        let mut made = vec![0_u8; memory.bytes];
        let (to, queue, mem) = (made.as_mut_ptr().cast(), self.queue, memory.mem);
        let (bytes, list, event) = (made.len(), ptr::null(), ptr::null_mut());
        check(driver!(
            self.device.table,
            clEnqueueReadBuffer(queue, mem, CL_TRUE, 0, bytes, to, 0, list, event)
        ))?;
        Ok(made)
    }

    /// Replaces the bytes of memory.
    pub fn write(&self, memory: &Memory, contents: &[u8]) -> Fallible<()> {
        let (from, bytes, queue) = (contents.as_ptr().cast(), contents.len(), self.queue);
        let (mem, list, event) = (memory.mem, ptr::null(), ptr::null_mut());
        check(driver!(
            self.device.table,
            clEnqueueWriteBuffer(queue, mem, CL_TRUE, 0, bytes, from, 0, list, event)
        ))
    }

    /// Copies a range.
    pub fn copy(&self, from: &Memory, to: &Memory, range: Range<usize>) -> Fallible<()> {
        let (queue, from, to, at) = (self.queue, from.mem, to.mem, range.start);
        let (list, event) = (ptr::null(), ptr::null_mut());
        check(driver!(
            self.device.table,
            clEnqueueCopyBuffer(queue, from, to, at, at, range.len(), 0, list, event)
        ))
    }

    /// Waits for all that was begun.
    pub fn finish(&self) -> Fallible<()> {
        check(driver!(self.device.table, clFinish(self.queue)))
    }
}

impl Built<'_> {
    /// Another kernel of the same program.
    pub fn other(&self, kernel: &CStr) -> Fallible<Self> {
        let (table, program) = (self.trial.device.table, self.program);
        check(driver!(table, clRetainProgram(program)))?;
        let mut built = Self {
            trial: self.trial,
            program,
            kernel: ptr::null_mut(),
        };
        built.kernel = driver_object!(table, clCreateKernel(program, kernel.as_ptr()))?;
        Ok(built)
    }

    /// Sets a plain argument.
    pub fn set(&self, index: usize, value: &[u8]) -> Fallible<()> {
        self.set_value(index, value.len(), value.as_ptr())
    }

    /// Sets an argument that is a buffer.
    pub fn set_memory(&self, index: usize, memory: &Memory) -> Fallible<()> {
        self.set_value(
            index,
            size_of::<cl_mem>(),
            ptr::from_ref(&memory.mem).cast(),
        )
    }

    fn set_value(&self, index: usize, size: usize, value: *const u8) -> Fallible<()> {
        check(driver!(
            self.trial.device.table,
            clSetKernelArg(self.kernel, index as cl_uint, size, value.cast())
        ))
    }

    /// Begins to run a range, after what was begun before.
    pub fn launch(&self, shape: &Shape) -> Fallible<()> {
        let (table, queue) = (self.trial.device.table, self.trial.queue);
        let pointer =
            |list: &Option<Vec<usize>>| list.as_ref().map_or(ptr::null(), |list| list.as_ptr());
        let (offset, local) = (pointer(&shape.offset), pointer(&shape.local));
        let (dimensions, global) = (shape.global.len() as cl_uint, shape.global.as_ptr());
        let (kernel, list, event) = (self.kernel, ptr::null(), ptr::null_mut());
        check(driver!(
            table,
            clEnqueueNDRangeKernel(
                queue, kernel, dimensions, offset, global, local, 0, list, event
            )
        ))
    }
}

impl Drop for Built<'_> {
    fn drop(&mut self) {
        let table = self.trial.device.table;
        if !self.kernel.is_null() {
            let _ = driver!(table, clReleaseKernel(self.kernel));
        }
        let _ = driver!(table, clReleaseProgram(self.program));
    }
}

impl Drop for Trial {
    fn drop(&mut self) {
        let (table, context) = (self.device.table, self.device.context);
        self.arguments.clear();
        if !self.queue.is_null() {
            let _ = driver!(table, clReleaseCommandQueue(self.queue));
        }
        let _ = driver!(table, clReleaseContext(context));
    }
}
