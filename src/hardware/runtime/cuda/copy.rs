//! Copies between host memory and devices, and between devices.

use std::sync::Arc;

use cudarc::driver::sys::{self, CUmemorytype};

use super::device::OpenDevice;
use super::error::{Failure, check};
use super::handle::{Context, Stream};
use super::memory::{Allocation, KeepAlive};
use crate::codelet::{BufferId, HostMemoryId, Memory};
use crate::runtime::{HostRegion, IdMap, Location, Rows, RuntimeError};

/// A buffer on a device.
pub(super) struct Buffer {
    pub memory: Arc<Allocation>,
    pub context: Arc<Context>,
    /// Index of its device.
    pub device: usize,
    pub bytes: u64,
}

/// The memory that commands may name.
#[derive(Default)]
pub(super) struct Memories {
    pub buffers: IdMap<BufferId, Buffer>,
    pub hosts: IdMap<HostMemoryId, HostRegion>,
}

impl Memories {
    pub(super) fn buffer(&self, id: BufferId, device: usize) -> Result<&Buffer, RuntimeError> {
        let buffer = self.buffers.get(&id).filter(|b| b.device == device);
        buffer.ok_or(RuntimeError::Unknown {
            what: "buffer of this device",
        })
    }
}

/// One end of a copy, checked: its address, and its context if it is a device's.
struct End<'a> {
    address: u64,
    buffer: Option<&'a Buffer>,
    keeper: KeepAlive,
}

/// Enqueues a copy on a device's stream; returns what must outlive it.
pub(super) fn copy(
    stream: &Stream,
    (index, device): (usize, &mut OpenDevice),
    memories: &Memories,
    (from, to, rows): (Location, Location, Rows),
) -> Result<Vec<KeepAlive>, RuntimeError> {
    let [read, written] = rows.spans();
    let source = end(from, read, device, memories)?;
    let target = end(to, written, device, memories)?;
    let is_own = |end: &End| end.buffer.is_some_and(|buffer| buffer.device == index);
    if !is_own(&source) && !is_own(&target) {
        let what = "buffer of this device";
        return Err(RuntimeError::Unknown { what });
    }
    let keep_alive = vec![Arc::clone(&source.keeper), Arc::clone(&target.keeper)];
    if rows.total() == 0 {
        return Ok(keep_alive);
    }
    let enqueued = match rows.count {
        1 => bytes(stream, &source, &target, rows.bytes as usize),
        _ => rectangle(stream, &source, &target, rows),
    };
    match enqueued {
        Ok(()) => Ok(keep_alive),
        Err(failure) => Err(device.failed(failure)),
    }
}

/// Finds one end of a copy, which must lie within its memory.
fn end<'a>(
    Location { memory, offset }: Location,
    bytes: u64,
    device: &OpenDevice,
    memories: &'a Memories,
) -> Result<End<'a>, RuntimeError> {
    let (what, length, end) = match memory {
        Memory::Host(id) => {
            let region = memories.hosts.get(&id).ok_or(RuntimeError::Unknown {
                what: "host memory",
            })?;
            let end = End {
                address: region.address.as_ptr().addr() as u64,
                buffer: None,
                keeper: Arc::clone(&region.keeper) as KeepAlive,
            };
            ("host memory", region.bytes, end)
        }
        Memory::Device(id) => {
            let buffer = memories.buffers.get(&id);
            let buffer = buffer.ok_or(RuntimeError::Unknown { what: "buffer" })?;
            let end = End {
                address: buffer.memory.address(),
                buffer: Some(buffer),
                keeper: Arc::clone(&buffer.memory) as KeepAlive,
            };
            ("buffer", buffer.bytes, end)
        }
    };
    if offset.checked_add(bytes).is_none_or(|end| end > length) {
        return Err(RuntimeError::Call {
            device: device.info.name.clone(),
            call: "a copy",
            why: format!("{bytes} bytes at {offset} do not lie within a {what} of {length} bytes"),
        });
    }
    Ok(End {
        address: end.address + offset,
        ..end
    })
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
                    target.context.raw(),
                    from.address,
                    source.context.raw(),
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
