//! The loop of a run: ask the policy, enqueue, hear what ended.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::books::{Books, Progress, There};
use super::log::{Log, Purpose};
use super::outcome::{DeviceUse, GraphLoss, GraphOutcome, Placement};
use super::wave::Wave;
use super::{Control, GraphRunError, Options, Plan};
use crate::graph::{Components, DatumId, KernelId, TaskGraph};
use crate::policy::{Finished, Policy};
use crate::runtime::{Completion, EventId, QueueId, Runtime, RuntimeError, Status};
use crate::time::Nanos;
use crate::trace::{Trace, intervals};

/// How often a run looks whether it is to stop.
const LOOK: Duration = Duration::from_millis(100);

/// A run on its way.
pub(super) struct Drive<'a> {
    pub runtime: &'a mut dyn Runtime,
    pub plan: &'a mut Plan,
    pub policy: &'a mut dyn Policy,
    pub options: &'a Options,
    pub graph: Arc<TaskGraph>,
    pub components: Arc<Components>,
    /// By device.
    pub queues: Vec<Vec<QueueId>>,
    /// By device: the queue at which the next component begins.
    pub turns: Vec<usize>,
    /// By device: the highest queue that was used, and one.
    pub used: Vec<usize>,
    pub books: Books,
    pub log: Log,
    pub uses: Vec<DeviceUse>,
    /// By component: when it was handed out, and the latest end of its commands.
    pub dispatched: Vec<Nanos>,
    ended: Vec<Nanos>,
    /// By component: bytes that were written to its device for it.
    pub written: Vec<u64>,
    /// What is on its way to the host since another device needs it.
    pub fetching: Vec<(DatumId, EventId)>,
    pub submit_time: Nanos,
    wait_time: Nanos,
    /// Devices that failed since everything was last in order, and why.
    pub failing: Vec<(usize, String)>,
    /// What ends the run as soon as nothing is in flight.
    pub error: Option<RuntimeError>,
    pub placements: Vec<Placement>,
    pub losses: Vec<GraphLoss>,
    began: Nanos,
    /// The highest level that has begun.
    level: Option<usize>,
}

impl Plan {
    /// Runs the graph once.
    ///
    /// # Errors
    /// When memory does not fit, a kernel does not compile or is refused, and
    /// when what was lost with a device cannot be done elsewhere. After an
    /// error nothing is in flight.
    pub fn run(
        &mut self,
        runtime: &mut dyn Runtime,
        policy: &mut dyn Policy,
        options: &Options,
        control: &mut Control,
    ) -> Result<GraphOutcome, GraphRunError> {
        // Where components may go depends on who is left.
        for (device, site) in self.sites.iter().enumerate() {
            if site.lost.is_some() {
                policy.lost(device);
            }
        }
        self.prepare(runtime, policy, options)?;
        let mut drive = Drive::open(runtime, self, policy, options)?;
        drive.check_homes()?;
        let driven = drive.driver_time();
        drive.runtime.begin_driving();
        let ran = drive.run(control);
        drive.runtime.end_driving();
        ran.map(|()| drive.close(driven))
    }
}

impl<'a> Drive<'a> {
    fn open(
        runtime: &'a mut dyn Runtime,
        plan: &'a mut Plan,
        policy: &'a mut dyn Policy,
        options: &'a Options,
    ) -> Result<Self, GraphRunError> {
        let (graph, components) = (Arc::clone(&plan.graph), Arc::clone(&plan.components));
        let devices = plan.sites.len();
        let mut queues = vec![Vec::new(); devices];
        for (device, queues) in queues.iter_mut().enumerate() {
            let used = (0..components.len()).any(|c| policy.may_run(c, device));
            if used && plan.sites[device].lost.is_none() {
                *queues = plan.queues(runtime, device, options)?;
            }
        }
        let noticed = std::mem::take(&mut plan.noticed);
        let mut books = Books::new(&graph, &components, devices);
        for (there, resident) in books.there.iter_mut().zip(&mut plan.resident) {
            for (there, resident) in there.iter_mut().zip(resident) {
                if *resident && options.keep {
                    *there = There::Here;
                }
                *resident = false;
            }
        }
        policy.begin();
        runtime.mark_step(0);
        let began = runtime.now();
        let drive = Self {
            queues,
            turns: vec![0; devices],
            used: vec![0; devices],
            books,
            log: Log::new(options.trace),
            uses: vec![DeviceUse::default(); devices],
            dispatched: vec![0; components.len()],
            ended: vec![0; components.len()],
            written: vec![0; components.len()],
            fetching: Vec::new(),
            submit_time: 0,
            wait_time: 0,
            failing: Vec::new(),
            error: None,
            placements: Vec::with_capacity(components.len()),
            losses: noticed
                .into_iter()
                .map(|(device, why)| GraphLoss {
                    device,
                    why,
                    repeated: Vec::new(),
                })
                .collect(),
            began,
            level: None,
            runtime,
            plan,
            policy,
            options,
            graph,
            components,
        };
        Ok(drive)
    }

