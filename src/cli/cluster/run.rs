//! Running a workload over nodes as asked, and reporting.

use std::sync::atomic::{AtomicBool, Ordering};

use pdawl::cluster::protocol::Settings;
use pdawl::cluster::record::ClusterOutcome;
use pdawl::cluster::wire::{LocalWire, Wire};
use pdawl::engine::cluster::{ClusterError, Control, Node, Options, Sink, heard};
use pdawl::machine::host::Host;
use pdawl::report::run::nodes::{Asked, report};
use pdawl::report::{Context, Machine, Report};
use pdawl::runtime::Runtime;
use pdawl::session::{DeviceOptions, OpenDevices};
use pdawl::trace::nodes;
use pdawl::workload::cluster::{Check, Fit};

use super::alone;
use super::asked::asked;
use super::files::ResultFile;
use super::joined::give_up;
use super::options::{NodeOptions, at_rank, is_first};
use super::prepared::{OperationJob, PreparedWorkload, Work};
use super::simulated;
use crate::args::Format;
use crate::failure::{Failure, refused};
use crate::files::{PreparedFiles, TraceFiles};
use crate::machine_session::{host_memory, of_graph};
use crate::operation::OperationArgs;
use crate::paths::Paths;
use crate::{interrupt, terminal};

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

/// What is to be computed, and where the results go.
pub struct Prepared {
    pub work: Work,
    pub results: Vec<ResultFile>,
    /// The files of the inputs and of the results.
    pub paths: Paths,
    pub devices: Option<String>,
}

impl Prepared {
    pub fn new(
        work: impl Into<Work>,
        results: impl IntoIterator<Item = ResultFile>,
        paths: Paths,
    ) -> Self {
        Self {
            work: work.into(),
            results: results.into_iter().collect(),
            paths,
            devices: None,
        }
    }
}

/// What a process has opened for a run that it has joined.
struct Opened {
    workload: PreparedWorkload,
    results: Vec<ResultFile>,
    /// At the first node.
    files: Option<PreparedFiles>,
    devices: OpenDevices,
    /// The files that are read, as all nodes must have them.
    inputs: String,
}

