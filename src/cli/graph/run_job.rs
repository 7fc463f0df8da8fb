//! Running a graph as asked, and reporting.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pdawl::engine::graph::problem::KernelTimes;
use pdawl::engine::graph::search::{self, SearchResult};
use pdawl::engine::graph::{Control, Division, GraphOutcome, Options, PreparedGraph, times};
use pdawl::graph::Components;
use pdawl::policy::{NamedPolicy, PolicyOptions, Problem, Search, Space};
use pdawl::report::run::graph::{Measured, MeasuredConfiguration, report};
use pdawl::report::{Context, Report};
use pdawl::runtime::Runtime;
use pdawl::trace::Trace;

use super::memory::fits;
use super::{GraphArgs, GraphJob, Verified, failure, open_machine};
use crate::args::Format;
use crate::failure::Failure;
use crate::files::PreparedFiles;
use crate::machine_session::Needs;
use crate::paths::Paths;
use crate::saves::{SavedResult, Saves};
use crate::{interrupt, terminal};

/// Rounds of a search: the first tries everything, each later one the better half
/// again.
const ROUNDS: usize = 4;

/// Most queues that a search tries, as in the paper.
const SEARCHED_QUEUES: usize = 5;

/// Runs a job, and prints and writes what was asked for.
///
/// # Errors
/// What the engine refuses or cannot recover from, wrong results, and Ctrl-C.
pub fn run(job: &mut GraphJob<'_>, args: &GraphArgs) -> Result<(), Failure> {
    let policy = args.scheduling.policy()?;
    let reads = job.reads.iter().map(PathBuf::as_path);
    let mut paths = Paths::reading(reads.chain(args.machine.machine_path()));
    let files = args.files.prepare(&mut paths)?;
    let saves = job.saves.iter();
    let saves = saves.map(|(datum, file)| Ok((datum.0, paths.output(file)?)));
    let saves = Saves(saves.collect::<Result<_, Failure>>()?);
    let stop = interrupt::listen()?;
    let levels = job.components.list().iter().map(|c| c.level + 1);
    let levels = levels.max().unwrap_or(1) as u32;
    let needs = Needs {
        fp64: job.fp64,
        data: args.verify,
        seed: job.seed,
    };
    let mut session = open_machine(&args.machine, needs, levels)?;
    fits(job, &session.machine, args.verify)?;
    let traced = args.files.wanted() || session.machine.simulated;
    let result = session.with(|runtime| execute(runtime, job, args, policy, traced, stop))??;
    let context = Context {
        workload: job.workload.clone(),
        machine: session.machine.clone(),
        policy: result.last.policy.to_owned(),
        notes: [&job.notes[..], &session.notes].concat(),
    };
    let measured = Measured {
        setup_seconds: result.setup_seconds,
        found: (result.found.iter())
            .find_map(|found| found.best.as_ref().map(MeasuredConfiguration::from)),
        tried: (result.found.iter().flat_map(|found| &found.all))
            .map(MeasuredConfiguration::from)
            .collect(),
        verified: result.verified,
    };
    let graph = (&*job.graph, &*result.components);
    let report = report(&result.timed, &result.last, graph, context, measured);
    let is_right = verdict(&report);
    print(&report, &result.last.trace, args.format, files)?;
    match &is_right {
        Ok(()) => saves.write(&result.saved)?,
        Err(_) if report.interrupted => saves.drop_unwritten("interrupted before the end"),
        Err(_) => saves.drop_unwritten("the result is wrong"),
    }
    is_right
}

/// Prints the report of a run and writes the files of its trace.
///
/// # Errors
/// Those of the files. Neither they nor the report depend on whether the other can be written.
pub fn print(
    report: &Report,
    trace: &Trace,
    format: Format,
    files: PreparedFiles,
) -> Result<(), Failure> {
    let written = match report.interrupted && trace.spans.is_empty() {
        true => {
            files.discard("the run of which there would be a trace");
            Ok(())
        }
        false => files.write(trace, report),
    };
    terminal::print_report(format, report, Report::render)?;
    written
}

/// The failure of a wrong result, or of an interrupted run.
fn verdict(report: &Report) -> Result<(), Failure> {
    match (&report.verification, report.interrupted) {
        (Some(wrong), _) if !wrong.right => Err(Failure::failed(
            format!(
                "the results differ from the sequential reference by up to {:e}",
                wrong.error.unwrap_or(f64::NAN)
            ),
            "the same on single devices (--devices ...) to find the one that computes wrongly",
        )),
        (_, true) => Err(Failure::Interrupted),
        _ => Ok(()),
    }
}

/// The result of a job.
struct JobResult {
    components: Arc<Components>,
    timed: Vec<GraphOutcome>,
    /// The last run: traced, if that was wanted.
    last: GraphOutcome,
    setup_seconds: f64,
    found: Option<SearchResult>,
    verified: Verified,
    /// The bytes of results that are to be saved, by their datum.
    saved: BTreeMap<usize, SavedResult>,
}

