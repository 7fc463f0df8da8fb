//! Profiling sessions on simulated machines.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pdawl_profiler::Sample;
use pdawl_profiler::dataset::{DatasetError, Key};

use super::design::DesignRequest;
use super::*;
use crate::codelet::stencil::Precision;
use crate::machine::MachineStore;
use crate::model::{DevicePart, prior, record};

const LONG: Duration = Duration::from_secs(3600);

fn simulated(name: &str, noise: f64) -> ProfiledMachine {
    let machine = MachineStore::at("/nonexistent").find(name).unwrap();
    ProfiledMachine::simulated(machine, noise)
}

fn designs(profiled: &ProfiledMachine, count: usize) -> Vec<Vec<Configuration>> {
    let request = DesignRequest {
        dimensions: 2,
        precision: Precision::F64,
        sizes: Vec::new(),
        most: Some(6000),
    };
    let host = &profiled.machine().host;
    let gpus = profiled.gpus(None, true);
    let topology = profiled.topology().clone();
    let space = Space::of(host, topology, gpus, host.memory, false, &request).unwrap();
    [ModelKind::Cpu, ModelKind::Gpu]
        .map(|kind| design(&space, kind, count))
        .into()
}

/// Rows in memory.
#[derive(Default)]
pub struct Rows {
    samples: Vec<Sample>,
    /// The session ends after so many rows.
    most: Option<usize>,
    stop: Arc<AtomicBool>,
}

impl RowStore for Rows {
    fn contains(&self, _: &Key) -> bool {
        false
    }

    fn append(&mut self, row: &Sample) -> Result<(), DatasetError> {
        self.samples.push(row.clone());
        let is_over = self.most.is_some_and(|most| self.samples.len() >= most);
        self.stop.store(is_over, Ordering::Relaxed);
        Ok(())
    }
}

/// Goes through runs; stops after `most` rows.
fn run_session(
    profiled: &mut ProfiledMachine,
    runs: &[ProfileRun],
    budget: Duration,
    most: Option<usize>,
) -> (Vec<Sample>, Result<SessionSummary, ProfileError>) {
    let mut rows = Rows {
        most,
        ..Rows::default()
    };
    let (stop, mut watch) = (Arc::clone(&rows.stop), |_: &SessionProgress| {});
    let settings = Settings::default();
    let mut session =
        ProfilingSession::begin(profiled, settings, budget, &stop, &mut rows, &mut watch);
    let done = stencil::profile(&mut session, runs);
    let summary = done.and_then(|()| session.finish());
    (rows.samples, summary)
}

#[test]
fn a_simulated_machine_is_profiled_as_its_physics_says() {
    for name in ["k40", "laptop"] {
        let mut profiled = simulated(name, 0.0);
        let runs = schedule(&designs(&profiled, 20), 1, 1);
        let (rows, summary) = run_session(&mut profiled, &runs, LONG, None);
        let summary = summary.unwrap();
        assert_eq!(
            (rows.len(), summary.measured),
            (40, 40),
            "{:?}",
            summary.failed
        );
        for row in &rows {
            assert!(row.simulated && row.counters == "none" && row.machine == name);
            let (case, descriptors) = record::read(row).unwrap();
            let expected = prior::seconds(&case, &descriptors);
            let ratio = row.step_seconds() / expected;
            assert!(
                (0.6..1.6).contains(&ratio),
                "{}: {ratio}",
                row.configuration
            );
            // Copies, kernels and waits are within the steps.
            let sum = |name: &str| row.features[&format!("trace.{name}_seconds")];
            assert!(sum("kernel") > 0.0);
            assert!(sum("overlap") <= sum("kernel").min(sum("h2d") + sum("d2h")));
            let streams = matches!(case.part, DevicePart::Discrete { streamed: 1.., .. });
            assert_eq!(sum("h2d") > 0.0, streams, "{}", row.configuration);
            // A pool's commands cost the driver nothing.
            assert_eq!(
                sum("launch") > 0.0,
                row.kind == "gpu",
                "{}",
                row.configuration
            );
        }
    }
}

