//! Forms of data: what a workload's units are made of, and how an engine keeps
//! and moves them.
//!
//! [`grid`] keeps grids: two versions in host memory and a ring of held units on
//! each device with memory of its own. [`product`] keeps a sparse matrix and its
//! vectors, [`kernel`] the buffers of a user's kernel. Each form owns its memory
//! in the host and on the devices. The engine's driver knows only [`Form`].

pub mod grid;
pub mod kernel;
pub mod product;

use std::ops::Range;
use std::sync::atomic::AtomicBool;

use super::context::{Context, MAIN, Purpose};
use super::layout::Layout;
use super::{CorunError, Options};
use crate::machine::Device;
use crate::parallel;
use crate::runtime::{DeviceId, EventId, HostMemoryId, Runtime, RuntimeError};
use crate::scope::RuntimeScope;
use crate::verify::Compared;
use crate::workload::{Data, Divisible};

/// A form of data in a run: what a step does with it.
///
/// Units are *held* in a device's own memory, where they stay from step to step,
/// or they lie in the *pool* in host memory and are computed chunk by chunk.
pub trait Form {
    /// Whether the time of a chunk goes with its bytes.
    fn bytes_tell_time(&self) -> bool {
        true
    }

    /// Whether devices that hold all units can begin a step before the host knows that the
    /// one before has ended: a lone device, or `several` among which copies go directly.
    fn runs_ahead(&self, several: bool) -> bool {
        !several
    }

    /// Whether devices give each other what they read of each other's results directly, where a
    /// direct way leads from one to the other.
    fn hands_over(&self) -> bool {
        false
    }

    /// Whether units that move go that way, too.
    fn moves_directly(&self) -> bool {
        false
    }

    /// Writes the first version, or a later one that other nodes have left, into host memory,
    /// and what devices need of it in any case. Devices hold nothing afterwards.
    fn fill(&mut self, context: &mut Context, later: Option<&Later>) -> Result<(), CorunError>;

    /// Allocates the memory of a device that is back after a loss, and writes what the
    /// device needs in any case. It holds nothing afterwards. Called at a barrier.
    fn rejoin(&mut self, context: &mut Context, device: usize) -> Result<(), CorunError>;

    /// Prepares memory for a step, before anything moves. Returns whether a unit
    /// that a lost device has begun can be computed again by another.
    fn begin_step(&mut self, _context: &mut Context, _step: u32) -> Result<bool, CorunError> {
        Ok(true)
    }

    /// Moves units from where they were `before` to where the context's layout
    /// has them, and gives every device what it reads of its neighbours' results.
    /// Returns what is on its way to host memory. Commands on a device's
    /// [`MAIN`](super::context::MAIN) queue are ordered behind its own moves.
    fn relocate(
        &mut self,
        context: &mut Context,
        before: &Layout,
        step: u32,
    ) -> Result<Arrivals, CorunError>;

    /// Submits the next launches on what a device holds, as commands of
    /// `purpose`'s job, and, to `publish`, the reads of results that others
    /// need. Returns whether more launches are to follow.
    fn launch(
        &mut self,
        context: &mut Context,
        purpose: Purpose,
        publish: bool,
    ) -> Result<bool, CorunError>;

    /// Gives devices what they read of each other's results without the host, once all
    /// launches on what devices hold are submitted.
    fn hand_over(&mut self, _context: &mut Context, _step: u32) -> Result<(), CorunError> {
        Ok(())
    }

    /// Submits the commands of a chunk of the pool: a launch in host memory, or
    /// writes, launch and reads. They wait for what is on its way to host memory.
    fn chunk(
        &mut self,
        context: &mut Context,
        purpose: Purpose,
        units: Range<u64>,
        arrivals: &Arrivals,
    ) -> Result<(), CorunError>;

    /// Ends a step whose commands have completed: the next version becomes the
    /// present one. The result is void if the context is spoiled meanwhile.
    fn turn(&mut self, context: &mut Context, step: u32) -> Result<(), CorunError>;

    /// The bytes of the present version that whoever computes the units `reader` reads of
    /// what is computed with the units `owner`, by their places in the whole version. With
    /// `begins`, it has computed none of its units before.
    fn parts(&self, _owner: &Range<u64>, _reader: &Range<u64>, _begins: bool) -> Vec<Range<u64>> {
        Vec::new()
    }

    /// Takes another input for the step to come, where one is given anew: the vector of a
    /// product.
    fn set_input(&mut self, _context: &mut Context, _numbers: &[f64]) -> Result<(), CorunError> {
        Ok(())
    }

    /// The present version in host memory, and the place of its first byte in the whole one.
    fn present(&self) -> Option<(HostMemoryId, u64)> {
        None
    }

    /// Other nodes read what these units read: it must be in host memory after each step.
    fn publish(&mut self, _readers: Vec<Range<u64>>) {}

