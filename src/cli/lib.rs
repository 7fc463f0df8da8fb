//! The command line, with one file for each subcommand. Nothing else prints.
//!
//! * `args`, `grid`, `product` and `size` are what users type; a `workload` is prepared from it.
//! * `machine_session` says which devices a session of a command opens, real or simulated.
//! * `output` writes files whole or not at all, and `paths` refuses an output that
//!   would overwrite another file of the command. `files` are traces and charts, and
//!   `saved_report` reports a file that was saved, and how it was made.
//! * `place` refuses the options that do nothing where a workload runs.
//! * `terminal` prints, `interrupt` handles Ctrl-C, and `failure` is the error type of commands.
//!
//! Exit status: 0 success, 1 failure, 2 wrong usage, 130 interrupted, 143
//! and 129 ended by SIGTERM and SIGHUP. `exec` returns the status of its program.

mod args;
mod bench;
mod chart;
mod cluster;
mod clusters;
mod completions;
mod devices;
mod divided;
mod exec;
mod failure;
mod files;
mod graph;
mod grid;
mod interrupt;
mod machine;
mod machine_session;
mod man;
mod matrix;
mod model;
mod operation;
mod output;
mod paths;
mod place;
mod predict;
mod product;
mod profile;
mod run;
mod saved_report;
mod saves;
mod schema;
mod size;
mod spec;
mod tasks;
mod terminal;
mod train;
mod transformer;
mod ui;
mod workload;

#[cfg(test)]
#[path = "../../tests/fixtures/own_home.rs"]
mod own_home;

use std::ffi::OsString;
use std::panic::resume_unwind;
use std::sync::OnceLock;
use std::thread::Builder;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
pub use pdawl_api::executable::Loaded;
use pdawl_api::session::{GpuRuntime, Libraries, choose_gpu_runtime, choose_libraries};

use failure::Failure;

/// Splits data-parallel work across the CPU and the GPUs of one machine so
/// that all of them finish together.
#[derive(Debug, Parser)]
#[command(
    name = "pdawl",
    version,
    arg_required_else_help = true,
    after_help = "Examples:\n  pdawl devices\n  pdawl run stencil --adaptive\n  \
                  pdawl bench --vary strategy=cpu,gpu,dawl run stencil --size 8192\n  \
                  pdawl run stencil --machine k40 --gantt run.html"
)]
struct Cli {
    /// Through which driver NVIDIA's GPUs are opened: auto, cuda or opencl. Devices of
    /// --devices are opened as they are named there
    #[arg(
        long,
        global = true,
        value_name = "RUNTIME",
        default_value_t = GpuRuntime::default(),
        value_parser = PossibleValuesParser::new(GpuRuntime::NAMED.map(|(name, _)| name))
            .try_map(|name| name.parse::<GpuRuntime>()),
        hide_possible_values = true
    )]
    runtime: GpuRuntime,
    /// Whether CUDA's libraries (cuBLAS, cuSOLVER, cuFFT) serve on GPUs through CUDA where they
    /// are found and faster than our kernels: auto or off
    #[arg(
        long,
        global = true,
        value_name = "CHOICE",
        default_value_t = Libraries::default(),
        value_parser = PossibleValuesParser::new(Libraries::NAMED.map(|(name, _)| name))
            .try_map(|name| name.parse::<Libraries>()),
        hide_possible_values = true
    )]
    libraries: Libraries,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show every device, with what matters for sharing work
    Devices(devices::Args),
    /// Measure this machine, and list or show machine files
    Machine(machine::Args),
    /// Measure a cluster, and list or show cluster files
    Cluster(clusters::Args),
    /// Show statistics of sparse matrices, and generate some
    Matrix(matrix::Args),
    /// List, show, check and exchange models of machines
    Model(model::Args),
    /// Check specifications of kernels and graphs, and infer them from sources
    Spec(spec::Args),
    /// Draw a graph of kernels
    Graph(spec::GraphArgs),
    /// Run a workload on all devices
    Run(run::Args),
    /// Compare runs that differ in some options
    Bench(bench::Args),
    /// Draw runs that were saved, one below the other
    Chart(chart::Args),
    /// Show what runs would be, in a page of the browser
    Ui(ui::Args),
    /// Run an OpenCL program, with its command queues mapped to devices
    Exec(exec::Args),
    /// Say what the OpenCL loader lists, for `exec`
    #[command(hide = true)]
    ExamineLoader,
    /// Measure runs that a cost model is trained on
    Profile(profile::Args),
    /// Profile a machine and train its cost model
    Train(Box<train::Args>),
    /// Predict how long a workload takes, without running it
    Predict(predict::Args),
    /// List and show the JSON Schemas of reports and files
    Schema(schema::Args),
    /// Print a script by which a shell completes commands and options
    Completions(completions::Args),
    /// Write manual pages
    Man(man::Args),
}

