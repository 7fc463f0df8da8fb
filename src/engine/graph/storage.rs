//! The memory of a graph's data: in the host, and on devices with memory of their
//! own.

use crate::codelet::{BufferId, HostMemoryId, Memory};
use crate::machine::Device;
use crate::residency::Residency;
use crate::runtime::{EventId, Rows, Runtime, RuntimeError};
use pdawl_core::graph::{
    Argument, Component, Components, DatumId, HostSpaceId, KernelId, Place, TaskGraph,
};

/// Bytes of a unit of the copying codelet. Host memory that is copied between
/// versions of a datum is a multiple of it.
pub(super) const COPY_UNIT: u64 = 4096;

/// The memory of a prepared graph: the host's, allocated when something first needs
/// it, and where everything is.
pub(super) struct Storage {
    /// By datum; of those without a place.
    host: Vec<Option<HostMemoryId>>,
    spaces: Vec<SpaceMemory>,
    /// By datum: those that lie on it in host memory.
    lying_on: Vec<Vec<DatumId>>,
    /// By first version: all of them, if there are several.
    versions: Vec<Vec<DatumId>>,
    /// By datum: the first version of those that share its host memory. A version
    /// that something but its overwriter may still need is never overwritten.
    host_first: Vec<usize>,
    /// By datum: whether its host memory is copied from or to.
    copied: Vec<bool>,
    /// By component: the slots that it reads or writes, each once.
    pub slots: Vec<Vec<usize>>,
    pub residency: Residency<BufferId, Arrival>,
    /// By datum: whether it is kept for kernels that have not arrived.
    pub held: Vec<bool>,
}

/// The host memory of a space.
#[derive(Clone, Default)]
struct SpaceMemory {
    memory: Option<HostMemoryId>,
    /// Whether kernels write to it.
    is_written: bool,
    /// Whether it got its first contents.
    is_filled: bool,
}

/// A copy to a device in flight: its event, and the component for which it was made.
pub(super) type Arrival = (EventId, usize);

impl Storage {
    pub fn new(graph: &TaskGraph, components: &Components, devices: &[Device]) -> Self {
        let data = graph.data().len();
        let slot = |datum: DatumId| graph.first_version(datum).0;
        let bytes: Vec<u64> = graph.data().iter().map(|datum| datum.bytes).collect();
        let own = devices.iter();
        let own: Vec<Option<u64>> = own
            .map(|device| (!device.shares_host_memory).then_some(device.memory))
            .collect();
        let mut spaces = vec![SpaceMemory::default(); graph.spaces().len()];
        let mut lying_on = vec![Vec::new(); data];
        for datum in graph
            .datum_ids()
            .filter(|datum| graph.producer(*datum).is_some())
        {
            let what = graph.datum(datum);
            if let Some(place) = &what.place {
                spaces[place.space.0].is_written = true;
            }
            for old in &what.overwrites {
                lying_on[old.0].push(datum);
            }
        }
        let mut made = Self {
            spaces,
            lying_on,
            host: vec![None; data],
            versions: vec![Vec::new(); data],
            host_first: (0..data).collect(),
            copied: vec![false; data],
            slots: (components.list().iter())
                .map(|component| slots_of(graph, component))
                .collect(),
            held: vec![false; data],
            residency: Residency::new(graph.datum_ids().map(slot).collect(), &bytes, &own),
        };
        for kernel in graph.order() {
            for argument in &graph.kernel(*kernel).arguments {
                let Argument::InOut { from, to } = argument else {
                    continue;
                };
                let versions = &mut made.versions[graph.first_version(*from).0];
                if versions.is_empty() {
                    versions.push(*from);
                }
                versions.push(*to);
                let is_placed = graph.datum(*from).place.is_some();
                if is_placed || is_only_overwritten(graph, components, *from) {
                    made.host_first[to.0] = made.host_first[from.0];
                } else {
                    made.copied[made.host_first[from.0]] = true;
                    made.copied[to.0] = true;
                }
            }
        }
        made
    }

