//! The state of a run, and its dealings with the runtime: submitting,
//! collecting completions, noticing losses.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use super::barrier::Ended;
use super::claims::Claims;
use super::kernel::Whole;
use super::layout::{Layout, length};
use super::ledger::Ledger;
use super::place::{Lane, Place};
use super::probe::Probes;
use super::product::Product;
use super::{CorunError, GATHER, Options};
use crate::balance::Balancer;
use crate::codelet::Codelet;
use crate::engine::{Loss, Outcome};
use crate::runtime::{
    Command, Completion, DeviceSpan, EventId, HostMemoryId, HostSpan, Launch, Memory, RuntimeError,
    Status, Tag, Value,
};
use crate::time::Nanos;
use crate::trace::Span;
use crate::workload::{Divisible, Grid, Ring};

/// A run under way.
pub struct Drive<'a> {
    pub(super) runtime: Claims<'a>,
    pub(super) workload: &'a dyn Divisible,
    pub(super) kept: Kept<'a>,
    pub(super) codelet: Arc<Codelet>,
    pub(super) options: Options,
    pub(super) balancer: Box<dyn Balancer>,
    pub(super) places: Vec<Place>,
    /// Most units a device can hold; 0 for one on host memory.
    pub(super) capacity: Vec<u64>,
    pub(super) alive: Vec<bool>,
    /// The present version and the next, in turns: grids, or vectors.
    pub(super) grids: [HostMemoryId; 2],
    /// Which of them is the present version.
    pub(super) present: usize,
    /// Where everything lies, or is on its way to.
    pub(super) layout: Layout,
    /// Where the coming step wants it, once planned; `None` within: as it is.
    pub(super) planned: Option<(u32, Option<Layout>)>,
    /// Devices whose memory has something that is nowhere else.
    pub(super) entrusted: Vec<bool>,
    /// When the last step ended.
    pub(super) barrier: u64,
    /// The last step, until the balancer was told of it.
    pub(super) unread: Option<Ended>,
    /// The same in real time, for the engine's own cost.
    pub(super) clock: Instant,
    pub(super) ledger: Ledger,
    /// When each device was last heard of.
    pub(super) heard: Vec<Nanos>,
    /// What probes have left behind.
    pub(super) probes: Probes,
    /// A device that held units was lost in this step.
    pub(super) spoiled: bool,
    pub(super) outcome: Outcome,
    /// Real time spent inside the runtime's calls since it was last reset.
    pub(super) outside: Duration,
    /// Time on the runtime's clock spent in enqueueing since it was last reset.
    pub(super) enqueueing: Nanos,
    pub(super) opened: Instant,
    pub(super) opened_at: u64,
}

