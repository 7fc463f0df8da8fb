//! `pdawl matrix`: shows statistics of sparse matrices, and generates some.

use std::sync::atomic::AtomicBool;

use clap::Subcommand;
use clap::builder::{OsStringValueParser, TypedValueParser};
use indicatif::ProgressBar;
use pdawl_api::matrix::{Control, Loaded, MatrixError, MatrixSource, Progress};

use crate::args::Format;
use crate::failure::Failure;
use crate::terminal;

mod generate;
mod stats;

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

/// The sources of matrices, for `--help`.
pub const SOURCES: &str = "A Matrix Market file (.mtx, or compressed .mtx.gz), a look-alike of a \
    matrix of the PDAWL paper (like:circuit5M, eu-2005, in-2004, FullChip or kmer_U1a; \
    like:NAME@0.1 has a tenth of the rows), or a generator: banded:ROWS,HALF_BANDWIDTH, \
    uniform:ROWS,PER_ROW, web:ROWS or web:ROWS,PER_ROW, circuit the same, rmat:SCALE,PER_ROW with 2^SCALE rows";

/// Parses a source of a matrix; the name of a file need not be UTF-8.
pub fn source() -> impl TypedValueParser<Value = MatrixSource> {
    OsStringValueParser::new().try_map(MatrixSource::try_from)
}

/// Loads a matrix, with a progress bar on a terminal.
///
/// # Errors
/// When there is no such matrix, or when it was interrupted.
pub fn load(source: &MatrixSource, format: Format, stop: &AtomicBool) -> Result<Loaded, Failure> {
    with_progress(&source.name(), format, stop, |control| source.load(control)).map_err(failure)
}

/// Calls `act` and shows its progress in a bar on a terminal.
pub fn with_progress<T>(
    name: &str,
    format: Format,
    stop: &AtomicBool,
    act: impl FnOnce(&mut Control) -> T,
) -> T {
    let bar = terminal::progress(format, 0, name);
    let done = act(&mut Control {
        stop,
        progress: &mut |progress| show(&bar, name, progress),
    });
    bar.finish_and_clear();
    done
}

fn show(bar: &ProgressBar, name: &str, progress: Progress) {
    bar.set_message(format!("{} {name}", progress.what));
    bar.set_length(progress.total);
    bar.set_position(progress.done);
}

/// The failure of an error of matrices.
pub fn failure(error: MatrixError) -> Failure {
    match error {
        MatrixError::Interrupted => Failure::Interrupted,
        other => Failure::of(other),
    }
}
