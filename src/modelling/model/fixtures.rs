//! Test fixtures: runs of a plan by the engine in the simulator.

use std::sync::atomic::AtomicBool;

use crate::balance::StepPlan;
use crate::balance::planned::Planned;
use crate::balance::{Balancer, Setup};
use crate::codelet::stencil::Precision;
use crate::engine::Outcome;
use crate::engine::corun::{Control, Corun, Options, Stream, Tracing};
use crate::machine::{MachineFile, MachineStore};
use crate::runtime::sim::{Sim, SimDevice, SimOptions};
use crate::workload::Supersteps;
use crate::workload::stencil::Stencil;

/// A shipped machine, without noise.
pub fn machine(name: &str) -> MachineFile {
    MachineStore::at("/nonexistent").find(name).unwrap()
}

/// A square grid of doubles.
pub fn grid(size: u64) -> Stencil {
    Stencil::new(size, size, None, Precision::F64, 1).unwrap()
}

/// A run in virtual time.
pub struct Trial<'a> {
    pub machine: &'a MachineFile,
    pub devices: Option<Vec<SimDevice>>,
    pub gpu_memory: Option<u64>,
    pub stream: Stream,
    pub steps: u32,
    pub superstep: u32,
}

impl<'a> Trial<'a> {
    /// A few steps on all devices, with the engine's choices.
    pub fn of(machine: &'a MachineFile) -> Self {
        Self {
            machine,
            devices: None,
            gpu_memory: None,
            stream: Stream::default(),
            steps: 3,
            superstep: 1,
        }
    }

    /// Runs `stencil` with any balancer.
    pub fn run(
        &self,
        stencil: &Stencil,
        make: impl FnOnce(&Setup) -> Box<dyn Balancer>,
    ) -> Outcome {
        let options = SimOptions {
            noise: Some(0.0),
            devices: self.devices.clone(),
            ..SimOptions::default()
        };
        let mut sim = Sim::new(self.machine, options).unwrap();
        let options = Options {
            tolerance: None,
            supersteps: Supersteps::new(self.steps, self.superstep),
            gpu_memory: self.gpu_memory,
            stream: self.stream,
            verify: false,
            trace: Tracing::None,
            each_step: None,
        };
        let mut control = Control {
            stop: &AtomicBool::new(false),
            progress: &mut |_, _| {},
        };
        let corun = Corun::open(&mut sim, stencil, &options).unwrap();
        let balancer = make(corun.setup());
        corun.run(balancer, &mut control).unwrap()
    }

    /// Runs `stencil` with one plan and returns the steps' seconds.
    pub fn follow(&self, stencil: &Stencil, plan: &StepPlan, chunks: &[u64]) -> Vec<f64> {
        let outcome = self.run(stencil, |setup| {
            let planned = Planned::new(setup, plan.clone(), chunks.to_vec());
            Box::new(planned)
        });
        outcome.steps.iter().map(|step| step.seconds).collect()
    }
}
