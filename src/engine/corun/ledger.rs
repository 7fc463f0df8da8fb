//! What is in flight in a step: commands, and the jobs (pieces of work) that
//! they belong to.

use std::collections::HashMap;
use std::ops::Range;

use crate::runtime::{Completion, EventId};
use crate::time::Nanos;
use crate::trace::Span;

/// A piece of work: the held units of a device, or a chunk of the pool.
#[derive(Clone, Debug)]
pub struct Job {
    pub device: usize,
    /// The chunk's lane; `None` for held units.
    pub lane: Option<usize>,
    pub units: Range<u64>,
    /// Commands not yet completed.
    pub outstanding: u32,
    pub issued: Nanos,
    pub started: Nanos,
    pub ended: Nanos,
    pub failed: bool,
}

impl Job {
    /// Whether its units are held by its device.
    pub fn held(&self) -> bool {
        self.lane.is_none()
    }
}

#[derive(Debug)]
struct InFlight {
    device: usize,
    queue: usize,
    job: Option<usize>,
    waits: Vec<EventId>,
}

/// The books of a step.
#[derive(Debug, Default)]
pub struct Ledger {
    commands: HashMap<EventId, InFlight>,
    ends: HashMap<EventId, Nanos>,
    pub jobs: Vec<Job>,
    pub spans: Vec<Span>,
}

impl Ledger {
    /// Opens the books of a new step; nothing may be in flight.
    pub fn open(&mut self) {
        self.ends.clear();
        self.jobs.clear();
        self.spans.clear();
    }

    /// Whether no command is in flight.
    pub fn idle(&self) -> bool {
        self.commands.is_empty()
    }

    /// Notes a job without commands yet.
    pub fn job(
        &mut self,
        device: usize,
        lane: Option<usize>,
        units: Range<u64>,
        issued: Nanos,
    ) -> usize {
        self.jobs.push(Job {
            device,
            lane,
            units,
            outstanding: 0,
            issued,
            started: Nanos::MAX,
            ended: 0,
            failed: false,
        });
        self.jobs.len() - 1
    }

    /// A job gets more commands later: it is not over before it is closed.
    pub fn keep_open(&mut self, job: usize) {
        self.jobs[job].outstanding += 1;
    }

    /// A job gets no more commands; says whether it is over.
    pub fn close(&mut self, job: usize) -> bool {
        self.jobs[job].outstanding -= 1;
        self.jobs[job].outstanding == 0
    }

    /// Notes a submitted command.
    pub fn submitted(
        &mut self,
        event: EventId,
        device: usize,
        queue: usize,
        job: Option<usize>,
        waits: &[EventId],
    ) {
        if let Some(job) = job {
            self.jobs[job].outstanding += 1;
        }
        let waits = waits.to_vec();
        self.commands.insert(
            event,
            InFlight {
                device,
                queue,
                job,
                waits,
            },
        );
    }

    /// Notes a completion; returns its device, and its job if that has no
    /// command left. `None` for a command that is not of this step.
    pub fn completed(
        &mut self,
        completion: &Completion,
        ok: bool,
    ) -> Option<(usize, Option<usize>)> {
        let InFlight {
            device,
            queue,
            job,
            waits,
        } = self.commands.remove(&completion.event)?;
        let ready = waits
            .iter()
            .filter_map(|event| self.ends.get(event).copied())
            .fold(completion.queued, Nanos::max);
        self.ends.insert(completion.event, completion.ended);
        if ok {
            self.spans.push(Span {
                device,
                queue,
                kind: completion.kind,
                label: completion.tag.label,
                step: completion.tag.step,
                units: completion.tag.units.clone(),
                ready,
                queued: completion.queued,
                submitted: completion.submitted,
                started: completion.started,
                ended: completion.ended,
                bytes: completion.bytes,
            });
        }
        let finished = job.filter(|index| {
            let job = &mut self.jobs[*index];
            job.outstanding -= 1;
            job.failed |= !ok;
            if ok {
                job.started = job.started.min(completion.started);
                job.ended = job.ended.max(completion.ended);
            }
            job.outstanding == 0
        });
        Some((device, finished))
    }
}
