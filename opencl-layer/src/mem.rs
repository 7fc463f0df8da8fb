//! Memory objects. One of ours has a copy at each place that used it, and one in host
//! memory, through which bytes go from place to place.

use std::ops::Range;
use std::ptr;
use std::sync::Arc;

use libc::c_void;
use opencl_sys::*;
use pdawl_api::residency::Regions;

use crate::context::Context;
use crate::domain::Own;
use crate::handle::{Ref, kind};
use crate::host_memory::HostMemory;
use crate::host_memory::Pinned;
use crate::lock::{COPIES, Guard, MAPS, Mutex, VIEW};
use crate::native::Native;
use crate::process_end::Ending;
use crate::status::{Fallible, driver_object};

mod bring;
pub mod calls;

/// A memory object.
pub struct Mem {
    pub context: Ref<Context>,
    pub kind: cl_mem_object_type,
    pub flags: cl_mem_flags,
    pub size: usize,
    /// The program's memory of `CL_MEM_USE_HOST_PTR`.
    pub host: *mut c_void,
    /// For a sub-buffer or an image in a buffer: the buffer, and where in it this begins.
    pub parent: Option<(Ref<Mem>, usize)>,
    copies: Mutex<Copies, COPIES>,
    /// For an image: what it has more, and the only place that has it.
    pub image: Option<Image>,
    pub only_place: Option<usize>,
    /// For a buffer in the program's memory that shows its bytes there.
    pub view: Option<HostView>,
    pub maps: Mutex<Vec<Mapped>, MAPS>,
    ending: Arc<Ending>,
}

/// What a memory object has more if it is an image.
pub struct Image {
    /// Bytes of an element.
    pub element: usize,
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
    mems: Vec<Option<Own>>,
    /// Which bytes are where; the host is the last place.
    regions: Regions,
    host: Option<HostMemory>,
    /// Hidden copies that may not have ended: what they fill, and where.
    arriving: Vec<(Range<usize>, usize, Arc<Native>)>,
    /// What a thread of ours writes to the host's copy until an event has ended.
    merging: Vec<(Range<usize>, Arc<Native>)>,
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
    /// An object without copies.
    fn new(
        context: Ref<Context>,
        (kind, flags): (cl_mem_object_type, cl_mem_flags),
        size: usize,
        host: *mut c_void,
        parent: Option<(Ref<Self>, usize)>,
    ) -> Self {
        let places = context.places.len();
        Self {
            context,
            kind,
            flags,
            size,
            host: match flags & CL_MEM_USE_HOST_PTR {
                0 => ptr::null_mut(),
                _ => host,
            },
            parent,
            copies: Mutex::new(Copies {
                mems: (0..places).map(|_| None).collect(),
                regions: Regions::new(size as u64),
                host: None,
                arriving: Vec::new(),
                merging: Vec::new(),
            }),
            image: None,
            only_place: None,
            view: None,
            maps: Mutex::default(),
            ending: Arc::default(),
        }
    }

    /// # Safety
    /// `host` is null or valid for `size` bytes, for as long as `flags` say.
    unsafe fn buffer(
        context: Ref<Context>,
        flags: cl_mem_flags,
        size: usize,
        host: *mut c_void,
    ) -> Fallible<Self> {
        let places = context.places.len();
        let mut mem = Self::new(context, (CL_MEM_OBJECT_BUFFER, flags), size, host, None);
        let copies = mem.copies.get_mut();
        if mem.context.is_single() {
            // The driver does what the flags say.
            copies.mems[0] = Some(mem.context.domain(0).buffer(flags, size, host)?);
        } else if flags & CL_MEM_USE_HOST_PTR != 0 {
            copies.host = Some(HostMemory::borrowed(host.cast()));
        } else if flags & CL_MEM_COPY_HOST_PTR != 0 {
            let memory = host_memory(&mem.context, flags, size)?;
            // SAFETY: both have `size` bytes, and ours is new.
            unsafe { ptr::copy_nonoverlapping(host.cast::<u8>(), memory.address(), size) };
            copies.host = Some(memory);
        }
        if copies.host.is_some() {
            copies.regions.written(0..size as u64, places);
        }
        Ok(mem)
    }

    fn part(parent: &Ref<Self>, flags: cl_mem_flags, origin: usize, size: usize) -> Self {
        let host = match parent.host.is_null() {
            true => ptr::null_mut(),
            false => parent.host.cast::<u8>().wrapping_add(origin).cast(),
        };
        let what = (CL_MEM_OBJECT_BUFFER, flags);
        let of = Some((parent.clone(), origin));
        Self::new(parent.context.clone(), what, size, host, of)
    }

    /// An image that a driver has made at its place.
    pub fn image(
        context: Ref<Context>,
        what: (cl_mem_object_type, cl_mem_flags),
        size: usize,
        host: *mut c_void,
        (image, only_place, native): (Image, usize, Own),
        buffer: Option<Ref<Self>>,
    ) -> Self {
        let mut mem = Self::new(context, what, size, host, buffer.map(|buffer| (buffer, 0)));
        let copies = mem.copies.get_mut();
        copies.mems[only_place] = Some(native);
        copies.regions.written(0..size as u64, only_place);
        (mem.image, mem.only_place) = (Some(image), Some(only_place));
        mem
    }

