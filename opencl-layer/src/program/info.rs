//! Questions about programs.

use std::ptr;

use libc::c_void;
use opencl_sys::*;

use super::{Origin, Program, words};
use crate::answer::Answer;
use crate::boundary::status;
use crate::device::Device;
use crate::handle::Ref;
use crate::status::{Fallible, check, driver};

/// Where a device's program is: its first member's domain, and the member.
fn first_member(program: &Program, device: &Device) -> Fallible<(usize, cl_device_id)> {
    let id = device.members[0].id;
    let place = program
        .context
        .places
        .iter()
        .find(|place| place.real.id == id);
    Ok((place.ok_or(CL_INVALID_DEVICE)?.domain, id))
}

/// The binary of a device's first member, as its driver gives it.
fn binary(program: &Program, device: &Device) -> Fallible<Vec<u8>> {
    let (domain, id) = first_member(program, device)?;
    let table = program.context.domains[domain].table;
    let native = program.native(domain)?;
    let words = |what| words(&program.context, domain, native, what);
    let (sizes, mut devices) = (words(CL_PROGRAM_BINARY_SIZES)?, words(CL_PROGRAM_DEVICES)?);
    if sizes.len() < devices.len() {
        // PoCL has binaries of its last build, and says that its program is for all devices.
        let last = program.state().first(domain)?.last.clone();
        devices = last.into_iter().map(|id| id as usize).collect();
    }
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
pub unsafe extern "C" fn get_program_info(
    handle: cl_program,
    what: cl_program_info,
    size: usize,
    value: *mut c_void,
    needed: *mut usize,
) -> cl_int {
    status(|| {
        let program = Ref::<Program>::of(handle)?;
        // SAFETY: OpenCL's promises about both pointers.
        let answer = unsafe { Answer::to(size, value, needed) };
        match what {
            CL_PROGRAM_REFERENCE_COUNT => answer.value(program.users()),
            CL_PROGRAM_CONTEXT => answer.value(program.context.handle()),
            CL_PROGRAM_NUM_DEVICES => answer.value(program.devices.len() as cl_uint),
            CL_PROGRAM_DEVICES => {
                let handles: Vec<_> = program.devices.iter().map(Ref::handle).collect();
                answer.list(&handles)
            }
            CL_PROGRAM_SOURCE => match &program.origin {
                Origin::Source(text) => answer.bytes(text.as_bytes_with_nul()),
                Origin::Opaque => answer.bytes(&[0]),
            },
            CL_PROGRAM_IL => answer.bytes(&[]),
            CL_PROGRAM_SCOPE_GLOBAL_CTORS_PRESENT | CL_PROGRAM_SCOPE_GLOBAL_DTORS_PRESENT => {
                answer.value(CL_FALSE)
            }
            CL_PROGRAM_BINARY_SIZES => {
                let size = |device: &Ref<Device>| binary(&program, device).map_or(0, |b| b.len());
                let sizes: Vec<usize> = program.devices.iter().map(size).collect();
                answer.list(&sizes)
            }
            CL_PROGRAM_BINARIES => {
                if !value.is_null() && size < size_of::<*mut u8>() * program.devices.len() {
                    return Err(CL_INVALID_VALUE);
                }
                for (index, device) in program.devices.iter().enumerate() {
                    if value.is_null() {
                        break;
                    }
                    // SAFETY: the list has an address for each device.
                    let to = unsafe { *value.cast::<*mut u8>().add(index) };
                    let binary = binary(&program, device).unwrap_or_default();
                    if !to.is_null() {
                        // SAFETY: the program asked for the binary's size before.
                        unsafe { ptr::copy_nonoverlapping(binary.as_ptr(), to, binary.len()) };
                    }
                }
                if !needed.is_null() {
                    // SAFETY: OpenCL's promise.
                    unsafe { *needed = size_of::<*mut u8>() * program.devices.len() };
                }
                Ok(())
            }
            CL_PROGRAM_NUM_KERNELS | CL_PROGRAM_KERNEL_NAMES => {
                let native = (0..program.context.places.len())
                    .find(|place| program.is_built_for(*place))
                    .map(|place| program.context.places[place].domain)
                    .ok_or(CL_INVALID_PROGRAM_EXECUTABLE)?;
                let table = program.context.domains[native].table;
                let native = program.native(native)?;
                answer.pass(|size, value, needed| {
                    driver!(table, clGetProgramInfo(native, what, size, value, needed))
                })
            }
            _ => Err(CL_INVALID_VALUE),
        }
    })
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
        // SAFETY: OpenCL's promises about both pointers.
        let answer = unsafe { Answer::to(size, value, needed) };
        answer.pass(|size, value, needed| {
            driver!(
                table,
                clGetProgramBuildInfo(native, id, what, size, value, needed)
            )
        })
    })
}
