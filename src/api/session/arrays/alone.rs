//! The run of an operation on the devices of a session, as one task graph.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use super::known::{KnownTasks, Tasks};
use crate::engine::cluster::{Alone, AloneOptions, Control, Sink};
use crate::engine::graph::{Repetition, largest_kernel};
use crate::graph::TaskGraph;
use crate::machine::Host;
use crate::policy::NamedPolicy;
use crate::quantity::Bytes;
use crate::report::run::dense::Measured;
use crate::report::run::nodes::report_alone;
use crate::report::{DenseAsked, Workload};
use crate::session::{Error, FaultSpec, Run, Session};
use crate::workload::cluster::{Lone, Operation, Place};
use crate::workload::task_set::Order;

/// How an operation runs on one machine.
#[derive(Clone, Debug)]
pub struct OperationOptions {
    pub policy: NamedPolicy,
    /// Tasks that a device has at once; `None`: the policy's default.
    pub window: Option<usize>,
    /// Timed runs, after one that is not timed on real devices; `None`: one run.
    pub repeats: Option<u32>,
    /// In which the policy learns of the tasks.
    pub order: Order,
    /// Rows and columns of a part; by default those that suit the devices.
    pub tile: Option<u64>,
    /// Of generated data, of a random order and of the policy's random choices.
    pub seed: Option<u64>,
    /// The files of given data, for the report.
    pub inputs: Vec<String>,
    pub faults: Vec<FaultSpec>,
    /// The most bytes of the memory of each device that has its own.
    pub gpu_memory: Option<u64>,
    /// Compares the result with a reference.
    pub verify: bool,
    /// Keeps the times of every command.
    pub traced: bool,
}

impl OperationOptions {
    /// One run by a policy on given data.
    pub fn of(policy: NamedPolicy) -> Self {
        Self {
            policy,
            window: None,
            repeats: None,
            order: Order::Natural,
            tile: None,
            seed: None,
            inputs: Vec::new(),
            faults: Vec::new(),
            gpu_memory: None,
            verify: false,
            traced: false,
        }
    }
}

