//! MultiCL's interface (section 4), for programs that know this platform:
//! `include/CL/cl_pdawl.h` has the same numbers.

use std::sync::atomic::Ordering;

use opencl_sys::*;

use crate::device::Device;
use crate::handle::{self, Ref};
use crate::kernel::Kernel;
use crate::queue::Queue;
use crate::schedule;
use crate::settings::Mapping;
use crate::shape::Shape;
use crate::status::status;

pub const CONTEXT_SCHEDULER: cl_context_properties = 0x5044A0;
const ROUND_ROBIN: cl_context_properties = 1;
const AUTO_FIT: cl_context_properties = 2;

pub const OFF: u64 = 1 << 32;
pub const AUTO_STATIC: u64 = 1 << 33;
pub const AUTO_DYNAMIC: u64 = 1 << 34;
pub const KERNEL_EPOCH: u64 = 1 << 35;
pub const EXPLICIT_REGION: u64 = 1 << 36;
pub const ITERATIVE: u64 = 1 << 37;
pub const COMPUTE_BOUND: u64 = 1 << 38;
pub const IO_BOUND: u64 = 1 << 39;
pub const MEMORY_BOUND: u64 = 1 << 40;

/// Properties of queues that are about scheduling.
pub const QUEUE_PROPERTIES: u64 = OFF
    | AUTO_STATIC
    | AUTO_DYNAMIC
    | KERNEL_EPOCH
    | EXPLICIT_REGION
    | ITERATIVE
    | COMPUTE_BOUND
    | IO_BOUND
    | MEMORY_BOUND;

/// Properties of queues that may leave their device.
pub const MAPPED: u64 = AUTO_STATIC | AUTO_DYNAMIC | KERNEL_EPOCH | EXPLICIT_REGION;

/// Whether a value of [`CONTEXT_SCHEDULER`] is known.
pub fn is_scheduler(value: cl_context_properties) -> bool {
    value == ROUND_ROBIN || value == AUTO_FIT
}

/// The scheduler in a context's properties.
pub fn context_scheduler(properties: &[cl_context_properties]) -> Option<Mapping> {
    let mut pairs = properties.chunks_exact(2);
    let pair = pairs.find(|pair| pair[0] == CONTEXT_SCHEDULER)?;
    match pair[1] {
        ROUND_ROBIN => Some(Mapping::RoundRobin),
        _ => Some(Mapping::AutoFit),
    }
}

/// Whether properties of a queue do not contradict one another.
pub fn is_consistent(properties: u64) -> bool {
    let one_of = |set: u64| (properties & set).count_ones() <= 1;
    one_of(OFF | AUTO_STATIC | AUTO_DYNAMIC)
        && one_of(KERNEL_EPOCH | EXPLICIT_REGION)
        && one_of(COMPUTE_BOUND | IO_BOUND | MEMORY_BOUND)
}

impl Queue {
    /// Whether a queue has one of these properties. A trigger alone means that the queue
    /// is mapped dynamically; a queue with an explicit region is not before it begins.
    pub fn is_scheduled(&self, properties: u64) -> bool {
        let mut all = self.scheduling.load(Ordering::Relaxed);
        let said = all & (OFF | AUTO_STATIC | AUTO_DYNAMIC) != 0;
        if !said && all & EXPLICIT_REGION != 0 {
            all |= OFF;
        } else if !said && all & KERNEL_EPOCH != 0 {
            all |= AUTO_DYNAMIC;
        }
        all & properties != 0
    }
}

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
        if count == 0 || devices.is_null() {
            return Err(CL_INVALID_VALUE);
        }
        // SAFETY: the header's promises about the lists, which are OpenCL's.
        let (devices, shape) = unsafe {
            (
                handle::list::<Device>(count, devices)?,
                Shape::new(dimensions, offset, global, local)?,
            )
        };
        let context = &kernel.program.context;
        if devices
            .iter()
            .any(|device| !context.devices.contains(device))
        {
            return Err(CL_INVALID_DEVICE);
        }
        // Launches only name the kernel, and would fail where nobody knows why.
        for place in devices.iter().flat_map(|device| context.places_of(device)) {
            if kernel.is_built_for(place) {
                shape.check(&kernel, place)?;
            }
        }
        for member in devices.iter().flat_map(|device| &device.members) {
            kernel.set_shape(member.id, shape.clone());
        }
        Ok(())
    })
}
