//! `pdawl matrix`: shows statistics of sparse matrices, and generates some.
//!
//! [`load`] serves every command that needs a matrix.

mod generate;
pub mod load;
mod stats;

use clap::Subcommand;

use super::failure::Failure;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  pdawl matrix stats memplus.mtx.gz\n  \
                  pdawl matrix stats like:circuit5M@0.1\n  \
                  pdawl matrix generate rmat:16,8 power.mtx.gz")]
pub struct Args {
    #[command(subcommand)]
    what: MatrixCommand,
}

#[derive(Debug, Subcommand)]
enum MatrixCommand {
    /// Show a matrix's statistics and how long its rows are
    #[command(after_help = stats::EXAMPLES)]
    Stats(stats::Args),
    /// Make a matrix and write it as a Matrix Market file
    #[command(after_help = generate::EXAMPLES)]
    Generate(generate::Args),
}

/// Runs the subcommand.
pub fn run(args: &Args) -> Result<(), Failure> {
    match &args.what {
        MatrixCommand::Stats(args) => stats::run(args),
        MatrixCommand::Generate(args) => generate::run(args),
    }
}
