//! Memory objects. One of ours has a copy at each place that used it, and one in host
//! memory, through which bytes go from place to place.

use std::ops::Range;
use std::ptr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use libc::c_void;
use opencl_sys::*;
use pdawl::residency::Regions;

use crate::answer::Answer;
use crate::command::waits;
use crate::context::Context;
use crate::handle::{Ref, kind};
use crate::host_memory::HostMemory;
use crate::native::Native;
use crate::queue::{Queue, State};
use crate::report;
use crate::status::{Fallible, check, driver, driver_object, object, status};

type Destructor = unsafe extern "C" fn(cl_mem, *mut c_void);

/// A memory object.
pub struct Mem {
    pub context: Ref<Context>,
    pub kind: cl_mem_object_type,
    pub flags: cl_mem_flags,
    pub size: usize,
    /// The program's memory of `CL_MEM_USE_HOST_PTR`.
    pub host: *mut c_void,
    /// For a sub-buffer: its buffer, and where in it this begins.
    pub parent: Option<(Ref<Mem>, usize)>,
    copies: Mutex<Copies>,
    pub maps: Mutex<Vec<Mapped>>,
    destructors: Mutex<Vec<(Destructor, usize)>>,
}

/// A mapped range.
pub struct Mapped {
    pub address: usize,
    pub range: Range<usize>,
    pub writes: bool,
    /// Where it is mapped by a driver; `None` in the host's copy.
    pub place: Option<usize>,
}

struct Copies {
    /// By place.
    mems: Vec<Option<cl_mem>>,
    /// Which bytes are where; the host is the last place.
    regions: Regions,
    host: Option<HostMemory>,
    /// Hidden copies that may not have ended: what they fill, and where.
    arriving: Vec<(Range<usize>, usize, Arc<Native>)>,
}

// SAFETY: the program promises that its own memory may be used by drivers.
unsafe impl Send for Mem {}
// SAFETY: as above.
unsafe impl Sync for Mem {}

kind!(Mem, CL_INVALID_MEM_OBJECT);

const ACCESS: cl_mem_flags = CL_MEM_READ_WRITE | CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY;
const HOST_POINTER: cl_mem_flags =
    CL_MEM_USE_HOST_PTR | CL_MEM_ALLOC_HOST_PTR | CL_MEM_COPY_HOST_PTR;
const HOST_ACCESS: cl_mem_flags =
    CL_MEM_HOST_WRITE_ONLY | CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_NO_ACCESS;

impl Mem {
    /// # Safety
    /// `host` is null or valid for `size` bytes, for as long as `flags` say.
    unsafe fn buffer(
        context: Ref<Context>,
        flags: cl_mem_flags,
        size: usize,
        host: *mut c_void,
    ) -> Fallible<Self> {
        let places = context.places.len();
        let mut copies = Copies {
            mems: vec![None; places],
            regions: Regions::new(size as u64),
            host: None,
            arriving: Vec::new(),
        };
        if context.is_single() {
            // The driver does what the flags say.
            let domain = context.domain(0);
            let mem =
                driver_object!(domain.table, clCreateBuffer(domain.context, flags, size, host))?;
            copies.mems[0] = Some(mem);
        } else if flags & CL_MEM_USE_HOST_PTR != 0 {
            copies.host = Some(HostMemory::borrowed(host.cast()));
            copies.regions.written(0..size as u64, places);
        } else if flags & CL_MEM_COPY_HOST_PTR != 0 {
            let memory = HostMemory::new(size)?;
            // SAFETY: both have `size` bytes, and ours is new.
            unsafe { ptr::copy_nonoverlapping(host.cast::<u8>(), memory.address(), size) };
            copies.host = Some(memory);
            copies.regions.written(0..size as u64, places);
        }
        Ok(Self {
            context,
            kind: CL_MEM_OBJECT_BUFFER,
            flags,
            size,
            host: match flags & CL_MEM_USE_HOST_PTR {
                0 => ptr::null_mut(),
                _ => host,
            },
            parent: None,
            copies: Mutex::new(copies),
            maps: Mutex::default(),
            destructors: Mutex::default(),
        })
    }

    fn part(parent: &Ref<Self>, flags: cl_mem_flags, origin: usize, size: usize) -> Self {
        let places = parent.context.places.len();
        Self {
            context: parent.context.clone(),
            kind: CL_MEM_OBJECT_BUFFER,
            flags,
            size,
            host: match parent.host.is_null() {
                true => ptr::null_mut(),
                false => parent.host.cast::<u8>().wrapping_add(origin).cast(),
            },
            parent: Some((parent.clone(), origin)),
            copies: Mutex::new(Copies {
                mems: vec![None; places],
                regions: Regions::new(0),
                host: None,
                arriving: Vec::new(),
            }),
            maps: Mutex::default(),
            destructors: Mutex::default(),
        }
    }

