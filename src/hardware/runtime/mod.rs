//! The one seam to hardware.
//!
//! This folder owns everything that touches a device: memory, queues, commands
//! and the stream of completions. The parts above know neither drivers nor threads;
//! this one does not know scheduling.
//!
//! * [`Runtime`] is what an engine drives. [`sim`] implements it over virtual
//!   time; [`union`] implements it over any number of real backends.
//! * [`Backend`] is one real way to run commands: [`host`] (native code on
//!   pinned worker threads), [`opencl`] or [`cuda`]. A backend sends its completions into
//!   the channel that the union owns, so that several act as one machine.
//! * [`Devices`] is what both have in common.
//! * [`select`] opens the devices that a user names.
//! * A [`CommandGraph`] has launches with precedences that are one command.
//! * [`adopted`] has memory that a user allocated and the runtime uses as host memory.
//! * [`guarded`] has memory between zones that nobody may touch, for trials of kernels.
//! * [`implementation`] has what is known of a codelet's implementations, of which a GPU uses
//!   the faster one.
//! * `driven` is what the backends over a driver have in common: the machine of queues,
//!   commands under way and completions. `device_clock` has time stamps on the runtime's clock,
//!   and `group_size` local sizes that fit.
//! * `process` knows the process that has started a driver.
//! * `tiles` divides a command among the workers of a host pool. The host
//!   backend, the simulator and the models share it.
//!
//! Nothing blocks except [`Runtime::wait`] and [`Devices::finish`].

pub mod adopted;
pub mod command;
pub mod cuda;
#[cfg(any(feature = "cuda", feature = "opencl"))]
mod device_clock;
#[cfg(any(feature = "cuda", feature = "opencl"))]
mod driven;
pub mod error;
#[cfg(any(feature = "cuda", feature = "opencl"))]
mod group_size;
pub mod guarded;
pub mod host;
pub mod ids;
pub mod implementation;
pub mod opencl;
pub mod own_process;
#[cfg(any(feature = "cuda", feature = "opencl"))]
mod process;
pub mod select;
pub mod sim;
pub mod tiles;
pub mod union;

pub use adopted::{AdoptedMemory, NotAdopted};
pub use command::{
    Command, CommandGraph, CommandKind, Completion, GraphLaunch, HostSpan, Launch, Location, Rows,
    Stages, Status, Workers,
};
pub use error::RuntimeError;
pub use ids::{DeviceId, EventId, Generation, IdMap, QueueId};
pub use implementation::{Comparison, Implementation};

pub use crate::codelet::{BufferId, HostMemoryId, Memory, Value};
use crate::codelet::{Codelet, KernelArgument, OpenClKernel};
pub use crate::time::Nanos;

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use crate::machine::{Device, LinkSpec, PeerSpec, RuntimeKind};

/// What the driver of a runtime is about to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    /// Several commands follow. Until [`Notice::BatchEnds`] they need not start,
    /// which saves a driver one flush for each. Nothing may be waited for meanwhile.
    BatchBegins,
    /// What was submitted since [`Notice::BatchBegins`] must start.
    BatchEnds,
    /// A phase of the driver's work begins. Faults may be scheduled by phase; the
    /// host backend reads its affinity mask again.
    PhaseBegins(u32),
    /// The calling thread begins to drive this runtime: to submit and to wait. Until
    /// [`Notice::DrivingEnds`] it stays, where there are some, on cores that no device
    /// has. On a core that it shares with a worker thread it would be late, and every
    /// device with it. Threads that it starts meanwhile stay there, too. The process's
    /// main thread is left alone: its affinity mask says which cores the process may
    /// use.
    DrivingBegins,
    /// The thread that drove this runtime may use its former cores again.
    DrivingEnds,
    /// Host memory that is allocated from now on lies on this GPU, by CUDA's number, as the user's
    /// arrays do; the host reaches it there. For CUDA's devices alone.
    HostMemoryOn(usize),
}

/// What the completions of a queue's commands say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueKind {
    /// The times of the device.
    Profiled,
    /// Perhaps only that the command ran from when it was queued until the host was
    /// notified of its end. On NVIDIA's OpenCL this saves 7 us a command.
    Plain,
}

