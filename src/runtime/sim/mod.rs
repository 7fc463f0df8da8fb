//! The simulator: a machine file's devices in virtual time.
//!
//! This folder owns the model of a machine. Its parts, from the bottom:
//!
//! * [`fluid`] shares resources among running commands;
//! * [`schedule`] decides what waits for what, whose turn it is, and when it
//!   ends; both are pure and know nothing of memory or drivers;
//! * [`plant`] turns a machine file into devices, and a command into what it
//!   needs of them; [`noise`] varies that;
//! * [`memory`] counts memory, and carries bytes if the run has data;
//! * [`options`] is what a simulation is asked for, faults among it;
//! * [`Sim`] is the driver's side: its virtual clock, which an enqueue moves
//!   forward, and the stream of completions.
//!
//! With data, a command's effect happens when it ends, in the order of ending,
//! by its native implementation. So a schedule that lacks an event gives a
//! wrong result here, as it may on a real machine.

pub mod fluid;
mod memory;
mod noise;
mod options;
mod plant;
pub mod schedule;

#[cfg(test)]
mod tests;

pub use options::{At, Fault, SimDevice, SimOptions, What};

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use super::{
    BufferId, Command, Completion, DeviceId, EventId, HostMemoryId, Launch, Memory, Nanos, QueueId,
    Runtime, RuntimeError, Status, Tag, Value,
};
use crate::machine::{Device, DeviceKind, MachineFile};
use memory::Store;
use noise::Noise;
use plant::Part;
use schedule::{End, Ended, JobId, Schedule};

/// A simulated machine.
pub struct Sim {
    devices: Vec<Device>,
    parts: Vec<Part>,
    schedule: Schedule,
    store: Store,
    noise: Noise,
    /// Faults still to come, by time and by step.
    timed: Vec<(Nanos, Fault)>,
    stepped: Vec<(u32, Fault)>,
    /// The driver's time; the schedule is never ahead of it between calls.
    now: Nanos,
    queues: HashMap<QueueId, Queue>,
    events: HashMap<EventId, Event>,
    /// Commands that have not ended.
    running: HashMap<JobId, Running>,
    /// Completions by the time at which the driver gets to know of them.
    deliveries: BTreeMap<(Nanos, JobId), Completion>,
}

struct Queue {
    device: usize,
    last: Option<EventId>,
}

#[derive(Clone, Copy)]
enum Event {
    Pending(JobId),
    Ended { well: bool },
}

struct Running {
    device: usize,
    queue: QueueId,
    event: EventId,
    command: Command,
    tag: Tag,
    queued: Nanos,
}

impl Sim {
    /// A machine at virtual time 0.
    ///
    /// # Errors
    /// [`RuntimeError::Selection`] for devices, noise or faults that the
    /// machine cannot have.
    pub fn new(machine: &MachineFile, options: SimOptions) -> Result<Self, RuntimeError> {
        let selected = options.selection(machine)?;
        options.check(&selected)?;
        let (schedule, parts) = plant::build(machine, &selected);
        let memories = parts
            .iter()
            .map(|p| (p.device.name.clone(), p.device.memory));
        let mut timed = Vec::new();
        let mut stepped = Vec::new();
        for fault in options.faults {
            match fault.at {
                At::Seconds(s) => timed.push(((s * 1e9) as Nanos, fault)),
                At::Step(step) => stepped.push((step, fault)),
            }
        }
        // Stable, and with the next fault at the end.
        timed.reverse();
        timed.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
        Ok(Self {
            devices: parts.iter().map(|p| p.device.clone()).collect(),
            store: Store::new(options.data, machine.host.memory, memories),
            parts,
            schedule,
            noise: Noise::new(
                options.seed,
                options.noise.unwrap_or(machine.noise.relative),
            ),
            timed,
            stepped,
            now: 0,
            queues: HashMap::new(),
            events: HashMap::new(),
            running: HashMap::new(),
            deliveries: BTreeMap::new(),
        })
    }

