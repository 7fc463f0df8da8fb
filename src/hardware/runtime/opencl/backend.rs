//! [`OpenCl`], the driver that serves the [`Machine`].

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use cl3::command_queue::finish;
use cl3::error_codes::CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
use cl3::types::{cl_event, cl_int};
use crossbeam_channel::{Receiver, Sender, unbounded};

use super::Selected;
use super::device::{ClDevice, OpenDevice, new_queue};
use super::events::{Teller, Told, bridge, ended_with, release, stamps};
use super::failure::status_of;
use super::handle::{Event, Queue, RELEASE_TIMEOUT, wait_for_release};
use super::launch::{LaunchEnv, implementation};
use super::memory::{ClMemory, pin_in_place, pinned};
use super::open::open_devices;
use super::program::Programs;
use super::queue::ClQueue;
use super::repeat::Repeat;
use crate::codelet::{Codelet, KernelArgument, Memory, OpenClKernel};
use crate::runtime::device_clock::Stamps;
use crate::runtime::driven::{
    self, Driver, Enqueued, InFlight, Machine, NotAwaited, Repeats, Wanted,
};
use crate::runtime::{
    Backend, Command, Completion, DeviceId, EventId, HostRegion, IdMap, Launch, Nanos,
    RuntimeError, Status,
};

/// OpenCL devices.
pub(super) struct OpenCl {
    pub(super) repeats: Repeats<Launch, Repeat, u32>,
    /// One for each platform in use.
    pub(super) contexts: Vec<Programs>,
    /// By device: the index of its context.
    pub(super) context_of: Vec<usize>,
    /// The user events that stand for commands in other contexts.
    bridges: Vec<(EventId, Arc<Event>)>,
    /// Freed queues and their last events, which a driver's thread may still read,
    /// and since when.
    closing: VecDeque<(Instant, Arc<Queue>, Option<Arc<Event>>)>,
    /// What the driver's threads have told, and by what they do so.
    told: Receiver<Told>,
    tellers: Sender<Told>,
    completions: Sender<Completion>,
    epoch: Instant,
    /// How and when commands ended that are still to be reported.
    ended: IdMap<EventId, (cl_int, Nanos)>,
}

type Here<'a> = driven::Here<'a, OpenCl>;
type OpenQueue = driven::OpenQueue<OpenCl>;
type Pending = driven::Pending<OpenCl>;
pub(super) type OpenClMachine = Machine<OpenCl>;

/// Opens these devices; the order is that of their [`DeviceId`]s. Completions go to
/// `completions`, with times counted from `epoch`.
///
/// # Errors
/// When there is no OpenCL, no such device, or a device cannot be divided
/// as is asked; when two selections of one device would share compute
/// units; and when a driver refuses.
pub fn open(
    selection: &[Selected],
    completions: Sender<Completion>,
    epoch: Instant,
) -> Result<Box<dyn Backend>, RuntimeError> {
    Ok(Box::new(open_machine(selection, completions, epoch)?))
}

/// As [`open`], with the concrete type.
pub(super) fn open_machine(
    selection: &[Selected],
    completions: Sender<Completion>,
    epoch: Instant,
) -> Result<OpenClMachine, RuntimeError> {
    let (devices, contexts) = open_devices(selection, epoch)?;
    let (tellers, told) = unbounded();
    let opencl = OpenCl {
        repeats: Repeats::default(),
        contexts,
        context_of: devices.iter().map(|device| device.context).collect(),
        bridges: Vec::new(),
        closing: VecDeque::new(),
        told,
        tellers,
        completions: completions.clone(),
        epoch,
        ended: IdMap::default(),
    };
    Ok(Machine::new(opencl, devices, completions))
}

impl Driver for OpenCl {
    type Device = ClDevice;
    type Queue = ClQueue;
    type Event = Event;
    type Memory = ClMemory;

    fn allocate(&mut self, device: &mut OpenDevice, bytes: u64) -> Result<ClMemory, RuntimeError> {
        Ok(ClMemory {
            mem: device.alloc(&self.contexts[device.context].context, bytes)?,
            context: device.context,
        })
    }

    fn pinned(&mut self, device: &OpenDevice, bytes: u64) -> Result<HostRegion, RuntimeError> {
        pinned(device, &self.contexts[device.context].context, bytes)
    }

    fn pin_in_place(&mut self, region: &mut HostRegion, devices: &[OpenDevice]) {
        // Of each context once: its devices share what is pinned.
        let wanting = self.contexts.iter().enumerate().filter(|(index, _)| {
            let mut devices = devices.iter();
            devices.any(|d| d.context == *index && !d.info.shares_host_memory)
        });
        pin_in_place(region, wanting.map(|(_, programs)| &*programs.context));
    }