    /// An object of a context and of the right kind.
    pub fn of(
        context: &Ref<Context>,
        handle: cl_mem,
        is_right: impl FnOnce(&Self) -> bool,
    ) -> Fallible<Ref<Self>> {
        let mem = Ref::<Self>::of(handle)?;
        match (is_right(&mem), mem.context == *context) {
            (false, _) => Err(CL_INVALID_MEM_OBJECT),
            (_, false) => Err(CL_INVALID_CONTEXT),
            _ => Ok(mem),
        }
    }

    /// The flags of a part of it, or of an image in it: its own hold where these have none.
    pub fn inherited(&self, flags: cl_mem_flags) -> cl_mem_flags {
        let sets = [ACCESS, HOST_ACCESS].into_iter();
        sets.fold(flags, |flags, set| match flags & set {
            0 => flags | self.flags & set,
            _ => flags,
        })
    }

    /// Refuses what the host does, if it may do nothing or the flags have `refused`.
    pub fn check_host_access(&self, refused: cl_mem_flags) -> Fallible<()> {
        match self.flags & (refused | CL_MEM_HOST_NO_ACCESS) {
            0 => Ok(()),
            _ => Err(CL_INVALID_OPERATION),
        }
    }

    fn copies(&self) -> Guard<'_, Copies, COPIES> {
        self.copies.lock()
    }

    /// The driver's memory object at a place, made when it is first used.
    pub fn at(&self, place: usize) -> Fallible<cl_mem> {
        let known = |copies: &Copies| copies.mems[place].as_ref().map(Own::handle);
        if let Some(mem) = known(&self.copies()) {
            return Ok(mem);
        }
        if self.image.is_some() {
            return Err(CL_INVALID_OPERATION);
        }
        // One lock after the other: both have the same rank.
        let whole = self.parent.as_ref().map(|(parent, _)| parent.at(place));
        let whole = whole.transpose()?;
        let mut copies = self.copies();
        if let Some(mem) = known(&copies) {
            return Ok(mem);
        }
        let domain = self.context.domain(place);
        let mem = match (&self.parent, whole) {
            (Some((_, origin)), Some(whole)) => {
                let region = cl_buffer_region {
                    origin: *origin,
                    size: self.size,
                };
                let flags = self.flags & (ACCESS | HOST_ACCESS);
                let (what, region) = (CL_BUFFER_CREATE_TYPE_REGION, (&raw const region).cast());
                let table = domain.table;
                let mem = driver_object!(table, clCreateSubBuffer(whole, flags, what, region))?;
                Own::new(mem, table.clReleaseMemObject)
            }
            _ => domain.buffer(self.flags & ACCESS, self.size, ptr::null_mut())?,
        };
        let handle = mem.handle();
        copies.mems[place] = Some(mem);
        if self.ending.is_wanted() {
            Ending::after(&self.ending, domain.table, handle)?;
        }
        Ok(handle)
    }

    /// The buffer whose bytes these are, and where in it they begin.
    fn root(&self) -> (&Self, usize) {
        match &self.parent {
            Some((parent, origin)) => {
                let (root, before) = parent.root();
                (root, before + origin)
            }
            None => (self, 0),
        }
    }

    /// Whether two ranges, of buffers that may be parts of one, share bytes.
    pub fn overlaps(&self, range: Range<usize>, other: &Self, with: Range<usize>) -> bool {
        let ((one, range), (two, with)) = (self.in_root(&range), other.in_root(&with));
        ptr::eq(one, two) && range.start < with.end && with.start < range.end
    }

    pub fn in_root(&self, range: &Range<usize>) -> (&Self, Range<usize>) {
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

    /// Notes that a thread of ours writes a range of the host's copy until `end` has ended,
    /// and that no other place has the bytes.
    pub fn merged_until(&self, range: &Range<usize>, end: &Arc<Native>) {
        let host = self.context.places.len();
        let (root, range) = self.in_root(range);
        let mut copies = root.copies();
        copies.regions.written(wide(&range), host);
        copies.merging.push((range, Arc::clone(end)));
    }

    /// Takes what the host has of a range as the contents of bytes that nobody has written.
    /// Places whose bytes are compared must begin with the same ones.
    pub fn define(&self, range: &Range<usize>) {
        let host = self.context.places.len();
        let (root, range) = self.in_root(range);
        let mut copies = root.copies();
        let parts = copies.regions.parts(wide(&range));
        let undefined: Vec<_> = parts.filter(|(_, places)| places.is_empty()).collect();
        for (part, _) in undefined {
            copies.regions.written(part, host);
        }
    }

    /// Takes what the host has of a range as new bytes, which no other place has.
    pub fn host_may_have_written(&self, range: &Range<usize>) {
        let host = self.context.places.len();
        let mut copies = self.copies();
        let parts = copies
            .regions
            .parts(wide(range))
            .filter(|(_, places)| places.has(host));
        let parts: Vec<_> = parts.map(|(part, _)| part).collect();
        for part in parts {
            copies.regions.written(part, host);
        }
    }

    /// The address of a range in the host's copy.
    pub fn host_address(&self, range: &Range<usize>) -> Fallible<*mut u8> {
        let (root, range) = self.in_root(range);
        root.copies().host_address(root, range.start)
    }
}

