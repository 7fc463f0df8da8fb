//! The functions of programs.

use std::collections::HashSet;
use std::ffi::{CStr, CString};
use std::ptr;

use libc::{c_char, c_uchar, c_void};
use opencl_sys::*;

use super::{Built, Origin, Program};
use crate::answer::{Answer, Answers, get_info};
use crate::boundary::{object, status};
use crate::context::Context;
use crate::device::Device;
use crate::domain::Own;
use crate::drivers::{self, RealDevice};
use crate::handle::{self, Ref};
use crate::kernel::Kernel;
use crate::process_end::CALLBACKS;
use crate::status::{Fallible, asking, check, driver, driver_object};

/// A text in several strings, as OpenCL passes it.
///
/// # Safety
/// `strings` has `count` strings; each ends in a null byte or is as long as `lengths` say.
pub unsafe fn joined(
    count: cl_uint,
    strings: *const *const c_char,
    lengths: *const usize,
) -> Fallible<CString> {
    if count == 0 || strings.is_null() {
        return Err(CL_INVALID_VALUE);
    }
    let mut text: Vec<u8> = Vec::new();
    for index in 0..count as usize {
        // SAFETY: promised by the caller.
        let string = unsafe { *strings.add(index) };
        if string.is_null() {
            return Err(CL_INVALID_VALUE);
        }
        // SAFETY: promised by the caller.
        let length = match lengths.is_null() {
            true => 0,
            false => unsafe { *lengths.add(index) },
        };
        // SAFETY: promised by the caller.
        text.extend(match length {
            0 => unsafe { CStr::from_ptr(string) }.to_bytes(),
            length => unsafe { std::slice::from_raw_parts(string.cast(), length) },
        });
    }
    // Some programs count the null byte.
    while text.last() == Some(&0) {
        text.pop();
    }
    CString::new(text).map_err(|_| CL_INVALID_VALUE)
}

/// The devices of a list, or all of a program's.
///
/// # Safety
/// `list` is null or valid for `count` reads.
pub unsafe fn chosen(
    all: &[Ref<Device>],
    count: cl_uint,
    list: *const cl_device_id,
) -> Fallible<Vec<Ref<Device>>> {
    if (count == 0) != list.is_null() {
        return Err(CL_INVALID_VALUE);
    }
    if count == 0 {
        return Ok(all.to_vec());
    }
    // SAFETY: promised by the caller.
    let devices = unsafe { handle::list::<Device>(count, list)? };
    match devices.iter().all(|device| all.contains(device)) {
        true => Ok(devices),
        false => Err(CL_INVALID_DEVICE),
    }
}

/// `clCreateProgramWithSource`.
pub unsafe extern "C" fn create_program_with_source(
    context: cl_context,
    count: cl_uint,
    strings: *mut *const c_char,
    lengths: *const usize,
    code: *mut cl_int,
) -> cl_program {
    let make = || {
        let context = Ref::<Context>::of(context)?;
        // SAFETY: OpenCL's promises about the strings.
        let text = unsafe { joined(count, strings, lengths)? };
        Ok(Ref::new(Program::of_source(context, text)?).give())
    };
    // SAFETY: OpenCL's promise about the code.
    unsafe { object(code, make) }
}

