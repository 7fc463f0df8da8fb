//! What is chosen once a run: workers of pools, chunks and queues of streams.

use super::RunPlan;
use super::member::{Member, Seat};
use super::step::StepPlanner;
use super::worker::Worker;
use crate::balance::pdawl::{Forecast, Planner};
use crate::engine::corun::Stream;
use crate::model::case::Work;

/// Other choices than all cores and the engine's streams must be predicted to
/// take less than this part of the time.
const WORTH_IT: f64 = 0.99;

/// Parts of a pool's cores that are tried.
const PARTS: [f64; 3] = [0.25, 0.5, 0.75];

/// Bytes of streamed chunks that are tried, and numbers of queues.
const CHUNK_BYTES: [u64; 4] = [2 << 20, 8 << 20, 32 << 20, 128 << 20];
const QUEUES: [u32; 3] = [2, 3, 4];

/// A configuration of all members.
#[derive(Clone, Debug, PartialEq)]
struct Choice {
    /// Cores of pools, compute units of others.
    workers: Vec<u32>,
    stream: Stream,
}

/// Plans a run of `work` on `members`. `None` if no device can do anything.
pub fn plan(work: &Work, members: &[Member]) -> Option<RunPlan> {
    let is_pool = |member: &Member| member.seat == Seat::Pool;
    planned(work, members, is_pool)
}

/// The same with all of the pools' cores, where somebody else has chosen these.
pub fn plan_with_all_cores(work: &Work, members: &[Member]) -> Option<RunPlan> {
    planned(work, members, |_| false)
}

/// Plans a run, with fewer workers of the members that `may_shrink`.
fn planned(
    work: &Work,
    members: &[Member],
    may_shrink: impl Fn(&Member) -> bool,
) -> Option<RunPlan> {
    let everything = Choice {
        workers: members.iter().map(|m| m.compute_units).collect(),
        stream: Stream::default(),
    };
    let mut best = Found::of(work, members, everything)?;
    for pool in (0..members.len()).filter(|d| may_shrink(&members[*d])) {
        let fewer = fewer_workers(members[pool].compute_units);
        let choices = fewer.into_iter().map(|workers| {
            let mut choice = best.choice.clone();
            choice.workers[pool] = workers;
            choice
        });
        // Cores that are left out cannot be had back in the run: the gain must
        // be more than what the model may be wrong by.
        let worth_it = WORTH_IT.min(1.0 - members[pool].time.spread());
        best = best.clone().or_better(work, members, choices, worth_it);
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
            best = best.clone().or_better(work, members, choices, WORTH_IT);
        }
    }
    Some(best.into_plan(members))
}

/// Numbers of workers below `cores`, the most first: of equally good ones that
/// one is taken.
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
struct Found {
    choice: Choice,
    workers: Vec<Worker>,
    forecast: Forecast,
}

impl Found {
    fn of(work: &Work, members: &[Member], choice: Choice) -> Option<Self> {
        let workers = seated(work, members, &choice.workers, choice.stream)?;
        let planner = StepPlanner::new(work.clone(), workers);
        let forecast = planner.forecast(&vec![1.0; members.len()])?;
        Some(Self {
            choice,
            workers: planner.workers().to_vec(),
            forecast,
        })
    }

    /// The best of `choices`, if it takes less than `worth_it` of this one's
    /// time.
    fn or_better(
        self,
        work: &Work,
        members: &[Member],
        choices: impl Iterator<Item = Choice>,
        worth_it: f64,
    ) -> Self {
        let seconds = |found: &Self| found.forecast.step_seconds;
        let others = choices
            .filter(|choice| *choice != self.choice)
            .filter_map(|choice| Self::of(work, members, choice));
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

    fn into_plan(self, members: &[Member]) -> RunPlan {
        RunPlan {
            devices: members.iter().map(|m| m.name.clone()).collect(),
            workers: self.choice.workers,
            stream: self.choice.stream,
            chunks: chunks(&self.workers),
            queues: queues(&self.workers),
            forecast: self.forecast,
        }
    }
}

/// The members under a configuration. `None` if one's memory is too small.
pub fn seated(
    work: &Work,
    members: &[Member],
    workers: &[u32],
    stream: Stream,
) -> Option<Vec<Worker>> {
    (members.iter().zip(workers))
        .map(|(member, workers)| Worker::new(member, *workers, stream, work))
        .collect()
}

/// Units of a streamed chunk; 0 for those who compute on host memory.
pub fn chunks(workers: &[Worker]) -> Vec<u64> {
    let chunk = |w: &Worker| w.division().map_or(0, |division| division.chunk);
    workers.iter().map(chunk).collect()
}

/// Queues to stream over; 0 likewise.
pub fn queues(workers: &[Worker]) -> Vec<u32> {
    let queues = |w: &Worker| w.division().map_or(0, |division| division.queues);
    workers.iter().map(queues).collect()
}
