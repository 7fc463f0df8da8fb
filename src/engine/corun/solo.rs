//! A lone device that holds every unit needs no barrier with the host: its queue
//! is in order. It is kept filled some steps ahead, so that neither submitting nor
//! waiting comes between the steps.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;

use super::context::{MAIN, Purpose};
use super::layout::length;
use super::record::{self, Frame};
use super::run::RunState;
use super::step::StepEnd;
use super::{Control, CorunError, HELD};
use crate::balance::ChunkDone;
use crate::runtime::Notice;
use crate::trace::Span;

/// A step in flight.
struct StepAhead {
    step: u32,
    job: usize,
}

impl RunState<'_, '_> {
    /// Computes steps on `device` from `first` (which must have been planned)
    /// on, until the balancer wants another layout, a stop is asked for, or
    /// all `steps` are done.
    pub fn solo(
        &mut self,
        device: usize,
        first: u32,
        steps: u32,
        control: &mut Control,
    ) -> Result<StepEnd, CorunError> {
        self.read_report();
        self.adopt_layout();
        let mut ahead: VecDeque<StepAhead> = VecDeque::new();
        let (mut next, mut done) = (first, first);
        let mut more = true;
        loop {
            while more && next < steps && ahead.len() as u32 <= self.balancer.lookahead() {
                self.plan(next)?;
                if self.sole_holder() != Some(device) {
                    more = false;
                    break;
                }
                self.context.runtime.notify(Notice::PhaseBegins(next));
                let job = self.solo_launches(device, next)?;
                ahead.push_back(StepAhead { step: next, job });
                next += 1;
            }
            let Some(current) = ahead.pop_front() else {
                break;
            };
            while !self.context.spoiled && self.context.jobs.all[current.job].outstanding > 0 {
                self.collect(None)?;
            }
            if !self.context.spoiled {
                self.note_solo(device, &current);
                done += 1;
                (control.progress)(done, steps);
                more &= !control.stop.load(Ordering::Relaxed);
                if done < steps {
                    self.context.lose_absent(done)?;
                    self.tell_losses();
                    // Only at a barrier nothing of its former generation is in flight.
                    more &= !self.context.is_someone_back();
                }
            }
            if self.context.spoiled {
                self.drain()?;
                return Ok(StepEnd::Spoiled(done - first));
            }
        }
        self.context.jobs.clear();
        Ok(StepEnd::Done(done - first))
    }

    /// Submits a step's launches, and turns to the next version; returns the job.
    fn solo_launches(&mut self, device: usize, step: u32) -> Result<usize, CorunError> {
        let units = self.context.layout.held[device].clone();
        let job = self.held_job(device, units);
        let purpose = Purpose {
            job: Some(job),
            ..Purpose::new(device, MAIN, step, HELD)
        };
        while self.form.launch(&mut self.context, purpose, true)? {}
        self.form.turn(&mut self.context, step)?;
        self.tell_losses();
        Ok(job)
    }

    /// Reports a step: from the end of the one before to its own.
    fn note_solo(&mut self, device: usize, current: &StepAhead) {
        let job = self.context.jobs.all[current.job].clone();
        let frame = Frame {
            step: current.step,
            began: self.barrier,
            ended: job.ended.max(self.barrier),
            moved: 0,
            devices: self.context.devices.len(),
        };
        // On one in-order queue the spans come in the order of the steps.
        let spans = &mut self.context.jobs.spans;
        let mine: Vec<Span> = spans
            .drain(..spans.partition_point(|s| s.step <= current.step))
            .collect();
        self.balancer.completed(&ChunkDone {
            step: current.step,
            device,
            units: length(&job.units),
            held: true,
            issued: job.issued,
            started: job.started,
            ended: job.ended,
        });
        let mut heard = vec![frame.began; frame.devices];
        heard[device] = frame.ended;
        let jobs = std::slice::from_ref(&job);
        let report = record::report(&frame, &heard, jobs, &mine);
        self.balancer.step_ended(&report);
        let own = [self.engine_seconds(), self.submit_seconds()];
        let record = record::record(&frame, &report, jobs, &mine, own);
        self.outcome.steps.push(record);
        self.outcome.trace.steps.push((frame.began, frame.ended));
        self.keep(&mine);
        self.barrier = frame.ended;
    }
}
