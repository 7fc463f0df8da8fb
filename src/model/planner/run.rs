//! Predictions of whole runs, by strategy.

use super::candidate::CandidateDevice;
use super::search::{chunks, configured, plan, queues};
use super::step::StepPlanner;
use super::{ConfiguredDevice, RunPlan};
use crate::balance::pdawl::Planner;
use crate::balance::{DeviceView, Setup, StepPlan, Strategy, StrategyError};
use crate::engine::corun::Stream;
use crate::model::case::StepWork;
use crate::model::step_time::{INTERVAL, Outside};

/// Chunks into which a fixed share's streamed segment is cut.
const FIXED_CHUNKS: u64 = crate::balance::fixed::STREAM_CHUNKS;

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
        PredictedStrategy::Cpu => fixed(&Strategy::Cpu, work, candidates, steps)
            .ok()
            .flatten()?,
        PredictedStrategy::Gpu => fixed(&Strategy::Gpu, work, candidates, steps)
            .ok()
            .flatten()?,
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

/// The plan of a balancer whose shares never change.
fn fixed(
    strategy: &Strategy,
    work: &StepWork,
    candidates: &[CandidateDevice],
    steps: u32,
) -> Result<Option<RunPlan>, StrategyError> {
    let all: Vec<u32> = candidates.iter().map(|m| m.compute_units).collect();
    let stream = Stream::default();
    let Some(workers) = configured(work, candidates, &all, stream) else {
        return Ok(None);
    };
    let setup = Setup {
        units: work.units,
        steps,
        devices: (candidates.iter().zip(&workers))
            .map(|(candidate, worker)| DeviceView {
                kind: candidate.kind,
                compute_units: candidate.compute_units,
                capacity: worker.has_own_memory().then(|| worker.capacity()),
                slots: worker.division().map(|division| division.slots),
                stream_limit: None,
                min_chunk: worker.least_chunk(work.unit_bytes),
            })
            .collect(),
        direct: None,
        published: 0.0,
    };
    let plan = strategy.build(&setup)?.plan(0);
    let workers: Vec<ConfiguredDevice> = (workers.into_iter().zip(&plan.pooled))
        .map(|(worker, pooled)| {
            let chunk = pooled
                .div_ceil(FIXED_CHUNKS)
                .max(worker.least_chunk(work.unit_bytes));
            worker.with_chunk(chunk)
        })
        .collect();
    let (chunks, queues) = (chunks(&workers), queues(&workers));
    let planner = StepPlanner::new(*work, workers);
    Ok(Some(RunPlan {
        devices: candidates.iter().map(|m| m.name.clone()).collect(),
        forecast: planner.expect(&plan, &vec![1.0; candidates.len()]),
        workers: all,
        stream,
        chunks,
        queues,
    }))
}