    /// The graph has got data and components.
    pub fn grow(&mut self, graph: &TaskGraph, components: &Components) {
        for datum in graph.datum_ids().skip(self.host.len()) {
            let first = graph.first_version(datum);
            let is_version = first != datum;
            self.host.push(None);
            self.lying_on.push(Vec::new());
            self.versions.push(Vec::new());
            // A kernel works in place on views alone, which are made for it.
            self.host_first.push(first.0);
            self.copied.push(false);
            self.held.push(false);
            let bytes = graph.datum(datum).bytes;
            self.residency.grow(is_version.then_some(first.0), bytes);
            if is_version {
                self.versions[first.0] = vec![first, datum];
            }
        }
        let new = components.list().iter().skip(self.slots.len());
        self.slots
            .extend(new.map(|component| slots_of(graph, component)));
    }

    /// Keeps these data, which get the numbers from 0 on, and forgets all others and all
    /// components. Nothing is in flight.
    pub fn keep(&mut self, runtime: &mut dyn Runtime, graph: &TaskGraph, data: &[DatumId]) {
        let count = data.len();
        let host = data
            .iter()
            .map(|datum| self.host[self.host_first[datum.0]].take())
            .collect();
        for memory in std::mem::replace(&mut self.host, host)
            .into_iter()
            .flatten()
        {
            runtime.free_host(memory);
        }
        let bytes = data
            .iter()
            .map(|datum| (datum.0, graph.datum(*datum).bytes));
        self.residency.keep(&bytes.collect::<Vec<_>>());
        self.held = data.iter().map(|datum| self.held[datum.0]).collect();
        self.lying_on = vec![Vec::new(); count];
        self.versions = vec![Vec::new(); count];
        self.host_first = (0..count).collect();
        self.copied = vec![false; count];
        self.slots.clear();
    }

    /// Gives the host memory of a datum back, which nothing uses any more.
    pub fn free_host(&mut self, runtime: &mut dyn Runtime, datum: DatumId) {
        self.residency.set_in_host(datum.0, false);
        if let Some(memory) = self.host[self.host_first[datum.0]].take() {
            runtime.free_host(memory);
        }
    }

    /// Makes the host memory that a component needs wherever it runs, and on a device
    /// that computes in host memory all of its memory.
    ///
    /// # Errors
    /// What the runtime refuses.
    pub fn ensure(
        &mut self,
        runtime: &mut dyn Runtime,
        graph: &TaskGraph,
        components: &Components,
        component: usize,
        shares: bool,
    ) -> Result<(), RuntimeError> {
        for kernel in &components.list()[component].kernels {
            let what = graph.kernel(*kernel);
            for datum in what.inputs().chain(what.outputs()) {
                if shares || travels(graph, components, datum) {
                    self.ensure_host(runtime, graph, datum)?;
                }
            }
        }
        Ok(())
    }

    /// Makes the host memory of what the host gives and wants.
    ///
    /// # Errors
    /// What the runtime refuses.
    pub fn ensure_given(
        &mut self,
        runtime: &mut dyn Runtime,
        graph: &TaskGraph,
    ) -> Result<(), RuntimeError> {
        for datum in graph.datum_ids() {
            let what = graph.datum(datum);
            if what.wanted || what.contents.is_some() {
                self.ensure_host(runtime, graph, datum)?;
            }
        }
        for (number, what) in graph.spaces().iter().enumerate() {
            let space = &mut self.spaces[number];
            if let Some(memory) = space.memory.filter(|_| !space.is_filled)
                && let Some(contents) = &what.contents
            {
                with_bytes(runtime, memory, what.bytes(), |all| {
                    contents.write_all(HostSpaceId(number), what, all);
                })?;
            }
            space.is_filled = true;
        }
        Ok(())
    }

