//! Running a job as asked, and reporting.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pdawl::engine::graph::numbers::{Times, problem};
use pdawl::engine::graph::search::{self, Found};
use pdawl::engine::graph::{Control, GraphOutcome, Options, Plan, abilities, times};
use pdawl::graph::Components;
use pdawl::machine::DeviceKind;
use pdawl::policy::{Adaptive, Clustering, Eager, Heft, Policy, Problem, Search, Space};
use pdawl::report::graph::{Described, GraphReport, Told, Tried, render, report};
use pdawl::runtime::Runtime;
use pdawl::trace::About;

use super::memory::fits;
use super::sharing::PolicyName;
use super::{GraphArgs, Job, Verified, failure, open_machine};
use crate::cli::args::Format;
use crate::cli::failure::Failure;
use crate::cli::files::PreparedFiles;
use crate::cli::machine_session::Needs;
use crate::cli::paths::Paths;
use crate::cli::{interrupt, terminal};

/// Rounds of a search: the first tries everything, and each later one the better
/// half again.
const ROUNDS: usize = 4;

/// Most queues that a search tries, as in the paper.
const SEARCHED_QUEUES: usize = 5;

/// Runs a job, and prints and writes what was asked for.
///
/// # Errors
/// What the engine refuses or cannot recover from, wrong results, and Ctrl-C.
pub fn run(job: &mut Job<'_>, args: &GraphArgs) -> Result<(), Failure> {
    let policy = args.sharing.policy()?;
    let reads = job.reads.iter().map(PathBuf::as_path);
    let mut paths = Paths::reading(reads.chain(args.machine.machine_path()));
    let files = args.files.prepare(&mut paths)?;
    let stop = interrupt::listen()?;
    let levels = job
        .components
        .list()
        .iter()
        .map(|c| c.level as u32 + 1)
        .max();
    let levels = levels.unwrap_or(1);
    let needs = Needs {
        fp64: job.fp64,
        data: args.verify,
        seed: job.seed,
    };
    let mut session = open_machine(&args.machine, needs, levels)?;
    fits(job, &session.machine, args.verify)?;
    let traced = args.files.wanted() || session.machine.simulated;
    let done = session.with(None, |runtime| {
        conduct(runtime, job, args, policy, traced, stop)
    })??;
    let told = Told {
        graph: Described::new(
            job.name,
            job.title.clone(),
            job.parameters.clone(),
            &job.graph,
            &done.components,
        ),
        machine: session.machine.clone(),
        setup_seconds: done.setup_seconds,
        found: done
            .found
            .as_ref()
            .and_then(|f| f.best.as_ref().map(Tried::from)),
        tried: (done.found.iter().flat_map(|f| &f.all))
            .map(Tried::from)
            .collect(),
        verified: done.verified.map(|(right, _)| right),
        max_error: done.verified.map(|(_, error)| error),
        notes: session.notes.clone(),
    };
    let report = report(&done.timed, &done.last, &done.components, told);
    tell(&report, &done.last, args.format, files)
}

fn tell(
    report: &GraphReport,
    last: &GraphOutcome,
    format: Format,
    files: PreparedFiles,
) -> Result<(), Failure> {
    let about = About {
        workload: report.graph.title.clone(),
        strategy: report.policy.to_owned(),
        machine: report.machine.name.clone(),
        simulated: report.machine.simulated,
    };
    // The files do not depend on who reads the report, nor the report on them.
    let written = match last.interrupted && last.trace.spans.is_empty() {
        true => {
            files.discard("the run of which there would be a trace");
            Ok(())
        }
        false => files.write(&last.trace, &about),
    };
    terminal::print_report(format, report, render)?;
    written?;
    match (report.verified, report.interrupted) {
        (Some(false), _) => Err(Failure::failed(
            format!(
                "the results differ from the sequential reference by up to {:e}",
                report.max_error.unwrap_or(f64::NAN)
            ),
            "the same on single devices (--devices ...) to find the one that computes wrongly",
        )),
        (_, true) => Err(Failure::Interrupted),
        _ => Ok(()),
    }
}

/// What came of a job.
struct Done {
    components: Arc<Components>,
    timed: Vec<GraphOutcome>,
    /// The last run: traced, if that was wanted.
    last: GraphOutcome,
    setup_seconds: f64,
    found: Option<Found>,
    verified: Verified,
}

