//! A kernel at one device, for trials: on copies of its buffers, in a queue of its own, by
//! calls that wait.

use std::ffi::{CStr, CString};
use std::ptr;

use opencl_sys::cl_icd::cl_icd_dispatch;
use opencl_sys::*;

use super::Form;
use crate::kernel::Shape;
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

/// An argument.
pub enum Given {
    /// A copy of a buffer.
    Buffer {
        copy: cl_mem,
        bytes: usize,
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
    pub kernel: cl_kernel,
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
                Given::Buffer { bytes, written, .. } => {
                    let (context, none) = (device.context, ptr::null_mut());
                    let copy = driver_object!(
                        device.table,
                        clCreateBuffer(context, CL_MEM_READ_WRITE, *bytes, none)
                    )?;
                    Given::Buffer {
                        copy,
                        bytes: *bytes,
                        written: *written,
                    }
                }
                Given::Local(bytes) => Given::Local(*bytes),
                Given::Bytes(bytes) => Given::Bytes(bytes.clone()),
            };
            trial.arguments.push(given);
        }
        Ok(trial)
    }

    /// The positions of buffers among the arguments.
    pub fn buffers(&self) -> impl Iterator<Item = (usize, cl_mem, usize, bool)> + '_ {
        let buffer = |(index, given): (usize, &Given)| match given {
            Given::Buffer {
                copy,
                bytes,
                written,
            } => Some((index, *copy, *bytes, *written)),
            _ => None,
        };
        self.arguments.iter().enumerate().filter_map(buffer)
    }

    /// Builds the program in a form, and sets the arguments of the kernel.
    pub fn build(&self, form: Form) -> Fallible<Built<'_>> {
        let table = self.device.table;
        let text = [form.preamble().as_bytes(), self.source.text.as_bytes()].concat();
        let (mut text, length) = (text.as_ptr().cast(), text.len());
        let context = self.device.context;
        let program = driver_object!(
            table,
            clCreateProgramWithSource(context, 1, &raw mut text, &raw const length)
        )?;
        let mut built = Built {
            trial: self,
            program,
            kernel: ptr::null_mut(),
        };
        // PoCL confuses overlapping launches of one program; trials never overlap.
        let options = [self.source.options.as_bytes(), b" -DPDAWL_TRIAL"].concat();
        let options = CString::new(options).map_err(|_| CL_INVALID_BUILD_OPTIONS)?;
        let (options, none): (&CStr, _) = (&options, ptr::null_mut());
        check(driver!(
            table,
            clBuildProgram(program, 1, &self.device.id, options.as_ptr(), None, none)
        ))?;
        built.kernel = driver_object!(table, clCreateKernel(program, self.source.kernel.as_ptr()))?;
        for (index, given) in self.arguments.iter().enumerate() {
            let (size, value) = match given {
                Given::Buffer { copy, .. } => (size_of::<cl_mem>(), ptr::from_ref(copy).cast()),
                Given::Local(bytes) => (*bytes, ptr::null()),
                Given::Bytes(bytes) => (bytes.len(), bytes.as_ptr().cast()),
            };
            check(driver!(
                table,
                clSetKernelArg(built.kernel, index as cl_uint, size, value)
            ))?;
        }
        Ok(built)
    }

    /// The bytes of a buffer's copy.
    pub fn read(&self, copy: cl_mem, bytes: usize) -> Fallible<Vec<u8>> {
        let mut made = vec![0_u8; bytes];
        let (to, queue) = (made.as_mut_ptr().cast(), self.queue);
        let (list, event) = (ptr::null(), ptr::null_mut());
        check(driver!(
            self.device.table,
            clEnqueueReadBuffer(queue, copy, CL_TRUE, 0, bytes, to, 0, list, event)
        ))?;
        Ok(made)
    }

    /// Replaces the bytes of a buffer's copy.
    pub fn write(&self, copy: cl_mem, contents: &[u8]) -> Fallible<()> {
        let (from, bytes, queue) = (contents.as_ptr().cast(), contents.len(), self.queue);
        let (list, event) = (ptr::null(), ptr::null_mut());
        check(driver!(
            self.device.table,
            clEnqueueWriteBuffer(queue, copy, CL_TRUE, 0, bytes, from, 0, list, event)
        ))
    }
}

impl Built<'_> {
    /// Sets a plain argument.
    pub fn set(&self, index: usize, value: &[u8]) -> Fallible<()> {
        let (size, value) = (value.len(), value.as_ptr().cast());
        check(driver!(
            self.trial.device.table,
            clSetKernelArg(self.kernel, index as cl_uint, size, value)
        ))
    }

    /// Launches a range, and waits for its end.
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
        ))?;
        check(driver!(table, clFinish(queue)))
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
        let copies: Vec<cl_mem> = self.buffers().map(|(_, copy, ..)| copy).collect();
        for copy in copies {
            let _ = driver!(table, clReleaseMemObject(copy));
        }
        if !self.queue.is_null() {
            let _ = driver!(table, clReleaseCommandQueue(self.queue));
        }
        let _ = driver!(table, clReleaseContext(context));
    }
}
