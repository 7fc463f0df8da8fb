//! Questions about programs.

use std::ptr;

use libc::c_void;
use opencl_sys::*;

use super::{Origin, Program};
use crate::answer::{Answer, Answers};
use crate::boundary::status;
use crate::device::Device;
use crate::handle::Ref;
use crate::status::{Fallible, asking, check, driver};

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
