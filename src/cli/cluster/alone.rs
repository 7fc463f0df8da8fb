//! Running an operation on one machine, on all of its devices and without messages.

use std::sync::atomic::Ordering;
use std::time::Instant;

use pdawl::engine::cluster::{Alone, AloneOptions, Control, Sink};
use pdawl::engine::graph::{Repetition, largest_kernel};
use pdawl::graph::TaskGraph;
use pdawl::machine::host::Host;
use pdawl::policy::NamedPolicy;
use pdawl::quantity::Bytes;
use pdawl::report::run::dense::Measured;
use pdawl::report::run::nodes::report_alone;
use pdawl::report::{Context, DenseAsked, Workload};
use pdawl::session::OpenDevices;
use pdawl::workload::cluster::{Lone, Place};
use pdawl::workload::task_set::Order;

use super::files::ResultFile;
use super::prepared::OperationJob;
use super::run::{of_run, verdict};
use crate::args::{Format, MachineArgs};
use crate::failure::Failure;
use crate::files::TraceFiles;
use crate::machine_session::{self, Needs};
use crate::paths::Paths;
use crate::{graph, interrupt, terminal};

/// How one machine computes by itself.
#[derive(Clone, Copy)]
pub struct LoneJob<'a> {
    pub machine: &'a MachineArgs,
    pub policy: NamedPolicy,
    /// Tasks that a device has at once.
    pub window: Option<usize>,
    /// Timed runs, after one that is not timed on real devices.
    pub repeats: Option<u32>,
    /// In which policies learn of the tasks.
    pub order: Order,
    pub seed: u64,
    pub verify: bool,
    pub format: Format,
    pub files: &'a TraceFiles,
}

/// Runs an operation on one machine, this one or a simulated one. Prints the report, and writes
/// what was asked for.
///
/// # Errors
/// What does not fit in memory, what the engine refuses or cannot recover from, wrong
/// results, and Ctrl-C.
pub fn run(
    job: &LoneJob,
    asked: &OperationJob,
    mut results: Vec<ResultFile>,
    mut paths: Paths,
) -> Result<(), Failure> {
    graph::check_window(job.policy, job.window)?;
    let machine = job.machine;
    let files = job.files.prepare(&mut paths)?;
    let stop = interrupt::listen()?;
    let began = Instant::now();
    let operation = &asked.operation;
    let has_data = job.verify || !results.is_empty();
    let needs = Needs {
        fp64: operation.fp64,
        data: has_data,
        seed: job.seed,
    };
    let mut session = machine_session::open(machine, machine_session::named(machine)?, needs)?;
    let simulated = session.machine.simulated;
    let remedy = match operation.dense {
        Some(_) => "a smaller size, or a --precision of fewer bits",
        None => "a smaller size, or several nodes",
    };
    let bytes = u64::try_from(operation.bytes).unwrap_or(u64::MAX);
    let here = (&session.machine, has_data);
    graph::data_in_host(&operation.title, bytes, here, remedy)?;
    let memory = machine.gpu_memory.map(|size| size.0);
    let lone = Lone::on(&session.machine.devices, memory);
    let (placed, size) = asked.at(Place::Alone(lone))?;
    let outputs: Vec<usize> = results.iter().map(|result| result.space).collect();
    let shuffled = (job.order == Order::Random).then_some(job.seed);
    let alone = Alone::in_order(&*placed.workload, outputs, shuffled, stop);
    let alone = alone.map_err(|error| match error.is_stopped() {
        true => Failure::Interrupted,
        false => Failure::of(error),
    })?;
    if has_data || !simulated {
        let needed = alone.host_bytes(&session.machine.devices);
        let here = Host::detect().memory.obtainable(0);
        graph::host_memory(&size, (needed, here), "", remedy)?;
    }
    check_device_memory(alone.graph(), &session, memory)?;
    let waiting = terminal::spinner();
    waiting.set_message("measuring kernels");
    let seconds = session.without_data(|runtime| alone.measure(runtime, stop))?;
    waiting.finish_and_clear();
    let seconds = seconds.map_err(|error| of_run(error, 0))?;
    // Without phases of its own, it has no steps but the first.
    let more = job.repeats.map_or("one run", |_| "--repeats");
    machine_session::inject(&mut session, &machine.fault, (1, more))?;
    let options = AloneOptions {
        policy: job.policy,
        seed: job.seed,
        window: job.window,
        memory,
        name: &session.machine.name.clone(),
        traces: job.files.wanted() || simulated,
        has_data: has_data || !simulated,
        repeats: job.repeats.map_or(Repetition::ONCE, |timed| Repetition {
            timed,
            // A device that is to be lost would be lost in a run that is not timed.
            warms_up: !simulated && machine.fault.is_empty(),
            traces_apart: !simulated,
        }),
    };
    let bar = terminal::progress(job.format, alone.subtasks() as u64, "tasks");
    let ran = session.with(|runtime| {
        let sinks = results.iter_mut();
        let mut control = Control {
            tile: placed.tile,
            verify: job.verify.then_some(job.seed),
            outputs: (sinks.map(|result| (result.space, result as &mut dyn Sink))).collect(),
            progress: &mut |done| bar.set_position(done),
        };
        alone.run(runtime, &seconds, &options, &mut control, stop)
    })?;
    bar.finish_and_clear();
    let mut ran = ran.map_err(|error| of_run(error, 0))?;
    // A run that had ended, but whose result was not looked at.
    ran.runs.last.outcome.interrupted |= stop.load(Ordering::Relaxed);
    let dense = DenseAsked {
        inputs: asked.inputs.clone(),
        order: job.order,
        seed: job.seed,
    };
    let context = Context {
        workload: Workload::of_operation(operation, &placed, size, dense),
        machine: session.machine,
        policy: job.policy.to_string(),
        notes: session.notes,
    };
    let measured = Measured {
        window: job.window,
        gpu_memory_bytes: memory,
        least_seconds: None,
        setup_seconds: ran.runs.began.duration_since(began).as_secs_f64(),
    };
    let report = report_alone(&ran, alone.graph(), context, measured);
    let written = match report.is_wrong() || report.interrupted {
        true => Ok(()),
        false => results.into_iter().try_for_each(ResultFile::finish),
    };
    let printed = graph::print(&report, &ran.runs.last.outcome.trace, job.format, files);
    verdict(&report).and(written).and(printed)?;
    match report.interrupted {
        true => Err(Failure::Interrupted),
        false => Ok(()),
    }
}

/// Checks that the data of each task fit in each device's memory.
fn check_device_memory(
    graph: &TaskGraph,
    on: &OpenDevices,
    most: Option<u64>,
) -> Result<(), Failure> {
    let devices = on.machine.devices.iter();
    for device in devices.filter(|device| !device.shares_host_memory) {
        let has = device.memory.min(most.unwrap_or(u64::MAX));
        if let Some((name, needed)) = largest_kernel(graph, device)
            && has < needed
        {
            return Err(Failure::failed(
                format!(
                    "task `{name}` needs {} of the memory of {} at once, which has {}",
                    Bytes(needed),
                    device.name,
                    Bytes(has)
                ),
                "a smaller --tile, a greater --gpu-memory, or other --devices",
            ));
        }
    }
    Ok(())
}
