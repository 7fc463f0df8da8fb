//! The plan of a step under one configuration: the balancer's [`Planner`].

use super::configured::ConfiguredDevice;
use super::divide::{Curves, DivisionSearch, Participants};
use super::step_model::StepModel;
use crate::balance::StepPlan;
use crate::balance::pdawl::{Forecast, Planner};
use crate::model::case::StepWork;

/// Corrections of a division by its exact prediction: curves are straight between their
/// points.
const CORRECTIONS: u32 = 3;

/// A plan with more participants must be predicted to take less than this part of the
/// time.
const PAYS: f64 = 0.998;

/// Plans steps of one workload on the devices of a run, as configured.
pub struct StepPlanner {
    model: StepModel,
    curves: Curves,
}

impl StepPlanner {
    /// `workers` in the order of the run's devices.
    pub fn new(work: StepWork, workers: Vec<ConfiguredDevice>) -> Self {
        let model = StepModel::new(work, workers);
        let curves = Curves::of(&model);
        Self { model, curves }
    }

    /// The planner for the memory capacities that a run found, in the order of devices.
    pub fn within(self, capacities: &[Option<u64>]) -> Self {
        let StepModel { work, workers, .. } = self.model;
        let workers = workers.into_iter().enumerate();
        let workers = workers.map(|(d, worker)| match capacities.get(d) {
            Some(Some(capacity)) => worker.with_capacity(*capacity),
            _ => worker,
        });
        Self::new(work, workers.collect())
    }

    /// The devices as configured.
    pub fn workers(&self) -> &[ConfiguredDevice] {
        &self.model.workers
    }

    pub fn work(&self) -> &StepWork {
        &self.model.work
    }

    /// The sets of participants to compare: each device by itself first, then several;
    /// without streams first.
    fn participant_sets(&self, slowdown: &[f64]) -> Vec<Participants> {
        let count = self.model.workers.len();
        let own = |d: usize| self.model.workers[d].has_own_memory();
        let alive = |d: usize| slowdown[d].is_finite();
        let overflows =
            |d: usize| own(d) && self.model.workers[d].capacity() < self.model.work.units;
        let mut participant_sets = Vec::new();
        let mut add = |takes_part: &dyn Fn(usize) -> bool, streams: &dyn Fn(usize) -> bool| {
            let takes_part: Vec<bool> = (0..count).map(|d| takes_part(d) && alive(d)).collect();
            let streams = (0..count)
                .map(|d| takes_part[d] && overflows(d) && streams(d))
                .collect();
            let participants = Participants {
                takes_part,
                streams,
            };
            if participants.takes_part.contains(&true) && !participant_sets.contains(&participants)
            {
                participant_sets.push(participants);
            }
        };
        for lone in 0..count {
            add(&|d| d == lone, &|_| true);
        }
        add(&|d| !own(d), &|_| false);
        add(&own, &|_| false);
        add(&|_| true, &|_| false);
        for lone in (0..count).filter(|d| own(*d)) {
            add(&|d| !own(d) || d == lone, &|_| false);
            add(&|d| !own(d) || d == lone, &|_| true);
            add(&|_| true, &|d| d == lone);
        }
        add(&own, &|_| true);
        add(&|_| true, &|_| true);
        participant_sets
    }

    /// The best division among these participants.
    fn best_of(&self, participants: &Participants, slowdown: &[f64]) -> Option<Forecast> {
        let search = DivisionSearch::new(&self.model, &self.curves, participants, slowdown);
        let mut scale = vec![1.0; slowdown.len()];
        let mut best: Option<Forecast> = None;
        for _ in 0..CORRECTIONS {
            let division = search.divide(&scale)?;
            let forecast = self.model.expect(&division.plan, slowdown);
            for (d, expected) in forecast.devices.iter().enumerate() {
                let (held, pooled) = (division.plan.held[d], division.plan.pooled[d]);
                // A device with a full memory cannot take more, whatever its rate.
                let is_full = self.model.workers[d].has_own_memory()
                    && pooled == 0
                    && held == self.model.workers[d].capacity();
                if held + pooled > 0 && !is_full {
                    scale[d] *= (expected.seconds / division.seconds).clamp(0.5, 2.0);
                }
            }
            if best
                .as_ref()
                .is_none_or(|best| forecast.step_seconds < best.step_seconds)
            {
                best = Some(forecast);
            }
        }
        best
    }
}

impl Planner for StepPlanner {
    fn forecast(&self, slowdown: &[f64]) -> Option<Forecast> {
        let mut best: Option<Forecast> = None;
        for participants in self.participant_sets(slowdown) {
            let Some(forecast) = self.best_of(&participants, slowdown) else {
                continue;
            };
            if best
                .as_ref()
                .is_none_or(|b| forecast.step_seconds < PAYS * b.step_seconds)
            {
                best = Some(forecast);
            }
        }
        best
    }

    fn expect(&self, plan: &StepPlan, slowdown: &[f64]) -> Forecast {
        self.model.expect(plan, slowdown)
    }
}
