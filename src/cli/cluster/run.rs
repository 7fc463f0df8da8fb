//! Running a workload over nodes as asked, and reporting.

use std::sync::atomic::AtomicBool;

use pdawl::cluster::protocol::Settings;
use pdawl::cluster::record::ClusterOutcome;
use pdawl::cluster::wire::environment::Launched;
use pdawl::cluster::wire::heartbeat::Pulse;
use pdawl::cluster::wire::{LocalWire, Wire, join};
use pdawl::engine::cluster::{ClusterError, Control, Node, Options, Sink, expected};
use pdawl::machine::host::Host;
use pdawl::report::cluster::{ClusterContext, ClusterReport, report};
use pdawl::runtime::select;
use pdawl::trace::{About, nodes};
use pdawl::workload::cluster::Check;

use super::files::ResultFile;
use super::options::{ClusterOptions, NodeOptions, is_first, refuse};
use super::prepared::PreparedWorkload;
use super::simulated;
use crate::cli::args::Format;
use crate::cli::failure::{Failure, refused, wrong_devices};
use crate::cli::files::{PreparedFiles, TraceFiles};
use crate::cli::paths::Paths;
use crate::cli::{graph, interrupt, terminal};

/// The part of the host's memory that may have what subtasks read.
const INPUT_MEMORY: f64 = 0.3;

/// What is to be computed, and how.
pub struct ClusterJob<'a> {
    pub prepared: &'a PreparedWorkload,
    pub devices: Option<&'a str>,
    pub nodes: &'a NodeOptions,
    /// Of simulated times.
    pub noise: Option<f64>,
    pub seed: u64,
    pub verify: bool,
    pub format: Format,
    pub files: &'a TraceFiles,
}

impl<'a> ClusterJob<'a> {
    /// A job with the options that several workloads share.
    pub fn new(prepared: &'a PreparedWorkload, options: &'a ClusterOptions) -> Self {
        Self {
            prepared,
            devices: options.devices.as_deref(),
            nodes: &options.nodes,
            noise: options.noise,
            seed: options.seed,
            verify: options.verify,
            format: options.format,
            files: &options.files,
        }
    }
}