    /// A run is to begin: what kernels have written to needs its first contents again.
    pub fn renew(&mut self) {
        for space in &mut self.spaces {
            space.is_filled &= !space.is_written;
        }
    }

    /// Makes a datum's host memory. Given data are written there.
    ///
    /// # Errors
    /// What the runtime refuses.
    pub fn ensure_host(
        &mut self,
        runtime: &mut dyn Runtime,
        graph: &TaskGraph,
        datum: DatumId,
    ) -> Result<HostMemoryId, RuntimeError> {
        if let Some(place) = &graph.datum(datum).place {
            let space = &mut self.spaces[place.space.0].memory;
            if let Some(memory) = space {
                return Ok(*memory);
            }
            let memory = runtime.alloc_host(graph.space(place.space).bytes())?;
            return Ok(*space.insert(memory));
        }
        let first = self.host_first[datum.0];
        if let Some(memory) = self.host[first] {
            return Ok(memory);
        }
        let what = &graph.data()[first];
        let memory = runtime.alloc_host(self.host_length(graph, first))?;
        self.host[first] = Some(memory);
        if let Some(contents) = &what.contents {
            with_bytes(runtime, memory, what.bytes, |bytes| contents.write(bytes))?;
        }
        Ok(memory)
    }

    /// Bytes of the host memory that begins with this version.
    fn host_length(&self, graph: &TaskGraph, first: usize) -> u64 {
        let bytes = graph.data()[first].bytes;
        match self.copied[first] {
            true => bytes.next_multiple_of(COPY_UNIT),
            false => bytes,
        }
    }

    /// Bytes of a device's own memory that a component needs at once.
    pub fn needed(&self, graph: &TaskGraph, component: usize) -> u64 {
        let bytes = self.slots[component]
            .iter()
            .map(|slot| graph.data()[*slot].bytes);
        bytes.fold(0, u64::saturating_add)
    }

    /// Notes that a version is being written to its host memory, or that it is there
    /// now. The memory has no other version from then on.
    pub fn set_in_host(&mut self, graph: &TaskGraph, datum: DatumId, present: bool) {
        let first = self.host_first[datum.0];
        for version in &self.versions[graph.first_version(datum).0] {
            if self.host_first[version.0] == first {
                self.residency.set_in_host(version.0, false);
            }
        }
        let lying_on = &self.lying_on[datum.0];
        for other in graph.datum(datum).overwrites.iter().chain(lying_on) {
            self.residency.set_in_host(other.0, false);
        }
        self.residency.set_in_host(datum.0, present);
    }

    /// Writes a given datum at a place again: its host memory has had other versions.
    ///
    /// # Errors
    /// What the runtime refuses.
    pub fn give_again(
        &mut self,
        runtime: &mut dyn Runtime,
        graph: &TaskGraph,
        datum: DatumId,
    ) -> Result<(), RuntimeError> {
        let Some((place, pitch)) = graph.place(datum) else {
            return Ok(());
        };
        let space = graph.space(place.space);
        let mut compact = vec![0; place.bytes() as usize];
        if let Some(contents) = &space.contents {
            contents.write(place, &mut compact);
        }
        with_bytes(runtime, self.space(place.space)?, space.bytes(), |all| {
            let rows = compact.chunks_exact(place.width() as usize);
            for (row, from) in place.rows.clone().zip(rows) {
                let at = (row * pitch + place.columns.start) as usize;
                all[at..at + from.len()].copy_from_slice(from);
            }
        })?;
        self.set_in_host(graph, datum, true);
        Ok(())
    }

    /// Whether host memory has a datum: all pieces of a view.
    pub fn in_host(&self, graph: &TaskGraph, datum: DatumId) -> bool {
        let mut pieces = graph.pieces(&datum).iter();
        pieces.all(|piece| self.residency.in_host(piece.0))
    }

