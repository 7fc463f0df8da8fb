//! Looks for the best fixed shares of a session by running.

use std::sync::atomic::AtomicBool;

use pdawl::balance::Setup;
use pdawl::engine::Outcome;
use pdawl::engine::oracle::{Unfound, best_shares};

use super::Session;
use crate::cli::failure::Failure;

/// Steps of a trial run on real devices, where each takes time.
const TRIAL_STEPS: u32 = 8;

/// How a sweep ended.
pub(super) enum Swept {
    Best(Vec<f64>),
    Interrupted(Box<Outcome>),
}

impl Session {
    /// Measures fixed shares until the best are found.
    pub(super) fn sweep(&mut self, stop: &AtomicBool) -> Result<Swept, Failure> {
        let mut options = self.options;
        options.verify = false;
        options.trace = false;
        if !self.machine.machine.simulated {
            options.steps = options.steps.min(TRIAL_STEPS);
        }
        let best = best_shares(|make| {
            let make = |setup: &Setup| Ok(make(setup));
            self.corun(make, options, stop, &mut |_, _| {})
        });
        let best = match best {
            Ok(best) => best,
            Err(Unfound::Interrupted(outcome)) => return Ok(Swept::Interrupted(outcome)),
            Err(Unfound::Failed(failure)) => return Err(failure),
            Err(Unfound::Nothing) => {
                return Err(Failure::failed(
                    "the oracle found no shares",
                    "another --strategy, such as dawl",
                ));
            }
        };
        let told: Vec<String> = (best.shares.iter())
            .map(|share| format!("{share:.4}"))
            .collect();
        self.notes.push(format!(
            "the oracle's shares are {}, the best of {} trial runs",
            told.join(", "),
            best.trials
        ));
        Ok(Swept::Best(best.shares))
    }
}
