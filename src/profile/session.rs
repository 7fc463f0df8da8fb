//! Going through many runs within a time budget.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use pdawl_profiler::Sample;

use super::configuration::ModelKind;
use super::error::ProfileError;
use super::expectation::{Expectation, guess};
use super::machine::ProfiledMachine;
use super::run::{Prepared, Settings, measure};
use super::schedule::ProfileRun;

/// When so many runs failed and none succeeded, the others will not either.
const HOPELESS: usize = 3;

/// How runs are gone through.
pub struct ProfilingSession<'a> {
    pub profiled: &'a mut ProfiledMachine,
    pub settings: Settings,
    /// No run is begun that is not expected to end within this time.
    pub budget: Duration,
    /// Set from outside: end now, with what there is.
    pub stop: &'a AtomicBool,
    /// Told of each run before it begins.
    pub watch: &'a mut dyn FnMut(&SessionProgress),
    /// Given each row as soon as it is measured.
    pub keep: &'a mut dyn FnMut(&Sample) -> Result<(), ProfileError>,
}

/// How far it has come.
#[derive(Clone, Copy, Debug)]
pub struct SessionProgress<'r> {
    /// The run that begins.
    pub run: &'r ProfileRun,
    /// Runs that are over, and all.
    pub over: usize,
    pub runs: usize,
    /// Expected seconds until the end, within the budget.
    pub left: f64,
}

/// What came of it.
#[derive(Clone, Debug, Default)]
pub struct SessionSummary {
    pub measured: usize,
    /// Runs for which there was no time.
    pub left: usize,
    /// Expected seconds of the shortest of these.
    pub shortest: Option<f64>,
    /// Runs that failed, and why.
    pub failed: Vec<String>,
    pub interrupted: bool,
    pub seconds: f64,
}

impl ProfilingSession<'_> {
    /// Does `runs` in their order; those that no longer fit into the budget
    /// are left out.
    ///
    /// A run that fails is noted and left behind, since a size or a setting
    /// can be what a driver does not bear; not so if all fail.
    ///
    /// # Errors
    /// When `keep` fails, when the first runs all fail, and when the budget is
    /// too small for any.
    pub fn carry_out(self, runs: &[ProfileRun]) -> Result<SessionSummary, ProfileError> {
        let began = Instant::now();
        let mut summary = SessionSummary::default();
        let guesses = self.guesses(runs, &mut summary);
        let mut expectations = [Expectation::default(); 2];
        for (over, (run, guess)) in runs.iter().zip(&guesses).enumerate() {
            if self.stop.load(Ordering::Relaxed) {
                summary.interrupted = true;
                summary.left += runs.len() - over;
                break;
            }
            let Some(guess) = *guess else {
                continue;
            };
            let left = self.budget.as_secs_f64() - began.elapsed().as_secs_f64();
            let expected = expectations[at(run)].of(guess);
            if expected > left {
                summary.left += 1;
                let shortest = summary.shortest.unwrap_or(f64::INFINITY);
                summary.shortest = Some(shortest.min(expected));
                continue;
            }
            let to_come = runs.iter().zip(&guesses).skip(over);
            let to_come =
                to_come.map(|(run, guess)| expectations[at(run)].of(guess.unwrap_or(0.0)));
            (self.watch)(&SessionProgress {
                run,
                over,
                runs: runs.len(),
                left: to_come.sum::<f64>().min(left),
            });
            let before = Instant::now();
            match measure(self.profiled, run, self.settings, self.stop) {
                Ok(Some(sample)) => {
                    (self.keep)(&sample)?;
                    summary.measured += 1;
                }
                // The stop is seen at the loop's begin, or by its end.
                Ok(None) => {
                    summary.interrupted = true;
                    summary.left += runs.len() - over;
                    break;
                }
                Err(error) => {
                    // What failed may not be usable any more.
                    self.profiled.close();
                    summary.failed.push(error.to_string());
                    if summary.measured == 0 && summary.failed.len() >= HOPELESS {
                        return Err(error);
                    }
                }
            }
            expectations[at(run)].learn(guess, before.elapsed().as_secs_f64());
        }
        summary.seconds = began.elapsed().as_secs_f64();
        match summary.shortest {
            Some(shortest) if summary.measured == 0 && !summary.interrupted => {
                Err(ProfileError::Budget {
                    budget: self.budget,
                    shortest,
                })
            }
            _ => Ok(summary),
        }
    }

    /// Seconds that each run may take, `None` for one that cannot be.
    fn guesses(&self, runs: &[ProfileRun], summary: &mut SessionSummary) -> Vec<Option<f64>> {
        (runs.iter())
            .map(
                |run| match Prepared::new(self.profiled, &run.configuration, self.settings) {
                    Ok(prepared) => Some(guess(
                        &prepared.case,
                        &prepared.descriptors,
                        prepared.steps,
                        self.profiled.is_simulated(),
                    )),
                    Err(error) => {
                        summary.failed.push(error.to_string());
                        None
                    }
                },
            )
            .collect()
    }
}

/// What CPU runs take tells nothing of GPU runs.
fn at(run: &ProfileRun) -> usize {
    match run.configuration.kind {
        ModelKind::Cpu => 0,
        ModelKind::Gpu => 1,
    }
}
