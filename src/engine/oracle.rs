//! The best fixed shares, found by running: what every balancer is measured
//! against.

use super::Outcome;
use crate::balance::{Balancer, Fixed, Setup, Sweep};

/// The best fixed shares of a workload on a machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Best {
    /// One share a device.
    pub shares: Vec<f64>,
    /// Median seconds of a step with them.
    pub step_seconds: f64,
    /// Runs that it took.
    pub trials: u32,
}

/// Why there are no best shares.
#[derive(Debug)]
pub enum Unfound<E> {
    /// A trial failed.
    Failed(E),
    /// A trial was interrupted; this is its outcome.
    Interrupted(Box<Outcome>),
    /// There was nothing to try.
    Nothing,
}

/// Makes the balancer of a trial.
pub type Trial<'a> = &'a mut dyn FnMut(&Setup) -> Box<dyn Balancer>;

/// Sweeps fixed shares. `trial` opens the workload, and runs it with the
/// balancer that it is given for the setup; a run's median step counts, so that data moved in the
/// first one does not.
///
/// # Errors
/// When a trial fails or is interrupted, or when there is nothing to try.
pub fn best_shares<E>(
    mut trial: impl FnMut(Trial) -> Result<Outcome, E>,
) -> Result<Best, Unfound<E>> {
    let mut sweep: Option<Sweep> = None;
    let mut trials = 0;
    let mut shares = None;
    loop {
        if let Some(sweep) = &mut sweep {
            shares = sweep.next();
            if shares.is_none() {
                break;
            }
        }
        let outcome = trial(&mut |setup| {
            let sweep = sweep.get_or_insert_with(|| Sweep::new(setup));
            if shares.is_none() {
                shares = sweep.next();
            }
            let equal = vec![1.0; setup.devices.len()];
            Box::new(Fixed::new(
                "oracle",
                setup,
                shares.as_ref().unwrap_or(&equal),
            ))
        })
        .map_err(Unfound::Failed)?;
        if outcome.interrupted {
            return Err(Unfound::Interrupted(Box::new(outcome)));
        }
        if let Some(sweep) = &mut sweep {
            sweep.tell(outcome.median_step().unwrap_or(f64::INFINITY));
        }
        trials += 1;
    }
    let best = sweep.as_ref().and_then(Sweep::best);
    let (shares, step_seconds) = best.ok_or(Unfound::Nothing)?;
    Ok(Best {
        shares: shares.to_vec(),
        step_seconds,
        trials,
    })
}
