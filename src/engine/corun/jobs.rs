//! The jobs (pieces of work) of a step, their commands in flight, and the spans of
//! those that have completed, with the figures that follow from these.

use std::collections::HashSet;
use std::ops::Range;

use super::context::Purpose;
use crate::balance::{DeviceStep, StepReport};
use crate::in_flight::{InFlight, Tag, span};
use crate::runtime::{CommandKind, Completion, EventId, Stages};
use crate::time::Nanos;
use crate::trace::Span;
use crate::trace::intervals::{Intervals, overlap, total, union};
use crate::{DeviceRecord, StepRecord};

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

const SECOND: f64 = 1e9;

/// A step's facts beside its spans and jobs.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    pub step: u32,
    /// Steps of the workload in it.
    pub steps: u32,
    pub began: Nanos,
    pub ended: Nanos,
    pub moved: u64,
    pub devices: usize,
}

/// The report for the balancer. `heard` is when each device was last heard of.
pub fn report(frame: &Frame, heard: &[Nanos], jobs: &[Job], spans: &[Span]) -> StepReport {
    let known = |heard: &Nanos| heard.saturating_sub(frame.began);
    let mut devices: Vec<DeviceStep> = (heard.iter())
        .map(|heard| DeviceStep {
            known: known(heard),
            ..DeviceStep::default()
        })
        .collect();
    for job in jobs.iter().filter(|job| !job.failed) {
        let device = &mut devices[job.device];
        let units = job.units.end - job.units.start;
        if job.held() {
            device.held += units;
        } else {
            device.pooled += units;
        }
    }
    let mut streams = vec![Intervals::new(); frame.devices];
    let mut held: Vec<Option<(Nanos, Nanos)>> = vec![None; frame.devices];
    let mut first: Vec<Option<Nanos>> = vec![None; frame.devices];
    for span in spans {
        let device = &mut devices[span.device];
        device.finished = device.finished.max(span.ended.saturating_sub(frame.began));
        if span.label == super::CHUNK {
            add(&mut streams[span.device], span, spans.len());
        }
        if span.kind == CommandKind::Launch {
            let first = &mut first[span.device];
            *first = Some(first.map_or(span.started, |first| first.min(span.started)));
            if span.label == super::HELD {
                let (from, until) = held[span.device].unwrap_or((span.started, span.ended));
                held[span.device] = Some((from.min(span.started), until.max(span.ended)));
            }
        }
    }
    // A chunk has a launch for each step of a superstep.
    let mut chunks = HashSet::new();
    for span in spans {
        let is_chunk = span.kind == CommandKind::Launch && span.label == super::CHUNK;
        let within = held[span.device]
            .is_some_and(|(from, until)| from <= span.started && span.ended <= until);
        if is_chunk && within {
            let device = &mut devices[span.device];
            if chunks.insert(span.units.start) {
                device.beside += span.units.end - span.units.start;
            }
            device.beside_launches += 1;
        }
    }
    let all = devices.iter_mut().zip(streams).zip(held).zip(first);
    for (((device, streams), held), first) in all {
        device.held_busy = held.map_or(0, |(from, until)| until - from);
        device.pooled_busy = total(&union(streams));
        device.waited = first.map_or(0, |first| first.saturating_sub(frame.began));
    }
    StepReport {
        step: frame.step,
        duration: frame.ended - frame.began,
        moved: frame.moved,
        devices,
    }
}

/// Adds a span's time to intervals of at most `room` spans. Most devices have none of
/// a kind, so memory is allocated with the first.
fn add(intervals: &mut Intervals, span: &Span, room: usize) {
    if intervals.is_empty() {
        intervals.reserve_exact(room);
    }
    intervals.push((span.started, span.ended));
}

