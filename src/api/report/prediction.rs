//! The report of a prediction, `pdawl-predict/1`, and how people read it.

use std::fmt::{self, Write};

use schemars::JsonSchema;
use serde::Serialize;

use super::run::Workload;
use super::style::{FAINT, MAIN, STRONG, note, notes, origin, styled, written};
use super::table;
use crate::model::Outside;
use crate::model::planner::{self, PredictedStrategy};
use crate::quantity::{Percent, Seconds};

/// What is predicted of a workload on a machine.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct PredictionReport {
    pub workload: Workload,
    pub machine: PredictedMachine,
    pub model: PredictingModel,
    pub predictions: Vec<StrategyPrediction>,
    pub notes: Vec<String>,
}

/// The machine that is predicted.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct PredictedMachine {
    pub name: String,
    /// Whether runs on it are simulated here.
    pub simulated: bool,
    pub cores: u32,
    /// Bytes of the host's memory.
    pub memory: u64,
    /// Devices beside the host's cores.
    pub devices: Vec<String>,
    /// Most bytes used of each GPU's memory; null: what it has.
    pub gpu_memory: Option<u64>,
}

/// The model that predicts.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct PredictingModel {
    pub name: String,
    /// The machine that it was trained on, or adapted to.
    pub machine: String,
    /// Whether it learned virtual times.
    pub simulated: bool,
    pub checksum: String,
}

/// What is predicted of a strategy.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct StrategyPrediction {
    /// `cpu`, `gpu` or `pdawl`.
    pub strategy: &'static str,
    /// Of all steps.
    pub seconds: f64,
    /// Where 95 % of runs should lie.
    pub low: f64,
    pub high: f64,
    /// Of a step.
    pub step_seconds: f64,
    pub plan: PlanReport,
    /// Inputs that the model's training did not reach.
    pub outside: Vec<Outside>,
}

/// A run's plan; all lists are in the order of the devices.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct PlanReport {
    pub devices: Vec<String>,
    /// Cores that work in a pool; compute units of other devices.
    pub workers: Vec<u32>,
    /// Fraction of all units.
    pub shares: Vec<f64>,
    /// Units held in a device's own memory, streamed through it, and computed
    /// in host memory.
    pub held: Vec<u64>,
    pub streamed: Vec<u64>,
    pub pooled: Vec<u64>,
    /// Units of a streamed chunk, and queues; 0 for devices on host memory.
    pub chunk: Vec<u64>,
    pub queues: Vec<u32>,
    /// Until each device is through with a step.
    pub seconds: Vec<f64>,
}

impl From<planner::RunPrediction> for StrategyPrediction {
    fn from(prediction: planner::RunPrediction) -> Self {
        Self {
            strategy: match prediction.kind {
                PredictedStrategy::Cpu => "cpu",
                PredictedStrategy::Gpu => "gpu",
                PredictedStrategy::Pdawl => "pdawl",
            },
            seconds: prediction.seconds,
            low: prediction.low,
            high: prediction.high,
            step_seconds: prediction.plan.forecast.step_seconds,
            plan: PlanReport::from(prediction.plan),
            outside: prediction.outside,
        }
    }
}

impl From<planner::RunPlan> for PlanReport {
    fn from(plan: planner::RunPlan) -> Self {
        let step = plan.forecast.plan;
        let all: u64 = step.held.iter().chain(&step.pooled).sum();
        let parts = || step.held.iter().zip(&step.pooled);
        // A device on host memory has no chunks.
        let where_own = |own: bool| {
            let units = step.pooled.iter().zip(&plan.chunks);
            units.map(move |(units, chunk)| if own == (*chunk > 0) { *units } else { 0 })
        };
        Self {
            shares: parts()
                .map(|(h, p)| (h + p) as f64 / all.max(1) as f64)
                .collect(),
            streamed: where_own(true).collect(),
            pooled: where_own(false).collect(),
            held: step.held.clone(),
            devices: plan.devices,
            workers: plan.workers,
            chunk: plan.chunks,
            queues: plan.queues,
            seconds: plan.forecast.devices.iter().map(|d| d.seconds).collect(),
        }
    }
}

impl PredictionReport {
    /// The report with ANSI styles.
    pub fn render(&self) -> String {
        written(|out| self.write(out))
    }

    fn write(&self, out: &mut String) -> fmt::Result {
        writeln!(
            out,
            "{}, {} steps on {}{}: {} by model {}\n",
            styled(STRONG, &self.workload.title),
            self.workload.steps(),
            styled(STRONG, &self.machine.name),
            origin(self.machine.simulated),
            styled(MAIN, "predicted"),
            self.model.name,
        )?;
        let header = ["Strategy", "All steps", "95 % of runs", "A step", "Plan"];
        let mut rows = table::plain(&header, |column| (1..4).contains(&column));
        for prediction in &self.predictions {
            let (low, high) = (Seconds(prediction.low), Seconds(prediction.high));
            rows.add_row(vec![
                prediction.strategy.to_owned(),
                Seconds(prediction.seconds).to_string(),
                format!("{low} to {high}"),
                Seconds(prediction.step_seconds).to_string(),
                prediction.plan.in_words(),
            ]);
        }
        writeln!(out, "{}", rows.trim_fmt())?;
        for prediction in self.predictions.iter().filter(|p| !p.outside.is_empty()) {
            let unseen: Vec<String> = prediction.outside.iter().map(Outside::in_words).collect();
            let (strategy, unseen) = (prediction.strategy, unseen.join(", "));
            note(out, format!("{strategy}: the model has not seen {unseen}"))?;
        }
        notes(out, &self.notes)?;
        let what = "Predicted from what is known before a run; nothing was run.";
        writeln!(out, "{}", styled(FAINT, what))
    }
}

impl PlanReport {
    /// The plan on one line.
    fn in_words(&self) -> String {
        let device = |d: usize| {
            let mut how = Vec::new();
            if self.chunk[d] == 0 {
                how.push(format!("{} workers", self.workers[d]));
            }
            if self.held[d] > 0 {
                how.push(format!("holds {}", self.held[d]));
            }
            if self.streamed[d] > 0 {
                how.push(format!(
                    "streams {} by {} over {} queues",
                    self.streamed[d], self.chunk[d], self.queues[d]
                ));
            }
            let share = Percent(self.shares[d]);
            format!("{} {share} ({})", self.devices[d], how.join(", "))
        };
        let busy = (0..self.devices.len()).filter(|d| self.shares[*d] > 0.0);
        busy.map(device).collect::<Vec<_>>().join("; ")
    }
}
