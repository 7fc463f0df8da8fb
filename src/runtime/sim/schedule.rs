//! Commands in virtual time: what waits for what, who has its turn, and when
//! each ends. Pure: it knows neither memory nor the driver.
//!
//! A job goes through four states: *blocked* until all jobs that it comes
//! after have ended, *waiting* for its turn at a station (a copy engine, or a
//! device's kernels), *delayed* for its fixed costs, *flowing* in the
//! [`Fluid`]. Whoever drives takes what has ended from [`Schedule::take_ended`],
//! in the order of ending.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

use super::fluid::{Fluid, Resource, Use};
use crate::time::Nanos;

/// Names a job; later jobs have larger ids.
pub type JobId = u64;

/// So many places where jobs run, first come first served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Station(usize);

/// A job that takes several places of its station at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Team {
    pub places: u32,
    /// Of which each of the station's places is an equal part.
    pub of: Resource,
}

/// What a job needs.
#[derive(Clone, Debug)]
pub struct Work {
    pub station: Station,
    /// `None` for a job that takes one place and is as fast as that is.
    pub team: Option<Team>,
    /// Time at the station before the job counts as started.
    pub gap: Nanos,
    /// What makes that longer.
    pub delay: Option<Delay>,
    /// Time after its start before it uses any resource.
    pub latency: Nanos,
    pub uses: Vec<Use>,
}

impl Work {
    /// Places that it takes at its station.
    fn places(&self) -> u32 {
        self.team.map_or(1, |team| team.places.max(1))
    }
}

/// More time before a job's start if another that uses a resource is under way
/// when its turn comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delay {
    pub behind: Resource,
    pub by: Nanos,
}

/// How a job ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Done,
    /// By a fault of the script.
    Failed,
    /// What it came after did not end well.
    Spoilt,
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
    work: Work,
    state: State,
    /// Jobs not yet ended that it comes after.
    blockers: usize,
    /// Whether one of those that ended did not end well.
    spoilt: bool,
    followers: Vec<JobId>,
}

#[derive(Debug)]
struct Desk {
    places: u32,
    free: u32,
    line: VecDeque<JobId>,
}

/// The state of all jobs at a moment of virtual time.
#[derive(Debug)]
pub struct Schedule {
    now: Nanos,
    fluid: Fluid,
    desks: Vec<Desk>,
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
}

impl Schedule {
    /// A schedule over these resources, at time 0.
    pub fn new(fluid: Fluid, devices: usize) -> Self {
        Self {
            now: 0,
            fluid,
            desks: Vec::new(),
            jobs: BTreeMap::new(),
            next_job: 0,
            timers: BinaryHeap::new(),
            released: VecDeque::new(),
            ended: VecDeque::new(),
            lost: vec![false; devices],
            failing: vec![0; devices],
        }
    }

    /// A new station with so many places.
    pub fn station(&mut self, places: u32) -> Station {
        self.desks.push(Desk {
            places,
            free: places,
            line: VecDeque::new(),
        });
        Station(self.desks.len() - 1)
    }

    /// The resources, for changing their capacities.
    pub fn fluid(&mut self) -> &mut Fluid {
        &mut self.fluid
    }

    /// Whether the device is lost.
    pub fn is_lost(&self, device: usize) -> bool {
        self.lost[device]
    }

    /// Adds a job that comes after these (those that have ended are ignored;
    /// `spoilt` says that one of them did not end well).
    pub fn submit(&mut self, device: usize, work: Work, after: &[JobId], spoilt: bool) -> JobId {
        let id = self.next_job;
        self.next_job += 1;
        let mut blockers = 0;
        for before in after {
            if let Some(job) = self.jobs.get_mut(before) {
                job.followers.push(id);
                blockers += 1;
            }
        }
        self.jobs.insert(
            id,
            Job {
                device,
                work,
                state: State::Blocked,
                blockers,
                spoilt,
                followers: Vec::new(),
            },
        );
        if self.lost[device] {
            self.end(id, End::DeviceLost);
        } else if blockers == 0 {
            self.released.push_back(id);
        }
        self.settle();
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
        self.flow_until(to);
        self.settle();
    }

