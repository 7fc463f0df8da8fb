//! Memory of devices, whose release waits until nothing runs; host memory, pinned; and copies
//! between host memory and devices, and between devices.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::backend::Here;
use super::error::{Failure, check};
use super::handle::{Context, DeviceMemory, PinnedMemory, Registration, Stream};
use crate::codelet::HostMemoryId;
use crate::runtime::driven::{self, KeepAlive};
use crate::runtime::host::map_memory;
use crate::runtime::{HostRegion, Location, Rows, RuntimeError};
use cudarc::driver::sys;
use cudarc::driver::sys::CUmemorytype;
use pdawl_base::parallel;

/// Memory of a device that nobody uses any more, with its bytes, the oldest first. To return
/// it, the driver waits for all that the device does, so it is kept until the device needs
/// the room, or is idle and has more than it ever had in use.
#[derive(Default)]
pub(super) struct Unused(Mutex<Vec<(usize, DeviceMemory)>>);

impl Unused {
    fn lock(&self) -> MutexGuard<'_, Vec<(usize, DeviceMemory)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Memory of so many bytes, if there is any.
    pub(super) fn take(&self, bytes: usize) -> Option<DeviceMemory> {
        let mut all = self.lock();
        let last = all.iter().rposition(|(has, _)| *has == bytes)?;
        Some(all.remove(last).1)
    }

    /// Returns all of it. Whether there was any.
    pub(super) fn release(&self) -> bool {
        let memory = std::mem::take(&mut *self.lock());
        !memory.is_empty()
    }

    /// Returns what is more than `most` bytes, the oldest first.
    pub(super) fn release_beyond(&self, most: u64) {
        let mut all = self.lock();
        let mut has: u64 = all.iter().map(|(bytes, _)| *bytes as u64).sum();
        let is_surplus = |(bytes, _): &&(usize, DeviceMemory)| {
            let is_surplus = has > most;
            has -= *bytes as u64;
            is_surplus
        };
        let surplus = all.iter().take_while(is_surplus).count();
        let surplus: Vec<_> = all.drain(..surplus).collect();
        drop(all);
        drop(surplus);
    }
}

/// Memory of a device.
pub(super) struct Allocation {
    /// `Some` until it is dropped.
    memory: Option<DeviceMemory>,
    address: u64,
    bytes: usize,
    unused: Arc<Unused>,
}

impl Allocation {
    pub(super) fn new(memory: DeviceMemory, bytes: usize, unused: &Arc<Unused>) -> Self {
        Self {
            address: memory.raw(),
            memory: Some(memory),
            bytes,
            unused: Arc::clone(unused),
        }
    }

    pub(super) fn address(&self) -> u64 {
        self.address
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        if let Some(memory) = self.memory.take() {
            self.unused.lock().push((self.bytes, memory));
        }
    }
}

/// From so many bytes on, memory is mapped, touched and then pinned in place. The driver's own
/// allocation makes small pages on one core, and takes several times as long; it serves for little
/// memory, of which a process may have more pieces than the system allows mappings.
const LARGE: u64 = 2 << 20;

/// Bytes of the smallest page, and those that one thread touches at a time.
const PAGE: usize = 4096;
const TOUCHED: usize = 2 << 20;

/// Host memory that every device copies from and to at full speed.
pub(super) fn pinned(context: &Arc<Context>, bytes: u64) -> Result<HostRegion, RuntimeError> {
    if bytes >= LARGE {
        let mut region = map_memory("host", bytes)?;
        touch(&region);
        if pin_in_place(&mut region, context).is_ok() {
            return Ok(region);
        }
    }
    // Some drivers pin only what is their own.
    driver_memory(context, bytes)
}

/// Has the system make the pages, on all cores.
fn touch(region: &HostRegion) {
    // SAFETY: the region is mapped, of plain bytes, as long as that and not yet known to
    // anybody else.
    let bytes =
        unsafe { std::slice::from_raw_parts_mut(region.address.as_ptr(), region.bytes as usize) };
    parallel::pieces(bytes, TOUCHED, |_, piece| {
        piece.iter_mut().step_by(PAGE).for_each(|byte| *byte = 0);
    });
}

