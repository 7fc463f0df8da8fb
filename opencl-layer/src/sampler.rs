//! Samplers. One of ours has a sampler of each driver.

use libc::c_void;
use opencl_sys::*;

use crate::answer::Answer;
use crate::context::Context;
use crate::handle::{Ref, kind};
use crate::status::{Fallible, driver, driver_object, object, status};

/// A sampler.
pub struct Sampler {
    pub context: Ref<Context>,
    /// By domain.
    pub natives: Vec<cl_sampler>,
}

// SAFETY: drivers' handles may be used by every thread.
unsafe impl Send for Sampler {}
// SAFETY: as above.
unsafe impl Sync for Sampler {}

kind!(Sampler, CL_INVALID_SAMPLER);

impl Drop for Sampler {
    fn drop(&mut self) {
        for (domain, native) in self.context.domains.iter().zip(&self.natives) {
            let _ = driver!(domain.table, clReleaseSampler(*native));
        }
    }
}

/// `clCreateSampler`.
pub unsafe extern "C" fn create_sampler(
    context: cl_context,
    normalized: cl_bool,
    addressing: cl_addressing_mode,
    filter: cl_filter_mode,
    code: *mut cl_int,
) -> cl_sampler {
    let make = || {
        let context = Ref::<Context>::of(context)?;
        let create = |domain: &crate::context::Domain| {
            driver_object!(
                domain.table,
                clCreateSampler(domain.context, normalized, addressing, filter)
            )
        };
        let natives = context.domains.iter().map(create).collect::<Fallible<_>>()?;
        Ok(Ref::new(Sampler { natives, context }).give())
    };
    // SAFETY: OpenCL's promise about the code.
    unsafe { object(code, make) }
}

/// `clRetainSampler`.
pub unsafe extern "C" fn retain_sampler(handle: cl_sampler) -> cl_int {
    status(|| Ref::<Sampler>::retain(handle))
}

/// `clReleaseSampler`.
pub unsafe extern "C" fn release_sampler(handle: cl_sampler) -> cl_int {
    status(|| Ref::<Sampler>::release(handle))
}

/// `clGetSamplerInfo`.
pub unsafe extern "C" fn get_sampler_info(
    handle: cl_sampler,
    what: cl_sampler_info,
    size: usize,
    value: *mut c_void,
    needed: *mut usize,
) -> cl_int {
    status(|| {
        let sampler = Ref::<Sampler>::of(handle)?;
        // SAFETY: OpenCL's promises about both pointers.
        let answer = unsafe { Answer::to(size, value, needed) };
        match what {
            CL_SAMPLER_REFERENCE_COUNT => answer.value(sampler.users()),
            CL_SAMPLER_CONTEXT => answer.value(sampler.context.handle()),
            _ => answer.pass(|size, value, needed| {
                let (table, native) = (sampler.context.domains[0].table, sampler.natives[0]);
                driver!(table, clGetSamplerInfo(native, what, size, value, needed))
            }),
        }
    })
}
