//! Finds the best fixed shares of a session by trial runs.

use std::sync::atomic::AtomicBool;

use pdawl::balance::Setup;
use pdawl::engine::Outcome;
use pdawl::engine::corun::Tracing;
use pdawl::engine::oracle::{Unfound, best_shares};

use super::Session;
use crate::failure::Failure;

/// Steps of a trial run on real devices, to limit its duration.
const TRIAL_STEPS: u32 = 8;

/// The result of a search for the best shares.
pub(super) enum SweepResult {
    Best(Vec<f64>),
    Interrupted(Box<Outcome>),
}

impl Session {
    /// Runs with fixed shares until it has found the best ones.
    pub(super) fn search_shares(&mut self, stop: &AtomicBool) -> Result<SweepResult, Failure> {
        let mut options = self.options;
        options.verify = false;
        options.trace = Tracing::None;
        // Every trial has as many steps.
        options.tolerance = None;
        if !self.machine.machine.simulated {
            options.supersteps = options.supersteps.at_most(TRIAL_STEPS);
        }
        let best = best_shares(|make| {
            let make = |setup: &Setup| Ok(make(setup));
            self.corun(make, options, stop, &mut |_, _| {})
        });
        let best = match best {
            Ok(best) => best,
            Err(Unfound::Interrupted(outcome)) => return Ok(SweepResult::Interrupted(outcome)),
            Err(Unfound::Failed(failure)) => return Err(failure),
            Err(Unfound::Nothing) => {
                return Err(Failure::failed(
                    "the oracle found no shares",
                    "another --strategy, such as dawl",
                ));
            }
        };
        let shares: Vec<String> = (best.shares.iter())
            .map(|share| format!("{share:.4}"))
            .collect();
        self.notes.push(format!(
            "the oracle's shares are {}, the best of {} trial runs",
            shares.join(", "),
            best.trials
        ));
        Ok(SweepResult::Best(best.shares))
    }
}
