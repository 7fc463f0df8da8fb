//! Running a workload over spaces on one machine, on all of its devices and without messages.

use std::time::Instant;

use pdawl::engine::cluster::{Alone, AloneOptions, ClusterError, Control, Sink};
use pdawl::machine::host::Host;
use pdawl::report::run::nodes::{Asked, report_alone};
use pdawl::report::{Context, Workload};
use pdawl::workload::cluster::demand;

use super::options::ClusterOptions;
use super::prepared::LonePart;
use super::run::{ClusterJob, Prepared, of_run, print};
use crate::failure::Failure;
use crate::machine_session::{self, Needs};
use crate::{graph, interrupt, terminal};

/// Runs a job on one machine, this one or a simulated one.
///
/// # Errors
/// What does not fit in memory, what the engine refuses or cannot recover from, wrong
/// results, and Ctrl-C.
pub fn run(
    job: &ClusterJob,
    options: &ClusterOptions,
    prepared: Prepared,
    lone: &LonePart,
) -> Result<(), Failure> {
    let Prepared {
        workload: prepared,
        mut results,
        mut paths,
        ..
    } = prepared;
    let machine = &options.machine;
    let policy = options.policy;
    let files = job.files.prepare(&mut paths)?;
    let stop = interrupt::listen()?;
    let began = Instant::now();
    let has_data = job.verify || !results.is_empty();
    let needs = Needs {
        fp64: lone.fp64,
        data: has_data,
        seed: job.seed,
    };
    let mut session =
        machine_session::open(machine, machine_session::named_or_lost(machine)?, needs)?;
    let computed = (lone.on)(&session.machine.devices);
    let outputs: Vec<usize> = results.iter().map(|result| result.space).collect();
    let remedy = "a smaller size, or several nodes";
    let bytes = u64::try_from(demand::bytes(&*computed.workload)).unwrap_or(u64::MAX);
    graph::data_in_host(&computed.size, bytes, (&session.machine, has_data), remedy)?;
    let alone = Alone::new(&*computed.workload, outputs, stop);
    let alone = alone.map_err(|error| match error.is_stopped() {
        true => Failure::Interrupted,
        false => Failure::of(error),
    })?;
    let simulated = session.machine.simulated;
    if has_data || !simulated {
        let needed = alone.host_bytes(&session.machine.devices);
        let here = Host::detect().memory.obtainable(0);
        graph::host_memory(&computed.size, (needed, here), "", remedy)?;
    }
    let waiting = terminal::spinner();
    waiting.set_message("measuring kernels");
    let seconds = session.without_data(|runtime| alone.measure(runtime, stop))?;
    waiting.finish_and_clear();
    let seconds = seconds.map_err(|error| of_run(error, 0))?;
    machine_session::inject(&mut session, &machine.fault, (1, "one run"))?;
    let options = AloneOptions {
        policy,
        seed: job.seed,
        window: None,
        memory: machine.gpu_memory.map(|size| size.0),
        name: &session.machine.name.clone(),
        traces: job.files.wanted() || simulated,
        has_data: has_data || !simulated,
    };
    let setup_seconds = began.elapsed().as_secs_f64();
    let bar = terminal::progress(job.format, alone.subtasks() as u64, "subtasks");
    let ran = session.with(None, |runtime| {
        let sinks = results.iter_mut();
        let mut control = Control {
            tile: prepared.tile,
            verify: job.verify.then_some(job.seed),
            outputs: (sinks.map(|result| (result.space, result as &mut dyn Sink))).collect(),
            progress: &mut |done| bar.set_position(done),
        };
        alone.run(runtime, &seconds, &options, &mut control, stop)
    })?;
    bar.finish_and_clear();
    let (outcome, ran) = match ran {
        Ok(ran) => ran,
        Err(error) => {
            if let ClusterError::Interrupted = error {
                files.discard("all subtasks had ended");
            }
            return Err(of_run(error, 0));
        }
    };
    let notes = outcome.nodes.iter().flat_map(|node| node.notes.clone());
    let notes = (prepared.notes.iter().cloned())
        .chain(session.notes.clone())
        .chain(notes);
    let context = Context {
        workload: Workload::of_tasks(&*computed.workload, computed.size, outcome.tasks),
        machine: session.machine,
        policy: policy.to_string(),
        notes: notes.collect(),
    };
    let asked = Asked {
        figure: (computed.workload.figure()).map(|figure| [figure.name, figure.title]),
        ..Asked::default()
    };
    let report = report_alone(
        &outcome,
        (&ran, alone.graph()),
        setup_seconds,
        context,
        asked,
    );
    let traced = match job.files.wanted() {
        true => files.write(&ran.trace, &report),
        false => Ok(()),
    };
    let written = match report.is_wrong() {
        true => Ok(()),
        false => results
            .into_iter()
            .try_for_each(super::files::ResultFile::finish),
    };
    print(job, &report).and(written).and(traced)
}
