//! `pdawl profile`: measured runs, for a cost model to learn from.
//!
//! `options` are the options of users; `stencil` and `product` measure what they ask
//! for in a `session`, for `pdawl profile` and for `pdawl train`. `machine` finds the
//! machine, and `file` the dataset.

pub(super) mod machine;
mod options;
mod product;
mod session;
mod stencil;

use clap::Subcommand;

use super::args::Format;
use super::failure::Failure;
use super::{interrupt, terminal};

pub use options::{Budget, ProfileOptions, SessionOptions};
pub use product::ProductProfileOptions;
pub use session::provenance;

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  pdawl profile stencil --budget 5m")]
pub struct Args {
    #[command(subcommand)]
    workload: Workload,
}

#[derive(Debug, Subcommand)]
enum Workload {
    /// Profile Jacobi stencils: 2-D 5-point or 3-D 7-point
    ///
    /// Runs the CPU and each GPU by itself in configurations that span the
    /// machine's sizes, workers, chunks and memory limits, several times each and
    /// in shuffled order. Every row is kept as soon as it is measured, and is not
    /// measured again: the same command goes on where it was interrupted.
    Stencil(Box<Stencil>),
    /// Profile products of sparse matrices with a vector
    ///
    /// Multiplies 50 generated matrices of many shapes and sizes, on the CPU and
    /// on each GPU by itself, with everything held and with parts streamed. Rows
    /// are kept as they are measured, and are not measured again.
    Spmv(Box<Spmv>),
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  pdawl profile stencil --budget 5m\n  \
                        pdawl profile stencil --machine k40\n  \
                        pdawl profile stencil --machine k40 --sizes 1200,25000 --out held-out.csv")]
struct Stencil {
    #[command(flatten)]
    options: ProfileOptions,

    /// How the summary is printed
    #[arg(long, value_enum, default_value_t, help_heading = "Output")]
    format: Format,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  pdawl profile spmv --budget 5m\n  \
                        pdawl profile spmv --machine k40 --count 20\n  \
                        pdawl profile spmv --matrices 'like:FullChip like:eu-2005' --out held-out.csv")]
struct Spmv {
    #[command(flatten)]
    products: ProductProfileOptions,

    /// How the summary is printed
    #[arg(long, value_enum, default_value_t, help_heading = "Output")]
    format: Format,
}

/// Runs the subcommand.
pub fn run(args: &Args) -> Result<(), Failure> {
    let stop = interrupt::listen()?;
    let (report, format) = match &args.workload {
        Workload::Stencil(args) => (args.options.carry_out(args.format, stop)?, args.format),
        Workload::Spmv(args) => (args.products.carry_out(args.format, stop)?, args.format),
    };
    terminal::print_report(format, &report, |report| report.render())?;
    match report.interrupted {
        true => Err(Failure::Interrupted),
        false => Ok(()),
    }
}
