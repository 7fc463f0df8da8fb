//! Running graphs: the options that the commands share which do so, and their run in a session.

use std::collections::BTreeMap;
use std::path::PathBuf;

use indicatif::ProgressBar;
use pdawl_api::graph::DatumId;
use pdawl_api::policy::NamedPolicy;
use pdawl_api::report::Report;
use pdawl_api::session::{self, GraphJob, GraphOptions, GraphPolicy, Queues, Session, Stage};
use pdawl_api::trace::Trace;

use super::args::Format;
use super::failure::Failure;
use super::files::PreparedFiles;
use super::machine_session::{self, Needs};
use super::paths::Paths;
use super::run::Options;
use super::saved_report::run_words;
use super::saves::{SavedResult, Saves};
use super::size::integer;
use super::{interrupt, terminal};

/// The options of commands that run graphs.
#[derive(Clone, Debug, clap::Args)]
pub struct GraphArgs {
    #[command(flatten)]
    pub scheduling: SchedulingArgs,

    #[command(flatten)]
    pub options: Options,
}

/// A graph that a command runs.
pub struct GraphRequest {
    pub job: GraphJob,
    /// The policy, where it is not the one that the user names.
    pub policy: Option<GraphPolicy>,
    /// Queues unless the user names some.
    pub queues: Option<Queues>,
    /// Whether any kernel needs double precision.
    pub fp64: bool,
    /// Seeds random data and simulations.
    pub seed: u64,
    /// The remedy when memory does not suffice.
    pub smaller: &'static str,
    /// Files that it was read from, which no output may overwrite.
    pub reads: Vec<PathBuf>,
    /// Results and their files, which are written unless they were found wrong.
    pub saves: Vec<(DatumId, PathBuf)>,
    /// Notes for its report.
    pub notes: Vec<String>,
}

/// The policy of graphs by default.
const POLICY: &str = "adaptive";

/// How a graph is scheduled.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Scheduling")]
pub struct SchedulingArgs {
    /// The scheduling policy
    #[arg(long, value_name = "POLICY", default_value = POLICY, long_help = NamedPolicy::help())]
    pub policy: NamedPolicy,

    /// Place components by the times of earlier layers and runs (the default)
    #[arg(long, conflicts_with = "policy")]
    pub adaptive: bool,

    /// Command queues, by kind or by device: gpu=4,cpu=2 or opencl0.0=3
    ///
    /// [default: gpu=8,cpu=1; one of each for policies that place kernels]
    #[arg(long, value_name = "LIST")]
    pub queues: Option<Queues>,

    /// Queues that a component's kernels are spread over in turns
    ///
    /// [default: so many that all components of a layer have their own, at least one]
    #[arg(long, value_name = "N", value_parser = integer(1..=64_usize))]
    pub component_queues: Option<usize>,

    /// Components that a device has at once, whose data are loaded ahead
    ///
    /// [default: 16 for locality, dmdar, partition, mhfp and darts, 1 for eager, and all that
    /// are ready for auto-fit and round-robin]
    #[arg(long, value_name = "N", value_parser = integer(1..=1000_usize))]
    pub window: Option<usize>,

    /// Components of each layer on CPUs, as in h_cpu=1; with --policy clustering
    #[arg(long, value_name = "MAP", value_parser = h_cpu, conflicts_with = "search")]
    pub map: Option<usize>,

    /// Search for the best map and queues by running; with --policy clustering
    #[arg(long)]
    pub search: bool,

    /// Timed runs, after one that is not timed
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = integer(1..=u32::MAX))]
    pub repeats: u32,

    /// Leave input data on the devices from run to run
    #[arg(long)]
    pub keep_inputs: bool,
}

impl SchedulingArgs {
    /// The policy.
    ///
    /// # Errors
    /// When an option is given that is not for this policy.
    pub fn policy(&self) -> Result<NamedPolicy, Failure> {
        let policy = match self.adaptive {
            true => NamedPolicy::ADAPTIVE,
            false => self.policy,
        };
        check_window(policy, self.window)?;
        let option = match (self.map, self.search) {
            (Some(_), _) => "--map",
            (_, true) => "--search",
            _ => return Ok(policy),
        };
        match policy.takes_map() {
            true => Ok(policy),
            false => Err(Failure::usage(
                format!("{option} is for --policy clustering"),
                format!("--policy clustering {option} ..."),
            )),
        }
    }
}

/// Checks that a window is for a policy that has one.
///
/// # Errors
/// When it is not.
pub fn check_window(policy: NamedPolicy, window: Option<usize>) -> Result<(), Failure> {
    match window {
        Some(_) if !policy.has_window() => Err(Failure::usage(
            format!("--window is not for --policy {policy}, whose devices get all that is ready"),
            format!("--policy {policy} without --window, or --policy locality with it"),
        )),
        _ => Ok(()),
    }
}

/// `h_cpu=1`.
fn h_cpu(text: &str) -> Result<usize, String> {
    let number = text.strip_prefix("h_cpu=").and_then(|n| n.parse().ok());
    number.ok_or_else(|| "a map is h_cpu=N: so many components of each layer on CPUs".to_owned())
}

/// Runs a graph, and prints and writes what was asked for.
///
/// # Errors
/// What the session refuses or cannot recover from, wrong results, and Ctrl-C.
pub fn run(request: GraphRequest, args: &GraphArgs) -> Result<(), Failure> {
    let Options {
        machine,
        verify,
        format,
        files,
    } = &args.options;
    let scheduling = &args.scheduling;
    let policy = scheduling.policy()?;
    let reads = request.reads.iter().map(PathBuf::as_path);
    let mut paths = Paths::reading(reads.chain(machine.machine_path()));
    let prepared = files.prepare(&mut paths)?;
    let saves = request.saves.iter();
    let saves = saves.map(|(datum, file)| Ok((datum.0, paths.output(file)?)));
    let saves = Saves(saves.collect::<Result<_, Failure>>()?);
    let stop = interrupt::listen()?;
    let needs = Needs {
        fp64: request.fp64,
        data: *verify,
        seed: request.seed,
    };
    let named = machine_session::named(machine)?;
    let mut session = Session::with(machine_session::options(machine, named, needs))?;
    let of_file = request.queues.filter(|_| !policy.places_kernels());
    let options = GraphOptions {
        policy: (request.policy).unwrap_or(GraphPolicy::Named(policy)),
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
        verify: *verify,
        traced: files.wanted(),
        results: request.saves.iter().map(|(datum, _)| *datum).collect(),
        ..GraphOptions::of(policy)
    };
    let ran = shown(*format, "components", |progress| {
        session.run_graph(&request.job, options, stop, progress)
    });
    let ran = ran.map_err(|error| match error {
        session::Error::Memory { .. } => Failure::failed(error, request.smaller),
        other => other.into(),
    })?;
    let run = ran.run.with_notes(request.notes);
    let run = run.with_command(run_words());
    let is_right = verdict(&run);
    print(&run, run.trace(), *format, prepared)?;
    match &is_right {
        Ok(()) => {
            let saved = ran.contents.into_iter();
            let saved = saved.map(|(datum, bytes)| {
                (
                    datum.0,
                    SavedResult {
                        array: None,
                        bytes: bytes.into_vec(),
                    },
                )
            });
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_is_h_cpu() {
        assert_eq!(h_cpu("h_cpu=3"), Ok(3));
        for text in ["3", "h_cpu=", "h_cpu=-1", "q_gpu=1"] {
            assert!(h_cpu(text).is_err(), "{text}");
        }
    }
}
