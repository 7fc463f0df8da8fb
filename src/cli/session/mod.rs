//! What a run needs: a machine, real or simulated, and a workload on it. Here
//! the command line meets the library's runtimes, engine and balancers.
//!
//! [`open`] makes a session of what the user said; [`oracle`] and [`singles`]
//! are what takes several runs.

mod open;
mod oracle;
mod singles;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use pdawl::balance::{Balancer, Fixed, Setup, Strategy};
use pdawl::codelet::copy;
use pdawl::engine::Outcome;
use pdawl::engine::corun::{self, Control, CorunError};
use pdawl::engine::measure::{self, MeasureOptions};
use pdawl::machine::{MachineFile, RuntimeKind};
use pdawl::report::Context;
use pdawl::report::schema::{Machine, Single};
use pdawl::runtime::sim::{Sim, SimOptions};
use pdawl::runtime::{DeviceId, Runtime};
use pdawl::workload::Divisible;
use pdawl::workload::stencil::Stencil;

pub(super) use open::machine_file;

use super::failure::{Failure, refused};
use super::grid::Grid;
use oracle::Swept;

/// Bytes of the copies that the host's bandwidth is measured with: more than
/// any cache.
const COPY_BYTES: u64 = 512 << 20;

/// A workload on a machine, to be run as often as one likes.
pub struct Session {
    ground: Ground,
    grid: Grid,
    stencil: Stencil,
    machine: Machine,
    options: corun::Options,
    /// What the oracle found, once it was asked.
    oracle: Option<Vec<f64>>,
    comparison: Vec<Single>,
    notes: Vec<String>,
}

/// Where commands run.
enum Ground {
    Real(Box<dyn Runtime>),
    /// Each run begins on a machine of its own, at time 0.
    Simulated(Box<MachineFile>, SimOptions),
}

type MakeBalancer<'a> = dyn FnMut(&Setup) -> Result<Box<dyn Balancer>, String> + 'a;

impl Session {
    /// Runs the workload once. `progress` is told the steps done and asked for.
    ///
    /// # Errors
    /// What the engine refuses, or cannot recover from.
    pub fn run(
        &mut self,
        strategy: &Strategy,
        stop: &AtomicBool,
        progress: &mut dyn FnMut(u32, u32),
    ) -> Result<Outcome, Failure> {
        if *strategy != Strategy::Oracle {
            let make = &mut |setup: &Setup| strategy.build(setup).map_err(|e| e.to_string());
            return self.corun(make, self.options, stop, progress);
        }
        let shares = match &self.oracle {
            Some(shares) => shares.clone(),
            None => match self.sweep(stop)? {
                Swept::Best(shares) => self.oracle.insert(shares).clone(),
                Swept::Interrupted(outcome) => return Ok(*outcome),
            },
        };
        let make = &mut |setup: &Setup| -> Result<Box<dyn Balancer>, String> {
            Ok(Box::new(Fixed::new("oracle", setup, &shares)))
        };
        self.corun(make, self.options, stop, progress)
    }

    fn corun(
        &mut self,
        make: &mut MakeBalancer,
        options: corun::Options,
        stop: &AtomicBool,
        progress: &mut dyn FnMut(u32, u32),
    ) -> Result<Outcome, Failure> {
        let mut control = Control { stop, progress };
        let outcome = match &mut self.ground {
            Ground::Real(runtime) => corun::run(
                runtime.as_mut(),
                &self.stencil,
                make,
                &options,
                &mut control,
            ),
            Ground::Simulated(file, sim) => {
                let mut sim = Sim::new(file, sim.clone()).map_err(refused)?;
                corun::run(&mut sim, &self.stencil, make, &options, &mut control)
            }
        };
        outcome.map_err(|error| match error {
            CorunError::Runtime(error) => refused(error),
            CorunError::Strategy(why) => Failure::usage(
                why,
                "another --strategy, or other --devices; `pdawl devices` shows them",
            ),
            other => Failure::of(other),
        })
    }

    /// What a report tells beyond the outcome.
    pub fn context(&self, strategy: &Strategy) -> Context {
        Context {
            workload: self.grid.workload(&self.stencil),
            machine: self.machine.clone(),
            strategy: strategy.to_string(),
            comparison: self.comparison.clone(),
            notes: self.notes.clone(),
        }
    }

    /// Points computed in all steps.
    pub fn points(&self) -> u64 {
        let step = self
            .stencil
            .units()
            .saturating_mul(self.stencil.unit_points());
        step.saturating_mul(self.grid.steps.into())
    }

    /// Bytes of memory traffic that a point needs at least.
    pub fn bytes_per_point(&self) -> f64 {
        let points = self.stencil.unit_points().max(1);
        self.stencil.cost(1).bytes / points as f64
    }

    /// Bytes a second that a copy by the host's cores reads and writes:
    /// measured now, or the machine file's. `None` if no cores take part
    /// through the embedded runtime.
    ///
    /// # Errors
    /// When the measurement fails.
    pub fn copy_bandwidth(&mut self) -> Result<Option<f64>, Failure> {
        let runtime = match &mut self.ground {
            Ground::Simulated(file, _) => return Ok(Some(file.host.memory_bandwidth)),
            Ground::Real(runtime) => runtime,
        };
        let mut devices = runtime.devices().iter();
        let Some(pool) = devices.position(|d| d.runtime == RuntimeKind::Host) else {
            return Ok(None);
        };
        let options = MeasureOptions {
            bytes: COPY_BYTES,
            repeats: 5,
        };
        let copy = Arc::new(copy::codelet());
        measure::copy_bandwidth(runtime.as_mut(), &copy, DeviceId(pool), options)
            .map(Some)
            .map_err(Failure::of)
    }
}
