//! The expected duration of runs: an estimate before the first run, corrected by the
//! runs that were made. Pure.

use crate::model::{Case, Descriptors, prior};

/// Bytes a second at which grids are filled with their first version.
const FILL: f64 = 1.5e9;

/// Seconds of a run on a real machine beside filling its grids and its steps.
const REAL: f64 = 5e-3;

/// Seconds of a simulated run, and of simulating a launch.
const SIMULATED: f64 = 5e-4;
const COMMANDS: f64 = 2e-5;

/// Expected seconds of a whole run, not only of its steps.
pub fn guess(case: &Case, descriptors: &Descriptors, steps: u32, simulated: bool) -> f64 {
    let steps = f64::from(steps);
    let launches = case.part.windows() + case.part.chunks();
    if simulated {
        return SIMULATED + steps * launches as f64 * COMMANDS;
    }
    let grids = 2.0 * case.work.units as f64 * case.work.unit_bytes as f64;
    REAL + grids / FILL + steps * prior::seconds(case, descriptors)
}

/// The estimated and the measured durations so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Expectation {
    guessed: f64,
    took: f64,
}

impl Expectation {
    /// Notes that a run with the estimate `guessed` took `took` seconds.
    pub fn learn(&mut self, guessed: f64, took: f64) {
        self.guessed += guessed;
        self.took += took;
    }

    /// Corrected seconds of runs with these estimates together.
    pub fn of(&self, guesses: f64) -> f64 {
        match self.guessed > 0.0 {
            true => guesses * self.took / self.guessed,
            false => guesses,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guesses_are_corrected_by_what_runs_took() {
        let mut expectation = Expectation::default();
        assert_eq!(expectation.of(3.0), 3.0);
        expectation.learn(1.0, 4.0);
        assert_eq!(expectation.of(3.0), 12.0);
        expectation.learn(3.0, 4.0);
        assert_eq!(expectation.of(3.0), 6.0);
    }
}