/// Runs a job, or simulates it. The first node prints the report, and writes results and
/// traces. All nodes join before they prepare anything, so that one which cannot tells the
/// others.
///
/// # Errors
/// What the runtime and the wire refuse, nodes that were not started alike, wrong results,
/// lost nodes, and Ctrl-C.
pub fn run_job(
    job: &ClusterJob,
    prepare: impl FnOnce() -> Result<Prepared, Failure>,
) -> Result<(), Failure> {
    if let Some(cluster) = &job.nodes.cluster {
        let mut prepared = prepare()?;
        if let Some(lone) = &job.alone
            && let Some(mut machine) = lone.machine.on_one_node(job.nodes)?
            && let Work::Operation(operation) = &prepared.work
        {
            if operation.operation.hosts_only {
                machine.devices = Some("host".to_owned());
            }
            let on = (*lone, &machine);
            return alone::run(on, operation, prepared.results, prepared.paths);
        }
        let files = job.files.prepare(&mut prepared.paths)?;
        return simulated::run_job(job, &mut prepared.work.over_nodes()?, cluster, files);
    }
    let stop = interrupt::listen()?;
    let asked = asked(Some((&job.nodes.spread, job.seed)));
    let mut joined = job.nodes.join.join(&asked, stop)?;
    if let Some(wire) = &mut joined {
        wire.watch(Some(stop)).map_err(Failure::of)?;
    }
    let nodes = joined.as_ref().map_or(1, Wire::size);
    let opened = prepare().and_then(|prepared| match (&prepared.work, job.alone) {
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
    let opened = match opened.map_err(at_rank) {
        Ok(Ready::Node(opened)) => *opened,
        Ok(Ready::Alone(prepared, operation, lone)) => {
            let on = (lone, &lone.machine);
            let ran = alone::run(on, &operation, prepared.results, prepared.paths);
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
    let Opened {
        workload,
        mut results,
        files,
        mut devices,
        inputs,
    } = opened;
    let mut of = JobOf {
        job,
        workload,
        inputs,
    };
    let notes = std::mem::take(&mut devices.notes);
    let ran = of.run(wire, devices.runtime(), &mut results, notes, stop);
    devices.end();
    devices.notes.iter().for_each(|note| terminal::warn(note));
    match ran {
        Ok((None, wire)) => wire.finish().map_err(Failure::of),
        Ok((Some((report, outcome)), wire)) => {
            let traced = write_trace(job, files, &report, &outcome);
            let written = match report.is_wrong() {
                true => Ok(()),
                false => results.into_iter().try_for_each(ResultFile::finish),
            };
            let printed = terminal::print_report(job.format, &report, Report::render);
            let printed = printed.and(verdict(&report));
            // The others have waited for what is written.
            let finished = wire.finish().map_err(Failure::of);
            printed.and(written).and(traced).and(finished)
        }
        Err(error) => {
            let failure = of_run(error, rank);
            if let (Failure::Interrupted, Some(files)) = (&failure, files) {
                files.discard("all tasks had ended");
            }
            Err(failure)
        }
    }
}

/// What a process does.
enum Ready<'a> {
    /// It computes by itself.
    Alone(Box<Prepared>, OperationJob, &'a OperationArgs),
    /// It is a node.
    Node(Box<Opened>),
}

/// Opens the devices, and tries the paths of what the first node writes.
fn open(job: &ClusterJob, prepared: Prepared, nodes: usize) -> Result<Opened, Failure> {
    let Prepared {
        work,
        results,
        mut paths,
        devices,
    } = prepared;
    let workload = work.over_nodes()?;
    let inputs = paths.fingerprints();
    let files = is_first()
        .then(|| job.files.prepare(&mut paths))
        .transpose()?;
    check_memory(job, &workload, nodes as u64)?;
    let list = devices.or(job.devices.map(str::to_owned));
    let mut devices = OpenDevices::open(DeviceOptions {
        list,
        ..DeviceOptions::default()
    })?;
    devices.begin(None)?;
    Ok(Opened {
        workload,
        results,
        files,
        devices,
        inputs,
    })
}

/// Writes the files that show a run, if the job has some.
pub fn write_trace(
    job: &ClusterJob,
    files: Option<PreparedFiles>,
    report: &Report,
    outcome: &ClusterOutcome,
) -> Result<(), Failure> {
    let Some(files) = files.filter(|_| job.files.wanted()) else {
        return Ok(());
    };
    files.write(&nodes::of(outcome), report)
}

/// Checks that a node's part of all spaces, or all of them where one node compares them,
/// fits in its memory.
fn check_memory(job: &ClusterJob, prepared: &PreparedWorkload, nodes: u64) -> Result<(), Failure> {
    let all = prepared.bytes();
    let size = &prepared.size;
    let (needed, title) = match prepared.workload.check() {
        // The first node gets all blocks, and puts them together.
        Check::Whole(..) if job.verify => (2 * all, format!("--verify of {size}")),
        _ => (
            all.div_ceil(nodes.into()),
            format!("a node's part of {size}"),
        ),
    };
    let needed = u64::try_from(needed).unwrap_or(u64::MAX);
    let here = Host::detect().memory.obtainable(0);
    let remedy = "a smaller size, or more nodes";
    host_memory(title, needed, here, remedy)
}

/// What the first node has to report.
type Reported = Option<(Report, ClusterOutcome)>;

/// A job with its workload.
struct JobOf<'a> {
    job: &'a ClusterJob<'a>,
    workload: PreparedWorkload,
    inputs: String,
}

impl JobOf<'_> {
    fn run(
        &mut self,
        wire: Box<dyn Wire>,
        runtime: &mut dyn Runtime,
        results: &mut [ResultFile],
        notes: Vec<String>,
        stop: &AtomicBool,
    ) -> Result<(Reported, Box<dyn Wire>), ClusterError> {
        let job = self.job;
        let is_first = wire.rank() == 0;
        let of = &self.workload;
        let (name, version) = (of.workload.name(), env!("CARGO_PKG_VERSION"));
        let program = format!("pdawl {version} run {name} {}{}", of.size, self.inputs);
        let settings = Settings {
            prefetch: job.nodes.spread.prefetch(),
            ..Settings::default()
        };
        let options = Options {
            settings,
            traces: job.files.wanted(),
            ..Options::on(runtime, program)
        };
        let spread = is_first.then(|| job.nodes.spread.spread().spread(job.seed));
        let devices = runtime.devices().to_vec();
        let node = Node::join(wire, runtime, options, spread, stop)?;
        // All nodes know what all of them are, and make the same workload.
        let fitted = (self.workload).fit(Fit::new(node.nodes(), settings.network));
        fitted.map_err(|failure| ClusterError::Refused(failure.in_words()))?;
        let PreparedWorkload { workload, tile, .. } = &self.workload;
        let tasks = workload.tasks();
        let format = if is_first { job.format } else { Format::Json };
        let bar = terminal::progress(format, tasks, "tasks");
        let outputs = results.iter_mut();
        let outputs = outputs.map(|result| (result.space, result as &mut dyn Sink));
        let control = Control {
            tile: *tile,
            verify: job.verify.then_some(job.seed),
            outputs: outputs.collect(),
            progress: &mut |done| bar.set_position(done),
        };
        let ran = node.run_until_settled(&**workload, control);
        bar.finish_and_clear();
        let (outcome, wire) = ran?;
        let reported = outcome.map(|outcome| {
            let first = outcome.nodes.first().map(|node| node.name.clone());
            let mut machine = Machine::real(first.unwrap_or_default(), Host::detect(), devices);
            machine.implementations = runtime.implementations();
            (self.report(&outcome, machine, notes), outcome)
        });
        Ok((reported, wire))
    }

    fn report(&self, outcome: &ClusterOutcome, machine: Machine, notes: Vec<String>) -> Report {
        let (spread, of) = (&self.job.nodes.spread, &self.workload);
        let of_nodes = outcome.nodes.iter().flat_map(|node| {
            let notes = node.notes.iter();
            notes.map(|note| format!("{}: {note}", node.name))
        });
        let context = Context {
            workload: of.described(outcome.tasks),
            machine,
            policy: of.policy(spread),
            notes: (of.notes.iter().cloned())
                .chain(notes)
                .chain(of_nodes)
                .collect(),
        };
        let asked = Asked {
            figure: (of.workload.figure()).map(|figure| [figure.name, figure.title]),
            tolerance: of.tolerance,
            prefetch: spread.prefetch(),
        };
        report(outcome, context, asked)
    }
}

/// The failure of a wrong result.
pub(super) fn verdict(report: &Report) -> Result<(), Failure> {
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
        error => Failure::of(error),
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
