//! Workloads on one simulated machine, as `pdawl run` runs them there: what runs over several
//! nodes are compared with.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use thiserror::Error;

use super::tasks::{KernelSeconds, PolicyChoice, TaskExperiment, sample};
use crate::balance::Strategy;
use crate::codelet::Precision;
use crate::engine::cluster::{self, Alone, AloneOptions, ClusterError};
use crate::engine::corun::{Control, Corun, CorunError, Options};
use crate::engine::graph::{self, GraphRunError};
use crate::machine::{Device, MachineFile};
use crate::policy::NamedPolicy;
use crate::runtime::sim::{Sim, SimOptions};
use crate::runtime::{Devices, RuntimeError};
use crate::workload::Divisible;
use crate::workload::cluster::ClusterWorkload;
use crate::workload::cluster::graph::WorkloadGraphError;
use crate::workload::dense::{DenseTask, Inputs, Operation, tile_size};
use crate::workload::task_set::{Order, TaskSetError};

/// Strategies that need nothing but the machine.
const STRATEGIES: [Strategy; 3] = [Strategy::Cpu, Strategy::Gpu, Strategy::Dawl];

/// Why a workload has no time on a machine.
#[derive(Debug, Error)]
pub enum OneMachineError {
    #[error(transparent)]
    Runtime(#[from] RuntimeError),

    #[error(transparent)]
    Run(#[from] CorunError),

    #[error(transparent)]
    Tasks(#[from] TaskSetError),

    #[error(transparent)]
    Graph(#[from] GraphRunError),

    #[error(transparent)]
    Subtasks(#[from] WorkloadGraphError),

    #[error(transparent)]
    Cluster(#[from] ClusterError),
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

/// The seconds of a product or factorisation of singles on a machine, under the policy that
/// the program takes by default. Nothing is computed.
///
/// # Errors
/// What the simulator and the engine refuse.
pub fn dense(
    machine: &MachineFile,
    operation: Operation,
    policy: NamedPolicy,
    (seed, noise): (u64, Option<f64>),
) -> Result<f64, OneMachineError> {
    let stop = AtomicBool::new(false);
    let sim = SimOptions {
        seed,
        noise,
        ..SimOptions::default()
    };
    let mut runtime = Sim::new(machine, sim)?;
    let devices = runtime.devices();
    let own = devices.iter().filter(|device| !device.shares_host_memory);
    let own = own.map(|device| device.memory).min();
    let precision = Precision::F32;
    let task = DenseTask {
        operation,
        tile: tile_size::choose(&operation, precision, devices.len(), own),
        precision,
        order: Order::Natural,
        seed,
    };
    let tiled = task.tiled(&Arc::new(Inputs::generated(operation, seed)))?;
    let few = Arc::new(sample(&task.set()).graph()?);
    let seconds = KernelSeconds::measure(&mut runtime, &few, &stop)?;
    let experiment = TaskExperiment::new(Arc::new(tiled.graph));
    let mut open = experiment.open(&runtime, &seconds, None)?;
    let choice = PolicyChoice {
        policy,
        window: None,
        seed,
    };
    let mut control = graph::Control {
        stop: &stop,
        progress: &mut |_, _| {},
    };
    let run = open.run(&mut runtime, &choice, false, &mut control)?;
    Ok(run.outcome.seconds)
}

/// The seconds of a workload over spaces, as it is made for the devices of a machine that
/// computes it by itself, under a policy; none if the machine's memory has no room for it.
/// Nothing is computed.
///
/// # Errors
/// What the simulator and the engine refuse.
pub fn spaces(
    machine: &MachineFile,
    workload: &dyn Fn(&[Device]) -> Box<dyn ClusterWorkload>,
    policy: NamedPolicy,
    (seed, noise): (u64, Option<f64>),
) -> Result<Option<f64>, OneMachineError> {
    let stop = AtomicBool::new(false);
    let sim = SimOptions {
        seed,
        noise,
        ..SimOptions::default()
    };
    let mut runtime = Sim::new(machine, sim)?;
    let workload = workload(runtime.devices());
    let alone = Alone::new(&*workload, [])?;
    if alone.host_bytes(runtime.devices()) > machine.host.memory {
        return Ok(None);
    }
    let seconds = alone.measure(&mut runtime, &stop)?;
    let options = AloneOptions {
        policy,
        seed,
        window: None,
        memory: None,
        name: &machine.name,
        traces: false,
        has_data: false,
    };
    let mut control = cluster::Control {
        tile: 0,
        verify: None,
        outputs: Vec::new(),
        progress: &mut |_| {},
    };
    let (outcome, _) = alone.run(&mut runtime, &seconds, &options, &mut control, &stop)?;
    Ok(Some(outcome.seconds))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::corun::{Stream, Tracing};
    use crate::machine::MachineStore;
    use crate::workload::cluster::{FftWorkload, Placement};
    use crate::workload::stencil::Stencil;

    #[test]
    fn the_fastest_strategy_is_no_slower_than_any() {
        let machine = MachineStore::at("/nonexistent").find("k40").unwrap();
        let stencil = Stencil::new(2048, 2048, None, Precision::F32, 1).unwrap();
        let options = Options {
            tolerance: None,
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

    #[test]
    fn a_transform_takes_no_less_than_the_memory_allows() {
        let machine = MachineStore::at("/nonexistent").find("k40").unwrap();
        let of = |side: u64| {
            let transform = |_: &[Device]| -> Box<dyn ClusterWorkload> {
                Box::new(FftWorkload {
                    rows: side,
                    columns: side,
                    tile: side / 8,
                    placement: Placement::Rows,
                    matrix: Arc::new(|_, _| panic!("nothing is computed")),
                })
            };
            let policy = "locality".parse().unwrap();
            spaces(&machine, &transform, policy, (1, None)).unwrap()
        };
        // Rows and columns are read and written; no memory of 2013 has a terabyte a second.
        let seconds = of(4096).unwrap();
        assert!(seconds > 4.0 * 8.0 * 4096f64.powi(2) / 1e12, "{seconds}");
        assert!(seconds.is_finite());
        assert_eq!(of(1 << 20), None, "16 TiB have no room");
    }

    #[test]
    fn a_product_takes_no_less_than_the_machines_peak_allows() {
        let machine = MachineStore::at("/nonexistent").find("k40").unwrap();
        let operation = Operation::Product {
            rows: 4096,
            columns: 4096,
            depth: 4096,
        };
        let policy = "locality".parse().unwrap();
        let seconds = dense(&machine, operation, policy, (1, None)).unwrap();
        // Far beyond what a host and a GPU of 2013 compute in a second.
        assert!(seconds > 2.0 * 4096f64.powi(3) / 2e13, "{seconds}");
        assert!(seconds.is_finite());
    }
}
