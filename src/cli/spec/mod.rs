//! `pdawl spec` and `pdawl graph`: specifications of kernels and of graphs.
//!
//! [`described`] reads a specification with the user's symbols and what buffers begin with, for any
//! command; [`kernel`] and [`dag`] run a kernel and a graph, `starpu` a recorded one.

mod check;
pub mod dag;
pub mod described;
pub mod infer;
pub mod kernel;
pub mod show;
mod starpu;

use clap::Subcommand;

use super::failure::Failure;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  pdawl spec check kernels/examples/vadd.json\n  \
                  pdawl spec infer kernels/examples/vadd.cl\n  \
                  pdawl spec check graph.dag --format json"
)]
pub struct Args {
    #[command(subcommand)]
    what: SpecCommand,
}

#[derive(Debug, Subcommand)]
enum SpecCommand {
    /// Check a kernel file or a graph before anything runs
    #[command(after_help = check::EXAMPLES)]
    Check(check::Args),
    /// Write a kernel file from a kernel's source
    #[command(after_help = infer::EXAMPLES)]
    Infer(infer::Args),
}

/// Runs `pdawl spec`.
pub fn run(args: &Args) -> Result<(), Failure> {
    match &args.what {
        SpecCommand::Check(args) => check::run(args),
        SpecCommand::Infer(args) => infer::run(args),
    }
}

#[derive(Debug, clap::Args)]
#[command(after_help = show::EXAMPLES)]
pub struct GraphArgs {
    #[command(subcommand)]
    what: GraphWhat,
}

#[derive(Debug, Subcommand)]
enum GraphWhat {
    /// Draw a graph's kernels, buffers and components for Graphviz
    #[command(after_help = show::EXAMPLES)]
    Show(show::Args),
}

/// Runs `pdawl graph`.
pub fn graph(args: &GraphArgs) -> Result<(), Failure> {
    match &args.what {
        GraphWhat::Show(args) => show::run(args),
    }
}
