//! The state of a run, from the first version to the outcome: plans, losses,
//! beginning again.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::context::{Context, slowest_direct_way};
use super::form::{Arrivals, Form, Later, When};
use super::layout::{Layout, length};
use super::open::Corun;
use super::probe::Probes;
use super::step::{EndedStep, StepEnd};
use super::{Control, CorunError, Options, Tracing, WARM};
use crate::Outcome;
use crate::balance::Balancer;
use crate::runtime::{Completion, DeviceId, Notice, RuntimeError};
use crate::time::Nanos;
use crate::trace::Span;
use crate::verify::overflow;
use crate::workload::ends;

/// Most units of a warm-up launch.
const WARM_UNITS: u64 = 256;

/// The layout of the coming step, once planned; `None` within: as it is.
pub type Planned = Option<(u32, Option<Layout>)>;

/// A run under way.
pub struct RunState<'r, 'w> {
    pub(super) context: Context<'r, 'w>,
    pub(super) form: Box<dyn Form + 'w>,
    pub(super) options: Options,
    pub(super) balancer: Box<dyn Balancer>,
    pub(super) planned: Planned,
    /// When the last step ended.
    pub(super) barrier: Nanos,
    /// The last step, until the balancer learns of it.
    pub(super) ended: Option<EndedStep>,
    /// When the last step ended in real time, for the engine's own cost.
    pub(super) clock: Instant,
    pub(super) probes: Probes,
    /// Lost devices that were reported to the balancer.
    pub(super) reported_losses: usize,
    /// Seconds of steps that a loss ended before any unit was done.
    pub(super) lost_seconds: f64,
    pub(super) outcome: Outcome,
    pub(super) opened: (Instant, Nanos),
}

impl<'r, 'w> RunState<'r, 'w> {
    /// A run that has not begun.
    pub fn new(corun: Corun<'r, 'w>, balancer: Box<dyn Balancer>) -> Self {
        let devices = corun.context.runtime.devices();
        let names: Vec<String> = devices.iter().map(|d| d.name.clone()).collect();
        let mut outcome = Outcome {
            devices: names.clone(),
            ..Outcome::default()
        };
        if corun.options.trace != Tracing::None {
            outcome.wait_seconds = vec![0.0; names.len()];
            let allocated = corun.context.runtime.allocated().iter();
            let allocated = allocated.map(|(device, bytes)| (device.0, corun.opened.1, *bytes));
            outcome.trace.memory = allocated.collect();
        }
        outcome.trace.devices = names;
        Self {
            balancer,
            planned: None,
            barrier: corun.opened.1,
            ended: None,
            clock: Instant::now(),
            probes: Probes::default(),
            reported_losses: 0,
            lost_seconds: 0.0,
            outcome,
            opened: corun.opened,
            context: corun.context,
            form: corun.form,
            options: corun.options,
        }
    }

    /// Fills the first version, or a later one, and has the devices hold what the first plan
    /// wants.
    pub(super) fn set_up(&mut self, later: Option<&Later>) -> Result<(), CorunError> {
        self.context.lose_absent(0)?;
        self.tell_losses();
        // All cores fill.
        self.context.runtime.notify(Notice::DrivingEnds);
        self.form.fill(&mut self.context, later)?;
        self.warm_up()?;
        self.context.runtime.notify(Notice::DrivingBegins);
        self.probe()?;
        self.begin()?;
        self.note_probe_seconds();
        self.note_setup_seconds();
        Ok(())
    }

    /// Computes all steps.
    pub fn run(mut self, control: &mut Control) -> Result<Outcome, CorunError> {
        self.set_up(None)?;
        let supersteps = self.options.supersteps;
        (control.progress)(0, supersteps.steps());
        self.start_clock();
        let (mut step, mut steps) = (0, supersteps.count());
        loop {
            while step < steps {
                self.begin_step(step)?;
                let end = match self.independent() {
                    _ if self.context.spoiled => StepEnd::Spoiled(0),
                    Some(devices) => self.run_ahead(&devices, step, steps, control)?,
                    None => self.step(step)?,
                };
                match end {
                    StepEnd::Done(done) => step += done,
                    StepEnd::Spoiled(done) => {
                        self.restart(step + done)?;
                        step = 0;
                    }
                }
                (control.progress)(supersteps.done(step), supersteps.steps());
                if step > 0 && self.has_converged() {
                    steps = step;
                }
                if control.stop.load(Ordering::Relaxed) && step < steps {
                    self.outcome.interrupted = true;
                    steps = step;
                }
            }
            self.context.runtime.notify(Notice::DrivingEnds);
            if self.gather(step)? {
                return self.close(step, control.stop);
            }
            self.restart(step)?;
            step = 0;
        }
    }