    fn driver_time(&self) -> Nanos {
        self.runtime.driver_time()
    }

    fn run(&mut self, control: &mut Control) -> Result<(), GraphRunError> {
        let all = self.components.len();
        (control.progress)(0, all);
        let ready = self.books.count(&self.graph, &self.components);
        self.tell_ready(ready);
        let mut told = 0;
        while !self.books.complete() {
            let stopped = control.stop.load(Ordering::Relaxed);
            if self.in_order() && !stopped {
                self.hand_out();
            }
            if self.log.idle() {
                if let Some(error) = self.error.take() {
                    self.finish();
                    return Err(error.into());
                }
                if !self.failing.is_empty() {
                    self.recover()?;
                    continue;
                }
                if stopped {
                    return Ok(());
                }
                return Err(self.stuck());
            }
            let before = self.runtime.now();
            let completion = self.runtime.wait(Some(LOOK))?;
            self.wait_time += self.runtime.now() - before;
            if let Some(completion) = completion {
                self.completed(completion);
            }
            let done = self.books.finished();
            if done > told {
                told = done;
                (control.progress)(done, all);
            }
        }
        Ok(())
    }

    /// Whether nothing has gone wrong that must be settled first.
    fn in_order(&self) -> bool {
        self.failing.is_empty() && self.error.is_none()
    }

    /// Enqueues what the policy hands out now.
    fn hand_out(&mut self) {
        let mut wave = Wave::default();
        while self.in_order() {
            let now = self.runtime.now();
            let Some(assignment) = self.policy.next(now) else {
                break;
            };
            let ready = self.books.components().get(assignment.component);
            let lost = self.plan.sites.get(assignment.device);
            if ready != Some(&Progress::Ready) || lost.is_none_or(|site| site.lost.is_some()) {
                // Told as being stuck, once nothing is in flight.
                break;
            }
            let begun = self.begin(assignment);
            if !begun.takes_turns() || !wave.admits(&begun) {
                self.enqueue(wave.take());
            }
            if begun.takes_turns() {
                wave.add(begun);
            } else {
                self.enqueue(vec![begun]);
            }
        }
        self.enqueue(wave.take());
    }

    /// Notes that a device failed.
    pub fn fail(&mut self, device: usize, why: String) {
        if !self.failing.iter().any(|(d, _)| *d == device) {
            self.failing.push((device, why));
        }
    }

    pub fn tell_ready(&mut self, components: Vec<usize>) {
        let now = self.runtime.now();
        for component in components {
            self.policy.ready(component, now);
        }
    }

    /// Tells the runtime when a level begins, for what is scheduled by steps.
    pub fn begin_level(&mut self, level: usize) {
        if self.level.is_none_or(|begun| begun < level) {
            if self.level.is_some() {
                self.runtime.mark_step(level as u32);
            }
            self.level = Some(level);
        }
    }

    /// Waits for kernels whose end nothing tells, since not all that belongs to
    /// their component was submitted.
    pub fn finish(&mut self) {
        for queue in self.queues.iter().flatten() {
            self.runtime.finish(*queue);
        }
    }

    fn completed(&mut self, completion: Completion) {
        let Some(entry) = self.log.ended(completion.event) else {
            // Of a kernel that matters only if it failed.
            if let Status::Failed(why) | Status::DeviceLost(why) = completion.status {
                self.fail(completion.device.0, why);
            }
            return;
        };
        let (component, device) = (entry.component, entry.device);
        self.books.flying[component] -= 1;
        self.ended[component] = self.ended[component].max(completion.ended);
        match &completion.status {
            Status::Done => {
                let ready = self.take_effect(device, entry.purpose, &completion);
                self.tell_ready(ready);
                self.log.keep(entry, completion);
            }
            Status::Skipped => self.books.failed[component] = true,
            Status::Failed(why) | Status::DeviceLost(why) => {
                self.books.failed[component] = true;
                self.fail(device, why.clone());
            }
        }
        let over = self.books.flying[component] == 0 && !self.books.failed[component];
        if over && let Progress::Running(device) = self.books.components()[component] {
            self.finished(component, device);
        }
    }