    fn flow_until(&mut self, at: Nanos) {
        let ended = self.fluid.advance(at.saturating_sub(self.now));
        self.now = self.now.max(at);
        for id in ended {
            self.end(id, End::Done);
        }
    }

    /// What has ended since the last call, in the order of ending.
    pub fn take_ended(&mut self) -> impl Iterator<Item = Ended> + use<> {
        std::mem::take(&mut self.ended).into_iter()
    }

    /// Loses a device: all its jobs end now, in the order of their submission.
    pub fn lose(&mut self, device: usize) {
        self.lost[device] = true;
        let jobs: Vec<JobId> = self
            .jobs
            .iter()
            .filter(|(_, job)| job.device == device)
            .map(|(id, _)| *id)
            .collect();
        for id in jobs {
            self.end(id, End::DeviceLost);
        }
        self.settle();
    }

    /// Gives a device back.
    pub fn restore(&mut self, device: usize) {
        self.lost[device] = false;
        self.failing[device] = 0;
    }

    /// The next `jobs` jobs of a device whose turn comes fail instead.
    pub fn fail_next(&mut self, device: usize, jobs: u32) {
        self.failing[device] += jobs;
    }

    /// Lets every released job take its place, until nothing moves.
    fn settle(&mut self) {
        loop {
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
        if job.spoilt {
            self.end(id, End::Spoilt);
        } else {
            job.state = State::Waiting;
            self.desks[job.work.station.0].line.push_back(id);
        }
    }

    /// Gives the first in a line its places, if they are free; false if nobody
    /// gets any.
    fn serve(&mut self) -> bool {
        let jobs = &self.jobs;
        let fits = |desk: &&mut Desk| {
            let first = desk.line.front();
            // One that ended while it waited takes none.
            first.is_some_and(|id| {
                jobs.get(id)
                    .is_none_or(|job| job.work.places() <= desk.free)
            })
        };
        let Some(id) = (self.desks.iter_mut().find(fits)).and_then(|desk| desk.line.pop_front())
        else {
            return false;
        };
        self.begin(id);
        true
    }

    /// A job's turn at its station.
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
        let gap = job.work.gap + self.delay(&job.work);
        if let Some(job) = self.jobs.get_mut(&id) {
            let started = self.now + gap;
            let flows = started + job.work.latency;
            job.state = State::Delayed { started };
            let desk = &mut self.desks[job.work.station.0];
            desk.free -= job.work.places();
            self.timers.push(Reverse((flows, id)));
        }
    }

    /// How much longer the gap of a job is whose turn comes now.
    fn delay(&self, work: &Work) -> Nanos {
        let Some(Delay { behind, by }) = work.delay.filter(|delay| delay.by > 0) else {
            return 0;
        };
        let uses = |job: &Job| job.work.uses.iter().any(|u| u.resource == behind);
        let is_under_way =
            |job: &Job| matches!(job.state, State::Delayed { .. } | State::Flowing { .. });
        match self.jobs.values().any(|job| is_under_way(job) && uses(job)) {
            true => by,
            false => 0,
        }
    }

    fn begin_flow(&mut self, id: JobId) {
        let Some(job) = self.jobs.get_mut(&id) else {
            return;
        };
        if let State::Delayed { started } = job.state {
            job.state = State::Flowing { started };
            let mut uses = job.work.uses.clone();
            if let Some(team) = job.work.team {
                let all = self.desks[job.work.station.0].places;
                for part in uses.iter_mut().filter(|part| part.resource == team.of) {
                    part.most = f64::from(team.places) / f64::from(all);
                }
            }
            self.fluid.start(id, uses);
        }
    }

    fn end(&mut self, id: JobId, end: End) {
        let Some(job) = self.jobs.remove(&id) else {
            return;
        };
        let started = match job.state {
            State::Blocked | State::Waiting => self.now,
            State::Delayed { started } | State::Flowing { started } => {
                self.desks[job.work.station.0].free += job.work.places();
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
                next.spoilt |= end != End::Done;
                if next.blockers == 0 {
                    self.released.push_back(follower);
                }
            }
        }
    }
}
