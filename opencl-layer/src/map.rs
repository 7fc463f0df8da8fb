//! Mapping memory objects.
//!
//! A driver maps images, and buffers in a context of one device. In others a map of a buffer
//! shows the host's copy: what it lacks is copied there first, and after a map for writing the
//! host is where the bytes are valid, until a command needs them elsewhere.

use std::ops::Range;
use std::ptr;
use std::sync::Arc;

use libc::c_void;
use opencl_sys::*;

use crate::boundary::object;
use crate::call::{Call, enqueue as give};
use crate::command::{Use, Work};
use crate::handle::Ref;
use crate::image::Part;
use crate::lock::{Mutex, SHOWN};
use crate::mem::{Mapped, Mem};
use crate::queue::Queue;
use crate::status::{Fallible, driver_object};
use crate::submit::{Asked, enqueue, take};
use crate::transfer::part_of;

/// What a driver answers: an address and both pitches.
#[derive(Clone, Copy, Default)]
struct Shown {
    address: usize,
    row: usize,
    slice: usize,
}

/// Has a driver map something, and returns its answer.
///
/// # Safety
/// As OpenCL promises about the events.
unsafe fn by_driver(
    queue: &Ref<Queue>,
    asked: Asked,
    used: Use,
    map: impl Fn(&Call, cl_mem, &mut Shown) -> Fallible<*mut c_void> + Send + 'static,
) -> Fallible<Shown> {
    let shown = Arc::new(Mutex::<_, SHOWN>::new(Shown::default()));
    let answer = Arc::clone(&shown);
    let work = Work::new([used], move |call, mem| {
        let mut shown = Shown::default();
        shown.address = map(call, mem(0)?, &mut shown)? as usize;
        *answer.lock() = shown;
        Ok(())
    })?;
    // SAFETY: promised by the caller.
    unsafe { take(queue, asked, work)? };
    let shown = *shown.lock();
    Ok(shown)
}

/// Whether a map of these flags is for writing.
fn writes(flags: cl_map_flags) -> bool {
    flags & (CL_MAP_WRITE | CL_MAP_WRITE_INVALIDATE_REGION) != 0
}

/// `clEnqueueMapBuffer`.
pub unsafe extern "C" fn enqueue_map_buffer(
    queue: cl_command_queue,
    handle: cl_mem,
    blocking: cl_bool,
    flags: cl_map_flags,
    offset: usize,
    size: usize,
    count: cl_uint,
    events: *const cl_event,
    event: *mut cl_event,
    code: *mut cl_int,
) -> *mut c_void {
    let make = || {
        let asked = Asked::new(CL_COMMAND_MAP_BUFFER, count, events, event).blocking(blocking);
        let queue = Ref::<Queue>::of(queue)?;
        let (mem, range) = part_of(&queue, handle, offset, size)?;
        check_map(&mem, flags)?;
        let reads = flags & CL_MAP_WRITE_INVALIDATE_REGION == 0;
        // From the map on, what the host has counts, even if it is not what a place has
        // written: nothing is to be copied over what the program writes there.
        let mut used = Use::new(&mem, range.clone(), (reads, !reads));
        let (address, place) = if queue.context.is_single() {
            let map = move |call: &Call, mem: cl_mem, _: &mut Shown| {
                let ((count, list), wait) = (call.list(), call.blocking);
                let (queue, event) = (call.queue, call.event);
                driver_object!(
                    call.table,
                    clEnqueueMapBuffer(queue, mem, wait, flags, offset, size, count, list, event)
                )
            };
            // SAFETY: OpenCL's promises about the events.
            let shown = unsafe { by_driver(&queue, asked, used, map)? };
            (shown.address, Some(0))
        } else {
            let address = mem.host_address(&range)? as usize;
            used.by_host = true;
            // SAFETY: as above.
            unsafe { take(&queue, asked, Work::nothing([used])?)? };
            (address, None)
        };
        Ok(mapped(&mem, address, range, (writes(flags), place)))
    };
    // SAFETY: OpenCL's promise about the code.
    unsafe { object(code, make) }
}

/// Notes a mapped range, and returns its address.
fn mapped(
    mem: &Mem,
    address: usize,
    range: Range<usize>,
    (writes, place): (bool, Option<usize>),
) -> *mut c_void {
    mem.maps.lock().push(Mapped {
        address,
        range,
        writes,
        place,
    });
    address as *mut c_void
}

