//! Runs the policies in turns, size by size.

use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use indicatif::ProgressBar;
use pdawl::engine::graph::{Control, GraphRunError};
use pdawl::experiment::tasks::{
    KernelSeconds, TaskExperiment, TaskFigures, TaskOptions, least_seconds, sample,
};
use pdawl::graph::TaskGraph;
use pdawl::machine::{DeviceKind, Host};
use pdawl::policy::NamedPolicy;
use pdawl::quantity::Bytes;
use pdawl::report::tasks::{TaskReport, TaskRow, TaskRuns};
use pdawl::workload::task_set::{Body, Order};

use super::Args;
use crate::failure::Failure;
use crate::graph;
use crate::machine_session::{self, Needs};
use crate::policies::Policies;
use crate::{interrupt, terminal};
use pdawl::session::{NamedMachine, OpenDevices};

/// Runs the subcommand.
pub fn run(args: &Args) -> Result<(), Failure> {
    let named = machine_session::named(&args.machine)?;
    let body = match named.as_ref().is_some_and(NamedMachine::is_simulated) {
        true => Body::Model,
        false => Body::Real,
    };
    args.set.check(body)?;
    let stop = interrupt::listen()?;
    let mut session = open(args, named)?;
    let Policies(policies) = &args.policies;
    let all = args.set.n.len() as u64 * u64::from(args.repeats) * policies.len() as u64;
    let bar = terminal::progress(args.format, all, "tasks");
    let mut turns = Turns {
        args,
        policies,
        body,
        stop,
        seconds: measure(args, body, &mut session, stop)?,
        bar: &bar,
        notes: Vec::new(),
        session: &mut session,
    };
    let mut rows = Vec::new();
    let mut outcome = Ok(());
    for n in &args.set.n {
        outcome = turns.size(*n, &mut rows);
        if outcome.is_err() || stop.load(Ordering::Relaxed) {
            break;
        }
    }
    let notes = turns.notes;
    bar.finish_and_clear();
    outcome?;
    let devices = session.machine.devices.iter();
    let report = TaskReport {
        simulated: session.machine.simulated,
        devices: devices.map(|device| device.name.clone()).collect(),
        machine: session.machine.name,
        gpu_memory_bytes: args.machine.gpu_memory.map(|size| size.0),
        set: args.set.name(),
        tile: args.set.tile(),
        outputs: args.set.outputs,
        sum: args.set.sum,
        dependencies: args.set.dependencies,
        window: args.window,
        seed: args.seed,
        repeats: args.repeats,
        rows,
        interrupted: stop.load(Ordering::Relaxed),
        notes: session.notes.into_iter().chain(notes).collect(),
    };
    terminal::print_report(args.format, &report, |report| report.render())?;
    match report.interrupted {
        true => Err(Failure::Interrupted),
        false => Ok(()),
    }
}

/// Opens the devices: the machine's GPUs, unless the user names others.
fn open(args: &Args, named: Option<NamedMachine>) -> Result<OpenDevices, Failure> {
    let needs = Needs {
        fp64: false,
        data: false,
        seed: args.seed,
    };
    let mut session = machine_session::open(&args.machine, named, needs)?;
    if args.machine.devices.is_none() {
        let gpus = (session.machine.devices.iter()).filter(|d| d.kind == DeviceKind::Gpu);
        let gpus: Vec<&str> = gpus.map(|device| device.name.as_str()).collect();
        if gpus.is_empty() {
            return Err(Failure::usage(
                format!("{} has no GPU", session.machine.name),
                "--devices with the devices that are to run the tasks, or another --machine",
            ));
        }
        let list = gpus.join(",");
        session.keep_only(&list)?;
    }
    Ok(session)
}

/// Measures tasks of every kind.
fn measure(
    args: &Args,
    body: Body,
    session: &mut OpenDevices,
    stop: &AtomicBool,
) -> Result<KernelSeconds, Failure> {
    let greatest = args.set.n.iter().copied().max().unwrap_or(1);
    let sample = sample(&args.set.set(greatest, body, args.seed));
    let graph = sample.graph();
    let graph = Arc::new(graph.map_err(|error| args.set.failure(greatest, &error))?);
    let measured = session.with(None, |runtime| {
        KernelSeconds::measure(runtime, &graph, stop)
    })?;
    // Without phases of its own, a task set has no steps but the first.
    machine_session::inject(session, &args.machine.fault, (1, "--n"))?;
    measured.map_err(graph::failure)
}

