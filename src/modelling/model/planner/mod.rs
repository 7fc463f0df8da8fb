//! Plans of the least predicted step: workers, shares, held and streamed units, chunks
//! and queues.
//!
//! * [`CandidateDevice`] is a device that may take part, [`ModelledMachine`] makes those of a
//!   machine with a trained model; a [`ConfiguredDevice`] is a candidate under a
//!   configuration;
//! * `step_model` says how devices share the host's memory, and what is expected of all of
//!   them if they follow a plan;
//! * `divide` finds the division with which all finish
//!   together; [`StepPlanner`] compares that among sets of participants (each
//!   device alone, several, with and without streams) and is the
//!   [`Planner`](crate::balance::pdawl::Planner) that a balancer asks again
//!   when devices turn out slower;
//! * [`plan_supersteps`] compares numbers of steps between two barriers;
//! * [`plan`] also searches what is fixed for a run, and follows strategies whose shares
//!   never change; [`predict_run`] predicts how long
//!   a run takes.
//!
//! Everything is planned with what is known before a run. Counters explain, and
//! never plan.

mod candidate;
mod configured;
mod divide;
mod search;
mod step_model;

#[cfg(test)]
mod tests;

pub use candidate::{CandidateDevice, CandidateError, MemoryKind, ModelledMachine, physical};
pub use configured::ConfiguredDevice;
pub use search::{
    PlannedSupersteps, are_fixed, plan, plan_by, plan_supersteps, plan_with_all_cores,
    superstep_sizes,
};
pub use step_model::StepPlanner;

use self::search::{chunks, configured, divided, queues};
use super::predictor::{INTERVAL, Outside};
use crate::balance::pdawl::Forecast;
use crate::balance::{StepPlan, Strategy};
use crate::engine::corun::Stream;
use crate::model::case::StepWork;

/// The configuration that a run starts with, and the forecast of its first step.
#[derive(Clone, Debug, PartialEq)]
pub struct RunPlan {
    /// The devices' names, in the order of all lists.
    pub devices: Vec<String>,
    /// Cores that work in a pool; compute units of other devices.
    pub workers: Vec<u32>,
    /// The stream options of the engine, for all devices that stream.
    pub stream: Stream,
    /// Units of a streamed chunk, and queues, which follow from that; 0 for devices on
    /// host memory, which compute their part at once.
    pub chunks: Vec<u64>,
    pub queues: Vec<u32>,
    /// The first step, and what it should take.
    pub forecast: Forecast,
}

impl RunPlan {
    /// The devices that have no part in the first step: with one, it would take longer.
    pub fn resting(&self) -> Vec<&str> {
        let StepPlan { held, pooled } = &self.forecast.plan;
        let devices = self.devices.iter().enumerate();
        let resting = devices.filter(|(d, _)| held[*d] + pooled[*d] == 0);
        resting.map(|(_, name)| name.as_str()).collect()
    }

    /// Places of the devices that have a part in it.
    pub fn working(&self) -> Vec<usize> {
        let StepPlan { held, pooled } = &self.forecast.plan;
        let all = 0..held.len();
        all.filter(|d| held[*d] + pooled[*d] > 0).collect()
    }

    /// Whether devices with memory of their own hold units there, and stream none.
    pub fn holds_all(&self) -> bool {
        let holds = self.forecast.plan.held.iter().any(|units| *units > 0);
        holds && !self.works(|queues| queues > 0)
    }

    /// Whether devices on host memory have a part.
    pub fn has_pools(&self) -> bool {
        self.works(|queues| queues == 0)
    }

    /// Whether a device with such a number of queues takes units from the pool.
    fn works(&self, queues: impl Fn(u32) -> bool) -> bool {
        let mut pooled = self.forecast.plan.pooled.iter().zip(&self.queues);
        pooled.any(|(units, of)| *units > 0 && queues(*of))
    }

    /// The planner of the steps of a run with this configuration, on the same
    /// `candidates`. `None` if one of their memories is too small.
    pub fn planner(&self, work: &StepWork, candidates: &[CandidateDevice]) -> Option<StepPlanner> {
        let workers = search::configured(work, candidates, &self.workers, self.stream)?;
        Some(StepPlanner::new(*work, workers))
    }

    /// The inputs of the first step that lie outside the training ranges of the models.
    pub fn outside(&self, work: &StepWork, candidates: &[CandidateDevice]) -> Vec<Outside> {
        let workers = search::configured(work, candidates, &self.workers, self.stream);
        let StepPlan { held, pooled } = &self.forecast.plan;
        let mut once: Vec<Outside> = Vec::new();
        for (d, worker) in workers.iter().flatten().enumerate() {
            let case = worker.case(work, held[d], pooled[d]);
            let has_work = held[d] + pooled[d] > 0;
            for input in worker.time.outside(&case).into_iter().filter(|_| has_work) {
                if !once.contains(&input) {
                    once.push(input);
                }
            }
        }
        once
    }
}

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
