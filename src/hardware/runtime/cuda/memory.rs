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
    pub context: Arc<Context>,
    unused: Arc<Unused>,
}

impl Allocation {
    pub(super) fn new(memory: DeviceMemory, bytes: usize, unused: &Arc<Unused>) -> Self {
        Self {
            address: memory.raw(),
            context: Arc::clone(memory.context()),
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

/// One end of a copy, checked: its address, and its memory if it is a device's.
struct End<'a> {
    address: u64,
    buffer: Option<&'a driven::Buffer<Allocation>>,
}

impl<'a> End<'a> {
    fn of(end: &driven::End<'a, Allocation>, offset: u64) -> Self {
        let (address, buffer) = match end {
            driven::End::Host(region) => (region.address.as_ptr().addr() as u64, None),
            driven::End::Buffer(buffer) => (buffer.memory.address(), Some(*buffer)),
        };
        Self {
            address: address + offset,
            buffer,
        }
    }
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
    let [source, target] = [End::of(&ends[0], from.offset), End::of(&ends[1], to.offset)];
    let stream = &here.queue.own.stream;
    let enqueued = match rows.count {
        1 => bytes(stream, &source, &target, rows.bytes as usize),
        _ => rectangle(stream, &source, &target, rows),
    };
    match enqueued {
        Ok(()) => Ok(keep_alive),
        Err(failure) => Err(here.device.failed(failure)),
    }
}

/// Copies bytes that follow one another.
fn bytes(stream: &Stream, from: &End, to: &End, bytes: usize) -> Result<(), Failure> {
    let stream = stream.raw();
    // SAFETY: both ends were checked, who enqueues the command keeps their memory until it
    // has ended, and events order other accesses to these bytes.
    unsafe {
        match (from.buffer, to.buffer) {
            (None, _) => {
                let host = std::ptr::with_exposed_provenance(from.address as usize);
                let code = sys::cuMemcpyHtoDAsync_v2(to.address, host, bytes, stream);
                check("cuMemcpyHtoDAsync", code)
            }
            (_, None) => {
                let host = std::ptr::with_exposed_provenance_mut(to.address as usize);
                let code = sys::cuMemcpyDtoHAsync_v2(host, from.address, bytes, stream);
                check("cuMemcpyDtoHAsync", code)
            }
            (Some(source), Some(target)) if source.device == target.device => {
                let code = sys::cuMemcpyDtoDAsync_v2(to.address, from.address, bytes, stream);
                check("cuMemcpyDtoDAsync", code)
            }
            (Some(source), Some(target)) => {
                let code = sys::cuMemcpyPeerAsync(
                    to.address,
                    target.memory.context.raw(),
                    from.address,
                    source.memory.context.raw(),
                    bytes,
                    stream,
                );
                check("cuMemcpyPeerAsync", code)
            }
        }
    }
}

/// Copies rows at pitches of their own.
fn rectangle(stream: &Stream, from: &End, to: &End, rows: Rows) -> Result<(), Failure> {
    // Addresses of several devices are in one space, where the devices reach each other.
    let crosses = from.buffer.zip(to.buffer);
    let is_peer = crosses.is_some_and(|(source, target)| source.device != target.device);
    let kind = |end: &End| match end.buffer {
        None => CUmemorytype::CU_MEMORYTYPE_HOST,
        Some(_) if is_peer => CUmemorytype::CU_MEMORYTYPE_UNIFIED,
        Some(_) => CUmemorytype::CU_MEMORYTYPE_DEVICE,
    };
    let host = |end: &End| match end.buffer {
        None => end.address as usize,
        Some(_) => 0,
    };
    let device = |end: &End| match end.buffer {
        None => 0,
        Some(_) => end.address,
    };
    let copy = sys::CUDA_MEMCPY2D {
        srcXInBytes: 0,
        srcY: 0,
        srcMemoryType: kind(from),
        srcHost: std::ptr::with_exposed_provenance(host(from)),
        srcDevice: device(from),
        srcArray: std::ptr::null_mut(),
        srcPitch: rows.from_pitch as usize,
        dstXInBytes: 0,
        dstY: 0,
        dstMemoryType: kind(to),
        dstHost: std::ptr::with_exposed_provenance_mut(host(to)),
        dstDevice: device(to),
        dstArray: std::ptr::null_mut(),
        dstPitch: rows.to_pitch as usize,
        WidthInBytes: rows.bytes as usize,
        Height: rows.count as usize,
    };
    // SAFETY: as for `bytes`; the description is read before the call returns.
    let code = unsafe { sys::cuMemcpy2DAsync_v2(&copy, stream.raw()) };
    check("cuMemcpy2DAsync", code)
}