/// How copies go from one device's own memory to another one's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PeerPath {
    /// Bytes a second.
    pub bandwidth: f64,
    /// Whether they pass through the host's memory, over its bus. A datum that the host
    /// has is then better copied from there.
    pub through_host: bool,
}

impl From<&PeerSpec> for PeerPath {
    fn from(spec: &PeerSpec) -> Self {
        Self {
            bandwidth: spec.bandwidth,
            through_host: spec.through_host,
        }
    }
}

/// Seconds that a device's commands take beside their work.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CommandCosts {
    /// Of the driver, to enqueue one.
    pub enqueue: f64,
    /// Of the device, before a kernel works.
    pub launch: f64,
    /// The same, in addition, while bytes flow to the device over its link.
    pub behind_write: f64,
    /// Of a copy over its link, before bytes flow.
    pub latency: f64,
    /// From a command's end until the driver knows of it.
    pub completion: f64,
    /// Kernels that work at once, if they leave each other room.
    pub kernels: u32,
}

impl CommandCosts {
    /// What is usual of devices of a runtime.
    pub fn usual(runtime: RuntimeKind) -> Self {
        let (enqueue, launch, latency, completion) = match runtime {
            RuntimeKind::Cuda => (3e-6, 4e-6, 8e-6, 4e-6),
            RuntimeKind::Opencl => (8e-6, 7e-6, 15e-6, 8e-6),
            _ => (1e-6, 3e-6, 0.0, 2e-6),
        };
        Self {
            enqueue,
            launch,
            behind_write: 0.0,
            latency,
            completion,
            // Kernels that fill a GPU wait for each other (traces of an H200).
            kernels: 1,
        }
    }
}

/// Devices with their memory and queues: what a runtime offers, and each of its
/// backends.
///
/// Commands on one queue run in order. A command starts after everything
/// before it in its queue and every event of its wait list has ended; when one
/// of those failed, it fails too, without running.
pub trait Devices {
    /// The devices, in the order of their [`DeviceId`]s.
    fn devices(&self) -> &[Device];

    /// A device's present generation; `None` while it is lost. Commands that use memory or
    /// a queue of an earlier one end as [`Status::DeviceLost`].
    ///
    /// The default is for devices that never come back: what is lost is reported by errors and
    /// completions.
    fn generation(&self, _device: DeviceId) -> Option<Generation> {
        Some(Generation::default())
    }

    /// Allocates `bytes` on a device that has memory of its own.
    fn alloc(&mut self, device: DeviceId, bytes: u64) -> Result<BufferId, RuntimeError>;

    /// Releases device memory. Pending commands that use it keep it alive.
    fn free(&mut self, buffer: BufferId);

    /// How copies go from a device's own memory to another one's, if somebody measured
    /// that. Others go through host memory.
    fn peer_path(&self, _from: DeviceId, _to: DeviceId) -> Option<PeerPath> {
        None
    }

    /// What a device's commands cost beside their work; by default what is usual.
    fn costs(&self, device: DeviceId) -> CommandCosts {
        let device = self.devices().get(device.0);
        device.map_or_else(CommandCosts::default, |of| CommandCosts::usual(of.runtime))
    }

    /// Bytes a second of all copies from and to the host's memory together, if they share
    /// a bus that is slower than their links together; `None` if not, or where it is
    /// unknown.
    fn bus_bandwidth(&self) -> Option<f64> {
        None
    }

    /// Bytes a second of the host's memory for these copies and what computes there together;
    /// `None` where it is unknown.
    fn host_bandwidth(&self) -> Option<f64> {
        None
    }

    /// Tells the same, where nobody knew.
    fn set_host_bandwidth(&mut self, _bandwidth: Option<f64>) {}

    /// Tells how many bytes a second a device's link carries, where nobody knew.
    fn set_link(&mut self, _device: DeviceId, _link: &LinkSpec) {}

    /// Chooses how copies go that are submitted from now on.
    ///
    /// # Errors
    /// [`RuntimeError::Unsupported`] where they cannot go so.
    fn set_peer_path(
        &mut self,
        from: DeviceId,
        _to: DeviceId,
        _path: PeerPath,
    ) -> Result<(), RuntimeError> {
        let device = self.devices().get(from.0).map(|d| d.name.clone());
        Err(RuntimeError::Unsupported {
            device: device.unwrap_or_else(|| "no such device".to_owned()),
            what: "choosing the way of copies to other devices",
        })
    }

