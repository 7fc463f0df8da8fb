//! Copies between host memory and devices, and between devices.

use cudarc::driver::sys::{self, CUmemorytype};

use super::backend::Here;
use super::error::{Failure, check};
use super::handle::Stream;
use super::memory::Allocation;
use crate::runtime::driven::{self, KeepAlive};
use crate::runtime::{Location, Rows, RuntimeError};

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