/// `clCreateProgramWithBinary`. A binary is the driver's of a device's first member.
pub unsafe extern "C" fn create_program_with_binary(
    context: cl_context,
    count: cl_uint,
    devices: *const cl_device_id,
    lengths: *const usize,
    binaries: *mut *const c_uchar,
    statuses: *mut cl_int,
    code: *mut cl_int,
) -> cl_program {
    let make = || {
        let context = Ref::<Context>::of(context)?;
        if count == 0 || lengths.is_null() || binaries.is_null() {
            return Err(CL_INVALID_VALUE);
        }
        // SAFETY: OpenCL's promise about the list.
        let devices = unsafe { chosen(&context.devices, count, devices)? };
        // A binary is for a device's first member, and for others of the same model.
        let members = devices.iter().enumerate().flat_map(|(index, device)| {
            let first = &device.members[0];
            let alike = |member: &&RealDevice| {
                member.driver.platform == first.driver.platform && member.model == first.model
            };
            device
                .members
                .iter()
                .filter(alike)
                .map(move |member| (index, member.id))
        });
        // Several devices that stand for the same ones have the same members.
        let mut known = HashSet::new();
        let members: Vec<(usize, cl_device_id)> =
            members.filter(|(_, id)| known.insert(*id)).collect();
        let tell = |index: usize, code: cl_int| {
            if !statuses.is_null() {
                // SAFETY: OpenCL's promise about the statuses.
                unsafe { *statuses.add(index) = code };
            }
        };
        let mut natives = Vec::new();
        for domain in 0..context.domains.len() {
            let own = |(_, id): &(_, cl_device_id)| context.domain_of(*id) == Some(domain);
            let chosen = members.iter().copied().filter(own);
            let (own, ids): (Vec<usize>, Vec<cl_device_id>) = chosen.unzip();
            if own.is_empty() {
                continue;
            }
            // SAFETY: OpenCL's promises about both lists.
            let empty =
                |i: &usize| unsafe { *lengths.add(*i) == 0 || (*binaries.add(*i)).is_null() };
            if own.iter().any(empty) {
                let empty = own.iter().filter(|i| empty(i));
                empty.for_each(|index| tell(*index, CL_INVALID_VALUE));
                return Err(CL_INVALID_VALUE);
            }
            // SAFETY: as above.
            let sizes: Vec<usize> = own.iter().map(|i| unsafe { *lengths.add(*i) }).collect();
            // SAFETY: as above.
            let mut data: Vec<_> = own.iter().map(|i| unsafe { *binaries.add(*i) }).collect();
            let mut notified = vec![CL_SUCCESS; own.len()];
            let inner = &context.domains[domain];
            let (table, inner, number) = (inner.table, inner.context, ids.len() as cl_uint);
            let (list, sizes) = (ids.as_ptr(), sizes.as_ptr());
            let (data, said) = (data.as_mut_ptr(), notified.as_mut_ptr());
            let made = driver_object!(
                table,
                clCreateProgramWithBinary(inner, number, list, sizes, data, said)
            );
            let told = own.iter().zip(notified);
            told.for_each(|(index, code)| tell(*index, code));
            let made = Own::new(made?, table.clReleaseProgram);
            natives.push((domain, made, ids));
        }
        Ok(Ref::new(Program::of_natives(context, devices, natives, false)).give())
    };
    // SAFETY: OpenCL's promise about the code.
    unsafe { object(code, make) }
}

/// The options that a program gives.
///
/// # Safety
/// `options` is null or ends in a null byte.
pub unsafe fn options_of<'a>(options: *const c_char) -> &'a CStr {
    match options.is_null() {
        true => c"",
        // SAFETY: promised by the caller.
        false => unsafe { CStr::from_ptr(options) },
    }
}

/// `clBuildProgram`.
pub unsafe extern "C" fn build_program(
    handle: cl_program,
    count: cl_uint,
    devices: *const cl_device_id,
    options: *const c_char,
    notify: Option<Built>,
    data: *mut c_void,
) -> cl_int {
    status(|| {
        let program = Ref::<Program>::of(handle)?;
        if notify.is_none() && !data.is_null() {
            return Err(CL_INVALID_VALUE);
        }
        // SAFETY: OpenCL's promises about the list and the options.
        let (devices, options) = unsafe {
            let devices = chosen(&program.devices, count, devices)?;
            (devices, options_of(options))
        };
        let result = program.build(&devices, options);
        notified(&program, notify, data, result)
    })
}

/// Tells a program that work on one of its programs has ended, if it wants that. The log
/// then says whether it ended well; arguments that are wrong are errors all the same.
pub fn notified(
    program: &Ref<Program>,
    notify: Option<Built>,
    data: *mut c_void,
    result: Fallible<()>,
) -> Fallible<()> {
    let Some(notify) = notify else {
        return result;
    };
    let failures = [
        CL_BUILD_PROGRAM_FAILURE,
        CL_COMPILE_PROGRAM_FAILURE,
        CL_LINK_PROGRAM_FAILURE,
    ];
    if let Err(code) = result
        && !failures.contains(&code)
    {
        return Err(code);
    }
    let (program, data) = (program.clone(), data as usize);
    // SAFETY: the program gave the function and its data for this call.
    CALLBACKS.run(move || unsafe { notify(program.handle(), data as *mut c_void) });
    Ok(())
}

/// `clUnloadPlatformCompiler`.
pub unsafe extern "C" fn unload_platform_compiler(_platform: cl_platform_id) -> cl_int {
    CL_SUCCESS
}

/// `clUnloadCompiler`.
pub unsafe extern "C" fn unload_compiler() -> cl_int {
    CL_SUCCESS
}

/// `clCreateKernelsInProgram`.
pub unsafe extern "C" fn create_kernels_in_program(
    handle: cl_program,
    entries: cl_uint,
    kernels: *mut cl_kernel,
    count: *mut cl_uint,
) -> cl_int {
    status(|| {
        let program = Ref::<Program>::of(handle)?;
        let names = drivers::text(|size, value, needed| {
            // SAFETY: the pointers are those of `text`.
            unsafe { get_info::<Program, ()>(handle, CL_PROGRAM_KERNEL_NAMES, size, value, needed) }
        });
        let names: Vec<&str> = names.split(';').filter(|name| !name.is_empty()).collect();
        if names.is_empty() {
            return Err(CL_INVALID_PROGRAM_EXECUTABLE);
        }
        let kernel = |name: &&str| {
            let name = CString::new(*name).map_err(|_| CL_INVALID_KERNEL_NAME)?;
            Ok(Ref::new(Kernel::new(program.clone(), name)?))
        };
        let wanted = (entries, kernels, count);
        let make = || names.iter().map(kernel).collect();
        // SAFETY: OpenCL's promises about the list and the number.
        unsafe { handle::give_all(names.len(), wanted, make) }
    })
}

