//! Enqueueing components.

use std::sync::Arc;

use super::books::There;
use super::drive::Drive;
use super::log::{Entry, Purpose};
use super::score::Score;
use super::storage::COPY_UNIT;
use super::wave::Begun;
use crate::codelet::{Name, copy};
use crate::graph::{
    Argument, Components, DatumId, Kernel, KernelId, Planned, TaskGraph, Transfers,
};
use crate::policy::{Assignment, Policy};
use crate::runtime::{Command, DeviceSpan, EventId, HostSpan, Launch, Memory, RuntimeError, Tag};

/// The copies that a component needs on a device.
struct Copies<'a> {
    graph: &'a TaskGraph,
    components: &'a Components,
    policy: &'a dyn Policy,
    /// By datum: whether the device has it, and whether the host has.
    there: &'a [There],
    host: &'a [bool],
    component: usize,
    device: usize,
    shares: bool,
}

impl Transfers for Copies<'_> {
    fn write(&self, datum: DatumId) -> bool {
        let maker = self.graph.producer(datum).map(|k| self.components.of(k));
        !self.shares && maker != Some(self.component) && self.there[datum.0] == There::No
    }

    fn read(&self, datum: DatumId) -> bool {
        let elsewhere = |reader: &usize| self.policy.certain(*reader) != Some(self.device);
        let readers = self.components.readers(datum);
        !self.shares
            && !self.host[datum.0]
            && (self.graph.datum(datum).wanted || readers.iter().any(elsewhere))
    }
}

/// For whom a command is submitted: component, device, and index of the queue.
#[derive(Clone, Copy)]
struct Whose {
    component: usize,
    device: usize,
    queue: usize,
}

