//! Runs a set under a policy once, and reports.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use pdawl::engine::graph::kernel_seconds::KernelSeconds;
use pdawl::engine::graph::{
    Control, GraphRunError, OpenTasks, PolicyChoice, Repetition, TaskRuns, least_seconds,
};
use pdawl::graph::TaskGraph;
use pdawl::machine::{DeviceKind, Host};
use pdawl::quantity::Bytes;
use pdawl::report::run::dense::{Measured, report};
use pdawl::report::run::workload::TaskSetParameters;
use pdawl::report::{Context, Parameters, Workload};
use pdawl::session::{NamedMachine, OpenDevices};
use pdawl::workload::task_set::{Body, Order};

use super::Args;
use crate::args::MachineArgs;
use crate::failure::Failure;
use crate::machine_session::{self, Needs};
use crate::paths::Paths;
use crate::{graph, interrupt, terminal};

/// Runs the subcommand.
pub fn run(args: &Args) -> Result<(), Failure> {
    let named = machine_session::named(&args.machine)?;
    let body = match named.as_ref().is_some_and(NamedMachine::is_simulated) {
        true => Body::Model,
        false => Body::Real,
    };
    args.set.check(body)?;
    let files = (args.files).prepare(&mut Paths::reading(args.machine.machine_path()))?;
    let stop = interrupt::listen()?;
    let began = Instant::now();
    let mut session = open(args, named)?;
    let graph = args.set.set(body, args.seed).graph();
    let graph = Arc::new(graph.map_err(|error| args.set.failure(&error))?);
    check_memory(args, &session, &graph)?;
    let devices = session.machine.devices.clone();
    let least_seconds =
        (session.simulation()).and_then(|(file, _)| least_seconds(&graph, file, &devices));
    let seconds = measure(args, body, &mut session, stop)?;
    // Without phases of its own, a task set has no steps but the first.
    machine_session::inject(&mut session, &args.machine.fault, 1)?;
    let ran = execute(args, &graph, &seconds, &mut session, stop)?;
    let measured = Measured {
        window: args.window,
        gpu_memory_bytes: args.machine.gpu_memory.map(|size| size.0),
        least_seconds,
        setup_seconds: ran.began.duration_since(began).as_secs_f64(),
    };
    let context = Context {
        workload: workload(args, &graph),
        machine: session.machine,
        policy: args.policy.to_string(),
        notes: session.notes,
    };
    let report = report(&ran, &graph, context, measured, None);
    graph::print(&report, &ran.last.outcome.trace, args.format, files)?;
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
    let session = machine_session::open(&args.machine, named.clone(), needs)?;
    if args.machine.devices.is_none() {
        let gpus = (session.machine.devices.iter()).filter(|d| d.kind == DeviceKind::Gpu);
        let gpus: Vec<&str> = gpus.map(|device| device.name.as_str()).collect();
        if gpus.is_empty() {
            return Err(Failure::usage(
                format!("{} has no GPU", session.machine.name),
                "--devices with the devices that are to run the tasks, or another --machine",
            ));
        }
        let gpus = MachineArgs {
            devices: Some(gpus.join(",")),
            ..args.machine.clone()
        };
        return machine_session::open(&gpus, named, needs);
    }
    Ok(session)
}

/// Checks that the data of a graph fit in the memory of the machine's host.
fn check_memory(args: &Args, session: &OpenDevices, graph: &TaskGraph) -> Result<(), Failure> {
    let machine = &session.machine;
    let free = match machine.simulated {
        true => machine.host.memory,
        false => Host::detect().memory.obtainable(0),
    };
    let limit = args.machine.host_memory.map_or(u64::MAX, |size| size.0);
    graph::host_memory(
        &args.set.title(),
        (graph::in_host(graph, &machine.devices), free.min(limit)),
        "",
        "a smaller --n or --tile",
    )
}

/// Measures tasks of every kind.
fn measure(
    args: &Args,
    body: Body,
    session: &mut OpenDevices,
    stop: &AtomicBool,
) -> Result<KernelSeconds, Failure> {
    let few = args.set.set(body, args.seed).sample().graph();
    let few = Arc::new(few.map_err(|error| args.set.failure(&error))?);
    let measured = session.with(|runtime| KernelSeconds::measure(runtime, &few, stop));
    measured?.map_err(graph::failure)
}

/// Runs all tasks: on real devices once before, which does not count, as a graph's first run is
/// slower.
fn execute(
    args: &Args,
    graph: &Arc<TaskGraph>,
    seconds: &KernelSeconds,
    session: &mut OpenDevices,
    stop: &AtomicBool,
) -> Result<TaskRuns, Failure> {
    let choice = PolicyChoice {
        policy: args.policy,
        window: args.window,
        seed: args.seed,
    };
    let memory = args.machine.gpu_memory.map(|size| size.0);
    let repeats = Repetition {
        warms_up: !session.machine.simulated,
        ..Repetition::ONCE
    };
    let bar = terminal::progress(args.format, graph.kernels().len() as u64, "tasks");
    let mut control = Control {
        stop,
        progress: &mut |done, _| bar.set_position(done as u64),
    };
    let traced = args.files.wanted();
    let ran = session.with(|runtime| {
        let mut open = OpenTasks::new(runtime, graph, seconds, memory)?;
        let ran = open.repeat(runtime, &choice, &repeats, traced, &mut control);
        open.release(runtime);
        ran
    })?;
    bar.finish_and_clear();
    ran.map_err(failure)
}

/// The set, for the report.
fn workload(args: &Args, graph: &TaskGraph) -> Workload {
    let set = &args.set;
    Workload {
        name: "tasks",
        title: set.title(),
        parameters: Parameters::TaskSet(TaskSetParameters {
            set: set.name(),
            n: set.n,
            tile: set.tile(),
            outputs: set.outputs,
            sum: set.sum,
            dependencies: set.dependencies,
            order: Order::from(set.order).name(),
            tasks: graph.kernels().len(),
            flops: graph.kernels().iter().map(|kernel| kernel.cost.flops).sum(),
            seed: args.seed,
        }),
    }
}

fn failure(error: GraphRunError) -> Failure {
    match error {
        GraphRunError::Memory {
            device,
            kernels,
            needed,
            has,
            ..
        } => Failure::failed(
            format!(
                "task {kernels} needs {} of the memory of {device} at once, which has {}",
                Bytes(needed),
                Bytes(has)
            ),
            "a greater --gpu-memory, a smaller --tile, or devices with more memory",
        ),
        error => graph::failure(error),
    }
}
