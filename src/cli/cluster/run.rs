//! Running a workload over nodes as asked, and reporting.

use std::sync::atomic::Ordering;

use pdawl_api::catalogue::Values;
use pdawl_api::cluster::wire::environment::Launched;
use pdawl_api::cluster::wire::{LocalWire, Wire};
use pdawl_api::engine::cluster::ClusterError;
use pdawl_api::machine::{ClusterFile, ClusterStore};
use pdawl_api::report::Report;
use pdawl_api::session;
use pdawl_api::session::nodes::{
    AskedOperation, NodesOptions, NodesWork, Part, PartEnd, Sink, heard, simulate,
};
use pdawl_api::session::{GraphOptions, OperationOptions, Session};
use pdawl_api::workload::task_set::Order;

use super::asked::asked;
use super::files::ResultFile;
use super::joined::give_up;
use super::options::{NodeOptions, at_rank, is_first};
use crate::args::{Format, MachineArgs};
use crate::failure::{Failure, refused};
use crate::files::{PreparedFiles, TraceFiles};
use crate::graph::shown;
use crate::machine_session::{self, Needs, of_graph};
use crate::operation::OperationArgs;
use crate::paths::Paths;
use crate::saved_report::run_words;
use crate::{graph, interrupt, terminal};

/// How something is to be computed.
pub struct ClusterJob<'a> {
    /// Unless what is prepared names some.
    pub devices: Option<&'a str>,
    pub nodes: &'a NodeOptions,
    /// Of simulated times.
    pub noise: Option<f64>,
    /// How one machine computes it by itself, if it may.
    pub alone: Option<&'a OperationArgs>,
    pub seed: u64,
    pub verify: bool,
    pub format: Format,
    pub files: &'a TraceFiles,
}

/// What is computed.
pub enum Work {
    /// A workload that several nodes compute.
    Fixed(Box<NodesWork>),
    /// One that is made for the place where it runs.
    Operation(OperationJob),
}

/// An operation, with all that the user says of it.
#[derive(Clone)]
pub struct OperationJob {
    pub asked: AskedOperation,
    pub values: Values,
}

/// What is to be computed, and where the results go.
pub struct Prepared {
    pub work: Work,
    pub results: Vec<ResultFile>,
    /// The files of the inputs and of the results.
    pub paths: Paths,
    pub devices: Option<String>,
}

impl Prepared {
    pub fn new(work: Work, results: impl IntoIterator<Item = ResultFile>, paths: Paths) -> Self {
        Self {
            work,
            results: results.into_iter().collect(),
            paths,
            devices: None,
        }
    }
}

impl Work {
    /// The workload over nodes.
    fn over_nodes(self) -> Result<NodesWork, session::Error> {
        match self {
            Self::Fixed(workload) => Ok(*workload),
            Self::Operation(job) => NodesWork::of_operation(job.asked),
        }
    }
}

impl ClusterJob<'_> {
    fn options(&self) -> NodesOptions {
        NodesOptions {
            spread: self.nodes.spread.spread(),
            prefetch: self.nodes.spread.prefetch(),
            seed: self.seed,
            noise: self.noise,
            verify: self.verify,
            traced: self.files.wanted(),
        }
    }
}

/// What a process has opened for a run that it has joined.
struct Opened {
    part: Part,
    results: Vec<ResultFile>,
    /// At the first node.
    files: Option<PreparedFiles>,
    /// The files that are read, as all nodes must have them.
    inputs: String,
}

/// What a process does.
enum Ready<'a> {
    /// It computes by itself.
    Alone(Box<Prepared>, OperationJob, &'a OperationArgs),
    /// It is a node.
    Node(Box<Opened>),
}

