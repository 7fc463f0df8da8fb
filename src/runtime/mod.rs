//! The one seam to hardware.
//!
//! This folder owns everything that touches a device: memory, queues, commands
//! and the stream of completions. Above it nobody knows OpenCL or threads;
//! below it nobody knows scheduling.
//!
//! * [`Runtime`] is what an engine drives. [`sim`] implements it over virtual
//!   time; [`union`] implements it over any number of real backends.
//! * [`Backend`] is one real way to run commands: [`host`] (native code on
//!   pinned thread pools) or [`opencl`]. A backend pushes its completions into
//!   the channel that the union owns, so that several act as one machine.
//! * `tiles` says how a host pool cuts a command among its workers, to whoever
//!   runs one, simulates one, or predicts one.
//!
//! Nothing blocks except [`Runtime::wait`].

pub mod command;
pub mod error;
pub mod faulty;
pub mod host;
pub mod ids;
pub mod opencl;
pub mod select;
pub mod sim;
pub(crate) mod tiles;
pub mod union;

pub use command::{
    Command, CommandKind, Completion, DeviceSpan, HostSpan, Launch, Stages, Status, Tag, Workers,
};
pub use error::RuntimeError;
pub use ids::{DeviceId, EventId, IdMap, QueueId};

pub use crate::codelet::{BufferId, HostMemoryId, Memory, Value};
use crate::codelet::{Codelet, KernelArgument, OpenClKernel};
pub use crate::time::Nanos;

use std::sync::Arc;
use std::time::Duration;

use crate::machine::Device;

/// Something to be done on a thread, whatever it is to the runtime.
pub type Errand = Arc<dyn Fn() + Send + Sync>;

/// Devices, their memory and queues, and a stream of completions.
///
/// Commands on one queue run in order. A command starts after everything
/// before it in its queue and every event of its wait list has ended; when one
/// of those failed, it fails too, without running.
pub trait Runtime {
    /// The devices, in the order of their [`DeviceId`]s.
    fn devices(&self) -> &[Device];

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

    /// Releases host memory. Pending commands that use it keep it alive.
    fn free_host(&mut self, memory: HostMemoryId);

    /// The bytes of a host allocation, aligned to cache lines, for filling and
    /// reading.
    ///
    /// # Errors
    /// [`RuntimeError::Busy`] while any command is in flight, and
    /// [`RuntimeError::NoData`] in a simulation that carries no data.
    fn host_bytes(&mut self, memory: HostMemoryId) -> Result<&mut [u8], RuntimeError>;

    /// Allocates `bytes` on a device that has memory of its own.
    fn alloc(&mut self, device: DeviceId, bytes: u64) -> Result<BufferId, RuntimeError>;

    /// Releases device memory. Pending commands that use it keep it alive.
    fn free(&mut self, buffer: BufferId);

    /// A new in-order queue of a device.
    fn queue(&mut self, device: DeviceId) -> Result<QueueId, RuntimeError>;

    /// A new in-order queue whose commands' times need not be those of the
    /// device: a completion may say that its command ran from when it was
    /// queued until its end was heard of. Where stamping costs something (on
    /// NVIDIA's OpenCL 7 us a command), such a queue saves it.
    fn unstamped_queue(&mut self, device: DeviceId) -> Result<QueueId, RuntimeError> {
        self.queue(device)
    }

    /// Releases a queue. Commands that are still on it end as usual and
    /// complete.
    fn free_queue(&mut self, queue: QueueId);

    /// Makes a codelet ready for a queue, so that its first launch there need
    /// not wait for a compiler. Nothing to do where none is needed.
    ///
    /// # Errors
    /// [`RuntimeError::Build`], [`RuntimeError::NoImplementation`].
    fn load(&mut self, _queue: QueueId, _codelet: &Codelet) -> Result<(), RuntimeError> {
        Ok(())
    }

    /// Time spent so far in drivers' calls that set arguments, enqueue and flush,
    /// with the look-ups between them; 0 where nobody counts it.
    fn driver_time(&self) -> Nanos {
        0
    }

