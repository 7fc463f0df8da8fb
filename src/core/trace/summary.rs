//! Reduces spans to the sums that reports show: a device's busy time, waits and
//! bytes moved.

use crate::runtime::CommandKind;
use crate::time::Nanos;

use super::intervals::{overlap, total, union};
use super::{Span, Trace};

/// Sums over the spans of one device, in nanoseconds and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceSummary {
    /// Time in which at least one command ran.
    pub busy: Nanos,
    /// Time in which at least one kernel ran.
    pub kernel: Nanos,
    /// Time in which at least one copy, either way, ran.
    pub copy: Nanos,
    /// Time in which a copy and a kernel ran at once.
    pub overlapped: Nanos,
    /// Time from ready to start, summed over all commands, simultaneous or not.
    pub waiting: Nanos,
    pub commands: u64,
    pub bytes_h2d: u64,
    pub bytes_d2h: u64,
}

/// A summary of each device, in the trace's order.
pub fn by_device(trace: &Trace) -> Vec<DeviceSummary> {
    let mut spans: Vec<Vec<&Span>> = vec![Vec::new(); trace.devices.len()];
    for span in &trace.spans {
        if let Some(own) = spans.get_mut(span.device) {
            own.push(span);
        }
    }
    spans.iter().map(|own| of_spans(own)).collect()
}

/// The time from the first command's start to the last one's end.
pub fn makespan(trace: &Trace) -> Nanos {
    let began = trace.spans.iter().map(|s| s.started).min();
    let ended = trace.spans.iter().map(|s| s.ended).max();
    match (began, ended) {
        (Some(began), Some(ended)) => ended.saturating_sub(began),
        _ => 0,
    }
}

fn of_spans(spans: &[&Span]) -> DeviceSummary {
    let running = |wanted: fn(CommandKind) -> bool| {
        let wanted = spans.iter().filter(|s| wanted(s.kind));
        union(wanted.map(|s| (s.started, s.ended)).collect())
    };
    let moved = |kind| {
        let moves = spans.iter().filter(|s| s.kind == kind);
        moves.map(|s| s.bytes).sum()
    };
    let kernels = running(|kind| kind == CommandKind::Launch);
    let copies = running(|kind| kind != CommandKind::Launch);
    DeviceSummary {
        busy: total(&running(|_| true)),
        kernel: total(&kernels),
        copy: total(&copies),
        overlapped: total(&overlap(&copies, &kernels)),
        waiting: (spans.iter().map(|s| s.started.saturating_sub(s.ready))).sum(),
        commands: spans.len() as u64,
        bytes_h2d: moved(CommandKind::Write),
        bytes_d2h: moved(CommandKind::Read),
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{span, two_devices};
    use super::*;

    #[test]
    fn a_gpu_that_copies_under_its_kernel() {
        let summary = by_device(&two_devices());
        assert_eq!(
            summary[1],
            DeviceSummary {
                busy: 900,
                kernel: 400,
                copy: 600,
                overlapped: 100,
                waiting: 30,
                commands: 3,
                bytes_h2d: 4096,
                bytes_d2h: 4096,
            }
        );
        assert_eq!(summary[0].copy, 0);
        assert_eq!(summary[0].busy, 800);
        assert_eq!(makespan(&two_devices()), 900);
    }

    #[test]
    fn commands_at_once_count_their_time_once() {
        let trace = Trace {
            devices: vec!["gpu".into()],
            spans: (0..4)
                .map(|q| span(0, q, CommandKind::Launch, 100, 200))
                .collect(),
            steps: vec![(100, 200)],
            flows: vec![],
        };
        let summary = by_device(&trace)[0];
        assert_eq!((summary.busy, summary.kernel), (100, 100));
        assert_eq!(summary.waiting, 40);
    }

    #[test]
    fn a_device_that_did_nothing_is_all_zero() {
        let trace = Trace {
            devices: vec!["idle".into()],
            ..Trace::default()
        };
        assert_eq!(by_device(&trace), vec![DeviceSummary::default()]);
        assert_eq!(makespan(&trace), 0);
    }
}
