//! One run: what is known of it beforehand, and its measurement, which gives a row
//! of a dataset.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use pdawl_profiler::Sample;
use pdawl_profiler::counters::{Counters, Reading, Source, threads_of_this_process};
use pdawl_profiler::dataset::Key;
use pdawl_profiler::telemetry::{INTERVAL, Sampler, Sensor};

use super::configuration::DeviceUse;
use super::error::ProfileError;
use super::machine::ProfiledMachine;
use crate::balance::{Planned, Setup, StepPlan};
use crate::engine::Outcome;
use crate::engine::corun::{Control, Corun, GATHER, Options, Tracing};
use crate::model::{Case, Descriptors, DevicePart, StepWork, prior, record};
use crate::runtime::CommandKind;
use crate::trace::Span;
use crate::trace::intervals::{Intervals, overlap, total, union};
use crate::workload::{Divisible, Supersteps};

/// Steps of a simulated run: its noise is drawn anew for every command.
const SIMULATED_STEPS: u32 = 10;

/// The least and the greatest number of steps of a run on a real device.
const FEWEST_STEPS: u32 = 3;
const MOST_STEPS: u32 = 100;

/// Settings of all runs of a session.
#[derive(Clone, Copy, Debug, Default)]
pub struct Settings {
    /// Steps of each run; `None` for as many as the measurement needs.
    pub steps: Option<u32>,
    /// The seed of the noise of simulated runs.
    pub seed: u64,
}

/// What runs compute.
#[derive(Clone)]
pub(super) struct Subject {
    /// What users call it: the begin of a configuration's name.
    pub name: String,
    pub workload: Arc<dyn Divisible>,
    pub work: StepWork,
    /// Seconds that the steps of a run on a real device should take together.
    pub lasting: f64,
}

/// A workload on one device, ready to be measured.
pub struct PreparedRun {
    pub device_use: DeviceUse,
    /// Everything that was asked for, so that equal names mean equal runs.
    pub configuration: String,
    /// The number of the repeat, from 0.
    pub repeat: u32,
    pub case: Case,
    pub descriptors: Descriptors,
    pub steps: u32,
    workload: Arc<dyn Divisible>,
}

impl PreparedRun {
    /// A run of this part of a step, with as many steps as `settings` say or, on a real
    /// device, as many as last as long as wanted.
    pub(super) fn new(
        profiled: &ProfiledMachine,
        subject: &Subject,
        device_use: DeviceUse,
        part: DevicePart,
        repeat: u32,
        settings: Settings,
    ) -> Self {
        let workload = &subject.workload;
        let case = Case {
            work: subject.work,
            part,
        };
        let descriptors = Descriptors::of(
            profiled.machine(),
            profiled.spec(&device_use.device),
            &workload.codelet().name,
            workload.fp64(),
        );
        let steps = settings
            .steps
            .unwrap_or_else(|| match profiled.is_simulated() {
                true => SIMULATED_STEPS,
                false => {
                    let step = prior::seconds(&case, &descriptors);
                    ((subject.lasting / step) as u32).clamp(FEWEST_STEPS, MOST_STEPS)
                }
            });
        Self {
            configuration: format!("{}; {device_use}", subject.name),
            device_use,
            repeat,
            case,
            descriptors,
            steps,
            workload: Arc::clone(workload),
        }
    }

    /// What distinguishes the run from others in a dataset.
    pub fn key(&self, profiled: &ProfiledMachine) -> Key {
        Key {
            machine: profiled.machine().name.clone(),
            device: self.device_use.selection(),
            codelet: self.workload.codelet().name.to_string(),
            configuration: self.configuration.clone(),
            repeat: self.repeat,
        }
    }

    /// The device and what it computes, for people.
    pub fn title(&self) -> String {
        let what = self.configuration.split(';').next().unwrap_or_default();
        format!("{}, {what}", self.device_use.selection())
    }

