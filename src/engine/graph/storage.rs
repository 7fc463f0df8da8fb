//! The memory of a graph's data: in the host, and on devices with memory of their
//! own.

use crate::codelet::{BufferId, HostMemoryId, Memory};
use crate::graph::{Argument, Components, DatumId, KernelId, TaskGraph};
use crate::machine::Device;
use crate::runtime::{DeviceId, Runtime, RuntimeError};

use super::GraphRunError;

/// Bytes of a unit of the copying codelet. Host memory that is copied between
/// versions of a datum is a multiple of it.
pub(super) const COPY_UNIT: u64 = 4096;

/// The memory of a prepared graph, allocated when something first needs it.
pub(super) struct Storage {
    /// By datum.
    host: Vec<Option<HostMemoryId>>,
    /// By device and datum; only first versions have any.
    buffers: Vec<Vec<Option<BufferId>>>,
    /// By datum: the first version of those that share its buffer.
    first: Vec<usize>,
    /// By first version: all of them, if there are several.
    versions: Vec<Vec<DatumId>>,
    /// By datum: the same in host memory, where a version that another component
    /// or the host may still need is never overwritten.
    host_first: Vec<usize>,
    /// By datum: whether its host memory is copied from or to.
    copied: Vec<bool>,
    /// By device and component: whether all memory is allocated.
    ready: Vec<Vec<bool>>,
    /// Bytes of buffers by device.
    bytes: Vec<u64>,
}

impl Storage {
    pub fn new(graph: &TaskGraph, components: &Components, devices: usize) -> Self {
        let data = graph.data().len();
        let mut made = Self {
            host: vec![None; data],
            buffers: vec![vec![None; data]; devices],
            first: (0..data).collect(),
            versions: vec![Vec::new(); data],
            host_first: (0..data).collect(),
            copied: vec![false; data],
            ready: vec![vec![false; components.len()]; devices],
            bytes: vec![0; devices],
        };
        for kernel in graph.order() {
            for argument in &graph.kernel(*kernel).arguments {
                let Argument::InOut { from, to } = argument else {
                    continue;
                };
                let first = made.first[from.0];
                made.first[to.0] = first;
                if made.versions[first].is_empty() {
                    made.versions[first].push(*from);
                }
                made.versions[first].push(*to);
                if private(graph, components, *from, *kernel) {
                    made.host_first[to.0] = made.host_first[from.0];
                } else {
                    made.copied[made.host_first[from.0]] = true;
                    made.copied[to.0] = true;
                }
            }
        }
        made
    }

    /// Allocates what a component needs on a device and does not have yet. Nothing
    /// may be in flight then.
    pub fn ensure(
        &mut self,
        runtime: &mut dyn Runtime,
        graph: &TaskGraph,
        components: &Components,
        component: usize,
        device: usize,
    ) -> Result<(), GraphRunError> {
        if self.ready[device][component] {
            return Ok(());
        }
        let shares = runtime.devices()[device].shares_host_memory;
        for kernel in &components.list()[component].kernels {
            let what = graph.kernel(*kernel);
            for datum in what.inputs().chain(what.outputs()) {
                if !shares {
                    self.ensure_buffer(runtime, graph, datum, device)?;
                }
                if shares || travels(graph, components, datum) {
                    self.ensure_host(runtime, graph, datum)?;
                }
            }
        }
        self.ready[device][component] = true;
        Ok(())
    }

    /// Allocates host memory for the data that the host gives and wants, whether
    /// or not a kernel reads them.
    pub fn ensure_given(
        &mut self,
        runtime: &mut dyn Runtime,
        graph: &TaskGraph,
    ) -> Result<(), GraphRunError> {
        for datum in graph.datum_ids() {
            let what = graph.datum(datum);
            if what.wanted || what.contents.is_some() {
                self.ensure_host(runtime, graph, datum)?;
            }
        }
        Ok(())
    }

    fn ensure_buffer(
        &mut self,
        runtime: &mut dyn Runtime,
        graph: &TaskGraph,
        datum: DatumId,
        device: usize,
    ) -> Result<(), GraphRunError> {
        let first = self.first[datum.0];
        if self.buffers[device][first].is_some() {
            return Ok(());
        }
        let bytes = graph.data()[first].bytes;
        let buffer = runtime.alloc(DeviceId(device), bytes)?;
        self.bytes[device] += bytes;
        self.buffers[device][first] = Some(buffer);
        Ok(())
    }

