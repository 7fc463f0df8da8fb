//! Launches told of as one: jobs like any others, of which only the last
//! completes, with what became of all.

use super::Sim;
use crate::runtime::{Command, Completion, EventId, Launch, QueueId, RuntimeError, Status, Tag};

/// What a launch is of a series.
#[derive(Clone, Copy)]
pub(super) struct Member {
    series: u64,
    is_last: bool,
}

impl Sim {
    /// Enqueues launches one after the other; the event is the last one's.
    pub(super) fn submit_series(
        &mut self,
        queue: QueueId,
        launches: Vec<Launch>,
        wait: &[EventId],
        tag: &Tag,
    ) -> Result<EventId, RuntimeError> {
        let series = self.events.len() as u64;
        let count = launches.len();
        let mut last = Err(RuntimeError::Unknown { what: "launch" });
        for (i, launch) in launches.into_iter().enumerate() {
            let member = Member {
                series,
                is_last: i + 1 == count,
            };
            let wait = if i == 0 { wait } else { &[] };
            let command = Command::Launch(launch);
            last = Ok(self.enqueue(queue, command, wait, tag.clone(), Some(member))?);
        }
        last
    }

    /// What is told when a command has ended: nothing of a member of a series but
    /// the last, and of that what became of all.
    pub(super) fn told(&mut self, member: Option<Member>, ended: Completion) -> Option<Completion> {
        let Some(Member { series, is_last }) = member else {
            return Some(ended);
        };
        let whole = match self.series.remove(&series) {
            None => ended,
            Some(before) => Completion {
                queued: before.queued,
                submitted: before.submitted,
                started: before.started,
                status: match before.status {
                    Status::Done => ended.status,
                    failed => failed,
                },
                ..ended
            },
        };
        if is_last {
            return Some(whole);
        }
        self.series.insert(series, whole);
        None
    }
}
