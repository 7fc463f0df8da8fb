//! Profiles of products: generated matrices, each loaded once and multiplied in
//! a few ways, one device at a time. [`design`] says which matrices and which ways.
//!
//! Matrices come in the design's order, so that the measured rows span the shapes
//! whenever the time is up; the runs of one matrix are shuffled. Each repeat goes
//! through all matrices: other users slow a machine down for a while, and repeats in
//! immediate succession would attribute that to the matrix.

pub mod design;

use std::sync::Arc;

use fastrand::Rng;

use super::configuration::ModelKind;
use super::design::Gpu;
use super::error::ProfileError;
use super::run::{PreparedRun, Subject};
use super::session::ProfilingSession;
use crate::matrix::{Control, MatrixError, MatrixSource};
use crate::model::{DevicePart, StepWork};
use crate::workload::Divisible;
use crate::workload::spmv::{Options, Spmv};
use design::device_uses;

/// Seconds that the steps of a run on a real device should take together.
const LASTING: f64 = 0.08;

/// The products to measure.
pub struct ProductProfile {
    pub matrices: Vec<MatrixSource>,
    pub kinds: Vec<ModelKind>,
    pub gpus: Vec<Gpu>,
    pub repeats: u32,
    pub options: Options,
    /// Whether the part of the rows that may be irregular changes from matrix to
    /// matrix, so that a model learns its effect.
    pub varies: bool,
    /// Bytes of host memory that may be used; matrices beyond it are left out.
    pub memory: u64,
}

/// A matrix that is loaded.
struct LoadedMatrix {
    /// Its place in the design.
    number: usize,
    spmv: Arc<Spmv>,
    subject: Subject,
}

impl ProductProfile {
    /// Measures all runs that fit into the session's budget. `begin` is told how many
    /// matrices are over, of those of all repeats.
    ///
    /// # Errors
    /// As [`ProfilingSession::measure`].
    pub fn carry_out(
        &self,
        session: &mut ProfilingSession,
        begin: &mut dyn FnMut(usize),
    ) -> Result<(), ProfileError> {
        // A single matrix is not loaded again for each repeat.
        let mut loaded: Option<LoadedMatrix> = None;
        for over in 0..self.repeats as usize * self.matrices.len() {
            let (repeat, number) = (over / self.matrices.len(), over % self.matrices.len());
            if session.is_interrupted() {
                break;
            }
            if session.seconds_left() <= 0.0 {
                session.leave_out(0.0);
                continue;
            }
            begin(over);
            loaded = match loaded.take().filter(|matrix| matrix.number == number) {
                Some(matrix) => Some(matrix),
                None => self.load(number, session),
            };
            if let Some(matrix) = &loaded {
                let runs = self.runs(matrix, repeat as u32, session);
                session.measure(runs)?;
            }
        }
        Ok(())
    }

    /// Loads a matrix. `None`, and a note in the summary, if it has no room or cannot
    /// be made, or on request.
    fn load(&self, number: usize, session: &mut ProfilingSession) -> Option<LoadedMatrix> {
        let source = &self.matrices[number];
        let mut control = Control {
            stop: session.stop,
            progress: &mut |_| {},
        };
        let summary = &mut session.summary;
        let loaded = match source.load(&mut control) {
            Ok(loaded) => loaded,
            Err(MatrixError::Interrupted) => {
                summary.interrupted = true;
                return None;
            }
            Err(error) => {
                summary.failed.push(error.to_string());
                return None;
            }
        };
        // The matrix as it was read, as devices compute it in host memory, and a copy.
        let needed = 3 * (12 * loaded.csr.nonzeros() + 32 * u64::from(loaded.csr.rows()));
        if needed > self.memory {
            summary.failed.push(format!(
                "{}: {needed} bytes are needed, and {} of host memory may be used",
                loaded.name, self.memory
            ));
            return None;
        }
        let mut options = self.options;
        if self.varies {
            options.irregular = design::irregular(number);
        }
        match Spmv::new(loaded.name.clone(), Arc::new(loaded.csr), options) {
            Ok(spmv) => {
                let spmv = Arc::new(spmv);
                let Options {
                    precision,
                    irregular,
                    ..
                } = options;
                Some(LoadedMatrix {
                    number,
                    subject: Subject {
                        // The matrix as users write it, with its seed.
                        name: format!(
                            "{} s{} {}; irregular {irregular}",
                            source.origin,
                            source.seed,
                            precision.name()
                        ),
                        work: StepWork::of_product(&spmv),
                        workload: Arc::clone(&spmv) as Arc<dyn Divisible>,
                        lasting: LASTING,
                    },
                    spmv,
                })
            }
            Err(error) => {
                summary.failed.push(format!("{}: {error}", loaded.name));
                None
            }
        }
    }

    /// The runs of a matrix, in shuffled order.
    fn runs(
        &self,
        matrix: &LoadedMatrix,
        repeat: u32,
        session: &ProfilingSession,
    ) -> Vec<PreparedRun> {
        let profiled = &*session.profiled;
        let uses = device_uses(&matrix.spmv, matrix.number, profiled.topology(), &self.gpus);
        let mut runs: Vec<PreparedRun> = (uses.into_iter())
            .filter(|device_use| self.kinds.contains(&device_use.kind))
            .map(|device_use| {
                let mut part = device_use.setting.part(matrix.spmv.units(), 0);
                if let DevicePart::Discrete { held, slots, .. } = &mut part {
                    *slots = 2 * *held + 3;
                }
                let (subject, settings) = (&matrix.subject, session.settings);
                PreparedRun::new(profiled, subject, device_use, part, repeat, settings)
            })
            .collect();
        let round = u64::from(repeat) << u32::BITS;
        let seed = session.settings.seed ^ matrix.number as u64 ^ round;
        Rng::with_seed(seed).shuffle(&mut runs);
        runs
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;
    use std::time::Duration;

    use super::*;
    use crate::machine::MachineStore;
    use crate::profile::tests::Rows;
    use crate::profile::{ProfiledMachine, SessionProgress, Settings};

    #[test]
    fn an_interruption_while_a_matrix_is_made_is_noted() {
        let source: MatrixSource = "banded:100000,4".parse().unwrap();
        let profile = ProductProfile {
            matrices: vec![source],
            kinds: Vec::new(),
            gpus: Vec::new(),
            repeats: 1,
            options: Options::default(),
            varies: false,
            memory: u64::MAX,
        };
        let machine = MachineStore::at("/nonexistent").find("k40").unwrap();
        let mut profiled = ProfiledMachine::simulated(machine, 0.0);
        let stop = AtomicBool::new(true);
        let (mut rows, mut watch) = (Rows::default(), |_: &SessionProgress| {});
        let budget = Duration::from_secs(60);
        let settings = Settings::default();
        let mut session = ProfilingSession::begin(
            &mut profiled,
            settings,
            budget,
            &stop,
            &mut rows,
            &mut watch,
        );
        assert!(profile.load(0, &mut session).is_none());
        assert!(session.summary.interrupted);
        assert!(session.summary.failed.is_empty());
    }
}