    /// The host memory of a space.
    pub fn space(&self, space: HostSpaceId) -> Result<HostMemoryId, RuntimeError> {
        self.spaces[space.0].memory.ok_or(RuntimeError::Unknown {
            what: "host memory of a space",
        })
    }

    /// The host memory in which a datum is.
    pub fn host(&self, graph: &TaskGraph, datum: DatumId) -> Result<HostMemoryId, RuntimeError> {
        if let Some(place) = &graph.datum(datum).place {
            return self.space(place.space);
        }
        self.host[self.host_first[datum.0]].ok_or(RuntimeError::Unknown {
            what: "host memory of a datum",
        })
    }

    /// A datum's buffer on a device.
    pub fn buffer(&self, datum: DatumId, device: usize) -> Result<BufferId, RuntimeError> {
        let space = self.residency.space(device);
        space
            .and_then(|space| space.buffer(self.residency.slot(datum.0)))
            .ok_or(RuntimeError::Unknown {
                what: "buffer of a datum",
            })
    }

    /// The memory that a kernel on a device gets for a datum.
    pub fn memory(
        &self,
        graph: &TaskGraph,
        datum: DatumId,
        device: usize,
        shares: bool,
    ) -> Result<Memory, RuntimeError> {
        if shares {
            self.host(graph, datum).map(Memory::Host)
        } else {
            self.buffer(datum, device).map(Memory::Device)
        }
    }

    /// Whether the host or a device has a datum that is no view.
    pub fn exists(&self, datum: DatumId) -> bool {
        self.residency.in_host(datum.0) || self.residency.holder(datum.0).is_some()
    }

    /// The kernels that write to the host memory of a datum when it has been read: the one
    /// that makes its next version there, and those whose results lie on it.
    pub fn overwritten(&self, graph: &TaskGraph, datum: DatumId) -> Vec<KernelId> {
        let next = graph.overwriter(datum).filter(|kernel| {
            let mut arguments = graph.kernel(*kernel).arguments.iter();
            arguments.any(|argument| {
                matches!(argument, Argument::InOut { from, to }
                    if *from == datum && !self.differ_in_host_memory(*from, *to))
            })
        });
        let lying_on = self.lying_on[datum.0].iter();
        let others = lying_on.filter_map(|other| graph.producer(*other));
        next.into_iter().chain(others).collect()
    }

    /// Whether two versions differ in their host memory, so that one is copied to
    /// the other before a kernel works on that in place.
    pub fn differ_in_host_memory(&self, from: DatumId, to: DatumId) -> bool {
        self.host_first[from.0] != self.host_first[to.0]
    }

    /// Whether a version comes before another one of the same slot.
    pub fn is_before(&self, graph: &TaskGraph, version: DatumId, other: DatumId) -> bool {
        let versions = self.versions[graph.first_version(other).0].iter();
        let mut before = versions.take_while(|version| **version != other);
        before.any(|earlier| *earlier == version)
    }

    /// Gives all memory back.
    pub fn release(mut self, runtime: &mut dyn Runtime, devices: usize) {
        for device in 0..devices {
            if let Some(space) = self.residency.space_mut(device) {
                for buffer in space.take_all() {
                    runtime.free(buffer);
                }
            }
        }
        let spaces = self.spaces.iter().filter_map(|space| space.memory);
        for memory in self.host.into_iter().flatten().chain(spaces) {
            runtime.free_host(memory);
        }
    }
}

/// The slots that a component reads or writes, each once.
fn slots_of(graph: &TaskGraph, component: &Component) -> Vec<usize> {
    let kernels = component.kernels.iter().map(|kernel| graph.kernel(*kernel));
    let data = kernels.flat_map(|kernel| kernel.inputs().chain(kernel.outputs()));
    let mut slots: Vec<usize> = data.map(|datum| graph.first_version(datum).0).collect();
    slots.sort_unstable();
    slots.dedup();
    slots
}

