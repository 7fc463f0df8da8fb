//! Plans of strategies whose shares never change: what is fixed is then the length of
//! chunks.

use super::candidate::CandidateDevice;
use super::configured::ConfiguredDevice;
use super::step::StepPlanner;
use crate::balance::fixed::STREAM_CHUNKS;
use crate::balance::pdawl::{Forecast, Planner};
use crate::balance::{DeviceView, Setup, Strategy, StrategyError};
use crate::model::case::StepWork;

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
