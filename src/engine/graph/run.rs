//! A run of a graph: the loop that asks the policy, dispatches components and
//! handles completions.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::interleaving::Interleaving;
use super::open::TimedCommand;
use super::outcome::{DeviceUse, GraphOutcome, Placement};
use super::state::{ComponentState, RunState};
use super::timeline::{Purpose, Submission, Timeline};
use super::window::Window;
use super::{Control, GraphRunError, Options, PreparedGraph};
use crate::in_flight::{InFlight, span};
use crate::policy::{Finished, Policy};
use crate::residency::{Space, State};
use crate::runtime::{
    CommandKind, Completion, EventId, Notice, QueueId, Runtime, RuntimeError, Status,
};
use crate::time::Nanos;
use crate::trace::{Trace, intervals};
use pdawl_core::graph::{Components, DatumId, KernelId, TaskGraph};

/// The longest that a run waits before it checks whether it is to stop.
const STOP_CHECK: Duration = Duration::from_millis(100);

/// A run in progress.
pub(super) struct GraphRun<'a> {
    pub runtime: &'a mut dyn Runtime,
    pub prepared: &'a mut PreparedGraph,
    pub policy: &'a mut dyn Policy,
    pub options: &'a Options,
    pub graph: Arc<TaskGraph>,
    pub components: Arc<Components>,
    /// The devices in the order in which the policy is asked.
    pub asked: Vec<usize>,
    pub submit_time: Nanos,
    pub wait_time: Nanos,
    pub known: Known,
}

/// What a run knows, between two turns of an open graph, too.
#[derive(Default)]
pub(super) struct Known {
    /// By device.
    pub queues: Vec<Vec<QueueId>>,
    /// By device: how many components it has, and those that it has not begun.
    pub running: Vec<usize>,
    pub windows: Vec<Window>,
    /// By device and slot: whether the policy knows that the device has its datum.
    pub reported: Vec<Vec<bool>>,
    /// Whether the data of components that wait are loaded meanwhile.
    pub windowed: bool,
    /// By device: the queue at which the next component begins.
    pub next_queue: Vec<usize>,
    pub state: RunState,
    /// Components that became ready between two turns.
    pub ready: Vec<usize>,
    pub in_flight: InFlight<Submission>,
    pub timeline: Timeline,
    /// Devices, times and the bytes of their memory that data have from then on.
    pub memory: Vec<(usize, Nanos, u64)>,
    /// The last of these bytes, by device.
    pub held: HashMap<usize, u64>,
    pub uses: Vec<DeviceUse>,
    /// Reads of data that another device needs.
    pub fetching: Vec<(DatumId, EventId)>,
    /// Slots of pieces that a device keeps until a view is there.
    pub pinned_pieces: Vec<(usize, DatumId, usize)>,
    /// Devices that failed and have not been given up yet, and why.
    pub failing: Vec<(usize, String)>,
    /// A lost device is back. It takes part as soon as nothing is in flight.
    pub is_joined: bool,
    /// Ends the run as soon as nothing is in flight.
    pub error: Option<RuntimeError>,
    pub placements: Vec<Placement>,
    /// Of an open graph with a trace.
    pub commands: Vec<TimedCommand>,
    pub began: Nanos,
    /// The highest level that has begun.
    pub level: Option<usize>,
}

impl PreparedGraph {
    /// Runs the graph once.
    ///
    /// # Errors
    /// When memory does not fit, a kernel does not compile or is refused, and
    /// when the work of a lost device cannot be done elsewhere. After an error
    /// nothing is in flight.
    pub fn run(
        &mut self,
        runtime: &mut dyn Runtime,
        policy: &mut dyn Policy,
        options: &Options,
        control: &mut Control,
    ) -> Result<GraphOutcome, GraphRunError> {
        // Where components may go depends on which devices are there.
        self.muster(runtime, policy);
        if std::mem::replace(&mut self.has_run, true) {
            self.storage.renew();
        }
        self.prepare(runtime, policy, options)?;
        let mut run = GraphRun::open(runtime, self, policy, options)?;
        run.check_placeable()?;
        let driver_time = run.runtime.driver_time();
        run.runtime.notify(Notice::DrivingBegins);
        let ran = run.run(control);
        run.runtime.notify(Notice::DrivingEnds);
        ran.map(|()| run.into_outcome(driver_time))
    }
}

