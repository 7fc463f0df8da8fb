//! A node's part of a co-run over several nodes, step by step. Between the steps the node
//! sends what other nodes read of its units, and takes in what it reads of theirs: to the
//! part, other nodes are what other devices are within it, and what lies beyond its units is
//! in host memory when a step begins.

use std::ops::Range;

use super::context::Context;
use super::form::{Later, When};
use super::open::Corun;
use super::run::RunState;
use super::step::{EndedStep, StepEnd};
use super::{CorunError, Options};
use crate::balance::{Balancer, Setup};
use crate::runtime::{Notice, Runtime, RuntimeError};
use crate::time::Nanos;
use crate::workload::Divisible;
use crate::{Loss, Outcome, StepRecord};

/// Makes a balancer for a part.
pub type NewBalancer<'b> = &'b dyn Fn(&Setup) -> Box<dyn Balancer>;

/// The units of a node in a co-run, between two steps. It does not have the runtime then;
/// its memory must be given back by [`Self::close`].
pub struct Session<'w> {
    /// Without its runtime.
    state: RunState<'static, 'w>,
    /// The step to come.
    step: u32,
}

/// How a step has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stepped {
    /// It took so long.
    Done(Nanos),
    /// A device was lost with units that it held.
    Spoiled,
}

impl<'w> Session<'w> {
    /// Opens these units of a workload, and not those of other nodes, on all devices of a runtime but those that were lost,
    /// and fills the first version of them, or a later one.
    ///
    /// # Errors
    /// As [`Corun::open`] and [`Corun::run`].
    pub fn open(
        runtime: &mut dyn Runtime,
        (workload, units, others): (&'w dyn Divisible, Range<u64>, Vec<Range<u64>>),
        (options, lost): (&Options, &[bool]),
        balancer: NewBalancer,
        later: Option<&Later>,
    ) -> Result<Self, CorunError> {
        let mut corun = Corun::open_part(runtime, workload, units, (options, lost))?;
        corun.form.publish(others);
        let balancer = balancer(corun.setup());
        let mut run = RunState::new(corun, balancer);
        run.set_up(later)?;
        run.start_clock();
        Ok(Self {
            state: moved(run, None),
            step: 0,
        })
    }

    /// The devices lost so far.
    pub fn losses(&self) -> &[Loss] {
        &self.state.context.losses
    }

    /// Calls `with` with the run on its runtime.
    fn on<R>(
        self,
        runtime: &mut dyn Runtime,
        with: impl FnOnce(&mut RunState<'_, 'w>, u32) -> R,
    ) -> (Self, R) {
        let step = self.step;
        let mut run = moved(self.state, Some(&mut *runtime));
        let result = with(&mut run, step);
        let state = moved(run, None);
        (Self { state, step }, result)
    }

    /// Computes a step. What it reads of other nodes' units was written before to
    /// [what is present](Self::present).
    ///
    /// # Errors
    /// As [`Corun::run`].
    pub fn step(self, runtime: &mut dyn Runtime) -> (Self, Result<Stepped, CorunError>) {
        let (mut session, stepped) = self.on(runtime, |run, step| {
            // What came from other nodes in between is no part of the step.
            run.start_clock();
            run.begin_step(step)?;
            match run.context.spoiled {
                true => Ok(StepEnd::Spoiled(0)),
                false => run.step(step),
            }
        });
        let stepped = stepped.map(|end| match end {
            StepEnd::Done(_) => {
                session.step += 1;
                let ended = session.state.ended.as_ref();
                Stepped::Done(ended.map_or(0, EndedStep::took))
            }
            StepEnd::Spoiled(_) => Stepped::Spoiled,
        });
        (session, stepped)
    }

    /// Takes another input for the step to come: the vector of a product, a number a column.
    ///
    /// # Errors
    /// As [`Corun::run`].
    pub fn set_input(
        self,
        runtime: &mut dyn Runtime,
        numbers: &[f64],
    ) -> (Self, Result<(), CorunError>) {
        self.on(runtime, |run, _| {
            run.form.set_input(&mut run.context, numbers)
        })
    }

    /// Takes the records of the steps that have ended since it was asked last.
    pub fn take_steps(&mut self) -> Vec<StepRecord> {
        std::mem::take(&mut self.state.outcome.steps)
    }

    /// The bytes of the present version, by their places in the whole one, that the units
    /// `reader` read of the units `owner`. With `begins`, the reader has computed none of its
    /// units before.
    pub fn parts(&self, owner: &Range<u64>, reader: &Range<u64>, begins: bool) -> Vec<Range<u64>> {
        self.state.form.parts(owner, reader, begins)
    }

    /// Calls `with` with bytes of the present version, by their places, which are in host
    /// memory. Not at all in a simulation without data.
    ///
    /// # Errors
    /// What the runtime refuses.
    pub fn present(
        &self,
        runtime: &mut dyn Runtime,
        parts: &[Range<u64>],
        mut with: impl FnMut(&mut [u8]),
    ) -> Result<(), RuntimeError> {
        let Some((memory, first)) = self.state.form.present() else {
            return Ok(());
        };
        for part in parts {
            match runtime.host_range(memory, part.start - first..part.end - first) {
                Ok(bytes) => with(bytes),
                Err(RuntimeError::NoData) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// What its units sum, if all nodes need it after the step, or at the end.
    ///
    /// # Errors
    /// What the runtime refuses.
    pub fn sums(
        self,
        runtime: &mut dyn Runtime,
        when: When,
    ) -> (Self, Result<Option<Vec<u8>>, CorunError>) {
        self.on(runtime, |run, _| match run.context.has_all() {
            true => Ok(None),
            false => run.form.sums(&mut run.context, when),
        })
    }

    /// Adds up, with what the units of other nodes sum.
    ///
    /// # Errors
    /// What the runtime refuses.
    pub fn add_up(
        self,
        runtime: &mut dyn Runtime,
        when: When,
        others: &[(Range<u64>, Vec<u8>)],
    ) -> (Self, Result<(), CorunError>) {
        self.on(runtime, |run, _| match run.context.has_all() {
            true => Ok(()),
            false => run.form.add_up(&mut run.context, when, others),
        })
    }

    /// The sum of all absolute changes in the last step, if the workload sums them.
    pub fn change(&self) -> Option<f64> {
        self.state.form.change()
    }

    /// The estimate of an eigenvalue, if the workload finds one.
    pub fn eigenvalue(&self) -> Option<f64> {
        self.state.form.eigenvalue()
    }

    /// What all units summed in the last step.
    pub fn total(&self) -> Option<[f64; 2]> {
        self.state.form.total()
    }

    /// Brings the present version of all its units to host memory. False when a device was
    /// lost with its part of it.
    ///
    /// # Errors
    /// What the runtime refuses.
    pub fn gather(self, runtime: &mut dyn Runtime) -> (Self, Result<bool, CorunError>) {
        self.on(runtime, |run, step| run.gather(step))
    }

    /// Gives all memory and queues back.
    pub fn close(self, runtime: &mut dyn Runtime) -> Outcome {
        let mut run = moved(self.state, Some(&mut *runtime));
        // After an error some may be in flight, whose ends must not reach others.
        let _ = run.drain();
        let outcome = std::mem::take(&mut run.outcome);
        drop(run);
        runtime.notify(Notice::DrivingBegins);
        outcome
    }
}

/// A run without its runtime, or on it again.
fn moved<'r, 'w>(run: RunState<'_, 'w>, runtime: Option<&'r mut dyn Runtime>) -> RunState<'r, 'w> {
    let RunState { context, .. } = run;
    let context = Context {
        runtime: context.runtime.moved(runtime),
        ..context
    };
    RunState { context, ..run }
}
