//! A session: a divisible workload on the opened devices of a machine. It can run any
//! number of times. It connects the command line to the engine and the balancers.
//!
//! [`open`] makes a session from the command line's options. [`memory`] leaves out
//! devices with too little memory. [`model`] has the cost model that is chosen, and [`threshold`]
//! chooses with it the fraction of a matrix's rows that is irregular. [`oracle`] and
//! [`singles`] run the workload several times.

mod memory;
mod model;
mod open;
mod oracle;
mod singles;
mod superstep;
mod threshold;

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use pdawl::balance::{Balancer, Fixed, Setup, Strategy, StrategyError};
use pdawl::engine::Outcome;
use pdawl::engine::corun::{self, Control, Corun, CorunError, Tracing};
use pdawl::machine::Device;
use pdawl::model::serving::{NoModel, ServingModel, StreamBuffers};
use pdawl::report::run::corun::{self as corun_report, Single};
use pdawl::report::{Context, Report};
use thiserror::Error;

use super::failure::{Failure, LOST, OTHER_STRATEGY, refused};
use super::saves::SavedResult;
use super::workload::PreparedWorkload;
use oracle::SweepResult;
use pdawl::session::OpenDevices;

/// A workload on a machine.
pub struct Session {
    machine: OpenDevices,
    workload: PreparedWorkload,
    options: corun::Options,
    /// The cost model, or why there is none.
    model: Result<ServingModel, NoModel>,
    /// The plan of `--superstep auto`, with which an adaptive run begins if no model covers it.
    planned: Option<ServingModel>,
    /// The devices of the last run that the model planned.
    devices_of_plan: Option<Vec<Device>>,
    comparison: Vec<Single>,
    /// Why devices are left out.
    left_out: Vec<String>,
    notes: Vec<String>,
}

