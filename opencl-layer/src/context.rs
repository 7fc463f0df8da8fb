//! Contexts. One of ours has a context of each driver whose devices it uses.

use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use libc::c_void;
use opencl_sys::*;
use pdawl_api::policy::auto_fit::TransferCosts;

use crate::call::Waits;
use crate::device::Device;
use crate::domain::{Domain, Notify};
use crate::drivers::{Driver, RealDevice};
use crate::handle::{Handles, Ref, kind};
use crate::host_memory::Transit;
use crate::lock::{Guard, ISSUING, Mutex};
use crate::native::Native;
use crate::own_queue::Lane;
use crate::own_queue::{OwnQueue, Site};
use crate::process_end::Ending;
use crate::scheduling;
use crate::settings::Mapping;
use crate::status::Fallible;
use crate::variant::Variants;

pub mod calls;

/// A device that runs commands of a context.
pub struct Place {
    pub real: RealDevice,
    /// Its driver's context, as an index.
    pub domain: usize,
    /// What it is called in profiles: devices of one model share them.
    pub profile: String,
    /// The queue of its late writes, made for the first one.
    pub late: OnceLock<OwnQueue>,
}

/// A context.
pub struct Context {
    pub devices: Vec<Ref<Device>>,
    properties: Vec<cl_context_properties>,
    /// How the program wants its queues to be mapped, if it says so.
    pub scheduler: Option<Mapping>,
    pub places: Vec<Place>,
    /// By domain: pinned memory for copies.
    pub transits: Vec<Transit>,
    /// Given back after what is in them.
    pub domains: Vec<Domain>,
    /// The times of copies between its places.
    pub costs: OnceLock<TransferCosts>,
    /// The place whose turn it is, where queues have the next one.
    turn: AtomicUsize,
    /// Its queues.
    pub queues: Handles,
    /// Held while a command is given to a driver, so that the hidden copies of one
    /// command do not mix with those of another. Never held during a callback.
    issuing: Mutex<(), ISSUING>,
    /// Numbers of its queues, for drivers that confuse launches.
    pub variants: Variants,
    /// Buffers that show their bytes in the program's memory.
    pub viewed: Handles,
    /// Notified when the context is gone.
    ending: Ending,
}

// SAFETY: drivers' handles may be used by every thread.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

kind!(Context, CL_INVALID_CONTEXT);

impl Context {
    fn new(
        devices: Vec<Ref<Device>>,
        properties: Vec<cl_context_properties>,
        notify: Option<Notify>,
        data: *mut c_void,
    ) -> Fallible<Self> {
        let mut context = Self {
            devices,
            scheduler: scheduling::context_scheduler(&properties),
            properties,
            domains: Vec::new(),
            transits: Vec::new(),
            places: Vec::new(),
            costs: OnceLock::new(),
            turn: AtomicUsize::new(0),
            queues: Handles::default(),
            issuing: Mutex::new(()),
            variants: Variants::default(),
            viewed: Handles::default(),
            ending: Ending::default(),
        };
        let mut drivers: Vec<&'static Driver> = Vec::new();
        for real in context.devices.iter().flat_map(|device| &device.members) {
            if context.places.iter().any(|other| other.real.id == real.id) {
                continue;
            }
            let mut known = drivers.iter();
            let known = known.position(|driver| driver.platform == real.driver.platform);
            context.places.push(Place {
                domain: known.unwrap_or(drivers.len()),
                profile: format!("{}, {}", real.model, real.driver.name),
                real: real.clone(),
                late: OnceLock::new(),
            });
            if known.is_none() {
                drivers.push(real.driver);
            }
        }
        for (domain, driver) in drivers.into_iter().enumerate() {
            let own = context.places.iter().filter(|place| place.domain == domain);
            let ids: Vec<cl_device_id> = own.map(|place| place.real.id).collect();
            (context.domains).push(Domain::open(driver, &ids, notify, data)?);
            context.transits.push(Transit::default());
        }
        Ok(context)
    }

    /// The driver's context of a place.
    pub fn domain(&self, place: usize) -> &Domain {
        &self.domains[self.places[place].domain]
    }

    /// A place's device in its driver's context.
    pub fn site(&self, place: usize) -> Site {
        Site {
            domain: self.domain(place).clone(),
            id: self.places[place].real.id,
        }
    }

    /// The driver's context of a driver's device, as an index.
    pub fn domain_of(&self, id: cl_device_id) -> Option<usize> {
        let mut places = self.places.iter();
        let place = places.find(|place| place.real.id == id);
        place.map(|place| place.domain)
    }

    /// What questions to a driver need, without a queue.
    pub fn lane_for_questions(&self, place: usize) -> Lane {
        Lane {
            table: self.domain(place).table,
            queue: ptr::null_mut(),
            place,
            domain: self.places[place].domain,
            variant: 0,
            clock: 0,
        }
    }

    /// The events of a list as a wait list of one domain.
    pub fn waits(&self, domain: usize, natives: Vec<Arc<Native>>) -> Fallible<Waits> {
        Waits::new(&self.domains[domain], domain, natives)
    }

    /// Where its images live: the first place that has any.
    pub fn image_place(&self) -> Option<usize> {
        self.places.iter().position(|place| place.real.has_images())
    }

    /// Whether programs may expect results in their own memory.
    pub fn shows_host(&self) -> bool {
        let is_cpu = |device: &Ref<Device>| device.kind & CL_DEVICE_TYPE_CPU != 0;
        !self.is_single() && self.devices.iter().all(is_cpu)
    }

    /// Whether all commands go to one device, so that data are never elsewhere.
    pub fn is_single(&self) -> bool {
        self.places.len() == 1
    }

    /// The places that may run a device's commands.
    pub fn places_of(&self, device: &Device) -> Vec<usize> {
        let is_member = |place: &usize| {
            let id = self.places[*place].real.id;
            device.members.iter().any(|member| member.id == id)
        };
        (0..self.places.len()).filter(is_member).collect()
    }

    /// The next of some places in turn: the turn is the context's, so that queues that have one
    /// command each are on unlike devices.
    pub fn next_place<I: Iterator<Item = usize>>(&self, places: impl Fn() -> I) -> Option<usize> {
        let turn = self.turn.load(Ordering::Relaxed);
        let next = places().find(|place| *place >= turn).or(places().next())?;
        // Who asks gives commands to drivers, which nobody else does meanwhile.
        self.turn.store(next + 1, Ordering::Relaxed);
        Some(next)
    }

    /// Keeps other threads from giving commands to drivers.
    pub fn issuing(&self) -> Guard<'_, (), ISSUING> {
        self.issuing.lock()
    }
}
