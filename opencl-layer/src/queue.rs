//! Command queues. One of ours has a queue at each device that its commands went to.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use libc::c_void;
use opencl_sys::cl_icd::cl_icd_dispatch;
use opencl_sys::*;

use crate::answer::Answer;
use crate::command::Command;
use crate::context::Context;
use crate::device::Device;
use crate::event::Event;
use crate::handle::{Ref, kind};
use crate::native::Native;
use crate::report::{self, QueueRecord};
use crate::schedule::{self, QueuePlan};
use crate::status::{Fallible, check, driver, driver_object, object, status};
use crate::variant;

/// A command queue.
pub struct Queue {
    pub context: Ref<Context>,
    pub device: Ref<Device>,
    pub properties: cl_command_queue_properties,
    /// The places that may run its commands.
    pub places: Vec<usize>,
    state: Mutex<State>,
}

kind!(Queue, CL_INVALID_COMMAND_QUEUE);

/// A queue of a driver.
#[derive(Clone, Copy)]
pub struct Lane {
    pub table: &'static cl_icd_dispatch,
    pub queue: cl_command_queue,
    pub place: usize,
    pub domain: usize,
    /// The variant of programs that it runs; see `variant.rs`.
    pub variant: u32,
}

// SAFETY: drivers' handles may be used by every thread.
unsafe impl Send for Lane {}

impl Lane {
    /// What questions to a driver need, without a queue.
    pub fn for_questions(context: &Context, place: usize) -> Self {
        Self {
            table: context.domain(place).table,
            queue: std::ptr::null_mut(),
            place,
            domain: context.places[place].domain,
            variant: 0,
        }
    }

    /// An event that ends when all that the queue has got has ended.
    pub fn marker(&self) -> Fallible<Arc<Native>> {
        let mut event = std::ptr::null_mut();
        check(driver!(
            self.table,
            clEnqueueMarkerWithWaitList(self.queue, 0, std::ptr::null(), &mut event)
        ))?;
        Ok(self.native(event))
    }

    /// Owns an event of this queue.
    pub fn native(&self, event: cl_event) -> Arc<Native> {
        Native::new(self.table, event, self.domain, self.queue)
    }
}

/// What changes in a queue.
pub struct State {
    /// By place: the queue for most commands.
    lanes: Vec<Option<Lane>>,
    /// By place: the queue for launches that are timed, where the program does not want
    /// times. A queue that takes times costs 7 us a command with some drivers.
    timed: Vec<Option<Lane>>,
    /// The place of its kernels.
    pub place: usize,
    /// Where the last command went.
    pub last: Option<Lane>,
    /// Commands that no driver has yet, in their order.
    pub recorded: VecDeque<Recorded>,
    /// What the scheduler knows of the queue.
    pub plan: QueuePlan,
    pub report: QueueRecord,
}

/// A command that no driver has yet.
pub struct Recorded {
    pub command: Command,
    pub event: Ref<Event>,
}