    fn part(&self, device: DeviceId) -> Result<&Part, RuntimeError> {
        let part = self.parts.get(device.0);
        part.ok_or(RuntimeError::Unknown { what: "device" })
    }

    /// Refuses what a lost device cannot give.
    fn present(&self, device: DeviceId) -> Result<(), RuntimeError> {
        let part = self.part(device)?;
        if self.schedule.is_lost(device.0) {
            return Err(RuntimeError::DeviceLost {
                device: part.device.name.clone(),
                why: "a simulated fault".into(),
            });
        }
        Ok(())
    }

    /// Lets virtual time pass, faults included.
    fn advance(&mut self, to: Nanos) {
        while let Some((at, fault)) = self.timed.pop_if(|(at, _)| *at <= to) {
            self.schedule.advance(at);
            self.collect();
            self.strike(fault);
        }
        self.schedule.advance(to);
        self.collect();
    }

    fn strike(&mut self, fault: Fault) {
        let part = &mut self.parts[fault.device];
        match fault.what {
            What::Lost => {
                self.schedule.lose(fault.device);
                self.store.poison(fault.device);
            }
            What::Slowed(factor) => part.slow(factor, self.schedule.fluid()),
            What::Cores(cores) => part.set_cores(Some(cores), self.schedule.fluid()),
            What::Restored => {
                self.schedule.restore(fault.device);
                part.slow(1.0, self.schedule.fluid());
                part.set_cores(None, self.schedule.fluid());
            }
            What::FailNext(commands) => self.schedule.fail_next(fault.device, commands),
        }
        self.collect();
    }

    /// Takes what has ended: its effect on memory, and its completion.
    fn collect(&mut self) {
        for ended in self.schedule.take_ended() {
            if let Some(running) = self.running.remove(&ended.job) {
                self.complete(ended, running);
            }
        }
    }

    fn complete(&mut self, ended: Ended, running: Running) {
        let well = ended.end == End::Done;
        if well {
            match &running.command {
                Command::Write { from, to } => self.store.copy(
                    (Memory::Host(from.memory), from.offset),
                    (Memory::Device(to.buffer), to.offset),
                    from.bytes,
                ),
                Command::Read { from, to } => self.store.copy(
                    (Memory::Device(from.buffer), from.offset),
                    (Memory::Host(to.memory), to.offset),
                    to.bytes,
                ),
                Command::Launch(launch) => self.store.compute(launch),
            }
        }
        for memory in memories(&running.command) {
            self.store.release(memory);
        }
        self.events.insert(running.event, Event::Ended { well });
        let delivered = ended.at + self.parts[running.device].completion;
        let completion = Completion {
            event: running.event,
            device: DeviceId(running.device),
            queue: running.queue,
            kind: running.command.kind(),
            tag: running.tag,
            queued: running.queued,
            submitted: running.queued,
            started: ended.started,
            ended: ended.at,
            bytes: running.command.bytes(),
            status: match ended.end {
                End::Done => Status::Done,
                End::Failed => Status::Failed("a simulated fault".into()),
                End::Spoilt => Status::Skipped,
                End::DeviceLost => Status::DeviceLost("a simulated fault".into()),
            },
        };
        self.deliveries.insert((delivered, ended.job), completion);
    }

    /// Refuses a command that its device cannot run.
    fn check(&self, device: DeviceId, command: &Command) -> Result<(), RuntimeError> {
        match command {
            Command::Launch(launch) => self.check_launch(device, launch),
            Command::Write { from, to } => {
                self.check_span(device, Memory::Host(from.memory), from.offset, from.bytes)?;
                self.check_span(device, Memory::Device(to.buffer), to.offset, from.bytes)
            }
            Command::Read { from, to } => {
                self.check_span(device, Memory::Device(from.buffer), from.offset, to.bytes)?;
                self.check_span(device, Memory::Host(to.memory), to.offset, to.bytes)
            }
        }
    }

