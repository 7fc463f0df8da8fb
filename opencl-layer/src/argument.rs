//! Arguments of kernels.

use std::sync::Arc;

use libc::c_void;
use opencl_sys::cl_icd::cl_icd_dispatch;
use opencl_sys::*;

use crate::drivers;
use crate::handle::{Ref, Remembered};
use crate::mem::Mem;
use crate::sampler::Sampler;
use crate::status::{Fallible, asking};

/// An argument.
#[derive(Clone)]
pub enum Argument {
    Mem(Ref<Mem>),
    Sampler(Ref<Sampler>),
    /// Bytes of local memory, or a null pointer.
    Local(usize),
    Bytes(Arc<[u8]>),
}

/// An argument as a kernel keeps it. Setting an argument does not keep a memory object
/// alive, so that it goes when the program releases it.
#[derive(Clone)]
pub enum Kept {
    Mem(Remembered<Mem>),
    Other(Argument),
}

impl Kept {
    pub fn new(argument: Argument) -> Self {
        match argument {
            Argument::Mem(mem) => Self::Mem(mem.remember()),
            other => Self::Other(other),
        }
    }

    /// The argument, if its memory object is still alive.
    pub fn get(&self) -> Option<Argument> {
        match self {
            Self::Mem(mem) => mem.get().map(Argument::Mem),
            Self::Other(argument) => Some(argument.clone()),
        }
    }
}

/// What a kernel takes, as its driver says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    Buffer,
    Image,
    Sampler,
    Local,
    Value,
    /// The driver does not say.
    Anything,
}

impl Takes {
    /// Asks a driver.
    pub fn of(table: &cl_icd_dispatch, kernel: cl_kernel, index: cl_uint) -> Self {
        let ask =
            |what: cl_kernel_arg_info| asking!(table, clGetKernelArgInfo(kernel, index, what));
        let kind = drivers::text(ask(CL_KERNEL_ARG_TYPE_NAME));
        let space = drivers::number(ask(CL_KERNEL_ARG_ADDRESS_QUALIFIER));
        let Some(space) = space.ok().filter(|_| !kind.is_empty()) else {
            return Self::Anything;
        };
        // Drivers disagree on the address space of images and samplers.
        match space {
            _ if kind.starts_with("image") && kind.ends_with("_t") => Self::Image,
            _ if kind == "sampler_t" => Self::Sampler,
            CL_KERNEL_ARG_ADDRESS_GLOBAL | CL_KERNEL_ARG_ADDRESS_CONSTANT => Self::Buffer,
            CL_KERNEL_ARG_ADDRESS_LOCAL => Self::Local,
            _ => Self::Value,
        }
    }
}

impl Argument {
    /// What a program's value is.
    ///
    /// # Safety
    /// `value` is null or valid for `size` reads.
    pub unsafe fn new(takes: Takes, size: usize, value: *const c_void) -> Fallible<Self> {
        let is_handle = size == size_of::<cl_mem>();
        let takes_handle = matches!(takes, Takes::Buffer | Takes::Image | Takes::Sampler);
        if size == 0 || (takes_handle && !is_handle) {
            return Err(CL_INVALID_ARG_SIZE);
        }
        if value.is_null() {
            return match takes {
                Takes::Image => Err(CL_INVALID_MEM_OBJECT),
                Takes::Sampler => Err(CL_INVALID_SAMPLER),
                Takes::Value => Err(CL_INVALID_ARG_VALUE),
                _ => Ok(Self::Local(size)),
            };
        }
        if takes == Takes::Local {
            return Err(CL_INVALID_ARG_VALUE);
        }
        if is_handle && takes != Takes::Value {
            // SAFETY: the value has as many bytes as a handle, perhaps unaligned.
            let handle = unsafe { value.cast::<cl_mem>().read_unaligned() };
            match takes {
                Takes::Buffer if handle.is_null() => return Ok(Self::Local(size)),
                Takes::Buffer => return Ref::of(handle).map(Self::Mem),
                Takes::Image => {
                    let mem = Ref::<Mem>::of(handle)?;
                    return match mem.image {
                        Some(_) => Ok(Self::Mem(mem)),
                        None => Err(CL_INVALID_MEM_OBJECT),
                    };
                }
                Takes::Sampler => return Ref::of(handle).map(Self::Sampler),
                _ => {}
            }
            if let Ok(mem) = Ref::<Mem>::of(handle) {
                return Ok(Self::Mem(mem));
            }
            if let Ok(sampler) = Ref::<Sampler>::of(handle) {
                return Ok(Self::Sampler(sampler));
            }
        }
        // SAFETY: promised by the caller.
        let bytes = unsafe { std::slice::from_raw_parts(value.cast(), size) };
        Ok(Self::Bytes(bytes.into()))
    }

    /// The only place that has it, if there is one.
    pub fn only_place(&self) -> Option<usize> {
        match self {
            Self::Mem(mem) => mem.only_place,
            _ => None,
        }
    }
}