    fn copies(&self) -> MutexGuard<'_, Copies> {
        self.copies.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The driver's memory object at a place, made when it is first used.
    pub fn at(&self, place: usize) -> Fallible<cl_mem> {
        let mut copies = self.copies();
        if let Some(mem) = copies.mems[place] {
            return Ok(mem);
        }
        let domain = self.context.domain(place);
        let mem = match &self.parent {
            Some((parent, origin)) => {
                let region = cl_buffer_region {
                    origin: *origin,
                    size: self.size,
                };
                let (whole, flags) = (parent.at(place)?, self.flags & (ACCESS | HOST_ACCESS));
                let (what, region) = (CL_BUFFER_CREATE_TYPE_REGION, (&raw const region).cast());
                driver_object!(domain.table, clCreateSubBuffer(whole, flags, what, region))?
            }
            None => {
                let (flags, none) = (self.flags & ACCESS, ptr::null_mut());
                driver_object!(
                    domain.table,
                    clCreateBuffer(domain.context, flags, self.size, none)
                )?
            }
        };
        copies.mems[place] = Some(mem);
        Ok(mem)
    }

    /// The buffer whose bytes these are, and where in it they begin.
    fn root(&self) -> (&Self, usize) {
        match &self.parent {
            Some((parent, origin)) => (parent, *origin),
            None => (self, 0),
        }
    }

    fn in_root(&self, range: &Range<usize>) -> (&Self, Range<usize>) {
        let (root, origin) = self.root();
        (root, range.start + origin..range.end + origin)
    }

    /// Whether a place has the present bytes of a range.
    pub fn is_valid(&self, range: &Range<usize>, place: usize) -> bool {
        let (root, range) = self.in_root(range);
        root.copies().regions.valid(wide(&range), place)
    }

    /// The bytes of a range that a place does not have and others do.
    pub fn missing_bytes(&self, range: &Range<usize>, place: usize) -> u64 {
        let (root, range) = self.in_root(range);
        let copies = root.copies();
        let missing = copies.regions.missing(wide(&range), place);
        missing.map(|(part, _)| part.end - part.start).sum()
    }

    /// Notes that a place has a range's new bytes, and no other place has them.
    pub fn written(&self, range: &Range<usize>, place: usize) {
        let (root, range) = self.in_root(range);
        root.copies().regions.written(wide(&range), place);
    }

    /// The address of a range in the host's copy.
    pub fn host_address(&self, range: &Range<usize>) -> Fallible<*mut u8> {
        let (root, range) = self.in_root(range);
        root.copies().host_address(root.size, range.start)
    }

    /// Copies to a place what it does not have of a range, after `before`. The result is
    /// what must end before the bytes are there. The place after the last is the host.
    pub fn bring(
        &self,
        queue: &Queue,
        state: &mut State,
        range: &Range<usize>,
        place: usize,
        before: &[Arc<Native>],
    ) -> Fallible<Vec<Arc<Native>>> {
        let (root, range) = self.in_root(range);
        let context = &root.context;
        let host = context.places.len();
        let absent: Vec<_> = root.copies().regions.missing(wide(&range), place).collect();
        for (part, holders) in absent {
            let part = part.start as usize..part.end as usize;
            if !holders.has(host) {
                let from = (0..host).find(|place| holders.has(*place)).ok_or(CL_INVALID_MEM_OBJECT)?;
                root.fetch(queue, state, &part, from, before)?;
            }
            if place != host {
                root.send(queue, state, &part, place, before)?;
            }
        }
        let mut copies = root.copies();
        copies.forget_ended();
        let overlaps = |other: &Range<usize>| other.start < range.end && range.start < other.end;
        let arriving = copies.arriving.iter();
        let arriving = arriving.filter(|(part, at, _)| *at == place && overlaps(part));
        Ok(arriving.map(|(_, _, native)| Arc::clone(native)).collect())
    }

    /// Copies a range from a place to the host.
    fn fetch(
        &self,
        queue: &Queue,
        state: &mut State,
        range: &Range<usize>,
        from: usize,
        before: &[Arc<Native>],
    ) -> Fallible<()> {
        let host = self.context.places.len();
        let lane = queue.lane(state, from)?;
        let mem = self.at(from)?;
        let mut before = before.to_vec();
        before.extend(self.copies().arriving_at(range, from));
        let waits = waits(&self.context, lane.domain, &before)?;
        let address = self.copies().host_address(self.size, range.start)?.cast();
        let mut event = ptr::null_mut();
        check(driver!(
            lane.table,
            clEnqueueReadBuffer(
                lane.queue, mem, CL_FALSE, range.start, range.len(), address,
                waits.count(), waits.events(), &mut event,
            )
        ))?;
        let native = lane.native(event);
        report::moved(state, &lane, range.len(), true, &native);
        self.copies().arrived(range, host, native);
        Ok(())
    }