/// Runs a job, or simulates it. The first node prints the report, and writes results and
/// traces.
///
/// # Errors
/// What the runtime and the wire refuse, wrong results, lost nodes, and Ctrl-C.
pub fn run_job(
    job: &ClusterJob,
    mut results: Vec<ResultFile>,
    paths: &mut Paths,
) -> Result<(), Failure> {
    let files = is_first().then(|| job.files.prepare(paths)).transpose()?;
    if let Some(cluster) = &job.nodes.cluster {
        return simulated::run_job(job, cluster, files);
    }
    let remedy = "--cluster NAME; `pdawl cluster list` shows them";
    refuse([("--noise", job.noise.is_some())], "simulated runs", remedy)?;
    let stop = interrupt::listen()?;
    let rank = Launched::detect().map_or(0, |launched| launched.rank);
    let wire: Box<dyn Wire> = match join(job.nodes.wire.as_deref(), Pulse::default()) {
        Ok(Some(wire)) => Box::new(wire),
        Ok(None) => alone()?,
        Err(error) => return Err(first(Failure::of(error), rank)),
    };
    let rank = wire.rank();
    check_memory(job, wire.size() as u64).map_err(|failure| first(failure, rank))?;
    match run(job, wire, &mut results, stop) {
        Ok(None) => Ok(()),
        Ok(Some((report, outcome))) => {
            write_trace(job, files, &report, &outcome)?;
            let is_wrong = report
                .verification
                .as_ref()
                .is_some_and(|found| !found.right);
            let written = match is_wrong {
                true => Ok(()),
                false => results.into_iter().try_for_each(ResultFile::finish),
            };
            print(job, &report)?;
            written
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

/// Writes the files that show a run, if the job has some.
pub fn write_trace(
    job: &ClusterJob,
    files: Option<PreparedFiles>,
    report: &ClusterReport,
    outcome: &ClusterOutcome,
) -> Result<(), Failure> {
    let Some(files) = files.filter(|_| job.files.wanted()) else {
        return Ok(());
    };
    let about = About {
        workload: format!("{} {}", report.workload.name, report.workload.size),
        strategy: report.policy.clone(),
        machine: match &report.cluster {
            Some(cluster) => cluster.clone(),
            None => format!("{} nodes", outcome.nodes.len()),
        },
        simulated: report.simulated,
    };
    files.write(&nodes::of(outcome), &about)
}

/// Checks that a node's part of all spaces, or all of them where one node compares them,
/// fits in its memory.
fn check_memory(job: &ClusterJob, nodes: u64) -> Result<(), Failure> {
    let all = job.prepared.bytes();
    let size = &job.prepared.size;
    let (needed, title) = match job.prepared.workload.check() {
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
    graph::host_memory(&title, (needed, here), "", remedy)
}

/// The wire of a run with one node.
fn alone() -> Result<Box<dyn Wire>, Failure> {
    let wire = LocalWire::cluster(1).pop();
    let wire =
        wire.ok_or_else(|| Failure::failed("a run has no node", "a report of this fault"))?;
    Ok(Box::new(wire))
}

fn run(
    job: &ClusterJob,
    wire: Box<dyn Wire>,
    results: &mut [ResultFile],
    stop: &AtomicBool,
) -> Result<Option<(ClusterReport, ClusterOutcome)>, RunError> {
    let selection = job.devices.map(str::parse).transpose();
    let selection = selection.map_err(|why| RunError::Cli(wrong_devices(why)))?;
    let (mut runtime, notes) =
        select::open(selection.as_ref(), false).map_err(|error| RunError::Cli(refused(error)))?;
    let is_first = wire.rank() == 0;
    let memory = Host::detect().memory.obtainable(0);
    let PreparedWorkload {
        workload,
        size,
        tile,
        ..
    } = job.prepared;
    let (name, version) = (workload.name(), env!("CARGO_PKG_VERSION"));
    let options = Options {
        program: format!("pdawl {version} run {name} {size}"),
        devices: runtime.devices().iter().map(expected).collect(),
        settings: Settings {
            prefetch: job.nodes.spread.prefetch(),
            ..Settings::default()
        },
        input_bytes: (memory as f64 * INPUT_MEMORY) as u64,
        traces: job.files.wanted(),
    };
    let spread = is_first.then(|| job.nodes.spread.spread().spread(job.seed));
    let node = Node::join(wire, runtime.as_mut(), options, spread, stop)?;
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
    let outcome = node.run_workload(&**workload, control);
    bar.finish_and_clear();
    let Some(outcome) = outcome? else {
        return Ok(None);
    };
    let report = report(&outcome, context(job, &outcome, notes));
    Ok(Some((report, outcome)))
}

fn context(job: &ClusterJob, outcome: &ClusterOutcome, notes: Vec<String>) -> ClusterContext {
    let of_nodes = outcome.nodes.iter().flat_map(|node| {
        let notes = node.notes.iter();
        notes.map(|note| format!("{}: {note}", node.name))
    });
    ClusterContext {
        workload: job.prepared.described(outcome.tasks),
        figure: (job.prepared.workload.figure()).map(|figure| [figure.name, figure.title]),
        tolerance: job.prepared.tolerance,
        simulated: false,
        cluster: None,
        policy: job.nodes.spread.spread().to_string(),
        prefetch: job.nodes.spread.prefetch(),
        notes: (job.prepared.notes.iter().cloned())
            .chain(notes)
            .chain(of_nodes)
            .collect(),
    }
}

fn print(job: &ClusterJob, report: &ClusterReport) -> Result<(), Failure> {
    terminal::print_report(job.format, report, ClusterReport::render)?;
    match &report.verification {
        Some(verification) if !verification.right => Err(Failure::failed(
            format!("{} numbers of the result are wrong", verification.wrong),
            "the same run on one node, and with --devices host, to find the device",
        )),
        _ => Ok(()),
    }
}

/// Why a run fails.
enum RunError {
    Cli(Failure),
    Cluster(ClusterError),
}

impl From<ClusterError> for RunError {
    fn from(error: ClusterError) -> Self {
        Self::Cluster(error)
    }
}

/// A failure that all ranks have: the first one prints it.
fn first(failure: Failure, rank: usize) -> Failure {
    match rank {
        0 => failure,
        _ => Failure::Program(1),
    }
}

/// The failure of a run. What a node was told by another one, only the first prints.
fn of_run(error: RunError, rank: usize) -> Failure {
    match error {
        RunError::Cli(failure) => failure,
        RunError::Cluster(ClusterError::Interrupted) => Failure::Interrupted,
        RunError::Cluster(ClusterError::Stopped(why)) => match rank {
            0 if why.starts_with("interrupted") => Failure::Interrupted,
            0 => Failure::failed(why, "docs/cluster.md for what a run needs"),
            _ => Failure::Program(1),
        },
        RunError::Cluster(ClusterError::Runtime(error)) => refused(error),
        RunError::Cluster(error) => Failure::of(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_node_tells_that_the_first_one_is_lost_and_not_what_that_one_tells() {
        let told = |error, rank| match of_run(RunError::Cluster(error), rank) {
            Failure::Failed { what, .. } => Some(what),
            _ => None,
        };
        let lost = told(ClusterError::FirstLost, 2).unwrap();
        assert!(lost.starts_with("node 0 was lost"), "{lost}");
        let stopped = || ClusterError::Stopped("node 1 has no device left".to_owned());
        assert_eq!(told(stopped(), 2), None);
        assert!(told(stopped(), 0).is_some());
    }
}