/// What the workload's units are made of, and what the engine keeps of that in
/// host memory beside the two versions.
pub enum Kept<'a> {
    Grid(&'a dyn Grid),
    Product(Box<Product<'a>>),
    Kernel(Box<Whole<'a>>),
}

/// What a command belongs to.
#[derive(Clone, Copy)]
pub struct For {
    pub device: usize,
    pub lane: Lane,
    pub job: Option<usize>,
    pub step: u32,
    pub label: &'static str,
}

impl<'a> Drive<'a> {
    /// Asks the balancer for a step's plan, once.
    pub fn plan(&mut self, step: u32) -> Result<(), CorunError> {
        if self.planned.as_ref().is_some_and(|(s, _)| *s == step) {
            return Ok(());
        }
        self.runtime.mark_step(step);
        let took = self.unread.as_ref().map(Ended::took);
        if took.is_some_and(|took| self.balancer.keep_plan(step, took)) {
            self.planned = Some((step, None));
            return Ok(());
        }
        self.read_report();
        let plan = self.balancer.plan(step);
        let layout = Layout::of(&plan, self.workload.units(), &self.capacity)
            .ok_or_else(|| self.balancer_fault(step, "the plan does not divide the units"))?;
        let dead =
            |d: usize| !self.alive[d] && length(&layout.held[d]) + length(&layout.segments[d]) > 0;
        if (0..self.places.len()).any(dead) {
            return Err(self.balancer_fault(step, "a lost device was planned for"));
        }
        self.planned = Some((step, Some(layout)));
        Ok(())
    }

    /// Takes up the planned layout; returns the one before.
    pub(super) fn take_up(&mut self) -> Layout {
        let planned = self.planned.as_mut().and_then(|(_, layout)| layout.take());
        let before = match planned {
            Some(layout) => std::mem::replace(&mut self.layout, layout),
            None => self.layout.clone(),
        };
        for (device, entrusted) in self.entrusted.iter_mut().enumerate() {
            *entrusted = !before.held[device].is_empty() || !self.layout.held[device].is_empty();
        }
        before
    }

    /// The device whose queue can be kept filled without barriers in the
    /// planned step.
    pub fn sole_holder(&self) -> Option<usize> {
        let (_, planned) = self.planned.as_ref()?;
        let stays = planned.as_ref().is_none_or(|layout| *layout == self.layout);
        (self.layout.sole_holder())
            .filter(|_| stays && self.balancer.lookahead() > 0 && !self.iterates())
    }

    /// A chunk for a device whose place is not the workload's.
    pub(super) fn misplaced(&self, device: usize) -> CorunError {
        CorunError::Misplaced {
            device: self.runtime.devices()[device].name.clone(),
        }
    }

    pub(super) fn balancer_fault(&self, step: u32, what: &'static str) -> CorunError {
        CorunError::Balancer {
            balancer: self.balancer.name(),
            step,
            what,
        }
    }

    /// The grid of the present (0) or next (1) version, as a ring.
    pub(super) fn grid(&self, ahead: usize) -> Ring {
        Ring {
            memory: Memory::Host(self.grids[(self.present + ahead) % 2]),
            slots: self.workload.units(),
            unit: 0,
            slot: 0,
        }
    }

    /// The grid, if the workload is one.
    pub(super) fn as_grid(&self) -> Option<&'a dyn Grid> {
        match &self.kept {
            Kept::Grid(grid) => Some(*grid),
            Kept::Product(_) | Kept::Kernel(_) => None,
        }
    }

    /// Enqueues a launch over `units`.
    pub(super) fn launch(
        &mut self,
        whose: For,
        units: Range<u64>,
        args: Vec<Value>,
        wait: &[EventId],
    ) -> Result<Option<EventId>, CorunError> {
        let command = self.launch_of(&units, args);
        self.submit(whose, command, units, wait)
    }

    /// A launch over `units`.
    pub(super) fn launch_of(&self, units: &Range<u64>, args: Vec<Value>) -> Command {
        Command::Launch(Launch {
            codelet: Arc::clone(&self.codelet),
            args,
            cost: self.workload.cost(units),
            units: units.clone(),
        })
    }

    /// What the workload computes next becomes the present version.
    pub(super) fn turn(&mut self) {
        for place in &mut self.places {
            if let Place::Own(own) = place {
                own.held.advance();
            }
        }
        match &self.kept {
            Kept::Product(_) => self.turn_vectors(),
            Kept::Grid(_) => self.present = 1 - self.present,
            // Its buffers are turned where results are merged.
            Kept::Kernel(_) => {}
        }
    }

    /// Enqueues commands that follow one another on a queue: as one, which spares
    /// the driver events and the engine completions, or, where a trace is to show
    /// each, one by one. Returns the last one's event; `None` when the device turns out
    /// to be lost.
    pub(super) fn submit_together(
        &mut self,
        whose: For,
        mut commands: Vec<Command>,
        units: &Range<u64>,
        wait: &[EventId],
    ) -> Result<Option<EventId>, CorunError> {
        if commands.len() > 1 && !self.options.trace {
            commands = vec![Command::Series(commands)];
        }
        let (mut last, mut wait) = (None, wait);
        for command in commands {
            last = self.submit(whose, command, units.clone(), std::mem::take(&mut wait))?;
        }
        Ok(last)
    }

    /// Enqueues writes of `units` from the host grid `ahead` into a ring.
    pub(super) fn write(
        &mut self,
        whose: For,
        units: Range<u64>,
        ahead: usize,
        ring: &Ring,
        wait: &[EventId],
    ) -> Result<(), CorunError> {
        let writes = self.writes(units, ahead, ring);
        self.submit_each(whose, writes, wait).map(drop)
    }

    /// These writes, with their units.
    pub(super) fn writes(
        &self,
        units: Range<u64>,
        ahead: usize,
        ring: &Ring,
    ) -> impl Iterator<Item = (Range<u64>, Command)> + use<> {
        let spans = self.spans(units, ahead, ring).into_iter();
        spans.map(|(run, from, to)| (run, Command::Write { from, to }))
    }

    /// Enqueues reads of `units` from a ring into the host grid `ahead`;
    /// returns their events.
    pub(super) fn read(
        &mut self,
        whose: For,
        units: Range<u64>,
        ahead: usize,
        ring: &Ring,
        wait: &[EventId],
    ) -> Result<Vec<EventId>, CorunError> {
        let reads = self.reads(units, ahead, ring);
        self.submit_each(whose, reads, wait)
    }

    /// Submits commands that all wait for the same; returns their events.
    fn submit_each(
        &mut self,
        whose: For,
        commands: impl Iterator<Item = (Range<u64>, Command)>,
        wait: &[EventId],
    ) -> Result<Vec<EventId>, CorunError> {
        let mut events = Vec::new();
        for (run, command) in commands {
            events.extend(self.submit(whose, command, run, wait)?);
        }
        Ok(events)
    }

    /// These reads, with their units.
    pub(super) fn reads(
        &self,
        units: Range<u64>,
        ahead: usize,
        ring: &Ring,
    ) -> impl Iterator<Item = (Range<u64>, Command)> + use<> {
        let spans = self.spans(units, ahead, ring).into_iter();
        spans.map(|(run, to, from)| (run, Command::Read { from, to }))
    }

    fn spans(
        &self,
        units: Range<u64>,
        ahead: usize,
        ring: &Ring,
    ) -> Vec<(Range<u64>, HostSpan, DeviceSpan)> {
        let unit_bytes = self.workload.unit_bytes();
        let Memory::Device(buffer) = ring.memory else {
            return Vec::new();
        };
        let memory = self.grids[(self.present + ahead) % 2];
        ring.runs(units)
            .map(|(run, slot)| {
                let host = HostSpan {
                    memory,
                    offset: run.start * unit_bytes,
                    bytes: length(&run) * unit_bytes,
                };
                let device = DeviceSpan {
                    buffer,
                    offset: slot * unit_bytes,
                };
                (run, host, device)
            })
            .collect()
    }

    /// Submits a command; `None` when its device turns out to be lost.
    pub(super) fn submit(
        &mut self,
        whose: For,
        command: Command,
        units: Range<u64>,
        wait: &[EventId],
    ) -> Result<Option<EventId>, CorunError> {
        let tag = Tag {
            step: whose.step,
            label: whose.label.into(),
            units,
        };
        let virtually = |runtime: &Claims| runtime.simulated().then(|| runtime.now());
        let (at, before) = (virtually(&self.runtime), Instant::now());
        let submitted = self.runtime.submit(whose.lane.queue, command, wait, tag);
        let took = before.elapsed();
        self.outside += took;
        self.enqueueing += match (at, virtually(&self.runtime)) {
            (Some(at), Some(now)) => now.saturating_sub(at),
            _ => took.as_nanos() as Nanos,
        };
        match submitted {
            Ok(event) => {
                self.ledger
                    .submitted(event, whose.device, whose.lane.index, whose.job, wait);
                Ok(Some(event))
            }
            Err(RuntimeError::DeviceLost { why, .. }) => {
                if let Some(job) = whose.job {
                    self.ledger.jobs[job].failed = true;
                }
                self.lose(whose.device, whose.step, why)?;
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The next completion within `timeout`, booked; and its job if that is
    /// over.
    pub(super) fn collect(
        &mut self,
        timeout: Option<Duration>,
    ) -> Result<Option<(Completion, Option<usize>)>, CorunError> {
        let before = Instant::now();
        let waited = self.runtime.wait(timeout);
        self.outside += before.elapsed();
        let Some(completion) = waited? else {
            return Ok(None);
        };
        let ok = completion.status == Status::Done;
        let Some((device, job)) = self.ledger.completed(&completion, ok) else {
            return Ok(Some((completion, None)));
        };
        self.heard[device] = self.runtime.now();
        if let Status::Failed(why) | Status::DeviceLost(why) = &completion.status {
            self.lose(device, completion.tag.step, why.clone())?;
        }
        Ok(Some((completion, job)))
    }

    /// Waits until nothing is in flight.
    pub(super) fn drain(&mut self) -> Result<(), CorunError> {
        while !self.ledger.idle() {
            if self.collect(None)?.is_none() {
                break;
            }
        }
        Ok(())
    }

    /// Books a device's loss.
    fn lose(&mut self, device: usize, step: u32, why: String) -> Result<(), CorunError> {
        if !self.alive[device] {
            return Ok(());
        }
        // What was before comes first.
        self.read_report();
        self.alive[device] = false;
        self.spoiled |= self.entrusted[device];
        self.balancer.lost(device);
        self.outcome.losses.push(Loss {
            device,
            step,
            why: why.clone(),
            repeated: 0,
        });
        if self.alive.contains(&true) {
            Ok(())
        } else {
            Err(CorunError::AllLost { why })
        }
    }

    /// Notes that the run ends early.
    pub fn interrupted(&mut self) {
        self.outcome.interrupted = true;
    }

    /// Seconds of real time that the engine itself took since the last call.
    pub(super) fn engine_time(&mut self) -> f64 {
        let own = self.clock.elapsed().saturating_sub(self.outside);
        self.clock = Instant::now();
        self.outside = Duration::ZERO;
        own.as_secs_f64()
    }

    /// Seconds on the runtime's clock that enqueueing took since the last call.
    pub(super) fn enqueue_time(&mut self) -> f64 {
        std::mem::take(&mut self.enqueueing) as f64 / 1e9
    }

    /// Moves the step's spans into the trace, if one is kept.
    pub(super) fn keep_spans(&mut self) {
        if self.options.trace {
            // The ledger keeps its room: it is filled again in every step.
            self.outcome.trace.spans.append(&mut self.ledger.spans);
        }
    }

    /// Adds spans to the trace, if one is kept.
    pub(super) fn keep(&mut self, spans: Vec<Span>) {
        if self.options.trace {
            self.outcome.trace.spans.extend(spans);
        }
    }

    /// Brings the result to host memory. `false` when a device was lost with
    /// its part of it.
    pub fn gather(&mut self, steps: u32) -> Result<bool, CorunError> {
        self.read_report();
        let began = self.runtime.now();
        for device in 0..self.places.len() {
            let Some((own, whose)) = self.own(device, steps.saturating_sub(1), GATHER) else {
                continue;
            };
            let (units, ring) = (own.held.units(), own.held.present());
            self.read(whose, units, 0, &ring, &[])?;
        }
        self.gather_product(steps.saturating_sub(1))?;
        self.drain()?;
        self.keep_spans();
        if !self.spoiled {
            self.complete_product()?;
        }
        self.outcome.gather_seconds += (self.runtime.now() - began) as f64 / 1e9;
        Ok(!self.spoiled)
    }

    /// Verifies the result of `steps` steps if asked, and ends the run.
    pub fn close(mut self, steps: u32, stop: &AtomicBool) -> Result<Outcome, CorunError> {
        self.outcome.seconds = self.outcome.steps.iter().map(|s| s.seconds).sum();
        self.deliver_kernel()?;
        if self.options.verify {
            let verified = match &self.kept {
                Kept::Kernel(_) => self.verify_kernel(steps, stop)?,
                Kept::Grid(grid) => {
                    let result = self.runtime.host_bytes(self.grids[self.present])?;
                    Some(grid.verify(steps, result))
                }
                Kept::Product(product) => {
                    let result = self
                        .runtime
                        .host_bytes(product.result(&self.grids, self.present))?;
                    Some(product.verify(steps, result))
                }
            };
            self.outcome.interrupted |= verified.is_none();
            self.outcome.max_abs_error = verified.map(|(error, _)| error);
            self.outcome.verified = verified.map(|(_, right)| right);
        }
        if let Kept::Product(product) = &self.kept {
            self.outcome.eigenvalue = product.eigenvalue();
        }
        self.outcome.model = self.balancer.account();
        Ok(std::mem::take(&mut self.outcome))
    }
}
