//! What is recorded of a run: the processor's and the kernel's counters over all threads
//! of this process, a GPU's sensors, and sums over the run's commands.
//!
//! All of it is from the begin of the first step to the last barrier; starting and
//! stopping the instruments is not timed. Filling the grids, warming up, moving the held
//! units to their device and gathering the result do not count.

use std::collections::BTreeMap;
use std::sync::Arc;

use pdawl_profiler::counters::{Counters, Reading, Source, threads_of_this_process};
use pdawl_profiler::telemetry::{INTERVAL, Sampler, Sensor};

use super::configuration::DeviceUse;
use super::machine::ProfiledMachine;
use crate::engine::Outcome;
use crate::engine::corun::GATHER;
use crate::runtime::CommandKind;
use crate::trace::Span;
use crate::trace::intervals::{Intervals, overlap, total, union};

/// The instruments of one run; none over a simulated one.
pub struct RunInstruments {
    real: bool,
    counters: Option<Counters>,
    sensor: Option<Arc<dyn Sensor>>,
    sampler: Option<Sampler>,
    reading: Reading,
    sensors: BTreeMap<String, f64>,
    notes: Vec<String>,
}

impl RunInstruments {
    /// Instruments for a run on this machine.
    pub fn over(profiled: &mut ProfiledMachine, device_use: &DeviceUse) -> Self {
        Self {
            real: !profiled.is_simulated(),
            counters: None,
            sensor: profiled.sensor(device_use),
            sampler: None,
            reading: Reading::default(),
            sensors: BTreeMap::new(),
            notes: Vec::new(),
        }
    }

    /// Opens the counters; all working threads must exist by now.
    pub fn open(&mut self) {
        if self.real {
            let counters = Counters::open(&threads_of_this_process());
            self.notes.extend_from_slice(counters.notes());
            self.counters = Some(counters);
        }
    }

    /// The first step begins.
    pub fn begin(&mut self) {
        if let Some(sensor) = self.sensor.take() {
            match Sampler::start(sensor, INTERVAL) {
                Ok(sampler) => self.sampler = Some(sampler),
                Err(absent) => (self.notes).push(format!("{absent}; {}", absent.remedy())),
            }
        }
        if let Some(counters) = &mut self.counters {
            counters.start();
        }
    }

    /// The last barrier is reached; a second call does nothing.
    pub fn end(&mut self) {
        if let Some(mut counters) = self.counters.take() {
            self.reading = counters.stop();
        }
        if let Some(sampler) = self.sampler.take() {
            self.sensors = sampler.stop();
        }
    }

    /// The source of the counters, the readings, and notes for the user.
    pub fn close(self) -> (Source, BTreeMap<String, f64>, Vec<String>) {
        let mut seen = self.reading.values;
        seen.extend(self.sensors);
        (self.reading.source, seen, self.notes)
    }
}

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
    use super::*;
    use crate::engine::StepRecord;
    use crate::engine::corun::{CHUNK, MOVE};
    use crate::runtime::select::{Selection, open_union};
    use crate::spans::span;
    use crate::trace::Trace;

    #[test]
    fn every_worker_of_a_pool_is_counted() {
        let mut watch = RunInstruments {
            real: true,
            counters: None,
            sensor: None,
            sampler: None,
            reading: Reading::default(),
            sensors: BTreeMap::new(),
            notes: Vec::new(),
        };
        let selection: Selection = "host:2".parse().unwrap();
        let _union = open_union(Some(&selection), true).unwrap();
        watch.open();
        watch.begin();
        let counters = watch.counters.as_ref().unwrap();
        let threads = counters.threads();
        watch.end();
        let (source, seen, notes) = watch.close();
        match source {
            Source::None => assert_eq!((threads, seen.len()), (0, 0), "{notes:?}"),
            // The two workers and this thread.
            _ => assert!(threads >= 3, "{threads}: {notes:?}"),
        }
    }

    #[test]
    fn what_lies_outside_the_steps_does_not_count() {
        use CommandKind::{Launch, Read, Write};
        let labelled = |mut span: Span, label: &'static str| {
            span.label = label.into();
            span
        };
        // Queued 20 ns before its start, ready 10 ns before it.
        let spans = vec![
            labelled(span(0, 0, Write, 110, 140), MOVE),
            labelled(span(0, 0, Write, 200, 260), CHUNK),
            labelled(span(0, 0, Launch, 240, 300), CHUNK),
            labelled(span(0, 1, Launch, 250, 310), CHUNK),
            labelled(span(0, 1, Read, 290, 330), CHUNK),
            labelled(span(0, 0, Read, 400, 500), GATHER),
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