    /// What the units here sum, if all nodes need it at the end of a step or of the run.
    fn sums(&self, _context: &mut Context, _when: When) -> Result<Option<Vec<u8>>, CorunError> {
        Ok(None)
    }

    /// Adds up, with what the units of other nodes sum, which are these. What was computed in
    /// the step is in host memory.
    fn add_up(
        &mut self,
        _context: &mut Context,
        _when: When,
        _others: &[(Range<u64>, Vec<u8>)],
    ) -> Result<(), CorunError> {
        Ok(())
    }

    /// Brings the result to host memory.
    fn gather(&mut self, context: &mut Context, step: u32) -> Result<(), CorunError>;

    /// Hands the result to whoever wants it.
    fn deliver(&mut self, _context: &mut Context) -> Result<(), CorunError> {
        Ok(())
    }

    /// Compares the result of `steps` steps with the reference. `None` if `stop` was set
    /// meanwhile.
    fn verify(
        &mut self,
        context: &mut Context,
        steps: u32,
        stop: &AtomicBool,
    ) -> Result<Option<Compared>, CorunError>;

    /// The estimate of an eigenvalue, if the workload finds one.
    fn eigenvalue(&self) -> Option<f64> {
        None
    }

    /// What the last step changed, if the workload finds it: the sum of all absolute changes of
    /// page ranks, the largest one of a grid.
    fn change(&self) -> Option<f64> {
        None
    }

    /// What all units summed in the last step.
    fn total(&self) -> Option<[f64; 2]> {
        None
    }

    /// What the user should know of the run.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    /// Makes a device hold about so many units for a probe, and writes them if
    /// asked. Returns them; the range is empty where a device holds nothing.
    fn hold_probe(
        &mut self,
        context: &mut Context,
        purpose: Purpose,
        units: u64,
        write: bool,
    ) -> Result<Range<u64>, CorunError>;

    /// Ends the probes. Returns whether the devices keep the units written for
    /// them.
    fn end_probes(&mut self) -> bool;
}

/// When something is added up over all units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// After a step.
    Step,
    /// After the last step, when the result is in host memory.
    End,
}

/// A version of the data to begin with that is not the first.
#[derive(Clone, Debug, Default)]
pub struct Later {
    /// Bytes, by their place in the whole version.
    pub parts: Vec<(u64, Vec<u8>)>,
    /// What all units summed in the last step.
    pub sums: Option<[f64; 2]>,
}

impl Later {
    /// Writes its bytes to memory whose first byte is that of this place.
    fn write(&self, first: u64, to: &mut [u8]) {
        for (place, bytes) in &self.parts {
            let begin = (place - first) as usize;
            to[begin..begin + bytes.len()].copy_from_slice(bytes);
        }
    }
}

/// How a form divides a device's memory.
#[derive(Clone, Debug)]
pub struct Space {
    /// Most units that the device can hold; `None`: it computes in host memory.
    pub capacity: Option<u64>,
    /// Slots of the ring of held units, if it has one.
    pub slots: Option<u64>,
    /// Most units of a chunk; `None`: all.
    pub longest_chunk: Option<u64>,
    /// Units below which much of a chunk's work is done twice.
    pub least_chunk: u64,
    /// Queues for held units, and for chunks.
    pub held_queues: usize,
    pub chunk_queues: usize,
}

impl Space {
    /// Of a device that computes in host memory: one chunk runs, and one follows
    /// without a pause.
    const HOST: Self = Self {
        capacity: None,
        slots: None,
        longest_chunk: None,
        least_chunk: 1,
        held_queues: 0,
        chunk_queues: 2,
    };

    /// Of a device that was lost before.
    pub const ABSENT: Self = Self {
        capacity: Some(0),
        slots: None,
        longest_chunk: None,
        least_chunk: 1,
        held_queues: 0,
        chunk_queues: 0,
    };

    /// By queue: most units that its launches have, of so many in all.
    pub fn queues(&self, units: u64) -> impl Iterator<Item = u64> {
        let (held, chunk) = (self.capacity, self.longest_chunk.unwrap_or(units));
        let of_held = (0..self.held_queues).map(move |queue| match queue {
            MAIN => held.unwrap_or(0),
            _ => 0,
        });
        of_held.chain((0..self.chunk_queues).map(move |_| chunk))
    }

    /// Whether the device was lost before.
    pub fn is_absent(&self) -> bool {
        self.chunk_queues == 0
    }
}

