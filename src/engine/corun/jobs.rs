//! The jobs (pieces of work) of a step, their commands in flight, and the spans of
//! those that have completed.

use std::ops::Range;

use super::context::Purpose;
use crate::in_flight::{InFlight, Tag, span};
use crate::runtime::{CommandKind, Completion, EventId, Stages};
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

/// What was done in a step.
#[derive(Debug, Default)]
pub struct StepLog {
    pub jobs: Vec<Job>,
    pub spans: Vec<Span>,
}

/// The commands in flight, and what was done in this step and in the one before.
#[derive(Debug, Default)]
pub struct Jobs {
    /// With what each is for, and the units concerned.
    commands: InFlight<(Purpose, Range<u64>)>,
    pub all: Vec<Job>,
    pub spans: Vec<Span>,
    pub last: StepLog,
}

impl Jobs {
    /// Begins a new step, and keeps what was done in the one that has ended. No
    /// command may be in flight.
    pub fn next_step(&mut self) {
        std::mem::swap(&mut self.all, &mut self.last.jobs);
        std::mem::swap(&mut self.spans, &mut self.last.spans);
        self.clear();
    }

    /// Forgets what was done in this step. No command may be in flight.
    pub fn clear(&mut self) {
        self.all.clear();
        self.spans.clear();
    }

    /// Whether no command is in flight.
    pub fn is_empty(&self) -> bool {
        self.commands.is_empty()
    }

    /// A new job, without commands yet.
    pub fn job(
        &mut self,
        device: usize,
        lane: Option<usize>,
        units: Range<u64>,
        issued: Nanos,
    ) -> usize {
        self.all.push(Job {
            device,
            lane,
            units,
            outstanding: 0,
            issued,
            started: Nanos::MAX,
            ended: 0,
            failed: false,
        });
        self.all.len() - 1
    }

    /// A job gets more commands later: it is not over before it is closed.
    pub fn keep_open(&mut self, job: usize) {
        self.all[job].outstanding += 1;
    }

    /// A job gets no more commands; says whether it is over.
    pub fn close(&mut self, job: usize) -> bool {
        self.all[job].outstanding -= 1;
        self.all[job].outstanding == 0
    }

    /// Adds a submitted command.
    pub fn submitted(
        &mut self,
        event: EventId,
        purpose: Purpose,
        units: Range<u64>,
        waits: &[EventId],
    ) {
        if let Some(job) = purpose.job {
            self.all[job].outstanding += 1;
        }
        self.commands.insert(event, (purpose, units), waits);
    }

    /// Whether a command has not completed.
    pub fn is_pending(&self, event: EventId) -> bool {
        self.commands.is_pending(event)
    }

    /// Removes a completed command and adds its spans. Returns what it was for, and its
    /// job if that has no command left. `None` for a command that is not of this step.
    pub fn completed(
        &mut self,
        completion: &Completion,
        ok: bool,
    ) -> Option<(Purpose, Option<usize>)> {
        let ((purpose, units), ready) = self.commands.remove(completion)?;
        if ok {
            let tag = Tag {
                step: purpose.step,
                label: purpose.label.into(),
                codelet: None,
                units,
            };
            let place = (purpose.device, purpose.queue);
            let spans = stages(completion).map(|(kind, (started, ended), bytes)| Span {
                kind,
                started,
                ended,
                bytes,
                ..span(completion, place, tag.clone(), ready)
            });
            self.spans.extend(spans);
        }
        let finished = purpose.job.filter(|index| {
            let job = &mut self.all[*index];
            job.outstanding -= 1;
            job.failed |= !ok;
            if ok {
                job.started = job.started.min(completion.started);
                job.ended = job.ended.max(completion.ended);
            }
            job.outstanding == 0
        });
        Some((purpose, finished))
    }
}

/// What a command did, when, and how many bytes it moved: a series of transfers
/// and kernels one after the other.
fn stages(completion: &Completion) -> impl Iterator<Item = Stage> + use<> {
    let (started, ended) = (completion.started, completion.ended);
    let all = match completion.stages {
        None => {
            let single = (completion.kind, (started, ended), completion.bytes);
            [Some(single), None, None]
        }
        Some(Stages {
            written,
            kernels,
            read,
        }) => {
            let writes = (CommandKind::Write, (started, kernels.0), written);
            let reads = (CommandKind::Read, (kernels.1, ended), read);
            [
                Some(writes).filter(|_| written > 0),
                Some((CommandKind::Launch, kernels, 0)),
                Some(reads).filter(|_| read > 0),
            ]
        }
    };
    all.into_iter().flatten()
}

