//! Running a product or a factorisation as asked, and reporting.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use pdawl::codelet::ProductPrecision;
use pdawl::engine::graph::Control;
use pdawl::experiment::dense::Finished;
use pdawl::experiment::tasks::{
    KernelSeconds, OpenTasks, PolicyChoice, TaskExperiment, TaskRun, sample,
};
use pdawl::graph::TaskGraph;
use pdawl::report::run::dense::{Measured, report};
use pdawl::report::run::{Lost, graph as graph_report};
use pdawl::report::{Context, Report, Workload};
use pdawl::runtime::Runtime;
use pdawl::verify::product::Verification;
use pdawl::workload::dense::{DenseTask, Inputs, Operation};
use pdawl::workload::task_set::TiledGraph;

use super::options::DenseOptions;
use super::result::{check_pivots, verify, write};
use super::sizes::{check_device_memory, check_host_memory, tile, wrong_set};
use crate::failure::Failure;
use crate::files::PreparedFiles;
use crate::machine_session::{self, Needs};
use crate::output::Output;
use crate::paths::Paths;
use crate::{graph, interrupt, terminal};
use pdawl::session::OpenDevices;

/// What is to be computed.
pub struct DenseJob {
    pub operation: Operation,
    pub precision: ProductPrecision,
    pub inputs: Inputs,
    /// The files of the inputs.
    pub files: Vec<PathBuf>,
}

impl DenseJob {
    /// An operation on generated matrices.
    pub fn generated(
        operation: Operation,
        precision: impl Into<ProductPrecision>,
        options: &DenseOptions,
    ) -> Self {
        Self {
            operation,
            precision: precision.into(),
            inputs: Inputs::generated(operation, options.seed),
            files: Vec::new(),
        }
    }
}

/// Runs a job, and prints and writes what was asked for: the result to `output`.
///
/// # Errors
/// Wrong tiles, what does not fit in memory, what the engine refuses or cannot recover
/// from, wrong results, and Ctrl-C.
pub fn run_job(
    job: DenseJob,
    options: &DenseOptions,
    mut paths: Paths,
    output: Option<&Path>,
) -> Result<(), Failure> {
    graph::check_window(options.policy, options.window)?;
    let output = output.map(|path| paths.output(path)).transpose()?;
    let files = options.files.prepare(&mut paths)?;
    let stop = interrupt::listen()?;
    let began = Instant::now();
    let wants_data = options.verify || output.is_some();
    let mut session = open_machine(&job, options, wants_data)?;
    let task = DenseTask {
        operation: job.operation,
        tile: tile(&job, options, &session.machine.devices)?,
        precision: job.precision,
        order: options.order.into(),
        seed: options.seed,
    };
    check_host_memory(&task, &session, wants_data)?;
    let inputs = Arc::new(job.inputs);
    let tiled = task
        .tiled(&inputs, stop)
        .map_err(|error| wrong_set(&task, &error))?;
    let experiment = TaskExperiment::new(Arc::new(tiled.graph.clone()));
    check_device_memory(&experiment, options, &session.machine.devices)?;
    let seconds = measure(&task, &mut session, stop)?;
    // Without phases of its own, it has no steps but the first.
    machine_session::inject(&mut session, &options.machine.fault, (1, "--repeats"))?;
    let simulated = session.machine.simulated;
    let mut running = Running {
        options,
        task: &task,
        tiled: &tiled,
        inputs: &inputs,
        traced: options.files.wanted() || simulated,
        simulated,
        has_data: wants_data || !simulated,
        stop,
        began,
    };
    let ran = session.with(None, |runtime| {
        let memory = options.machine.gpu_memory.map(|size| size.0);
        let mut open = experiment
            .open(runtime, &seconds, memory)
            .map_err(graph::failure)?;
        let ran = running.all(runtime, &mut open, output);
        open.release(runtime);
        ran
    })??;
    let files_read = job.files.iter().map(|path| path.display().to_string());
    let workload = Workload::of_dense(&task, experiment.tasks(), files_read.collect());
    let context = Context {
        workload,
        machine: session.machine.clone(),
        policy: options.policy.to_string(),
        notes: session.notes.clone(),
    };
    let measured = Measured {
        window: options.window,
        gpu_memory_bytes: options.machine.gpu_memory.map(|size| size.0),
        least_seconds: None,
        setup_seconds: ran.setup_seconds,
        runs: ran.timed,
        lost: ran.lost,
    };
    let verification = ran.verification.as_ref();
    let report = report(&ran.last, &tiled.graph, context, measured, verification);
    print(&report, &ran.last, verification, options, files)
}

/// Opens the devices.
fn open_machine(
    job: &DenseJob,
    options: &DenseOptions,
    data: bool,
) -> Result<OpenDevices, Failure> {
    let needs = Needs {
        fp64: job.precision == ProductPrecision::Double,
        data,
        seed: options.seed,
    };
    machine_session::open(
        &options.machine,
        machine_session::named(&options.machine)?,
        needs,
    )
}

/// Measures tasks of every kind.
fn measure(
    task: &DenseTask,
    session: &mut OpenDevices,
    stop: &AtomicBool,
) -> Result<KernelSeconds, Failure> {
    let graph: TaskGraph =
        (sample(&task.set()).graph()).map_err(|error| wrong_set(task, &error))?;
    let graph = Arc::new(graph);
    let waiting = terminal::spinner();
    waiting.set_message("measuring kernels");
    let measured = session.without_data(|runtime| KernelSeconds::measure(runtime, &graph, stop));
    waiting.finish_and_clear();
    measured?.map_err(graph::failure)
}