/// Checks the flags of a buffer's map.
fn check_map(mem: &Mem, flags: cl_map_flags) -> Fallible<()> {
    let known = CL_MAP_READ | CL_MAP_WRITE | CL_MAP_WRITE_INVALIDATE_REGION;
    let alone =
        flags & CL_MAP_WRITE_INVALIDATE_REGION != 0 && flags & (CL_MAP_READ | CL_MAP_WRITE) != 0;
    if flags & !known != 0 || alone {
        return Err(CL_INVALID_VALUE);
    }
    if flags & CL_MAP_READ != 0 {
        mem.check_host_access(CL_MEM_HOST_WRITE_ONLY)?;
    }
    match writes(flags) {
        true => mem.check_host_access(CL_MEM_HOST_READ_ONLY),
        false => Ok(()),
    }
}

/// `clEnqueueMapImage`.
pub unsafe extern "C" fn enqueue_map_image(
    queue: cl_command_queue,
    handle: cl_mem,
    blocking: cl_bool,
    flags: cl_map_flags,
    origin: *const usize,
    region: *const usize,
    row: *mut usize,
    slice: *mut usize,
    count: cl_uint,
    events: *const cl_event,
    event: *mut cl_event,
    code: *mut cl_int,
) -> *mut c_void {
    let make = || {
        let asked = Asked::new(CL_COMMAND_MAP_IMAGE, count, events, event).blocking(blocking);
        let queue = Ref::<Queue>::of(queue)?;
        // SAFETY: OpenCL's promises about the lists.
        let part = unsafe { Part::new(&queue, handle, origin, region)? };
        if row.is_null() {
            return Err(CL_INVALID_VALUE);
        }
        let (image, wants_slice) = (part.image.clone(), !slice.is_null());
        let map = move |call: &Call, mem: cl_mem, shown: &mut Shown| {
            let ((count, list), wait) = (call.list(), call.blocking);
            let (at, region, row) = (
                part.origin.as_ptr(),
                part.region.as_ptr(),
                &raw mut shown.row,
            );
            let slice = match wants_slice {
                true => &raw mut shown.slice,
                false => ptr::null_mut(),
            };
            let (queue, event) = (call.queue, call.event);
            driver_object!(
                call.table,
                clEnqueueMapImage(
                    queue, mem, wait, flags, at, region, row, slice, count, list, event
                )
            )
        };
        let used = Use::whole(&image, false);
        // SAFETY: OpenCL's promises about the events.
        let shown = unsafe { by_driver(&queue, asked, used, map)? };
        // SAFETY: OpenCL's promises about the pitches.
        unsafe {
            *row = shown.row;
            if wants_slice {
                *slice = shown.slice;
            }
        }
        let how = (writes(flags), image.only_place);
        Ok(mapped(&image, shown.address, 0..image.size, how))
    };
    // SAFETY: OpenCL's promise about the code.
    unsafe { object(code, make) }
}

/// `clEnqueueUnmapMemObject`.
pub unsafe extern "C" fn enqueue_unmap_mem_object(
    queue: cl_command_queue,
    handle: cl_mem,
    address: *mut c_void,
    count: cl_uint,
    events: *const cl_event,
    event: *mut cl_event,
) -> cl_int {
    let asked = Asked::new(CL_COMMAND_UNMAP_MEM_OBJECT, count, events, event);
    let work = |queue: &Ref<Queue>| {
        let mem = Mem::of(&queue.context, handle, |_| true)?;
        let mapped = {
            let mut maps = mem.maps.lock();
            let index = maps.iter().position(|map| map.address == address as usize);
            maps.swap_remove(index.ok_or(CL_INVALID_VALUE)?)
        };
        if mapped.place.is_none() {
            let used = Use::new(&mem, mapped.range, (false, mapped.writes));
            return Work::nothing([Use {
                by_host: true,
                ..used
            }]);
        }
        let uses = [Use::whole(&mem, mapped.writes)];
        Work::new(uses, move |call, mem| {
            let (mem, address) = (mem(0)?, mapped.address as *mut c_void);
            give!(call, clEnqueueUnmapMemObject(mem, address))
        })
    };
    // SAFETY: OpenCL's promises about the events.
    unsafe { enqueue(queue, asked, work) }
}