/// The record for the outcome; the last argument is the seconds of the engine
/// itself and of submitting.
pub fn record(
    frame: &Frame,
    report: &StepReport,
    jobs: &[Job],
    spans: &[Span],
    [engine_seconds, enqueue_seconds]: [f64; 2],
) -> StepRecord {
    let mut devices: Vec<DeviceRecord> = report
        .devices
        .iter()
        .map(|step| DeviceRecord {
            units: step.held + step.pooled,
            held: step.held,
            finished_seconds: step.finished as f64 / SECOND,
            ..DeviceRecord::default()
        })
        .collect();
    for job in jobs.iter().filter(|job| !job.failed) {
        devices[job.device].chunks += 1;
    }
    let mut busy = vec![(Intervals::new(), Intervals::new()); frame.devices];
    for span in spans {
        let device = &mut devices[span.device];
        let (kernels, copies) = &mut busy[span.device];
        if let Some(workers) = span.workers {
            device.worker_mean_seconds += workers.mean as f64 / SECOND;
            device.worker_most_seconds += workers.most as f64 / SECOND;
        }
        let intervals = match span.kind {
            CommandKind::Launch => kernels,
            CommandKind::Write => {
                device.bytes_h2d += span.bytes;
                copies
            }
            CommandKind::Read => {
                device.bytes_d2h += span.bytes;
                copies
            }
            CommandKind::Copy => copies,
        };
        add(intervals, span, spans.len());
    }
    for (device, (kernels, copies)) in devices.iter_mut().zip(busy) {
        let (kernels, copies) = (union(kernels), union(copies));
        let (copied, both) = (total(&copies), total(&overlap(&kernels, &copies)));
        device.busy_seconds = (total(&kernels) + copied - both) as f64 / SECOND;
        device.copy_seconds = copied as f64 / SECOND;
        device.overlapped_seconds = both as f64 / SECOND;
    }
    StepRecord {
        step: frame.step,
        steps: frame.steps,
        seconds: (frame.ended - frame.began) as f64 / SECOND,
        devices,
        moved: frame.moved,
        engine_seconds,
        enqueue_seconds,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corun::{CHUNK, EDGE, HELD};
    use crate::runtime::{DeviceId, QueueId, Status, Workers};

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

    fn span(device: usize, kind: CommandKind, label: &'static str, at: (Nanos, Nanos)) -> Span {
        Span {
            device,
            queue: 0,
            kind,
            label: label.into(),
            codelet: None,
            step: 7,
            units: 0..1,
            ready: 0,
            queued: 0,
            submitted: 0,
            started: at.0,
            ended: at.1,
            bytes: if kind == CommandKind::Launch { 0 } else { 10 },
            workers: (device == 1).then_some(Workers { mean: 60, most: 80 }),
        }
    }

    fn job(device: usize, lane: Option<usize>, units: u64, failed: bool) -> Job {
        Job {
            device,
            lane,
            units: 0..units,
            outstanding: 0,
            issued: 0,
            started: 0,
            ended: 0,
            failed,
        }
    }

    #[test]
    fn figures_of_a_step_are_those_of_its_spans_and_jobs() {
        use CommandKind::{Launch, Read, Write};
        let frame = Frame {
            step: 7,
            steps: 1,
            began: 100,
            ended: 200,
            moved: 3,
            devices: 3,
        };
        let jobs = [
            job(0, None, 50, false),
            job(0, Some(1), 8, false),
            job(0, Some(1), 9, true),
            job(1, Some(0), 20, false),
        ];
        let spans = [
            span(0, Launch, HELD, (110, 140)),
            span(0, Launch, HELD, (130, 150)),
            span(0, Write, CHUNK, (120, 135)),
            span(0, Launch, CHUNK, (140, 150)),
            span(0, Launch, CHUNK, (155, 160)),
            span(0, Read, CHUNK, (160, 170)),
            span(0, Read, EDGE, (150, 153)),
            span(1, Launch, CHUNK, (105, 190)),
        ];
        let report = report(&frame, &[175, 198, 40], &jobs, &spans);
        assert_eq!((report.duration, report.moved), (100, 3));
        let expected = DeviceStep {
            held: 50,
            pooled: 8,
            held_busy: 40,
            beside: 1,
            beside_launches: 1,
            pooled_busy: 40,
            waited: 10,
            finished: 70,
            known: 75,
        };
        assert_eq!(report.devices[0], expected);
        assert_eq!(report.devices[2], DeviceStep::default());

        let record = record(&frame, &report, &jobs, &spans, [0.5, 0.25]);
        let expected = DeviceRecord {
            units: 58,
            held: 50,
            busy_seconds: 58e-9,
            finished_seconds: 70e-9,
            chunks: 2,
            bytes_h2d: 10,
            bytes_d2h: 20,
            overlapped_seconds: 15e-9,
            copy_seconds: 28e-9,
            ..DeviceRecord::default()
        };
        assert_eq!(record.devices[0], expected);
        assert_eq!((record.devices[1].chunks, record.devices[1].units), (1, 20));
        let workers = |d: usize| {
            let device = &record.devices[d];
            (device.worker_mean_seconds, device.worker_most_seconds)
        };
        assert_eq!((workers(0), workers(1)), ((0.0, 0.0), (60e-9, 80e-9)));
        assert_eq!((record.engine_seconds, record.seconds), (0.5, 100e-9));
        assert_eq!(record.enqueue_seconds, 0.25);
    }
}