/// Allocates a workload's memory in the host and on the devices. Returns it,
/// and how each device's memory is divided.
pub fn open<'a>(
    runtime: &mut RuntimeScope,
    workload: &'a dyn Divisible,
    units: &Range<u64>,
    (options, lost): (&Options, &[bool]),
) -> Result<(Box<dyn Form + 'a>, Vec<Space>), CorunError> {
    match workload.data() {
        Data::Grid(grid) => {
            let (form, spaces) = grid::GridForm::open(runtime, grid, units, (options, lost))?;
            Ok((Box::new(form), spaces))
        }
        Data::Product(spmv) => {
            let (form, spaces) = product::ProductForm::open(runtime, spmv, units, (options, lost))?;
            Ok((Box::new(form), spaces))
        }
        Data::Kernel(user) => {
            let (form, spaces) = kernel::KernelForm::open(runtime, user, options)?;
            Ok((Box::new(form), spaces))
        }
    }
}

/// What a form keeps on each device with memory of its own.
pub struct OnDevices<T>(Vec<Option<T>>);

impl<T> OnDevices<T> {
    /// Opens the memory of all devices that do not share the host's, but for those that were
    /// lost.
    fn open(
        runtime: &mut RuntimeScope,
        lost: &[bool],
        mut each: impl FnMut(&mut RuntimeScope, DeviceId, &Device) -> Result<(T, Space), CorunError>,
    ) -> Result<(Self, Vec<Space>), CorunError> {
        let (mut all, mut spaces) = (Vec::new(), Vec::new());
        for (id, device) in runtime.devices().to_vec().iter().enumerate() {
            let (memory, space) = match device.shares_host_memory {
                _ if lost.get(id).is_some_and(|lost| *lost) => (None, Space::ABSENT),
                true => (None, Space::HOST),
                false => {
                    let (memory, space) = each(runtime, DeviceId(id), device)?;
                    (Some(memory), space)
                }
            };
            all.push(memory);
            spaces.push(space);
        }
        Ok((Self(all), spaces))
    }

    /// A device's, if it has memory of its own.
    fn find(&mut self, device: usize) -> Option<&mut T> {
        self.0[device].as_mut()
    }

    /// Replaces a device's by new memory, if it has its own.
    fn renew(
        &mut self,
        device: usize,
        open: impl FnOnce(&T) -> Result<T, CorunError>,
    ) -> Result<Option<&mut T>, CorunError> {
        let Some(memory) = self.find(device) else {
            return Ok(None);
        };
        *memory = open(memory)?;
        Ok(Some(memory))
    }

    /// A device's that must have memory of its own.
    fn get(&mut self, device: usize) -> Result<&mut T, CorunError> {
        self.find(device).ok_or(CorunError::NoMemory { device })
    }

    /// All, with their devices.
    fn iter_mut(&mut self) -> impl Iterator<Item = (usize, &mut T)> {
        let all = self.0.iter_mut().enumerate();
        all.filter_map(|(device, memory)| Some((device, memory.as_mut()?)))
    }
}

/// Units on their way to host memory, and the events after which they are there.
#[derive(Clone, Debug, Default)]
pub struct Arrivals(Vec<(Range<u64>, EventId)>);

impl Arrivals {
    fn add(&mut self, units: &Range<u64>, events: impl IntoIterator<Item = EventId>) {
        let events = events.into_iter();
        self.0.extend(events.map(|event| (units.clone(), event)));
    }

    /// The events that whoever reads these units must wait for.
    fn of(&self, units: &Range<u64>) -> Vec<EventId> {
        (self.0.iter())
            .filter(|(range, _)| range.start < units.end && units.start < range.end)
            .map(|(_, event)| *event)
            .collect()
    }

    /// All events.
    fn all(&self) -> Vec<EventId> {
        self.0.iter().map(|(_, event)| *event).collect()
    }
}

/// A device whose memory, `limit` bytes of it, is too small.
fn too_small(device: &Device, limit: u64, needed: u64) -> CorunError {
    CorunError::DeviceMemory {
        device: device.name.clone(),
        limit,
        needed,
    }
}

// Filling host memory on all cores. Touching every page in the setup keeps page
// faults out of the first step.

/// What memory that nothing wrote shows: a NaN in either precision.
const POISON: u8 = 0xff;

/// Bytes that one thread fills at a time.
const PIECE: u64 = 256 << 10;

/// A memory's bytes; `None` in a simulation without data.
fn data(
    runtime: &mut dyn Runtime,
    memory: HostMemoryId,
) -> Result<Option<&mut [u8]>, RuntimeError> {
    match runtime.host_bytes(memory) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(RuntimeError::NoData) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Fills a memory so that reading what was never written shows.
fn poison(runtime: &mut dyn Runtime, memory: HostMemoryId) -> Result<(), RuntimeError> {
    if let Some(bytes) = data(runtime, memory)? {
        parallel::fill(bytes, POISON);
    }
    Ok(())
}

/// Calls `fill` with each piece of `bytes` and its index, on all cores.
fn pieces(bytes: &mut [u8], length: usize, fill: &(dyn Fn(usize, &mut [u8]) + Sync)) {
    parallel::pieces(bytes, length, fill);
}
