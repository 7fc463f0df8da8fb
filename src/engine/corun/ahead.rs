//! Devices that hold every unit, and that copy what they read of each other's results
//! directly, need no barrier with the host: their queues are in order, and wait for each
//! other's events. They are kept filled some steps ahead, so that neither submitting nor
//! waiting comes between the steps.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;

use super::context::{MAIN, Purpose};
use super::form::When;
use super::jobs::{self, Frame, Job};
use super::layout::length;
use super::run::RunState;
use super::step::StepEnd;
use super::{Control, CorunError, HELD};
use crate::balance::ChunkDone;
use crate::runtime::Notice;
use crate::trace::Span;

/// A step in flight.
struct StepAhead {
    step: u32,
    /// One for each device.
    jobs: Vec<usize>,
}

impl RunState<'_, '_> {
    /// Computes steps on `devices` from `first` (which must have been planned)
    /// on, until the balancer wants another layout, a stop is asked for, or
    /// all `steps` are done.
    pub fn run_ahead(
        &mut self,
        devices: &[usize],
        first: u32,
        steps: u32,
        control: &mut Control,
    ) -> Result<StepEnd, CorunError> {
        self.read_report();
        self.adopt_layout();
        // Whether another step follows one that is checked is known when that has ended.
        let supersteps = self.options.supersteps;
        let mut checked = (first..steps).filter(|step| supersteps.ends_period(*step));
        let steps = match self.options.tolerance.and_then(|_| checked.next()) {
            Some(checked) => checked + 1,
            None => steps,
        };
        let mut ahead: VecDeque<StepAhead> = VecDeque::new();
        let (mut next, mut done) = (first, first);
        let mut more = true;
        loop {
            while more && next < steps && ahead.len() as u32 <= self.balancer.lookahead() {
                self.plan(next)?;
                if self.independent().as_deref() != Some(devices) {
                    more = false;
                    break;
                }
                self.context.runtime.notify(Notice::PhaseBegins(next));
                let jobs = self.launches_ahead(devices, next)?;
                ahead.push_back(StepAhead { step: next, jobs });
                next += 1;
            }
            let Some(current) = ahead.pop_front() else {
                break;
            };
            while !self.context.spoiled && self.is_running(&current) {
                self.collect(None)?;
            }
            if !self.context.spoiled {
                self.note_ahead(&current);
                done += 1;
                (control.progress)(supersteps.done(done), supersteps.steps());
                more &= !control.stop.load(Ordering::Relaxed);
                // Steps in flight tell in which of them a device was lost.
                more &= !self.context.is_someone_lost();
                if done < steps {
                    if ahead.is_empty() {
                        self.context.lose_absent(done)?;
                        self.tell_losses();
                    }
                    // Only at a barrier nothing of its former generation is in flight.
                    more &= !self.context.is_someone_back();
                }
            }
            if self.context.spoiled {
                self.drain()?;
                return Ok(StepEnd::Spoiled(done - first));
            }
        }
        // The last step's results are on their way to other devices.
        self.drain()?;
        self.context.jobs.clear();
        if self.context.spoiled {
            return Ok(StepEnd::Spoiled(done - first));
        }
        self.form.add_up(&mut self.context, When::Step, &[])?;
        Ok(StepEnd::Done(done - first))
    }

    /// Whether a command of a step's jobs has not ended.
    fn is_running(&self, step: &StepAhead) -> bool {
        let mut jobs = step.jobs.iter();
        jobs.any(|job| self.context.jobs.all[*job].outstanding > 0)
    }

    /// Submits a step's launches, and turns to the next version; returns the jobs.
    fn launches_ahead(&mut self, devices: &[usize], step: u32) -> Result<Vec<usize>, CorunError> {
        let mut jobs = Vec::with_capacity(devices.len());
        for device in devices.iter().copied() {
            let units = self.context.layout.held[device].clone();
            let job = self.held_job(device, units);
            let purpose = Purpose {
                job: Some(job),
                ..Purpose::new(device, MAIN, step, HELD)
            };
            while self.form.launch(&mut self.context, purpose, true)? {}
            jobs.push(job);
        }
        self.form.hand_over(&mut self.context, step)?;
        self.form.turn(&mut self.context, step)?;
        self.tell_losses();
        Ok(jobs)
    }

    /// Reports a step: from the end of the one before to its own.
    fn note_ahead(&mut self, current: &StepAhead) {
        let jobs = current.jobs.iter();
        let jobs: Vec<Job> = jobs
            .map(|job| self.context.jobs.all[*job].clone())
            .collect();
        let ended = jobs.iter().map(|job| job.ended).max().unwrap_or(0);
        let frame = Frame {
            step: current.step,
            steps: self.options.supersteps.length(current.step),
            began: self.barrier,
            ended: ended.max(self.barrier),
            moved: 0,
            devices: self.context.devices.len(),
        };
        let spans = &mut self.context.jobs.spans;
        let mine: Vec<Span> = spans
            .extract_if(.., |span| span.step <= current.step)
            .collect();
        let mut heard = vec![frame.began; frame.devices];
        for job in &jobs {
            self.balancer.completed(&ChunkDone {
                step: current.step,
                device: job.device,
                units: length(&job.units),
                held: true,
                issued: job.issued,
                started: job.started,
                ended: job.ended,
            });
            heard[job.device] = job.ended.max(frame.began);
        }
        let report = jobs::report(&frame, &heard, &jobs, &mine);
        self.balancer.step_ended(&report);
        let own = [self.engine_seconds(), self.submit_seconds()];
        let record = jobs::record(&frame, &report, &jobs, &mine, own);
        self.add_step(record, &frame);
        self.keep(&mine);
        self.barrier = frame.ended;
    }
}
