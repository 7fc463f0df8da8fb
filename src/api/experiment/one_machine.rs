//! Workloads on one simulated machine, as `pdawl run` runs them there: what runs over several
//! nodes are compared with.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use thiserror::Error;

use super::tasks::{KernelSeconds, PolicyChoice, TaskExperiment, sample};
use crate::cluster::record::DevicePart;
use crate::codelet::Precision;
use crate::engine::cluster::simulate::{Busiest, NodeRow, Report, Resource};
use crate::engine::cluster::{self, Alone, AloneOptions, ClusterError};
use crate::engine::graph::{self, GraphRunError};
use crate::machine::{Device, MachineFile};
use crate::policy::NamedPolicy;
use crate::runtime::sim::{Sim, SimDevice, SimOptions};
use crate::runtime::{Devices, RuntimeError};
use crate::spread::Requests;
use crate::time::Nanos;
use crate::trace::Trace;
use crate::trace::summary::by_device;
use crate::workload::cluster::graph::WorkloadGraphError;
use crate::workload::cluster::{ClusterWorkload, demand};
use crate::workload::dense::{DenseTask, Inputs, Operation, tile_size};
use crate::workload::task_set::{Order, TaskSetError};

/// Why a workload has no time on a machine.
#[derive(Debug, Error)]
pub enum OneMachineError {
    #[error(transparent)]
    Runtime(#[from] RuntimeError),

    #[error(transparent)]
    Tasks(#[from] TaskSetError),

    #[error(transparent)]
    Graph(#[from] GraphRunError),

    #[error(transparent)]
    Subtasks(#[from] WorkloadGraphError),

    #[error(transparent)]
    Cluster(#[from] ClusterError),
}

/// A run on one machine.
#[derive(Clone, Debug, PartialEq)]
pub struct OneMachineRun {
    pub seconds: f64,
    pub devices: Vec<DeviceSeconds>,
}

/// What a device of one machine did.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceSeconds {
    pub name: String,
    /// Seconds in which at least one of its kernels ran, and one of its copies.
    pub kernels: f64,
    pub copies: f64,
}

impl OneMachineRun {
    /// A run that took so long, by its trace.
    fn of(seconds: f64, trace: &Trace) -> Self {
        let of = |ns: Nanos| ns as f64 * 1e-9;
        let devices = trace.devices.iter().zip(by_device(trace));
        let devices = devices.map(|(name, sums)| DeviceSeconds {
            name: name.clone(),
            kernels: of(sums.kernel),
            copies: of(sums.copy),
        });
        Self {
            seconds,
            devices: devices.collect(),
        }
    }

    /// The run as that of a cluster of one node, which is this machine.
    pub fn report(&self) -> Report {
        let parts = self.devices.iter().map(|device| DevicePart {
            name: device.name.clone(),
            seconds: device.kernels,
            ..DevicePart::default()
        });
        let busy: f64 = self.devices.iter().map(|device| device.kernels).sum();
        let all = self.seconds * self.devices.len() as f64;
        Report {
            seconds: self.seconds,
            nodes: vec![NodeRow {
                busy,
                idle: (all - busy).max(0.0),
                computing: self.seconds,
                devices: parts.collect(),
                ..NodeRow::default()
            }],
            requests: Requests::default(),
            restarts: 0,
            busiest: self.busiest(),
            messages: 0,
            decided: Duration::ZERO,
            timeline: Vec::new(),
        }
    }

    fn busiest(&self) -> Option<Busiest> {
        let parts = self.devices.iter().flat_map(|device| {
            let name = || device.name.clone();
            [
                (Resource::Device(0, name()), device.kernels),
                (Resource::DeviceLink(0, name()), device.copies),
            ]
        });
        let busy = parts.filter(|(_, seconds)| *seconds > 0.0);
        let most = busy.reduce(|most, other| if other.1 > most.1 { other } else { most });
        most.map(|(resource, seconds)| Busiest {
            resource,
            share: (seconds / self.seconds).min(1.0),
        })
    }
}

/// A product or factorisation of singles on a machine, in tiles of so many rows or of those that
/// suit it, and its tiles' rows. Nothing is computed.
///
/// # Errors
/// What the simulator and the engine refuse.
pub fn dense(
    machine: &MachineFile,
    (operation, tile): (Operation, Option<u32>),
    policy: NamedPolicy,
    (seed, noise): (u64, Option<f64>),
) -> Result<(OneMachineRun, u32), OneMachineError> {
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
    let precision = Precision::F32.into();
    let suits = || tile_size::choose(&operation, precision, devices.len(), own);
    let tile = tile.unwrap_or_else(suits);
    let task = DenseTask {
        operation,
        tile,
        precision,
        order: Order::Natural,
        seed,
    };
    let tiled = task.tiled(&Arc::new(Inputs::generated(operation, seed)), &stop)?;
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
    let run = open.run(&mut runtime, &choice, true, &mut control)?.outcome;
    Ok((OneMachineRun::of(run.seconds, &run.trace), tile))
}

/// A workload over spaces, as it is made for the devices of a machine that computes it by
/// itself, all of them or these, under a policy; none if the machine's memory has no room for
/// it. Nothing is computed.
///
/// # Errors
/// What the simulator and the engine refuse.
pub fn spaces(
    (machine, devices): (&MachineFile, Option<Vec<SimDevice>>),
    workload: impl FnOnce(&[Device]) -> Box<dyn ClusterWorkload>,
    policy: NamedPolicy,
    (seed, noise): (u64, Option<f64>),
) -> Result<Option<OneMachineRun>, OneMachineError> {
    let stop = AtomicBool::new(false);
    let sim = SimOptions {
        seed,
        noise,
        devices,
        ..SimOptions::default()
    };
    let mut runtime = Sim::new(machine, sim)?;
    let workload = workload(runtime.devices());
    if demand::bytes(&*workload) > machine.host.memory.into() {
        return Ok(None);
    }
    let alone = Alone::new(&*workload, [], &stop)?;
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
        traces: true,
        has_data: false,
    };
    let mut control = cluster::Control {
        tile: 0,
        verify: None,
        outputs: Vec::new(),
        progress: &mut |_| {},
    };
    let (outcome, ran) = alone.run(&mut runtime, &seconds, &options, &mut control, &stop)?;
    Ok(Some(OneMachineRun::of(outcome.seconds, &ran.trace)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::MachineStore;
    use crate::workload::cluster::{FftWorkload, Placement};

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
            spaces((&machine, None), transform, policy, (1, None)).unwrap()
        };
        // Rows and columns are read and written; no memory of 2013 has a terabyte a second.
        let run = of(4096).unwrap();
        let seconds = run.seconds;
        assert!(seconds > 4.0 * 8.0 * 4096f64.powi(2) / 1e12, "{seconds}");
        assert!(seconds.is_finite());
        let report = run.report();
        assert_eq!((report.seconds, report.nodes.len()), (seconds, 1));
        let busiest = report.busiest.unwrap().share;
        assert!(busiest > 0.5 && busiest <= 1.0, "{busiest}");
        let names: Vec<_> = report.nodes[0].devices.iter().map(|d| &d.name).collect();
        assert_eq!(names, ["host", "gpu0"]);
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
        let (run, tile) = dense(&machine, (operation, None), policy, (1, None)).unwrap();
        let seconds = run.seconds;
        assert!((1..=4096).contains(&tile));
        // Far beyond what a host and a GPU of 2013 compute in a second.
        assert!(seconds > 2.0 * 4096f64.powi(3) / 2e13, "{seconds}");
        assert!(seconds.is_finite());
    }
}
