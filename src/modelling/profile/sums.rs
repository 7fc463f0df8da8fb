//! Sums of a run's commands, as features of the group `trace`. Pure.
//!
//! Only commands of the steps count: filling the grids, warming up, moving the held
//! units to their device and gathering the result do not.

use crate::engine::Outcome;
use crate::engine::corun::GATHER;
use crate::runtime::CommandKind;
use crate::trace::Span;
use crate::trace::intervals::{Intervals, overlap, total, union};

/// The features of a run that was traced, by name, in seconds:
///
/// * `trace.launch_seconds`: what enqueueing took the driver thread;
/// * `trace.h2d_seconds`, `trace.kernel_seconds`, `trace.d2h_seconds`: of each
///   command from its start to its end;
/// * `trace.overlap_seconds`: in which both a copy and a kernel ran;
/// * `trace.wait_seconds`: of each command from the moment when all that it
///   waited for had ended to its start.
pub fn sums(outcome: &Outcome) -> Vec<(&'static str, f64)> {
    let Some((began, _)) = outcome.trace.steps.first() else {
        return Vec::new();
    };
    let spans: Vec<&Span> = (outcome.trace.spans.iter())
        .filter(|span| span.queued >= *began && span.label != GATHER)
        .collect();
    let of = |kinds: &[CommandKind]| -> Intervals {
        let mine = spans.iter().filter(|span| kinds.contains(&span.kind));
        mine.map(|span| (span.started, span.ended)).collect()
    };
    let length = |kind| -> u64 { of(&[kind]).iter().map(|(start, end)| end - start).sum() };
    let copies = union(of(&[CommandKind::Write, CommandKind::Read]));
    let kernels = union(of(&[CommandKind::Launch]));
    let waits: u64 = (spans.iter())
        .map(|span| span.started.saturating_sub(span.ready))
        .sum();
    let seconds = |nanos: u64| nanos as f64 / 1e9;
    let enqueueing = outcome.steps.iter().map(|step| step.enqueue_seconds);
    vec![
        ("trace.launch_seconds", enqueueing.sum()),
        ("trace.h2d_seconds", seconds(length(CommandKind::Write))),
        ("trace.kernel_seconds", seconds(length(CommandKind::Launch))),
        ("trace.d2h_seconds", seconds(length(CommandKind::Read))),
        (
            "trace.overlap_seconds",
            seconds(total(&overlap(&copies, &kernels))),
        ),
        ("trace.wait_seconds", seconds(waits)),
    ]
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use super::*;
    use crate::engine::StepRecord;
    use crate::engine::corun::{CHUNK, MOVE};
    use crate::spans::span;
    use crate::trace::Trace;

    /// A command of the first device, queued 20 ns before its start, ready 10 ns before it.
    fn labelled(queue: usize, kind: CommandKind, times: Range<u64>, label: &'static str) -> Span {
        Span {
            label: label.into(),
            ..span(0, queue, kind, times.start, times.end)
        }
    }

    #[test]
    fn what_lies_outside_the_steps_does_not_count() {
        use CommandKind::{Launch, Read, Write};
        let spans = vec![
            labelled(0, Write, 110..140, MOVE),
            labelled(0, Write, 200..260, CHUNK),
            labelled(0, Launch, 240..300, CHUNK),
            labelled(1, Launch, 250..310, CHUNK),
            labelled(1, Read, 290..330, CHUNK),
            labelled(0, Read, 400..500, GATHER),
        ];
        let step = StepRecord {
            enqueue_seconds: 5e-8,
            ..StepRecord::default()
        };
        let outcome = Outcome {
            steps: vec![step.clone(), step],
            trace: Trace {
                devices: vec!["gpu".into()],
                spans,
                steps: vec![(100, 200), (200, 350)],
                flows: vec![],
            },
            ..Outcome::default()
        };
        let nanos: Vec<(&str, f64)> = (sums(&outcome).into_iter())
            .map(|(name, seconds)| (name, (seconds * 1e9).round()))
            .collect();
        assert_eq!(
            nanos,
            [
                ("trace.launch_seconds", 100.0),
                ("trace.h2d_seconds", 60.0),
                ("trace.kernel_seconds", 120.0),
                ("trace.d2h_seconds", 40.0),
                // 240 to 260, and 290 to 310.
                ("trace.overlap_seconds", 40.0),
                ("trace.wait_seconds", 40.0),
            ]
        );
        assert_eq!(sums(&Outcome::default()), []);
    }
}