    /// Regroups and plans, before a step.
    pub(super) fn begin_step(&mut self, step: u32) -> Result<(), CorunError> {
        self.begin_phase(step)?;
        self.plan(step)
    }

    /// Whether the last step ends the run by its change.
    fn has_converged(&self) -> bool {
        let both = self.options.tolerance.zip(self.form.change());
        both.is_some_and(|(tolerance, change)| ends(change, tolerance))
    }

    /// Runs each device's kernel once on a few units, into memory that the
    /// first step overwrites: compilation, page tables and clocks belong to
    /// the setup.
    fn warm_up(&mut self) -> Result<(), CorunError> {
        let all = self.context.units.clone();
        for device in 0..self.context.devices.len() {
            let space = self.context.devices[device].space.clone();
            let count = length(&all).min(WARM_UNITS);
            let count = space.longest_chunk.unwrap_or(count).min(count);
            let units = all.start..all.start + count;
            for lane in 0..space.chunk_queues {
                let purpose = self.context.chunk(device, lane, 0, WARM);
                let (form, context) = (&mut self.form, &mut self.context);
                form.chunk(context, purpose, units.clone(), &Arrivals::default())?;
            }
        }
        self.drain()?;
        self.context.jobs.clear();
        Ok(())
    }

    /// Moves units to where the first plan wants them, before the first step.
    fn begin(&mut self) -> Result<(), CorunError> {
        self.begin_phase(0)?;
        self.plan(0)?;
        self.relocate(0)?;
        self.drain()?;
        self.keep_spans();
        self.context.jobs.clear();
        Ok(())
    }

    /// After a loss of held units: the first version again, on what is left.
    /// `steps` were done and have to be done again.
    fn restart(&mut self, steps: u32) -> Result<(), CorunError> {
        let context = &mut self.context;
        context.lose_absent(steps)?;
        if let Some(loss) = context.losses.last_mut() {
            loss.repeated = self.options.supersteps.done(steps);
        }
        context.spoiled = false;
        context.jobs.clear();
        for (id, device) in context.devices.iter_mut().enumerate() {
            device.irreplaceable = false;
            if device.alive {
                device.reopen(&mut context.runtime, DeviceId(id))?;
            }
        }
        // All cores fill.
        context.runtime.notify(Notice::DrivingEnds);
        self.form.fill(context, None)?;
        context.runtime.notify(Notice::DrivingBegins);
        context.layout = Layout::unplanned(&context.units, context.devices.len());
        self.planned = None;
        self.begin()?;
        self.start_clock();
        Ok(())
    }

    /// The first step begins now.
    pub(super) fn start_clock(&mut self) {
        self.barrier = self.context.runtime.now();
        self.clock = Instant::now();
        self.context.outside = Duration::ZERO;
        self.context.submitting = 0;
    }

    /// Notes that the setup is over.
    fn note_setup_seconds(&mut self) {
        let runtime = &self.context.runtime;
        self.outcome.setup_seconds = match runtime.simulated() {
            true => (runtime.now() - self.opened.1) as f64 / 1e9,
            false => self.opened.0.elapsed().as_secs_f64(),
        };
    }

    /// A step begins.
    fn begin_phase(&mut self, step: u32) -> Result<(), CorunError> {
        self.context.runtime.notify(Notice::PhaseBegins(step));
        self.regroup(step)
    }

