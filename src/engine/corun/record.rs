//! Figures of a step, from its spans and jobs. Pure.

use super::ledger::Job;
use crate::balance::{DeviceStep, StepReport};
use crate::engine::{DeviceRecord, StepRecord};
use crate::runtime::CommandKind;
use crate::time::Nanos;
use crate::trace::Span;
use crate::trace::intervals::{overlap, total, union};

const SECOND: f64 = 1e9;

/// A step's facts beside its spans and jobs.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    pub step: u32,
    pub began: Nanos,
    pub ended: Nanos,
    pub moved: u64,
    pub devices: usize,
}

type Intervals = Vec<(Nanos, Nanos)>;

fn of<'a>(spans: impl Iterator<Item = &'a Span>) -> Intervals {
    union(spans.map(|s| (s.started, s.ended)).collect())
}

/// The report for the balancer.
pub fn report(frame: &Frame, jobs: &[Job], spans: &[Span]) -> StepReport {
    let devices = (0..frame.devices)
        .map(|device| {
            let mine = || spans.iter().filter(move |s| s.device == device);
            let done = |held| {
                jobs.iter()
                    .filter(|j| j.device == device && j.held() == held && !j.failed)
                    .map(|j| j.units.end - j.units.start)
                    .sum()
            };
            let kernels = || mine().filter(|s| s.kind == CommandKind::Launch);
            DeviceStep {
                held: done(true),
                pooled: done(false),
                held_busy: total(&of(kernels().filter(|s| s.label == super::HELD))),
                pooled_busy: total(&of(mine().filter(|s| s.label == super::CHUNK))),
                waited: kernels()
                    .map(|s| s.started.saturating_sub(frame.began))
                    .min()
                    .unwrap_or(0),
                finished: mine()
                    .map(|s| s.ended.saturating_sub(frame.began))
                    .max()
                    .unwrap_or(0),
            }
        })
        .collect();
    StepReport {
        step: frame.step,
        duration: frame.ended - frame.began,
        moved: frame.moved,
        devices,
    }
}

/// The record for the outcome.
pub fn record(
    frame: &Frame,
    report: &StepReport,
    jobs: &[Job],
    spans: &[Span],
    engine_seconds: f64,
) -> StepRecord {
    let devices = (0..frame.devices)
        .map(|device| {
            let mine = || spans.iter().filter(move |s| s.device == device);
            let kind = |kind| mine().filter(move |s| s.kind == kind);
            let bytes = |k| kind(k).map(|s| s.bytes).sum();
            let kernels = of(kind(CommandKind::Launch));
            let copies = of(mine().filter(|s| s.kind != CommandKind::Launch));
            let step = &report.devices[device];
            DeviceRecord {
                units: step.held + step.pooled,
                held: step.held,
                busy_seconds: total(&of(mine())) as f64 / SECOND,
                finished_seconds: step.finished as f64 / SECOND,
                chunks: jobs
                    .iter()
                    .filter(|j| j.device == device && !j.failed)
                    .count() as u64,
                bytes_h2d: bytes(CommandKind::Write),
                bytes_d2h: bytes(CommandKind::Read),
                overlapped_seconds: total(&overlap(&kernels, &copies)) as f64 / SECOND,
                copy_seconds: total(&copies) as f64 / SECOND,
            }
        })
        .collect();
    StepRecord {
        step: frame.step,
        seconds: (frame.ended - frame.began) as f64 / SECOND,
        devices,
        moved: frame.moved,
        engine_seconds,
    }
}