    fn check_launch(&self, device: DeviceId, launch: &Launch) -> Result<(), RuntimeError> {
        let part = self.part(device)?;
        for value in &launch.args {
            if let Value::Memory(memory) = value {
                self.check_span(device, *memory, 0, 0)?;
                let on_host = matches!(memory, Memory::Host(_));
                if on_host != part.device.shares_host_memory {
                    return Err(self.refuse(
                        device,
                        "launch",
                        "an argument is not in the memory that it computes on".into(),
                    ));
                }
            }
        }
        // With data, whatever the device, the native implementation runs.
        let codelet = &launch.codelet;
        let on_cpu = part.device.kind == DeviceKind::Cpu;
        let native = on_cpu || self.store.has_data();
        if (native && codelet.host.is_none()) || (!on_cpu && codelet.opencl.is_none()) {
            return Err(RuntimeError::NoImplementation {
                device: part.device.name.clone(),
                codelet: codelet.name.into(),
            });
        }
        Ok(())
    }

    fn check_span(
        &self,
        device: DeviceId,
        memory: Memory,
        offset: u64,
        bytes: u64,
    ) -> Result<(), RuntimeError> {
        let (place, length) = self.store.lookup(memory).ok_or(RuntimeError::Unknown {
            what: match memory {
                Memory::Host(_) => "host memory",
                Memory::Device(_) => "buffer",
            },
        })?;
        if place.is_some_and(|place| place != device.0) {
            let why = "the buffer is another device's".into();
            return Err(self.refuse(device, "submit", why));
        }
        if offset.checked_add(bytes).is_none_or(|end| end > length) {
            let why = format!("{bytes} bytes at {offset} leave memory of {length} bytes");
            return Err(self.refuse(device, "submit", why));
        }
        Ok(())
    }

    fn refuse(&self, device: DeviceId, call: &'static str, why: String) -> RuntimeError {
        RuntimeError::Call {
            device: self.devices[device.0].name.clone(),
            call,
            why,
        }
    }
}

/// The memory that a command uses.
fn memories(command: &Command) -> Vec<Memory> {
    match command {
        Command::Write { from, to } => {
            vec![Memory::Host(from.memory), Memory::Device(to.buffer)]
        }
        Command::Read { from, to } => {
            vec![Memory::Device(from.buffer), Memory::Host(to.memory)]
        }
        Command::Launch(launch) => {
            let memory = |value: &Value| match value {
                Value::Memory(memory) => Some(*memory),
                _ => None,
            };
            launch.args.iter().filter_map(memory).collect()
        }
    }
}

impl Runtime for Sim {
    fn devices(&self) -> &[Device] {
        &self.devices
    }

    fn now(&self) -> Nanos {
        self.now
    }

    fn simulated(&self) -> bool {
        true
    }

    fn alloc_host(&mut self, bytes: u64) -> Result<HostMemoryId, RuntimeError> {
        let id = HostMemoryId::fresh();
        self.store.alloc(Memory::Host(id), None, bytes)?;
        Ok(id)
    }

    fn free_host(&mut self, memory: HostMemoryId) {
        self.store.free(Memory::Host(memory));
    }

    fn host_bytes(&mut self, memory: HostMemoryId) -> Result<&mut [u8], RuntimeError> {
        if !self.running.is_empty() || !self.deliveries.is_empty() {
            return Err(RuntimeError::Busy);
        }
        self.store.bytes(Memory::Host(memory))
    }

    fn alloc(&mut self, device: DeviceId, bytes: u64) -> Result<BufferId, RuntimeError> {
        self.present(device)?;
        if self.part(device)?.device.shares_host_memory {
            let why = "it has no memory of its own; use host memory".into();
            return Err(self.refuse(device, "alloc", why));
        }
        let id = BufferId::fresh();
        self.store
            .alloc(Memory::Device(id), Some(device.0), bytes)?;
        Ok(id)
    }

