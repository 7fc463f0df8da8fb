//! The simulator as a [`Runtime`].

use std::ops::Range;
use std::time::Duration;

use super::device_model::DeviceModel;
use super::schedule::Demand;
use super::series::SeriesPart;
use super::{Event, Queue, Running, Sim, memories};
use crate::codelet::{BufferId, HostMemoryId, Memory};
use crate::machine::{Device, DeviceKind};
use crate::runtime::{
    AdoptedMemory, Command, CommandCosts, Completion, DeviceId, Devices, EventId, Generation,
    HostSpan, Launch, Location, NotAdopted, Notice, PeerPath, QueueId, QueueKind, Runtime,
    RuntimeError,
};
use crate::time::Nanos;

impl Devices for Sim {
    fn devices(&self) -> &[Device] {
        &self.devices
    }

    fn generation(&self, device: DeviceId) -> Option<Generation> {
        let lost = self.schedule.is_lost(device.0);
        (!lost).then(|| Generation(self.losses[device.0]))
    }

    fn alloc(&mut self, device: DeviceId, bytes: u64) -> Result<BufferId, RuntimeError> {
        self.check_present(device)?;
        if self.model(device)?.device.shares_host_memory {
            let why = "it has no memory of its own; use host memory".into();
            return Err(self.refuse(device, "alloc", why));
        }
        let id = BufferId::fresh();
        self.memory
            .alloc(Memory::Device(id), Some(device.0), bytes)?;
        Ok(id)
    }

    fn free(&mut self, buffer: BufferId) {
        self.memory.free(Memory::Device(buffer));
    }

    fn peer_path(&self, from: DeviceId, to: DeviceId) -> Option<PeerPath> {
        self.paths.get(&(from.0, to.0)).copied()
    }

    fn set_peer_path(
        &mut self,
        from: DeviceId,
        to: DeviceId,
        path: PeerPath,
    ) -> Result<(), RuntimeError> {
        let (source, target) = (self.model(from)?, self.model(to)?);
        let demand = match path.through_host {
            true => source.staged_copy(target, 0, 1.0),
            false => source.peer_copy(to.0, 0, 1.0),
        };
        if demand.is_none() {
            return Err(RuntimeError::Unsupported {
                device: source.device.name.clone(),
                what: "this way of copies to the other device",
            });
        }
        self.paths.insert((from.0, to.0), path);
        Ok(())
    }

    fn costs(&self, device: DeviceId) -> CommandCosts {
        let of = self.models.get(device.0);
        of.map_or_else(CommandCosts::default, DeviceModel::costs)
    }

    fn bus_bandwidth(&self) -> Option<f64> {
        self.bus_bandwidth
    }

    fn host_bandwidth(&self) -> Option<f64> {
        Some(self.host_bandwidth)
    }

    fn open_queue(&mut self, device: DeviceId, _kind: QueueKind) -> Result<QueueId, RuntimeError> {
        self.check_present(device)?;
        let id = QueueId::fresh();
        self.queues.insert(
            id,
            Queue {
                device: device.0,
                last: None,
                generation: Generation(self.losses[device.0]),
            },
        );
        Ok(id)
    }

    fn free_queue(&mut self, queue: QueueId) {
        self.queues.remove(&queue);
    }

    fn runs_graphs(&self, device: DeviceId) -> bool {
        let has_own = |model: &DeviceModel| !model.device.shares_host_memory;
        self.graphs && self.models.get(device.0).is_some_and(has_own)
    }

    /// The virtual time of all enqueues.
    fn driver_time(&self) -> Nanos {
        self.driver_time
    }

    fn submit(
        &mut self,
        queue: QueueId,
        command: Command,
        wait: &[EventId],
        event: Option<EventId>,
    ) -> Result<(), RuntimeError> {
        let state = self.queues.get(&queue);
        let device = state.ok_or(RuntimeError::Unknown { what: "queue" })?.device;
        if wait.iter().any(|event| !self.events.contains_key(event)) {
            return Err(RuntimeError::Unknown { what: "event" });
        }
        self.check(DeviceId(device), &command)?;
        let event = event.unwrap_or_else(EventId::fresh);
        match command {
            Command::Series(commands) => self.submit_series(queue, commands, wait, event),
            Command::Graph(graph) => self.submit_graph(queue, &graph, wait, event),
            command => self.start(queue, command, wait, event, None),
        }
    }

    fn notify(&mut self, notice: Notice) {
        if let Notice::PhaseBegins(phase) = notice {
            self.begin_phase(phase);
        }
    }
}

impl Runtime for Sim {
    fn now(&self) -> Nanos {
        self.now
    }

    fn simulated(&self) -> bool {
        true
    }

