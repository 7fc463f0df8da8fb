//! The end of a step. At a barrier all devices wait for the engine, so a step
//! that has ended is only marked there. Its report is made before the next step is
//! planned or, where the balancer needs no report for that, once the devices are
//! at work again.

use super::record::{self, Frame};
use super::run::RunState;
use crate::time::Nanos;

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
    pub(super) fn end_step(&mut self, step: u32, moved: u64) {
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
        let report = record::report(&frame, &ended.heard, &log.jobs, &log.spans);
        if !ended.spoiled {
            self.balancer.step_ended(&report);
        }
        let record = record::record(&frame, &report, &log.jobs, &log.spans, ended.own);
        if ended.spoiled && record.devices.iter().all(|device| device.units == 0) {
            self.lost_seconds += record.seconds;
        } else {
            self.outcome.steps.push(record);
            self.outcome.trace.steps.push((frame.began, frame.ended));
        }
        self.keep(&log.spans);
        // It keeps its allocations for the steps to come.
        self.context.jobs.last = log;
    }
}
