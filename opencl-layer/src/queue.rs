//! Command queues. One of ours has a queue at each device that its commands went to.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use libc::c_void;
use opencl_sys::cl_icd::cl_icd_dispatch;
use opencl_sys::*;

use crate::answer::Answer;
use crate::clock;
use crate::command::{Command, Waits};
use crate::context::Context;
use crate::device::Device;
use crate::event::Event;
use crate::handle::{Ref, kind};
use crate::host_view;
use crate::native::Native;
use crate::report::{self, QueueRecord};
use crate::schedule::{self, QueuePlan};
use crate::scheduling;
use crate::settings::settings;
use crate::status::{Fallible, check, driver, driver_object, object, status};

/// A command queue.
pub struct Queue {
    pub context: Ref<Context>,
    pub device: Ref<Device>,
    pub properties: cl_command_queue_properties,
    /// The places that may run its commands.
    pub places: Vec<usize>,
    /// How it is scheduled, as properties say it.
    pub scheduling: AtomicU64,
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
    /// What to add to its times; see `clock.rs`.
    pub clock: i64,
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
            clock: 0,
        }
    }

    /// Has the commands start that the queue has got.
    pub fn flush(&self) -> Fallible<()> {
        check(driver!(self.table, clFlush(self.queue)))
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

    /// An event of this queue that ends when some others have ended. It stands for them.
    pub fn joined(&self, waits: &Waits, parts: Vec<Arc<Native>>) -> Fallible<Arc<Native>> {
        let mut event = std::ptr::null_mut();
        let (count, list) = (waits.count(), waits.events());
        check(driver!(
            self.table,
            clEnqueueMarkerWithWaitList(self.queue, count, list, &mut event)
        ))?;
        let (table, domain, queue) = (self.table, self.domain, self.queue);
        Ok(Native::of_parts(
            table, event, domain, queue, self.clock, parts,
        ))
    }

    /// Owns an event of this queue.
    pub fn native(&self, event: cl_event) -> Arc<Native> {
        Native::timed(self.table, event, self.domain, self.queue, self.clock)
    }
}

/// Queues that were made, where the user says which device each has.
static MADE: AtomicUsize = AtomicUsize::new(0);

/// What changes in a queue.
pub struct State {
    /// By place: the queue for most commands.
    lanes: Vec<Slot>,
    /// By place: the queue for launches that are timed, where the program does not want
    /// times. A queue that takes times costs 7 us a command with some drivers.
    timed: Vec<Slot>,
    /// The place of its kernels.
    pub place: usize,
    /// Where the last command went.
    pub last: Option<Lane>,
    /// The last barrier of a queue without order.
    pub barrier: Option<Arc<Native>>,
    /// Commands that no driver has yet, in their order.
    pub recorded: VecDeque<Recorded>,
    /// Recorded commands that drivers have now. What they keep alive may end only where
    /// no lock is held.
    pub done: Vec<Recorded>,
    /// What the scheduler knows of the queue.
    pub plan: QueuePlan,
    pub report: QueueRecord,
}

/// A command that no driver has yet.
pub struct Recorded {
    pub command: Command,
    pub event: Ref<Event>,
}

/// A queue of a driver, once it is needed.
#[derive(Clone, Copy, Default)]
struct Slot {
    lane: Option<Lane>,
    /// How often it was asked for, each time for commands, and how many of these have ended
    /// for certain. A driver takes some microseconds to say that an idle queue is idle.
    uses: u64,
    ended: u64,
}

impl Slot {
    fn busy(&self) -> Option<Lane> {
        self.lane.filter(|_| self.uses > self.ended)
    }

    fn use_busy(&mut self) -> Option<Lane> {
        let busy = self.busy()?;
        self.uses += 1;
        Some(busy)
    }
}

impl State {
    fn slots(&self) -> impl Iterator<Item = &Slot> {
        self.lanes.iter().chain(&self.timed)
    }

    /// The drivers' queues whose commands may not have ended.
    fn lanes(&self) -> Vec<Lane> {
        self.slots().filter_map(Slot::busy).collect()
    }

    /// Has all commands start that drivers have.
    pub fn flush(&self) -> Fallible<()> {
        self.slots()
            .filter_map(Slot::busy)
            .try_for_each(|lane| lane.flush())
    }

    /// As [`Self::lanes`], for commands.
    pub fn lanes_to_use(&mut self) -> Vec<Lane> {
        let slots = self.lanes.iter_mut().chain(&mut self.timed);
        slots.filter_map(Slot::use_busy).collect()
    }

    /// Where the last command went, for another one; `None` if it has ended for certain.
    pub fn last_to_use(&mut self) -> Option<Lane> {
        let last = self.last?.queue;
        let mut slots = self.lanes.iter_mut().chain(&mut self.timed);
        let is_last = |slot: &&mut Slot| slot.lane.is_some_and(|lane| lane.queue == last);
        slots.find(is_last)?.use_busy()
    }
}

