//! Dispatching components: enqueueing their commands on the queues of a device.

use std::sync::Arc;

use super::command_plan::CommandPlan;
use super::interleaving::Dispatch;
use super::run::GraphRun;
use super::storage::{Arrival, COPY_UNIT, transfer};
use super::timeline::{Purpose, Submission};
use crate::codelet::copy;
use crate::policy::Policy;
use crate::residency::{Residency, State};
use crate::runtime::{
    BufferId, Command, CommandKind, EventId, Launch, Location, Memory, Notice, RuntimeError,
};
use pdawl_core::graph::{
    Argument, Components, DatumId, KernelId, QueueCommand, TaskGraph, Transfers,
};

/// The copies that a component needs on a device.
struct Copies<'a> {
    graph: &'a TaskGraph,
    components: &'a Components,
    policy: &'a dyn Policy,
    residency: &'a Residency<BufferId, Arrival>,
    component: usize,
    device: usize,
    shares: bool,
    /// Whether the device's window loads and stores the component's data.
    windowed: bool,
}

impl Transfers for Copies<'_> {
    fn write(&self, datum: DatumId) -> bool {
        let maker = self.graph.producer(datum).map(|k| self.components.of(k));
        !self.shares
            && !self.windowed
            && maker != Some(self.component)
            && self.residency.state(self.device, datum.0) == State::Absent
    }

    fn read(&self, datum: DatumId) -> bool {
        let elsewhere = |reader: &usize| self.policy.certain(*reader) != Some(self.device);
        let readers = self.components.readers(datum);
        let overwriter = self.graph.overwriter(datum).map(|k| self.components.of(k));
        // A window stores what is there when the component has ended.
        let is_left = self.windowed && overwriter != Some(self.component);
        !self.shares
            && !is_left
            && !self.residency.in_host(datum.0)
            && (self.graph.datum(datum).wanted || readers.iter().any(elsewhere))
    }
}

/// Where a command goes, and for which component.
#[derive(Clone, Copy)]
pub(super) struct Destination {
    pub component: usize,
    pub device: usize,
    /// Index of the queue within the device.
    pub queue: usize,
}

/// Whether the host is notified of a command's end.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Notified,
    /// A later command of the queue covers it.
    Covered,
}