/// Runs a job, or simulates it. The first node prints the report, and writes results and
/// traces. All nodes join before they prepare anything for that number of nodes, so that one which
/// cannot tells the others.
///
/// # Errors
/// What the session and the wire refuse, nodes that were not started alike, wrong results,
/// lost nodes, and Ctrl-C.
pub fn run_job(
    job: &ClusterJob,
    prepare: impl FnOnce(usize) -> Result<Prepared, Failure>,
) -> Result<(), Failure> {
    if let Some(cluster) = &job.nodes.cluster {
        let mut prepared = prepare(1)?;
        if let Some(lone) = &job.alone
            && let Some(mut machine) = lone.machine.on_one_node(job.nodes)?
            && let Work::Operation(operation) = &prepared.work
        {
            if operation.asked.operation.hosts_only {
                machine.devices = Some("host".to_owned());
            }
            let on = (*lone, &machine);
            return run_alone(on, operation, prepared.results, prepared.paths);
        }
        let files = job.files.prepare(&mut prepared.paths)?;
        refuse_launched()?;
        interrupt::end_at_once();
        let (file, mut work) = (find(cluster)?, prepared.work.over_nodes()?);
        let count = job.nodes.count.unwrap_or(file.count());
        let run = simulate(&file, count, &mut work, &job.options()).map_err(lacking)?;
        let run = run.with_command(run_words());
        return graph::print(&run, run.trace(), job.format, files);
    }
    let stop = interrupt::listen()?;
    let asked = asked(Some((&job.nodes.spread, job.seed)));
    let mut joined = job.nodes.join.join(&asked, stop)?;
    if let Some(wire) = &mut joined {
        wire.watch(Some(stop)).map_err(Failure::of)?;
    }
    let nodes = joined.as_ref().map_or(1, Wire::size);
    let opened = prepare(nodes).and_then(|prepared| match (&prepared.work, job.alone) {
        (Work::Operation(operation), Some(lone)) if nodes == 1 => {
            let operation = operation.clone();
            Ok(Ready::Alone(Box::new(prepared), operation, lone))
        }
        _ => Ok(Ready::Node(Box::new(open(job, prepared, nodes)?))),
    });
    let mut wire: Box<dyn Wire> = match joined {
        Some(mut wire) => {
            wire.watch(None).map_err(Failure::of)?;
            interrupt::go_on();
            Box::new(wire)
        }
        None => Box::new(LocalWire::alone()),
    };
    let rank = wire.rank();
    let Opened {
        part,
        mut results,
        files,
        inputs,
    } = match opened.map_err(at_rank) {
        Ok(Ready::Node(opened)) => *opened,
        Ok(Ready::Alone(prepared, operation, lone)) => {
            let on = (lone, &lone.machine);
            let ran = run_alone(on, &operation, prepared.results, prepared.paths);
            return ran.and(wire.finish().map_err(Failure::of));
        }
        // Another node has ended while this one prepared its part.
        Err(Failure::Interrupted) if !stop.load(Ordering::Relaxed) => {
            let failure = of_run(heard(&mut *wire), rank);
            return Err(match rank {
                0 => give_up(wire, failure),
                _ => failure,
            });
        }
        Err(failure) => return Err(give_up(wire, failure)),
    };
    let format = if rank == 0 { job.format } else { Format::Json };
    let bar = terminal::progress(format, 1, "tasks");
    let outputs = results.iter_mut();
    let outputs = outputs.map(|result| (result.space, result as &mut dyn Sink));
    let outputs = outputs.collect();
    let ran = part.run(
        (wire, &inputs),
        &job.options(),
        outputs,
        stop,
        &mut |done, all| {
            bar.set_length(all);
            bar.set_position(done);
        },
    );
    bar.finish_and_clear();
    let PartEnd { run, wire, notes } = match ran {
        Ok(ran) => ran,
        Err(error) => {
            let failure = match error {
                session::Error::Cluster(error) => of_run(error, rank),
                other => other.into(),
            };
            if let (Failure::Interrupted, Some(files)) = (&failure, files) {
                files.discard("all tasks had ended");
            }
            return Err(failure);
        }
    };
    notes.iter().for_each(|note| terminal::warn(note));
    let Some(run) = run.map(|run| run.with_command(run_words())) else {
        return wire.finish().map_err(Failure::of);
    };
    let printed = match files {
        Some(files) => graph::print(&run, run.trace(), job.format, files),
        None => Ok(()),
    };
    let written = match run.is_wrong() {
        true => Ok(()),
        false => results.into_iter().try_for_each(ResultFile::finish),
    };
    // The others have waited for what is written.
    let finished = wire.finish().map_err(Failure::of);
    verdict(&run).and(written).and(printed).and(finished)
}