impl<'a> GraphRun<'a> {
    pub fn open(
        runtime: &'a mut dyn Runtime,
        prepared: &'a mut PreparedGraph,
        policy: &'a mut dyn Policy,
        options: &'a Options,
    ) -> Result<Self, GraphRunError> {
        let devices = prepared.devices.len();
        let queues = prepared.run_queues(runtime, policy, options)?;
        let (graph, components) = (&prepared.graph, &prepared.components);
        let state = RunState::new(graph, components);
        let is_given = |datum: usize| graph.data()[datum].contents.is_some();
        let residency = &mut prepared.storage.residency;
        residency.forget(|datum| options.keep && is_given(datum));
        for datum in (0..graph.data().len()).filter(|datum| is_given(*datum)) {
            residency.set_in_host(datum, true);
        }
        policy.begin();
        let mut reported = vec![vec![false; graph.data().len()]; devices];
        for (device, reported) in reported.iter_mut().enumerate() {
            for (slot, reported) in reported.iter_mut().enumerate() {
                if residency.version(device, slot).is_some() {
                    *reported = true;
                    policy.arrived(device, slot);
                }
            }
        }
        if !options.trial {
            runtime.notify(Notice::PhaseBegins(0));
        }
        let known = Known {
            queues,
            running: vec![0; devices],
            reported,
            windows: (0..devices).map(|_| Window::default()).collect(),
            windowed: windowed(policy),
            next_queue: vec![0; devices],
            state,
            uses: vec![DeviceUse::default(); devices],
            placements: Vec::with_capacity(components.len()),
            began: runtime.now(),
            ..Known::default()
        };
        Ok(Self::on(runtime, (prepared, policy, options), known))
    }