    /// Before `step`, devices that are lost leave, and those that are back take part again.
    pub(super) fn regroup(&mut self, step: u32) -> Result<(), CorunError> {
        self.context.lose_absent(step)?;
        self.tell_losses();
        for device in 0..self.context.devices.len() {
            if !self.context.readmit(device)? {
                continue;
            }
            match self.form.rejoin(&mut self.context, device) {
                // It was lost again.
                Err(CorunError::Runtime(RuntimeError::DeviceLost { .. })) => {
                    self.context.devices[device].alive = false;
                }
                rejoined => rejoined?,
            }
            self.tell_losses();
            if self.context.devices[device].alive {
                self.read_report();
                self.balancer.returned(device, step);
                self.context.note_return(device, step);
                // Not as planned without it.
                self.planned = None;
            }
        }
        match (self.context.alive().next(), self.context.losses.last()) {
            (None, Some(loss)) => Err(CorunError::AllLost {
                device: self.context.runtime.devices()[loss.device].name.clone(),
                why: loss.why.clone(),
            }),
            _ => Ok(()),
        }
    }

    /// Asks the balancer for a step's plan, once. The step may begin later.
    pub(super) fn plan(&mut self, step: u32) -> Result<(), CorunError> {
        if self.planned.as_ref().is_some_and(|(s, _)| *s == step) {
            return Ok(());
        }
        let took = self.ended.as_ref().map(EndedStep::took);
        if took.is_some_and(|took| self.balancer.keep_plan(step, took)) {
            self.planned = Some((step, None));
            return Ok(());
        }
        self.read_report();
        let plan = self.balancer.plan(step);
        let devices = &self.context.devices;
        let capacity: Vec<u64> = (devices.iter())
            .map(|d| d.space.capacity.unwrap_or(0))
            .collect();
        let layout = Layout::of(&plan, &self.context.units, &capacity)
            .ok_or_else(|| self.balancer_fault(step, "the plan does not divide the units"))?;
        let planned_for = |d: usize| length(&layout.held[d]) + length(&layout.segments[d]) > 0;
        if (0..devices.len()).any(|d| !devices[d].alive && planned_for(d)) {
            return Err(self.balancer_fault(step, "a lost device was planned for"));
        }
        self.planned = Some((step, Some(layout)));
        Ok(())
    }

    /// Makes the planned layout the present one; returns the one before.
    pub(super) fn adopt_layout(&mut self) -> Layout {
        let planned = self.planned.as_mut().and_then(|(_, layout)| layout.take());
        let context = &mut self.context;
        let before = match planned {
            Some(layout) => std::mem::replace(&mut context.layout, layout),
            None => context.layout.clone(),
        };
        for (device, state) in context.devices.iter_mut().enumerate() {
            state.irreplaceable =
                !before.held[device].is_empty() || !context.layout.held[device].is_empty();
        }
        before
    }

    /// Adopts the planned layout: moves units to where it has them. Returns how
    /// many change hands, and what is on its way to host memory.
    pub(super) fn relocate(&mut self, step: u32) -> Result<(u64, Arrivals), CorunError> {
        let before = self.adopt_layout();
        let arrivals = self.form.relocate(&mut self.context, &before, step)?;
        self.tell_losses();
        Ok((self.context.layout.moved_since(&before), arrivals))
    }

    /// The devices that need no barrier with the host in the planned step, so that their
    /// queues can be kept filled: they hold all units, and what one reads of another's
    /// results goes there directly.
    pub(super) fn independent(&self) -> Option<Vec<usize>> {
        let (_, planned) = self.planned.as_ref()?;
        let layout = &self.context.layout;
        let stays = planned.as_ref().is_none_or(|planned| planned == layout);
        if !stays || self.balancer.lookahead() == 0 {
            return None;
        }
        let holders = layout.holders()?;
        let runs_ahead = self.form.runs_ahead(holders.len() > 1)
            && slowest_direct_way(&self.context.runtime, &holders).is_some();
        runs_ahead.then_some(holders)
    }

    pub(super) fn balancer_fault(&self, step: u32, what: &'static str) -> CorunError {
        CorunError::Balancer {
            balancer: self.balancer.name(),
            step,
            what,
        }
    }

    /// See [`Context::collect`]. The balancer learns of a loss.
    pub(super) fn collect(
        &mut self,
        timeout: Option<Duration>,
    ) -> Result<Option<(Completion, Option<usize>)>, CorunError> {
        let collected = self.context.collect(timeout)?;
        self.tell_losses();
        Ok(collected)
    }