    /// Compiles a kernel for a device and tells its arguments, in their order.
    ///
    /// # Errors
    /// [`RuntimeError::Unsupported`] where kernels are not compiled,
    /// [`RuntimeError::Build`] with the compiler's log.
    fn arguments(
        &mut self,
        device: DeviceId,
        _kernel: &OpenClKernel,
    ) -> Result<Vec<KernelArgument>, RuntimeError> {
        Err(RuntimeError::Unsupported {
            device: (self.devices().get(device.0))
                .map_or_else(|| "no such device".to_owned(), |d| d.name.clone()),
            what: "telling a kernel's arguments",
        })
    }

    /// Enqueues a command that waits for `wait`, and makes sure that it starts
    /// without further calls. Returns the event that its completion carries.
    ///
    /// # Errors
    /// Only for what can be told at once (an unknown id, a kernel that does
    /// not compile, a lost device). What fails later arrives as a completion.
    fn submit(
        &mut self,
        queue: QueueId,
        command: Command,
        wait: &[EventId],
        tag: Tag,
    ) -> Result<EventId, RuntimeError>;

    /// Enqueues a command of whose end nobody wants to hear by itself: a later
    /// one of its queue, submitted as usual, tells of it by its own end, well or
    /// not. So there is no event to wait for, and a driver can be spared making
    /// one (1.3 us a command on NVIDIA's OpenCL). A completion may come of it all
    /// the same, with an event that nobody knows.
    ///
    /// # Errors
    /// As [`Runtime::submit`].
    fn submit_quietly(
        &mut self,
        queue: QueueId,
        command: Command,
        wait: &[EventId],
        tag: Tag,
    ) -> Result<(), RuntimeError> {
        self.submit(queue, command, wait, tag).map(drop)
    }

    /// Waits for what was submitted quietly to a queue and has nothing behind it
    /// that tells of its end, as after an error in between.
    fn quiesce(&mut self, _queue: QueueId) {}

    /// Several commands follow: until [`Runtime::end_batch`] they need not start,
    /// which spares a driver telling its device of each. Nothing may be waited
    /// for meanwhile.
    fn begin_batch(&mut self) {}

    /// Makes sure that what was submitted since [`Runtime::begin_batch`] starts.
    fn end_batch(&mut self) {}

    /// The next completion; every submitted command yields exactly one.
    /// `Ok(None)` when nothing completed within `timeout` (`None`: wait for
    /// as long as anything is in flight) or nothing is in flight.
    fn wait(&mut self, timeout: Option<Duration>) -> Result<Option<Completion>, RuntimeError>;

    /// Tells the runtime that a step begins. The simulator's faults may be
    /// scheduled by step; the host backend looks at its affinity mask again.
    fn mark_step(&mut self, _step: u32) {}

    /// The calling thread is about to drive this runtime: to submit, and to wait.
    /// Until [`Runtime::end_driving`] it stays, where there are some, on cores
    /// that no device has: on a core that it shares with a thread that computes
    /// it would be late, and every device with it. Threads that it starts
    /// meanwhile stay there, too. The process's main thread is left alone: its
    /// affinity mask says which cores the process may use.
    fn begin_driving(&mut self) {}

    /// The thread that drove this runtime runs wherever it did before.
    fn end_driving(&mut self) {}

    /// Runs an errand once on each thread of this runtime that computes
    /// kernels, and returns when all have. A driver's own threads are not
    /// reached, and the simulator has none. Meant for a setup: a thread that
    /// computes is waited for.
    fn on_each_worker(&mut self, _errand: &Errand) {}
}

/// One real way to run commands, driven by the union.
///
/// As [`Runtime`], except that completions are sent into the channel given at
/// construction, and that device ids are local to the backend.
pub trait Backend {
    /// The backend's devices.
    fn devices(&self) -> &[Device];

    /// Whether host memory allocated here is pinned for a device's transfers;
    /// the union allocates from such a backend where there is one.
    fn pins_host_memory(&self) -> bool;

    /// Allocates host memory; see [`Runtime::alloc_host`].
    fn alloc_host(&mut self, bytes: u64) -> Result<HostRegion, RuntimeError>;

    /// Makes a host region, allocated by any backend, known here.
    fn adopt_host(&mut self, region: HostRegion) -> Result<(), RuntimeError>;

