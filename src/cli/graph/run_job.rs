//! Running a graph as asked, and reporting.

use std::collections::BTreeMap;
use std::path::PathBuf;

use indicatif::ProgressBar;
use pdawl::report::Report;
use pdawl::session::{self, GraphOptions, GraphPolicy, Session, Stage};
use pdawl::trace::Trace;

use super::{GraphArgs, GraphRequest};
use crate::args::Format;
use crate::failure::Failure;
use crate::files::PreparedFiles;
use crate::machine_session::{self, Needs};
use crate::paths::Paths;
use crate::saves::{SavedResult, Saves};
use crate::{interrupt, terminal};

/// Runs a graph, and prints and writes what was asked for.
///
/// # Errors
/// What the session refuses or cannot recover from, wrong results, and Ctrl-C.
pub fn run(request: GraphRequest, args: &GraphArgs) -> Result<(), Failure> {
    let (scheduling, machine) = (&args.scheduling, &args.machine);
    let policy = scheduling.policy()?;
    let reads = request.reads.iter().map(PathBuf::as_path);
    let mut paths = Paths::reading(reads.chain(machine.machine_path()));
    let files = args.files.prepare(&mut paths)?;
    let saves = request.saves.iter();
    let saves = saves.map(|(datum, file)| Ok((datum.0, paths.output(file)?)));
    let saves = Saves(saves.collect::<Result<_, Failure>>()?);
    let stop = interrupt::listen()?;
    let needs = Needs {
        fp64: request.fp64,
        data: args.verify,
        seed: request.seed,
    };
    let named = machine_session::named(machine)?;
    let mut session = Session::with(machine_session::options(machine, named, needs))?;
    let of_file = request.queues.filter(|_| !policy.places_kernels());
    let options = GraphOptions {
        policy: GraphPolicy::Named(policy),
        window: scheduling.window,
        on_cpu: scheduling.map.unwrap_or(0),
        search: scheduling.search,
        queues: scheduling.queues.clone().or(of_file),
        component_queues: scheduling.component_queues,
        repeats: Some(scheduling.repeats),
        keep_inputs: scheduling.keep_inputs,
        seed: request.seed,
        faults: machine.fault.clone(),
        gpu_memory: machine.gpu_memory.map(|size| size.0),
        verify: args.verify,
        traced: args.files.wanted(),
        results: request.saves.iter().map(|(datum, _)| *datum).collect(),
        ..GraphOptions::of(policy)
    };
    let ran = shown(args.format, "components", |progress| {
        session.run_graph(&request.job, options, stop, progress)
    });
    let ran = ran.map_err(|error| match error {
        session::Error::Memory { .. } => Failure::failed(error, request.smaller),
        other => other.into(),
    })?;
    let run = ran.run.with_notes(request.notes);
    let is_right = verdict(&run);
    print(&run, run.trace(), args.format, files)?;
    match &is_right {
        Ok(()) => {
            let saved = ran.contents.into_iter();
            let saved = saved.map(|(datum, bytes)| (datum.0, SavedResult { array: None, bytes }));
            saves.write(&saved.collect::<BTreeMap<_, _>>())?;
        }
        Err(_) if run.interrupted => saves.drop_unwritten("interrupted before the end"),
        Err(_) => saves.drop_unwritten("the result is wrong"),
    }
    is_right
}

/// Shows how far a run of components, or of tasks, is.
pub fn shown<R>(
    format: Format,
    what: &str,
    run: impl FnOnce(&mut dyn FnMut(Stage, usize, usize)) -> R,
) -> R {
    let mut bars: Option<(Stage, ProgressBar)> = None;
    let clear = |bars: &mut Option<(Stage, ProgressBar)>| {
        if let Some((_, bar)) = bars.take() {
            bar.finish_and_clear();
        }
    };
    let ran = run(&mut |stage, done, all| {
        if bars.as_ref().is_none_or(|(of, _)| *of != stage) {
            clear(&mut bars);
            let bar = match stage {
                Stage::Searches => terminal::progress(format, 0, "search"),
                Stage::Runs => terminal::progress(format, all as u64, what),
                Stage::Compares => {
                    let waiting = terminal::spinner();
                    waiting.set_message("comparing with the sequential reference");
                    waiting
                }
            };
            bars = Some((stage, bar));
        }
        if let Some((_, bar)) = &bars {
            bar.set_position(done as u64);
        }
    });
    clear(&mut bars);
    ran
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