    /// Begins with what is known, or goes on.
    pub fn on(
        runtime: &'a mut dyn Runtime,
        (prepared, policy, options): (&'a mut PreparedGraph, &'a mut dyn Policy, &'a Options),
        known: Known,
    ) -> Self {
        Self {
            graph: Arc::clone(&prepared.graph),
            components: Arc::clone(&prepared.components),
            asked: Vec::with_capacity(known.windows.len()),
            submit_time: 0,
            wait_time: 0,
            runtime,
            prepared,
            policy,
            options,
            known,
        }
    }

    fn run(&mut self, control: &mut Control) -> Result<(), GraphRunError> {
        let all = self.components.len();
        (control.progress)(0, all);
        let ready = self.known.state.find_ready(&self.graph, &self.components);
        self.tell_ready(ready);
        let mut reported = 0;
        // What the host wants may still be on its way, and may be lost there.
        while !self.known.state.complete()
            || !self.known.in_flight.is_empty()
            || !self.nothing_failed()
        {
            let stopped = control.stop.load(Ordering::Relaxed);
            self.find_changes();
            if self.nothing_failed() && !stopped {
                self.dispatch_ready();
            }
            if self.known.in_flight.is_empty() {
                if let Some(error) = self.known.error.take() {
                    self.finish_queues();
                    return Err(error.into());
                }
                if !self.nothing_failed() {
                    self.regroup()?;
                    continue;
                }
                if stopped {
                    return Ok(());
                }
                return Err(self.lacking_room().unwrap_or_else(|| self.stuck()));
            }
            let before = self.runtime.now();
            let completion = self.runtime.wait(Some(STOP_CHECK))?;
            self.wait_time += self.runtime.now() - before;
            if let Some(completion) = completion {
                self.completed(completion);
            }
            self.note_memory();
            let done = self.known.state.finished();
            if done > reported {
                reported = done;
                (control.progress)(done, all);
            }
        }
        Ok(())
    }

    /// Notes what data have of devices' memories, where a trace is kept.
    fn note_memory(&mut self) {
        if !self.options.trace {
            return;
        }
        let now = self.runtime.now();
        for device in 0..self.prepared.devices.len() {
            let space = self.prepared.storage.residency.space(device);
            let Some(held) = space.map(Space::held_bytes) else {
                continue;
            };
            let noted = self.known.held.entry(device).or_insert(0);
            if *noted != held {
                *noted = held;
                self.known.memory.push((device, now, held));
            }
        }
    }

    /// Whether there is no failure, and no return of a device, that must be handled first.
    pub fn nothing_failed(&self) -> bool {
        self.known.failing.is_empty() && !self.known.is_joined && self.known.error.is_none()
    }

    /// Notes devices that were lost without a command that reported it, and those that are back.
    pub fn find_changes(&mut self) {
        for device in 0..self.prepared.devices.len() {
            let state = &self.prepared.devices[device];
            match (&state.lost, state.membership.ended(&*self.runtime)) {
                (None, Some(why)) => self.fail(device, why.to_owned()),
                (Some(_), _) => {
                    self.known.is_joined |= state.membership.clone().renew(&*self.runtime);
                }
                (None, None) => {}
            }
        }
    }

    /// Dispatches and enqueues what the policy assigns now.
    pub fn dispatch_ready(&mut self) {
        let mut interleaving = Interleaving::default();
        while self.nothing_failed() {
            let next = match self.next_to_begin() {
                Ok(next) => next,
                Err(error) => {
                    self.refused(error);
                    break;
                }
            };
            let Some((component, device)) = next else {
                match self.next_component() {
                    Some((component, device)) => self.assign(component, device),
                    None => break,
                }
                continue;
            };
            let dispatch = self.begin(component, device);
            if !dispatch.can_interleave() || !interleaving.admits(&dispatch) {
                self.enqueue(interleaving.take());
            }
            if dispatch.can_interleave() {
                interleaving.add(dispatch);
            } else {
                self.enqueue(vec![dispatch]);
            }
        }
        self.enqueue(interleaving.take());
        for device in 0..self.known.windows.len() {
            if self.known.windowed
                && self.nothing_failed()
                && let Err(error) = self.prefetch(device)
            {
                self.refused(error);
            }
        }
    }

    /// The next component that the policy gives to a device. Enqueueing takes the
    /// host's time, so every device gets a component before any gets a second one.
    fn next_component(&mut self) -> Option<(usize, usize)> {
        let now = self.runtime.now();
        let window = self.policy.window().unwrap_or(usize::MAX);
        let has_room = |device: &usize| {
            self.prepared.devices[*device].lost.is_none() && self.known.running[*device] < window
        };
        let mut asked = std::mem::take(&mut self.asked);
        asked.clear();
        asked.extend((0..self.prepared.devices.len()).filter(has_room));
        asked.sort_by_key(|device| self.known.running[*device]);
        self.asked = asked;
        for index in 0..self.asked.len() {
            let device = self.asked[index];
            let Some(component) = self.policy.next(device, now) else {
                continue;
            };
            let state = self.known.state.components.get(component);
            if state.is_none_or(|component| component.state != ComponentState::Ready) {
                // Reported as being stuck, once nothing is in flight.
                return None;
            }
            return Some((component, device));
        }
        None
    }

    /// Notes that the runtime refused something. A device that is lost is reported by
    /// its commands, too.
    pub(super) fn refused(&mut self, error: RuntimeError) {
        let of = error.leaves_out().and_then(|(device, _)| {
            let devices = &self.prepared.devices;
            devices.iter().position(|own| own.name == device)
        });
        let left_out = of.and_then(|device| {
            let why = self.prepared.leaves_out(&error, device)?;
            Some((device, why))
        });
        match left_out {
            Some((device, why)) => self.fail(device, why),
            None => self.known.error = Some(error),
        }
    }

    /// Notes that a device failed.
    pub fn fail(&mut self, device: usize, why: String) {
        if !self.known.failing.iter().any(|(d, _)| *d == device) {
            self.known.failing.push((device, why));
        }
    }

    pub fn tell_ready(&mut self, components: Vec<usize>) {
        let now = self.runtime.now();
        for component in components {
            self.policy.ready(component, now);
        }
    }

    /// Tells the runtime when a level begins; faults may be scheduled by levels.
    pub fn begin_level(&mut self, level: usize) {
        if self.known.level.is_none_or(|begun| begun < level) {
            if self.known.level.is_some() && !self.options.trial {
                self.runtime.notify(Notice::PhaseBegins(level as u32));
            }
            self.known.level = Some(level);
        }
    }

    /// Waits for kernels without an event whose component was not submitted
    /// completely, so that no later command covers them.
    pub fn finish_queues(&mut self) {
        for queue in self.known.queues.iter().flatten() {
            self.runtime.finish(*queue);
        }
    }

    pub fn completed(&mut self, completion: Completion) {
        let Some((submission, ready)) = self.known.in_flight.remove(&completion) else {
            // Of a kernel without an event, which matters only if it failed.
            if let Status::Failed(why) | Status::DeviceLost(why) = completion.status {
                self.fail(completion.device.0, why);
            }
            return;
        };
        let (component, device) = (submission.component, submission.device);
        let is_part = submission.purpose.is_part_of_component();
        let is_launch = matches!(submission.purpose, Purpose::Launch(_) | Purpose::Graph);
        if let Purpose::Load(_) | Purpose::PeerLoad(..) = submission.purpose {
            self.known.windows[device].loads -= 1;
        }
        if is_part {
            let run = &mut self.known.state.components[component];
            run.in_flight -= 1;
            if is_launch {
                run.started = completion.started;
            }
            run.ended = run.ended.max(completion.ended);
            run.failed |= completion.status != Status::Done;
        }
        if let Purpose::Write(datum) | Purpose::Load(datum) = submission.purpose
            && !self.graph.datum(datum).pieces.is_empty()
        {
            self.unpin_pieces(device, datum);
        }
        if let Purpose::PeerLoad(datum, peer) = submission.purpose {
            self.loaded_from(peer, datum, completion.status == Status::Done);
        }
        match &completion.status {
            Status::Done => {
                let became_ready = self.take_effect(&submission, &completion);
                self.tell_ready(became_ready);
                if self.options.trace && self.prepared.grows {
                    let kernel = (self.components.list().get(component))
                        .and_then(|component| component.kernels.first());
                    self.known
                        .commands
                        .extend(kernel.map(|kernel| TimedCommand {
                            kernel: *kernel,
                            device,
                            queue: submission.queue,
                            kind: match submission.purpose {
                                // Launches that copy what the kernel reads.
                                Purpose::Together(_) | Purpose::Piece(_) => CommandKind::Copy,
                                _ => completion.kind,
                            },
                            bytes: completion.bytes,
                            queued: completion.queued,
                            started: completion.started,
                            ended: completion.ended,
                        }));
                } else if self.options.trace {
                    let tag = self.tag(component, submission.purpose);
                    let span = span(&completion, (device, submission.queue), tag, ready);
                    self.known.timeline.add(completion.event, submission, span);
                }
            }
            Status::Skipped => {}
            Status::Failed(why) | Status::DeviceLost(why) => self.fail(device, why.clone()),
        }
        if is_part
            && let run = &self.known.state.components[component]
            && run.in_flight == 0
            && !run.failed
            && let ComponentState::Running(device) = run.state
        {
            self.finished(component, device);
        }
    }

    /// Notes what a command's end changes. Returns the components that became
    /// ready by it.
    fn take_effect(&mut self, submission: &Submission, completion: &Completion) -> Vec<usize> {
        let device = submission.device;
        match submission.purpose {
            Purpose::Write(datum) | Purpose::Load(datum) | Purpose::PeerLoad(datum, _) => {
                let residency = &mut self.prepared.storage.residency;
                if let State::Arriving((event, _)) = residency.state(device, datum.0)
                    && event == completion.event
                {
                    residency.set(device, datum.0, State::Valid);
                }
                Vec::new()
            }
            Purpose::Copy(_) | Purpose::Zeros(_) | Purpose::Piece(_) => Vec::new(),
            Purpose::Fetch(datum) | Purpose::Together(datum) => {
                self.stored(datum);
                Vec::new()
            }
            Purpose::Launch(kernel) => self.kernel_ended(device, kernel),
            Purpose::Graph => {
                let components = Arc::clone(&self.components);
                let kernels = components.list()[submission.component].kernels.iter();
                let ready = kernels.flat_map(|kernel| self.kernel_ended(device, *kernel));
                ready.collect()
            }
            Purpose::Read(kernel, datum) => {
                (self.prepared.storage).set_in_host(&self.graph, datum, true);
                (self.known.state).command_ended(&self.graph, &self.components, kernel)
            }
        }
    }

    /// A kernel has ended, so its outputs exist. Returns the components that
    /// became ready by it.
    fn kernel_ended(&mut self, device: usize, kernel: KernelId) -> Vec<usize> {
        let graph = Arc::clone(&self.graph);
        for datum in graph.kernel(kernel).outputs() {
            let overwriter = graph.overwriter(datum);
            if overwriter.is_some_and(|k| self.components.of(k) == self.components.of(kernel)) {
                // A later version is there when the component has ended.
                continue;
            }
            if self.prepared.devices[device].shares {
                (self.prepared.storage).set_in_host(&self.graph, datum, true);
                let slot = self.prepared.storage.residency.slot(datum.0);
                self.drop_older(device, slot, datum);
            } else {
                if let Err(error) = self.made(self.components.of(kernel), device, datum) {
                    self.refused(error);
                }
            }
        }
        (self.known.state).command_ended(&self.graph, &self.components, kernel)
    }

    fn finished(&mut self, component: usize, device: usize) {
        for kernel in (self.known.state).take_without_event(&self.components, component) {
            let ready = self.kernel_ended(device, kernel);
            self.tell_ready(ready);
        }
        self.known.state.finish(component, device);
        self.known.running[device] -= 1;
        self.leave_window(component, device);
        let run = &self.known.state.components[component];
        let seconds = |at: Nanos| at.saturating_sub(self.known.began) as f64 / 1e9;
        self.known.uses[device].components += 1;
        self.known.placements.push(Placement {
            component,
            level: self.components.list()[component].level,
            device,
            dispatched: seconds(run.dispatched),
            started: seconds(run.started),
            ended: seconds(run.ended),
        });
        self.policy.finished(&Finished {
            component,
            device,
            dispatched: run.dispatched,
            ended: run.ended,
            written: run.written,
        });
    }

    pub fn stuck(&self) -> GraphRunError {
        let waiting = self.known.state.components.len() - self.known.state.finished();
        GraphRunError::Policy {
            policy: self.policy.name(),
            what: format!("it assigns nothing, and {waiting} components are not done"),
        }
    }

    fn into_outcome(self, driver_time: Nanos) -> GraphOutcome {
        let ended = self.runtime.now();
        let whole = ended - self.known.began;
        let seconds = |time: Nanos| time as f64 / 1e9;
        let engine = whole.saturating_sub(self.submit_time + self.wait_time);
        let driver = self.runtime.driver_time() - driver_time;
        let interrupted = !self.known.state.complete();
        let mut uses = self.known.uses;
        let (spans, flows, launches) = self.known.timeline.into_parts();
        if self.options.trace {
            for (device, used) in uses.iter_mut().enumerate() {
                let own = spans.iter().filter(|span| span.device == device);
                let busy = intervals::union(own.map(|s| (s.started, s.ended)).collect());
                used.busy_seconds = Some(seconds(intervals::total(&busy)));
            }
        }
        let devices: Vec<String> = (self.prepared.devices.iter())
            .map(|device| device.name.clone())
            .collect();
        GraphOutcome {
            policy: self.policy.name(),
            seconds: seconds(whole),
            submit_seconds: seconds(self.submit_time),
            engine_seconds: seconds(engine),
            driver_seconds: seconds(driver),
            placements: self.known.placements,
            uses,
            losses: std::mem::take(&mut self.prepared.losses),
            interrupted,
            launches,
            trace: Trace {
                devices: devices.clone(),
                steps: vec![(self.known.began, ended)],
                spans,
                flows,
                memory: self.known.memory,
            },
            devices,
        }
    }
}

/// Whether a policy gives a device components ahead of their turn.
pub(super) fn windowed(policy: &dyn Policy) -> bool {
    policy.window().is_some_and(|components| components > 1)
}
