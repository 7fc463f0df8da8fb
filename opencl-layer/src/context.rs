//! Contexts. One of ours has a context of each driver whose devices it uses.

use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use libc::{c_char, c_void};
use opencl_sys::*;
use pdawl::policy::auto_fit::TransferCosts;

use crate::call::{OwnQueue, Waits};
use crate::device::Device;
use crate::domain::Domain;
use crate::drivers::RealDevice;
use crate::ending::Ending;
use crate::handle::{Handles, Ref, kind};
use crate::lane::Lane;
use crate::lock::{Guard, ISSUING, Mutex};
use crate::native::Native;
use crate::scheduling;
use crate::settings::Mapping;
use crate::status::{Fallible, driver_object};
use crate::transit::Transit;
use crate::variant::Variants;

pub mod calls;

/// What a driver calls when something goes wrong in a context.
pub type Notify = unsafe extern "C" fn(*const c_char, *const c_void, usize, *mut c_void);

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
        let mut members: Vec<RealDevice> = Vec::new();
        for member in context.devices.iter().flat_map(|device| &device.members) {
            if members.iter().all(|other| other.id != member.id) {
                members.push(member.clone());
            }
        }
        let mut platforms: Vec<cl_platform_id> = Vec::new();
        for member in &members {
            let platform = member.driver.platform;
            if !platforms.contains(&platform) {
                let own = members
                    .iter()
                    .filter(|other| other.driver.platform == platform);
                let ids: Vec<cl_device_id> = own.map(|device| device.id).collect();
                let domain = open(member, &ids, notify, data)?;
                context.domains.push(domain);
                context.transits.push(Transit::default());
                platforms.push(platform);
            }
        }
        for real in members {
            let platform = real.driver.platform;
            let domain = platforms.iter().position(|other| *other == platform);
            context.places.push(Place {
                domain: domain.ok_or(CL_INVALID_DEVICE)?,
                profile: format!("{}, {}", real.model, real.driver.name),
                real,
                late: OnceLock::new(),
            });
        }
        Ok(context)
    }

    /// The driver's context of a place.
    pub fn domain(&self, place: usize) -> &Domain {
        &self.domains[self.places[place].domain]
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
    pub fn waits(&self, domain: usize, natives: &[Arc<Native>]) -> Fallible<Waits> {
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

/// Makes a driver's context.
fn open(
    first: &RealDevice,
    ids: &[cl_device_id],
    notify: Option<Notify>,
    data: *mut c_void,
) -> Fallible<Domain> {
    let table = first.driver.table;
    let properties: [cl_context_properties; 3] = [
        CL_CONTEXT_PLATFORM as cl_context_properties,
        first.driver.platform as cl_context_properties,
        0,
    ];
    let (count, ids) = (ids.len() as cl_uint, ids.as_ptr());
    let context = driver_object!(
        table,
        clCreateContext(properties.as_ptr(), count, ids, notify, data)
    )?;
    let program_per_queue = first.driver.name.starts_with("Portable Computing Language");
    Ok(Domain::new(table, context, program_per_queue))
}
