//! One step: units move, held units are launched, the pool is handed out in
//! chunks, and everybody's commands complete.

use std::ops::Range;
use std::time::Duration;

use super::context::{MAIN, Purpose};
use super::form::{Arrivals, When};
use super::jobs::{self, Frame, Job};
use super::layout::{Pool, length};
use super::run::RunState;
use super::{CHUNK, CorunError, HELD};
use crate::balance::{ChunkDone, Next, StepState};
use crate::outcome::StepRecord;
use crate::time::Nanos;

/// How a step, or several at once, ended.
pub enum StepEnd {
    /// So many steps are done.
    Done(u32),
    /// Held units were lost after so many steps; the run must begin again.
    Spoiled(u32),
}

/// The work of a step that is handed out while it runs.
struct Work {
    pool: Pool,
    /// The job on each of a device's queues for chunks.
    lanes: Vec<Vec<Option<usize>>>,
    /// Devices that want nothing more in this step.
    done: Vec<bool>,
    /// Units handed out and not completed, by device.
    in_flight: Vec<u64>,
    arrivals: Arrivals,
    began: Nanos,
    /// When the balancer was last asked.
    asked: Nanos,
    /// What could wait until the devices are at work is done.
    caught_up: bool,
}

/// Completions that free no lane only tell that time has passed. A step is
/// this many times as long as the time after which that makes the balancer
/// think again: asking takes longer than submitting.
const ASKINGS: u64 = 16;

impl RunState<'_, '_> {
    /// Computes one step, which must have been planned.
    pub fn step(&mut self, step: u32) -> Result<StepEnd, CorunError> {
        let is_repeatable = self.form.begin_step(&mut self.context, step)?;
        let (moved, arrivals) = self.relocate(step)?;
        for device in &mut self.context.devices {
            device.irreplaceable |= !is_repeatable;
        }
        let (layout, devices) = (&self.context.layout, &self.context.devices);
        let lanes = devices.iter().map(|d| vec![None; d.space.chunk_queues]);
        let mut work = Work {
            pool: Pool::new(&layout.segments),
            lanes: lanes.collect(),
            done: vec![false; devices.len()],
            in_flight: layout.held.iter().map(length).collect(),
            arrivals,
            began: self.barrier,
            asked: self.barrier,
            caught_up: false,
        };
        // Host devices first: submitting a ring's launches takes a while, and
        // their cores would wait for it.
        self.hand_out(step, &mut work, true)?;
        self.launch_held(step, &mut work)?;
        self.run_pool(step, &mut work)?;
        if !self.context.spoiled {
            self.form.turn(&mut self.context, step)?;
            if self.context.has_all() {
                self.form.add_up(&mut self.context, When::Step, &[])?;
            }
            self.tell_losses();
        }
        let context = &mut self.context;
        for (device, held) in context.devices.iter_mut().zip(&context.layout.held) {
            device.irreplaceable = !held.is_empty();
        }
        self.end_step(step, moved);
        Ok(match self.context.spoiled {
            true => StepEnd::Spoiled(0),
            false => StepEnd::Done(1),
        })
    }

    /// Submits what is held, and keeps the others at work meanwhile: host devices
    /// from the start, streams once the kernels have a lead.
    fn launch_held(&mut self, step: u32, work: &mut Work) -> Result<(), CorunError> {
        let mut launches = Vec::new();
        for device in 0..self.context.devices.len() {
            let units = self.context.layout.held[device].clone();
            if self.context.devices[device].alive && !units.is_empty() {
                let job = self.held_job(device, units);
                self.context.jobs.keep_open(job);
                launches.push(Purpose {
                    job: Some(job),
                    ..Purpose::new(device, MAIN, step, HELD)
                });
            }
        }
        let mut lead = false;
        while !launches.is_empty() {
            let mut i = 0;
            while i < launches.len() {
                let more = self.form.launch(&mut self.context, launches[i], true)?;
                self.tell_losses();
                if more {
                    i += 1;
                    continue;
                }
                let job = launches.swap_remove(i).job;
                if let Some(job) = job.filter(|job| self.context.jobs.close(*job)) {
                    self.job_ended(step, job, work);
                }
            }
            // The kernels keep a lead over the first streamed chunk's commands.
            if !std::mem::replace(&mut lead, true) || launches.is_empty() {
                continue;
            }
            self.hear(step, work)?;
            if !self.context.spoiled {
                self.hand_out(step, work, false)?;
                self.catch_up(step, work);
            }
        }
        if !self.context.spoiled {
            self.form.hand_over(&mut self.context, step)?;
            self.tell_losses();
        }
        Ok(())
    }

