//! Samplers. One of ours has a sampler of each driver.

use std::ptr;

use opencl_sys::*;

use crate::answer::{Answer, Answers};
use crate::boundary::object;
use crate::context::Context;
use crate::domain::{Domain, Own};
use crate::handle::{Ref, kind};
use crate::status::{Fallible, asking, driver_object};

/// A sampler.
pub struct Sampler {
    /// By domain.
    pub natives: Vec<Option<Own>>,
    pub context: Ref<Context>,
    /// The domain that answers questions.
    main: usize,
}

kind!(Sampler, CL_INVALID_SAMPLER);

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
    let create = |domain: &Domain| {
        let (table, inner) = (domain.table, domain.context);
        let made = driver_object!(
            table,
            clCreateSampler(inner, normalized, addressing, filter)
        )?;
        Ok(Own::new(made, table.clReleaseSampler))
    };
    let made: Vec<Fallible<Own>> = context.domains.iter().map(create).collect();
    let main = context
        .image_place()
        .map_or(0, |place| context.places[place].domain);
    let failed = made[main].as_ref().err().copied();
    let natives = made.into_iter().map(Result::ok).collect();
    let sampler = Ref::new(Sampler {
        natives,
        main,
        context,
    });
    failed.map_or_else(|| Ok(sampler.give()), Err)
}

/// `clGetSamplerInfo`.
impl Answers for Sampler {
    fn answer(sampler: &Ref<Self>, what: cl_uint, answer: Answer) -> Fallible<()> {
        match what {
            CL_SAMPLER_REFERENCE_COUNT => answer.value(sampler.users()),
            CL_SAMPLER_CONTEXT => answer.value(sampler.context.handle()),
            _ => {
                let table = sampler.context.domains[sampler.main].table;
                let native = sampler.natives[sampler.main].as_ref();
                let native = native.map_or(ptr::null_mut(), Own::handle);
                answer.pass(asking!(table, clGetSamplerInfo(native, what)))
            }
        }
    }
}