impl Queue {
    fn new(
        context: Ref<Context>,
        device: Ref<Device>,
        properties: cl_command_queue_properties,
    ) -> Fallible<Self> {
        let places = context.places_of(&device);
        let place = *places.first().ok_or(CL_INVALID_DEVICE)?;
        let queue = Self {
            state: Mutex::new(State {
                lanes: vec![None; context.places.len()],
                timed: vec![None; context.places.len()],
                place,
                last: None,
                recorded: VecDeque::new(),
                plan: QueuePlan::default(),
                report: QueueRecord::new(&context),
            }),
            context,
            device,
            properties,
            places,
        };
        queue.lane(&mut queue.state(), place)?;
        Ok(queue)
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether events have times.
    pub fn profiles(&self) -> bool {
        self.properties & CL_QUEUE_PROFILING_ENABLE != 0
    }

    /// The driver's queue at a place.
    pub fn lane(&self, state: &mut State, place: usize) -> Fallible<Lane> {
        if state.lanes[place].is_none() {
            state.lanes[place] = Some(self.open(place, self.properties)?);
        }
        state.lanes[place].ok_or(CL_INVALID_COMMAND_QUEUE)
    }

    /// A driver's queue at a place whose events have times.
    pub fn timed_lane(&self, state: &mut State, place: usize) -> Fallible<Lane> {
        if self.profiles() {
            return self.lane(state, place);
        }
        if state.timed[place].is_none() {
            let properties = self.properties | CL_QUEUE_PROFILING_ENABLE;
            state.timed[place] = Some(self.open(place, properties)?);
        }
        state.timed[place].ok_or(CL_INVALID_COMMAND_QUEUE)
    }

    fn open(&self, place: usize, properties: cl_command_queue_properties) -> Fallible<Lane> {
        let (domain, real) = (self.context.domain(place), &self.context.places[place].real);
        let (context, device) = (domain.context, real.id);
        let properties = match report::traces() {
            true => properties | CL_QUEUE_PROFILING_ENABLE,
            false => properties,
        };
        let queue = driver_object!(
            domain.table,
            clCreateCommandQueue(context, device, properties)
        )?;
        Ok(Lane {
            table: domain.table,
            queue,
            place,
            domain: self.context.places[place].domain,
            variant: match domain.program_per_queue {
                true => variant::take(),
                false => 0,
            },
        })
    }

    /// The drivers' queues that it has.
    pub fn lanes(&self) -> Vec<Lane> {
        let state = self.state();
        state.lanes.iter().chain(&state.timed).flatten().copied().collect()
    }

    /// Has the commands start that drivers have.
    pub fn flush(this: &Ref<Self>) -> Fallible<()> {
        schedule::advance(this);
        for lane in this.lanes() {
            check(driver!(lane.table, clFlush(lane.queue)))?;
        }
        Ok(())
    }

    /// Waits until all commands have ended.
    fn finish(this: &Ref<Self>) -> Fallible<()> {
        schedule::settle(this)?;
        Self::flush(this)?;
        for lane in this.lanes() {
            check(driver!(lane.table, clFinish(lane.queue)))?;
        }
        schedule::synchronised(this);
        Ok(())
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        for lane in self.lanes() {
            // A queue is flushed when it is released.
            let _ = driver!(lane.table, clFlush(lane.queue));
            if self.context.domains[lane.domain].program_per_queue {
                variant::give_back(lane.variant, lane.marker().ok());
            }
            let _ = driver!(lane.table, clReleaseCommandQueue(lane.queue));
        }
    }
}

/// `clCreateCommandQueue`.
pub unsafe extern "C" fn create_command_queue(
    context: cl_context,
    device: cl_device_id,
    properties: cl_command_queue_properties,
    code: *mut cl_int,
) -> cl_command_queue {
    let make = || {
        let context = Ref::<Context>::of(context)?;
        let device = Ref::<Device>::of(device)?;
        if !context.devices.contains(&device) {
            return Err(CL_INVALID_DEVICE);
        }
        let known = CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE | CL_QUEUE_PROFILING_ENABLE;
        if properties & !known != 0 {
            return Err(CL_INVALID_VALUE);
        }
        let queue = Ref::new(Queue::new(context, device, properties)?);
        queue.context.add_queue(&queue);
        Ok(queue.give())
    };
    // SAFETY: OpenCL's promise about the code.
    unsafe { object(code, make) }
}

/// `clRetainCommandQueue`.
pub unsafe extern "C" fn retain_command_queue(handle: cl_command_queue) -> cl_int {
    status(|| Ref::<Queue>::retain(handle))
}

/// `clReleaseCommandQueue`.
pub unsafe extern "C" fn release_command_queue(handle: cl_command_queue) -> cl_int {
    status(|| {
        let queue = Ref::<Queue>::of(handle)?;
        if queue.users() == 1 {
            schedule::force(&queue);
            Queue::flush(&queue)?;
        }
        Ref::<Queue>::release(handle)
    })
}

/// `clGetCommandQueueInfo`.
pub unsafe extern "C" fn get_command_queue_info(
    handle: cl_command_queue,
    what: cl_command_queue_info,
    size: usize,
    value: *mut c_void,
    needed: *mut usize,
) -> cl_int {
    status(|| {
        let queue = Ref::<Queue>::of(handle)?;
        // SAFETY: OpenCL's promises about both pointers.
        let answer = unsafe { Answer::to(size, value, needed) };
        match what {
            CL_QUEUE_CONTEXT => answer.value(queue.context.handle()),
            CL_QUEUE_DEVICE => answer.value(queue.device.handle()),
            CL_QUEUE_REFERENCE_COUNT => answer.value(queue.users()),
            CL_QUEUE_PROPERTIES => answer.value(queue.properties),
            _ => Err(CL_INVALID_VALUE),
        }
    })
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
    status(|| Queue::flush(&Ref::of(handle)?))
}

/// `clFinish`.
pub unsafe extern "C" fn finish(handle: cl_command_queue) -> cl_int {
    status(|| Queue::finish(&Ref::of(handle)?))
}
