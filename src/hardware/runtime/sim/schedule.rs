//! Commands in virtual time: dependencies, engines, and when each command ends.
//! Pure: it knows neither memory nor the driver. One schedule serves a machine, or all
//! machines of a cluster and the transfers between them.
//!
//! A job goes through four states: *blocked* until all jobs that it comes
//! after have ended, *waiting* for slots of its engine (a copy engine, or a
//! device's kernels), *delayed* for its fixed costs, *flowing* in the
//! [`Fluid`]. The driver takes ended jobs from [`Schedule::take_ended`], in the
//! order of ending.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};

use super::bandwidth_sharing::{Fluid, Resource, Use};
use crate::time::Nanos;

/// The id of a job; later jobs have larger ids.
pub type JobId = u64;

/// An engine with a number of slots where jobs run, first come first served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Engine(usize);

/// Several slots of an engine that a job takes at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slots {
    pub count: u32,
    /// The resource of which each of the engine's slots is an equal part.
    pub of: Resource,
}

/// What a job needs.
#[derive(Clone, Debug)]
pub struct Demand {
    pub engine: Engine,
    /// Another device whose memory it reads or writes. When that is lost, the job ends
    /// as skipped.
    pub other: Option<usize>,
    /// `None` for a job that takes one slot and may use all of every resource.
    pub slots: Option<Slots>,
    /// Time in its slots before the job counts as started.
    pub gap: Nanos,
    /// An extension of the gap.
    pub delay: Option<Delay>,
    /// Time after its start before it uses any resource.
    pub latency: Nanos,
    pub uses: Vec<Use>,
}

impl Demand {
    /// That of a job that takes one slot and uses these resources as soon as it has it.
    pub fn of(engine: Engine, uses: Vec<Use>) -> Self {
        Self {
            engine,
            other: None,
            slots: None,
            gap: 0,
            delay: None,
            latency: 0,
            uses,
        }
    }

    /// Slots that it takes of its engine.
    fn slots(&self) -> u32 {
        self.slots.map_or(1, |slots| slots.count.max(1))
    }
}

/// More time before a job's start if another job that uses a resource runs when
/// its turn comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delay {
    pub behind: Resource,
    pub by: Nanos,
}

/// How a job ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Done,
    /// By an injected fault.
    Failed,
    /// A job that it came after did not end well.
    Skipped,
    DeviceLost,
}

/// A job that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    pub job: JobId,
    pub started: Nanos,
    pub at: Nanos,
    pub end: End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Blocked,
    Waiting,
    Delayed { started: Nanos },
    Flowing { started: Nanos },
}

#[derive(Debug)]
struct Job {
    device: usize,
    demand: Demand,
    state: State,
    /// Jobs not yet ended that it comes after.
    blockers: usize,
    /// Whether one of those that ended did not end well.
    doomed: bool,
    followers: Vec<JobId>,
}

#[derive(Debug)]
struct EngineState {
    slots: u32,
    free: u32,
    waiting: VecDeque<JobId>,
}

/// The state of all jobs at a moment of virtual time.
#[derive(Debug, Default)]
pub struct Schedule {
    now: Nanos,
    fluid: Fluid,
    engines: Vec<EngineState>,
    /// Engines where a job may begin: one has come, or slots have become free.
    due: BTreeSet<usize>,
    /// By resource: the jobs in slots that use it.
    users: Vec<u32>,
    jobs: BTreeMap<JobId, Job>,
    next_job: JobId,
    /// When delayed jobs begin to flow.
    timers: BinaryHeap<Reverse<(Nanos, JobId)>>,
    /// Jobs whose last blocker has ended.
    released: VecDeque<JobId>,
    ended: VecDeque<Ended>,
    /// For each device: whether it is lost, and how many jobs will fail.
    lost: Vec<bool>,
    failing: Vec<u32>,
    /// Jobs before which everything stops; see [`Self::stop_before_next`].
    stops: BTreeSet<JobId>,
    /// Whether the turn of one of them has come.
    is_stopped: bool,
}

impl Schedule {
    /// A new device, to which jobs belong. They are numbered from 0.
    pub fn device(&mut self) -> usize {
        self.lost.push(false);
        self.failing.push(0);
        self.lost.len() - 1
    }

    /// A new engine with so many slots.
    pub fn engine(&mut self, slots: u32) -> Engine {
        self.engines.push(EngineState {
            slots,
            free: slots,
            waiting: VecDeque::new(),
        });
        Engine(self.engines.len() - 1)
    }