    /// A job of held units, without commands yet.
    pub(super) fn held_job(&mut self, device: usize, units: Range<u64>) -> usize {
        let now = self.context.runtime.now();
        self.context.jobs.job(device, None, units, now)
    }

    /// Receives the completions that are there, without waiting.
    fn hear(&mut self, step: u32, work: &mut Work) -> Result<(), CorunError> {
        while let Some((_, job)) = self.collect(Some(Duration::ZERO))? {
            if let Some(job) = job {
                self.job_ended(step, job, work);
            }
        }
        Ok(())
    }

    /// Does what can wait until the devices are at work: tells the balancer of the
    /// step before, and has it think of the next.
    fn catch_up(&mut self, step: u32, work: &mut Work) {
        if !std::mem::replace(&mut work.caught_up, true) {
            self.read_report();
            self.balancer.prepare_plan(step + 1);
        }
    }

    /// Hands out the pool and waits until everything has ended.
    fn run_pool(&mut self, step: u32, work: &mut Work) -> Result<(), CorunError> {
        if !self.context.spoiled {
            self.hand_out(step, work, false)?;
            self.catch_up(step, work);
        }
        let pause = self.outcome.steps.last().map_or(0.0, |step| step.seconds) / ASKINGS as f64;
        let pause = (pause * 1e9) as Nanos;
        let mut freed = false;
        loop {
            if !self.context.spoiled && (freed || self.context.jobs.is_empty()) {
                self.hand_out(step, work, false)?;
            }
            if self.context.jobs.is_empty() {
                if self.context.spoiled || work.pool.is_empty() {
                    return Ok(());
                }
                return Err(self.balancer_fault(step, "units were left to nobody"));
            }
            let Some((completion, job)) = self.collect(None)? else {
                return Err(self.balancer_fault(step, "commands vanished"));
            };
            freed = job.is_some() || completion.ended >= work.asked + pause;
            if let Some(job) = job {
                self.job_ended(step, job, work);
            }
        }
    }

    /// Asks the balancer for every free lane (of host devices only, if asked)
    /// until nobody takes more.
    fn hand_out(&mut self, step: u32, work: &mut Work, host_only: bool) -> Result<(), CorunError> {
        let mut more = !work.pool.is_empty();
        while more && !work.pool.is_empty() {
            more = false;
            work.asked = self.context.runtime.now();
            for device in 0..self.context.devices.len() {
                let state = &self.context.devices[device];
                if !state.alive || work.done[device] || work.pool.is_empty() {
                    continue;
                }
                let (is_host, longest) = (state.is_host(), state.space.longest_chunk);
                if host_only && !is_host {
                    continue;
                }
                let Some(lane) = work.lanes[device].iter().position(Option::is_none) else {
                    continue;
                };
                let next = self.balancer.next(
                    device,
                    &StepState {
                        step,
                        began: work.began,
                        now: work.asked,
                        left: work.pool.left(),
                        in_flight: &work.in_flight,
                    },
                );
                match next {
                    Next::Take(most) => {
                        let most = longest.map_or(most, |longest| most.min(longest));
                        let Some(units) = work.pool.take(device, most) else {
                            continue;
                        };
                        self.chunk(device, lane, units, step, work)?;
                        more = true;
                        // The commands of a streamed chunk take a while, and
                        // cores that are through meanwhile must not wait for
                        // those of the next.
                        if !is_host {
                            self.hear(step, work)?;
                        }
                        if self.context.spoiled {
                            return Ok(());
                        }
                    }
                    Next::Wait => {}
                    Next::Done => work.done[device] = true,
                }
            }
        }
        Ok(())
    }

    /// Submits a chunk of the pool.
    fn chunk(
        &mut self,
        device: usize,
        lane: usize,
        units: Range<u64>,
        step: u32,
        work: &mut Work,
    ) -> Result<(), CorunError> {
        work.in_flight[device] += length(&units);
        let job = self.submit_chunk((device, lane), units, (step, CHUNK), &work.arrivals)?;
        work.lanes[device][lane] = Some(job);
        if self.context.jobs.all[job].outstanding == 0 {
            // The device was lost before anything was submitted.
            self.job_ended(step, job, work);
        }
        Ok(())
    }