    fn forget<'q>(&mut self, memory: Memory, queues: impl Iterator<Item = &'q mut OpenQueue>) {
        self.repeats.forget(memory);
        if let Memory::Host(id) = memory {
            for queue in queues {
                queue.own.views.remove(&id);
            }
        }
    }

    fn open_queue(
        &mut self,
        device: &OpenDevice,
        profiling: bool,
    ) -> Result<ClQueue, RuntimeError> {
        let context = &self.contexts[device.context].context;
        let queue = new_queue(context, device.id, profiling);
        queue
            .map(ClQueue::new)
            .map_err(|failure| device.failed(failure))
    }

    fn load(&mut self, here: &mut Here<'_>, codelet: &Codelet) -> Result<(), RuntimeError> {
        let kernel = implementation(codelet, here.device)?;
        let (queue, mut env) = LaunchEnv::of(here, &mut self.contexts);
        queue.load(kernel, &mut env).map(|_| ())
    }

    fn arguments(
        &mut self,
        device: &OpenDevice,
        kernel: &OpenClKernel,
    ) -> Result<Vec<KernelArgument>, RuntimeError> {
        self.contexts[device.context].arguments(kernel, device)
    }

    fn wait_for(
        &mut self,
        here: &mut Here<'_>,
        others: &[&InFlight<Self>],
    ) -> Result<Vec<Arc<Event>>, NotAwaited> {
        let context = here.device.context;
        let mut events = Vec::with_capacity(others.len());
        for other in others {
            if self.context_of[other.device] == context {
                events.push(Arc::clone(&other.event));
                continue;
            }
            let user = bridge(&other.event, &self.contexts[context].context).map_err(|code| {
                NotAwaited::Here(here.device.failed_at("clCreateUserEvent", code))
            })?;
            self.bridges.push((other.id, Arc::clone(&user)));
            events.push(user);
        }
        Ok(events)
    }

    fn enqueue(
        &mut self,
        here: &mut Here<'_>,
        command: &Command,
        wanted: Wanted,
        wait: &[Arc<Event>],
    ) -> Result<Enqueued<Event>, RuntimeError> {
        let wait: Vec<cl_event> = wait.iter().map(|event| event.raw()).collect();
        let (queue, mut env) = LaunchEnv::of(here, &mut self.contexts);
        let enqueued = match command {
            Command::Copy { from, to, rows } => {
                queue.copy(&env, (*from, *to, *rows), wanted.begin || wanted.end, &wait)
            }
            Command::Launch(launch) => queue.launch(launch, wanted, &mut env, &wait),
            Command::Repeat(launch) => {
                queue.repeat(launch, wanted, &mut self.repeats, &mut env, &wait)
            }
            Command::Series(_) | Command::Graph(_) => {
                let why = "OpenCL has no command graphs; enqueue its launches one by one";
                Err(env.device.refused("clEnqueueNDRangeKernel", why.to_owned()))
            }
        }?;
        if let Some(last) = &enqueued.last {
            queue.last = Some(Arc::clone(last));
        }
        Ok(enqueued)
    }

    fn flush(&mut self, device: &OpenDevice, queue: &OpenQueue) {
        device.flush(&queue.own.raw);
    }

    fn watch(&mut self, device: &OpenDevice, pending: &Pending) {
        if !device.polled {
            let teller = Teller {
                event: pending.completion.event,
                epoch: self.epoch,
                told: self.tellers.clone(),
                completions: self.completions.clone(),
                wake_up: pending.completion.wake_up(),
            };
            teller.watch(&pending.last);
        }
    }

    fn look(&mut self, _: &mut [OpenDevice], in_flight: &IdMap<EventId, InFlight<Self>>) {
        for Told { event, code, at } in self.told.try_iter() {
            // Others were reported when the driver was asked.
            if in_flight.contains_key(&event) {
                self.ended.insert(event, (code, at));
            }
        }
        while let Some((since, ..)) = self.closing.front()
            && since.elapsed() >= RELEASE_TIMEOUT
        {
            self.closing.pop_front();
        }
    }

    fn ended(
        &mut self,
        device: &mut OpenDevice,
        pending: &Pending,
        asks: bool,
    ) -> Option<(Status, Nanos)> {
        let told = self.ended.get(&pending.completion.event).copied();
        let (code, at) = match told {
            Some(told) => told,
            None if asks || device.polled => {
                (ended_with(&pending.last, device)?, device.clock.now())
            }
            None => return None,
        };
        let waited = !pending.waits.is_empty();
        let status = match code {
            // What it waited for says why, perhaps on another device.
            CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST if waited => Status::Skipped,
            code if code < 0 => status_of(code),
            _ => Status::Done,
        };
        Some((status, at))
    }

    fn is_polled(&self, device: &OpenDevice) -> bool {
        device.polled
    }

    fn stamps(
        &mut self,
        _device: &mut OpenDevice,
        first: &Arc<Event>,
        last: &Arc<Event>,
    ) -> Option<Stamps> {
        stamps(first, last)
    }

    fn retire(&mut self, _device: &mut OpenDevice, pending: Pending) {
        let event = pending.completion.event;
        self.ended.remove(&event);
        // A driver that forgets a callback must not keep what waits in other contexts.
        for (_, user) in self.bridges.extract_if(.., |(of, _)| *of == event) {
            release(&user);
        }
    }

    fn probe(&mut self, device: &OpenDevice) {
        device.probe();
    }

    fn synchronize(&mut self, queue: &OpenQueue) {
        let _ = finish(queue.own.raw.raw());
    }

    fn close(&mut self, queue: OpenQueue) {
        let ClQueue { raw, last, .. } = queue.own;
        self.closing.push_back((Instant::now(), raw, last));
    }

    fn leave<'q>(&mut self, queues: impl Iterator<Item = &'q OpenQueue>) {
        // Buffers may keep their last events.
        self.repeats = Repeats::default();
        let open = queues.map(|queue| &queue.own.last);
        let closing = self.closing.iter().map(|(_, _, last)| last);
        wait_for_release(open.chain(closing).filter_map(|last| last.as_deref()));
    }

    fn copies_directly(&self, from: DeviceId, to: DeviceId, _devices: &[OpenDevice]) -> bool {
        self.context_of[from.0] == self.context_of[to.0]
    }
}

#[cfg(test)]
#[path = "queue_program_tests.rs"]
mod queue_program_tests;

#[cfg(test)]
#[path = "backend_tests.rs"]
mod tests;