    /// Opens an in-order queue.
    fn open_queue(&mut self, device: DeviceId, kind: QueueKind) -> Result<QueueId, RuntimeError>;

    /// Opens an in-order queue whose completions have the device's times.
    fn queue(&mut self, device: DeviceId) -> Result<QueueId, RuntimeError> {
        self.open_queue(device, QueueKind::Profiled)
    }

    /// Releases a queue. Commands that are still on it end as usual and
    /// complete.
    fn free_queue(&mut self, queue: QueueId);

    /// Makes a codelet ready for a queue, so that its first launch there need
    /// not wait for a compiler. Does nothing where none is needed.
    ///
    /// # Errors
    /// [`RuntimeError::Build`], [`RuntimeError::Unfit`], [`RuntimeError::NoImplementation`].
    fn load(&mut self, _queue: QueueId, _codelet: &Codelet) -> Result<(), RuntimeError> {
        Ok(())
    }

    /// Hands over what earlier runs have measured of codelets' implementations, so that
    /// launches are served by the faster one at once.
    fn know_implementations(&mut self, _known: &[Comparison]) {}

    /// What is known of codelets' implementations, where a device has several: what was
    /// handed over and used, and what was measured since, by device, codelet and sizes.
    fn implementations(&mut self) -> Vec<Comparison> {
        Vec::new()
    }

    /// Time spent so far in driver calls that set arguments, enqueue and flush,
    /// with the look-ups between them; 0 where it is not measured.
    fn driver_time(&self) -> Nanos {
        0
    }

    /// Whether a device takes [`Command::Graph`].
    fn runs_graphs(&self, _device: DeviceId) -> bool {
        false
    }

    /// Compiles a kernel for a device and returns its arguments, in their order.
    ///
    /// # Errors
    /// [`RuntimeError::Unsupported`] where kernels are not compiled,
    /// [`RuntimeError::Build`] with the compiler's log.
    fn arguments(
        &mut self,
        device: DeviceId,
        _kernel: &OpenClKernel,
    ) -> Result<Vec<KernelArgument>, RuntimeError> {
        let device = self.devices().get(device.0).map(|d| d.name.clone());
        Err(RuntimeError::Unsupported {
            device: device.unwrap_or_else(|| "no such device".to_owned()),
            what: "listing a kernel's arguments",
        })
    }

    /// Enqueues a command that waits for `wait`, and makes sure that it starts
    /// without further calls. Its completion carries `event`, which must be fresh.
    ///
    /// A command without an event is not waited for individually: the completion of a
    /// later command of its queue that has one covers it, whether it ends well or not.
    /// A driver then saves its event (1.3 us a command on NVIDIA's OpenCL). A
    /// completion with an unknown event may arrive for it all the same.
    ///
    /// Where a copy between two devices fails on the device that does not have the
    /// queue, the copy is skipped, and a completion of that device with an unknown event
    /// says why.
    ///
    /// # Errors
    /// Only for what can be detected at once (an unknown id, a kernel that does
    /// not compile, a lost device). What fails later arrives as a completion.
    fn submit(
        &mut self,
        queue: QueueId,
        command: Command,
        wait: &[EventId],
        event: Option<EventId>,
    ) -> Result<(), RuntimeError>;

    /// Waits until the commands that were submitted to a queue without an event,
    /// and that no later completion covers, have ended. For use after an error
    /// between such commands.
    fn finish(&mut self, _queue: QueueId) {}

    /// Receives a notice.
    fn notify(&mut self, _notice: Notice) {}
}

/// Devices, host memory for them, and a stream of completions.
pub trait Runtime: Devices {
    /// The present time on the runtime's clock (virtual in the simulator).
    fn now(&self) -> Nanos;

    /// Whether times and results come from a simulation.
    fn simulated(&self) -> bool {
        false
    }

    /// Allocates `bytes` of host memory that every device can transfer from
    /// and to at full speed (pinned where a device wants that). Its contents
    /// are unspecified.
    fn alloc_host(&mut self, bytes: u64) -> Result<HostMemoryId, RuntimeError>;