    /// Copies a range from the host to a place.
    fn send(
        &self,
        queue: &Queue,
        state: &mut State,
        range: &Range<usize>,
        to: usize,
        before: &[Arc<Native>],
    ) -> Fallible<()> {
        let host = self.context.places.len();
        let lane = queue.lane(state, to)?;
        let mem = self.at(to)?;
        let mut before = before.to_vec();
        before.extend(self.copies().arriving_at(range, host));
        let waits = waits(&self.context, lane.domain, &before)?;
        let address = self.copies().host_address(self.size, range.start)?.cast();
        let mut event = ptr::null_mut();
        check(driver!(
            lane.table,
            clEnqueueWriteBuffer(
                lane.queue, mem, CL_FALSE, range.start, range.len(), address,
                waits.count(), waits.events(), &mut event,
            )
        ))?;
        let native = lane.native(event);
        report::moved(state, &lane, range.len(), false, &native);
        self.copies().arrived(range, to, native);
        Ok(())
    }
}

fn wide(range: &Range<usize>) -> Range<u64> {
    range.start as u64..range.end as u64
}

impl Copies {
    fn host_address(&mut self, size: usize, at: usize) -> Fallible<*mut u8> {
        if self.host.is_none() {
            self.host = Some(HostMemory::new(size)?);
        }
        let memory = self.host.as_ref().ok_or(CL_OUT_OF_HOST_MEMORY)?;
        Ok(memory.address().wrapping_add(at))
    }

    fn arriving_at(&self, range: &Range<usize>, place: usize) -> Vec<Arc<Native>> {
        let overlaps = |other: &Range<usize>| other.start < range.end && range.start < other.end;
        let arriving = self.arriving.iter();
        let arriving = arriving.filter(|(part, at, _)| *at == place && overlaps(part));
        arriving.map(|(_, _, native)| Arc::clone(native)).collect()
    }

    fn arrived(&mut self, range: &Range<usize>, place: usize, native: Arc<Native>) {
        self.regions.copied(wide(range), place);
        self.arriving.push((range.clone(), place, native));
    }

    fn forget_ended(&mut self) {
        self.arriving
            .retain(|(_, _, native)| native.execution_status().is_ok_and(|status| status > 0));
    }
}

impl Drop for Mem {
    fn drop(&mut self) {
        let copies = self.copies.get_mut().unwrap_or_else(PoisonError::into_inner);
        for (_, _, native) in &copies.arriving {
            // The host's copy must outlive them.
            let _ = native.wait();
        }
        for (place, mem) in copies.mems.iter().enumerate() {
            if let Some(mem) = mem {
                let _ = driver!(self.context.domain(place).table, clReleaseMemObject(*mem));
            }
        }
        let destructors = self.destructors.get_mut().unwrap_or_else(PoisonError::into_inner);
        for (function, data) in destructors.drain(..).rev() {
            // SAFETY: the program gave the function for this moment. The object is gone,
            // so the handle is an identifier only.
            unsafe { function(ptr::null_mut(), data as *mut c_void) };
        }
    }
}

/// Checks the flags of a buffer.
fn check_flags(flags: cl_mem_flags, host: *mut c_void) -> Fallible<()> {
    let one_of = |flags: cl_mem_flags, set: cl_mem_flags| (flags & set).count_ones() <= 1;
    let pointer = flags & (CL_MEM_USE_HOST_PTR | CL_MEM_COPY_HOST_PTR) != 0;
    if flags & !(ACCESS | HOST_POINTER | HOST_ACCESS) != 0
        || !one_of(flags, ACCESS)
        || !one_of(flags, HOST_ACCESS)
        || (flags & CL_MEM_USE_HOST_PTR != 0
            && flags & (CL_MEM_ALLOC_HOST_PTR | CL_MEM_COPY_HOST_PTR) != 0)
    {
        return Err(CL_INVALID_VALUE);
    }
    if pointer == host.is_null() {
        return Err(CL_INVALID_HOST_PTR);
    }
    Ok(())
}

/// `clCreateBuffer`.
pub unsafe extern "C" fn create_buffer(
    context: cl_context,
    flags: cl_mem_flags,
    size: usize,
    host: *mut c_void,
    code: *mut cl_int,
) -> cl_mem {
    let make = || {
        let context = Ref::<Context>::of(context)?;
        check_flags(flags, host)?;
        if size == 0 {
            return Err(CL_INVALID_BUFFER_SIZE);
        }
        let flags = match flags & ACCESS {
            0 => flags | CL_MEM_READ_WRITE,
            _ => flags,
        };
        // SAFETY: OpenCL's promise about the host pointer.
        Ok(Ref::new(unsafe { Mem::buffer(context, flags, size, host)? }).give())
    };
    // SAFETY: OpenCL's promise about the code.
    unsafe { object(code, make) }
}

