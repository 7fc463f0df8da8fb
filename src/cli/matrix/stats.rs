//! `pdawl matrix stats`: shows the statistics of a matrix.

use std::time::Instant;

use pdawl_api::matrix::{MatrixSource, Stats};
use pdawl_api::report::matrix::MatrixReport;

use super::{SOURCES, load, source};
use crate::args::Format;
use crate::failure::Failure;
use crate::size::ByteSize;
use crate::size::integer;
use crate::{interrupt, terminal};

pub const EXAMPLES: &str = "Examples:\n  pdawl matrix stats memplus.mtx.gz\n  \
                            pdawl matrix stats like:FullChip --format json\n  \
                            pdawl matrix stats rmat:20,16 --seed 7";

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The matrix: a file, a look-alike or a generator
    #[arg(value_name = "MATRIX", long_help = SOURCES, value_parser = source())]
    matrix: MatrixSource,

    #[command(flatten)]
    options: Options,

    /// Neither use nor keep a binary copy beside the file
    #[arg(long)]
    no_cache: bool,
}

/// Options of both subcommands: how a matrix is loaded and reported.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Seed of a generated matrix
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = integer(0..=u64::MAX))]
    seed: u64,

    /// Use at most this much of the host's memory [default: what is free]
    #[arg(long, value_name = "SIZE")]
    host_memory: Option<ByteSize>,

    /// How the result is printed
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

impl Options {
    /// The source with these options.
    pub fn apply(&self, source: &MatrixSource) -> MatrixSource {
        MatrixSource {
            seed: self.seed,
            memory: self.host_memory.map(|size| size.0),
            ..source.clone()
        }
    }
}

pub fn run(args: &Args) -> Result<(), Failure> {
    let stop = interrupt::listen()?;
    let source = MatrixSource {
        cache: !args.no_cache,
        ..args.options.apply(&args.matrix)
    };
    let (loaded, seconds) = timed(|| load(&source, args.options.format, stop))?;
    let stats = Stats::of(&loaded.csr);
    let mut report = MatrixReport::of(&source, &stats, seconds);
    report.notes = loaded.notes;
    terminal::print_report(args.options.format, &report, MatrixReport::render)
}

/// Calls `act`, and returns its result and its seconds.
pub fn timed<T>(act: impl FnOnce() -> Result<T, Failure>) -> Result<(T, f64), Failure> {
    let begun = Instant::now();
    let done = act()?;
    Ok((done, begun.elapsed().as_secs_f64()))
}