    /// Submits the commands of a chunk, as a job.
    pub(super) fn submit_chunk(
        &mut self,
        (device, lane): (usize, usize),
        units: Range<u64>,
        (step, label): (u32, &'static str),
        arrivals: &Arrivals,
    ) -> Result<usize, CorunError> {
        let context = &mut self.context;
        let now = context.runtime.now();
        let job = context.jobs.job(device, Some(lane), units.clone(), now);
        let purpose = Purpose {
            job: Some(job),
            ..context.chunk(device, lane, step, label)
        };
        self.form.chunk(context, purpose, units, arrivals)?;
        self.tell_losses();
        Ok(job)
    }

    /// A job has no command left: tell the balancer, or put its units back.
    fn job_ended(&mut self, step: u32, index: usize, work: &mut Work) {
        let Job {
            device,
            lane,
            units,
            issued,
            started,
            ended,
            failed,
            ..
        } = self.context.jobs.all[index].clone();
        work.in_flight[device] -= length(&units);
        if let Some(lane) = lane {
            work.lanes[device][lane] = None;
        }
        if !failed {
            self.balancer.completed(&ChunkDone {
                step,
                device,
                units: length(&units),
                held: lane.is_none(),
                issued,
                started,
                ended,
            });
            return;
        }
        let Some(successor) = self.context.alive().next() else {
            return;
        };
        if lane.is_some() {
            work.pool.give_back(successor, units);
        }
        if !self.context.devices[device].alive {
            work.pool.reassign(device, successor);
        }
        // Those who had enough must be asked again.
        work.done.fill(false);
    }
}

// What is computed in a superstep, several steps of a workload between two barriers. What
// the engine and balancers call a step is one of them. Pure arithmetic.

/// What is computed in each step of a superstep, so that after the last one `units` are done:
/// in each step `halo` units fewer on either side, as far as there are units.
pub fn stages(
    units: &Range<u64>,
    steps: u32,
    (halo, all): (u64, u64),
) -> impl Iterator<Item = Range<u64>> + use<> {
    let units = units.clone();
    (0..u64::from(steps)).rev().map(move |left| {
        let beside = left * halo;
        units.start.saturating_sub(beside)..all.min(units.end + beside)
    })
}

// The end of a step. At a barrier all devices wait for the engine, so a step
// that has ended is only marked there. Its report is made before the next step is
// planned or, where the balancer needs no report for that, once the devices are
// at work again.

/// A step that has ended, and that the balancer does not know. Its jobs and
/// spans are the last of those in flight.
pub struct EndedStep {
    frame: Frame,
    /// When the engine heard of each device the last time.
    heard: Vec<Nanos>,
    /// Whether it has to be computed again.
    spoiled: bool,
    /// Seconds of the engine itself and of submitting.
    own: [f64; 2],
}

impl EndedStep {
    /// How long the step took.
    pub fn took(&self) -> Nanos {
        self.frame.ended - self.frame.began
    }
}

impl RunState<'_, '_> {
    /// Marks the end of a step.
    fn end_step(&mut self, step: u32, moved: u64) {
        let frame = Frame {
            step,
            steps: self.options.supersteps.length(step),
            began: self.barrier,
            ended: self.context.runtime.now(),
            moved,
            devices: self.context.devices.len(),
        };
        self.barrier = frame.ended;
        let spoiled = self.context.spoiled;
        self.ended = Some(EndedStep {
            frame,
            heard: self.context.devices.iter().map(|d| d.heard).collect(),
            spoiled,
            own: [self.engine_seconds(), self.submit_seconds()],
        });
        self.context.jobs.next_step();
        if spoiled {
            self.read_report();
        }
    }

    /// Tells the balancer of the step that has ended, if it does not know it, and
    /// adds it to the outcome. The balancer learns nothing of a step that is to
    /// be computed again.
    pub(super) fn read_report(&mut self) {
        let Some(ended) = self.ended.take() else {
            return;
        };
        let (frame, log) = (ended.frame, std::mem::take(&mut self.context.jobs.last));
        let report = jobs::report(&frame, &ended.heard, &log.jobs, &log.spans);
        if !ended.spoiled {
            self.balancer.step_ended(&report);
        }
        let record = jobs::record(&frame, &report, &log.jobs, &log.spans, ended.own);
        if ended.spoiled && record.devices.iter().all(|device| device.units == 0) {
            self.lost_seconds += record.seconds;
        } else {
            self.add_step(record, &frame);
        }
        self.keep(&log.spans);
        // It keeps its allocations for the steps to come.
        self.context.jobs.last = log;
    }

    /// A step has ended.
    pub(super) fn add_step(&mut self, record: StepRecord, frame: &Frame) {
        if let Some(each_step) = self.options.each_step {
            each_step(&record);
        }
        self.outcome.steps.push(record);
        self.outcome.trace.steps.push((frame.began, frame.ended));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_step_computes_a_halo_less() {
        let stages = |units, steps, all| stages(&units, steps, (2, all)).collect::<Vec<_>>();
        assert_eq!(stages(6..9, 3, 12), [2..12, 4..11, 6..9]);
        assert_eq!(stages(0..1, 2, 12), [0..3, 0..1]);
        assert_eq!(stages(6..9, 1, 12), vec![6..9]);
    }
}
