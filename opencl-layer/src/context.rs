//! Contexts. One of ours has a context of each driver whose devices it uses.

use std::ptr;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use libc::{c_char, c_void};
use opencl_sys::cl_icd::cl_icd_dispatch;
use opencl_sys::*;
use pdawl::policy::auto_fit::TransferCosts;

use crate::answer::Answer;
use crate::device::Device;
use crate::drivers::RealDevice;
use crate::ending::{Ended, Ending};
use crate::handle::{self, Ref, kind};
use crate::late::LateQueue;
use crate::mem::Mem;
use crate::platform;
use crate::queue::Queue;
use crate::schedule;
use crate::scheduling;
use crate::settings::{Mapping, settings};
use crate::status::{Fallible, driver, driver_object, object, status};
use crate::transit::Transit;
use crate::variant::Variants;

/// What a driver calls when something goes wrong in a context.
pub type Notify = unsafe extern "C" fn(*const c_char, *const c_void, usize, *mut c_void);

/// A context of one driver. Its events can be waited for by its own queues only.
pub struct Domain {
    pub table: &'static cl_icd_dispatch,
    pub context: cl_context,
    /// Whether queues with samples and parts of launches need programs of their own: PoCL
    /// confuses overlapping launches of one program.
    pub program_per_queue: bool,
    pub transit: Transit,
}

/// A device that runs commands of a context.
pub struct Place {
    pub real: RealDevice,
    /// Its driver's context, as an index.
    pub domain: usize,
    /// What it is called in profiles: devices of one model share them.
    pub profile: String,
    pub late: LateQueue,
}

/// A context.
pub struct Context {
    pub devices: Vec<Ref<Device>>,
    properties: Vec<cl_context_properties>,
    /// How the program wants its queues to be mapped, if it says so.
    pub scheduler: Option<Mapping>,
    pub domains: Vec<Domain>,
    pub places: Vec<Place>,
    /// The times of copies between its places.
    costs: OnceLock<TransferCosts>,
    /// The handles of its queues.
    queues: Mutex<Vec<usize>>,
    /// Held while a command is given to a driver, so that the hidden copies of one
    /// command do not mix with those of another. Never held during a callback.
    issuing: Mutex<()>,
    /// Numbers of its queues, for drivers that confuse launches.
    pub variants: Variants,
    /// Handles of buffers that show their bytes in the program's memory.
    viewed: Mutex<Vec<usize>>,
    /// Told when the context is gone.
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
            places: Vec::new(),
            costs: OnceLock::new(),
            queues: Mutex::default(),
            issuing: Mutex::new(()),
            variants: Variants::default(),
            viewed: Mutex::default(),
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
                late: LateQueue::default(),
            });
        }
        let maps = context.scheduler.or(Some(settings().mapping));
        if !context.is_single() && maps == Some(Mapping::AutoFit) {
            context.costs();
        }
        Ok(context)
    }

    /// The driver's context of a place.
    pub fn domain(&self, place: usize) -> &Domain {
        &self.domains[self.places[place].domain]
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

    /// The times of copies between its places. Where queues may be mapped, they are
    /// measured when the context is made, as no enqueue may wait.
    pub fn costs(&self) -> &TransferCosts {
        self.costs.get_or_init(|| schedule::transfer_costs(self))
    }

    /// Remembers a queue.
    pub fn add_queue(&self, queue: &Ref<Queue>) {
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        queues.retain(|handle| Ref::<Queue>::of(*handle as *mut c_void).is_ok());
        queues.push(queue.handle() as usize);
    }

    /// Its queues that are alive.
    pub fn queues(&self) -> Vec<Ref<Queue>> {
        let queues = self
            .queues
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let alive = queues
            .into_iter()
            .filter_map(|handle| Ref::of(handle as *mut c_void).ok());
        alive
            .filter(|queue: &Ref<Queue>| ptr::eq(&*queue.context, self))
            .collect()
    }

    /// Notes a buffer that shows its bytes in the program's memory.
    pub fn view(&self, mem: &Ref<Mem>) {
        let mut viewed = self.viewed.lock().unwrap_or_else(PoisonError::into_inner);
        viewed.retain(|handle| Ref::<Mem>::of(*handle as cl_mem).is_ok());
        viewed.push(mem.handle() as usize);
    }

    /// The buffers that show their bytes in the program's memory.
    pub fn viewed(&self) -> Vec<Ref<Mem>> {
        let viewed = self
            .viewed
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let mems = viewed
            .into_iter()
            .filter_map(|handle| Ref::of(handle as cl_mem).ok());
        mems.filter(|mem: &Ref<Mem>| ptr::eq(&*mem.context, self))
            .collect()
    }

    /// Keeps other threads from giving commands to drivers.
    pub fn issuing(&self) -> MutexGuard<'_, ()> {
        self.issuing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        for place in &mut self.places {
            place.late.release(self.domains[place.domain].table);
        }
        for domain in &mut self.domains {
            domain.transit.release();
            let _ = driver!(domain.table, clReleaseContext(domain.context));
        }
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
    Ok(Domain {
        table,
        context,
        program_per_queue: first.driver.name.starts_with("Portable Computing Language"),
        transit: Transit::default(),
    })
}

