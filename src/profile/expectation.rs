//! How long runs will take: a guess before the first, corrected by those that
//! were done. Pure.

use crate::model::{Case, Descriptors, prior};

/// Bytes a second at which grids are filled with their first version.
const FILL: f64 = 1.5e9;

/// Seconds that a run on a real machine has beside its grids and steps.
const REAL: f64 = 5e-3;

/// The same for a simulated one, and what simulating a launch takes.
const SIMULATED: f64 = 5e-4;
const COMMANDS: f64 = 2e-5;

/// Seconds that a run should take whoever waits for it: everything, not only
/// its steps.
pub fn guess(case: &Case, descriptors: &Descriptors, steps: u32, simulated: bool) -> f64 {
    let steps = f64::from(steps);
    let launches = case.part.windows() + case.part.chunks();
    if simulated {
        return SIMULATED + steps * launches as f64 * COMMANDS;
    }
    let grids = 2.0 * case.work.units as f64 * case.work.unit_bytes as f64;
    REAL + grids / FILL + steps * prior::seconds(case, descriptors)
}

/// What was guessed so far, and what it took.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Expectation {
    guessed: f64,
    took: f64,
}

impl Expectation {
    /// A run with this guess took so many seconds.
    pub fn learn(&mut self, guessed: f64, took: f64) {
        self.guessed += guessed;
        self.took += took;
    }

    /// Seconds of runs with these guesses together.
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