    fn alloc_host(&mut self, bytes: u64) -> Result<HostMemoryId, RuntimeError> {
        let id = HostMemoryId::fresh();
        self.memory.alloc(Memory::Host(id), None, bytes)?;
        Ok(id)
    }

    fn free_host(&mut self, memory: HostMemoryId) {
        self.memory.free(Memory::Host(memory));
    }

    fn adopt_host(&mut self, memory: AdoptedMemory) -> Result<HostMemoryId, NotAdopted> {
        let id = HostMemoryId::fresh();
        self.memory.adopt(Memory::Host(id), memory)?;
        Ok(id)
    }

    fn take_host(&mut self, memory: HostMemoryId) -> Result<AdoptedMemory, RuntimeError> {
        self.memory.take(Memory::Host(memory))
    }

    fn host_range(
        &mut self,
        memory: HostMemoryId,
        range: Range<u64>,
    ) -> Result<&mut [u8], RuntimeError> {
        let leased = HostSpan::new(memory, range.start.min(range.end)..range.end);
        let mut running = self.running.values();
        if running.any(|r| r.command.host_spans().any(|span| span.overlaps(&leased))) {
            return Err(RuntimeError::Busy);
        }
        let bytes = self.memory.bytes(Memory::Host(memory))?;
        let end = (leased.offset + leased.bytes).min(bytes.len() as u64) as usize;
        Ok(&mut bytes[(leased.offset as usize).min(end)..end])
    }

    fn host_read(
        &mut self,
        memory: HostMemoryId,
        range: Range<u64>,
    ) -> Result<&[u8], RuntimeError> {
        let leased = HostSpan::new(memory, range.start.min(range.end)..range.end);
        let mut running = self.running.values();
        let is_written = running.any(|r| {
            let mut spans = r.command.host_spans();
            spans.any(|span| span.is_written && span.overlaps(&leased))
        });
        if is_written {
            return Err(RuntimeError::Busy);
        }
        let bytes = self.memory.bytes(Memory::Host(memory))?;
        let end = (leased.offset + leased.bytes).min(bytes.len() as u64) as usize;
        Ok(&bytes[(leased.offset as usize).min(end)..end])
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
            let timed = self.timed.last().filter(|_| self.has_begun);
            let fault = timed.map(|(at, _)| *at);
            let change = [self.schedule.next_change(), fault];
            let change = change.into_iter().flatten().min();
            // Either a completion is delivered first, or the schedule changes.
            let delivers = delivery.is_some_and(|at| change.is_none_or(|c| at <= c));
            let Some(next) = (if delivers { delivery } else { change }) else {
                return Ok(None);
            };
            if let Some(deadline) = deadline.filter(|d| *d < next) {
                self.now = self.now.max(deadline);
                return Ok(None);
            }
            if delivers {
                self.now = self.now.max(next);
                return Ok(self
                    .deliveries
                    .pop_first()
                    .map(|(_, completion)| completion));
            }
            self.advance(next);
        }
    }
}

impl Sim {
    /// The devices to which two memories belong; `None` for the host.
    fn owners(&self, from: Location, to: Location) -> (Option<usize>, Option<usize>) {
        let of = |location: Location| self.memory.lookup(location.memory)?.0;
        (of(from), of(to))
    }

    /// Enqueues a command that was checked; `part` is its position in a series.
    pub(super) fn start(
        &mut self,
        queue: QueueId,
        command: Command,
        wait: &[EventId],
        event: EventId,
        part: Option<SeriesPart>,
    ) -> Result<(), RuntimeError> {
        let state = self.queues.get(&queue);
        let state = state.ok_or(RuntimeError::Unknown { what: "queue" })?;
        let (device, last, generation) = (state.device, state.last, state.generation);
        let model = &self.models[device];
        let noise = self.noise.factor(self.events.len() as u64);
        let demand = match &command {
            Command::Copy { from, to, rows } => match self.owners(*from, *to) {
                (Some(from), Some(to)) if from == to => {
                    Some(model.copy_within(rows.total(), noise))
                }
                (Some(from), Some(to)) => {
                    let (source, target) = (&self.models[from], &self.models[to]);
                    let path = self.paths.get(&(from, to));
                    let demand = match path.is_none_or(|path| path.through_host) {
                        true => source.staged_copy(target, rows.total(), noise),
                        false => source.peer_copy(to, rows.total(), noise),
                    };
                    let other = Some(if from == device { to } else { from });
                    demand.map(|demand| Demand { other, ..demand })
                }
                _ => model.transfer(command.kind(), rows.total(), noise),
            },
            kernel => kernel
                .launches()
                .next()
                .map(|launch| model.launch(launch, noise)),
        };
        let Some(demand) = demand else {
            let why = "it has no link to transfer over".into();
            return Err(self.refuse(DeviceId(device), "submit", why));
        };

        let enqueue = model.enqueue;
        self.now += enqueue;
        self.driver_time += enqueue;
        self.advance(self.now);
        let mut after = Vec::with_capacity(wait.len() + 1);
        let mut doomed = false;
        for event in wait.iter().chain(&last) {
            match self.events.get(event) {
                Some(Event::Pending(job)) => after.push(*job),
                Some(Event::Ended { done }) => doomed |= !done,
                None => {}
            }
        }
        let mut is_gone = generation != Generation(self.losses[device]);
        for memory in memories(&command) {
            match self.memory.lost_with(memory) {
                Some(owner) if owner == device => is_gone = true,
                lost => doomed |= lost.is_some(),
            }
            self.memory.retain(memory);
        }
        if !self.next_due.is_empty() {
            self.due.push_back(std::mem::take(&mut self.next_due));
            self.schedule.stop_before_next();
        }
        let job = match is_gone {
            true => self.schedule.submit_lost(device, demand),
            false => self.schedule.submit(device, demand, &after, doomed),
        };
        self.events.insert(event, Event::Pending(job));
        if let Some(state) = self.queues.get_mut(&queue) {
            state.last = Some(event);
        }
        self.running.insert(
            job,
            Running {
                device,
                queue,
                event,
                command,
                queued: self.now,
                part,
            },
        );
        self.pass(self.now);
        Ok(())
    }
}

