//! Finds the best fixed shares of a run by trial runs.

use std::sync::atomic::AtomicBool;

use super::{DividedRun, Error};
use crate::balance::{Fixed, Setup};
use crate::engine::Outcome;
use crate::engine::corun::{Options, Tracing};
use crate::engine::oracle::{Unfound, best_shares};

/// Steps of a trial run on real devices, to limit its duration.
const TRIAL_STEPS: u32 = 8;

impl DividedRun<'_> {
    /// Runs with fixed shares until it has found the best ones, and then with these.
    pub(super) fn run_best(
        &mut self,
        stop: &AtomicBool,
        progress: &mut dyn FnMut(u32, u32),
    ) -> Result<Outcome, Error> {
        let mut options = Options {
            verify: false,
            trace: Tracing::None,
            each_step: None,
            // Every trial has as many steps.
            tolerance: None,
            ..self.options
        };
        if !self.session.is_simulated() {
            options.supersteps = options.supersteps.at_most(TRIAL_STEPS);
        }
        let best = best_shares(|make| {
            let make = |setup: &Setup| Ok(make(setup));
            self.corun(make, options, None, stop, &mut |_, _| {})
        });
        let best = match best {
            Ok(best) => best,
            Err(Unfound::Interrupted(outcome)) => return Ok(*outcome),
            Err(Unfound::Failed(error)) => return Err(error),
            Err(Unfound::Nothing) => return Err(Error::NoShares),
        };
        let shares: Vec<String> = (best.shares.iter())
            .map(|share| format!("{share:.4}"))
            .collect();
        self.notes.push(format!(
            "the oracle's shares are {}, the best of {} trial runs",
            shares.join(", "),
            best.trials
        ));
        let make = |setup: &Setup| -> Result<_, Error> {
            Ok(Box::new(Fixed::new("oracle", setup, &best.shares)) as _)
        };
        self.corun(make, self.options, None, stop, progress)
    }
}
