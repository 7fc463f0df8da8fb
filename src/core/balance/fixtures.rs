//! A deterministic machine for tests: it drives a balancer as the trait's
//! page says and checks that the balancer keeps its side. What it is made of is
//! here, and how it `run`s there.

mod run;

use self::run::Run;
use super::{Balancer, DeviceView, Setup};
use crate::machine::DeviceKind;

/// A CPU's view.
pub fn cpu() -> DeviceView {
    DeviceView {
        kind: DeviceKind::Cpu,
        compute_units: 8,
        capacity: None,
        slots: None,
        stream_limit: None,
        latency: 0.0,
        min_chunk: 4,
    }
}

/// A GPU's view, with its capacity and stream limit (units a microsecond).
pub fn gpu(capacity: u64, stream: f64) -> DeviceView {
    DeviceView {
        kind: DeviceKind::Gpu,
        compute_units: 64,
        capacity: Some(capacity),
        slots: None,
        stream_limit: Some(stream * 1e6),
        latency: 0.0,
        min_chunk: 8,
    }
}

pub fn setup(units: u64, devices: Vec<DeviceView>) -> Setup {
    Setup {
        units,
        steps: 30,
        devices,
        direct: None,
        published: 0.0,
        runs_ahead: true,
        moves_directly: true,
        bus: None,
        memory: None,
        even: true,
    }
}

/// A device as it really is. Rates are units a microsecond, times
/// microseconds.
#[derive(Clone, Debug)]
pub struct Real {
    pub view: DeviceView,
    pub held_rate: f64,
    pub pool_rate: f64,
    pub start: f64,
    pub chunk_start: f64,
}

pub fn real_cpu(rate: f64) -> Real {
    Real {
        view: cpu(),
        held_rate: 0.0,
        pool_rate: rate,
        start: 5.0,
        chunk_start: 3.0,
    }
}

pub fn real_gpu(capacity: u64, held_rate: f64, stream: f64) -> Real {
    Real {
        view: gpu(capacity, stream * 1.2),
        held_rate,
        pool_rate: stream,
        start: 10.0,
        chunk_start: 6.0,
    }
}

#[derive(Clone, Debug)]
pub struct Machine {
    pub units: u64,
    pub steps: u32,
    pub devices: Vec<Real>,
    /// Pool units a microsecond that host memory sustains.
    pub host_limit: f64,
    /// Microseconds that a step takes longer when several devices have work.
    pub corun: f64,
    /// The same when somebody streams: no rate shows it.
    pub streaming: f64,
    /// Relative standard deviation of a piece's duration.
    pub noise: f64,
    pub seed: u64,
    /// (from step, to step, device, factor of its speed).
    pub speeds: Vec<(u32, u32, usize, f64)>,
    /// (step, microseconds into it, device).
    pub losses: Vec<(u32, f64, usize)>,
}

impl Machine {
    pub fn new(units: u64, devices: Vec<Real>) -> Self {
        Self {
            units,
            steps: 30,
            devices,
            host_limit: f64::INFINITY,
            corun: 0.0,
            streaming: 0.0,
            noise: 0.0,
            seed: 1,
            speeds: Vec::new(),
            losses: Vec::new(),
        }
    }

    pub fn setup(&self) -> Setup {
        Setup {
            units: self.units,
            steps: self.steps,
            devices: self.devices.iter().map(|d| d.view.clone()).collect(),
            direct: None,
            published: 0.0,
            runs_ahead: true,
            moves_directly: true,
            bus: None,
            memory: None,
            even: true,
        }
    }

    /// Runs all steps; gives the microseconds of each.
    pub fn run(&self, balancer: &mut dyn Balancer) -> Vec<f64> {
        let steps = self.watch(balancer);
        steps.into_iter().map(|(micros, _)| micros).collect()
    }

    /// The same, and for each step whether somebody streamed in it.
    pub fn watch(&self, balancer: &mut dyn Balancer) -> Vec<(f64, bool)> {
        let mut run = Run::new(self);
        let steps = (0..self.steps)
            .map(|step| run.step(step, balancer))
            .collect();
        run.read_report(balancer);
        steps
    }
}
