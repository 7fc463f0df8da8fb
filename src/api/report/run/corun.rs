//! A co-run: its part of a report, and the report of an outcome of the engine.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::{
    Bounds, Context, Details, DevicePart, Lost, Report, Throughput, Verification, device_name,
    fraction,
};
use crate::balance::{Account, Trusted};
use crate::engine::{DeviceRecord, Outcome, StepRecord};

/// Strategies that can leave devices without work.
const ADAPTIVE: [&str; 3] = ["dawl", "pdawl", "oracle"];

/// What only co-runs have.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct CoRun {
    /// Seconds of `setup_seconds` in which devices were probed.
    pub probe_seconds: f64,
    /// Seconds from the last step until the result is in host memory.
    pub gather_seconds: f64,
    /// Points, nonzeros or work-items of all completed steps. A step that was computed again
    /// counts once.
    pub points: u64,
    /// Completed steps, those that were computed again included.
    pub steps: Vec<Step>,
    /// The mean of the steps' imbalances, weighted by their seconds.
    pub imbalance: f64,
    /// The fraction of the time of copies in which a kernel ran on the same device; null
    /// without copies.
    pub overlap: Option<f64>,
    /// Seconds of the engine and the balancer, within `seconds`.
    pub engine_seconds: f64,
    /// Seconds of the drivers to enqueue commands, within `seconds`.
    pub enqueue_seconds: f64,
    /// Of an iteration with data: the estimated magnitude of the largest eigenvalue, |A x| of
    /// the last step with |x| = 1.
    pub eigenvalue: Option<f64>,
    /// Of page ranks with data: the sum of all absolute changes in the last step. Of a stencil
    /// with `until`: the largest absolute change of a point in the last step.
    pub change: Option<f64>,
    /// The device that computed all of the last step, if an adaptive strategy chose it.
    pub alone: Option<String>,
    /// The throughput of single devices on the same workload and machine, if known.
    pub comparison: Vec<Single>,
    /// Null if the strategy uses no cost model.
    pub model: Option<Model>,
}

/// A step, or a superstep: several steps between two barriers.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Step {
    /// From 0.
    pub step: u32,
    /// Steps of the workload in it.
    pub steps: u32,
    /// From barrier to barrier.
    pub seconds: f64,
    /// The fraction of the step's units, by device.
    pub shares: Vec<f64>,
    /// 1 - mean / latest of the finishing times of the devices that had work.
    pub imbalance: f64,
    /// Units that moved to another device at the step's begin.
    pub moved: u64,
}

impl CoRun {
    /// Steps of the workload that were computed, those that were computed again twice.
    pub fn done(&self) -> u64 {
        self.steps.iter().map(|step| u64::from(step.steps)).sum()
    }
}

/// The cost model of a run. Its seconds are expected, not measured.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Model {
    /// As in `pdawl model list`.
    pub name: String,
    /// Seconds of the first step, predicted before the run; null without a plan.
    pub predicted_step_seconds: Option<f64>,
    /// Seconds of each step, as expected when it was planned, corrected by the steps before
    /// it; null where the model was not used.
    pub expected_step_seconds: Vec<Option<f64>>,
    /// New plans, made since measured and expected seconds differed or a device was lost.
    pub replans: u32,
    /// The step from which on DAWL went on without the model.
    pub handed_over: Option<u32>,
    pub devices: Vec<Trust>,
}

/// How far the model was trusted on a device at the end of the run.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Trust {
    pub device: String,
    #[serde(flatten)]
    pub trusted: Trusted,
}

/// The throughput of a single device on the same workload.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Single {
    /// The strategy that uses this device alone, `cpu` or `gpu`.
    pub strategy: String,
    pub throughput: Throughput,
}

/// The report of a co-run, compared with single devices.
pub fn report(outcome: &Outcome, context: Context, comparison: Vec<Single>) -> Report {
    // A step that was computed again has two records.
    let distinct: BTreeMap<u32, u32> = (outcome.steps.iter())
        .map(|record| (record.step, record.steps))
        .collect();
    let steps: u64 = distinct.values().map(|steps| u64::from(*steps)).sum();
    let points = (context.workload.points()).saturating_mul(steps);
    let lost = outcome.losses.iter().map(|loss| Lost {
        device: Some(device_name(&outcome.devices, loss.device)),
        step: Some(loss.step),
        why: Some(loss.why.clone()),
        repeated: loss.repeated.into(),
        back: loss.back.is_some(),
        back_step: loss.back,
        ..Lost::default()
    });
    let details = CoRun {
        probe_seconds: outcome.probe_seconds,
        gather_seconds: outcome.gather_seconds,
        points,
        steps: outcome.steps.iter().map(step).collect(),
        imbalance: imbalance(&outcome.steps),
        overlap: overlap(&outcome.steps),
        engine_seconds: outcome.steps.iter().map(|s| s.engine_seconds).sum(),
        enqueue_seconds: outcome.steps.iter().map(|s| s.enqueue_seconds).sum(),
        eigenvalue: outcome.eigenvalue,
        change: outcome.change,
        alone: alone(outcome, &context.policy),
        comparison,
        model: (outcome.model.as_ref()).map(|account| model(outcome, account)),
    };
    let mut report = Report {
        setup_seconds: Some(outcome.setup_seconds),
        throughput: Some(context.workload.throughput(points, outcome.seconds)),
        bounds: Bounds::of_corun(outcome),
        verification: outcome.verified.map(|right| Verification {
            right,
            error: outcome.max_abs_error.filter(|error| error.is_finite()),
            ..Verification::default()
        }),
        lost: lost.collect(),
        interrupted: outcome.interrupted,
        devices: device_parts(outcome, &context),
        ..context.report(outcome.seconds, Details::CoRun(details))
    };
    report.notes.extend_from_slice(&outcome.notes);
    report
}