impl Context {
    /// The buffers that show their bytes in the program's memory.
    pub fn viewed(&self) -> Vec<Ref<Mem>> {
        let mut mems = self.viewed.alive();
        mems.retain(|mem: &Ref<Mem>| ptr::eq(&*mem.context, self));
        mems
    }
}

/// Memory for the host's copy. Programs map `CL_MEM_ALLOC_HOST_PTR` to have memory that GPUs'
/// drivers have pinned.
fn host_memory(context: &Context, flags: cl_mem_flags, size: usize) -> Fallible<HostMemory> {
    let is_gpu = |place: &usize| context.places[*place].real.kind & CL_DEVICE_TYPE_GPU != 0;
    let gpu = (0..context.places.len()).find(is_gpu);
    let pinned = gpu
        .filter(|_| flags & CL_MEM_ALLOC_HOST_PTR != 0)
        .and_then(|gpu| Pinned::new(context.site(gpu), size).ok());
    match pinned {
        Some(pinned) => Ok(HostMemory::pinned(pinned)),
        None => HostMemory::new(size),
    }
}

fn wide(range: &Range<usize>) -> Range<u64> {
    range.start as u64..range.end as u64
}

impl Copies {
    fn host_address(&mut self, of: &Mem, at: usize) -> Fallible<*mut u8> {
        if self.host.is_none() {
            self.host = Some(host_memory(&of.context, of.flags, of.size)?);
        }
        let memory = self.host.as_ref().ok_or(CL_OUT_OF_HOST_MEMORY)?;
        Ok(memory.address().wrapping_add(at))
    }
}

impl Drop for Mem {
    fn drop(&mut self) {
        let copies = self.copies.get_mut();
        for (_, _, native) in &copies.arriving {
            // The host's copy must outlive them.
            let _ = native.wait();
        }
        copies.mems.clear();
    }
}

/// The flags of a memory object that kernels may read and write, unless they say otherwise.
pub fn with_access(flags: cl_mem_flags) -> cl_mem_flags {
    match flags & ACCESS {
        0 => flags | CL_MEM_READ_WRITE,
        _ => flags,
    }
}

/// Whether flags are known, those for access and some others, and do not contradict each other.
fn are_consistent(flags: cl_mem_flags, others: cl_mem_flags) -> bool {
    let one_of = |set: cl_mem_flags| (flags & set).count_ones() <= 1;
    flags & !(ACCESS | HOST_ACCESS | others) == 0 && one_of(ACCESS) && one_of(HOST_ACCESS)
}

/// Checks the flags of a memory object.
pub fn check_flags(flags: cl_mem_flags, host: *mut c_void) -> Fallible<()> {
    let pointer = flags & (CL_MEM_USE_HOST_PTR | CL_MEM_COPY_HOST_PTR) != 0;
    let other = flags & (CL_MEM_ALLOC_HOST_PTR | CL_MEM_COPY_HOST_PTR) != 0;
    if !are_consistent(flags, HOST_POINTER) || (flags & CL_MEM_USE_HOST_PTR != 0 && other) {
        return Err(CL_INVALID_VALUE);
    }
    match pointer == host.is_null() {
        true => Err(CL_INVALID_HOST_PTR),
        false => Ok(()),
    }
}

/// What a buffer in a program's memory has more.
#[derive(Default)]
pub struct HostView {
    /// Commands that wrote the buffer, until the program's memory has their bytes.
    writers: Mutex<Vec<(Range<usize>, Arc<Native>)>, VIEW>,
}

impl HostView {
    /// Notes a command that writes a range.
    pub fn written(&self, range: Range<usize>, native: &Arc<Native>) {
        let mut writers = self.writers.lock();
        // What is written again is brought with the later command's bytes.
        writers.retain(|(other, _)| other.start < range.start || range.end < other.end);
        writers.push((range, Arc::clone(native)));
    }

    /// The ranges whose writers have all ended; they are forgotten.
    pub fn take_ended(&self) -> Vec<Range<usize>> {
        let mut writers = self.writers.lock();
        let has_ended = |native: &Native| native.execution_status().is_ok_and(|status| status <= 0);
        let (mut ended, mut running): (Vec<_>, Vec<_>) =
            writers.drain(..).partition(|(_, native)| has_ended(native));
        let meets = |range: &Range<usize>| {
            running
                .iter()
                .any(|(other, _)| other.start < range.end && range.start < other.end)
        };
        let (kept, whole): (Vec<_>, Vec<_>) = ended.drain(..).partition(|(range, _)| meets(range));
        running.extend(kept);
        *writers = running;
        whole.into_iter().map(|(range, _)| range).collect()
    }
}
