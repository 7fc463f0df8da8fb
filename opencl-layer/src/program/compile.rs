//! Compiling and linking programs in two steps.

use std::ffi::CStr;
use std::ptr;

use libc::{c_char, c_void};
use opencl_sys::*;

use super::calls::{chosen, notified, options_of};
use super::{Built, Job, Origin, Program, ids};
use crate::boundary::{object, status};
use crate::context::Context;
use crate::device::Device;
use crate::domain::Own;
use crate::handle::{self, Ref};
use crate::status::{Fallible, check, driver, driver_object};

impl Program {
    fn compile(
        &self,
        devices: &[Ref<Device>],
        options: &CStr,
        headers: &[Ref<Self>],
        names: &[*const c_char],
    ) -> Fallible<()> {
        // Before the own lock: programs may include each other, and themselves.
        let of = |domain: usize| -> Fallible<Vec<cl_program>> {
            headers.iter().map(|header| header.native(domain)).collect()
        };
        let by_domain: Vec<Fallible<_>> = (0..self.context.domains.len()).map(of).collect();
        let mut state = self.state();
        if state.kernels > 0 || !matches!(self.origin, Origin::Source(_)) {
            return Err(CL_INVALID_OPERATION);
        }
        // Included files are programs, or what the driver finds: their text is not known.
        state.begin(options);
        let inputs = Inputs {
            by_domain: by_domain.into_iter().collect::<Fallible<_>>()?,
            names: names.to_vec(),
        };
        let work = |job: &Job| {
            let (count, ids, text) = (job.ids.len() as cl_uint, job.ids.as_ptr(), options.as_ptr());
            let (headers, mut names) = inputs.of(job.native.key.domain);
            let number = headers.len() as cl_uint;
            let (headers, names) = match number {
                0 => (ptr::null(), ptr::null_mut()),
                _ => (headers.as_ptr(), names.as_mut_ptr()),
            };
            let table = self.context.domains[job.native.key.domain].table;
            let (program, none) = (job.native.program.handle(), ptr::null_mut());
            check(driver!(
                table,
                clCompileProgram(
                    program, count, ids, text, number, headers, names, None, none
                )
            ))
        };
        let results = self.run(&state.natives, devices, work);
        for (index, ids, _) in &results {
            let native = &mut state.natives[*index];
            // What is compiled is no executable yet.
            native.built.retain(|id| !ids.contains(id));
            native.last.clone_from(ids);
        }
        self.verdict(&state.natives, devices, &results)
    }
}

/// Headers by domain, and their names.
struct Inputs {
    by_domain: Vec<Vec<cl_program>>,
    names: Vec<*const c_char>,
}

// SAFETY: drivers' handles may be used by every thread, and names are only read.
unsafe impl Sync for Inputs {}

impl Inputs {
    fn of(&self, domain: usize) -> (&[cl_program], Vec<*const c_char>) {
        (&self.by_domain[domain], self.names.clone())
    }
}

/// `clCompileProgram`.
pub unsafe extern "C" fn compile_program(
    handle: cl_program,
    count: cl_uint,
    devices: *const cl_device_id,
    options: *const c_char,
    number: cl_uint,
    headers: *const cl_program,
    names: *mut *const c_char,
    notify: Option<Built>,
    data: *mut c_void,
) -> cl_int {
    status(|| {
        let program = Ref::<Program>::of(handle)?;
        if notify.is_none() && !data.is_null() {
            return Err(CL_INVALID_VALUE);
        }
        if [headers.is_null(), names.is_null()] != [number == 0; 2] {
            return Err(CL_INVALID_VALUE);
        }
        // SAFETY: OpenCL's promises about the lists and the options.
        let (devices, headers, options) = unsafe {
            (
                chosen(&program.devices, count, devices)?,
                handle::list::<Program>(number, headers)?,
                options_of(options),
            )
        };
        let names = match number {
            0 => &[],
            // SAFETY: OpenCL's promise: a name for each header.
            _ => unsafe { std::slice::from_raw_parts(names, number as usize) },
        };
        let result = program.compile(&devices, options, &headers, names);
        notified(&program, notify, data, result)
    })
}