/// `clCreateSubBuffer`.
pub unsafe extern "C" fn create_sub_buffer(
    handle: cl_mem,
    flags: cl_mem_flags,
    what: cl_buffer_create_type,
    info: *const c_void,
    code: *mut cl_int,
) -> cl_mem {
    let make = || {
        let parent = Ref::<Mem>::of(handle)?;
        if parent.parent.is_some() || parent.kind != CL_MEM_OBJECT_BUFFER {
            return Err(CL_INVALID_MEM_OBJECT);
        }
        if what != CL_BUFFER_CREATE_TYPE_REGION || info.is_null() || flags & HOST_POINTER != 0 {
            return Err(CL_INVALID_VALUE);
        }
        // SAFETY: OpenCL's promise about the region.
        let region = unsafe { &*info.cast::<cl_buffer_region>() };
        if region.size == 0 {
            return Err(CL_INVALID_BUFFER_SIZE);
        }
        let end = region.origin.checked_add(region.size);
        if end.is_none_or(|end| end > parent.size) {
            return Err(CL_INVALID_VALUE);
        }
        let inherit = |flags: cl_mem_flags, set: cl_mem_flags| match flags & set {
            0 => flags | parent.flags & set,
            _ => flags,
        };
        let narrower = |all: cl_mem_flags, one: cl_mem_flags, allowed: cl_mem_flags| {
            parent.flags & all == 0 || flags & one & !allowed == 0
        };
        if !narrower(CL_MEM_READ_ONLY, ACCESS, CL_MEM_READ_ONLY)
            || !narrower(CL_MEM_WRITE_ONLY, ACCESS, CL_MEM_WRITE_ONLY)
        {
            return Err(CL_INVALID_VALUE);
        }
        let inherited = inherit(inherit(flags, ACCESS), HOST_ACCESS) | parent.flags & HOST_POINTER;
        let part = Ref::new(Mem::part(&parent, inherited, region.origin, region.size));
        if part.context.is_single() {
            // Its driver says now what it thinks of the origin.
            part.at(0)?;
        }
        Ok(part.give())
    };
    // SAFETY: OpenCL's promise about the code.
    unsafe { object(code, make) }
}

/// `clRetainMemObject`.
pub unsafe extern "C" fn retain_mem_object(handle: cl_mem) -> cl_int {
    status(|| Ref::<Mem>::retain(handle))
}

/// `clReleaseMemObject`.
pub unsafe extern "C" fn release_mem_object(handle: cl_mem) -> cl_int {
    status(|| Ref::<Mem>::release(handle))
}

/// `clSetMemObjectDestructorCallback`.
pub unsafe extern "C" fn set_mem_object_destructor_callback(
    handle: cl_mem,
    function: Option<Destructor>,
    data: *mut c_void,
) -> cl_int {
    status(|| {
        let mem = Ref::<Mem>::of(handle)?;
        let function = function.ok_or(CL_INVALID_VALUE)?;
        let mut destructors = mem.destructors.lock().unwrap_or_else(PoisonError::into_inner);
        destructors.push((function, data as usize));
        Ok(())
    })
}

/// `clGetMemObjectInfo`.
pub unsafe extern "C" fn get_mem_object_info(
    handle: cl_mem,
    what: cl_mem_info,
    size: usize,
    value: *mut c_void,
    needed: *mut usize,
) -> cl_int {
    status(|| {
        let mem = Ref::<Mem>::of(handle)?;
        // SAFETY: OpenCL's promises about both pointers.
        let answer = unsafe { Answer::to(size, value, needed) };
        let parent = mem.parent.as_ref();
        match what {
            CL_MEM_TYPE => answer.value(mem.kind),
            CL_MEM_FLAGS => answer.value(mem.flags),
            CL_MEM_SIZE => answer.value(mem.size),
            CL_MEM_HOST_PTR => answer.value(mem.host),
            CL_MEM_MAP_COUNT => {
                let maps = mem.maps.lock().unwrap_or_else(PoisonError::into_inner);
                answer.value(maps.len() as cl_uint)
            }
            CL_MEM_REFERENCE_COUNT => answer.value(mem.users()),
            CL_MEM_CONTEXT => answer.value(mem.context.handle()),
            CL_MEM_ASSOCIATED_MEMOBJECT => {
                answer.value(parent.map_or(ptr::null_mut(), |(parent, _)| parent.handle()))
            }
            CL_MEM_OFFSET => answer.value(parent.map_or(0_usize, |(_, origin)| *origin)),
            _ => Err(CL_INVALID_VALUE),
        }
    })
}
