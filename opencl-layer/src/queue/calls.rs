//! The functions of command queues.

use std::sync::atomic::Ordering;

use opencl_sys::*;

use super::{Queue, Slot, State};
use crate::answer::{Answer, Answers};
use crate::boundary::{object, status};
use crate::context::Context;
use crate::device::Device;
use crate::handle::Ref;
use crate::host_view;
use crate::report;
use crate::schedule;
use crate::scheduling;
use crate::status::{Fallible, check, driver};

/// `clCreateCommandQueue`.
pub unsafe extern "C" fn create_command_queue(
    context: cl_context,
    device: cl_device_id,
    properties: cl_command_queue_properties,
    code: *mut cl_int,
) -> cl_command_queue {
    // SAFETY: OpenCL's promise about the code.
    unsafe { object(code, || create(context, device, properties)) }
}

/// Makes a queue.
pub fn create(
    context: cl_context,
    device: cl_device_id,
    properties: cl_command_queue_properties,
) -> Fallible<cl_command_queue> {
    let context = Ref::<Context>::of(context)?;
    let device = match device.is_null() && properties & scheduling::MAPPED != 0 {
        true => context.devices[0].clone(),
        false => Ref::<Device>::of(device)?,
    };
    if !context.devices.contains(&device) {
        return Err(CL_INVALID_DEVICE);
    }
    let plain = properties & !scheduling::QUEUE_PROPERTIES;
    let known = CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE | CL_QUEUE_PROFILING_ENABLE;
    if plain & !known != 0 || !scheduling::is_consistent(properties) {
        return Err(CL_INVALID_VALUE);
    }
    if plain & !device.common(CL_DEVICE_QUEUE_PROPERTIES)? != 0 {
        return Err(CL_INVALID_QUEUE_PROPERTIES);
    }
    let queue = Ref::new(Queue::new(context, device, properties)?);
    queue.context.queues.add(&queue);
    report::made(&queue);
    Ok(queue.give())
}

/// `clReleaseCommandQueue`.
pub unsafe extern "C" fn release_command_queue(handle: cl_command_queue) -> cl_int {
    status(|| {
        let queue = Ref::<Queue>::of(handle)?;
        if queue.users() == 1 {
            schedule::force(&queue);
            schedule::flush(&queue)?;
        }
        Ref::<Queue>::release(handle)
    })
}

/// `clGetCommandQueueInfo`.
impl Answers for Queue {
    fn answer(queue: &Ref<Self>, what: cl_uint, answer: Answer) -> Fallible<()> {
        match what {
            CL_QUEUE_CONTEXT => answer.value(queue.context.handle()),
            CL_QUEUE_DEVICE => answer.value(queue.present_device().handle()),
            CL_QUEUE_REFERENCE_COUNT => answer.value(queue.users()),
            // No queue is on a device.
            CL_QUEUE_SIZE => Err(CL_INVALID_COMMAND_QUEUE),
            CL_QUEUE_DEVICE_DEFAULT => answer.handle::<Self>(None),
            CL_QUEUE_PROPERTIES_ARRAY => answer.list::<cl_queue_properties>(&[]),
            CL_QUEUE_PROPERTIES => {
                answer.value(queue.properties | queue.scheduling.load(Ordering::Relaxed))
            }
            _ => Err(CL_INVALID_VALUE),
        }
    }
}

/// `clSetCommandQueueProperty`, which OpenCL has taken back since 1.1.
pub unsafe extern "C" fn set_command_queue_property(
    handle: cl_command_queue,
    _properties: cl_command_queue_properties,
    _enable: cl_bool,
    _before: *mut cl_command_queue_properties,
) -> cl_int {
    status(|| {
        Ref::<Queue>::of(handle)?;
        Err(CL_INVALID_OPERATION)
    })
}

/// `clFlush`.
pub unsafe extern "C" fn flush(handle: cl_command_queue) -> cl_int {
    status(|| schedule::flush(&Ref::of(handle)?))
}

/// `clFinish`.
pub unsafe extern "C" fn finish(handle: cl_command_queue) -> cl_int {
    status(|| wait(&Ref::of(handle)?))
}

/// Waits until all commands have ended.
fn wait(queue: &Ref<Queue>) -> Fallible<()> {
    schedule::settle(queue);
    schedule::flush(queue)?;
    let before: Vec<Slot> = queue.state().slots().copied().collect();
    for lane in before.iter().filter_map(Slot::busy) {
        check(driver!(lane.table, clFinish(lane.queue)))?;
    }
    let mut state = queue.state();
    let State { lanes, timed, .. } = &mut *state;
    for (slot, before) in lanes.iter_mut().chain(timed).zip(before) {
        slot.ended = slot.ended.max(before.uses);
    }
    drop(state);
    schedule::synchronised(queue);
    host_view::show(queue)
}
