//! The functions of contexts.

use libc::c_void;
use opencl_sys::*;

use super::Context;
use crate::answer::{Answer, Answers};
use crate::boundary::{object, status};
use crate::device::Device;
use crate::device_profile;
use crate::domain::Notify;
use crate::handle::pairs;
use crate::handle::{self, Ref};
use crate::platform;
use crate::process_end::Ended;
use crate::scheduling;
use crate::settings::{Mapping, settings};
use crate::status::Fallible;

/// Reads a list of properties that ends in 0, and checks its keys.
///
/// # Safety
/// `list` is null or ends in 0.
unsafe fn properties(list: *const cl_context_properties) -> Fallible<Vec<cl_context_properties>> {
    let mut all = Vec::new();
    // SAFETY: promised by the caller.
    for (key, value) in unsafe { pairs(list) } {
        let twice = all.chunks(2).any(|pair| pair[0] == key);
        match key {
            _ if twice => return Err(CL_INVALID_PROPERTY),
            CL_CONTEXT_PLATFORM if value == 0 => return Err(CL_INVALID_PLATFORM),
            CL_CONTEXT_PLATFORM => drop(platform::of(value as cl_platform_id)?),
            scheduling::CONTEXT_SCHEDULER if scheduling::is_scheduler(value) => {}
            CL_CONTEXT_INTEROP_USER_SYNC if value == 0 || value == 1 => {}
            _ => return Err(CL_INVALID_PROPERTY),
        }
        all.extend([key, value]);
    }
    all.extend((!list.is_null()).then_some(0));
    Ok(all)
}

/// `clCreateContext`.
pub unsafe extern "C" fn create_context(
    list: *const cl_context_properties,
    count: cl_uint,
    devices: *const cl_device_id,
    notify: Option<Notify>,
    data: *mut c_void,
    code: *mut cl_int,
) -> cl_context {
    let make = || {
        if count == 0 || devices.is_null() || (notify.is_none() && !data.is_null()) {
            return Err(CL_INVALID_VALUE);
        }
        // SAFETY: OpenCL's promises about both lists.
        let (properties, devices) = unsafe { (properties(list)?, handle::list(count, devices)?) };
        made(devices, properties, notify, data)
    };
    // SAFETY: OpenCL's promise about the code.
    unsafe { object(code, make) }
}

/// `clCreateContextFromType`.
pub unsafe extern "C" fn create_context_from_type(
    list: *const cl_context_properties,
    kind: cl_device_type,
    notify: Option<Notify>,
    data: *mut c_void,
    code: *mut cl_int,
) -> cl_context {
    let make = || {
        if notify.is_none() && !data.is_null() {
            return Err(CL_INVALID_VALUE);
        }
        // SAFETY: OpenCL's promise about the list.
        let properties = unsafe { properties(list)? };
        let devices = platform::of_type(platform::platform(), kind)?;
        if devices.is_empty() {
            return Err(CL_DEVICE_NOT_FOUND);
        }
        made(devices, properties, notify, data)
    };
    // SAFETY: OpenCL's promise about the code.
    unsafe { object(code, make) }
}

/// A context. Where queues may be mapped, the times of copies are measured when it is made, as
/// no enqueue may wait.
fn made(
    devices: Vec<Ref<Device>>,
    properties: Vec<cl_context_properties>,
    notify: Option<Notify>,
    data: *mut c_void,
) -> Fallible<cl_context> {
    let context = Context::new(devices, properties, notify, data)?;
    let maps = context.scheduler.unwrap_or(settings().mapping);
    if !context.is_single() && maps == Mapping::AutoFit {
        device_profile::costs(&context);
    }
    Ok(Ref::new(context).give())
}

/// `clGetContextInfo`.
impl Answers for Context {
    fn answer(context: &Ref<Self>, what: cl_uint, answer: Answer) -> Fallible<()> {
        match what {
            CL_CONTEXT_REFERENCE_COUNT => answer.value(context.users()),
            CL_CONTEXT_NUM_DEVICES => answer.value(context.devices.len() as cl_uint),
            CL_CONTEXT_DEVICES => answer.handles(&context.devices),
            CL_CONTEXT_PROPERTIES => answer.list(&context.properties),
            _ => Err(CL_INVALID_VALUE),
        }
    }
}

/// `clSetContextDestructorCallback`, which programs with newer headers may call.
pub unsafe extern "C" fn set_context_destructor_callback(
    handle: cl_context,
    function: Option<Ended>,
    data: *mut c_void,
) -> cl_int {
    status(|| {
        let context = Ref::<Context>::of(handle)?;
        context
            .ending
            .call(handle, function.ok_or(CL_INVALID_VALUE)?, data);
        Ok(())
    })
}