impl Queue {
    fn new(
        context: Ref<Context>,
        device: Ref<Device>,
        properties: cl_command_queue_properties,
    ) -> Fallible<Self> {
        let scheduling = properties & scheduling::QUEUE_PROPERTIES;
        let properties = properties & !scheduling::QUEUE_PROPERTIES;
        let places = match scheduling & scheduling::MAPPED {
            0 => context.places_of(&device),
            _ => (0..context.places.len()).collect(),
        };
        let mut place = *places.first().ok_or(CL_INVALID_DEVICE)?;
        let map = &settings().map;
        if !map.is_empty() {
            let number = MADE.fetch_add(1, Ordering::Relaxed);
            place = *places.get(map[number % map.len()]).unwrap_or(&place);
        }
        let queue = Self {
            state: Mutex::new(State {
                lanes: vec![Slot::default(); context.places.len()],
                timed: vec![Slot::default(); context.places.len()],
                place,
                last: None,
                barrier: None,
                recorded: VecDeque::new(),
                done: Vec::new(),
                plan: QueuePlan::default(),
                report: QueueRecord::new(&context),
            }),
            context,
            device,
            properties,
            places,
            scheduling: AtomicU64::new(scheduling),
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
        self.opened(&mut state.lanes[place], place, self.properties)
    }

    /// A driver's queue at a place whose events have times.
    pub fn timed_lane(&self, state: &mut State, place: usize) -> Fallible<Lane> {
        if self.profiles() {
            return self.lane(state, place);
        }
        let properties = self.properties | CL_QUEUE_PROFILING_ENABLE;
        self.opened(&mut state.timed[place], place, properties)
    }

    fn opened(
        &self,
        slot: &mut Slot,
        place: usize,
        properties: cl_command_queue_properties,
    ) -> Fallible<Lane> {
        let lane = match slot.lane {
            Some(lane) => lane,
            None => self.open(place, properties)?,
        };
        slot.lane = Some(lane);
        slot.uses += 1;
        Ok(lane)
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
        let mut lane = Lane {
            table: domain.table,
            queue,
            place,
            domain: self.context.places[place].domain,
            variant: match domain.program_per_queue {
                true => self.variant(),
                false => 0,
            },
            clock: 0,
        };
        if self.profiles() && !self.context.is_single() {
            lane.clock = clock::offset(&lane);
        }
        Ok(lane)
    }

    /// A variant of programs for a queue of a driver that confuses launches.
    fn variant(&self) -> u32 {
        match schedule::fits(self) {
            true => self.context.variants.take(),
            false => self.context.variants.take_whole(),
        }
    }

    /// The queue may have samples and parts of launches from now on, or has no more of them.
    pub fn choose_variants(&self, state: &mut State) {
        let slots = state.lanes.iter_mut().chain(&mut state.timed);
        for lane in slots.filter_map(|slot| slot.lane.as_mut()) {
            if self.context.domains[lane.domain].program_per_queue {
                let variants = &self.context.variants;
                variants.give_back(lane.variant, lane.marker().ok());
                lane.variant = self.variant();
            }
        }
    }

    /// The drivers' queues that it has.
    pub fn lanes(&self) -> Vec<Lane> {
        self.state().lanes()
    }

    /// Has the commands start that drivers have.
    pub fn flush(this: &Ref<Self>) -> Fallible<()> {
        schedule::advance(this);
        // Without the lock: a driver may call back meanwhile.
        let mut lanes = this.lanes().into_iter();
        lanes.try_for_each(|lane| lane.flush())
    }

    /// Waits until all commands have ended.
    fn finish(this: &Ref<Self>) -> Fallible<()> {
        schedule::settle(this);
        Self::flush(this)?;
        let before: Vec<Slot> = this.state().slots().copied().collect();
        for lane in before.iter().filter_map(Slot::busy) {
            check(driver!(lane.table, clFinish(lane.queue)))?;
        }
        let mut state = this.state();
        let State { lanes, timed, .. } = &mut *state;
        for (slot, before) in lanes.iter_mut().chain(timed).zip(before) {
            slot.ended = slot.ended.max(before.uses);
        }
        drop(state);
        schedule::synchronised(this);
        host_view::show(this)
    }
}

/// The ends of what drivers have of all queues.
pub fn unfinished() -> Vec<Arc<Native>> {
    let queues = Ref::<Queue>::all();
    let lanes = queues.iter().flat_map(|queue| queue.lanes());
    let last = |lane: Lane| {
        let last = lane.marker().ok()?;
        lane.flush().ok()?;
        Some(last)
    };
    lanes.filter_map(last).collect()
}

impl Drop for Queue {
    fn drop(&mut self) {
        let slots: Vec<Slot> = self.state().slots().copied().collect();
        for slot in slots {
            let Some(lane) = slot.lane else {
                continue;
            };
            let last = slot.busy().and_then(|lane| lane.marker().ok());
            // A queue is flushed when it is released.
            let _ = driver!(lane.table, clFlush(lane.queue));
            if self.context.domains[lane.domain].program_per_queue {
                self.context.variants.give_back(lane.variant, last);
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
    queue.context.add_queue(&queue);
    Ok(queue.give())
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
            // No queue is on a device.
            CL_QUEUE_SIZE => Err(CL_INVALID_COMMAND_QUEUE),
            CL_QUEUE_DEVICE_DEFAULT => answer.value(std::ptr::null_mut::<c_void>()),
            CL_QUEUE_PROPERTIES_ARRAY => answer.list::<cl_queue_properties>(&[]),
            CL_QUEUE_PROPERTIES => {
                answer.value(queue.properties | queue.scheduling.load(Ordering::Relaxed))
            }
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