    fn free(&mut self, buffer: BufferId) {
        self.store.free(Memory::Device(buffer));
    }

    fn queue(&mut self, device: DeviceId) -> Result<QueueId, RuntimeError> {
        self.present(device)?;
        let id = QueueId::fresh();
        self.queues.insert(
            id,
            Queue {
                device: device.0,
                last: None,
            },
        );
        Ok(id)
    }

    fn submit(
        &mut self,
        queue: QueueId,
        command: Command,
        wait: &[EventId],
        tag: Tag,
    ) -> Result<EventId, RuntimeError> {
        let line = self.queues.get(&queue);
        let line = line.ok_or(RuntimeError::Unknown { what: "queue" })?;
        let (device, last) = (line.device, line.last);
        if wait.iter().any(|event| !self.events.contains_key(event)) {
            return Err(RuntimeError::Unknown { what: "event" });
        }
        self.check(DeviceId(device), &command)?;

        let part = &self.parts[device];
        let noise = self.noise.factor(self.events.len() as u64);
        let work = match &command {
            Command::Launch(launch) => Some(part.kernel(launch, noise)),
            transfer => part.transfer(transfer.kind(), transfer.bytes(), noise),
        };
        let Some(work) = work else {
            let why = "it has no link to transfer over".into();
            return Err(self.refuse(DeviceId(device), "submit", why));
        };

        self.now += self.parts[device].enqueue;
        self.advance(self.now);
        let mut after = Vec::with_capacity(wait.len() + 1);
        let mut spoilt = false;
        for event in wait.iter().chain(&last) {
            match self.events.get(event) {
                Some(Event::Pending(job)) => after.push(*job),
                Some(Event::Ended { well }) => spoilt |= !well,
                None => {}
            }
        }
        for memory in memories(&command) {
            self.store.retain(memory);
        }
        let event = EventId::fresh();
        let job = self.schedule.submit(device, work, &after, spoilt);
        self.events.insert(event, Event::Pending(job));
        if let Some(line) = self.queues.get_mut(&queue) {
            line.last = Some(event);
        }
        self.running.insert(
            job,
            Running {
                device,
                queue,
                event,
                command,
                tag,
                queued: self.now,
            },
        );
        self.collect();
        Ok(event)
    }

    fn wait(&mut self, timeout: Option<Duration>) -> Result<Option<Completion>, RuntimeError> {
        let deadline = timeout.map(|t| {
            let ns = Nanos::try_from(t.as_nanos()).unwrap_or(Nanos::MAX);
            self.now.saturating_add(ns)
        });
        loop {
            let delivery = self.deliveries.keys().next().map(|(at, _)| *at);
            if delivery.is_none() && self.running.is_empty() {
                return Ok(None);
            }
            let fault = self.timed.last().map(|(at, _)| *at);
            let change = [self.schedule.next_change(), fault];
            let change = change.into_iter().flatten().min();
            // What happens first: somebody is told, or something changes.
            let told = delivery.is_some_and(|at| change.is_none_or(|c| at <= c));
            let Some(next) = (if told { delivery } else { change }) else {
                return Ok(None);
            };
            if let Some(deadline) = deadline.filter(|d| *d < next) {
                self.now = self.now.max(deadline);
                return Ok(None);
            }
            if told {
                self.now = self.now.max(next);
                return Ok(self
                    .deliveries
                    .pop_first()
                    .map(|(_, completion)| completion));
            }
            self.advance(next);
        }
    }

    fn mark_step(&mut self, step: u32) {
        self.advance(self.now);
        let due = self.stepped.extract_if(.., |(at, _)| *at <= step);
        let faults: Vec<Fault> = due.map(|(_, fault)| fault).collect();
        for fault in faults {
            self.strike(fault);
        }
    }
}