fn execute(
    runtime: &mut dyn Runtime,
    job: &mut GraphJob<'_>,
    args: &GraphArgs,
    named: NamedPolicy,
    traced: bool,
    stop: &AtomicBool,
) -> Result<JobResult, Failure> {
    let scheduling = &args.scheduling;
    let components = match named.places_kernels() {
        true => Arc::new(Components::single_kernels(&job.graph)),
        false => Arc::clone(&job.components),
    };
    let memory = args.machine.gpu_memory.map(|size| size.0);
    let begun = runtime.now();
    let times = match named.needs_times() {
        true => times::measure(runtime, &job.graph, memory, 1, stop).map_err(failure)?,
        false => KernelTimes::new(),
    };
    let queues = job.queues.as_ref();
    let mut options = scheduling.options(named, queues, &components, runtime.devices())?;
    let own = Arc::clone(&components);
    let mut division = Division::new(runtime, &job.graph, own, &times).map_err(failure)?;
    if let Some(bytes) = memory {
        division.limit_memory(bytes);
    }
    let Division {
        problem,
        mut prepared,
    } = division;
    let mut h_cpu = scheduling.map.unwrap_or(0);
    let widest = problem.levels().iter().map(Vec::len).max().unwrap_or(0);
    if h_cpu > widest {
        prepared.release(runtime);
        return Err(Failure::usage(
            format!("--map h_cpu={h_cpu}: the widest layer has {widest} components"),
            "as many at most",
        ));
    }
    let mut found = None;
    if scheduling.search {
        let search = Search::new(space(&problem, widest).configurations(widest), ROUNDS);
        let bar = terminal::progress(args.format, 0, "search");
        let mut control = Control {
            stop,
            progress: &mut |runs, _| bar.set_position(runs as u64),
        };
        let result = search::search(
            runtime,
            &mut prepared,
            &problem,
            search,
            &options,
            &mut control,
        );
        bar.finish_and_clear();
        let result = result.map_err(failure)?;
        if let Some((best, _)) = &result.best {
            options = search::options(best, &problem, &options);
            h_cpu = best.h_cpu;
        }
        found = Some(result);
    }
    let of_policy = PolicyOptions {
        window: scheduling.window,
        on_cpu: h_cpu,
        seed: job.seed,
    };
    let policy = named.policy(problem, &of_policy);
    let mut policy = policy.map_err(|error| failure(error.into()))?;
    let bar = terminal::progress(args.format, components.len() as u64, "components");
    let mut once = |prepared: &mut PreparedGraph, runtime: &mut dyn Runtime, options: &Options| {
        let mut control = Control {
            stop,
            progress: &mut |done, _| bar.set_position(done as u64),
        };
        prepared
            .run(runtime, policy.as_mut(), options, &mut control)
            .map_err(failure)
    };
    options.trial = true;
    let mut last = once(&mut prepared, runtime, &options)?;
    options.trial = false;
    let setup_seconds = (runtime.now() - begun) as f64 / 1e9;
    let mut timed = Vec::new();
    while timed.len() < scheduling.repeats as usize && !last.interrupted {
        let run = once(&mut prepared, runtime, &options)?;
        if !run.interrupted {
            timed.push(run.clone());
        }
        last = run;
    }
    if traced && !last.interrupted {
        options.trace = true;
        // The first run with profiling queues opens them.
        let opening = once(&mut prepared, runtime, &options)?;
        last = once(&mut prepared, runtime, &options)?;
        last.losses.splice(0..0, opening.losses);
    }
    bar.finish_and_clear();
    let complete = !last.interrupted && !stop.load(Ordering::Relaxed);
    let verified = match args.verify && complete {
        true => {
            let waiting = terminal::spinner();
            waiting.set_message("comparing with the sequential reference");
            let verified = (job.verify)(&prepared, runtime, stop);
            waiting.finish_and_clear();
            verified?
        }
        false => None,
    };
    last.interrupted |= args.verify && complete && verified.is_none();
    let mut saved = BTreeMap::new();
    if !last.interrupted {
        for (datum, _) in &job.saves {
            let bytes = prepared.bytes(runtime, *datum);
            let bytes = bytes.map_err(|error| failure(error.into()))?.to_vec();
            saved.insert(datum.0, SavedResult { array: None, bytes });
        }
    }
    prepared.release(runtime);
    Ok(JobResult {
        components,
        timed,
        last,
        setup_seconds,
        found,
        verified,
        saved,
    })
}

/// What a search tries: the paper's queues, more of them on GPUs, and up to all
/// components of a level on CPUs.
fn space(problem: &Problem, components: usize) -> Space {
    let kinds = problem.devices.iter().map(|device| device.kind);
    let q_cpu: Vec<usize> = (1..=SEARCHED_QUEUES).collect();
    let q_gpu = q_cpu.iter().copied().chain([8, 16]).collect();
    Space::on(kinds, (q_gpu, q_cpu), components, components)
}
