//! Running an operation on one machine, on all of its devices and without messages.

use pdawl::session::nodes::Sink;
use pdawl::session::{GraphOptions, OperationOptions, Session};
use pdawl::workload::task_set::Order;

use super::files::ResultFile;
use super::run::{OperationJob, verdict};
use crate::args::MachineArgs;
use crate::failure::Failure;
use crate::graph::shown;
use crate::machine_session::{self, Needs};
use crate::operation::OperationArgs;
use crate::paths::Paths;
use crate::{graph, interrupt};

/// Runs an operation on one machine, this one or a simulated one. Prints the report, and writes
/// what was asked for.
///
/// # Errors
/// What does not fit in memory, what the engine refuses or cannot recover from, wrong
/// results, and Ctrl-C.
pub fn run(
    (job, machine): (&OperationArgs, &MachineArgs),
    OperationJob { asked, values }: &OperationJob,
    mut results: Vec<ResultFile>,
    mut paths: Paths,
) -> Result<(), Failure> {
    let window = values.number("window").map(|tasks| tasks as usize);
    graph::check_window(job.policy, window)?;
    let operation = &asked.operation;
    let files = job.files.prepare(&mut paths)?;
    let stop = interrupt::listen()?;
    let needs = Needs {
        fp64: operation.fp64,
        data: job.verify || !results.is_empty(),
        seed: job.seed,
    };
    let named = machine_session::named(machine)?;
    let mut session = Session::with(machine_session::options(machine, named, needs))?;
    let run = GraphOptions {
        window,
        repeats: values.number("repeats").map(|runs| runs as u32),
        faults: machine.fault.clone(),
        gpu_memory: machine.gpu_memory.map(|size| size.0),
        verify: job.verify,
        traced: job.files.wanted(),
        ..GraphOptions::of(job.policy)
    };
    let options = OperationOptions {
        order: match values.word("order") {
            Some("random") => Order::Random,
            _ => Order::Natural,
        },
        tile: asked.tile,
        seed: Some(job.seed),
        inputs: asked.inputs.clone(),
        ..run.into()
    };
    let sinks = results.iter_mut();
    let outputs = sinks.map(|result| (result.space, result as &mut dyn Sink));
    let outputs = outputs.collect();
    let run = shown(job.format, "tasks", |progress| {
        session.operate(operation, outputs, options, stop, progress)
    });
    let run = run?;
    let written = match run.is_wrong() || run.interrupted {
        true => Ok(()),
        false => results.into_iter().try_for_each(ResultFile::finish),
    };
    let printed = graph::print(&run, run.trace(), job.format, files);
    verdict(&run).and(written).and(printed)?;
    match run.interrupted {
        true => Err(Failure::Interrupted),
        false => Ok(()),
    }
}