/// Reads a list of properties that ends in 0, and checks its keys.
///
/// # Safety
/// `list` is null or ends in 0.
unsafe fn properties(list: *const cl_context_properties) -> Fallible<Vec<cl_context_properties>> {
    let mut all = Vec::new();
    if list.is_null() {
        return Ok(all);
    }
    let mut at = list;
    loop {
        // SAFETY: the list has not ended yet.
        let key = unsafe { *at };
        if key == 0 {
            all.push(0);
            return Ok(all);
        }
        // SAFETY: a value follows each key.
        let value = unsafe { *at.add(1) };
        let twice = all.chunks(2).any(|pair| pair[0] == key);
        match key {
            _ if twice => return Err(CL_INVALID_PROPERTY),
            CL_CONTEXT_PLATFORM if value == 0 => return Err(CL_INVALID_PLATFORM),
            CL_CONTEXT_PLATFORM => drop(platform::of(value as cl_platform_id)?),
            scheduling::CONTEXT_SCHEDULER if scheduling::is_scheduler(value) => {}
            CL_CONTEXT_INTEROP_USER_SYNC if value == 0 || value == 1 => {}
            _ => return Err(CL_INVALID_PROPERTY),
        }
        all.extend([key, value]);
        // SAFETY: as above.
        at = unsafe { at.add(2) };
    }
}

/// `clCreateContext`.
pub unsafe extern "C" fn create_context(
    list: *const cl_context_properties,
    count: cl_uint,
    devices: *const cl_device_id,
    notify: Option<Notify>,
    data: *mut c_void,
    code: *mut cl_int,
) -> cl_context {
    let make = || {
        if count == 0 || devices.is_null() || (notify.is_none() && !data.is_null()) {
            return Err(CL_INVALID_VALUE);
        }
        // SAFETY: OpenCL's promises about both lists.
        let (properties, devices) = unsafe { (properties(list)?, handle::list(count, devices)?) };
        Ok(Ref::new(Context::new(devices, properties, notify, data)?).give())
    };
    // SAFETY: OpenCL's promise about the code.
    unsafe { object(code, make) }
}

/// `clCreateContextFromType`.
pub unsafe extern "C" fn create_context_from_type(
    list: *const cl_context_properties,
    kind: cl_device_type,
    notify: Option<Notify>,
    data: *mut c_void,
    code: *mut cl_int,
) -> cl_context {
    let make = || {
        if notify.is_none() && !data.is_null() {
            return Err(CL_INVALID_VALUE);
        }
        // SAFETY: OpenCL's promise about the list.
        let properties = unsafe { properties(list)? };
        let devices = platform::of_type(platform::platform(), kind)?;
        if devices.is_empty() {
            return Err(CL_DEVICE_NOT_FOUND);
        }
        Ok(Ref::new(Context::new(devices, properties, notify, data)?).give())
    };
    // SAFETY: OpenCL's promise about the code.
    unsafe { object(code, make) }
}

/// `clRetainContext`.
pub unsafe extern "C" fn retain_context(handle: cl_context) -> cl_int {
    status(|| Ref::<Context>::retain(handle))
}

/// `clReleaseContext`.
pub unsafe extern "C" fn release_context(handle: cl_context) -> cl_int {
    status(|| Ref::<Context>::release(handle))
}

/// `clGetContextInfo`.
pub unsafe extern "C" fn get_context_info(
    handle: cl_context,
    what: cl_context_info,
    size: usize,
    value: *mut c_void,
    needed: *mut usize,
) -> cl_int {
    status(|| {
        let context = Ref::<Context>::of(handle)?;
        // SAFETY: OpenCL's promises about both pointers.
        let answer = unsafe { Answer::to(size, value, needed) };
        match what {
            CL_CONTEXT_REFERENCE_COUNT => answer.value(context.users()),
            CL_CONTEXT_NUM_DEVICES => answer.value(context.devices.len() as cl_uint),
            CL_CONTEXT_DEVICES => {
                let handles: Vec<_> = context.devices.iter().map(Ref::handle).collect();
                answer.list(&handles)
            }
            CL_CONTEXT_PROPERTIES => answer.list(&context.properties),
            _ => Err(CL_INVALID_VALUE),
        }
    })
}

/// `clSetContextDestructorCallback`, which programs with newer headers may call.
pub unsafe extern "C" fn set_context_destructor_callback(
    handle: cl_context,
    function: Option<Ended>,
    data: *mut c_void,
) -> cl_int {
    status(|| {
        let context = Ref::<Context>::of(handle)?;
        context
            .ending
            .call(handle, function.ok_or(CL_INVALID_VALUE)?, data);
        Ok(())
    })
}
