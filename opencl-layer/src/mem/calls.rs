//! The functions of memory objects.

use libc::c_void;
use opencl_sys::*;

use super::{HOST_ACCESS, HOST_POINTER, HostView, Mem, are_consistent, check_flags, with_access};
use crate::answer::{Answer, Answers};
use crate::boundary::{object, status};
use crate::context::Context;
use crate::device::Device;
use crate::handle::Ref;
use crate::process_end::{Ended, Ending};
use crate::status::Fallible;

/// `clCreateBuffer`.
pub unsafe extern "C" fn create_buffer(
    context: cl_context,
    flags: cl_mem_flags,
    size: usize,
    host: *mut c_void,
    code: *mut cl_int,
) -> cl_mem {
    let make = || {
        let context = Ref::<Context>::of(context)?;
        check_flags(flags, host)?;
        if size == 0 {
            return Err(CL_INVALID_BUFFER_SIZE);
        }
        let most = |device: &Ref<Device>| device.least::<cl_ulong>(CL_DEVICE_MAX_MEM_ALLOC_SIZE);
        if context
            .devices
            .iter()
            .all(|device| most(device).is_ok_and(|most| size as u64 > most))
        {
            return Err(CL_INVALID_BUFFER_SIZE);
        }
        let flags = with_access(flags);
        // SAFETY: OpenCL's promise about the host pointer.
        let mut mem = unsafe { Mem::buffer(context, flags, size, host)? };
        if mem.context.shows_host() && flags & CL_MEM_USE_HOST_PTR != 0 {
            mem.view = Some(HostView::default());
        }
        let mem = Ref::new(mem);
        if mem.view.is_some() {
            mem.context.viewed.add(&mem);
        }
        Ok(mem.give())
    };
    // SAFETY: OpenCL's promise about the code.
    unsafe { object(code, make) }
}

/// `clCreateSubBuffer`.
pub unsafe extern "C" fn create_sub_buffer(
    handle: cl_mem,
    flags: cl_mem_flags,
    what: cl_buffer_create_type,
    info: *const c_void,
    code: *mut cl_int,
) -> cl_mem {
    let make = || {
        let parent = Ref::<Mem>::of(handle)?;
        if parent.parent.is_some() || parent.kind != CL_MEM_OBJECT_BUFFER {
            return Err(CL_INVALID_MEM_OBJECT);
        }
        if what != CL_BUFFER_CREATE_TYPE_REGION || info.is_null() || flags & HOST_POINTER != 0 {
            return Err(CL_INVALID_VALUE);
        }
        // SAFETY: OpenCL's promise about the region.
        let region = unsafe { &*info.cast::<cl_buffer_region>() };
        if region.size == 0 {
            return Err(CL_INVALID_BUFFER_SIZE);
        }
        let end = region.origin.checked_add(region.size);
        if end.is_none_or(|end| end > parent.size) {
            return Err(CL_INVALID_VALUE);
        }
        let wider = [
            (CL_MEM_READ_ONLY, CL_MEM_READ_WRITE | CL_MEM_WRITE_ONLY),
            (CL_MEM_WRITE_ONLY, CL_MEM_READ_WRITE | CL_MEM_READ_ONLY),
            (CL_MEM_HOST_READ_ONLY, CL_MEM_HOST_WRITE_ONLY),
            (CL_MEM_HOST_WRITE_ONLY, CL_MEM_HOST_READ_ONLY),
            (CL_MEM_HOST_NO_ACCESS, HOST_ACCESS),
        ];
        let is_wider = |(has, asks): &(cl_mem_flags, cl_mem_flags)| {
            parent.flags & has != 0 && flags & asks & !has != 0
        };
        if !are_consistent(flags, 0) || wider.iter().any(is_wider) {
            return Err(CL_INVALID_VALUE);
        }
        let aligned = |device: &Ref<Device>| {
            let bits = device
                .most::<cl_uint>(CL_DEVICE_MEM_BASE_ADDR_ALIGN)
                .unwrap_or(8);
            region.origin.is_multiple_of((bits as usize / 8).max(1))
        };
        if !parent.context.devices.iter().any(aligned) {
            return Err(CL_MISALIGNED_SUB_BUFFER_OFFSET);
        }
        let inherited = parent.inherited(flags) | parent.flags & HOST_POINTER;
        let part = Ref::new(Mem::part(&parent, inherited, region.origin, region.size));
        if part.context.is_single() {
            // Its driver says now what it thinks of the origin.
            part.at(0)?;
        }
        Ok(part.give())
    };
    // SAFETY: OpenCL's promise about the code.
    unsafe { object(code, make) }
}

/// `clSetMemObjectDestructorCallback`.
pub unsafe extern "C" fn set_mem_object_destructor_callback(
    handle: cl_mem,
    function: Option<Ended>,
    data: *mut c_void,
) -> cl_int {
    status(|| {
        let mem = Ref::<Mem>::of(handle)?;
        let function = function.ok_or(CL_INVALID_VALUE)?;
        let copies = mem.copies();
        if !mem.ending.is_wanted() {
            for (place, native) in copies.mems.iter().enumerate() {
                if let Some(native) = native {
                    let table = mem.context.domain(place).table;
                    Ending::after(&mem.ending, table, native.handle())?;
                }
            }
        }
        mem.ending.call(handle, function, data);
        Ok(())
    })
}

/// `clGetMemObjectInfo`.
impl Answers for Mem {
    fn answer(mem: &Ref<Self>, what: cl_uint, answer: Answer) -> Fallible<()> {
        let parent = mem.parent.as_ref();
        match what {
            CL_MEM_TYPE => answer.value(mem.kind),
            CL_MEM_FLAGS => answer.value(mem.flags),
            CL_MEM_SIZE => answer.value(mem.size),
            CL_MEM_HOST_PTR => answer.value(mem.host),
            CL_MEM_MAP_COUNT => {
                let maps = mem.maps.lock();
                answer.value(maps.len() as cl_uint)
            }
            CL_MEM_REFERENCE_COUNT => answer.value(mem.users()),
            CL_MEM_USES_SVM_POINTER => answer.value(CL_FALSE),
            CL_MEM_PROPERTIES => answer.list::<cl_mem_properties>(&[]),
            CL_MEM_CONTEXT => answer.value(mem.context.handle()),
            CL_MEM_ASSOCIATED_MEMOBJECT => answer.handle(parent.map(|(parent, _)| parent)),
            CL_MEM_OFFSET => answer.value(parent.map_or(0_usize, |(_, origin)| *origin)),
            _ => Err(CL_INVALID_VALUE),
        }
    }
}