/// The runs of a job.
struct Running<'a> {
    options: &'a DenseOptions,
    task: &'a DenseTask,
    tiled: &'a TiledGraph,
    inputs: &'a Inputs,
    traced: bool,
    simulated: bool,
    /// Whether there are numbers.
    has_data: bool,
    stop: &'a AtomicBool,
    began: Instant,
}

/// What came of the runs.
struct Ran {
    timed: Vec<f64>,
    /// The last run: traced, if that was wanted.
    last: TaskRun,
    /// The devices that were lost in any run.
    lost: Vec<Lost>,
    setup_seconds: f64,
    verification: Option<Verification>,
}

impl Running<'_> {
    fn all(
        &mut self,
        runtime: &mut dyn Runtime,
        open: &mut OpenTasks,
        output: Option<Output>,
    ) -> Result<Ran, Failure> {
        let bar = terminal::progress(
            self.options.format,
            self.tiled.graph.kernels().len() as u64,
            "tasks",
        );
        let choice = PolicyChoice {
            policy: self.options.policy,
            window: self.options.window,
            seed: self.options.seed,
        };
        let stop = self.stop;
        let mut lost = Vec::new();
        let mut once = |open: &mut OpenTasks, runtime: &mut dyn Runtime, trace| {
            let mut control = Control {
                stop,
                progress: &mut |done, _| bar.set_position(done as u64),
            };
            let run = open.run(runtime, &choice, trace, &mut control);
            let run = run.map_err(graph::failure)?;
            // A device that stays lost takes no part in later runs, which do not tell it.
            let losses = run.outcome.losses.iter();
            lost.extend(losses.map(|loss| graph_report::lost(&run.outcome, loss)));
            Ok::<TaskRun, Failure>(run)
        };
        let mut timed = Vec::new();
        let mut last = None;
        // A device that is to be lost would be lost in a run that is not timed.
        if !self.simulated && self.options.machine.fault.is_empty() {
            last = Some(once(open, runtime, false)?);
        }
        let setup_seconds = self.began.elapsed().as_secs_f64();
        let interrupted =
            |last: &Option<TaskRun>| last.as_ref().is_some_and(|run| run.outcome.interrupted);
        for _ in 0..self.options.repeats {
            if interrupted(&last) {
                break;
            }
            let run = once(open, runtime, self.simulated)?;
            if !run.outcome.interrupted {
                timed.push(run.outcome.seconds);
            }
            last = Some(run);
        }
        if self.traced && !self.simulated && !interrupted(&last) {
            // The first run with profiling queues opens them.
            once(open, runtime, true)?;
            last = Some(once(open, runtime, true)?);
        }
        bar.finish_and_clear();
        let Some(mut last) = last else {
            return Err(Failure::Interrupted);
        };
        let complete = !last.outcome.interrupted && !stop.load(Ordering::Relaxed);
        let mut verification = None;
        if complete && self.has_data {
            verification = self.finish(runtime, open, output)?;
            last.outcome.interrupted |= self.options.verify && verification.is_none();
        }
        Ok(Ran {
            timed,
            last,
            lost,
            setup_seconds,
            verification,
        })
    }

    /// Checks the result, and writes it unless it is wrong.
    fn finish(
        &mut self,
        runtime: &mut dyn Runtime,
        open: &OpenTasks,
        output: Option<Output>,
    ) -> Result<Option<Verification>, Failure> {
        if let Some(error) = self.inputs.error() {
            return Err(Failure::failed(
                error,
                "a file that stays as it is while it is read",
            ));
        }
        let mut finished = Finished {
            task: self.task,
            tiled: self.tiled,
            prepared: open.prepared(),
            runtime,
        };
        check_pivots(&mut finished)?;
        let waiting = terminal::spinner();
        let verification = match self.options.verify {
            true => {
                waiting.set_message("checking the result");
                verify(&mut finished, self.stop)?
            }
            false => None,
        };
        let right = verification.as_ref().is_none_or(Verification::right);
        let checked = !self.options.verify || verification.is_some();
        if let Some(output) = output.filter(|_| right && checked) {
            waiting.set_message("writing the result");
            write(&mut finished, output)?;
        }
        waiting.finish_and_clear();
        Ok(verification)
    }
}

/// Prints the report and writes the files; fails for a wrong result.
fn print(
    report: &Report,
    last: &TaskRun,
    verification: Option<&Verification>,
    options: &DenseOptions,
    files: PreparedFiles,
) -> Result<(), Failure> {
    graph::print(report, &last.outcome.trace, options.format, files)?;
    match verification.filter(|verification| !verification.right()) {
        Some(wrong) => Err(Failure::failed(
            format!(
                "the result is wrong: row {}, columns {} to {}, differ by {:e}, and {:e} is \
                 allowed",
                wrong.row,
                wrong.columns.start,
                wrong.columns.end.saturating_sub(1),
                wrong.error,
                wrong.tolerance
            ),
            "the same on single devices (--devices ...) to find the one that computes wrongly",
        )),
        None if report.interrupted => Err(Failure::Interrupted),
        None => Ok(()),
    }
}
