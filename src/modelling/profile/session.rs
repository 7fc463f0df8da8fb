//! A profiling session: measuring a list of runs within a time budget.
//!
//! Every row is kept as soon as it is measured, and a run that a dataset already
//! has is not measured again, so an interrupted session can be continued.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use pdawl_profiler::Sample;
use pdawl_profiler::dataset::{Appender, DatasetError, Key};

use super::configuration::ModelKind;
use super::error::ProfileError;
use super::machine::ProfiledMachine;
use super::run::{PreparedRun, Settings};
use crate::model::{Case, Descriptors, prior};

/// When so many runs have failed and none has succeeded, the session fails.
const HOPELESS: usize = 3;

/// Where rows are kept.
pub trait RowStore {
    /// Whether a run has been measured before.
    fn contains(&self, key: &Key) -> bool;

    /// Keeps a row.
    ///
    /// # Errors
    /// When it cannot be written.
    fn append(&mut self, row: &Sample) -> Result<(), DatasetError>;
}

impl RowStore for Appender {
    fn contains(&self, key: &Key) -> bool {
        Self::contains(self, key)
    }

    fn append(&mut self, row: &Sample) -> Result<(), DatasetError> {
        Self::append(self, row)
    }
}

/// Runs that are measured within one budget.
pub struct ProfilingSession<'a> {
    pub profiled: &'a mut ProfiledMachine,
    pub settings: Settings,
    /// Set from outside: end now, with the rows that there are.
    pub stop: &'a AtomicBool,
    pub summary: SessionSummary,
    budget: Budget,
    began: Instant,
    rows: &'a mut dyn RowStore,
    /// Called for each run before it begins.
    watch: &'a mut dyn FnMut(&SessionProgress),
    /// Of runs on CPUs and on GPUs: the times of one say nothing of the other.
    expectations: [Expectation; 2],
}

/// The time that may pass.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    pub whole: Duration,
    /// The part of it that passes elsewhere: before the session, or after it.
    pub elsewhere: Duration,
}

impl From<Duration> for Budget {
    fn from(whole: Duration) -> Self {
        Self {
            whole,
            elsewhere: Duration::ZERO,
        }
    }
}

/// How far a session has come.
#[derive(Clone, Copy)]
pub struct SessionProgress<'r> {
    /// The run that begins.
    pub run: &'r PreparedRun,
    /// Runs that are over, or were measured before.
    pub over: usize,
    /// Expected seconds until the end of the given runs, within the budget.
    pub left: f64,
    /// Seconds of the budget that are left.
    pub most: f64,
}

/// What a session has done.
#[derive(Clone, Debug, Default)]
pub struct SessionSummary {
    pub measured: usize,
    /// Runs that had been measured before.
    pub kept: usize,
    /// Runs for which there was no time.
    pub left: usize,
    /// Expected seconds of the shortest of these.
    pub shortest: Option<f64>,
    /// Runs that failed, and why.
    pub failed: Vec<String>,
    pub interrupted: bool,
    pub seconds: f64,
}

impl<'a> ProfilingSession<'a> {
    /// Begins a session. No run is begun that is not expected to end within
    /// `budget`.
    pub fn begin(
        profiled: &'a mut ProfiledMachine,
        settings: Settings,
        budget: impl Into<Budget>,
        stop: &'a AtomicBool,
        rows: &'a mut dyn RowStore,
        watch: &'a mut dyn FnMut(&SessionProgress),
    ) -> Self {
        Self {
            profiled,
            settings,
            stop,
            summary: SessionSummary::default(),
            budget: budget.into(),
            began: Instant::now(),
            rows,
            watch,
            expectations: [Expectation::default(); 2],
        }
    }

    /// Measures `runs` in their order. Runs that no longer fit into the budget are
    /// left out.
    ///
    /// A run that fails is noted and skipped, since a driver may refuse a size or a
    /// setting. If the first runs all fail, the session fails.
    ///
    /// # Errors
    /// When a row cannot be kept, and when the first runs all fail.
    pub fn measure(&mut self, mut runs: Vec<PreparedRun>) -> Result<(), ProfileError> {
        let all = runs.len();
        runs.retain(|run| !self.rows.contains(&run.key(self.profiled)));
        self.summary.kept += all - runs.len();
        let simulated = self.profiled.is_simulated();
        let guesses: Vec<f64> = (runs.iter())
            .map(|run| guess(&run.case, &run.descriptors, run.steps, simulated))
            .collect();
        for (index, (run, guess)) in runs.iter().zip(&guesses).enumerate() {
            if self.is_interrupted() {
                self.summary.left += runs.len() - index;
                break;
            }
            let left = self.seconds_left();
            let expected = self.expectations[at(run)].of(*guess);
            if expected > left {
                self.leave_out(expected);
                continue;
            }
            let to_come = runs.iter().zip(&guesses).skip(index);
            let to_come = to_come.map(|(run, guess)| self.expectations[at(run)].of(*guess));
            let SessionSummary {
                measured,
                kept,
                left: skipped,
                failed,
                ..
            } = &self.summary;
            (self.watch)(&SessionProgress {
                run,
                over: measured + kept + skipped + failed.len(),
                left: to_come.sum::<f64>().min(left),
                most: left,
            });
            let before = Instant::now();
            match run.measure(self.profiled, self.settings.seed, self.stop) {
                Ok(Some(sample)) => {
                    self.rows.append(&sample)?;
                    self.summary.measured += 1;
                }
                Ok(None) => {
                    self.summary.interrupted = true;
                    self.summary.left += runs.len() - index;
                    break;
                }
                Err(error) => {
                    // The device may not be usable after a failure.
                    self.profiled.close();
                    self.summary.failed.push(error.to_string());
                    if self.summary.measured == 0 && self.summary.failed.len() >= HOPELESS {
                        return Err(error);
                    }
                }
            }
            self.expectations[at(run)].learn(*guess, before.elapsed().as_secs_f64());
        }
        Ok(())
    }

    /// Ends the session.
    ///
    /// # Errors
    /// When the budget was too small for any run.
    pub fn finish(mut self) -> Result<SessionSummary, ProfileError> {
        self.summary.seconds = self.began.elapsed().as_secs_f64();
        let nothing = self.summary.measured + self.summary.kept == 0;
        match self.summary.shortest {
            Some(shortest) if nothing && !self.summary.interrupted => Err(ProfileError::Budget {
                budget: self.budget.whole,
                shortest,
            }),
            _ => Ok(self.summary),
        }
    }

    /// Whether the session is to end; remembers that.
    pub(super) fn is_interrupted(&mut self) -> bool {
        self.summary.interrupted |= self.stop.load(Ordering::Relaxed);
        self.summary.interrupted
    }

    pub(super) fn seconds_left(&self) -> f64 {
        let passed = self.budget.elsewhere + self.began.elapsed();
        self.budget.whole.as_secs_f64() - passed.as_secs_f64()
    }

    /// Notes a run, or a matrix with all of its runs, for which there is no time.
    pub(super) fn leave_out(&mut self, expected: f64) {
        let shortest = self.summary.shortest.unwrap_or(f64::INFINITY);
        self.summary.shortest = Some(shortest.min(expected));
        self.summary.left += 1;
    }
}

fn at(run: &PreparedRun) -> usize {
    usize::from(run.device_use.kind == ModelKind::Gpu)
}

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