/// Bytes of host memory that a graph takes, if each of these devices may run each of its
/// components. Versions of a datum that share their memory count once.
pub fn host_bytes(graph: &TaskGraph, components: &Components, devices: &[Device]) -> u64 {
    let storage = Storage::new(graph, components, devices);
    let shares = devices.iter().any(|device| device.shares_host_memory);
    let needed = (graph.datum_ids()).filter(|datum| shares || travels(graph, components, *datum));
    let (mut firsts, mut spaces) = (Vec::new(), Vec::new());
    for datum in needed {
        match &graph.datum(datum).place {
            Some(place) => spaces.push(place.space),
            None => firsts.push(storage.host_first[datum.0]),
        }
    }
    firsts.sort_unstable();
    firsts.dedup();
    spaces.sort_unstable();
    spaces.dedup();
    let own = firsts
        .into_iter()
        .map(|first| storage.host_length(graph, first));
    let of_spaces = spaces.into_iter().map(|space| graph.space(space).bytes());
    own.chain(of_spaces).fold(0, u64::saturating_add)
}

/// Whether a datum may be needed in host memory, wherever its component runs: the
/// host gives or wants it, or another component reads it.
fn travels(graph: &TaskGraph, components: &Components, datum: DatumId) -> bool {
    let what = graph.datum(datum);
    what.contents.is_some() || what.wanted || !components.readers(datum).is_empty()
}

/// Whether a version was made by a kernel, and is read by the kernel alone that
/// overwrites it. It is needed nowhere once that kernel has run.
fn is_only_overwritten(graph: &TaskGraph, components: &Components, datum: DatumId) -> bool {
    let producer = graph.producer(datum).map(|kernel| components.of(kernel));
    let reader = graph.overwriter(datum).map(|kernel| components.of(kernel));
    let elsewhere = (components.readers(datum).iter()).any(|component| Some(*component) != reader);
    !graph.datum(datum).wanted && producer.is_some() && !elsewhere
}

/// Writes to the first bytes of host memory.
fn with_bytes(
    runtime: &mut dyn Runtime,
    memory: HostMemoryId,
    bytes: u64,
    write: impl FnOnce(&mut [u8]),
) -> Result<(), RuntimeError> {
    match runtime.host_bytes(memory) {
        Ok(all) => write(&mut all[..bytes as usize]),
        // A simulation without data needs no contents.
        Err(RuntimeError::NoData) => {}
        Err(error) => return Err(error),
    }
    Ok(())
}

/// The bytes before a datum, and from one of its rows to the next, in the memory in which a
/// kernel gets it. A datum without a place is one row.
pub(super) fn layout(graph: &TaskGraph, datum: DatumId, shares: bool) -> (u64, u64) {
    match (graph.place(datum), shares) {
        (Some((place, pitch)), true) => (place.first(pitch), pitch),
        (Some((place, _)), false) => (0, place.width()),
        (None, _) => (0, graph.datum(datum).row),
    }
}

/// How a part of a datum is copied between its host memory and a device: where the part
/// begins in both, and its rows as from the host's memory to the device's.
pub(super) fn transfer(graph: &TaskGraph, datum: DatumId, part: Option<&Place>) -> Transfer {
    let Some((place, pitch)) = graph.place(datum) else {
        let what = graph.datum(datum);
        let used = what.used.clone().unwrap_or(0..what.bytes);
        return Transfer {
            host: used.start,
            device: used.start,
            rows: Rows::one(used.end - used.start),
        };
    };
    let part = part.unwrap_or(place);
    Transfer {
        host: part.first(pitch),
        device: place.offset_of(part),
        rows: Rows::new(part.height(), part.width(), pitch, place.width()),
    }
}

/// A copy between host memory and a device's: where it begins in both.
pub(super) struct Transfer {
    pub host: u64,
    pub device: u64,
    pub rows: Rows,
}