/// The turns of the policies.
struct Turns<'a> {
    args: &'a Args,
    policies: &'a [NamedPolicy],
    body: Body,
    stop: &'a AtomicBool,
    seconds: KernelSeconds,
    bar: &'a ProgressBar,
    notes: Vec<String>,
    session: &'a mut OpenDevices,
}

impl Turns<'_> {
    /// Runs all policies on the set of one size, and adds a row for each.
    fn size(&mut self, n: u32, rows: &mut Vec<TaskRow>) -> Result<(), Failure> {
        let set = self.args.set.set(n, self.body, self.args.seed);
        let graph = set.graph();
        let graph = graph.map_err(|error| self.args.set.failure(n, &error))?;
        self.check_memory(n, &graph)?;
        let devices = self.session.machine.devices.clone();
        let least =
            (self.session.simulation()).and_then(|(file, _)| least_seconds(&graph, file, &devices));
        let experiment = TaskExperiment::new(Arc::new(graph));
        let runs = |policy: &NamedPolicy| TaskRuns {
            n,
            tasks: experiment.tasks(),
            policy: policy.to_string(),
            order: Order::from(self.args.set.order).name(),
            flops: experiment.flops(),
            least_seconds: least,
            runs: Vec::new(),
        };
        let mut all: Vec<TaskRuns> = self.policies.iter().map(runs).collect();
        'turns: for repeat in 0..self.args.repeats {
            for (policy, runs) in self.policies.iter().zip(&mut all) {
                self.bar.set_message(format!("n {n}, {policy}"));
                let figures = self.run(n, &experiment, *policy, repeat)?;
                // The time of an interrupted run is not one of the policy.
                if figures.interrupted {
                    break 'turns;
                }
                let lost = figures.lost.iter();
                (self.notes).extend(lost.map(|lost| format!("n {n}, policy {policy}: {lost}")));
                runs.runs.push(figures);
                self.bar.inc(1);
            }
        }
        rows.extend(all.into_iter().filter_map(TaskRuns::row));
        Ok(())
    }

    fn run(
        &mut self,
        n: u32,
        experiment: &TaskExperiment,
        policy: NamedPolicy,
        repeat: u32,
    ) -> Result<TaskFigures, Failure> {
        let seed = self.args.seed.wrapping_add(repeat.into());
        if let Some((_, simulation)) = self.session.simulation() {
            simulation.seed = seed;
        }
        let options = TaskOptions {
            memory: self.args.machine.gpu_memory.map(|size| size.0),
            window: self.args.window,
            seed,
            warm_up: !self.session.machine.simulated,
        };
        let mut control = Control {
            stop: self.stop,
            progress: &mut |_, _| {},
        };
        let figures = self.session.with(None, |runtime| {
            experiment.run(runtime, policy, &self.seconds, &options, &mut control)
        })?;
        figures.map_err(|error| failure(format!("n {n}, policy {policy}"), error))
    }

    /// Checks that the data of a graph fit in the memory of the machine's host.
    fn check_memory(&self, n: u32, graph: &TaskGraph) -> Result<(), Failure> {
        let machine = &self.session.machine;
        let free = match machine.simulated {
            true => machine.host.memory,
            false => Host::detect().memory.obtainable(0),
        };
        let limit = self
            .args
            .machine
            .host_memory
            .map_or(u64::MAX, |size| size.0);
        let needed = graph::in_host(graph, &machine.devices);
        let title = format!("{}, n {n}", self.args.set.name());
        graph::host_memory(
            &title,
            (needed, free.min(limit)),
            "",
            "a smaller --n or --tile",
        )
    }
}

/// The failure of a run of which `title` names the size and the policy.
fn failure(title: impl Display, error: GraphRunError) -> Failure {
    if let GraphRunError::Memory {
        device,
        kernels,
        needed,
        has,
        ..
    } = error
    {
        return Failure::failed(
            format!(
                "{title}: task {kernels} needs {} of the memory of {device} at once, which has {}",
                Bytes(needed),
                Bytes(has)
            ),
            "a greater --gpu-memory, a smaller --tile, or devices with more memory",
        );
    }
    match graph::failure(error) {
        Failure::Usage { what, remedy } => Failure::usage(format!("{title}: {what}"), remedy),
        Failure::Failed { what, remedy } => Failure::Failed {
            what: format!("{title}: {what}"),
            remedy,
        },
        other => other,
    }
}