    /// Releases host memory. Pending commands that use it keep it alive. Adopted memory
    /// is dropped with its owner.
    fn free_host(&mut self, memory: HostMemoryId);

    /// Makes memory of the caller host memory without a copy. It is pinned in place
    /// where a device wants that and its driver can; otherwise it works unpinned.
    /// [`Runtime::take_host`] returns it.
    ///
    /// A kernel that works in host memory finds it aligned as it was allocated, and to
    /// [`adopted::LEAST_ALIGNMENT`] bytes at least. OpenCL kernels that read wider
    /// vectors (`float8`, `double4`) need memory aligned to those.
    ///
    /// # Errors
    /// [`NotAdopted`], which has the memory and the reason: no bytes, too little
    /// alignment (16 bytes are needed, and 4096 beside a GPU that computes in host
    /// memory), or what a device refuses.
    ///
    /// # Example
    ///
    /// A vector goes to a GPU and back:
    ///
    /// ```
    /// use pdawl_hardware::machine::MachineStore;
    /// use pdawl_hardware::runtime::sim::{Sim, SimOptions};
    /// use pdawl_hardware::runtime::{AdoptedMemory, Command, DeviceId, Devices, Runtime};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// // pdawl_hardware::runtime::select::open(None, true) opens the devices of this machine instead.
    /// let machine = MachineStore::of_user().find("k40")?;
    /// let mut runtime = Sim::new(&machine, SimOptions { data: true, ..SimOptions::default() })?;
    /// let devices = runtime.devices().iter();
    /// let gpu = DeviceId(devices.take_while(|device| device.shares_host_memory).count());
    ///
    /// let numbers: Vec<f32> = (0u8..100).map(f32::from).collect();
    /// let memory = runtime.adopt_host(AdoptedMemory::from(numbers))?;
    ///
    /// let (queue, buffer) = (runtime.queue(gpu)?, runtime.alloc(gpu, 400)?);
    /// runtime.enqueue(queue, Command::write(memory, 0..400, buffer, 0), &[])?;
    /// // Its second half becomes its first one.
    /// runtime.enqueue(queue, Command::read(buffer, 0, memory, 200..400), &[])?;
    /// while runtime.wait(None)?.is_some() {}
    ///
    /// let numbers: Vec<f32> = runtime.take_host(memory)?.into_owner().expect("a vector");
    /// assert_eq!(numbers[49..52], [49.0, 0.0, 1.0]);
    /// # Ok(())
    /// # }
    /// ```
    fn adopt_host(&mut self, memory: AdoptedMemory) -> Result<HostMemoryId, NotAdopted>;

    /// Takes adopted memory back, with what commands and the host wrote there. Its id is
    /// unknown from then on.
    ///
    /// # Errors
    /// [`RuntimeError::Busy`] while a command in flight uses it, and
    /// [`RuntimeError::Call`] for memory that the runtime allocated. It stays host memory
    /// then.
    fn take_host(&mut self, memory: HostMemoryId) -> Result<AdoptedMemory, RuntimeError>;

    /// A range of a host allocation's bytes, for filling and reading. The allocation
    /// is aligned to cache lines, unless it is adopted. A range that ends behind it is
    /// cut.
    ///
    /// # Errors
    /// [`RuntimeError::Busy`] while a command in flight uses a part of the range, and
    /// [`RuntimeError::NoData`] in a simulation that carries no data.
    fn host_range(
        &mut self,
        memory: HostMemoryId,
        range: Range<u64>,
    ) -> Result<&mut [u8], RuntimeError>;

    /// A range of a host allocation's bytes, for reading, which commands in flight may read
    /// meanwhile. A range that ends behind it is cut.
    ///
    /// # Errors
    /// As [`Self::host_range`], of commands that may write.
    fn host_read(&mut self, memory: HostMemoryId, range: Range<u64>)
    -> Result<&[u8], RuntimeError>;

