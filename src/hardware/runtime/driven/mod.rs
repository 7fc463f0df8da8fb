//! What the backends over a driver (CUDA, OpenCL) have in common: one machine of queues,
//! commands under way and completions, which a [`Driver`] serves.
//!
//! * [`Machine`] (`machine`) is the [`Backend`](super::Backend); `submit` enqueues commands, and
//!   `complete` finds those that have ended and sends their completions.
//! * `device` has an open device, `memory` the memory that commands may name, and
//!   `Failure` is the error of a driver's call.
//!
//! All of it belongs to one thread. A driver that calls back from threads of its own notes what
//! has ended, and wakes the machine's thread; see [`Driver::ended`].
//!
//! A queue in which a command failed stays failed, since everything behind the failure would
//! compute on missing data; a new queue starts afresh.

#![cfg_attr(
    not(all(feature = "cuda", feature = "opencl")),
    allow(dead_code, reason = "one driver alone does not use all of it")
)]

mod complete;
mod device;
mod machine;
mod memory;
mod submit;

use std::sync::Arc;

pub(super) use device::OpenDevice;
#[cfg(feature = "opencl")]
pub(super) use machine::Uncovered;
pub(super) use machine::{InFlight, Machine, OpenQueue, Pending};
pub(super) use memory::{Buffer, End, KeepAlive, Memories, Repeats};

use super::{
    BufferId, Command, Comparison, DeviceId, EventId, HostMemoryId, HostRegion, IdMap, Nanos,
    PeerPath, RuntimeError, Status,
};
use crate::codelet::{Codelet, KernelArgument, Memory, OpenClKernel};
use crate::runtime::device_clock::Stamps;

/// A device of a driver, with what all drivers' devices have.
pub(super) type DeviceOf<D> = OpenDevice<<D as Driver>::Device>;

/// Where a command is enqueued.
pub(super) struct Here<'a, D: Driver> {
    /// The index of its device.
    pub index: usize,
    pub device: &'a mut DeviceOf<D>,
    pub queue: &'a mut OpenQueue<D>,
    pub memories: &'a Memories<D::Memory>,
}

/// The events that are wanted of a command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Wanted {
    /// One that tells when it began.
    pub begin: bool,
    /// One that tells when it has ended, and to wait for.
    pub end: bool,
}

/// A command that was enqueued.
pub(super) struct Enqueued<E> {
    pub begin: Option<Arc<E>>,
    pub end: Option<Arc<E>>,
    /// The event to wait for, which may be behind the command's end.
    pub last: Option<Arc<E>>,
    /// What must outlive the command.
    pub keep_alive: Vec<KeepAlive>,
}

impl<E> Enqueued<E> {
    /// A command without events.
    pub(super) fn silently(keep_alive: Vec<KeepAlive>) -> Self {
        Self {
            begin: None,
            end: None,
            last: None,
            keep_alive,
        }
    }
}

/// Why a command cannot wait for another one.
pub(super) enum NotAwaited {
    /// A call failed on the device that was to wait.
    Here(RuntimeError),
    /// The other one's device fails, and is lost for this reason if there is one.
    There { device: usize, loss: Option<String> },
}

