//! A divisible workload on one simulated machine, under several strategies: what runs over
//! several nodes are compared with.

use std::sync::atomic::AtomicBool;

use thiserror::Error;

use crate::balance::Strategy;
use crate::engine::corun::{Control, Corun, CorunError, Options};
use crate::machine::MachineFile;
use crate::runtime::RuntimeError;
use crate::runtime::sim::{Sim, SimOptions};
use crate::workload::Divisible;

/// Strategies that need nothing but the machine.
const STRATEGIES: [Strategy; 3] = [Strategy::Cpu, Strategy::Gpu, Strategy::Dawl];

/// Why a workload has no time on a machine.
#[derive(Debug, Error)]
pub enum OneMachineError {
    #[error(transparent)]
    Runtime(#[from] RuntimeError),

    #[error(transparent)]
    Run(#[from] CorunError),
}

/// The strategy with which so many steps of a workload take the least time on a machine, and
/// the seconds. Nothing is computed.
///
/// # Errors
/// What the simulator and the engine refuse, such as a workload that does not fit.
pub fn fastest(
    machine: &MachineFile,
    workload: &dyn Divisible,
    options: &Options,
    (seed, noise): (u64, Option<f64>),
) -> Result<Option<(Strategy, f64)>, OneMachineError> {
    let stop = AtomicBool::new(false);
    let mut best: Option<(Strategy, f64)> = None;
    for strategy in STRATEGIES {
        let sim = SimOptions {
            seed,
            noise,
            ..SimOptions::default()
        };
        let mut runtime = Sim::new(machine, sim)?;
        let corun = Corun::open(&mut runtime, workload, options)?;
        // A machine may lack the strategy's devices.
        let Ok(balancer) = strategy.build(corun.setup()) else {
            continue;
        };
        let mut control = Control {
            stop: &stop,
            progress: &mut |_, _| {},
        };
        let seconds = corun.run(balancer, &mut control)?.seconds;
        if best.as_ref().is_none_or(|(_, least)| seconds < *least) {
            best = Some((strategy, seconds));
        }
    }
    Ok(best)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codelet::Precision;
    use crate::engine::corun::{Stream, Tracing};
    use crate::machine::MachineStore;
    use crate::workload::stencil::Stencil;

    #[test]
    fn the_fastest_strategy_is_no_slower_than_any() {
        let machine = MachineStore::at("/nonexistent").find("k40").unwrap();
        let stencil = Stencil::new(2048, 2048, None, Precision::F32, 1).unwrap();
        let options = Options {
            steps: 20,
            gpu_memory: None,
            stream: Stream::default(),
            verify: false,
            trace: Tracing::None,
        };
        let (strategy, seconds) = fastest(&machine, &stencil, &options, (1, None))
            .unwrap()
            .unwrap();
        // The GPU's memory is many times faster than the host's.
        assert_ne!(strategy, Strategy::Cpu);
        assert!(seconds > 0.0);
    }
}
