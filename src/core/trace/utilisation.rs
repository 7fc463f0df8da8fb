//! How busy each device is over time.

use std::ops::Range;

use super::Trace;
use super::intervals::{Intervals, union};
use crate::runtime::CommandKind;
use crate::time::Nanos;

/// Fractions of a period, 0 to 1, whose sum is at most 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Busy {
    /// In which at least one kernel ran.
    pub kernels: f64,
    /// In which copies ran and no kernel.
    pub copies: f64,
}

impl Busy {
    /// The fraction in which any command ran.
    pub fn any(&self) -> f64 {
        self.kernels + self.copies
    }
}

/// How busy each device was in each of so many buckets of equal length of a time, by
/// device, then by bucket. Commands outside of that time do not count.
pub fn by_device(trace: &Trace, time: &Range<Nanos>, buckets: usize) -> Vec<Vec<Busy>> {
    let mut kernels = vec![Intervals::new(); trace.devices.len()];
    let mut all = kernels.clone();
    for span in &trace.spans {
        let within = (
            span.started.clamp(time.start, time.end),
            span.ended.clamp(time.start, time.end),
        );
        let Some(all) = all.get_mut(span.device) else {
            continue;
        };
        all.push(within);
        if span.kind == CommandKind::Launch {
            kernels[span.device].push(within);
        }
    }
    let devices = kernels.into_iter().zip(all);
    devices
        .map(|(kernels, all)| {
            let kernels = filled(union(kernels), time, buckets);
            let all = filled(union(all), time, buckets);
            let both = kernels.into_iter().zip(all);
            both.map(|(kernels, all)| Busy {
                kernels,
                copies: (all - kernels).max(0.0),
            })
            .collect()
        })
        .collect()
}

/// The fraction of each bucket that is in a union of intervals.
fn filled(intervals: Intervals, time: &Range<Nanos>, buckets: usize) -> Vec<f64> {
    let length = time.end.saturating_sub(time.start) as f64 / buckets.max(1) as f64;
    let mut filled = vec![0.0; buckets];
    for (started, ended) in intervals {
        let place = |at: Nanos| (at - time.start) as f64 / length;
        let (from, until) = (place(started), place(ended));
        let first = (from as usize).min(buckets.saturating_sub(1));
        for (bucket, filled) in filled.iter_mut().enumerate().skip(first) {
            let (low, high) = (bucket as f64, (bucket + 1) as f64);
            if low >= until {
                break;
            }
            *filled += (until.min(high) - from.max(low)).max(0.0);
        }
    }
    filled.iter().map(|part| part.min(1.0)).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::fixtures::{span, two_devices};
    use super::super::summary;
    use super::*;

    #[test]
    fn kernels_and_copies_of_each_bucket_are_counted() {
        // The GPU writes 100..300, computes 300..700 and reads 600..1000.
        let busy = by_device(&two_devices(), &(100..1000), 3);
        let near = |busy: Busy, kernels: f64, copies: f64| {
            assert!((busy.kernels - kernels).abs() < 1e-9, "{busy:?}");
            assert!((busy.copies - copies).abs() < 1e-9, "{busy:?}");
        };
        near(busy[0][0], 1.0, 0.0);
        near(busy[0][2], 2.0 / 3.0, 0.0);
        near(busy[1][0], 1.0 / 3.0, 2.0 / 3.0);
        near(busy[1][1], 1.0, 0.0);
        near(busy[1][2], 0.0, 1.0);
    }

    #[test]
    fn commands_outside_of_the_time_do_not_count() {
        let busy = by_device(&two_devices(), &(0..50), 2);
        assert!(busy.iter().flatten().all(|busy| *busy == Busy::default()));
        let busy = by_device(&two_devices(), &(900..2000), 1);
        assert_eq!(busy[0][0], Busy::default());
        assert!((busy[1][0].copies - 100.0 / 1100.0).abs() < 1e-9);
    }

    #[test]
    fn a_device_without_commands_or_time_is_idle() {
        let trace = Trace {
            devices: vec!["idle".into()],
            ..Trace::default()
        };
        assert_eq!(by_device(&trace, &(0..10), 2), [[Busy::default(); 2]]);
        assert_eq!(by_device(&two_devices(), &(5..5), 1)[1][0].any(), 0.0);
        assert!(by_device(&trace, &(0..10), 0)[0].is_empty());
    }

    proptest! {
        #[test]
        fn buckets_add_up_to_the_busy_time(
            raw in proptest::collection::vec((0usize..3, 0u64..900, 0u64..200, any::<bool>()), 0..40),
            buckets in 1usize..50,
        ) {
            let trace = Trace {
                devices: (0..3).map(|d| format!("d{d}")).collect(),
                spans: raw.iter().map(|(device, started, length, kernel)| {
                    let kind = if *kernel { CommandKind::Launch } else { CommandKind::Read };
                    span(*device, 0, kind, *started, started + length)
                }).collect(),
                steps: vec![],
                flows: vec![],
            };
            let sums = summary::by_device(&trace);
            for (busy, sums) in by_device(&trace, &(0..1200), buckets).iter().zip(sums) {
                let length = 1200.0 / buckets as f64;
                let any: f64 = busy.iter().map(|b| b.any() * length).sum();
                let kernels: f64 = busy.iter().map(|b| b.kernels * length).sum();
                prop_assert!((any - sums.busy as f64).abs() < 1e-6);
                prop_assert!((kernels - sums.kernel as f64).abs() < 1e-6);
                prop_assert!(busy.iter().all(|b| b.any() <= 1.0 + 1e-9));
            }
        }
    }
}
