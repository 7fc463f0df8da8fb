//! The functions of MultiCL's interface.

use std::sync::atomic::Ordering;

use opencl_sys::*;

use super::{AUTO_DYNAMIC, AUTO_STATIC, MAPPED, OFF, QUEUE_PROPERTIES, is_consistent};
use crate::boundary::status;
use crate::handle::Ref;
use crate::kernel::Kernel;
use crate::program::calls::chosen;
use crate::queue::Queue;
use crate::schedule;
use crate::shape::ShapeOf;

/// `clSetCommandQueueSchedProperty`.
pub unsafe extern "C" fn set_command_queue_sched_property(
    handle: cl_command_queue,
    properties: cl_command_queue_properties,
) -> cl_int {
    status(|| {
        let queue = Ref::<Queue>::of(handle)?;
        let known = properties & !QUEUE_PROPERTIES == 0 && is_consistent(properties);
        if !known || properties & (OFF | AUTO_STATIC | AUTO_DYNAMIC) == 0 {
            return Err(CL_INVALID_VALUE);
        }
        let before = queue.scheduling.load(Ordering::Relaxed);
        if properties & OFF == 0 && before & MAPPED == 0 && queue.places.len() < 2 {
            // The queue was made for one device.
            return Err(CL_INVALID_OPERATION);
        }
        if properties & OFF != 0 {
            schedule::settle(&queue);
        }
        // A queue keeps its trigger and its hints unless it gets others.
        let kept = before & !(OFF | AUTO_STATIC | AUTO_DYNAMIC);
        let now = match properties & !(OFF | AUTO_STATIC | AUTO_DYNAMIC) {
            0 => kept | properties,
            _ => properties,
        };
        queue.scheduling.store(now, Ordering::Relaxed);
        schedule::changed(&queue, before);
        Ok(())
    })
}

/// `clSetKernelWorkGroupInfo`.
pub unsafe extern "C" fn set_kernel_work_group_info(
    handle: cl_kernel,
    count: cl_uint,
    devices: *const cl_device_id,
    dimensions: cl_uint,
    offset: *const usize,
    global: *const usize,
    local: *const usize,
) -> cl_int {
    status(|| {
        let kernel = Ref::<Kernel>::of(handle)?;
        let context = &kernel.program.context;
        if count == 0 {
            return Err(CL_INVALID_VALUE);
        }
        // SAFETY: the header's promises about the lists, which are OpenCL's.
        let (devices, shape) = unsafe {
            (
                chosen(&context.devices, count, devices)?,
                ShapeOf::new(dimensions, offset, global, local)?,
            )
        };
        // A launch that did nothing would not say why.
        if shape.global.iter().flatten().any(|items| *items == 0) {
            return Err(CL_INVALID_GLOBAL_WORK_SIZE);
        }
        if shape.local.iter().flatten().any(|items| *items == 0) {
            return Err(CL_INVALID_WORK_GROUP_SIZE);
        }
        // Launches only name the kernel, and would fail where nobody knows why.
        let places = || devices.iter().flat_map(|device| context.places_of(device));
        for place in places().filter(|place| kernel.is_built_for(*place)) {
            kernel.check_shape(&shape.one(), place)?;
        }
        for place in places() {
            kernel.set_shape(place, shape.clone());
        }
        Ok(())
    })
}
