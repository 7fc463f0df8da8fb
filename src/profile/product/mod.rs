//! Profiles of products: generated matrices, each loaded once and multiplied in
//! a few ways, one device at a time.
//!
//! * [`design`] says which matrices and which ways; pure.
//! * [`measure`] does a run; here is who goes through all of them within a
//!   time budget.
//!
//! Matrices come in the design's order, so that whenever the time is up what
//! was measured spans the shapes; the runs of one are shuffled. Repeats go
//! through all matrices again: a machine that others slow does so for a while,
//! and repeats that follow one another would take that for the matrix's own.

pub mod design;
pub mod measure;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use fastrand::Rng;
use pdawl_profiler::Sample;
use pdawl_profiler::dataset::Key;

use super::configuration::ModelKind;
use super::design::Gpu;
use super::error::ProfileError;
use super::expectation::{Expectation, guess};
use super::machine::ProfiledMachine;
use super::session::SessionSummary;
use crate::matrix::{Control, MatrixError, MatrixSource};
use crate::model::StepWork;
use crate::workload::spmv::{Options, Spmv};
use design::device_uses;
use measure::{ProfileRun, Subject};

/// Seconds that a nonzero takes to be generated and arranged, by guess.
const LOADING: f64 = 3e-8;

/// When so many runs failed and none succeeded, the others will not either.
const HOPELESS: usize = 3;

/// What is to be measured.
pub struct Plan {
    pub matrices: Vec<MatrixSource>,
    pub kinds: Vec<ModelKind>,
    pub gpus: Vec<Gpu>,
    pub repeats: u32,
    /// Steps of each run; `None` for as many as tell enough.
    pub steps: Option<u32>,
    /// Of the order of runs, of the vectors, and of a simulation's noise.
    pub seed: u64,
    pub options: Options,
    /// Whether the part of the rows that may be irregular changes from matrix to
    /// matrix, so that a model learns what it does.
    pub varies: bool,
    /// Bytes of host memory that may be used; matrices beyond it are left out.
    pub memory: u64,
    pub budget: Duration,
}

/// How far a profile has come.
#[derive(Clone, Debug)]
pub struct SessionProgress<'a> {
    pub matrix: &'a str,
    pub device: String,
    /// Matrices that are over, and all; those of each repeat count.
    pub over: usize,
    pub matrices: usize,
}

/// Who hears of a profile.
pub struct Ears<'a> {
    pub stop: &'a AtomicBool,
    /// Told of each run before it begins.
    pub watch: &'a mut dyn FnMut(&SessionProgress),
    /// Whether a run has been measured before.
    pub is_kept: &'a mut dyn FnMut(&Key) -> bool,
    /// Given each row as soon as it is measured.
    pub keep: &'a mut dyn FnMut(&Sample) -> Result<(), ProfileError>,
}

/// What came of a profile: its summary, and rows that were there before.
pub type Done = (SessionSummary, usize);

impl Plan {
    /// Does all runs that fit into the budget.
    ///
    /// # Errors
    /// When a matrix cannot be made, `keep` fails, the first runs all fail, or
    /// the budget is too small for any.
    pub fn carry_out(
        &self,
        profiled: &mut ProfiledMachine,
        ears: &mut Ears,
    ) -> Result<Done, ProfileError> {
        let began = Instant::now();
        let mut books = Books {
            began,
            budget: self.budget,
            summary: SessionSummary::default(),
            kept: 0,
            expectations: [Expectation::default(); 3],
        };
        // A single matrix is not made anew for each repeat.
        let mut loaded: Option<(usize, Spmv)> = None;
        let rounds = (0..self.repeats).flat_map(|repeat| {
            let matrices = self.matrices.iter().enumerate();
            matrices.map(move |(number, source)| (repeat, number, source))
        });
        for (repeat, number, source) in rounds {
            if ears.stop.load(Ordering::Relaxed) {
                books.summary.interrupted = true;
                break;
            }
            if books.left() <= 0.0 {
                books.leave_out(0.0);
                continue;
            }
            let kept = loaded.take().filter(|(before, _)| *before == number);
            let spmv = match kept {
                Some((_, spmv)) => spmv,
                None => match self.load(number, source, ears, &mut books)? {
                    Some(spmv) => spmv,
                    None => continue,
                },
            };
            let subject = Subject {
                name: &format!("{} s{}", source.origin, source.seed),
                spmv: &spmv,
                work: &StepWork::of_product(&spmv),
            };
            self.runs_of((number, repeat), &subject, profiled, ears, &mut books)?;
            loaded = Some((number, spmv));
        }
        books.summary.seconds = began.elapsed().as_secs_f64();
        match books.summary.shortest {
            Some(shortest)
                if books.summary.measured + books.kept == 0 && !books.summary.interrupted =>
            {
                Err(ProfileError::Budget {
                    budget: self.budget,
                    shortest,
                })
            }
            _ => Ok((books.summary, books.kept)),
        }
    }

