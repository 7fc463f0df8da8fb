//! Command queues. One of ours has a queue at each device that its commands went to.

use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use opencl_sys::*;

use crate::clock;
use crate::context::Context;
use crate::device::Device;
use crate::handle::Kept;
use crate::handle::{Ref, kind};
use crate::lock::{Guard, ISSUING, Mutex, QUEUE};
use crate::native::Native;
use crate::own_queue::Lane;
use crate::scheduling;
use crate::settings::{Mapping, settings};
use crate::status::{Fallible, driver};

pub mod calls;

/// A command queue.
pub struct Queue {
    pub context: Ref<Context>,
    pub device: Ref<Device>,
    pub properties: cl_command_queue_properties,
    /// The places that may run its commands.
    pub places: Vec<usize>,
    /// How it is scheduled, as properties say it.
    pub scheduling: AtomicU64,
    state: Mutex<State, QUEUE>,
}

kind!(Queue, CL_INVALID_COMMAND_QUEUE);

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
    /// What parts above know of the queue.
    pub kept: Kept,
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
                kept: Kept::default(),
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

    pub fn state(&self) -> Guard<'_, State, QUEUE> {
        self.state.lock()
    }

    /// The state for a thread that has that of another queue and keeps others from issuing.
    pub fn state_of_another(&self) -> Guard<'_, State, QUEUE> {
        self.state.lock_another::<ISSUING>()
    }

    /// Whether a queue has one of these properties.
    pub fn is_scheduled(&self, properties: u64) -> bool {
        scheduling::meant(self.scheduling.load(Ordering::Relaxed)) & properties != 0
    }

    /// How it is mapped: as the program says, else as the user does.
    pub fn mapping(&self) -> Mapping {
        self.mapping_by(self.scheduling.load(Ordering::Relaxed))
    }

    /// How it is mapped with these properties.
    pub fn mapping_by(&self, properties: u64) -> Mapping {
        let properties = scheduling::meant(properties);
        if self.places.len() < 2 || properties & scheduling::OFF != 0 {
            return Mapping::Off;
        }
        if properties & scheduling::AUTO_STATIC != 0 {
            return Mapping::Static;
        }
        let is_auto = properties & scheduling::AUTO_DYNAMIC != 0;
        match self.context.scheduler {
            Some(mapping) if is_auto => mapping,
            None if is_auto => Mapping::AutoFit,
            Some(_) => Mapping::Off,
            None => settings().mapping,
        }
    }

    /// The device that it has at present, of those of its context.
    pub fn present_device(&self) -> &Ref<Device> {
        let place = self.state().place;
        let id = self.context.places[place].real.id;
        let has = |device: &&Ref<Device>| device.members.iter().any(|member| member.id == id);
        let mut devices = std::iter::once(&self.device).chain(&self.context.devices);
        devices.find(has).unwrap_or(&self.device)
    }

    /// Whether it is mapped by predictions, so that it may have samples and parts of
    /// launches.
    pub fn fits(&self) -> bool {
        self.mapping() == Mapping::AutoFit
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
        let properties = match settings().traces() {
            true => properties | CL_QUEUE_PROFILING_ENABLE,
            false => properties,
        };
        let queue = domain.queue(real.id, properties)?;
        let mut lane = Lane {
            table: domain.table,
            queue: queue.into_handle(),
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
        match self.fits() {
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
}

impl Context {
    /// Its queues that are alive.
    pub fn queues(&self) -> Vec<Ref<Queue>> {
        let mut queues = self.queues.alive();
        queues.retain(|queue: &Ref<Queue>| ptr::eq(&*queue.context, self));
        queues
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
        let slots: Vec<Slot> = self.state.get_mut().slots().copied().collect();
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
