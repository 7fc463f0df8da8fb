//! Figures of a step, from its spans and jobs. Pure.

use std::collections::HashSet;

use super::jobs::Job;
use crate::balance::{DeviceStep, StepReport};
use crate::runtime::CommandKind;
use crate::time::Nanos;
use crate::trace::Span;
use crate::trace::intervals::{Intervals, overlap, total, union};
use crate::{DeviceRecord, StepRecord};

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
    use crate::runtime::Workers;

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