    /// The product of a matrix. `None` if it has no room, or on request.
    fn load(
        &self,
        number: usize,
        source: &MatrixSource,
        ears: &mut Ears,
        books: &mut Books,
    ) -> Result<Option<Spmv>, ProfileError> {
        let before = Instant::now();
        let mut control = Control {
            stop: ears.stop,
            progress: &mut |_| {},
        };
        let loaded = match source.load(&mut control) {
            Ok(loaded) => loaded,
            Err(MatrixError::Interrupted) => {
                books.summary.interrupted = true;
                return Ok(None);
            }
            Err(error) => {
                books.summary.failed.push(error.to_string());
                return Ok(None);
            }
        };
        // As it was read, as devices compute it in host memory, and its copy.
        let needed = 3 * (12 * loaded.csr.nonzeros() + 32 * u64::from(loaded.csr.rows()));
        if needed > self.memory {
            books.summary.failed.push(format!(
                "{}: {needed} bytes are needed, and {} of host memory may be used",
                loaded.name, self.memory
            ));
            return Ok(None);
        }
        let nonzeros = loaded.csr.nonzeros() as f64;
        let mut options = self.options;
        if self.varies {
            options.irregular = design::irregular(number);
        }
        let spmv = Spmv::new(loaded.name.clone(), Arc::new(loaded.csr), options);
        let spmv = match spmv {
            Ok(spmv) => spmv,
            Err(error) => {
                let why = format!("{}: {error}", loaded.name);
                books.summary.failed.push(why);
                return Ok(None);
            }
        };
        books.expectations[2].learn(LOADING * nonzeros, before.elapsed().as_secs_f64());
        Ok(Some(spmv))
    }

    fn runs_of(
        &self,
        (number, repeat): (usize, u32),
        subject: &Subject,
        profiled: &mut ProfiledMachine,
        ears: &mut Ears,
        books: &mut Books,
    ) -> Result<(), ProfileError> {
        let device_uses = device_uses(subject.spmv, number, profiled.topology(), &self.gpus);
        let mut runs: Vec<ProfileRun> = (device_uses.into_iter())
            .filter(|(kind, _)| self.kinds.contains(kind))
            .map(|(kind, device_use)| ProfileRun {
                kind,
                device_use,
                repeat,
            })
            .collect();
        let round = u64::from(repeat) << u32::BITS;
        Rng::with_seed(self.seed ^ number as u64 ^ round).shuffle(&mut runs);
        for (index, run) in runs.iter().enumerate() {
            let key = subject.key(profiled, run);
            if (ears.is_kept)(&key) {
                books.kept += 1;
                continue;
            }
            let simulated = profiled.is_simulated();
            let (case, descriptors, steps) =
                subject.expected(profiled, &run.device_use, self.steps);
            let guessed = guess(&case, &descriptors, steps, simulated);
            let at = usize::from(run.kind == ModelKind::Gpu);
            let expected = books.expectations[at].of(guessed);
            if expected > books.left() {
                books.leave_out(expected);
                continue;
            }
            (ears.watch)(&SessionProgress {
                matrix: subject.name,
                device: run.device_use.selection(),
                over: repeat as usize * self.matrices.len() + number,
                matrices: self.repeats as usize * self.matrices.len(),
            });
            let before = Instant::now();
            let seed = seed_of(&key, self.seed);
            match subject.measure(profiled, run, (self.steps, seed), ears.stop) {
                Ok(Some(sample)) => {
                    (ears.keep)(&sample)?;
                    books.summary.measured += 1;
                }
                Ok(None) => {
                    books.summary.interrupted = true;
                    books.summary.left += runs.len() - index;
                    return Ok(());
                }
                Err(error) => {
                    // What failed may not be usable any more.
                    profiled.close();
                    books.summary.failed.push(error.to_string());
                    if books.summary.measured == 0 && books.summary.failed.len() >= HOPELESS {
                        return Err(error);
                    }
                }
            }
            books.expectations[at].learn(guessed, before.elapsed().as_secs_f64());
        }
        Ok(())
    }
}

/// What was done, and what the rest may take.
struct Books {
    began: Instant,
    budget: Duration,
    summary: SessionSummary,
    kept: usize,
    /// Of runs on CPUs, on GPUs, and of loading.
    expectations: [Expectation; 3],
}

impl Books {
    fn left(&self) -> f64 {
        self.budget.as_secs_f64() - self.began.elapsed().as_secs_f64()
    }

    /// Notes a run, or a matrix with all of its runs, for which there is no time.
    fn leave_out(&mut self, expected: f64) {
        let shortest = self.summary.shortest.unwrap_or(f64::INFINITY);
        self.summary.shortest = Some(shortest.min(expected));
        self.summary.left += 1;
    }
}

/// A seed of its own, equal whenever the run is repeated.
fn seed_of(key: &Key, seed: u64) -> u64 {
    // FNV-1a, which stays the same from release to release.
    let text = format!(
        "{}; {}; {}; {seed}",
        key.machine, key.configuration, key.repeat
    );
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_interrupted_while_a_matrix_is_made_says_so() {
        let plan = Plan {
            matrices: Vec::new(),
            kinds: Vec::new(),
            gpus: Vec::new(),
            repeats: 1,
            steps: None,
            seed: 1,
            options: Options::default(),
            varies: false,
            memory: u64::MAX,
            budget: Duration::from_secs(60),
        };
        let mut books = Books {
            began: Instant::now(),
            budget: plan.budget,
            summary: SessionSummary::default(),
            kept: 0,
            expectations: [Expectation::default(); 3],
        };
        let stop = AtomicBool::new(true);
        let mut ears = Ears {
            stop: &stop,
            watch: &mut |_| {},
            is_kept: &mut |_| false,
            keep: &mut |_| Ok(()),
        };
        let source: MatrixSource = "banded:100000,4".parse().unwrap();
        let loaded = plan.load(0, &source, &mut ears, &mut books).unwrap();
        assert!(loaded.is_none());
        assert!(books.summary.interrupted);
        assert!(books.summary.failed.is_empty());
    }
}