impl Drive<'_> {
    /// Hands a component to a device: says what is to be enqueued.
    pub(super) fn begin(&mut self, assignment: Assignment) -> Begun {
        let before = self.runtime.now();
        let Assignment { component, device } = assignment;
        let shares = self.plan.sites[device].shares;
        let level = self.components.list()[component].level;
        self.begin_level(level);
        self.books.begin(component, device);
        self.dispatched[component] = before;
        self.written[component] = 0;
        let (count, width) = self.options.of(device);
        let copies = Copies {
            graph: &self.graph,
            components: &self.components,
            policy: self.policy,
            there: &self.books.there[device],
            host: &self.books.host,
            component,
            device,
            shares,
        };
        let known = &self.plan.scores[device][component];
        let known = known.as_ref().filter(|score| score.fits(width, &copies));
        let score = match known {
            Some(score) => Arc::clone(score),
            None => {
                let (graph, components) = (&self.graph, &self.components);
                let ranks = &self.plan.ranks;
                let score = Score::new(graph, components, component, width, ranks, shares, &copies);
                let score = Arc::new(score);
                self.plan.scores[device][component] = Some(Arc::clone(&score));
                score
            }
        };
        let turn = self.turns[device];
        self.turns[device] = (turn + score.queues.steps(width)) % count;
        let queues = score.queues.queues.iter();
        let events = queues
            .map(|queue| Vec::with_capacity(queue.len()))
            .collect();
        self.submit_time += self.runtime.now() - before;
        Begun {
            component,
            device,
            level,
            score,
            turn,
            count,
            events,
            enqueued: 0,
        }
    }

    /// Enqueues everything that components need, which run without the host from
    /// then on.
    pub(super) fn enqueue(&mut self, mut wave: Vec<Begun>) {
        let before = self.runtime.now();
        self.runtime.begin_batch();
        while !wave.is_empty() && self.error.is_none() {
            wave.retain_mut(|begun| match self.enqueue_next(begun) {
                Ok(()) => !begun.complete(),
                Err(RuntimeError::DeviceLost { why, .. }) => {
                    self.books.failed[begun.component] = true;
                    self.fail(begun.device, why);
                    false
                }
                Err(error) => {
                    self.error = Some(error);
                    false
                }
            });
        }
        self.runtime.end_batch();
        self.submit_time += self.runtime.now() - before;
    }

    /// Enqueues a component's next command.
    fn enqueue_next(&mut self, begun: &mut Begun) -> Result<(), RuntimeError> {
        let score = Arc::clone(&begun.score);
        let number = begun.enqueued;
        let Some(place) = score.queues.order.get(number) else {
            return Ok(());
        };
        // Whatever is waited for is heard of.
        let mut wait: Vec<EventId> = score.waits[number]
            .iter()
            .filter_map(|before| begun.events[before.queue][before.position])
            .collect();
        let whose = Whose {
            component: begun.component,
            device: begun.device,
            queue: begun.queue(place.queue),
        };
        let event = match score.queues.at(*place) {
            Planned::Write(datum, _) => Some(self.write(whose, datum, &mut wait)?),
            Planned::NdRange(kernel) => {
                // For a trace the times of all are wanted.
                let heard = score.heard[number] || self.options.trace;
                self.launch(whose, kernel, heard, &mut wait)?
            }
            Planned::Read(kernel, datum) => Some(self.read(whose, kernel, datum, &wait)?),
        };
        begun.events[place.queue].push(event);
        begun.enqueued += 1;
        Ok(())
    }

    fn write(
        &mut self,
        whose: Whose,
        datum: DatumId,
        wait: &mut Vec<EventId>,
    ) -> Result<EventId, RuntimeError> {
        if !self.books.host[datum.0] {
            wait.push(self.fetch(whose.component, datum)?);
        }
        self.replace_versions(whose.component, datum, whose.device, wait)?;
        let command = Command::Write {
            from: self.host_span(datum)?,
            to: self.device_span(datum, whose.device)?,
        };
        let event = self.submit(whose, Purpose::Write(datum), command, wait)?;
        self.books.there[whose.device][datum.0] = There::Coming {
            event,
            component: whose.component,
        };
        self.uses[whose.device].writes += 1;
        let bytes = self.graph.datum(datum).bytes;
        self.uses[whose.device].bytes_h2d += bytes;
        self.written[whose.component] += bytes;
        Ok(event)
    }

    /// A datum gets into a device's buffer, and no other version is there then.
    /// One that somebody still has to read goes to the host before: after a loss
    /// an earlier version may be needed again when the later one is there.
    fn replace_versions(
        &mut self,
        component: usize,
        datum: DatumId,
        device: usize,
        wait: &mut Vec<EventId>,
    ) -> Result<(), RuntimeError> {
        let others: Vec<DatumId> = self.plan.storage.others(datum).collect();
        for other in others {
            let here = self.books.there[device][other.0] == There::Here;
            let needed = |kernel: &KernelId| {
                self.components.of(*kernel) != component && !self.books.is_done(*kernel)
            };
            let mut readers = self.graph.readers(other).iter();
            if here && !self.books.host[other.0] && readers.any(needed) {
                wait.push(self.fetch(component, other)?);
            }
            self.books.there[device][other.0] = There::No;
        }
        Ok(())
    }

    /// Reads what had stayed on one device, since another needs it after all.
    fn fetch(&mut self, component: usize, datum: DatumId) -> Result<EventId, RuntimeError> {
        if let Some((_, event)) = self.fetching.iter().find(|(d, _)| *d == datum) {
            return Ok(*event);
        }
        let there = &self.books.there;
        let device = (0..there.len())
            .find(|d| there[*d][datum.0] == There::Here)
            .ok_or(RuntimeError::Unknown {
                what: "copy of a datum",
            })?;
        let command = Command::Read {
            from: self.device_span(datum, device)?,
            to: self.host_span(datum)?,
        };
        let whose = Whose {
            component,
            device,
            queue: 0,
        };
        self.uses[device].reads += 1;
        self.uses[device].bytes_d2h += self.graph.datum(datum).bytes;
        let event = self.submit(whose, Purpose::Fetch(datum), command, &[])?;
        self.fetching.push((datum, event));
        Ok(event)
    }

    fn launch(
        &mut self,
        whose: Whose,
        kernel: KernelId,
        heard: bool,
        wait: &mut Vec<EventId>,
    ) -> Result<Option<EventId>, RuntimeError> {
        let graph = Arc::clone(&self.graph);
        let what = graph.kernel(kernel);
        let Whose { device, .. } = whose;
        let shares = self.plan.sites[device].shares;
        for datum in what.inputs() {
            match self.books.there[device][datum.0] {
                // Own writes are among the precedences of the component.
                There::Coming { event, component } if component != whose.component => {
                    wait.push(event);
                }
                // What comes in is in host memory, unless it stayed elsewhere.
                There::No
                    if shares
                        && !self.books.host[datum.0]
                        && self.components.comes_in(&graph, datum, kernel) =>
                {
                    wait.push(self.fetch(whose.component, datum)?);
                }
                _ => {}
            }
        }
        if shares {
            self.copy_versions(whose, kernel, what, wait)?;
        } else {
            for datum in what.outputs() {
                self.replace_versions(whose.component, datum, device, wait)?;
            }
        }
        let command = Command::Repeat(self.plan.launch(kernel, device)?);
        self.uses[device].kernels += 1;
        if !heard {
            self.submit_without_event(whose, kernel, command, wait)?;
            return Ok(None);
        }
        let event = self.submit(whose, Purpose::Launch(kernel), command, wait)?;
        self.books.submitted(kernel);
        Ok(Some(event))
    }

    /// Copies the versions that a kernel works on in place and that somebody may
    /// still want as they are.
    fn copy_versions(
        &mut self,
        whose: Whose,
        kernel: KernelId,
        what: &Kernel,
        wait: &[EventId],
    ) -> Result<(), RuntimeError> {
        for argument in &what.arguments {
            let Argument::InOut { from, to } = argument else {
                continue;
            };
            if !self.plan.storage.apart(*from, *to) {
                continue;
            }
            let units = self.graph.datum(*from).bytes.div_ceil(COPY_UNIT);
            let [from, to] = [
                Memory::Host(self.plan.storage.host(*from)?),
                Memory::Host(self.plan.storage.host(*to)?),
            ];
            let command = Command::Launch(Launch {
                codelet: Arc::clone(&self.plan.copying),
                units: 0..units,
                args: copy::args(from, to, COPY_UNIT as u32),
                cost: copy::cost(units, COPY_UNIT as u32),
            });
            self.submit(whose, Purpose::Copy(kernel), command, wait)?;
        }
        Ok(())
    }

    fn read(
        &mut self,
        whose: Whose,
        kernel: KernelId,
        datum: DatumId,
        wait: &[EventId],
    ) -> Result<EventId, RuntimeError> {
        let command = Command::Read {
            from: self.device_span(datum, whose.device)?,
            to: self.host_span(datum)?,
        };
        let event = self.submit(whose, Purpose::Read(kernel, datum), command, wait)?;
        self.books.submitted(kernel);
        self.uses[whose.device].reads += 1;
        self.uses[whose.device].bytes_d2h += self.graph.datum(datum).bytes;
        Ok(event)
    }

    fn host_span(&self, datum: DatumId) -> Result<HostSpan, RuntimeError> {
        Ok(HostSpan {
            memory: self.plan.storage.host(datum)?,
            offset: 0,
            bytes: self.graph.datum(datum).bytes,
        })
    }

    fn device_span(&self, datum: DatumId, device: usize) -> Result<DeviceSpan, RuntimeError> {
        Ok(DeviceSpan {
            buffer: self.plan.storage.buffer(datum, device)?,
            offset: 0,
        })
    }

    /// Submits a kernel of whose end nobody hears by itself.
    fn submit_without_event(
        &mut self,
        whose: Whose,
        kernel: KernelId,
        command: Command,
        wait: &[EventId],
    ) -> Result<(), RuntimeError> {
        let tag = Tag {
            step: self.components.list()[whose.component].level as u32,
            label: self.graph.kernel(kernel).name.clone(),
            units: self.graph.kernel(kernel).units.clone(),
        };
        let queue = self.queues[whose.device][whose.queue];
        self.runtime
            .submit_without_event(queue, command, wait, tag)?;
        self.books.unheard[kernel.0] = true;
        self.used[whose.device] = self.used[whose.device].max(whose.queue + 1);
        Ok(())
    }

    fn submit(
        &mut self,
        whose: Whose,
        purpose: Purpose,
        command: Command,
        wait: &[EventId],
    ) -> Result<EventId, RuntimeError> {
        let Whose {
            component,
            device,
            queue,
        } = whose;
        let (label, units) = match purpose {
            Purpose::Launch(kernel) => {
                let kernel = self.graph.kernel(kernel);
                (kernel.name.clone(), kernel.units.clone())
            }
            Purpose::Copy(_) => (Name::from("copy"), 0..0),
            Purpose::Write(d) | Purpose::Read(_, d) | Purpose::Fetch(d) => {
                (self.graph.datum(d).name.clone(), 0..0)
            }
        };
        let tag = Tag {
            step: self.components.list()[component].level as u32,
            label,
            units,
        };
        let queue_id = self.queues[device][queue];
        let event = self.runtime.submit(queue_id, command, wait, tag)?;
        self.books.flying[component] += 1;
        self.used[device] = self.used[device].max(queue + 1);
        self.log.submitted(
            event,
            Entry {
                component,
                device,
                queue,
                purpose,
                waits: wait.to_vec(),
            },
        );
        Ok(event)
    }
}