impl GraphRun<'_> {
    /// Dispatches a component to a device: finds its command plan.
    pub(super) fn begin(&mut self, component: usize, device: usize) -> Dispatch {
        let before = self.runtime.now();
        let shares = self.prepared.devices[device].shares;
        let level = self.components.list()[component].level;
        self.begin_level(level);
        let run = &mut self.known.state.components[component];
        run.dispatched = before;
        let (queue_count, width) = self.options.of(device);
        let (graph, components) = (&*self.graph, &*self.components);
        let prepared = &mut *self.prepared;
        let copies = Copies {
            graph,
            components,
            policy: self.policy,
            residency: &prepared.storage.residency,
            component,
            device,
            shares,
            windowed: self.known.windowed,
        };
        let known = &mut prepared.command_plans[device][component];
        let plan = match known.as_ref().filter(|plan| plan.fits(width, &copies)) {
            Some(plan) => Arc::clone(plan),
            None => {
                let ranks = &prepared.ranks;
                Arc::clone(known.insert(Arc::new(CommandPlan::new(
                    graph, components, component, width, ranks, shares, &copies,
                ))))
            }
        };
        let first_queue = self.known.next_queue[device];
        self.known.next_queue[device] = (first_queue + plan.queues.steps(width)) % queue_count;
        // A trace needs the times of each kernel.
        let graph = match self.options.trace {
            true => None,
            false => self.known_graph(component, device, &plan),
        };
        let queues = plan.queues.queues.iter().filter(|_| graph.is_none());
        let events = queues
            .map(|queue| Vec::with_capacity(queue.len()))
            .collect();
        self.submit_time += self.runtime.now() - before;
        Dispatch {
            component,
            device,
            level,
            plan,
            graph,
            first_queue,
            queue_count,
            events,
            enqueued: 0,
        }
    }

    /// Enqueues all commands of these components, in turns. The components run
    /// without the host from then on.
    pub(super) fn enqueue(&mut self, mut dispatches: Vec<Dispatch>) {
        let before = self.runtime.now();
        self.runtime.notify(Notice::BatchBegins);
        while !dispatches.is_empty() && self.known.error.is_none() {
            dispatches.retain_mut(|dispatch| match self.enqueue_next(dispatch) {
                Ok(()) => !dispatch.complete(),
                // The lost device may be another one, which has what this one needs.
                Err(error) => {
                    self.known.state.components[dispatch.component].failed = true;
                    self.refused(error);
                    false
                }
            });
        }
        self.runtime.notify(Notice::BatchEnds);
        self.submit_time += self.runtime.now() - before;
    }

    /// Enqueues a component's next command.
    fn enqueue_next(&mut self, dispatch: &mut Dispatch) -> Result<(), RuntimeError> {
        if let Some(graph) = dispatch.graph.take() {
            return self.enqueue_graph(dispatch, graph);
        }
        let plan = Arc::clone(&dispatch.plan);
        let number = dispatch.enqueued;
        let Some(slot) = plan.queues.order.get(number) else {
            return Ok(());
        };
        // Every command that is waited for has an event.
        let mut wait: Vec<EventId> = plan.waits[number]
            .iter()
            .filter_map(|before| dispatch.events[before.queue][before.position])
            .collect();
        let to = Destination {
            component: dispatch.component,
            device: dispatch.device,
            queue: dispatch.queue(slot.queue),
        };
        let event = match plan.queues.at(*slot) {
            QueueCommand::Write(datum, _) => Some(self.write(to, datum, &mut wait)?),
            QueueCommand::NdRange(kernel) => {
                // A trace needs the times of all kernels.
                let end = match plan.notifies[number] || self.options.trace {
                    true => End::Notified,
                    false => End::Covered,
                };
                self.launch(to, kernel, end, &mut wait)?
            }
            QueueCommand::Read(kernel, datum) => Some(self.read(to, kernel, datum, wait)?),
        };
        dispatch.events[slot.queue].push(event);
        dispatch.enqueued += 1;
        match dispatch.complete() {
            true => self.note_launches(dispatch),
            false => Ok(()),
        }
    }

    /// Copies what a kernel has made to host memory.
    pub(super) fn read(
        &mut self,
        to: Destination,
        kernel: KernelId,
        datum: DatumId,
        mut wait: Vec<EventId>,
    ) -> Result<EventId, RuntimeError> {
        wait.extend(self.storing_below(datum));
        (self.prepared.storage).set_in_host(&self.graph, datum, false);
        let command = self.read_command(datum, to.device)?;
        self.submit(to, Purpose::Read(kernel, datum), command, &wait)
    }

    fn write(
        &mut self,
        to: Destination,
        datum: DatumId,
        wait: &mut Vec<EventId>,
    ) -> Result<EventId, RuntimeError> {
        self.load(to, Purpose::Write(datum), datum, wait)
    }

    /// Copies a datum from host memory to a device, which has a buffer for it.
    pub(super) fn load(
        &mut self,
        to: Destination,
        purpose: Purpose,
        datum: DatumId,
        wait: &mut Vec<EventId>,
    ) -> Result<EventId, RuntimeError> {
        self.replace_versions(to, datum, wait)?;
        let graph = Arc::clone(&self.graph);
        let commands = self.load_commands(&graph, to, datum, wait)?;
        let last = commands.len().saturating_sub(1);
        let mut event = None;
        for (number, command) in commands.into_iter().enumerate() {
            if command.kind() == CommandKind::Write {
                self.known.state.components[to.component].written += command.bytes();
                self.known.uses[to.device].bytes_h2d += command.bytes();
            }
            // One queue has them all, so the last one ends when all have.
            event = match number == last {
                true => Some(self.submit(to, purpose, command, wait)?),
                false => {
                    let end = match self.options.trace {
                        true => End::Notified,
                        false => End::Covered,
                    };
                    self.submit_with(to, Purpose::Piece(datum), command, wait, end)?
                }
            };
        }
        let event = event.ok_or(RuntimeError::Unknown {
            what: "piece of a datum",
        })?;
        self.arriving(to, datum, event);
        Ok(event)
    }

    /// Notes a copy of a datum to a device.
    pub(super) fn arriving(&mut self, to: Destination, datum: DatumId, event: EventId) {
        let residency = &mut self.prepared.storage.residency;
        let arriving = State::Arriving((event, to.component));
        residency.set(to.device, datum.0, arriving);
        let slot = residency.slot(datum.0);
        self.tell_arrived(to.device, slot);
    }

    /// A datum gets into a device's buffer, which holds no other version from
    /// then on. A version that another component still has to read goes to the
    /// host before: after a loss it may be needed again.
    pub(super) fn replace_versions(
        &mut self,
        to: Destination,
        datum: DatumId,
        wait: &mut Vec<EventId>,
    ) -> Result<(), RuntimeError> {
        let residency = &mut self.prepared.storage.residency;
        let other = residency.version(to.device, residency.slot(datum.0));
        let Some(other) = other.filter(|other| *other != datum.0).map(DatumId) else {
            return Ok(());
        };
        let here = residency.state(to.device, other.0) == State::Valid;
        let needed = |kernel: &KernelId| {
            self.components.of(*kernel) != to.component && !self.known.state.is_done(*kernel)
        };
        let mut readers = self.graph.readers(other).iter();
        if here && !residency.in_host(other.0) && readers.any(needed) {
            wait.push(self.fetch(to.component, other)?);
        } else {
            wait.extend(self.storing(other));
        }
        self.replaced(to.device, other);
        Ok(())
    }

    /// Reads a datum that had stayed on one device, since another needs it.
    pub(super) fn fetch(
        &mut self,
        component: usize,
        datum: DatumId,
    ) -> Result<EventId, RuntimeError> {
        // Its device may have another version by now.
        if let Some(event) = self.storing(datum) {
            return Ok(event);
        }
        let device = self.prepared.storage.residency.holder(datum.0);
        let device = device.ok_or(RuntimeError::Unknown {
            what: "copy of a datum",
        })?;
        self.store(component, device, datum)
    }

    /// The copy of a datum to host memory that is in flight.
    pub(super) fn storing(&self, datum: DatumId) -> Option<EventId> {
        let mut fetching = self.known.fetching.iter();
        fetching.find_map(|(other, event)| (*other == datum).then_some(*event))
    }

    /// The copies in flight to host memory of data on which a datum lies there.
    fn storing_below(&self, datum: DatumId) -> Vec<EventId> {
        let below = self.graph.datum(datum).overwrites.iter();
        below.filter_map(|old| self.storing(*old)).collect()
    }

    /// Copies a datum of a device to host memory, if that is not on its way.
    pub(super) fn store(
        &mut self,
        component: usize,
        device: usize,
        datum: DatumId,
    ) -> Result<EventId, RuntimeError> {
        if let Some(event) = self.storing(datum) {
            return Ok(event);
        }
        let storage = &mut self.prepared.storage;
        storage.ensure_host(self.runtime, &self.graph, datum)?;
        storage.set_in_host(&self.graph, datum, false);
        let command = self.read_command(datum, device)?;
        let from = Destination {
            component,
            device,
            queue: self.store_queue(device),
        };
        let wait = self.storing_below(datum);
        let event = self.submit(from, Purpose::Fetch(datum), command, &wait)?;
        self.known.fetching.push((datum, event));
        Ok(event)
    }

    fn launch(
        &mut self,
        to: Destination,
        kernel: KernelId,
        end: End,
        wait: &mut Vec<EventId>,
    ) -> Result<Option<EventId>, RuntimeError> {
        let graph = Arc::clone(&self.graph);
        let what = graph.kernel(kernel);
        let shares = self.prepared.devices[to.device].shares;
        if shares && self.prepared.grows {
            let components = &self.components;
            let storage = &mut self.prepared.storage;
            storage.ensure(self.runtime, &graph, components, to.component, shares)?;
        }
        for datum in what.inputs() {
            wait.extend(self.arrival(to, datum));
            let residency = &self.prepared.storage.residency;
            match residency.state(to.device, datum.0) {
                State::Absent if shares && !graph.datum(datum).copies.is_empty() => {
                    wait.extend(self.put_together(to, datum)?);
                }
                // Data of other components are in host memory, unless they stayed
                // on another device.
                State::Absent if shares => {
                    for piece in graph.pieces(&datum) {
                        let maker = graph.producer(*piece).map(|k| self.components.of(k));
                        let is_own = maker == Some(to.component);
                        if !is_own && !self.prepared.storage.residency.in_host(piece.0) {
                            wait.push(self.fetch(to.component, *piece)?);
                        }
                    }
                }
                _ => {}
            }
        }
        if !shares {
            for datum in what.outputs() {
                self.replace_versions(to, datum, wait)?;
            }
        } else {
            for datum in what.outputs() {
                wait.extend(self.storing_below(datum));
            }
            for argument in &what.arguments {
                if let Argument::InOut { from, to: after } = argument {
                    self.copy_version(to, kernel, (*from, *after), wait)?;
                }
            }
        }
        let launch = self.prepared.launch(kernel, to.device)?;
        // On the same queue as the kernel, so that only a trace needs their ends.
        let traced = match self.options.trace {
            true => End::Notified,
            false => End::Covered,
        };
        for zeros in launch.zeros.iter().flat_map(|zeros| zeros.iter()) {
            let command = Command::Repeat(Arc::clone(zeros));
            self.submit_with(to, Purpose::Zeros(kernel), command, wait, traced)?;
        }
        let command = Command::Repeat(launch.kernel);
        self.submit_with(to, Purpose::Launch(kernel), command, wait, end)
    }

    /// The copy of a datum to a device that its reader there waits for.
    pub(super) fn arrival(&self, to: Destination, datum: DatumId) -> Option<EventId> {
        match self.prepared.storage.residency.state(to.device, datum.0) {
            // The component's own writes are among its precedences.
            State::Arriving((event, component)) => {
                (component != to.component || self.known.windowed).then_some(event)
            }
            _ => None,
        }
    }

    /// Copies, in host memory, a version that a kernel works on in place and that
    /// is still needed as it is.
    fn copy_version(
        &mut self,
        to: Destination,
        kernel: KernelId,
        (before, after): (DatumId, DatumId),
        wait: &[EventId],
    ) -> Result<(), RuntimeError> {
        let storage = &mut self.prepared.storage;
        if !storage.differ_in_host_memory(before, after) {
            // The kernel overwrites it.
            storage.set_in_host(&self.graph, after, false);
            return Ok(());
        }
        let units = self.graph.datum(before).bytes.div_ceil(COPY_UNIT);
        let host = |datum| storage.host(&self.graph, datum).map(Memory::Host);
        let [from, into] = [host(before)?, host(after)?];
        let command = Command::Launch(Launch {
            codelet: Arc::clone(&self.prepared.copying),
            units: 0..units,
            args: copy::args(from, into, COPY_UNIT as u32),
            cost: copy::cost(units, COPY_UNIT as u32),
        });
        self.submit(to, Purpose::Copy(kernel), command, wait)
            .map(drop)
    }

    fn read_command(&self, datum: DatumId, device: usize) -> Result<Command, RuntimeError> {
        let storage = &self.prepared.storage;
        let (host, buffer) = (
            storage.host(&self.graph, datum)?,
            storage.buffer(datum, device)?,
        );
        let way = transfer(&self.graph, datum, None);
        Ok(Command::Copy {
            from: Location::device(buffer, way.device),
            to: Location::host(host, way.host),
            rows: way.rows.reversed(),
        })
    }

    /// Submits a command with an event.
    pub(super) fn submit(
        &mut self,
        to: Destination,
        purpose: Purpose,
        command: Command,
        wait: &[EventId],
    ) -> Result<EventId, RuntimeError> {
        let queue = self.known.queues[to.device][to.queue];
        let event = self.runtime.enqueue(queue, command, wait)?;
        if let Purpose::Launch(kernel) | Purpose::Read(kernel, _) = purpose {
            self.known.state.command_submitted(kernel);
        }
        if let Purpose::Graph = purpose {
            for kernel in &self.components.list()[to.component].kernels {
                self.known.state.command_submitted(*kernel);
            }
        }
        if purpose.is_part_of_component() {
            self.known.state.components[to.component].in_flight += 1;
        }
        self.count(to, purpose);
        let waits = match self.options.trace {
            true => wait.to_vec(),
            false => Vec::new(),
        };
        let submission = Submission {
            component: to.component,
            device: to.device,
            queue: to.queue,
            purpose,
            waits,
        };
        self.known.in_flight.insert(event, submission, wait);
        Ok(event)
    }

    /// Submits a command with an event, or without one.
    pub(super) fn submit_with(
        &mut self,
        to: Destination,
        purpose: Purpose,
        command: Command,
        wait: &[EventId],
        end: End,
    ) -> Result<Option<EventId>, RuntimeError> {
        if end == End::Notified {
            return self.submit(to, purpose, command, wait).map(Some);
        }
        let queue = self.known.queues[to.device][to.queue];
        self.runtime.submit(queue, command, wait, None)?;
        match purpose {
            Purpose::Launch(kernel) => self.known.state.launched_without_event(kernel),
            Purpose::Graph => {
                for kernel in &self.components.list()[to.component].kernels {
                    self.known.state.launched_without_event(*kernel);
                }
            }
            _ => {}
        }
        self.count(to, purpose);
        Ok(None)
    }
}