    /// The resources, for changing their capacities.
    pub fn fluid(&mut self) -> &mut Fluid {
        &mut self.fluid
    }

    /// Whether the device is lost.
    pub fn is_lost(&self, device: usize) -> bool {
        self.lost[device]
    }

    /// Adds a job that comes after these. Those that have ended are ignored;
    /// `doomed` says that one of them did not end well.
    pub fn submit(
        &mut self,
        device: usize,
        demand: Demand,
        after: &[JobId],
        doomed: bool,
    ) -> JobId {
        let id = self.next_job;
        let mut blockers = 0;
        for before in after {
            if let Some(job) = self.jobs.get_mut(before) {
                job.followers.push(id);
                blockers += 1;
            }
        }
        self.insert(device, demand, blockers, doomed);
        let other = self.jobs.get(&id).and_then(|job| job.demand.other);
        if self.lost[device] {
            self.end(id, End::DeviceLost);
        } else if other.is_some_and(|other| self.lost[other]) {
            self.end(id, End::Skipped);
        } else if blockers == 0 {
            self.released.push_back(id);
        }
        self.settle();
        id
    }

    /// Adds a job that ends at once: what it needs of its device was lost.
    pub fn submit_lost(&mut self, device: usize, demand: Demand) -> JobId {
        let id = self.insert(device, demand, 0, false);
        self.end(id, End::DeviceLost);
        id
    }

    fn insert(&mut self, device: usize, demand: Demand, blockers: usize, doomed: bool) -> JobId {
        let id = self.next_job;
        self.next_job += 1;
        let job = Job {
            device,
            demand,
            state: State::Blocked,
            blockers,
            doomed,
            followers: Vec::new(),
        };
        self.jobs.insert(id, job);
        id
    }

    /// The time of the next change, if anything will change.
    pub fn next_change(&mut self) -> Option<Nanos> {
        let timer = self.timers.peek().map(|Reverse((at, _))| *at);
        let flow = self.fluid.next_end().map(|ns| self.now.saturating_add(ns));
        [timer, flow].into_iter().flatten().min()
    }

    /// Lets time pass until `to`.
    pub fn advance(&mut self, to: Nanos) {
        while let Some(at) = self.next_change().filter(|at| *at <= to) {
            if self.is_stopped {
                return;
            }
            self.flow_until(at);
            while let Some(&Reverse((due, id))) = self.timers.peek() {
                if due > self.now {
                    break;
                }
                self.timers.pop();
                self.begin_flow(id);
            }
            self.settle();
        }
        if !self.is_stopped {
            self.flow_until(to);
            self.settle();
        }
    }

    /// Time will stop when the turn of the job comes that is submitted next, or when that
    /// ends without.
    pub fn stop_before_next(&mut self) {
        self.stops.insert(self.next_job);
    }

    /// How many jobs will still stop time.
    pub fn stops(&self) -> usize {
        self.stops.len()
    }

    /// Whether time has stopped.
    pub fn is_stopped(&self) -> bool {
        self.is_stopped
    }

    /// Time passes again.
    pub fn resume(&mut self) {
        self.is_stopped = false;
        self.settle();
    }

    fn flow_until(&mut self, at: Nanos) {
        let ended = self.fluid.advance(at.saturating_sub(self.now));
        self.now = self.now.max(at);
        for id in ended {
            self.end(id, End::Done);
        }
    }

    /// The jobs that have ended since the last call, in the order of ending.
    pub fn take_ended(&mut self) -> impl Iterator<Item = Ended> + use<> {
        std::mem::take(&mut self.ended).into_iter()
    }

    /// Loses a device: all its jobs end now, in the order of their submission.
    pub fn lose(&mut self, device: usize) {
        self.lost[device] = true;
        let end = |job: &Job| match (job.device == device, job.demand.other == Some(device)) {
            (true, _) => Some(End::DeviceLost),
            (_, true) => Some(End::Skipped),
            _ => None,
        };
        let jobs = self.jobs.iter();
        let jobs: Vec<(JobId, End)> = jobs
            .filter_map(|(id, job)| Some((*id, end(job)?)))
            .collect();
        for (id, end) in jobs {
            self.end(id, end);
        }
        self.settle();
    }

    /// Restores a device.
    pub fn restore(&mut self, device: usize) {
        self.lost[device] = false;
        self.failing[device] = 0;
    }

