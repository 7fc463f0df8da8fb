//! Fills in the report of a run from the outcome of the engine.

use std::collections::BTreeSet;

use super::schema::{
    DevicePart, Lost, Machine, Model, Report, SCHEMA, Single, Step, Trust, Workload,
};
use crate::balance::{Account, Trusted};
use crate::engine::{DeviceRecord, Outcome, StepRecord};
use crate::machine::DeviceKind;

/// Strategies that can leave devices without work.
const ADAPTIVE: [&str; 3] = ["dawl", "pdawl", "oracle"];

/// The content of a report that is not in the outcome.
#[derive(Clone, Debug, PartialEq)]
pub struct Context {
    pub workload: Workload,
    /// Its devices are in the order of the outcome's.
    pub machine: Machine,
    pub strategy: String,
    pub comparison: Vec<Single>,
    pub notes: Vec<String>,
}

/// The report of a run.
pub fn report(outcome: &Outcome, context: &Context) -> Report {
    // A step that was computed again has two records.
    let distinct: BTreeSet<u32> = outcome.steps.iter().map(|s| s.step).collect();
    let points = (context.workload.points()).saturating_mul(distinct.len() as u64);
    Report {
        schema: SCHEMA,
        version: env!("CARGO_PKG_VERSION"),
        workload: context.workload.clone(),
        machine: context.machine.clone(),
        strategy: context.strategy.clone(),
        seconds: outcome.seconds,
        setup_seconds: outcome.setup_seconds,
        probe_seconds: outcome.probe_seconds,
        gather_seconds: outcome.gather_seconds,
        points,
        throughput: context.workload.throughput(points, outcome.seconds),
        devices: device_parts(outcome, context),
        steps: outcome.steps.iter().map(step).collect(),
        imbalance: imbalance(&outcome.steps),
        overlap: overlap(&outcome.steps),
        engine_seconds: outcome.steps.iter().map(|s| s.engine_seconds).sum(),
        enqueue_seconds: outcome.steps.iter().map(|s| s.enqueue_seconds).sum(),
        verified: outcome.verified,
        max_abs_error: outcome.max_abs_error,
        eigenvalue: outcome.eigenvalue,
        lost: outcome
            .losses
            .iter()
            .map(|loss| Lost {
                device: device_name(outcome, loss.device),
                step: loss.step,
                why: loss.why.clone(),
                repeated: loss.repeated,
                back: loss.back,
            })
            .collect(),
        interrupted: outcome.interrupted,
        alone: alone(outcome, &context.strategy),
        comparison: context.comparison.clone(),
        model: (outcome.model.as_ref()).map(|account| model(outcome, account)),
        notes: [&context.notes[..], &outcome.notes].concat(),
    }
}

fn model(outcome: &Outcome, account: &Account) -> Model {
    let trust = |(device, trusted): (usize, &Trusted)| Trust {
        device: device_name(outcome, device),
        slowdown: trusted.slowdown,
        interval: trusted.interval,
    };
    Model {
        name: account.model.clone(),
        predicted_step_seconds: account.predicted_step_seconds,
        expected_step_seconds: account.expected_seconds.clone(),
        replans: account.replans,
        handed_over: account.handed_over,
        devices: account.devices.iter().enumerate().map(trust).collect(),
    }
}

fn device_name(outcome: &Outcome, device: usize) -> String {
    let name = outcome.devices.get(device).cloned();
    name.unwrap_or_else(|| format!("device {device}"))
}

/// See [`Report::alone`].
fn alone(outcome: &Outcome, strategy: &str) -> Option<String> {
    let chose = ADAPTIVE.contains(&strategy) && outcome.devices.len() > 1;
    let last = outcome.steps.last().filter(|_| chose)?;
    let mut at_work = (0..last.devices.len()).filter(|d| last.devices[*d].units > 0);
    let lone = at_work.next().filter(|_| at_work.next().is_none())?;
    Some(device_name(outcome, lone))
}

fn device_parts(outcome: &Outcome, context: &Context) -> Vec<DevicePart> {
    let all: u64 = records(outcome).map(|r| r.units).sum();
    (0..outcome.devices.len())
        .map(|device| {
            let steps = outcome.steps.iter();
            let own: Vec<&DeviceRecord> = steps.filter_map(|s| s.devices.get(device)).collect();
            let units = own.iter().map(|r| r.units).sum();
            let busy: f64 = own.iter().map(|r| r.busy_seconds).sum();
            DevicePart {
                name: device_name(outcome, device),
                kind: context
                    .machine
                    .devices
                    .get(device)
                    .map_or(DeviceKind::Accelerator, |d| d.kind),
                share: fraction(units, all),
                units,
                busy_seconds: busy,
                idle_seconds: (outcome.seconds - busy).max(0.0),
                chunks: own.iter().map(|r| r.chunks).sum(),
                bytes_h2d: own.iter().map(|r| r.bytes_h2d).sum(),
                bytes_d2h: own.iter().map(|r| r.bytes_d2h).sum(),
                wait_seconds: outcome.wait_seconds.get(device).copied(),
                worker_imbalance: worker_imbalance(&own),
            }
        })
        .collect()
}