    fn ensure_host(
        &mut self,
        runtime: &mut dyn Runtime,
        graph: &TaskGraph,
        datum: DatumId,
    ) -> Result<(), GraphRunError> {
        let first = self.host_first[datum.0];
        if self.host[first].is_some() {
            return Ok(());
        }
        let what = &graph.data()[first];
        let bytes = if self.copied[first] {
            what.bytes.next_multiple_of(COPY_UNIT)
        } else {
            what.bytes
        };
        let memory = runtime.alloc_host(bytes)?;
        self.host[first] = Some(memory);
        if let Some(contents) = &what.contents {
            match runtime.host_bytes(memory) {
                Ok(all) => contents.write(&mut all[..what.bytes as usize]),
                // A simulation without data needs no contents.
                Err(RuntimeError::NoData) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Checks that a device's own memory holds the buffers that are allocated and
    /// those that these components still need.
    pub fn check(
        &self,
        info: &Device,
        graph: &TaskGraph,
        components: &Components,
        own: &[usize],
        device: usize,
    ) -> Result<(), GraphRunError> {
        if info.shares_host_memory {
            return Ok(());
        }
        let kernels = own.iter().flat_map(|c| &components.list()[*c].kernels);
        let mut missing: Vec<usize> = kernels
            .map(|kernel| graph.kernel(*kernel))
            .flat_map(|kernel| kernel.inputs().chain(kernel.outputs()))
            .map(|datum| self.first[datum.0])
            .filter(|first| self.buffers[device][*first].is_none())
            .collect();
        missing.sort_unstable();
        missing.dedup();
        let sizes = missing.iter().map(|first| graph.data()[*first].bytes);
        let needed = sizes.fold(self.bytes[device], u64::saturating_add);
        if needed <= info.memory {
            return Ok(());
        }
        Err(GraphRunError::Memory {
            device: info.name.clone(),
            needed,
            has: info.memory,
        })
    }

    /// The other versions of a datum. Its buffer holds one version at a time.
    pub fn others(&self, datum: DatumId) -> impl Iterator<Item = DatumId> + '_ {
        let versions = self.versions[self.first[datum.0]].iter().copied();
        versions.filter(move |other| *other != datum)
    }

    /// A datum's host memory.
    pub fn host(&self, datum: DatumId) -> Result<HostMemoryId, RuntimeError> {
        self.host[self.host_first[datum.0]].ok_or(RuntimeError::Unknown {
            what: "host memory of a datum",
        })
    }

    /// A datum's buffer on a device.
    pub fn buffer(&self, datum: DatumId, device: usize) -> Result<BufferId, RuntimeError> {
        self.buffers[device][self.first[datum.0]].ok_or(RuntimeError::Unknown {
            what: "buffer of a datum",
        })
    }

    /// The memory that a kernel on a device gets for a datum.
    pub fn memory(
        &self,
        datum: DatumId,
        device: usize,
        shares: bool,
    ) -> Result<Memory, RuntimeError> {
        if shares {
            self.host(datum).map(Memory::Host)
        } else {
            self.buffer(datum, device).map(Memory::Device)
        }
    }

    /// Whether two versions differ in their host memory, so that one is copied to
    /// the other before a kernel works on that in place.
    pub fn apart(&self, from: DatumId, to: DatumId) -> bool {
        self.host_first[from.0] != self.host_first[to.0]
    }

    /// Bytes of buffers on a device.
    pub fn bytes(&self, device: usize) -> u64 {
        self.bytes[device]
    }

    /// Gives all memory back.
    pub fn release(self, runtime: &mut dyn Runtime) {
        for buffer in self.buffers.into_iter().flatten().flatten() {
            runtime.free(buffer);
        }
        for memory in self.host.into_iter().flatten() {
            runtime.free_host(memory);
        }
    }
}

/// Whether a datum may be needed in host memory, wherever its component runs: the
/// host gives or wants it, or another component reads it.
fn travels(graph: &TaskGraph, components: &Components, datum: DatumId) -> bool {
    let what = graph.datum(datum);
    what.contents.is_some() || what.wanted || !components.readers(datum).is_empty()
}

/// Whether only the component of `overwriter` ever reads this version.
fn private(
    graph: &TaskGraph,
    components: &Components,
    datum: DatumId,
    overwriter: KernelId,
) -> bool {
    let own = components.of(overwriter);
    let producer = graph.producer(datum);
    !graph.datum(datum).wanted
        && producer.is_some_and(|producer| components.of(producer) == own)
        && components.readers(datum).is_empty()
}
