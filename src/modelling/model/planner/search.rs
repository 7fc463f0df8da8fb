//! The search for what is fixed for a run: workers of pools, chunks and queues of
//! streams.

use super::RunPlan;
use super::candidate::{CandidateDevice, MemoryKind};
use super::configured::ConfiguredDevice;
use super::step::StepPlanner;
use crate::balance::fixed::STREAM_CHUNKS;
use crate::balance::pdawl::{Forecast, Planner};
use crate::balance::{DeviceView, Setup, Strategy, StrategyError};
use crate::engine::corun::Stream;
use crate::model::case::StepWork;

/// A choice other than all cores and the engine's streams must be predicted to take
/// less than this part of the time.
const WORTH_IT: f64 = 0.99;

/// Parts of a pool's cores that are tried.
const PARTS: [f64; 3] = [0.25, 0.5, 0.75];

/// Bytes of streamed chunks that are tried, and numbers of queues.
const CHUNK_BYTES: [u64; 4] = [2 << 20, 8 << 20, 32 << 20, 128 << 20];
const QUEUES: [u32; 3] = [2, 3, 4];

/// A configuration of all candidates.
#[derive(Clone, Debug, PartialEq)]
struct Choice {
    /// Cores of pools, compute units of others.
    workers: Vec<u32>,
    stream: Stream,
}

/// What is to be planned: the work, the devices that may take part, and the strategy if its
/// shares never change. Other strategies look for the best shares.
#[derive(Clone, Copy)]
struct Question<'a> {
    work: &'a StepWork,
    candidates: &'a [CandidateDevice],
    fixed: Option<&'a Strategy>,
}

/// Plans a run of `work` on `candidates`. `None` if no device can do anything.
pub fn plan(work: &StepWork, candidates: &[CandidateDevice]) -> Option<RunPlan> {
    let is_pool = |candidate: &CandidateDevice| candidate.memory == MemoryKind::HostPool;
    let question = Question {
        work,
        candidates,
        fixed: None,
    };
    question.planned(is_pool)
}

/// Plans a run with all cores of the pools, where the user has chosen these.
pub fn plan_with_all_cores(work: &StepWork, candidates: &[CandidateDevice]) -> Option<RunPlan> {
    plan_by(&Strategy::Dawl, work, candidates)
}

/// Plans a run by a strategy with all cores of the pools. `None` if no device can do
/// anything, or one that the strategy needs is missing.
pub fn plan_by(
    strategy: &Strategy,
    work: &StepWork,
    candidates: &[CandidateDevice],
) -> Option<RunPlan> {
    let question = Question {
        work,
        candidates,
        fixed: Some(strategy).filter(|strategy| are_fixed(strategy)),
    };
    question.planned(|_| false)
}

impl Question<'_> {
    /// Plans a run, with fewer workers of the candidates that `may_shrink`.
    fn planned(&self, may_shrink: impl Fn(&CandidateDevice) -> bool) -> Option<RunPlan> {
        let Self {
            work, candidates, ..
        } = *self;
        let everything = Choice {
            workers: candidates.iter().map(|m| m.compute_units).collect(),
            stream: Stream::default(),
        };
        let mut best = ConfigurationForecast::of(self, everything)?;
        for pool in (0..candidates.len()).filter(|d| may_shrink(&candidates[*d])) {
            let fewer = fewer_workers(candidates[pool].compute_units);
            let choices = fewer.into_iter().map(|workers| {
                let mut choice = best.choice.clone();
                choice.workers[pool] = workers;
                choice
            });
            // A run cannot get back cores that it left out, so the gain must exceed the
            // model's error.
            let worth_it = WORTH_IT.min(1.0 - candidates[pool].time.spread());
            best = best.clone().or_better(self, choices, worth_it);
        }
        if best.streams() {
            let chunks = CHUNK_BYTES.map(|bytes| (bytes / work.unit_bytes).max(1));
            for stream in [
                chunks
                    .map(|chunk| (Some(chunk), best.choice.stream.queues))
                    .to_vec(),
                QUEUES.map(|queues| (None, Some(queues))).to_vec(),
            ] {
                let choices = stream.into_iter().map(|(chunk, queues)| {
                    let mut choice = best.choice.clone();
                    choice.stream.chunk = chunk.or(choice.stream.chunk);
                    choice.stream.queues = queues;
                    choice
                });
                best = best.clone().or_better(self, choices, WORTH_IT);
            }
        }
        Some(best.into_plan(candidates))
    }
}

/// Numbers of workers below `cores`, the greatest first: it wins among equally good
/// ones.
fn fewer_workers(cores: u32) -> Vec<u32> {
    let part = |part: f64| (f64::from(cores) * part).round() as u32;
    let mut fewer: Vec<u32> = PARTS.iter().map(|p| part(*p)).collect();
    fewer.push(cores.saturating_sub(1));
    fewer.retain(|workers| (1..cores).contains(workers));
    fewer.sort_unstable_by(|a, b| b.cmp(a));
    fewer.dedup();
    fewer
}