    /// The next `jobs` jobs of a device whose turn comes fail instead.
    pub fn fail_next(&mut self, device: usize, jobs: u32) {
        self.failing[device] = self.failing[device].saturating_add(jobs);
    }

    /// Moves every released job on, until none can move.
    fn settle(&mut self) {
        while !self.is_stopped {
            if let Some(id) = self.released.pop_front() {
                self.release(id);
            } else if !self.serve() {
                return;
            }
        }
    }

    fn release(&mut self, id: JobId) {
        let Some(job) = self.jobs.get_mut(&id) else {
            return;
        };
        if job.doomed {
            self.end(id, End::Skipped);
        } else {
            job.state = State::Waiting;
            let engine = job.demand.engine.0;
            self.engines[engine].waiting.push_back(id);
            self.due.insert(engine);
        }
    }

    /// Begins the first job that waits for an engine with enough free slots; false
    /// if there is none.
    fn serve(&mut self) -> bool {
        let jobs = &self.jobs;
        // A job that ended while it waited takes none.
        let fits = |id: &JobId, free| jobs.get(id).is_none_or(|job| job.demand.slots() <= free);
        let (engine, id) = loop {
            let Some(&due) = self.due.first() else {
                return false;
            };
            let engine = &mut self.engines[due];
            match engine.waiting.front() {
                Some(id) if fits(id, engine.free) => break (due, *id),
                _ => self.due.pop_first(),
            };
        };
        if self.stops.remove(&id) {
            self.is_stopped = true;
            return true;
        }
        self.engines[engine].waiting.pop_front();
        self.begin(id);
        true
    }

    /// Gives a job its slots.
    fn begin(&mut self, id: JobId) {
        // A job that ended while it waited has left the map.
        let Some(job) = self.jobs.get(&id) else {
            return;
        };
        if self.failing[job.device] > 0 {
            self.failing[job.device] -= 1;
            self.end(id, End::Failed);
            return;
        }
        let gap = job.demand.gap + self.delay(&job.demand);
        if let Some(job) = self.jobs.get_mut(&id) {
            let started = self.now + gap;
            let flows = started + job.demand.latency;
            job.state = State::Delayed { started };
            self.engines[job.demand.engine.0].free -= job.demand.slots();
            for used in &job.demand.uses {
                let resource = used.resource.index();
                if self.users.len() <= resource {
                    self.users.resize(resource + 1, 0);
                }
                self.users[resource] += 1;
            }
            self.timers.push(Reverse((flows, id)));
        }
    }

    /// How much the gap of a job that begins now is extended.
    fn delay(&self, demand: &Demand) -> Nanos {
        let Some(Delay { behind, by }) = demand.delay.filter(|delay| delay.by > 0) else {
            return 0;
        };
        match self.users.get(behind.index()) {
            Some(users) if *users > 0 => by,
            _ => 0,
        }
    }

    fn begin_flow(&mut self, id: JobId) {
        let Some(job) = self.jobs.get_mut(&id) else {
            return;
        };
        if let State::Delayed { started } = job.state {
            job.state = State::Flowing { started };
            let mut uses = job.demand.uses.clone();
            if let Some(Slots { count, of }) = job.demand.slots {
                let all = self.engines[job.demand.engine.0].slots;
                for part in uses.iter_mut().filter(|part| part.resource == of) {
                    part.most = f64::from(count) / f64::from(all);
                }
            }
            self.fluid.start(id, uses);
        }
    }

    fn end(&mut self, id: JobId, end: End) {
        let Some(job) = self.jobs.remove(&id) else {
            return;
        };
        self.is_stopped |= self.stops.remove(&id);
        let started = match job.state {
            State::Blocked | State::Waiting => self.now,
            State::Delayed { started } | State::Flowing { started } => {
                let engine = job.demand.engine.0;
                self.engines[engine].free += job.demand.slots();
                self.due.insert(engine);
                for used in &job.demand.uses {
                    self.users[used.resource.index()] -= 1;
                }
                self.fluid.stop(id);
                started.min(self.now)
            }
        };
        self.ended.push_back(Ended {
            job: id,
            started,
            at: self.now,
            end,
        });
        for follower in job.followers {
            if let Some(next) = self.jobs.get_mut(&follower) {
                next.blockers -= 1;
                next.doomed |= end != End::Done;
                if next.blockers == 0 {
                    self.released.push_back(follower);
                }
            }
        }
    }
}
