//! Where data lie: in host memory and in devices' own.

use crate::codelet::{BufferId, HostMemoryId, Memory};
use crate::graph::{Argument, Components, DatumId, KernelId, TaskGraph};
use crate::machine::Device;
use crate::runtime::{DeviceId, Runtime, RuntimeError};

use super::GraphRunError;

/// Host memory that is copied between versions of a datum has whole units of
/// the copying codelet.
pub(super) const COPY_UNIT: u64 = 4096;

/// The memory of a plan, made as far as anything needs it.
pub(super) struct Storage {
    /// By datum.
    host: Vec<Option<HostMemoryId>>,
    /// By device and datum; only first versions have any.
    buffers: Vec<Vec<Option<BufferId>>>,
    /// By datum: the first version of what lies in the same buffer.
    first: Vec<usize>,
    /// By first version: all of them, if there are several.
    versions: Vec<Vec<DatumId>>,
    /// The same in host memory, where a version that someone else may still want
    /// is never overwritten.
    host_first: Vec<usize>,
    /// By datum: whether its host memory is copied from or to.
    copied: Vec<bool>,
    /// By device and component: whether all memory is there.
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

    /// Makes sure of all memory that a component needs on a device. Nothing may
    /// be in flight if any is missing.
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

    /// Makes sure of host memory for what the host gives and wants, whether or
    /// not any kernel reads it.
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

    /// Refuses what a device's own memory cannot hold: the buffers there are,
    /// and those that these components still need.
    pub fn check(
        &self,
        info: &Device,
        graph: &TaskGraph,
        components: &Components,
        mine: &[usize],
        device: usize,
    ) -> Result<(), GraphRunError> {
        if info.shares_host_memory {
            return Ok(());
        }
        let kernels = mine.iter().flat_map(|c| &components.list()[*c].kernels);
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

    /// The other versions of a datum: what lies in its buffer, it or one of them.
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

    /// What a kernel on a device is given for a datum.
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

    /// Whether two versions have host memory of their own, so that one is copied
    /// to the other before that is worked on in host memory.
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

/// Whether a datum is ever in host memory however its component runs: the host
/// gives or wants it, or another component reads it.
fn travels(graph: &TaskGraph, components: &Components, datum: DatumId) -> bool {
    let what = graph.datum(datum);
    what.contents.is_some() || what.wanted || !components.readers(datum).is_empty()
}

/// Whether nobody outside the component of `overwriter` ever sees this version.
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