/// A configuration, and the best step under it.
#[derive(Clone)]
struct ConfigurationForecast {
    choice: Choice,
    workers: Vec<ConfiguredDevice>,
    forecast: Forecast,
}

impl ConfigurationForecast {
    fn of(question: &Question, choice: Choice) -> Option<Self> {
        let Question {
            work,
            candidates,
            fixed,
        } = *question;
        let workers = configured(work, candidates, &choice.workers, choice.stream)?;
        let (workers, forecast) = match fixed {
            Some(strategy) => divided(strategy, work, candidates, workers).ok()?,
            None => {
                let planner = StepPlanner::new(*work, workers);
                let forecast = planner.forecast(&vec![1.0; candidates.len()])?;
                (planner.workers().to_vec(), forecast)
            }
        };
        Some(Self {
            choice,
            workers,
            forecast,
        })
    }

    /// The best of `choices`, if it takes less than `worth_it` of this one's
    /// time.
    fn or_better(
        self,
        question: &Question,
        choices: impl Iterator<Item = Choice>,
        worth_it: f64,
    ) -> Self {
        let seconds = |found: &Self| found.forecast.step_seconds;
        let others = choices
            .filter(|choice| *choice != self.choice)
            .filter_map(|choice| Self::of(question, choice));
        let best = others.min_by(|a, b| seconds(a).total_cmp(&seconds(b)));
        match best {
            Some(best) if seconds(&best) < worth_it * seconds(&self) => best,
            _ => self,
        }
    }

    fn streams(&self) -> bool {
        let mut pooled = self.forecast.plan.pooled.iter().zip(&self.workers);
        pooled.any(|(units, worker)| *units > 0 && worker.has_own_memory())
    }

    fn into_plan(self, candidates: &[CandidateDevice]) -> RunPlan {
        RunPlan {
            devices: candidates.iter().map(|m| m.name.clone()).collect(),
            workers: self.choice.workers,
            stream: self.choice.stream,
            chunks: chunks(&self.workers),
            queues: queues(&self.workers),
            forecast: self.forecast,
        }
    }
}

/// The candidates under a configuration. `None` if one's memory is too small.
pub fn configured(
    work: &StepWork,
    candidates: &[CandidateDevice],
    workers: &[u32],
    stream: Stream,
) -> Option<Vec<ConfiguredDevice>> {
    (candidates.iter().zip(workers))
        .map(|(candidate, workers)| ConfiguredDevice::new(candidate, *workers, stream, work))
        .collect()
}

/// Units of a streamed chunk; 0 for devices that compute in host memory.
pub fn chunks(workers: &[ConfiguredDevice]) -> Vec<u64> {
    let chunk = |w: &ConfiguredDevice| w.division().map_or(0, |division| division.chunk);
    workers.iter().map(chunk).collect()
}

/// Queues to stream over; 0 for devices that compute in host memory.
pub fn queues(workers: &[ConfiguredDevice]) -> Vec<u32> {
    let queues = |w: &ConfiguredDevice| w.division().map_or(0, |division| division.queues);
    workers.iter().map(queues).collect()
}

/// Whether the shares of a strategy never change.
pub fn are_fixed(strategy: &Strategy) -> bool {
    matches!(strategy, Strategy::Cpu | Strategy::Gpu | Strategy::Fixed(_))
}

/// The devices with the chunks that a run by such a strategy has, and the forecast of each
/// of its steps.
///
/// # Errors
/// When a device that the strategy needs is missing.
pub fn divided(
    strategy: &Strategy,
    work: &StepWork,
    candidates: &[CandidateDevice],
    workers: Vec<ConfiguredDevice>,
) -> Result<(Vec<ConfiguredDevice>, Forecast), StrategyError> {
    let setup = Setup {
        units: work.units,
        steps: 1,
        devices: (candidates.iter().zip(&workers))
            .map(|(candidate, worker)| DeviceView {
                kind: candidate.kind,
                compute_units: candidate.compute_units,
                capacity: worker.has_own_memory().then(|| worker.capacity()),
                slots: worker.division().map(|division| division.slots),
                stream_limit: None,
                min_chunk: worker.least_chunk(work),
            })
            .collect(),
        direct: None,
        published: 0.0,
    };
    let plan = strategy.build(&setup)?.plan(0);
    let workers: Vec<ConfiguredDevice> = (workers.into_iter().zip(&plan.pooled))
        .map(|(worker, pooled)| {
            let chunk = pooled.div_ceil(STREAM_CHUNKS).max(worker.least_chunk(work));
            worker.with_chunk(chunk).at_once()
        })
        .collect();
    let planner = StepPlanner::new(*work, workers);
    let forecast = planner.expect(&plan, &vec![1.0; candidates.len()]);
    Ok((planner.workers().to_vec(), forecast))
}