    /// Measures the run. `None` if it was interrupted: a part of a run is no row.
    /// `seed` is the session's.
    ///
    /// # Errors
    /// When the device cannot be opened, or the run fails.
    pub fn measure(
        &self,
        profiled: &mut ProfiledMachine,
        seed: u64,
        stop: &AtomicBool,
    ) -> Result<Option<Sample>, ProfileError> {
        let key = self.key(profiled);
        let mut instruments = RunInstruments::over(profiled, &self.device_use);
        let outcome = profiled.with(&self.device_use, seed_of(&key, seed), |runtime| {
            instruments.open();
            let options = Options {
                tolerance: None,
                supersteps: Supersteps::new(self.steps, 1),
                gpu_memory: self.device_use.setting.memory(),
                stream: self.device_use.setting.stream(),
                verify: false,
                trace: Tracing::Commands,
                each_step: None,
            };
            let mut control = Control {
                stop,
                progress: &mut |done, steps| match done {
                    0 => instruments.begin(),
                    done if done == steps => instruments.end(),
                    _ => {}
                },
            };
            let corun = Corun::open(runtime, &*self.workload, &options)?;
            let balancer = Box::new(planned(corun.setup(), self.case.part));
            corun.run(balancer, &mut control)
        })?;
        let outcome = outcome.map_err(|source| ProfileError::Run {
            configuration: self.configuration.clone(),
            source,
        })?;
        if outcome.interrupted {
            return Ok(None);
        }
        let (source, readings, notes) = instruments.close();
        for note in notes {
            profiled.note(note);
        }
        let mut features = record::features(&self.case, &self.descriptors);
        let sums = sums(&outcome).into_iter();
        features.extend(sums.map(|(name, seconds)| (name.to_owned(), seconds)));
        features.extend(readings);
        Ok(Some(Sample {
            machine: key.machine,
            simulated: profiled.is_simulated(),
            device: key.device,
            kind: self.device_use.kind.to_string(),
            codelet: key.codelet,
            configuration: key.configuration,
            repeat: self.repeat,
            counters: source.to_string(),
            steps: self.steps,
            seconds: outcome.seconds,
            features,
        }))
    }
}

/// A balancer that gives a part to the only device.
fn planned(setup: &Setup, part: DevicePart) -> Planned {
    let (held, pooled, chunk) = match part {
        DevicePart::Host { units, chunk, .. } => (0, units, chunk),
        DevicePart::Discrete {
            held,
            streamed,
            chunk,
            ..
        } => (held, streamed, chunk),
    };
    let plan = StepPlan {
        held: vec![held],
        pooled: vec![pooled],
    };
    let planned = Planned::new(setup, plan, vec![chunk]);
    match part {
        DevicePart::Discrete { solo: true, .. } => planned,
        _ => planned.with_barriers(),
    }
}

/// The seed of a run's noise, equal whenever the run is repeated: an interruption
/// must not change what a profile measures.
fn seed_of(key: &Key, seed: u64) -> u64 {
    // FNV-1a, which stays the same from release to release.
    let text = format!(
        "{}; {}; {}; {seed}",
        key.machine, key.configuration, key.repeat
    );
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

// What is recorded of a run: the processor's and the kernel's counters over all threads
// of this process, a GPU's sensors, and sums over the run's commands.
//
// All of it is from the begin of the first step to the last barrier; starting and
// stopping the instruments is not timed. Filling the grids, warming up, moving the held
// units to their device and gathering the result do not count.

/// The instruments of one run; none over a simulated one.
struct RunInstruments {
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
fn sums(outcome: &Outcome) -> Vec<(&'static str, f64)> {
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
    fn runs_have_seeds_of_their_own() {
        let key = |machine: &str, repeat| Key {
            machine: machine.into(),
            device: "gpu0".into(),
            codelet: "stencil5-f64".into(),
            configuration: "3x3 f64; gpu0; chunk 1".into(),
            repeat,
        };
        let seed = seed_of(&key("k40", 0), 1);
        // The rows of the stored datasets were drawn with this seed.
        assert_eq!(seed, 15_375_302_962_951_293_356);
        assert_ne!(seed, seed_of(&key("k40", 1), 1));
        assert_ne!(seed, seed_of(&key("k40", 0), 2));
        assert_ne!(seed, seed_of(&key("k20", 0), 1));
    }

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
                ..Trace::default()
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
