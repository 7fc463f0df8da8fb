//! `pdawl matrix stats`.

use std::time::Instant;

use pdawl::matrix::{MatrixSource, Stats};
use pdawl::report::matrix::MatrixReport;

use super::load::{SOURCES, load};
use crate::cli::args::Format;
use crate::cli::failure::Failure;
use crate::cli::size::ByteSize;
use crate::cli::whole::whole;
use crate::cli::{interrupt, terminal};

pub const EXAMPLES: &str = "Examples:\n  pdawl matrix stats memplus.mtx.gz\n  \
                            pdawl matrix stats like:FullChip --format json\n  \
                            pdawl matrix stats rmat:20,16 --seed 7";

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The matrix: a file, a look-alike or a generator
    #[arg(value_name = "MATRIX", long_help = SOURCES)]
    matrix: MatrixSource,

    #[command(flatten)]
    options: Options,

    /// Neither use nor keep a binary copy beside the file
    #[arg(long)]
    no_cache: bool,
}

/// How a matrix is loaded and told of.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Of what is generated
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole(0..=u64::MAX),
          allow_negative_numbers = true)]
    seed: u64,

    /// Memory that may be used [default: what is free]
    #[arg(long, value_name = "SIZE", allow_negative_numbers = true)]
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
    match args.options.format {
        Format::Text => terminal::print(&report.render()),
        Format::Json => terminal::print_json(&report),
    }
}

/// What was done, and the seconds that it took.
pub fn timed<T>(act: impl FnOnce() -> Result<T, Failure>) -> Result<(T, f64), Failure> {
    let begun = Instant::now();
    let done = act()?;
    Ok((done, begun.elapsed().as_secs_f64()))
}