/// What a driver does for the machine.
pub(super) trait Driver: Sized + 'static {
    /// What its devices, queues, events and buffers are.
    type Device;
    type Queue;
    type Event: Send + Sync + 'static;
    type Memory: Send + Sync + 'static;

    /// Allocates so many bytes on a device, which has them.
    fn allocate(
        &mut self,
        device: &mut DeviceOf<Self>,
        bytes: u64,
    ) -> Result<Self::Memory, RuntimeError>;

    /// Host memory that devices copy from and to at full speed.
    fn pinned(&mut self, device: &DeviceOf<Self>, bytes: u64) -> Result<HostRegion, RuntimeError>;

    /// From now on that host memory lies on a GPU, by CUDA's number, if the driver is CUDA's.
    fn host_on(&mut self, _gpu: usize) {}

    /// Pins a region in place, as far as the driver can; else copies are those of unpinned
    /// memory.
    fn pin_in_place(&mut self, region: &mut HostRegion, devices: &[DeviceOf<Self>]);

    /// Drops what was prepared for memory that is about to be freed.
    fn forget<'q>(&mut self, memory: Memory, queues: impl Iterator<Item = &'q mut OpenQueue<Self>>);

    /// Opens a queue, perhaps one whose commands have time stamps.
    fn open_queue(
        &mut self,
        device: &DeviceOf<Self>,
        profiling: bool,
    ) -> Result<Self::Queue, RuntimeError>;

    /// Makes a codelet ready.
    fn load(&mut self, here: &mut Here<'_, Self>, codelet: &Codelet) -> Result<(), RuntimeError>;

    /// A kernel's arguments, as the compiler reports them.
    fn arguments(
        &mut self,
        device: &DeviceOf<Self>,
        kernel: &OpenClKernel,
    ) -> Result<Vec<KernelArgument>, RuntimeError>;

    /// Has what is enqueued next wait for commands of other queues. Called before each command;
    /// returns the events that [`Self::enqueue`] is to be given.
    fn wait_for(
        &mut self,
        here: &mut Here<'_, Self>,
        others: &[&InFlight<Self>],
    ) -> Result<Vec<Arc<Self::Event>>, NotAwaited>;

    /// Enqueues a command that is no series. Where it fails, the queue keeps what must outlive
    /// the parts of it that run.
    fn enqueue(
        &mut self,
        here: &mut Here<'_, Self>,
        command: &Command,
        wanted: Wanted,
        wait: &[Arc<Self::Event>],
    ) -> Result<Enqueued<Self::Event>, RuntimeError>;

    /// Has the commands of a queue start.
    fn flush(&mut self, _device: &DeviceOf<Self>, _queue: &OpenQueue<Self>) {}

    /// A command is under way, whose end is asked for from now on.
    fn watch(&mut self, _device: &DeviceOf<Self>, _pending: &Pending<Self>) {}

    /// Takes note of what has happened, before the commands in flight are asked for.
    fn look(
        &mut self,
        _devices: &mut [DeviceOf<Self>],
        _in_flight: &IdMap<EventId, InFlight<Self>>,
    ) {
    }

    /// How and when a command ended, if it has, as far as is known without asking the driver.
    /// `asks` has it asked, after a long silence.
    fn ended(
        &mut self,
        device: &mut DeviceOf<Self>,
        pending: &Pending<Self>,
        asks: bool,
    ) -> Option<(Status, Nanos)>;

    /// Whether commands of a device are to be asked for all the time, since nobody calls.
    fn is_polled(&self, device: &DeviceOf<Self>) -> bool;

    /// The times from the begin of one event to the end of another on the device's clock.
    fn stamps(
        &mut self,
        device: &mut DeviceOf<Self>,
        first: &Arc<Self::Event>,
        last: &Arc<Self::Event>,
    ) -> Option<Stamps>;

    /// A command has ended; its events are not needed any more.
    fn retire(&mut self, device: &mut DeviceOf<Self>, pending: Pending<Self>);

    /// Nothing is under way any more.
    fn rest(&mut self, _devices: &[DeviceOf<Self>]) {}

    /// Whether a device answers that is silent for long; one that does not is lost.
    fn probe(&mut self, _device: &DeviceOf<Self>) {}

    /// Waits until all commands of a queue have ended, as far as the device works: the next call
    /// detects one that fails here.
    fn synchronize(&mut self, queue: &OpenQueue<Self>);

    /// A freed queue has no commands any more.
    fn close(&mut self, _queue: OpenQueue<Self>) {}

    /// The machine is dropped, when these queues' commands have ended.
    fn leave<'q>(&mut self, _queues: impl Iterator<Item = &'q OpenQueue<Self>>) {}

    /// How copies go directly from one device to another one; see [`super::Devices::peer_path`].
    fn peer_path(&self, _from: DeviceId, _to: DeviceId) -> Option<PeerPath> {
        None
    }

    /// Whether copies go directly between two devices.
    fn copies_directly(&self, from: DeviceId, to: DeviceId, devices: &[DeviceOf<Self>]) -> bool;

    /// See [`super::Devices::runs_graphs`].
    fn runs_graphs(&self, _device: &DeviceOf<Self>) -> bool {
        false
    }

    /// See [`super::Devices::know_implementations`].
    fn know_implementations(&mut self, _known: &[Comparison]) {}

    /// See [`super::Devices::implementations`].
    fn implementations(&mut self, _devices: &mut [DeviceOf<Self>]) -> Vec<Comparison> {
        Vec::new()
    }
}

/// The error of an id that is not known.
fn unknown(what: &'static str) -> RuntimeError {
    RuntimeError::Unknown { what }
}

/// The error of a device that does not exist.
fn at<T>(all: &[T], device: DeviceId) -> Result<&T, RuntimeError> {
    all.get(device.0).ok_or_else(|| unknown("device"))
}

/// The codes that a driver's calls answer.
pub(super) trait Code: Copy {
    /// Whether the device, or everything on it, is lost.
    fn is_loss(self) -> bool;

    /// Whether memory ran out.
    fn is_out_of_memory(self) -> bool;

    /// Its name and number, and what they mean.
    fn describe(self) -> String;
}

/// A call that failed, and the driver's code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Failure<C> {
    pub call: &'static str,
    pub code: C,
}

impl<C: Code> Failure<C> {
    /// Whether the device is lost; see [`Code::is_loss`].
    pub fn is_loss(self) -> bool {
        self.code.is_loss()
    }

    /// Whether memory ran out.
    pub fn is_out_of_memory(self) -> bool {
        self.code.is_out_of_memory()
    }

    /// What the driver says.
    pub fn describe(self) -> String {
        self.code.describe()
    }

    /// The error of a device.
    pub fn on(self, device: &str) -> RuntimeError {
        match self.is_loss() {
            true => RuntimeError::DeviceLost {
                device: device.to_owned(),
                why: format!("{} answered {}", self.call, self.describe()),
            },
            false => RuntimeError::Call {
                device: device.to_owned(),
                call: self.call,
                why: self.describe(),
            },
        }
    }
}
