//! Runs grids, and checks what holds for every run.

use std::sync::atomic::AtomicBool;

use pdawl_api::balance::{Balancer, Setup, Strategy};
use pdawl_api::codelet::stencil::Precision;
use pdawl_api::engine::Outcome;
use pdawl_api::engine::corun::{Control, Corun, CorunError, Options, Stream, Tracing};
use pdawl_api::runtime::Runtime;
use pdawl_api::workload::stencil::Stencil;
use pdawl_api::workload::{Divisible, Supersteps};

/// Steps of each run: enough for a balancer to change its mind.
pub const STEPS: u32 = 6;

/// The smallest memory for stream buffers, in units. No unit can be held with it.
pub const LEAST_UNITS: u64 = 13;

/// A grid.
#[derive(Clone, Copy, Debug)]
pub struct Grid {
    pub nx: u64,
    pub ny: u64,
    pub nz: Option<u64>,
    pub precision: Precision,
    pub seed: u64,
}

impl Grid {
    pub fn new(nx: u64, ny: u64, nz: Option<u64>, precision: Precision) -> Self {
        Self {
            nx,
            ny,
            nz,
            precision,
            seed: 11,
        }
    }

    pub fn stencil(&self) -> Stencil {
        Stencil::new(self.nx, self.ny, self.nz, self.precision, self.seed).expect("a grid")
    }
}

/// Runs a workload with the balancer that `make` makes.
pub fn corun(
    runtime: &mut dyn Runtime,
    workload: &dyn Divisible,
    gpu_memory: Option<u64>,
    make: impl FnOnce(&Setup) -> Box<dyn Balancer>,
) -> Result<Outcome, CorunError> {
    let options = Options {
        tolerance: None,
        supersteps: Supersteps::new(STEPS, 1),
        gpu_memory,
        stream: Stream::default(),
        verify: true,
        trace: Tracing::None,
        each_step: None,
    };
    let mut control = Control {
        stop: &AtomicBool::new(false),
        progress: &mut |_, _| {},
    };
    let corun = Corun::open(runtime, workload, &options)?;
    let balancer = make(corun.setup());
    corun.run(balancer, &mut control)
}

/// Makes a strategy's balancer.
pub fn by(strategy: &Strategy) -> impl FnOnce(&Setup) -> Box<dyn Balancer> {
    move |setup| strategy.build(setup).expect("a strategy that suits")
}

/// Runs a grid with a strategy by name, and checks the result.
pub fn run(
    runtime: &mut dyn Runtime,
    grid: Grid,
    strategy: &str,
    gpu_memory: Option<u64>,
) -> Outcome {
    let parsed: Strategy = strategy.parse().expect("a strategy");
    let stencil = grid.stencil();
    let what = format!("{strategy} on {grid:?} with {gpu_memory:?}");
    let outcome = corun(runtime, &stencil, gpu_memory, by(&parsed))
        .unwrap_or_else(|error| panic!("{what}: {error}"));
    right(&outcome, &stencil, &what);
    outcome
}

/// Asserts that the result equals the reference's bit for bit, and that the last
/// steps computed every unit.
pub fn right(outcome: &Outcome, stencil: &Stencil, what: &str) {
    assert_eq!(outcome.verified, Some(true), "{what}");
    assert_eq!(outcome.max_abs_error, Some(0.0), "{what}");
    let last: Vec<_> = outcome.steps.iter().rev().take(STEPS as usize).collect();
    assert_eq!(last.len() as u32, STEPS, "{what}");
    for (step, record) in (0..STEPS).rev().zip(last) {
        assert_eq!(record.step, step, "{what}");
        if outcome.losses.is_empty() {
            let units: u64 = record.devices.iter().map(|d| d.units).sum();
            assert_eq!(units, stencil.units(), "{what}, step {step}");
        }
    }
}
