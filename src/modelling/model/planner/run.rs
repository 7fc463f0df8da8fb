//! Predictions of whole runs, by strategy.

use super::RunPlan;
use super::candidate::CandidateDevice;
use super::search::{chunks, configured, divided, plan, queues};
use crate::balance::{StepPlan, Strategy};
use crate::engine::corun::Stream;
use crate::model::case::StepWork;
use crate::model::step_time::{INTERVAL, Outside};

/// A strategy whose runs can be predicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PredictedStrategy {
    Cpu,
    Gpu,
    Pdawl,
}

/// The prediction of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunPrediction {
    pub kind: PredictedStrategy,
    /// Seconds of all steps, as a report's `seconds`.
    pub seconds: f64,
    /// Where 95 % of runs should lie, by the model's spread in validation.
    pub low: f64,
    pub high: f64,
    pub plan: RunPlan,
    /// Inputs of the model that its training did not reach.
    pub outside: Vec<Outside>,
}

/// Predicts `steps` steps of `work` on `candidates`. `None` for a strategy for
/// which there is no device, or no memory.
pub fn predict_run(
    kind: PredictedStrategy,
    work: &StepWork,
    candidates: &[CandidateDevice],
    steps: u32,
) -> Option<RunPrediction> {
    let plan = match kind {
        PredictedStrategy::Pdawl => plan(work, candidates)?,
        PredictedStrategy::Cpu => fixed(&Strategy::Cpu, work, candidates)?,
        PredictedStrategy::Gpu => fixed(&Strategy::Gpu, work, candidates)?,
    };
    let StepPlan { held, pooled } = &plan.forecast.plan;
    let spread = (plan.forecast.devices.iter().enumerate())
        .filter(|(d, _)| held[*d] + pooled[*d] > 0)
        .map(|(_, expected)| expected.spread)
        .fold(0.0, f64::max);
    let seconds = f64::from(steps) * plan.forecast.step_seconds;
    Some(RunPrediction {
        kind,
        seconds,
        low: seconds * (-INTERVAL * spread).exp(),
        high: seconds * (INTERVAL * spread).exp(),
        outside: plan.outside(work, candidates),
        plan,
    })
}

/// The plan of a strategy whose shares never change, with the engine's streams.
fn fixed(strategy: &Strategy, work: &StepWork, candidates: &[CandidateDevice]) -> Option<RunPlan> {
    let all: Vec<u32> = candidates.iter().map(|m| m.compute_units).collect();
    let stream = Stream::default();
    let workers = configured(work, candidates, &all, stream)?;
    let (workers, forecast) = divided(strategy, work, candidates, workers).ok()?;
    Some(RunPlan {
        devices: candidates.iter().map(|m| m.name.clone()).collect(),
        workers: all,
        stream,
        chunks: chunks(&workers),
        queues: queues(&workers),
        forecast,
    })
}
