//! A lone device that holds every unit: its in-order queue is barrier enough,
//! and it is kept filled some steps ahead, so that enqueueing and waiting do
//! not stand between the steps.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;

use super::drive::Drive;
use super::launches::Series;
use super::step::StepEnd;
use super::{Control, CorunError, HELD};
use crate::balance::{ChunkDone, DeviceStep, StepReport};
use crate::engine::{DeviceRecord, StepRecord};
use crate::trace::Span;
use crate::trace::intervals::{total, union};

/// A step in flight.
struct Ahead {
    step: u32,
    job: usize,
}

impl Drive<'_> {
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
        self.take_up();
        let mut ahead: VecDeque<Ahead> = VecDeque::new();
        let (mut next, mut done) = (first, first);
        let mut more = true;
        loop {
            while more && next < steps && ahead.len() as u32 <= self.balancer.lookahead() {
                self.plan(next)?;
                if self.sole_holder() != Some(device) {
                    more = false;
                    break;
                }
                let job = self.solo_launches(device, next)?;
                ahead.push_back(Ahead { step: next, job });
                next += 1;
            }
            let Some(current) = ahead.pop_front() else {
                break;
            };
            while !self.spoiled && self.ledger.jobs[current.job].outstanding > 0 {
                self.collect(None)?;
            }
            if self.spoiled {
                self.drain()?;
                return Ok(StepEnd::Spoiled);
            }
            self.note_solo(device, &current);
            done += 1;
            (control.progress)(done, steps);
            more &= !control.stop.load(Ordering::Relaxed);
        }
        self.ledger.open();
        Ok(StepEnd::Done(done - first))
    }

    /// Enqueues a step's launches and turns the ring; returns the job.
    fn solo_launches(&mut self, device: usize, step: u32) -> Result<usize, CorunError> {
        let now = self.runtime.now();
        let units = self.layout.held[device].clone();
        let job = self.ledger.job(device, None, units, now);
        let Some(grid) = self.as_grid() else {
            self.launch_store(device, step, job)?;
            return Ok(job);
        };
        let Some((own, whose)) = self.own(device, step, HELD) else {
            return Ok(job);
        };
        let series = Series::of(grid, whose, &own.held);
        own.held.advance();
        self.present = 1 - self.present;
        self.launch_all(series, job)?;
        Ok(job)
    }

    /// Books a step: from the end of the one before to its own.
    fn note_solo(&mut self, device: usize, current: &Ahead) {
        let job = self.ledger.jobs[current.job].clone();
        let units = job.units.end - job.units.start;
        let (began, ended) = (self.barrier, job.ended.max(self.barrier));
        // One in-order queue: the spans come in the order of the steps.
        let spans = &mut self.ledger.spans;
        let mine: Vec<Span> = spans
            .drain(..spans.partition_point(|s| s.step <= current.step))
            .collect();
        let busy = total(&union(mine.iter().map(|s| (s.started, s.ended)).collect()));
        self.balancer.completed(&ChunkDone {
            step: current.step,
            device,
            units,
            held: true,
            issued: job.issued,
            started: job.started,
            ended: job.ended,
        });
        let mut devices = vec![DeviceStep::default(); self.places.len()];
        devices[device] = DeviceStep {
            held: units,
            held_busy: job.ended.saturating_sub(job.started),
            waited: job.started.saturating_sub(began),
            finished: ended - began,
            known: ended - began,
            ..DeviceStep::default()
        };
        self.balancer.step_ended(&StepReport {
            step: current.step,
            duration: ended - began,
            moved: 0,
            devices,
        });
        let mut records = vec![DeviceRecord::default(); self.places.len()];
        records[device] = DeviceRecord {
            units,
            held: units,
            busy_seconds: busy as f64 / 1e9,
            finished_seconds: (ended - began) as f64 / 1e9,
            chunks: 1,
            ..DeviceRecord::default()
        };
        let (engine_seconds, enqueue_seconds) = (self.engine_time(), self.enqueue_time());
        self.outcome.steps.push(StepRecord {
            step: current.step,
            seconds: (ended - began) as f64 / 1e9,
            devices: records,
            moved: 0,
            engine_seconds,
            enqueue_seconds,
        });
        self.outcome.trace.steps.push((began, ended));
        self.keep(mine);
        self.barrier = ended;
    }
}