/// Where a device's program is: its first member's domain, and the member.
fn first_member(program: &Program, device: &Device) -> Fallible<(usize, cl_device_id)> {
    let id = device.members[0].id;
    let domain = program.context.domain_of(id);
    Ok((domain.ok_or(CL_INVALID_DEVICE)?, id))
}

/// The binary of a device's first member, as its driver gives it.
fn binary(program: &Program, device: &Device) -> Fallible<Vec<u8>> {
    let (domain, id) = first_member(program, device)?;
    let table = program.context.domains[domain].table;
    let native = program.native(domain)?;
    let (sizes, devices) = {
        let state = program.state();
        let first = state.first(domain)?;
        let words = |what| first.words(&program.context, what);
        let (sizes, devices) = (words(CL_PROGRAM_BINARY_SIZES)?, words(CL_PROGRAM_DEVICES)?);
        match sizes.len() < devices.len() {
            // PoCL has binaries of its last build, and says that its program is for all devices.
            true => (sizes, first.last.iter().map(|id| *id as usize).collect()),
            false => (sizes, devices),
        }
    };
    let mut all: Vec<Vec<u8>> = sizes.iter().map(|size| vec![0; *size]).collect();
    let mut addresses: Vec<*mut u8> = all.iter_mut().map(Vec::as_mut_ptr).collect();
    let (size, value) = (size_of_val(&addresses[..]), addresses.as_mut_ptr().cast());
    check(driver!(
        table,
        clGetProgramInfo(native, CL_PROGRAM_BINARIES, size, value, ptr::null_mut())
    ))?;
    let index = devices.iter().position(|device| *device == id as usize);
    let index = index.filter(|index| *index < all.len());
    Ok(all.swap_remove(index.ok_or(CL_INVALID_DEVICE)?))
}

/// `clGetProgramInfo`.
impl Answers for Program {
    fn answer(program: &Ref<Self>, what: cl_uint, answer: Answer) -> Fallible<()> {
        match what {
            CL_PROGRAM_REFERENCE_COUNT => answer.value(program.users()),
            CL_PROGRAM_CONTEXT => answer.value(program.context.handle()),
            CL_PROGRAM_NUM_DEVICES => answer.value(program.devices.len() as cl_uint),
            CL_PROGRAM_DEVICES => answer.handles(&program.devices),
            CL_PROGRAM_SOURCE => match &program.origin {
                Origin::Source(text) => answer.bytes(text.as_bytes_with_nul()),
                Origin::Opaque => answer.bytes(&[0]),
            },
            CL_PROGRAM_IL => answer.bytes(&[]),
            CL_PROGRAM_SCOPE_GLOBAL_CTORS_PRESENT | CL_PROGRAM_SCOPE_GLOBAL_DTORS_PRESENT => {
                answer.value(CL_FALSE)
            }
            CL_PROGRAM_BINARY_SIZES => {
                let size = |device: &Ref<Device>| binary(program, device).map_or(0, |b| b.len());
                let sizes: Vec<usize> = program.devices.iter().map(size).collect();
                answer.list(&sizes)
            }
            CL_PROGRAM_BINARIES => answer.into_lists(program.devices.iter().map(|device| {
                // What has no binary fills nothing.
                binary(program, device).unwrap_or_default()
            })),
            CL_PROGRAM_NUM_KERNELS | CL_PROGRAM_KERNEL_NAMES => {
                let native = (0..program.context.places.len())
                    .find(|place| program.is_built_for(*place))
                    .map(|place| program.context.places[place].domain)
                    .ok_or(CL_INVALID_PROGRAM_EXECUTABLE)?;
                let table = program.context.domains[native].table;
                let native = program.native(native)?;
                answer.pass(asking!(table, clGetProgramInfo(native, what)))
            }
            _ => Err(CL_INVALID_VALUE),
        }
    }
}

/// `clGetProgramBuildInfo`.
pub unsafe extern "C" fn get_program_build_info(
    handle: cl_program,
    device: cl_device_id,
    what: cl_program_build_info,
    size: usize,
    value: *mut c_void,
    needed: *mut usize,
) -> cl_int {
    status(|| {
        let program = Ref::<Program>::of(handle)?;
        let device = Ref::<Device>::of(device)?;
        if !program.devices.contains(&device) {
            return Err(CL_INVALID_DEVICE);
        }
        let (domain, id) = first_member(&program, &device)?;
        let native = program.native(domain)?;
        let table = program.context.domains[domain].table;
        check(driver!(
            table,
            clGetProgramBuildInfo(native, id, what, size, value, needed)
        ))
    })
}