/// Why a run has no outcome.
#[derive(Debug, Error)]
enum RunError {
    #[error(transparent)]
    Engine(#[from] CorunError),
    #[error(transparent)]
    Strategy(#[from] StrategyError),
    #[error(transparent)]
    StreamBuffers(#[from] StreamBuffers),
}

impl Session {
    /// Runs the workload once. `progress` gets the steps done and requested.
    ///
    /// # Errors
    /// When the engine refuses the run or cannot recover from a fault.
    pub fn run(
        &mut self,
        strategy: &Strategy,
        stop: &AtomicBool,
        progress: &mut dyn FnMut(u32, u32),
    ) -> Result<Outcome, Failure> {
        match strategy {
            Strategy::Oracle => self.run_best(stop, progress),
            Strategy::Pdawl => self.run_planned(stop, progress),
            _ => {
                let make = |setup: &Setup| Ok(strategy.build(setup)?);
                self.corun(make, self.options, stop, progress)
            }
        }
    }

    /// Records the start and the end of every command of later runs.
    pub fn trace_commands(&mut self) {
        self.options.trace = Tracing::Commands;
    }

    /// Runs as the cost model plans.
    fn run_planned(
        &mut self,
        stop: &AtomicBool,
        progress: &mut dyn FnMut(u32, u32),
    ) -> Result<Outcome, Failure> {
        let Session {
            model,
            machine,
            workload,
            notes,
            ..
        } = self;
        let serving = model.as_mut().map_err(|missing| model::failure(missing))?;
        notes.append(&mut serving.notes);
        let options = corun::Options {
            stream: serving.plan.stream,
            ..self.options
        };
        let mut control = Control { stop, progress };
        let mut devices = Vec::new();
        let cores = serving.cores();
        let outcome = machine.with(cores, |runtime| {
            devices = runtime.devices().to_vec();
            let corun = Corun::open(runtime, workload.divisible(), &options)?;
            let balancer = serving.balancer(corun.setup())?;
            Ok(corun.run(balancer, &mut control)?)
        })?;
        self.devices_of_plan = Some(devices);
        outcome.map_err(|error| self.failure(error))
    }

    /// Searches for the best fixed shares, and runs with them.
    fn run_best(
        &mut self,
        stop: &AtomicBool,
        progress: &mut dyn FnMut(u32, u32),
    ) -> Result<Outcome, Failure> {
        let shares = match self.search_shares(stop)? {
            SweepResult::Best(shares) => shares,
            SweepResult::Interrupted(outcome) => return Ok(*outcome),
        };
        let make = |setup: &Setup| -> Result<Box<dyn Balancer>, RunError> {
            Ok(Box::new(Fixed::new("oracle", setup, &shares)))
        };
        self.corun(make, self.options, stop, progress)
    }

    fn corun(
        &mut self,
        make: impl FnOnce(&Setup) -> Result<Box<dyn Balancer>, RunError>,
        options: corun::Options,
        stop: &AtomicBool,
        progress: &mut dyn FnMut(u32, u32),
    ) -> Result<Outcome, Failure> {
        let mut control = Control { stop, progress };
        let workload = &self.workload;
        let outcome = self.machine.with(None, |runtime| {
            let corun = Corun::open(runtime, workload.divisible(), &options)?;
            let balancer = make(corun.setup())?;
            Ok(corun.run(balancer, &mut control)?)
        })?;
        outcome.map_err(|error| self.failure(error))
    }

    /// The user's message for a run without an outcome.
    fn failure(&self, error: RunError) -> Failure {
        match error {
            RunError::Engine(CorunError::Runtime(error)) => refused(error),
            RunError::Engine(error @ CorunError::AllLost { .. }) => Failure::failed(error, LOST),
            RunError::Engine(other) => Failure::of(other),
            strategy => {
                let all: Vec<String> = std::iter::once(strategy.to_string())
                    .chain(self.left_out.iter().cloned())
                    .collect();
                Failure::usage(all.join("; "), OTHER_STRATEGY)
            }
        }
    }

    /// The strategy that adapts during a run: PDAWL with a model, or with the plan of
    /// supersteps, otherwise DAWL, with a note that says why.
    pub fn adaptive(&mut self) -> Strategy {
        let Err(missing) = &self.model else {
            return Strategy::Pdawl;
        };
        match self.planned.take() {
            Some(planned) => {
                self.model = Ok(planned);
                Strategy::Pdawl
            }
            None => {
                self.notes.extend(missing.note());
                Strategy::Dawl
            }
        }
    }

    /// The strategy of a run: that of a kernel's file, or `asked`, or the adaptive one.
    pub fn strategy(&mut self, asked: Option<&Strategy>, adaptive: bool) -> Strategy {
        if let Some(kernel) = self.workload.kernel() {
            let devices = &self.machine.machine.devices;
            match (
                kernel.strategy(devices),
                asked,
                adaptive,
                kernel.partition(devices),
            ) {
                (Some(strategy), ..) => return strategy,
                (_, None, false, Some(by_file)) => {
                    self.notes.push(
                        "the shares are the file's `partition`; --adaptive learns them instead"
                            .to_owned(),
                    );
                    return by_file;
                }
                (_, None, ..) => return Strategy::Dawl,
                (_, Some(_), ..) => {}
            }
        }
        asked.cloned().unwrap_or_else(|| self.adaptive())
    }

    /// Takes the results of the last run that the user wants to save, by position.
    pub fn results(&self) -> BTreeMap<usize, SavedResult> {
        self.workload.results()
    }

    /// The report of a run.
    pub fn report(&self, strategy: &Strategy, outcome: &Outcome) -> Report {
        corun_report::report(outcome, self.context(strategy), self.comparison.clone())
    }

    /// What reports have beside outcomes.
    pub fn context(&self, strategy: &Strategy) -> Context {
        let mut machine = self.machine.machine.clone();
        if let (Strategy::Pdawl, Some(devices)) = (strategy, &self.devices_of_plan) {
            machine.devices.clone_from(devices);
        }
        Context {
            workload: self.workload.described(),
            machine,
            policy: strategy.to_string(),
            notes: self.notes.clone(),
        }
    }

    /// Steps of a run.
    pub fn steps(&self) -> u32 {
        self.workload.steps()
    }

    /// The points, nonzeros or work-items of all steps.
    pub fn points(&self) -> u64 {
        let step = self.workload.described().points();
        step.saturating_mul(self.steps().into())
    }
}
