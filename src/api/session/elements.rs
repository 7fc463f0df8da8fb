//! Elements of results, here or on the GPU on which a session's arrays are.

use std::ptr::NonNull;
use std::sync::Arc;
use std::{io, slice};

use bytemuck::Pod;

use super::{Error, Session};
use crate::engine::cluster::Sink;
use crate::matrix::Shared;
use crate::parallel;
use crate::runtime::HostRegion;
use crate::runtime::cuda::{GpuBytes, memory_on};

/// Elements that come as bytes.
pub struct Elements<T> {
    elements: Stored<T>,
    filled: usize,
}

enum Stored<T> {
    Here(Vec<T>),
    /// On the GPU on which the session's arrays are.
    OnGpu(HostRegion),
}

impl<T: Pod + Send + Sync> Elements<T> {
    /// Room for so many.
    pub fn new(arrays_on: Option<usize>, count: usize) -> Result<Self, Error> {
        let elements = match arrays_on {
            None => Stored::Here(vec![T::zeroed(); count]),
            Some(gpu) => Stored::OnGpu(memory_on(gpu, (count * size_of::<T>()) as u64)?),
        };
        Ok(Self {
            elements,
            filled: 0,
        })
    }

    fn bytes(&mut self) -> &mut [u8] {
        match &mut self.elements {
            Stored::Here(elements) => bytemuck::cast_slice_mut(elements),
            // SAFETY: it is mapped, so long, and of nobody else.
            Stored::OnGpu(region) => unsafe {
                slice::from_raw_parts_mut(region.address.as_ptr(), region.bytes as usize)
            },
        }
    }

    /// What has come.
    pub fn take(self) -> Shared<T> {
        match self.elements {
            Stored::Here(elements) => elements.into(),
            Stored::OnGpu(region) => shared(region),
        }
    }
}

/// A copy of bytes.
///
/// # Errors
/// When memory does not suffice.
pub fn copied(arrays_on: Option<usize>, bytes: &[u8]) -> Result<Shared<u8>, Error> {
    let mut copy = Elements::new(arrays_on, bytes.len())?;
    parallel::copy(copy.bytes(), bytes);
    Ok(copy.take())
}

/// The elements of a region, of which there is no other clone.
fn shared<T>(region: HostRegion) -> Shared<T> {
    let count = region.bytes as usize / size_of::<T>();
    let elements = NonNull::slice_from_raw_parts(region.address.cast(), count);
    // SAFETY: the keeper has the memory, which nobody else knows.
    unsafe { Shared::new(elements, Arc::new(region.keeper)) }
}

impl<T: Pod + Send + Sync> Sink for Elements<T> {
    fn begin(&mut self) -> io::Result<()> {
        self.filled = 0;
        Ok(())
    }

    fn next(&mut self, bytes: &[u8]) -> io::Result<()> {
        let filled = self.filled;
        let to = self.bytes().get_mut(filled..filled + bytes.len());
        parallel::copy(to.ok_or(io::ErrorKind::WriteZero)?, bytes);
        self.filled += bytes.len();
        Ok(())
    }
}

impl Session {
    /// Bytes on the GPU on which arrays are, or here.
    ///
    /// # Errors
    /// When memory does not suffice.
    pub fn memory(&self, bytes: usize) -> Result<Shared<u8>, Error> {
        Ok(Elements::new(self.arrays_on, bytes)?.take())
    }

    /// A copy of bytes that are on a GPU, in memory there that the host reaches.
    ///
    /// # Safety
    /// Nobody may free or write them during the call.
    ///
    /// # Errors
    /// When memory does not suffice, and what the driver refuses.
    pub unsafe fn load(&self, bytes: GpuBytes) -> Result<Shared<u8>, Error> {
        // SAFETY: of the caller.
        Ok(shared(unsafe { bytes.load() }?))
    }
}