/// Host memory that the driver allocates.
fn driver_memory(context: &Arc<Context>, bytes: u64) -> Result<HostRegion, RuntimeError> {
    let refuse = |why: String| RuntimeError::OutOfMemory {
        device: "pinned host memory for CUDA".to_owned(),
        requested: bytes,
        why: format!("{why}; lower the size, or raise the limit on locked memory (ulimit -l)"),
    };
    let size = usize::try_from(bytes).map_err(|error| refuse(error.to_string()))?;
    let memory = PinnedMemory::new(context, size).map_err(|f| refuse(f.describe()))?;
    let address = memory
        .address()
        .ok_or_else(|| refuse("it has no address".to_owned()))?;
    Ok(HostRegion {
        id: HostMemoryId::fresh(),
        address,
        bytes,
        keeper: Arc::new(memory),
    })
}

/// Memory of somebody else that was pinned.
struct PinnedInPlace {
    /// Dropped before the memory that it pins.
    _registration: Registration,
    _keeper: KeepAlive,
}

/// Pins a region for as long as commands use it.
///
/// # Errors
/// What the driver refuses, such as memory that is pinned already. Copies are then those of
/// unpinned memory.
pub(super) fn pin_in_place(region: &mut HostRegion, context: &Arc<Context>) -> Result<(), Failure> {
    let bytes = usize::try_from(region.bytes.max(1)).unwrap_or(usize::MAX);
    // SAFETY: the region is that long, and its keeper, which is dropped after the
    // registration, keeps it mapped.
    let registration = unsafe { Registration::new(context, region.address, bytes) }?;
    region.keeper = Arc::new(PinnedInPlace {
        _registration: registration,
        _keeper: Arc::clone(&region.keeper),
    });
    Ok(())
}

/// The address of an end of a copy.
fn address(end: &driven::End<Allocation>, offset: u64) -> u64 {
    let begin = match end {
        driven::End::Host(region) => region.address.as_ptr().addr() as u64,
        driven::End::Buffer(buffer) => buffer.memory.address(),
    };
    begin + offset
}

/// Enqueues a copy; returns what must outlive it.
pub(super) fn copy(
    here: &Here<'_>,
    (from, to, rows): (Location, Location, Rows),
) -> Result<Vec<KeepAlive>, RuntimeError> {
    let on = (here.index, &*here.device);
    let ends = here.memories.ends(on, (from, to, rows))?;
    let keep_alive = ends.iter().map(driven::End::keeper).collect();
    if rows.total() == 0 {
        return Ok(keep_alive);
    }
    let [from, to] = [address(&ends[0], from.offset), address(&ends[1], to.offset)];
    let stream = &here.queue.own.stream;
    let enqueued = match rows.count {
        // SAFETY: both ends were checked, who enqueues the command keeps their memory until it has
        // ended, and events order other accesses to these bytes.
        1 => unsafe { bytes(stream, from, to, rows.bytes as usize) },
        _ => rectangle(stream, from, to, rows),
    };
    match enqueued {
        Ok(()) => Ok(keep_alive),
        Err(failure) => Err(here.device.failed(failure)),
    }
}

/// Copies bytes that follow one another. All memory has addresses of one space, by which the driver
/// knows where it is.
///
/// # Safety
/// Both ends must be as long as that until the copy has ended, and nobody may write them or read
/// what is written.
pub(super) unsafe fn bytes(
    stream: &Stream,
    from: u64,
    to: u64,
    bytes: usize,
) -> Result<(), Failure> {
    // SAFETY: of the caller.
    let code = unsafe { sys::cuMemcpyAsync(to, from, bytes, stream.raw()) };
    check("cuMemcpyAsync", code)
}

/// Copies rows at pitches of their own.
fn rectangle(stream: &Stream, from: u64, to: u64, rows: Rows) -> Result<(), Failure> {
    let copy = sys::CUDA_MEMCPY2D {
        srcXInBytes: 0,
        srcY: 0,
        srcMemoryType: CUmemorytype::CU_MEMORYTYPE_UNIFIED,
        srcHost: std::ptr::null(),
        srcDevice: from,
        srcArray: std::ptr::null_mut(),
        srcPitch: rows.from_pitch as usize,
        dstXInBytes: 0,
        dstY: 0,
        dstMemoryType: CUmemorytype::CU_MEMORYTYPE_UNIFIED,
        dstHost: std::ptr::null_mut(),
        dstDevice: to,
        dstArray: std::ptr::null_mut(),
        dstPitch: rows.to_pitch as usize,
        WidthInBytes: rows.bytes as usize,
        Height: rows.count as usize,
    };
    // SAFETY: as for one row; the description is read before the call returns.
    let code = unsafe { sys::cuMemcpy2DAsync_v2(&copy, stream.raw()) };
    check("cuMemcpy2DAsync", code)
}
