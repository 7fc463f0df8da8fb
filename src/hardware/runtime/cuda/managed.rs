//! Memory on a GPU that the host reaches, too: CUDA's managed memory. A session on arrays that are
//! on a GPU has it as its host memory, so they enter and leave without passing through the host's.
//!
//! The CPU's access to a page moves it to the host, and the GPU's next one moves it back, which
//! takes a hundred times as long as a copy there. So [`parallel::copy`] and [`parallel::fill`] have
//! the GPU do it.

use std::collections::BTreeMap;
use std::ptr::{NonNull, with_exposed_provenance_mut};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cudarc::driver::sys::{
    self, CUdevice_attribute, CUdeviceptr, CUmem_advise, CUpointer_attribute,
};
use pdawl_base::parallel;

use super::discover::{attribute, handle, start};
use super::error::{Failure, check};
use super::handle::{Context, DeviceMemory, Stream};
use super::memory::bytes;
use crate::codelet::HostMemoryId;
use crate::runtime::{HostRegion, RuntimeError};

/// What is managed: by its begin its end, and the stream of its GPU.
static MANAGED: Mutex<BTreeMap<u64, (u64, Arc<Stream>)>> = Mutex::new(BTreeMap::new());

fn all() -> MutexGuard<'static, BTreeMap<u64, (u64, Arc<Stream>)>> {
    MANAGED.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Managed(DeviceMemory);

impl Drop for Managed {
    fn drop(&mut self) {
        all().remove(&self.0.raw());
    }
}

/// Bytes that are on a GPU, in somebody else's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GpuBytes {
    gpu: usize,
    address: CUdeviceptr,
    bytes: usize,
}

impl GpuBytes {
    /// Bytes from an address on.
    ///
    /// # Errors
    /// When there is no CUDA, and when they are no memory of a GPU.
    pub fn at(address: u64, bytes: usize) -> Result<Self, RuntimeError> {
        start().map_err(|why| failed("cuInit", why))?;
        let is_not = |failure: Failure| {
            let why = failure.describe();
            let why = format!("address {address:#x} is not on a GPU: {why}");
            failed(failure.call, why)
        };
        let asked = |what| number(address, what).map_err(is_not);
        let gpu = asked(CUpointer_attribute::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)? as usize;
        let begin = asked(CUpointer_attribute::CU_POINTER_ATTRIBUTE_RANGE_START_ADDR)?;
        let length = asked(CUpointer_attribute::CU_POINTER_ATTRIBUTE_RANGE_SIZE)?;
        if bytes as u64 > length.saturating_sub(address.saturating_sub(begin)) {
            let why = format!("{bytes} bytes from {address:#x} on are more than are there");
            return Err(failed("cuPointerGetAttribute", why));
        }
        Ok(Self {
            gpu,
            address,
            bytes,
        })
    }

    /// The GPU, by CUDA's number.
    pub fn gpu(&self) -> usize {
        self.gpu
    }

    /// A copy of them in memory of the same GPU, when all that the GPU does has ended.
    ///
    /// # Safety
    /// They must be as they are during the call.
    ///
    /// # Errors
    /// When memory does not suffice, and what the driver refuses.
    pub unsafe fn load(&self) -> Result<HostRegion, RuntimeError> {
        let region = memory_on(self.gpu, self.bytes as u64)?;
        let to = region.address.as_ptr().expose_provenance() as u64;
        // SAFETY: both are as long as that, and of the caller and of this call.
        unsafe { self.moved(to, self.address, "reading an array") }.map(|()| region)
    }

    /// Replaces them with as many bytes.
    ///
    /// # Safety
    /// Nobody else may use them during the call.
    ///
    /// # Errors
    /// What the driver refuses.
    ///
    /// # Panics
    /// When there are more or fewer bytes.
    pub unsafe fn store(&self, from: &[u8]) -> Result<(), RuntimeError> {
        assert_eq!(from.len(), self.bytes, "as many bytes");
        let from = from.as_ptr().expose_provenance() as u64;
        // SAFETY: as above.
        unsafe { self.moved(self.address, from, "writing an array") }
    }

    unsafe fn moved(&self, to: u64, from: u64, call: &'static str) -> Result<(), RuntimeError> {
        let moved = context(self.gpu).and_then(|context| {
            context.within(|| {
                let stream = Stream::new(&context)?;
                // SAFETY: a context is current.
                check("cuCtxSynchronize", unsafe { sys::cuCtxSynchronize() })?;
                // SAFETY: of the caller.
                unsafe { copied(&stream, to, from, self.bytes) }
            })?
        });
        moved.map_err(|failure| failed(call, failure.describe()))
    }
}

/// What the driver knows of an address, as a number of 4 or 8 bytes.
fn number(address: u64, what: CUpointer_attribute) -> Result<u64, Failure> {
    let mut number = 0u64;
    // SAFETY: the driver writes at most so many bytes, or refuses the address.
    let code = unsafe { sys::cuPointerGetAttribute((&raw mut number).cast(), what, address) };
    check("cuPointerGetAttribute", code).map(|()| number)
}

