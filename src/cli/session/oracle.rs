//! The oracle: fixed shares are measured until the best are found.

use std::sync::atomic::AtomicBool;

use pdawl::balance::{Balancer, Fixed, Setup, Sweep};
use pdawl::engine::Outcome;
use pdawl::report::bench::median;

use super::{Ground, Session};
use crate::cli::failure::Failure;

/// Steps of a trial run of the oracle on real devices, where each takes time.
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
        if let Ground::Real(_) = self.ground {
            options.steps = options.steps.min(TRIAL_STEPS);
        }
        let mut sweep: Option<Sweep> = None;
        let mut trials = 0;
        while sweep.as_mut().is_none_or(|sweep| sweep.next().is_some()) {
            let make = &mut |setup: &Setup| -> Result<Box<dyn Balancer>, String> {
                let sweep = sweep.get_or_insert_with(|| Sweep::new(setup));
                let shares = sweep.next().ok_or("there are no shares to try")?;
                Ok(Box::new(Fixed::new("oracle", setup, &shares)))
            };
            let outcome = self.corun(make, options, stop, &mut |_, _| {})?;
            if outcome.interrupted {
                return Ok(Swept::Interrupted(Box::new(outcome)));
            }
            // The first step moves data that later ones find in place.
            let seconds: Vec<f64> = outcome.steps.iter().map(|s| s.seconds).collect();
            if let Some(sweep) = &mut sweep {
                sweep.tell(median(&seconds).unwrap_or(f64::INFINITY));
            }
            trials += 1;
        }
        let best = sweep.as_ref().and_then(Sweep::best);
        let (shares, _) = best.ok_or_else(|| {
            Failure::failed(
                "the oracle found no shares",
                "another --strategy, such as dawl",
            )
        })?;
        let told: Vec<String> = shares.iter().map(|share| format!("{share:.4}")).collect();
        self.notes.push(format!(
            "the oracle's shares are {}, the best of {trials} trial runs",
            told.join(", ")
        ));
        Ok(Swept::Best(shares.to_vec()))
    }
}