/// What was done, when, and bytes moved.
type Stage = (CommandKind, (Nanos, Nanos), u64);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::{DeviceId, QueueId, Status};

    fn completion(event: EventId, queued: Nanos, ended: Nanos) -> Completion {
        Completion {
            event,
            device: DeviceId(0),
            queue: QueueId::fresh(),
            kind: CommandKind::Launch,
            queued,
            submitted: queued,
            started: queued,
            ended,
            bytes: 0,
            stages: None,
            workers: None,
            status: Status::Done,
        }
    }

    fn purpose(device: usize, queue: usize, job: Option<usize>) -> Purpose {
        Purpose {
            job,
            ..Purpose::new(device, queue, 0, "test")
        }
    }

    #[test]
    fn a_command_is_ready_when_the_last_that_it_waits_for_has_ended() {
        let mut jobs = Jobs::default();
        let [done, slow, quick, last] = [(); 4].map(|()| EventId::fresh());
        jobs.submitted(done, purpose(0, 0, None), 0..1, &[]);
        jobs.completed(&completion(done, 1, 5), true);
        for event in [slow, quick] {
            jobs.submitted(event, purpose(0, 0, None), 0..1, &[done]);
        }
        jobs.submitted(last, purpose(1, 2, None), 0..1, &[done, slow, quick]);
        // Not in the order of submission.
        for (event, queued, ended) in [(quick, 10, 20), (slow, 10, 30), (last, 11, 40)] {
            assert!(!jobs.is_empty() && jobs.is_pending(event));
            jobs.completed(&completion(event, queued, ended), true);
        }
        assert!(jobs.is_empty() && !jobs.is_pending(last));
        let ready: Vec<Nanos> = jobs.spans.iter().map(|span| span.ready).collect();
        assert_eq!(ready, [1, 10, 10, 30]);
        let again = jobs.completed(&completion(last, 11, 40), true);
        assert!(again.is_none(), "it was removed before");
    }

    #[test]
    fn the_spans_of_a_series_are_its_stages() {
        use CommandKind::{Launch, Read, Write};
        let whole = |written, read| Completion {
            stages: Some(Stages {
                written,
                kernels: (14, 17),
                read,
            }),
            ..completion(EventId::fresh(), 10, 20)
        };
        let of = |written, read| {
            let (mut jobs, whole) = (Jobs::default(), whole(written, read));
            jobs.submitted(whole.event, purpose(0, 0, None), 0..1, &[]);
            jobs.completed(&whole, true);
            let stage = |span: &Span| (span.kind, (span.started, span.ended), span.bytes);
            jobs.spans.iter().map(stage).collect::<Vec<Stage>>()
        };
        let (write, read) = ((Write, (10, 14), 8), (Read, (17, 20), 4));
        let launch = (Launch, (14, 17), 0);
        assert_eq!(of(8, 4), [write, launch, read]);
        assert_eq!(of(0, 4), [launch, read]);
        assert_eq!(of(8, 0), [write, launch]);
    }

    #[test]
    fn a_job_is_over_with_its_last_command_and_fails_with_any() {
        let mut jobs = Jobs::default();
        let job = jobs.job(0, None, 0..4, 0);
        let events = [EventId::fresh(), EventId::fresh()];
        for event in events {
            jobs.submitted(event, purpose(0, 0, Some(job)), 0..1, &[]);
        }
        let device =
            |completed: Option<(Purpose, Option<usize>)>| completed.map(|(p, job)| (p.device, job));
        let first = device(jobs.completed(&completion(events[0], 1, 2), false));
        assert_eq!(first, Some((0, None)));
        let second = device(jobs.completed(&completion(events[1], 1, 3), true));
        assert_eq!(second, Some((0, Some(job))));
        assert!(jobs.all[job].failed);
        assert_eq!(jobs.spans.len(), 1);
    }
}