fn worker_imbalance(own: &[&DeviceRecord]) -> Option<f64> {
    let mean: f64 = own.iter().map(|r| r.worker_mean_seconds).sum();
    let most: f64 = own.iter().map(|r| r.worker_most_seconds).sum();
    (most > 0.0).then(|| 1.0 - mean / most)
}

fn step(record: &StepRecord) -> Step {
    let all = record.devices.iter().map(|d| d.units).sum();
    Step {
        step: record.step,
        seconds: record.seconds,
        shares: (record.devices.iter().map(|d| fraction(d.units, all))).collect(),
        imbalance: record.imbalance(),
        moved: record.moved,
    }
}

fn imbalance(steps: &[StepRecord]) -> f64 {
    let whole: f64 = steps.iter().map(|s| s.seconds).sum();
    if whole <= 0.0 {
        return 0.0;
    }
    steps.iter().map(|s| s.imbalance() * s.seconds).sum::<f64>() / whole
}

fn overlap(steps: &[StepRecord]) -> Option<f64> {
    let all = || steps.iter().flat_map(|s| &s.devices);
    let copies: f64 = all().map(|d| d.copy_seconds).sum();
    let hidden: f64 = all().map(|d| d.overlapped_seconds).sum();
    (copies > 0.0).then(|| hidden / copies)
}

fn records(outcome: &Outcome) -> impl Iterator<Item = &DeviceRecord> {
    outcome.steps.iter().flat_map(|s| &s.devices)
}

fn fraction(part: u64, whole: u64) -> f64 {
    match whole {
        0 => 0.0,
        whole => part as f64 / whole as f64,
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{account, context, outcome};
    use super::*;
    use crate::engine::Loss;

    #[test]
    fn figures_add_up() {
        let report = report(&outcome(), &context());
        assert_eq!(report.points, 4 * 100 * 100);
        assert_eq!(report.throughput.value, 40_000.0 / 0.4);
        let shares: f64 = report.devices.iter().map(|d| d.share).sum();
        assert!((shares - 1.0).abs() < 1e-12);
        // 50, 40, 40 and 40 of 100 rows.
        assert!((report.devices[0].share - 0.425).abs() < 1e-12);
        for device in &report.devices {
            let whole = device.busy_seconds + device.idle_seconds;
            assert!((whole - report.seconds).abs() < 1e-12, "{}", device.name);
        }
        assert_eq!(report.steps[1].shares, [0.4, 0.6]);
        assert_eq!(report.steps[1].moved, 10);
        assert_eq!(report.overlap, Some(0.75));
        assert!(report.machine.simulated);
        assert_eq!(report.devices[1].wait_seconds, Some(2e-8));
    }

    #[test]
    fn imbalance_is_weighted_by_time() {
        let mut outcome = outcome();
        outcome.steps[0].seconds = 0.3;
        for (i, step) in outcome.steps.iter_mut().enumerate() {
            step.devices[0].finished_seconds = if i == 0 { 0.05 } else { 0.1 };
            step.devices[1].finished_seconds = 0.1;
        }
        // 0.25 for 0.3 s, and 0 for three times 0.1 s.
        assert!((report(&outcome, &context()).imbalance - 0.125).abs() < 1e-12);
    }

    #[test]
    fn a_repeated_step_counts_its_points_once() {
        let mut outcome = outcome();
        let repeated = outcome.steps[2].clone();
        outcome.steps.insert(3, repeated);
        outcome.losses.push(Loss {
            device: 1,
            step: 3,
            why: "fell off the bus".into(),
            repeated: 1,
            back: Some(3),
        });
        let report = report(&outcome, &context());
        assert_eq!(report.points, 4 * 100 * 100);
        assert_eq!(report.lost[0].device, "gpu0");
        assert_eq!(report.lost[0].repeated, 1);
        assert_eq!(report.lost[0].back, Some(3));
    }

    #[test]
    fn a_models_part_is_told_by_device() {
        let mut outcome = outcome();
        assert_eq!(report(&outcome, &context()).model, None);
        outcome.model = Some(account());
        let model = report(&outcome, &context()).model.unwrap();
        assert_eq!(model.devices[1].device, "gpu0");
        assert_eq!(model.devices[1].slowdown, Some(1.1));
        assert_eq!(model.expected_step_seconds.len(), 4);
    }

    #[test]
    fn a_run_that_never_began_has_no_infinite_figures() {
        let report = report(&Outcome::default(), &context());
        assert_eq!(report.throughput.value, 0.0);
        assert!(report.devices.is_empty());
        assert_eq!((report.imbalance, report.overlap), (0.0, None));
    }
}
