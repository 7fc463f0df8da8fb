//! At a barrier everybody waits for the engine. So a step that has ended is only
//! marked there; its report is read, and its figures are booked, before the next
//! step is planned, or, where the balancer needs no report for that, once the
//! devices are at work again.

use super::drive::Drive;
use super::record::{self, Frame};
use crate::time::Nanos;

/// A step that has ended, and of which nothing has been told. Its jobs and spans
/// are the ledger's last page.
pub struct Ended {
    frame: Frame,
    /// When each device was last heard of.
    heard: Vec<Nanos>,
    /// Seconds of the engine itself and of enqueueing.
    own: [f64; 2],
}

impl Ended {
    /// How long the step took.
    pub fn took(&self) -> Nanos {
        self.frame.ended - self.frame.began
    }
}

impl Drive<'_> {
    /// Marks the end of a step.
    pub(super) fn end_step(&mut self, step: u32, moved: u64) {
        let frame = Frame {
            step,
            began: self.barrier,
            ended: self.runtime.now(),
            moved,
            devices: self.places.len(),
        };
        self.barrier = frame.ended;
        self.unread = Some(Ended {
            frame,
            heard: self.heard.clone(),
            own: [self.engine_time(), self.enqueue_time()],
        });
        self.ledger.turn_page();
        if self.spoiled {
            self.read_report();
        }
    }

    /// Tells the balancer of the step that has ended, if it was not told, and
    /// books it. It hears nothing of a step that is to be done again.
    pub(super) fn read_report(&mut self) {
        let Some(Ended { frame, heard, own }) = self.unread.take() else {
            return;
        };
        let page = &mut self.ledger.last;
        let report = record::report(&frame, &heard, &page.jobs, &page.spans);
        if !self.spoiled {
            self.balancer.step_ended(&report);
        }
        let record = record::record(&frame, &report, &page.jobs, &page.spans, own);
        self.outcome.steps.push(record);
        self.outcome.trace.steps.push((frame.began, frame.ended));
        if self.options.trace {
            // The page keeps its room: it is filled again.
            self.outcome.trace.spans.append(&mut page.spans);
        }
    }
}