    /// Forgets a region.
    fn forget_host(&mut self, memory: HostMemoryId);

    /// See [`Runtime::alloc`].
    fn alloc(&mut self, device: DeviceId, bytes: u64) -> Result<BufferId, RuntimeError>;

    /// See [`Runtime::free`].
    fn free(&mut self, buffer: BufferId);

    /// See [`Runtime::queue`].
    fn queue(&mut self, device: DeviceId) -> Result<QueueId, RuntimeError>;

    /// See [`Runtime::unstamped_queue`].
    fn unstamped_queue(&mut self, device: DeviceId) -> Result<QueueId, RuntimeError> {
        self.queue(device)
    }

    /// See [`Runtime::free_queue`].
    fn free_queue(&mut self, queue: QueueId);

    /// See [`Runtime::load`].
    fn load(&mut self, _queue: QueueId, _codelet: &Codelet) -> Result<(), RuntimeError> {
        Ok(())
    }

    /// See [`Runtime::driver_time`].
    fn driver_time(&self) -> Nanos {
        0
    }

    /// See [`Runtime::arguments`].
    fn arguments(
        &mut self,
        device: DeviceId,
        _kernel: &OpenClKernel,
    ) -> Result<Vec<KernelArgument>, RuntimeError> {
        Err(RuntimeError::Unsupported {
            device: (self.devices().get(device.0))
                .map_or_else(|| "no such device".to_owned(), |d| d.name.clone()),
            what: "telling a kernel's arguments",
        })
    }

    /// See [`Runtime::submit`]; `event` is chosen by the caller, and every id
    /// in `wait` belongs to this backend.
    fn submit(
        &mut self,
        queue: QueueId,
        command: Command,
        wait: &[EventId],
        tag: Tag,
        event: EventId,
    ) -> Result<(), RuntimeError>;

    /// Whether commands can be submitted quietly here.
    fn quiet(&self) -> bool {
        false
    }

    /// See [`Runtime::submit_quietly`]; meant for a backend that is
    /// [`Backend::quiet`], and for what need not be held back.
    fn submit_quietly(
        &mut self,
        queue: QueueId,
        command: Command,
        wait: &[EventId],
        tag: Tag,
    ) -> Result<(), RuntimeError> {
        self.submit(queue, command, wait, tag, EventId::fresh())
    }

    /// See [`Runtime::quiesce`].
    fn quiesce(&mut self, _queue: QueueId) {}

    /// See [`Runtime::begin_batch`].
    fn begin_batch(&mut self) {}

    /// See [`Runtime::end_batch`].
    fn end_batch(&mut self) {}

    /// Looks for ends that nothing tells of, and sends their completions.
    /// True while such commands are in flight: who waits looks again at once.
    fn look(&mut self) -> bool {
        false
    }

    /// Called when commands are in flight and none has ended for long. A
    /// device that is gone without a word must be found out here, and its
    /// commands completed as lost; what is merely slow is left alone.
    fn inspect(&mut self) {}

    /// See [`Runtime::mark_step`].
    fn mark_step(&mut self, _step: u32) {}

    /// See [`Runtime::begin_driving`].
    fn begin_driving(&mut self) {}

    /// See [`Runtime::end_driving`].
    fn end_driving(&mut self) {}

    /// See [`Runtime::on_each_worker`].
    fn on_each_worker(&mut self, _errand: &Errand) {}
}

/// A host allocation that several backends share; freed with its last clone.
#[derive(Clone)]
pub struct HostRegion {
    /// Its id, unique in the process.
    pub id: HostMemoryId,
    /// First byte, aligned to a cache line.
    pub address: std::ptr::NonNull<u8>,
    /// Length in bytes.
    pub bytes: u64,
    /// What keeps the memory mapped.
    pub keeper: std::sync::Arc<dyn Send + Sync>,
}

impl HostRegion {
    /// The part from `at`, which it has, to its end.
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
// `Runtime::host_bytes`, which refuses while commands are in flight.
unsafe impl Send for HostRegion {}
// SAFETY: as above; no method of a shared region touches its bytes.
unsafe impl Sync for HostRegion {}