/// Opens the devices, and tries the paths of what the first node writes.
fn open(job: &ClusterJob, prepared: Prepared, nodes: usize) -> Result<Opened, Failure> {
    let Prepared {
        work,
        results,
        mut paths,
        devices,
    } = prepared;
    let work = work.over_nodes()?;
    let inputs = paths.fingerprints();
    let files = is_first()
        .then(|| job.files.prepare(&mut paths))
        .transpose()?;
    let list = devices.or(job.devices.map(str::to_owned));
    Ok(Opened {
        part: Part::open(work, list, nodes, job.verify).map_err(lacking)?,
        results,
        files,
        inputs,
    })
}

/// The failure of what nodes may have no memory for.
fn lacking(error: session::Error) -> Failure {
    match error {
        session::Error::Memory { .. } => Failure::failed(error, "a smaller size, or more --nodes"),
        other => other.into(),
    }
}

/// Checks that the process is alone: one simulates all nodes.
///
/// # Errors
/// When a launcher has started several.
pub fn refuse_launched() -> Result<(), Failure> {
    let launched = Launched::detect().filter(|launched| launched.size > 1);
    // What all processes refuse, the first one prints.
    if launched.is_some_and(|launched| launched.rank > 0) {
        return Err(Failure::Program(2));
    }
    match launched {
        None => Ok(()),
        Some(_) => Err(Failure::usage(
            "mpirun is for real clusters, and one process simulates all nodes of --cluster",
            "the command without mpirun, or without --cluster",
        )),
    }
}

/// The cluster of a name or a path.
///
/// # Errors
/// When there is no such file, or it is wrong.
pub fn find(name: &str) -> Result<ClusterFile, Failure> {
    ClusterStore::of_user().find(name).map_err(Failure::of)
}

/// The failure of a wrong result.
fn verdict(report: &Report) -> Result<(), Failure> {
    match &report.verification {
        Some(verification) if !verification.right => Err(Failure::failed(
            format!(
                "{} numbers of the result are wrong{}",
                verification.wrong.unwrap_or(0),
                verification
                    .at
                    .map_or(String::new(), |[row, begin, end]| format!(
                        ", the most in row {row}, columns {begin} to {}",
                        end.saturating_sub(1)
                    ))
            ),
            "the same run on one node, and with --devices host, to find the device",
        )),
        _ => Ok(()),
    }
}

/// The failure of a run. What a node received from another one, only the first prints.
pub fn of_run(error: ClusterError, rank: usize) -> Failure {
    match error {
        ClusterError::Interrupted => Failure::Interrupted,
        ClusterError::Stopped(why) => match rank {
            0 if why.starts_with("interrupted") => Failure::Interrupted,
            0 => Failure::failed(why, "docs/cluster.md for what a run needs"),
            _ => Failure::Program(1),
        },
        ClusterError::Runtime(error) => refused(error),
        ClusterError::Graph(error) => of_graph(error),
        error @ ClusterError::Input(_) => Failure::failed(error, "a file that does not change"),
        error => Failure::of(error),
    }
}

/// Runs an operation on one machine, this one or a simulated one. Prints the report, and writes
/// what was asked for.
///
/// # Errors
/// What does not fit in memory, what the engine refuses or cannot recover from, wrong
/// results, and Ctrl-C.
fn run_alone(
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
    let run = run?.with_command(run_words());
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_node_tells_that_the_first_one_is_lost_and_not_what_that_one_tells() {
        let failure = |error, rank| match of_run(error, rank) {
            Failure::Failed { what, .. } => Some(what),
            _ => None,
        };
        let lost = failure(ClusterError::FirstLost, 2).unwrap();
        assert!(lost.starts_with("node 0 was lost"), "{lost}");
        let stopped = || ClusterError::Stopped("node 1 has no device left".to_owned());
        assert_eq!(failure(stopped(), 2), None);
        assert!(failure(stopped(), 0).is_some());
    }
}