fn model(outcome: &Outcome, account: &Account) -> Model {
    let trust = |(device, trusted): (usize, &Trusted)| Trust {
        device: device_name(&outcome.devices, device),
        trusted: *trusted,
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

/// See [`CoRun::alone`].
fn alone(outcome: &Outcome, strategy: &str) -> Option<String> {
    let chose = ADAPTIVE.contains(&strategy) && outcome.devices.len() > 1;
    let last = outcome.steps.last().filter(|_| chose)?;
    let mut at_work = (0..last.devices.len()).filter(|d| last.devices[*d].units > 0);
    let lone = at_work.next().filter(|_| at_work.next().is_none())?;
    Some(device_name(&outcome.devices, lone))
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
                name: device_name(&outcome.devices, device),
                kind: context.machine.devices.get(device).map(|d| d.kind),
                share: fraction(units, all),
                units,
                busy_seconds: Some(busy),
                idle_seconds: Some((outcome.seconds - busy).max(0.0)),
                wait_seconds: outcome.wait_seconds.get(device).copied(),
                worker_imbalance: worker_imbalance(&own),
                chunks: Some(own.iter().map(|r| r.chunks).sum()),
                bytes_h2d: Some(own.iter().map(|r| r.bytes_h2d).sum()),
                bytes_d2h: Some(own.iter().map(|r| r.bytes_d2h).sum()),
                ..DevicePart::default()
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
        steps: record.steps,
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

#[cfg(test)]
mod tests {
    use super::super::fixtures::{account, context, outcome};
    use super::*;
    use crate::engine::Loss;

    /// The report of an outcome, and its own part.
    fn reported(outcome: &Outcome) -> (Report, CoRun) {
        let report = report(outcome, context(), Vec::new());
        match report.details.clone() {
            Details::CoRun(details) => (report, details),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn figures_add_up() {
        let (report, details) = reported(&outcome());
        assert_eq!(details.points, 4 * 100 * 100);
        assert_eq!(report.throughput.unwrap().value, 40_000.0 / 0.4);
        let shares: f64 = report.devices.iter().map(|d| d.share).sum();
        assert!((shares - 1.0).abs() < 1e-12);
        // 50, 40, 40 and 40 of 100 rows.
        assert!((report.devices[0].share - 0.425).abs() < 1e-12);
        for device in &report.devices {
            let whole = device.busy_seconds.unwrap() + device.idle_seconds.unwrap();
            assert!((whole - report.seconds).abs() < 1e-12, "{}", device.name);
        }
        assert_eq!(details.steps[1].shares, [0.4, 0.6]);
        assert_eq!(details.steps[1].moved, 10);
        assert_eq!(details.overlap, Some(0.75));
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
        assert!((reported(&outcome).1.imbalance - 0.125).abs() < 1e-12);
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
        let (report, details) = reported(&outcome);
        assert_eq!(details.points, 4 * 100 * 100);
        assert_eq!(report.lost[0].device.as_deref(), Some("gpu0"));
        assert_eq!(report.lost[0].repeated, 1);
        assert_eq!(
            (report.lost[0].back, report.lost[0].back_step),
            (true, Some(3))
        );
    }

    #[test]
    fn a_models_part_is_reported_by_device() {
        let mut outcome = outcome();
        assert_eq!(reported(&outcome).1.model, None);
        outcome.model = Some(account());
        let model = reported(&outcome).1.model.unwrap();
        assert_eq!(model.devices[1].device, "gpu0");
        assert_eq!(model.devices[1].trusted.slowdown, Some(1.1));
        assert_eq!(model.expected_step_seconds.len(), 4);
    }

    #[test]
    fn a_run_that_never_began_has_no_infinite_figures() {
        let (report, details) = reported(&Outcome::default());
        assert_eq!(report.throughput.unwrap().value, 0.0);
        assert!(report.devices.is_empty());
        assert_eq!((details.imbalance, details.overlap), (0.0, None));
    }
}