impl Session {
    /// Runs an operation; `outputs` take its spaces. A run that `stop` ends early says so in its
    /// report, and has no result. `progress` gets the tasks done, and all.
    ///
    /// # Errors
    /// What does not fit in memory, faults that do not suit, what the engine refuses or cannot
    /// recover from, and a matrix that has no such factors.
    pub fn operate(
        &mut self,
        operation: &Operation,
        outputs: Vec<(usize, &mut dyn Sink)>,
        options: &OperationOptions,
        stop: &AtomicBool,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Run, Error> {
        let began = Instant::now();
        let _running = self.running()?;
        self.clear(self.data);
        let simulated = self.is_simulated();
        let has_data = !simulated || self.data;
        let bytes = u64::try_from(operation.bytes).unwrap_or(u64::MAX);
        self.check_data(&operation.title, bytes, has_data)?;
        let place = Place::Alone(Lone::on(self.devices(), options.gpu_memory));
        let placed = operation.at(place, options.tile)?;
        let size = operation.described(&placed, &options.inputs, options.seed);
        let (workload, seed) = (&*placed.workload, options.seed.unwrap_or(0));
        let shuffled = (options.order == Order::Random).then_some(seed);
        let spaces = outputs.iter().map(|(space, _)| *space);
        let alone = Alone::in_order(workload, spaces, shuffled, stop);
        let alone = alone.map_err(|error| match error.is_stopped() {
            true => Error::Stopped,
            false => error.into(),
        })?;
        if has_data {
            let here = Host::detect().memory.obtainable(0);
            self.fits(&size, alone.host_bytes(self.devices()), here)?;
        }
        self.check_tasks(alone.graph(), options.gpu_memory)?;
        let tasks = Tasks {
            workload: workload.name(),
            size: operation.size(&placed),
        };
        let known = self.known_tasks.take();
        let seconds = match known.filter(|known| known.tasks == tasks) {
            Some(known) => known.seconds,
            None => (self.devices).without_data(|runtime| alone.measure(runtime, stop))??,
        };
        // Without phases of its own, it has no steps but the first.
        let devices = self.devices().to_vec();
        self.devices.inject(&options.faults, &devices, 1)?;
        self.devices.begin(None)?;
        let name = self.devices.machine.name.clone();
        let of_run = AloneOptions {
            policy: options.policy,
            seed,
            window: options.window,
            memory: options.gpu_memory,
            name: &name,
            // The bounds of a simulated run follow from its trace.
            traces: options.traced || simulated,
            has_data,
            repeats: options
                .repeats
                .map_or(Repetition::ONCE, |timed| Repetition {
                    timed,
                    // A device that is to be lost would be lost in a run that is not timed.
                    warms_up: !simulated && options.faults.is_empty(),
                    traces_apart: !simulated,
                }),
        };
        let all = alone.subtasks() as u64;
        let mut control = Control {
            tile: placed.tile,
            verify: options.verify.then_some(seed),
            outputs: (outputs.into_iter())
                .map(|(space, sink)| (space, sink as &mut dyn Sink))
                .collect(),
            progress: &mut |done| progress(done, all),
        };
        let runtime = self.devices.runtime();
        let ran = alone.run(runtime, &seconds, &of_run, &mut control, stop);
        let mut ran = ran.map_err(super::operations::stopped)?;
        // A run that had ended, but whose result was not looked at.
        ran.runs.last.outcome.interrupted |= stop.load(Ordering::Relaxed);
        self.known_tasks = Some(KnownTasks { tasks, seconds });
        self.devices.end();
        let asked = DenseAsked {
            inputs: options.inputs.clone(),
            order: options.order,
            seed,
        };
        let described = Workload::of_operation(operation, &placed, size, asked);
        let mut context = self.context(described);
        context.policy = options.policy.to_string();
        let measured = Measured {
            window: options.window,
            gpu_memory_bytes: options.gpu_memory,
            least_seconds: None,
            setup_seconds: ran.runs.began.duration_since(began).as_secs_f64(),
        };
        let report = report_alone(&ran, alone.graph(), context, measured);
        Ok(Run::new(report, ran.runs.last.outcome.trace))
    }

    /// Checks that data of so many bytes fit in the memory of the machine's host, and in this
    /// one's if they are here.
    fn check_data(&self, title: &str, needed: u64, has_data: bool) -> Result<(), Error> {
        let machine = &self.devices.machine;
        if machine.simulated {
            self.fits(title, needed, machine.host.memory)?;
        }
        let here = Host::detect().memory.obtainable(0);
        match (machine.simulated, has_data) {
            (false, _) => self.fits(title, needed, here),
            (true, false) => Ok(()),
            // The memory of simulated devices is here, too.
            (true, true) => self.fits(title, needed.saturating_mul(2), here),
        }
    }

    fn fits(&self, what: &str, needed: u64, here: u64) -> Result<(), Error> {
        match needed <= here {
            true => Ok(()),
            false => Err(Error::Memory {
                what: what.to_owned(),
                needed: Bytes(needed),
                here: Bytes(here),
            }),
        }
    }

    /// Checks that the data of each task fit in each device's memory.
    fn check_tasks(&self, graph: &TaskGraph, most: Option<u64>) -> Result<(), Error> {
        let devices = self.devices().iter();
        for device in devices.filter(|device| !device.shares_host_memory) {
            let has = device.memory.min(most.unwrap_or(u64::MAX));
            if let Some((name, needed)) = largest_kernel(graph, device)
                && has < needed
            {
                return Err(Error::TaskMemory {
                    task: name.to_string(),
                    needed: Bytes(needed),
                    device: device.name.clone(),
                    has: Bytes(has),
                });
            }
        }
        Ok(())
    }
}