    /// Waits until no command is in flight.
    pub(super) fn drain(&mut self) -> Result<(), CorunError> {
        self.context.drain()?;
        self.tell_losses();
        Ok(())
    }

    /// Tells the balancer of devices lost since the last call.
    pub(super) fn tell_losses(&mut self) {
        while let Some(loss) = self.context.losses.get(self.reported_losses) {
            let device = loss.device;
            self.reported_losses += 1;
            // What was planned before may have units on it.
            self.planned = None;
            // The step before comes first.
            self.read_report();
            self.balancer.lost(device);
        }
    }

    /// Seconds of real time that the engine itself took since the last call.
    pub(super) fn engine_seconds(&mut self) -> f64 {
        let outside = std::mem::take(&mut self.context.outside);
        let own = self.clock.elapsed().saturating_sub(outside);
        self.clock = Instant::now();
        own.as_secs_f64()
    }

    /// Seconds on the runtime's clock that submitting took since the last call.
    pub(super) fn submit_seconds(&mut self) -> f64 {
        std::mem::take(&mut self.context.submitting) as f64 / 1e9
    }

    /// Adds spans to what is kept of them.
    pub(super) fn keep(&mut self, spans: &[Span]) {
        if self.options.trace == Tracing::None {
            return;
        }
        for span in spans {
            let waited = span.started.saturating_sub(span.ready) as f64 / 1e9;
            self.outcome.wait_seconds[span.device] += waited;
        }
        if self.options.trace == Tracing::Commands {
            self.outcome.trace.spans.extend_from_slice(spans);
        }
    }

    /// Keeps what was done since the last step.
    fn keep_spans(&mut self) {
        let spans = std::mem::take(&mut self.context.jobs.spans);
        self.keep(&spans);
    }

    /// Brings the result to host memory. `false` when a device was lost with
    /// its part of it.
    pub(super) fn gather(&mut self, steps: u32) -> Result<bool, CorunError> {
        self.read_report();
        let began = self.context.runtime.now();
        let (form, context) = (&mut self.form, &mut self.context);
        form.gather(context, steps.saturating_sub(1))?;
        if !context.spoiled && context.has_all() {
            form.add_up(context, When::End, &[])?;
        }
        self.tell_losses();
        self.keep_spans();
        self.outcome.gather_seconds += (self.context.runtime.now() - began) as f64 / 1e9;
        Ok(!self.context.spoiled)
    }

    /// Verifies the result of so many steps of the engine if asked, and ends the run.
    fn close(mut self, steps: u32, stop: &AtomicBool) -> Result<Outcome, CorunError> {
        let steps = self.options.supersteps.done(steps);
        let (form, context, outcome) = (&mut self.form, &mut self.context, &mut self.outcome);
        let recorded: f64 = outcome.steps.iter().map(|s| s.seconds).sum();
        outcome.seconds = recorded + self.lost_seconds;
        if self.options.verify {
            let verified = form.verify(context, steps, stop)?;
            outcome.interrupted |= verified.is_none();
            // What was compared with nothing is neither right nor wrong.
            let compared = verified.filter(|found| found.numbers > 0 || found.not_finite == 0);
            outcome.max_abs_error = compared.map(|found| found.error);
            outcome.verified = compared.map(|found| found.right);
            outcome.notes = verified.iter().filter_map(overflow::note).collect();
        }
        // Results may replace what a run began with.
        form.deliver(context)?;
        if let (Some(_), Some(change)) = (self.options.tolerance, form.change()) {
            outcome
                .notes
                .extend(overflow::note_of_change(change, steps.into()));
        }
        outcome.eigenvalue = form.eigenvalue();
        outcome.change = form.change();
        outcome.notes.extend(form.notes());
        outcome.losses = std::mem::take(&mut context.losses);
        let steps = f64::from(self.options.supersteps.size());
        let considered = self.balancer.considered().into_iter();
        outcome.considered = considered.map(|(part, of)| (part, of / steps)).collect();
        outcome.model = self.balancer.account();
        Ok(self.outcome)
    }
}