/// Links programs that are compiled, with every driver that has all of them.
fn link(
    context: &Ref<Context>,
    devices: Vec<Ref<Device>>,
    options: &CStr,
    inputs: &[Ref<Program>],
) -> Fallible<Ref<Program>> {
    let mut natives = Vec::new();
    let mut failures = vec![Ok(()); context.domains.len()];
    for (domain, inner) in context.domains.iter().enumerate() {
        let ids = ids(context, domain, &devices);
        if ids.is_empty() {
            continue;
        }
        let own = inputs
            .iter()
            .map(|input| input.native(domain))
            .collect::<Fallible<Vec<_>>>();
        let linked = own.and_then(|own| {
            let (count, number) = (ids.len() as cl_uint, own.len() as cl_uint);
            let (text, none) = (options.as_ptr(), ptr::null_mut());
            let (table, inner, ids, own) = (inner.table, inner.context, ids.as_ptr(), own.as_ptr());
            let program = driver_object!(
                table,
                clLinkProgram(inner, count, ids, text, number, own, None, none)
            )?;
            Ok(Own::new(program, table.clReleaseProgram))
        });
        match linked {
            Ok(native) => natives.push((domain, native, ids)),
            Err(code) => failures[domain] = Err(code),
        }
    }
    let made = |device: &Ref<Device>| {
        let mut linked = natives.iter();
        linked.any(|(domain, _, _)| {
            let mut places = context.places_of(device).into_iter();
            places.any(|place| context.places[place].domain == *domain)
        })
    };
    let all_made = devices.iter().all(made);
    let library = options
        .to_bytes()
        .split(|byte| *byte == b' ')
        .any(|word| word == b"-create-library");
    let program = Ref::new(Program::of_natives(
        context.clone(),
        devices,
        natives,
        !library,
    ));
    match all_made {
        true => Ok(program),
        false => Err(failures
            .into_iter()
            .find_map(Result::err)
            .unwrap_or(CL_LINK_PROGRAM_FAILURE)),
    }
}

/// `clLinkProgram`.
pub unsafe extern "C" fn link_program(
    context: cl_context,
    count: cl_uint,
    devices: *const cl_device_id,
    options: *const c_char,
    number: cl_uint,
    inputs: *const cl_program,
    notify: Option<Built>,
    data: *mut c_void,
    code: *mut cl_int,
) -> cl_program {
    let make = || {
        let context = Ref::<Context>::of(context)?;
        if number == 0 || inputs.is_null() || (notify.is_none() && !data.is_null()) {
            return Err(CL_INVALID_VALUE);
        }
        // SAFETY: OpenCL's promises about the lists and the options.
        let (devices, inputs, options) = unsafe {
            (
                chosen(&context.devices, count, devices)?,
                handle::list::<Program>(number, inputs)?,
                options_of(options),
            )
        };
        if inputs.iter().any(|input| input.context != context) {
            return Err(CL_INVALID_PROGRAM);
        }
        let program = link(&context, devices, options, &inputs)?;
        notified(&program, notify, data, Ok(()))?;
        Ok(program.give())
    };
    // SAFETY: OpenCL's promise about the code.
    unsafe { object(code, make) }
}

/// `clCreateProgramWithBuiltInKernels`: no device has any.
pub unsafe extern "C" fn create_program_with_built_in_kernels(
    context: cl_context,
    count: cl_uint,
    devices: *const cl_device_id,
    names: *const c_char,
    code: *mut cl_int,
) -> cl_program {
    let make = || {
        let context = Ref::<Context>::of(context)?;
        if count == 0 || devices.is_null() || names.is_null() {
            return Err(CL_INVALID_VALUE);
        }
        // SAFETY: OpenCL's promise about the list.
        unsafe { chosen(&context.devices, count, devices)? };
        Err(CL_INVALID_VALUE)
    };
    // SAFETY: OpenCL's promise about the code.
    unsafe { object(code, make) }
}
