//! Mapping images: the driver of the image's place maps it.

use std::sync::Arc;

use libc::c_void;
use opencl_sys::*;

use crate::boundary::object;
use crate::command::{Action, Command};
use crate::handle::Ref;
use crate::image::image_of;
use crate::image_transfer::whole;
use crate::lane::{Lane, Waits};
use crate::lock::{Mutex, SHOWN};
use crate::mem::{Mapped, Mem};
use crate::queue::Queue;
use crate::rect::three;
use crate::status::{Fallible, check};
use crate::submit::submit;

/// What a driver answers: an address and both pitches.
#[derive(Clone, Copy, Default)]
struct Shown {
    address: usize,
    row: usize,
    slice: usize,
}

struct MapImage {
    image: Ref<Mem>,
    flags: cl_map_flags,
    origin: [usize; 3],
    region: [usize; 3],
    wants_slice: bool,
    shown: Arc<Mutex<Shown, SHOWN>>,
}

impl Action for MapImage {
    fn enqueue(&self, lane: &Lane, waits: &Waits, event: *mut cl_event) -> Fallible<()> {
        let image = self.image.at(lane.place)?;
        let Some(map) = lane.table.clEnqueueMapImage else {
            return Err(CL_INVALID_OPERATION);
        };
        let (mut code, mut shown) = (CL_SUCCESS, Shown::default());
        let slice = match self.wants_slice {
            true => &raw mut shown.slice,
            false => std::ptr::null_mut(),
        };
        // SAFETY: the handles are alive and of this driver, and the pitches are written
        // during the call.
        let address = unsafe {
            map(
                lane.queue,
                image,
                CL_FALSE,
                self.flags,
                self.origin.as_ptr(),
                self.region.as_ptr(),
                &raw mut shown.row,
                slice,
                waits.count(),
                waits.events(),
                event,
                &mut code,
            )
        };
        check(code)?;
        shown.address = address as usize;
        *self.shown.lock() = shown;
        Ok(())
    }

    fn answers(&self) -> bool {
        true
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
        let queue = Ref::<Queue>::of(queue)?;
        let image = image_of(&queue.context, handle)?;
        // SAFETY: OpenCL's promises about the lists.
        let (origin, region) = unsafe { (three(origin)?, three(region)?) };
        if row.is_null() {
            return Err(CL_INVALID_VALUE);
        }
        let shown = Arc::new(Mutex::new(Shown::default()));
        let uses = vec![whole(&image, false)];
        let action = MapImage {
            image: image.clone(),
            flags,
            origin,
            region,
            wants_slice: !slice.is_null(),
            shown: Arc::clone(&shown),
        };
        let kind = CL_COMMAND_MAP_IMAGE;
        // SAFETY: OpenCL's promises about the events.
        unsafe {
            let command = Command::new(&queue, kind, (count, events), uses, action)?;
            submit(&queue, command, event, blocking != CL_FALSE)?;
        }
        let shown = *shown.lock();
        // SAFETY: OpenCL's promises about the pitches.
        unsafe {
            *row = shown.row;
            if !slice.is_null() {
                *slice = shown.slice;
            }
        }
        let writes = flags & (CL_MAP_WRITE | CL_MAP_WRITE_INVALIDATE_REGION) != 0;
        image.maps.lock().push(Mapped {
            address: shown.address,
            range: 0..image.size,
            writes,
            place: image.only_place,
        });
        Ok(shown.address as *mut c_void)
    };
    // SAFETY: OpenCL's promise about the code.
    unsafe { object(code, make) }
}
