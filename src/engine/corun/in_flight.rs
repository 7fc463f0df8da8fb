//! The commands in flight in a step, the jobs (pieces of work) that they belong
//! to, and the spans of those that have completed.

use std::collections::VecDeque;
use std::ops::Range;

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

#[derive(Debug)]
struct Submitted {
    event: EventId,
    device: usize,
    queue: usize,
    job: Option<usize>,
    /// The latest end of what it waited for and was in flight with it. What
    /// had ended before cannot have kept it.
    ready: Nanos,
    /// Commands that wait for it.
    followers: Vec<EventId>,
}

/// What was done in a step.
#[derive(Debug, Default)]
pub struct StepLog {
    pub jobs: Vec<Job>,
    pub spans: Vec<Span>,
}

/// The commands in flight, and what was done in this step and in the one before.
#[derive(Debug, Default)]
pub struct InFlight {
    /// In the order of their events, which is that of submission: few at a
    /// time, and mostly taken from the front.
    commands: VecDeque<Submitted>,
    pub jobs: Vec<Job>,
    pub spans: Vec<Span>,
    pub last: StepLog,
}

impl InFlight {
    /// Begins a new step, and keeps what was done in the one that has ended. No
    /// command may be in flight.
    pub fn next_step(&mut self) {
        std::mem::swap(&mut self.jobs, &mut self.last.jobs);
        std::mem::swap(&mut self.spans, &mut self.last.spans);
        self.clear();
    }

    /// Forgets what was done in this step. No command may be in flight.
    pub fn clear(&mut self) {
        self.jobs.clear();
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

    /// Adds a submitted command.
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
        for awaited in waits {
            if let Ok(index) = self.find(*awaited) {
                self.commands[index].followers.push(event);
            }
        }
        let command = Submitted {
            event,
            device,
            queue,
            job,
            ready: 0,
            followers: Vec::new(),
        };
        let (Ok(index) | Err(index)) = self.find(event);
        self.commands.insert(index, command);
    }

    /// Whether a command has not completed.
    pub fn is_pending(&self, event: EventId) -> bool {
        self.find(event).is_ok()
    }

    /// A command's index, or where it would be inserted.
    fn find(&self, event: EventId) -> Result<usize, usize> {
        match self.commands.back() {
            Some(last) if last.event < event => Err(self.commands.len()),
            _ => self.commands.binary_search_by_key(&event, |c| c.event),
        }
    }

    /// Removes a completed command and adds its spans; returns its device, and its job if that has no
    /// command left. `None` for a command that is not of this step.
    pub fn completed(
        &mut self,
        completion: &Completion,
        ok: bool,
    ) -> Option<(usize, Option<usize>)> {
        let Submitted {
            device,
            queue,
            job,
            ready,
            followers,
            ..
        } = self.commands.remove(self.find(completion.event).ok()?)?;
        for follower in followers {
            if let Ok(index) = self.find(follower) {
                let ready = &mut self.commands[index].ready;
                *ready = completion.ended.max(*ready);
            }
        }
        if ok {
            let spans = stages(completion).map(|(kind, (started, ended), bytes)| Span {
                device,
                queue,
                kind,
                label: completion.tag.label.clone(),
                step: completion.tag.step,
                units: completion.tag.units.clone(),
                ready: ready.max(completion.queued),
                queued: completion.queued,
                submitted: completion.submitted,
                started,
                ended,
                bytes,
                workers: completion.workers,
            });
            self.spans.extend(spans);
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
    use crate::runtime::{DeviceId, QueueId, Status, Tag};

    fn completion(event: EventId, queued: Nanos, ended: Nanos) -> Completion {
        Completion {
            event,
            device: DeviceId(0),
            queue: QueueId::fresh(),
            kind: CommandKind::Launch,
            tag: Tag {
                step: 0,
                label: "test".into(),
                units: 0..1,
            },
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

    #[test]
    fn a_command_is_ready_when_the_last_that_it_waits_for_has_ended() {
        let mut in_flight = InFlight::default();
        let [done, slow, quick, last] = [(); 4].map(|()| EventId::fresh());
        in_flight.submitted(done, 0, 0, None, &[]);
        in_flight.completed(&completion(done, 1, 5), true);
        for event in [slow, quick] {
            in_flight.submitted(event, 0, 0, None, &[done]);
        }
        in_flight.submitted(last, 1, 2, None, &[done, slow, quick]);
        // Not in the order of submission.
        for (event, queued, ended) in [(quick, 10, 20), (slow, 10, 30), (last, 11, 40)] {
            assert!(!in_flight.is_empty() && in_flight.is_pending(event));
            in_flight.completed(&completion(event, queued, ended), true);
        }
        assert!(in_flight.is_empty() && !in_flight.is_pending(last));
        let ready: Vec<Nanos> = in_flight.spans.iter().map(|span| span.ready).collect();
        assert_eq!(ready, [1, 10, 10, 30]);
        let again = in_flight.completed(&completion(last, 11, 40), true);
        assert_eq!(again, None, "it was removed before");
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
            let (mut in_flight, whole) = (InFlight::default(), whole(written, read));
            in_flight.submitted(whole.event, 0, 0, None, &[]);
            in_flight.completed(&whole, true);
            let stage = |span: &Span| (span.kind, (span.started, span.ended), span.bytes);
            in_flight.spans.iter().map(stage).collect::<Vec<Stage>>()
        };
        let (write, read) = ((Write, (10, 14), 8), (Read, (17, 20), 4));
        let launch = (Launch, (14, 17), 0);
        assert_eq!(of(8, 4), [write, launch, read]);
        assert_eq!(of(0, 4), [launch, read]);
        assert_eq!(of(8, 0), [write, launch]);
    }

    #[test]
    fn a_job_is_over_with_its_last_command_and_fails_with_any() {
        let mut in_flight = InFlight::default();
        let job = in_flight.job(0, None, 0..4, 0);
        let events = [EventId::fresh(), EventId::fresh()];
        for event in events {
            in_flight.submitted(event, 0, 0, Some(job), &[]);
        }
        let first = in_flight.completed(&completion(events[0], 1, 2), false);
        assert_eq!(first, Some((0, None)));
        let second = in_flight.completed(&completion(events[1], 1, 3), true);
        assert_eq!(second, Some((0, Some(job))));
        assert!(in_flight.jobs[job].failed);
        assert_eq!(in_flight.spans.len(), 1);
    }
}
