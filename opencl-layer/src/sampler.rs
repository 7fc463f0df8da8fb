//! Samplers. One of ours has a sampler of each driver.

use libc::c_void;
use opencl_sys::*;

use crate::answer::Answer;
use crate::boundary::{object, status};
use crate::context::Context;
use crate::handle::{Ref, kind};
use crate::status::{Fallible, driver, driver_object};

/// A sampler.
pub struct Sampler {
    pub context: Ref<Context>,
    /// By domain.
    pub natives: Vec<Option<cl_sampler>>,
    /// The domain that answers questions.
    main: usize,
}

// SAFETY: drivers' handles may be used by every thread.
unsafe impl Send for Sampler {}
// SAFETY: as above.
unsafe impl Sync for Sampler {}

kind!(Sampler, CL_INVALID_SAMPLER);

impl Drop for Sampler {
    fn drop(&mut self) {
        for (domain, native) in self.context.domains.iter().zip(&self.natives) {
            if let Some(native) = native {
                let _ = driver!(domain.table, clReleaseSampler(*native));
            }
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
    // SAFETY: OpenCL's promise about the code.
    unsafe { object(code, || create(context, normalized, addressing, filter)) }
}

/// Makes a sampler. A driver without images has none.
pub fn create(
    context: cl_context,
    normalized: cl_bool,
    addressing: cl_addressing_mode,
    filter: cl_filter_mode,
) -> Fallible<cl_sampler> {
    let context = Ref::<Context>::of(context)?;
    let create = |domain: &crate::domain::Domain| {
        driver_object!(
            domain.table,
            clCreateSampler(domain.context, normalized, addressing, filter)
        )
    };
    let made: Vec<Fallible<cl_sampler>> = context.domains.iter().map(create).collect();
    let main = context
        .image_place()
        .map_or(0, |place| context.places[place].domain);
    let result = made[main];
    let natives = made.into_iter().map(Result::ok).collect();
    let sampler = Ref::new(Sampler {
        natives,
        main,
        context,
    });
    result.map(|_| sampler.give())
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
                let table = sampler.context.domains[sampler.main].table;
                let native = sampler.natives[sampler.main].unwrap_or(std::ptr::null_mut());
                driver!(table, clGetSamplerInfo(native, what, size, value, needed))
            }),
        }
    })
}