/// What the program was called with; its name comes first.
static ARGUMENTS: OnceLock<Vec<OsString>> = OnceLock::new();

fn arguments() -> &'static [OsString] {
    ARGUMENTS.get().map_or(&[], Vec::as_slice)
}

/// Bytes of the stack of that thread, as main threads usually have.
const STACK: usize = 8 << 20;

/// Runs the program in a second thread. The affinity mask of the main thread, which
/// `taskset` changes, says which cores the process may use; the thread that drives
/// devices binds itself to one of them. Returns the exit status.
pub fn run(arguments: Vec<OsString>) -> u8 {
    ARGUMENTS.get_or_init(|| arguments);
    interrupt::survive_file_limit();
    let program = Builder::new()
        .name("pdawl".to_owned())
        .stack_size(STACK)
        .spawn(program);
    match program.map(|thread| thread.join()) {
        Ok(Ok(code)) => code,
        Ok(Err(panic)) => resume_unwind(panic),
        Err(error) => Failure::failed(
            format!("the system cannot start a thread: {error}"),
            "raise the limit of processes (`ulimit -u`), or end some",
        )
        .print(),
    }
}

fn program() -> u8 {
    terminal::settle();
    let (_, matches) = parsed();
    let result = (matches.and_then(|matches| Cli::from_arg_matches(&matches)))
        .map_err(Failure::from)
        .and_then(|cli| {
            // A program that `exec` starts has standard output for itself.
            if !matches!(cli.command, Command::Exec(_)) {
                terminal::keep_output();
            }
            if matches!(cli.command, Command::Exec(_)) && cli.runtime == GpuRuntime::Cuda {
                return Err(Failure::usage(
                    "exec runs programs that use OpenCL; --runtime cuda does nothing for them",
                    "leave --runtime out",
                ));
            }
            let global = [
                (cli.runtime != GpuRuntime::default())
                    .then(|| format!("--runtime={}", cli.runtime)),
                (cli.libraries != Libraries::default())
                    .then(|| format!("--libraries={}", cli.libraries)),
            ];
            let global: Vec<String> = global.into_iter().flatten().collect();
            choose_gpu_runtime(cli.runtime);
            choose_libraries(cli.libraries);
            match cli.command {
                Command::Devices(args) => devices::run(&args),
                Command::Machine(args) => machine::run(&args),
                Command::Cluster(args) => clusters::run(&args),
                Command::Matrix(args) => matrix::run(&args),
                Command::Model(args) => model::run(&args),
                Command::Spec(args) => spec::run(&args),
                Command::Graph(args) => spec::graph(&args),
                Command::Run(args) => run::run(&args),
                Command::Bench(args) => bench::run(&args, &global),
                Command::Chart(args) => chart::run(&args),
                Command::Ui(args) => ui::run(&args),
                Command::Exec(args) => exec::run(&args),
                Command::ExamineLoader => exec::examine_loader(),
                Command::Profile(args) => profile::run(&args),
                Command::Train(args) => train::run(&args, &global),
                Command::Predict(args) => predict::run(&args),
                Command::Schema(args) => schema::run(&args),
                Command::Completions(args) => completions::run(&args),
                Command::Man(args) => man::run(&args),
            }
        });
    ui::watch::stay();
    match result {
        Ok(()) => 0,
        Err(failure) => failure.print(),
    }
}

/// All that this program understands.
fn command() -> clap::Command {
    with_negative_numbers(Cli::command())
}

/// The command line, as the parser has it.
fn parsed() -> (clap::Command, Result<clap::ArgMatches, clap::Error>) {
    let mut command = command();
    let matches = command.try_get_matches_from_mut(arguments());
    (command, matches)
}

/// Lets every option take a negative number, so that the option's own parser refuses it
/// and names the right values.
fn with_negative_numbers(command: clap::Command) -> clap::Command {
    command
        .mut_args(
            |arg| match arg.get_action().takes_values() && !arg.is_positional() {
                true => arg.allow_negative_numbers(true),
                false => arg,
            },
        )
        .mut_subcommands(with_negative_numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_are_consistent() {
        command().debug_assert();
    }
}