fn conduct(
    runtime: &mut dyn Runtime,
    job: &mut Job<'_>,
    args: &GraphArgs,
    name: PolicyName,
    traced: bool,
    stop: &AtomicBool,
) -> Result<Done, Failure> {
    let sharing = &args.sharing;
    let single = matches!(name, PolicyName::Eager | PolicyName::Heft);
    let components = match single {
        true => Arc::new(Components::single_kernels(&job.graph)),
        false => Arc::clone(&job.components),
    };
    let begun = runtime.now();
    let devices = runtime.devices().to_vec();
    let able = abilities(&job.graph, &components, &devices);
    let known = match name {
        PolicyName::Heft => times::measure(runtime, &job.graph, 1, stop).map_err(failure)?,
        _ => Times::new(),
    };
    let problem = problem(&job.graph, &components, &devices, &able, &known);
    let mut options = sharing.options(name, job.queues.as_ref(), &components, &devices)?;
    let graph = Arc::clone(&job.graph);
    let mut plan = Plan::new(runtime, graph, Arc::clone(&components)).map_err(failure)?;
    let mut found = None;
    let mut h_cpu = sharing.map.unwrap_or(0);
    if h_cpu > widest(&problem) {
        plan.release(runtime);
        return Err(Failure::usage(
            format!(
                "--map h_cpu={h_cpu}: the widest layer has {} components",
                widest(&problem)
            ),
            "as many at most",
        ));
    }
    if sharing.search {
        let space = space(&problem);
        let search = Search::new(space.configurations(widest(&problem)), ROUNDS);
        let bar = terminal::progress(args.format, 0, "search");
        let mut control = Control {
            stop,
            progress: &mut |runs, _| bar.set_position(runs as u64),
        };
        let result = search::search(runtime, &mut plan, &problem, search, &options, &mut control);
        bar.finish_and_clear();
        let result = result.map_err(failure)?;
        if let Some((best, _)) = &result.best {
            options = search::options(best, &problem, &options);
            h_cpu = best.h_cpu;
        }
        found = Some(result);
    }
    let mut policy = policy(name, &problem, h_cpu)?;
    let bar = terminal::progress(args.format, components.len() as u64, "components");
    let mut once = |plan: &mut Plan, runtime: &mut dyn Runtime, options: &Options| {
        let mut control = Control {
            stop,
            progress: &mut |done, _| bar.set_position(done as u64),
        };
        plan.run(runtime, policy.as_mut(), options, &mut control)
            .map_err(failure)
    };
    let mut last = once(&mut plan, runtime, &options)?;
    let setup_seconds = (runtime.now() - begun) as f64 / 1e9;
    let mut timed = Vec::new();
    while timed.len() < sharing.repeats as usize && !last.interrupted {
        let run = once(&mut plan, runtime, &options)?;
        if !run.interrupted {
            timed.push(run.clone());
        }
        last = run;
    }
    if traced && !last.interrupted {
        options.trace = true;
        // Queues that stamp their commands are new: their first run is not it.
        once(&mut plan, runtime, &options)?;
        last = once(&mut plan, runtime, &options)?;
    }
    bar.finish_and_clear();
    let complete = !last.interrupted && !stop.load(Ordering::Relaxed);
    let verified = match args.verify && complete {
        true => {
            let waiting = terminal::spinner();
            waiting.set_message("comparing with the sequential reference");
            let verified = (job.verify)(&plan, runtime, stop);
            waiting.finish_and_clear();
            verified?
        }
        false => None,
    };
    last.interrupted |= args.verify && complete && verified.is_none();
    plan.release(runtime);
    Ok(Done {
        components,
        timed,
        last,
        setup_seconds,
        found,
        verified,
    })
}

/// The policy of a name.
fn policy(name: PolicyName, problem: &Problem, h_cpu: usize) -> Result<Box<dyn Policy>, Failure> {
    let problem = problem.clone();
    Ok(match name {
        PolicyName::Adaptive => Box::new(Adaptive::new(problem)),
        PolicyName::Eager => Box::new(Eager::new(problem)),
        PolicyName::Heft => Box::new(Heft::new(problem)),
        PolicyName::Clustering => {
            let map = Clustering::map(&problem, h_cpu).map_err(|e| failure(e.into()))?;
            Box::new(Clustering::new(problem, map).map_err(|e| failure(e.into()))?)
        }
    })
}

/// Components of the widest level.
fn widest(problem: &Problem) -> usize {
    problem.levels().iter().map(Vec::len).max().unwrap_or(0)
}

/// What a search tries: the paper's queues, all of them or one for a component,
/// and as many components on CPUs as there are, if there are CPUs and others.
fn space(problem: &Problem) -> Space {
    let has = |cpu: bool| {
        let mut kinds = problem
            .spots
            .iter()
            .map(|spot| spot.kind == DeviceKind::Cpu);
        kinds.any(|is_cpu| is_cpu == cpu)
    };
    let most = widest(problem);
    let queues = |there: bool| (1..=if there { SEARCHED_QUEUES } else { 1 }).collect();
    let mut q_gpu: Vec<usize> = queues(has(false));
    if has(false) {
        // Beyond the paper's five, where later devices have more use for it.
        q_gpu.extend([8, 16]);
    }
    Space {
        q_gpu,
        q_cpu: queues(has(true)),
        h_cpu: match (has(true), has(false)) {
            (true, true) => (0..=most).collect(),
            (true, false) => vec![most],
            _ => vec![0],
        },
        widths: vec![usize::MAX, 1],
    }
}