impl Sim {
    /// Refuses a command that its device cannot run.
    pub(super) fn check(&self, device: DeviceId, command: &Command) -> Result<(), RuntimeError> {
        match command {
            Command::Series(commands) if commands.is_empty() => {
                Err(self.refuse(device, "submit", "a series of no commands".into()))
            }
            Command::Series(commands) => commands.iter().try_for_each(|part| match part {
                Command::Series(_) => {
                    Err(self.refuse(device, "submit", "a series within a series".into()))
                }
                Command::Graph(_) => {
                    Err(self.refuse(device, "submit", "a command graph within a series".into()))
                }
                single => self.check(device, single),
            }),
            Command::Launch(launch) => self.check_launch(device, launch),
            Command::Repeat(launch) => self.check_launch(device, launch),
            Command::Graph(graph) => {
                if !self.runs_graphs(device) {
                    let why = "it runs no command graphs; enqueue its launches one by one";
                    return Err(self.refuse(device, "submit", why.into()));
                }
                let mut launches = graph.launches().iter();
                launches.try_for_each(|of| self.check_launch(device, &of.launch))
            }
            Command::Copy { from, to, rows } => {
                let [read, written] = rows.spans();
                let owners = [
                    self.check_span(device, *from, read)?,
                    self.check_span(device, *to, written)?,
                ];
                match owners.contains(&Some(device.0)) {
                    true => Ok(()),
                    false => {
                        let why = "neither memory is this device's".into();
                        Err(self.refuse(device, "submit", why))
                    }
                }
            }
        }
    }

    fn check_launch(&self, device: DeviceId, launch: &Launch) -> Result<(), RuntimeError> {
        let model = self.model(device)?;
        for value in &launch.args {
            if let Some(memory) = value.memory() {
                let owner = self.check_span(device, Location { memory, offset: 0 }, 0)?;
                if owner.is_some_and(|owner| owner != device.0) {
                    let why = "the buffer is another device's".into();
                    return Err(self.refuse(device, "launch", why));
                }
                let on_host = matches!(memory, Memory::Host(_));
                if on_host != model.device.shares_host_memory {
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
        let on_cpu = model.device.kind == DeviceKind::Cpu;
        let native = on_cpu || self.memory.has_data();
        if (native && codelet.host.is_none()) || (!on_cpu && codelet.opencl.is_none()) {
            return Err(RuntimeError::NoImplementation {
                device: model.device.name.clone(),
                codelet: codelet.name.to_string(),
            });
        }
        Ok(())
    }

    /// Refuses what does not lie within a memory. Returns the device that has it.
    fn check_span(
        &self,
        device: DeviceId,
        Location { memory, offset }: Location,
        bytes: u64,
    ) -> Result<Option<usize>, RuntimeError> {
        let (owner, length) = self.memory.lookup(memory).ok_or(RuntimeError::Unknown {
            what: match memory {
                Memory::Host(_) => "host memory",
                Memory::Device(_) => "buffer",
            },
        })?;
        if offset.checked_add(bytes).is_none_or(|end| end > length) {
            let why = format!("{bytes} bytes at {offset} leave memory of {length} bytes");
            return Err(self.refuse(device, "submit", why));
        }
        Ok(owner)
    }

    /// The error of a call that a device refuses.
    pub(super) fn refuse(&self, device: DeviceId, call: &'static str, why: String) -> RuntimeError {
        RuntimeError::Call {
            device: self.devices[device.0].name.clone(),
            call,
            why,
        }
    }
}