fn failed(call: &'static str, why: String) -> RuntimeError {
    RuntimeError::Call {
        device: "CUDA".to_owned(),
        call,
        why,
    }
}

fn context(gpu: usize) -> Result<Arc<Context>, Failure> {
    Context::primary(handle(gpu)?)
}

/// Memory on a GPU, by CUDA's number.
///
/// # Errors
/// When there is no such GPU, or no room on it, or the system has no such memory.
pub fn memory_on(gpu: usize, bytes: u64) -> Result<HostRegion, RuntimeError> {
    let refuse = |why: String| RuntimeError::OutOfMemory {
        device: format!("memory of cuda{gpu} for arrays"),
        requested: bytes,
        why: format!("{why}; give smaller arrays, or arrays in the host's memory"),
    };
    start().map_err(refuse)?;
    let size = usize::try_from(bytes.max(1)).map_err(|error| refuse(error.to_string()))?;
    let made = context(gpu).and_then(|context| context.within(|| managed(&context, size))?);
    let made = made.map_err(|failure| refuse(failure.describe()))?;
    let address = NonNull::new(with_exposed_provenance_mut(made.0.raw() as usize));
    parallel::move_by(parallel::Mover { copy, fill });
    Ok(HostRegion {
        id: HostMemoryId::fresh(),
        address: address.ok_or_else(|| refuse("it has no address".to_owned()))?,
        bytes,
        keeper: Arc::new(made),
    })
}

fn managed(context: &Arc<Context>, bytes: usize) -> Result<Managed, Failure> {
    let here = context.device();
    let reached = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS;
    if attribute(here, reached)? == 0 {
        let code = sys::CUresult::CUDA_ERROR_NOT_SUPPORTED;
        return Err(Failure {
            call: "cuMemAllocManaged",
            code,
        });
    }
    let memory = Managed(DeviceMemory::managed(context, bytes)?);
    let (stream, begin) = (Arc::new(Stream::new(context)?), memory.0.raw());
    let advise = |advice, device| {
        // SAFETY: the memory is managed and this long.
        let code = unsafe { sys::cuMemAdvise(begin, bytes, advice, device) };
        check("cuMemAdvise", code)
    };
    advise(CUmem_advise::CU_MEM_ADVISE_SET_PREFERRED_LOCATION, here)?;
    let others = (0..).map_while(|gpu| handle(gpu).ok());
    for other in others.filter(|other| *other != here) {
        // Otherwise its first access to each page is a fault.
        advise(CUmem_advise::CU_MEM_ADVISE_SET_ACCESSED_BY, other)?;
    }
    // SAFETY: as above.
    let code = unsafe { sys::cuMemPrefetchAsync(begin, bytes, here, stream.raw()) };
    check("cuMemPrefetchAsync", code)?;
    stream.synchronize()?;
    all().insert(begin, (begin + bytes as u64, stream));
    Ok(memory)
}

/// A stream of the GPU on which these bytes are managed.
fn stream_of(address: u64, bytes: usize) -> Option<Arc<Stream>> {
    let all = all();
    let (_, (end, stream)) = all.range(..=address).next_back()?;
    (address + bytes as u64 <= *end).then(|| Arc::clone(stream))
}

fn copy(to: &mut [u8], from: &[u8]) -> bool {
    let bytes = to.len();
    let ends = [to.as_mut_ptr().cast_const(), from.as_ptr()];
    let [to, from] = ends.map(|end| end.expose_provenance() as u64);
    let stream = stream_of(to, bytes).or_else(|| stream_of(from, bytes));
    // SAFETY: both are as long as that, and borrowed until the copy has ended.
    stream.is_some_and(|stream| unsafe { copied(&stream, to, from, bytes) }.is_ok())
}

/// Copies bytes, wherever they are, and waits.
///
/// # Safety
/// As [`bytes`].
unsafe fn copied(stream: &Stream, to: u64, from: u64, count: usize) -> Result<(), Failure> {
    stream.context().within(|| {
        // SAFETY: of the caller.
        unsafe { bytes(stream, from, to, count) }?;
        stream.synchronize()
    })?
}

fn fill(bytes: &mut [u8], value: u8) -> bool {
    let address = bytes.as_mut_ptr().expose_provenance() as u64;
    let set = |stream: &Stream| {
        // SAFETY: the memory is as long as that, and borrowed until it has ended.
        let code = unsafe { sys::cuMemsetD8Async(address, value, bytes.len(), stream.raw()) };
        check("cuMemsetD8Async", code)?;
        stream.synchronize()
    };
    let stream = stream_of(address, bytes.len());
    stream.is_some_and(|stream| {
        stream
            .context()
            .within(|| set(&stream))
            .is_ok_and(|set| set.is_ok())
    })
}