    /// What a command's end changes; returns components that became ready.
    fn take_effect(
        &mut self,
        device: usize,
        purpose: Purpose,
        completion: &Completion,
    ) -> Vec<usize> {
        match purpose {
            Purpose::Write(datum) => {
                let there = &mut self.books.there[device][datum.0];
                if matches!(there, There::Coming { event, .. } if *event == completion.event) {
                    *there = There::Here;
                }
                Vec::new()
            }
            Purpose::Copy(_) => Vec::new(),
            Purpose::Fetch(datum) => {
                self.fetching.retain(|(fetched, _)| *fetched != datum);
                self.books.host[datum.0] = true;
                Vec::new()
            }
            Purpose::Launch(kernel) => {
                self.made(device, kernel);
                self.books.ended(&self.graph, &self.components, kernel)
            }
            Purpose::Read(kernel, datum) => {
                self.books.host[datum.0] = true;
                self.books.ended(&self.graph, &self.components, kernel)
            }
        }
    }

    /// A kernel's outputs are there.
    fn made(&mut self, device: usize, kernel: KernelId) {
        for datum in self.graph.kernel(kernel).outputs() {
            if self.plan.sites[device].shares {
                self.books.host[datum.0] = true;
            } else if self.books.there[device][datum.0] == There::No {
                self.books.there[device][datum.0] = There::Here;
            }
        }
    }

    fn finished(&mut self, component: usize, device: usize) {
        for kernel in self.books.take_unheard(&self.components, component) {
            self.made(device, kernel);
            let ready = self.books.ended(&self.graph, &self.components, kernel);
            self.tell_ready(ready);
        }
        self.books.finish(component, device);
        let (dispatched, ended) = (self.dispatched[component], self.ended[component]);
        let seconds = |at: Nanos| at.saturating_sub(self.began) as f64 / 1e9;
        self.uses[device].components += 1;
        self.placements.push(Placement {
            component,
            level: self.components.list()[component].level,
            device,
            dispatched: seconds(dispatched),
            ended: seconds(ended),
        });
        self.policy.finished(&Finished {
            component,
            device,
            dispatched,
            ended,
            written: self.written[component],
        });
    }

    fn stuck(&self) -> GraphRunError {
        let waiting = self.books.components().len() - self.books.finished();
        GraphRunError::Policy {
            policy: self.policy.name(),
            what: format!("it hands out nothing, and {waiting} components are not done"),
        }
    }

    fn close(self, driven: Nanos) -> GraphOutcome {
        let ended = self.runtime.now();
        let whole = ended - self.began;
        let seconds = |time: Nanos| time as f64 / 1e9;
        let engine = whole.saturating_sub(self.submit_time + self.wait_time);
        for (device, resident) in self.plan.resident.iter_mut().enumerate() {
            for (datum, resident) in resident.iter_mut().enumerate() {
                let given = self.graph.data()[datum].contents.is_some();
                *resident = given && self.books.there[device][datum] == There::Here;
            }
        }
        let driver = self.runtime.driver_time() - driven;
        let interrupted = !self.books.complete();
        let mut uses = self.uses;
        let (spans, flows, launches) = self.log.close();
        for (device, used) in uses.iter_mut().enumerate() {
            used.queues = self.used[device];
            if self.options.trace {
                let own = spans.iter().filter(|span| span.device == device);
                let busy = intervals::union(own.map(|s| (s.started, s.ended)).collect());
                used.busy_seconds = Some(seconds(intervals::total(&busy)));
            }
        }
        let devices: Vec<String> = self.plan.sites.iter().map(|s| s.name.clone()).collect();
        GraphOutcome {
            policy: self.policy.name(),
            seconds: seconds(whole),
            submit_seconds: seconds(self.submit_time),
            engine_seconds: seconds(engine),
            driver_seconds: seconds(driver),
            placements: self.placements,
            uses,
            losses: self.losses,
            interrupted,
            launches,
            trace: Trace {
                devices: devices.clone(),
                steps: vec![(self.began, ended)],
                spans,
                flows,
            },
            devices,
        }
    }
}
