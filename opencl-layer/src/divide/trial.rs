//! A kernel at one device, for trials: on copies of its buffers, in a queue of its own.

use std::ffi::{CStr, CString};
use std::ops::Range;
use std::ptr;
use std::sync::Arc;

use libc::c_void;
use opencl_sys::*;

use crate::call::OwnQueue;
use crate::domain::{Domain, Own, set_argument};
use crate::form::Form;
use crate::shape::Shape;
use crate::status::Fallible;

/// The device of a trial.
#[derive(Clone)]
pub struct Device {
    pub domain: Domain,
    pub id: cl_device_id,
}

// SAFETY: drivers' handles may be used by every thread.
unsafe impl Send for Device {}

/// Memory at the device of a trial.
pub struct Memory {
    own: Own,
    pub bytes: usize,
}

impl Memory {
    pub fn mem(&self) -> cl_mem {
        self.own.handle()
    }
}

/// An argument.
#[derive(Clone)]
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

/// What a trial needs. It keeps the driver's context.
pub struct Trial {
    pub source: Source,
    pub arguments: Vec<Given>,
    queue: OwnQueue,
    device: Device,
}

/// A kernel of a form of the program.
pub struct Built<'a> {
    trial: &'a Trial,
    kernel: Own,
    program: Arc<Own>,
}

impl Trial {
    pub fn new(device: Device, source: Source, arguments: Vec<Given>) -> Fallible<Self> {
        Ok(Self {
            source,
            arguments,
            queue: OwnQueue::new(&device.domain, device.id)?,
            device,
        })
    }

    /// The same trial at another device, with copies without contents.
    pub fn at(&self, device: &Device) -> Fallible<Self> {
        let mut trial = Self::new(device.clone(), self.source.clone(), self.arguments.clone())?;
        for index in 0..trial.arguments.len() {
            if let Given::Buffer { copy, written } = &trial.arguments[index] {
                let (copy, written) = (Arc::new(trial.memory(copy.bytes)?), *written);
                trial.arguments[index] = Given::Buffer { copy, written };
            }
        }
        Ok(trial)
    }

    /// Memory at the device.
    pub fn memory(&self, bytes: usize) -> Fallible<Memory> {
        let domain = &self.device.domain;
        let own = domain.buffer(CL_MEM_READ_WRITE, bytes, ptr::null_mut())?;
        Ok(Memory { own, bytes })
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
                Given::Local(bytes) => built.set_value(index, (*bytes, ptr::null()))?,
                Given::Bytes(bytes) => built.set(index, bytes)?,
            }
        }
        Ok(built)
    }

    /// Builds a program, and makes a kernel of it.
    pub fn program(&self, text: &[u8], options: &CStr, kernel: &CStr) -> Fallible<Built<'_>> {
        let Device { domain, id } = &self.device;
        let program = domain.program(text)?;
        domain.build(program.handle(), &[*id], options)?;
        Ok(Built {
            trial: self,
            kernel: domain.kernel(program.handle(), kernel)?,
            program: Arc::new(program),
        })
    }

    /// The bytes of memory, after all that was begun.
    pub fn read(&self, memory: &Memory) -> Fallible<Vec<u8>> {
        let mut made = vec![0_u8; memory.bytes];
        let to = made.as_mut_ptr().cast();
        self.queue.now().read(memory.mem(), 0, made.len(), to)?;
        Ok(made)
    }

    /// Replaces the bytes of memory.
    pub fn write(&self, memory: &Memory, contents: &[u8]) -> Fallible<()> {
        let (from, bytes) = (contents.as_ptr().cast(), contents.len());
        self.queue.now().write(memory.mem(), 0, bytes, from)
    }

    /// Copies a range.
    pub fn copy(&self, from: &Memory, to: &Memory, range: Range<usize>) -> Fallible<()> {
        let (at, size) = (range.start, range.len());
        self.queue
            .now()
            .copy((from.mem(), at), (to.mem(), at), size)
    }

    /// Waits for all that was begun.
    pub fn finish(&self) -> Fallible<()> {
        self.queue.finish()
    }
}

impl Built<'_> {
    /// Another kernel of the same program.
    pub fn other(&self, kernel: &CStr) -> Fallible<Self> {
        let domain = &self.trial.device.domain;
        Ok(Self {
            trial: self.trial,
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

    fn set_value(&self, index: usize, value: (usize, *const c_void)) -> Fallible<()> {
        let table = self.trial.device.domain.table;
        set_argument(table, self.kernel.handle(), index, value)
    }

    /// Begins to run a range, after what was begun before.
    pub fn launch(&self, shape: &Shape) -> Fallible<()> {
        self.trial.queue.now().launch(self.kernel.handle(), shape)
    }
}