    /// Copies the first `bytes` of a host allocation to another one.
    ///
    /// # Errors
    /// As [`Self::host_range`], of either.
    fn host_copy(
        &mut self,
        from: HostMemoryId,
        to: HostMemoryId,
        bytes: u64,
    ) -> Result<(), RuntimeError> {
        let given = self.host_read(from, 0..bytes)?.to_vec();
        self.host_range(to, 0..bytes)?.copy_from_slice(&given);
        Ok(())
    }

    /// All bytes of a host allocation; see [`Runtime::host_range`].
    fn host_bytes(&mut self, memory: HostMemoryId) -> Result<&mut [u8], RuntimeError> {
        self.host_range(memory, 0..u64::MAX)
    }

    /// Enqueues a command with a fresh event, and returns that; see
    /// [`Devices::submit`].
    fn enqueue(
        &mut self,
        queue: QueueId,
        command: Command,
        wait: &[EventId],
    ) -> Result<EventId, RuntimeError> {
        let event = EventId::fresh();
        self.submit(queue, command, wait, Some(event))?;
        Ok(event)
    }

    /// The next completion; every command submitted with an event yields exactly one.
    /// `Ok(None)` when nothing completed within `timeout` (`None`: wait for
    /// as long as anything is in flight) or nothing is in flight.
    fn wait(&mut self, timeout: Option<Duration>) -> Result<Option<Completion>, RuntimeError>;
}

/// One real way to run commands, driven by the union. Completions are sent into the
/// channel given at construction, device ids are local to the backend, and every id
/// that a command waits for belongs to it.
pub trait Backend: Devices {
    /// Whether host memory allocated here is pinned for a device's transfers;
    /// the union allocates from such a backend where there is one.
    fn pins_host_memory(&self) -> bool;

    /// Allocates host memory; see [`Runtime::alloc_host`].
    fn alloc_host(&mut self, bytes: u64) -> Result<HostRegion, RuntimeError>;

    /// Registers a host region that any backend or the user allocated.
    fn adopt_host(&mut self, region: HostRegion) -> Result<(), RuntimeError>;

    /// Pins a registered region for its devices' transfers, where they want that and
    /// the driver can.
    fn pin_host(&mut self, _memory: HostMemoryId) {}

    /// Forgets a region, if it is known. Commands in flight that use it keep it alive.
    fn forget_host(&mut self, memory: HostMemoryId);

    /// Whether copies go directly from the own memory of one device to that of another.
    fn copies_directly(&self, _from: DeviceId, _to: DeviceId) -> bool {
        false
    }

    /// Whether commands can be submitted without an event here. Without, they get
    /// one of the union's. The release of a queue waits for its commands without one.
    fn can_omit_events(&self) -> bool {
        false
    }

    /// Sends the completions of commands that have ended: those that a driver has told of by a
    /// completion of [`EventId::NOBODYS`], and those of drivers that tell nothing. True while
    /// there are such ones in flight: the caller polls again at once.
    fn poll(&mut self) -> bool {
        false
    }

    /// Called when commands are in flight and none has ended for long. A device
    /// that vanished silently must be detected here, and its commands completed
    /// as lost. A slow command is left alone.
    fn inspect(&mut self) {}
}

/// A host allocation that several backends share; freed with its last clone.
#[derive(Clone)]
pub struct HostRegion {
    /// Its id, unique in the process.
    pub id: HostMemoryId,
    /// First byte; aligned to a cache line, unless the user allocated it.
    pub address: std::ptr::NonNull<u8>,
    /// Length in bytes.
    pub bytes: u64,
    /// What keeps the memory mapped.
    pub keeper: Arc<dyn Send + Sync>,
}

impl HostRegion {
    /// The part from byte `at`, which lies within it, to its end.
    fn from(self, at: u64) -> Self {
        debug_assert!(at <= self.bytes);
        // SAFETY: the region has so many bytes, all of one allocation.
        let address = unsafe { self.address.add(at as usize) };
        Self {
            address,
            bytes: self.bytes - at,
            ..self
        }
    }
}

// SAFETY: a region is an address and a length; its bytes are reached only by
// backends, whose commands the engine orders by events, and by
// `Runtime::host_range`, which refuses while commands use them.
unsafe impl Send for HostRegion {}
// SAFETY: as above; no method of a shared region touches its bytes.
unsafe impl Sync for HostRegion {}
