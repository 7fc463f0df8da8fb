//! The command line: one file a subcommand. The only place that prints.
//!
//! * [`args`], [`grid`], [`product`], [`size`], [`whole`] and [`fault`] are what
//!   users type; a [`task`] is a workload made of it.
//! * [`machine_session`] opens the devices that a command runs on, real or
//!   simulated; [`session`] is a workload on them; [`this_machine`] looks at the
//!   machine that the program runs on.
//! * [`output`] writes files whole or not at all, [`paths`] sees that none goes
//!   over another, [`saved`] tells of one,
//!   [`terminal`] prints, [`interrupt`] hears Ctrl-C, [`failure`] is how a
//!   command fails, and [`invocation`] is what files say of how they were made.
//!
//! Exit status: 0 fine, 1 failure, 2 usage, 130 interrupted.

mod args;
mod bench;
mod devices;
mod failure;
mod fault;
mod files;
mod graph;
mod grid;
mod interrupt;
mod invocation;
mod machine;
mod machine_session;
mod matrix;
mod model;
mod output;
mod paths;
mod predict;
mod product;
mod profile;
mod run;
mod saved;
mod session;
mod size;
mod spec;
mod task;
mod terminal;
mod this_machine;
mod train;
mod transformer;
mod trial;
mod whole;

use std::panic::resume_unwind;
use std::process::ExitCode;
use std::thread::Builder;

use clap::{Parser, Subcommand};

use failure::Failure;

/// Splits data-parallel work across the CPU and the GPUs of one machine so
/// that all of them finish together.
#[derive(Debug, Parser)]
#[command(
    name = "pdawl",
    version,
    arg_required_else_help = true,
    after_help = "Examples:\n  pdawl devices\n  pdawl run stencil --adaptive\n  \
                  pdawl bench stencil --size 8192\n  \
                  pdawl run stencil --machine k40 --gantt run.html"
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show every device, with what matters for sharing work
    Devices(devices::Args),
    /// Measure this machine, and list or show machine files
    Machine(machine::Args),
    /// Show what sparse matrices are like, and make some
    Matrix(matrix::Args),
    /// List, show, check and exchange models of machines
    Model(model::Args),
    /// Check specifications of kernels and graphs, and make them of sources
    Spec(spec::Args),
    /// Draw a graph of kernels
    Graph(spec::GraphArgs),
    /// Run a workload on all devices
    Run(run::Args),
    /// Compare strategies on a workload
    Bench(bench::Args),
    /// Measure runs for a cost model to learn from
    Profile(profile::Args),
    /// Profile a machine and train its cost model
    Train(Box<train::Args>),
    /// Tell how long a workload would take, without running it
    Predict(predict::Args),
}

/// Bytes of the program's stack: what a main thread usually has.
const STACK: usize = 8 << 20;

/// Runs the program beside the main thread. The main thread's affinity mask is
/// what `taskset` changes, and says which cores the process may use; whoever
/// drives devices binds itself to one of them.
pub fn main() -> ExitCode {
    let program = Builder::new()
        .name("pdawl".to_owned())
        .stack_size(STACK)
        .spawn(program);
    match program.map(|thread| thread.join()) {
        Ok(Ok(code)) => code,
        Ok(Err(panic)) => resume_unwind(panic),
        Err(error) => Failure::failed(
            format!("the system starts no thread: {error}"),
            "raise the limit of processes (`ulimit -u`), or end some",
        )
        .tell(),
    }
}

fn program() -> ExitCode {
    let result = Cli::try_parse()
        .map_err(Failure::from)
        .and_then(|cli| match cli.command {
            Command::Devices(args) => devices::run(&args),
            Command::Machine(args) => machine::run(&args),
            Command::Matrix(args) => matrix::run(&args),
            Command::Model(args) => model::run(&args),
            Command::Spec(args) => spec::run(&args),
            Command::Graph(args) => spec::graph(&args),
            Command::Run(args) => run::run(&args),
            Command::Bench(args) => bench::run(&args),
            Command::Profile(args) => profile::run(&args),
            Command::Train(args) => train::run(&args),
            Command::Predict(args) => predict::run(&args),
        });
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.tell(),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::Cli;

    #[test]
    fn the_arguments_are_consistent() {
        Cli::command().debug_assert();
    }
}
