//! A kernel at one device, for trials: on copies of its buffers, in a queue of its own.

use std::ffi::CString;
use std::ptr;
use std::sync::Arc;

use opencl_sys::CL_INVALID_BUILD_OPTIONS;

use crate::form::Form;
use crate::own_queue::{Built, Memory, OwnQueue, Site};
use crate::status::Fallible;

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
    pub queue: OwnQueue,
}

impl Trial {
    pub fn new(site: Site, source: Source, arguments: Vec<Given>) -> Fallible<Self> {
        Ok(Self {
            source,
            arguments,
            queue: OwnQueue::new(site)?,
        })
    }

    /// The same trial at another device, with copies without contents.
    pub fn at(&self, site: &Site) -> Fallible<Self> {
        let mut trial = Self::new(site.clone(), self.source.clone(), self.arguments.clone())?;
        for given in &mut trial.arguments {
            if let Given::Buffer { copy, .. } = given {
                *copy = Arc::new(trial.queue.memory(copy.bytes)?);
            }
        }
        Ok(trial)
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
        let built = self.queue.program(&text, &options, &self.source.kernel)?;
        for (index, given) in self.arguments.iter().enumerate() {
            match given {
                Given::Buffer { copy, .. } => built.set_memory(index, copy)?,
                Given::Local(bytes) => built.set_value(index, (*bytes, ptr::null()))?,
                Given::Bytes(bytes) => built.set(index, bytes)?,
            }
        }
        Ok(built)
    }
}