#[test]
fn repeats_differ_by_noise_and_a_profile_is_reproducible() {
    let mut profiled = simulated("k40", 0.02);
    let runs = schedule(&designs(&profiled, 6), 3, 1);
    let (rows, _) = run_session(&mut profiled, &runs, LONG, None);
    let (again, _) = run_session(&mut profiled, &runs, LONG, None);
    assert_eq!(rows, again);
    let mut repeats: HashMap<&str, Vec<f64>> = HashMap::new();
    for row in &rows {
        repeats
            .entry(&row.configuration)
            .or_default()
            .push(row.seconds);
    }
    assert_eq!(repeats.len(), 12);
    for (configuration, seconds) in repeats {
        let [a, b, c] = seconds[..] else {
            panic!("{configuration}: {seconds:?}");
        };
        assert!(a != b && b != c && a != c, "{configuration}");
        assert!((a / b - 1.0).abs() < 0.1, "{configuration}: {seconds:?}");
    }
}

#[test]
fn what_was_interrupted_goes_on_and_ends_alike() {
    let mut profiled = simulated("k40", 0.02);
    let runs = schedule(&designs(&profiled, 5), 2, 1);
    let (whole, _) = run_session(&mut profiled, &runs, LONG, None);
    let (first, summary) = run_session(&mut profiled, &runs, LONG, Some(7));
    let summary = summary.unwrap();
    assert_eq!((first.len(), summary.measured, summary.left), (7, 7, 13));
    assert!(summary.interrupted);
    let (second, summary) = run_session(&mut profiled, &runs[7..], LONG, None);
    assert!(!summary.unwrap().interrupted);
    assert_eq!([first, second].concat(), whole);
}

#[test]
fn an_interrupted_run_is_no_row() {
    let mut profiled = simulated("k40", 0.02);
    let runs = schedule(&designs(&profiled, 1), 1, 1);
    let stop = AtomicBool::new(true);
    let prepared = stencil::prepare(&profiled, &runs[0], Settings::default()).unwrap();
    let sample = prepared.measure(&mut profiled, 0, &stop).unwrap();
    assert_eq!(sample, None);
}

#[test]
fn a_budget_that_is_too_small_is_reported_with_what_it_takes() {
    let mut profiled = simulated("k40", 0.02);
    let runs = schedule(&designs(&profiled, 2), 1, 1);
    let (rows, summary) = run_session(&mut profiled, &runs, Duration::from_nanos(1), None);
    assert_eq!(rows, []);
    let message = summary.unwrap_err().to_string();
    assert!(
        message.starts_with("a budget of 1.00 ns is too small: "),
        "{message}"
    );
    let (rows, summary) = run_session(&mut profiled, &[], Duration::from_nanos(1), None);
    assert_eq!((rows.len(), summary.unwrap().left), (0, 0));
}

#[test]
fn a_run_that_fails_is_left_behind_unless_all_do() {
    let mut profiled = simulated("k40", 0.02);
    let mut runs = schedule(&designs(&profiled, 4), 1, 1);
    // No such device.
    let broken = runs
        .iter_mut()
        .find(|run| run.configuration.device_use.kind == ModelKind::Gpu);
    broken.unwrap().configuration.device_use.device = "gpu7".into();
    let (rows, summary) = run_session(&mut profiled, &runs, LONG, None);
    let summary = summary.unwrap();
    assert_eq!((rows.len(), summary.failed.len()), (7, 1));
    assert!(summary.failed[0].contains("gpu7"), "{:?}", summary.failed);

    for run in &mut runs {
        run.configuration.device_use.device = "gpu7".into();
        run.configuration.device_use.setting = Setting::Shared {
            workers: 1,
            chunk: 1,
        };
    }
    let (rows, summary) = run_session(&mut profiled, &runs, LONG, None);
    assert_eq!(rows, []);
    assert!(summary.unwrap_err().to_string().contains("gpu7"));
}
