//! Sparse products and page ranks over several nodes.

use std::path::Path;

use pdawl::codelet::Precision;
use pdawl::matrix::{MatrixSource, Origin};
use pdawl::report::run::nodes::Tolerance;
use pdawl::workload::cluster::BandsWorkload;
use pdawl::workload::spmv::Form;

use super::options::is_first;
use super::prepared::PreparedWorkload;
use crate::args::Format;
use crate::failure::Failure;
use crate::grid::{MemoryBudget, PrecisionArg};
use crate::integer::integer;
use crate::interrupt;
use crate::matrix::load;
use crate::product::{Product, Ranks};
use crate::size::ByteSize;

/// A product or page ranks, with the shape and the type of its last vector. Every node reads or
/// generates the matrix.
///
/// # Errors
/// When there is no such matrix, or it cannot be iterated.
pub fn prepare(
    product: &Product,
    format: Format,
) -> Result<(PreparedWorkload, Vec<u64>, Precision), Failure> {
    let stop = interrupt::listen()?;
    // All nodes must make the same product, whatever memory they have.
    let budget = MemoryBudget {
        memory: ByteSize(u64::MAX),
        grids: 2,
    };
    let mut matrix = product.load(None, shown(format), stop)?;
    let notes = std::mem::take(&mut matrix.notes);
    let spmv = product.spmv(matrix, budget)?;
    let csr = spmv.matrix();
    let (ranks, steps) = (product.ranks(), product.steps);
    let tolerance = ranks.and_then(|ranks| ranks.tolerance);
    let what = match (product.form(), ranks) {
        (Form::Iteration, _) => "x = A x / |A x|".to_owned(),
        (Form::Ranks, Some(ranks)) => format!("page ranks, damping {}", ranks.damping),
        _ => "y = A x".to_owned(),
    };
    let steps_asked = match tolerance {
        None => format!("{steps} steps"),
        Some(sum) => format!("at most {steps} steps, tolerance {sum:e}"),
    };
    let size = format!(
        "{}, {} x {} with {} entries, {what}, {steps_asked}, {}, seed {}",
        spmv.matrix_name(),
        csr.rows(),
        csr.columns(),
        csr.nonzeros(),
        product.precision().name(),
        product.seed
    );
    let rows = csr.rows().into();
    let workload = BandsWorkload::product(spmv, steps, tolerance);
    let prepared = PreparedWorkload {
        tolerance: tolerance.map(|tolerance| Tolerance {
            tolerance,
            steps: steps.into(),
            tasks: steps.into(),
        }),
        notes,
        ..PreparedWorkload::of_bands(workload, size)
    };
    Ok((prepared, vec![rows], product.precision()))
}

/// A graph, and how its vertices are ranked.
#[derive(Debug, clap::Args)]
pub struct Ranking {
    /// The links: an entry of the matrix is a link from its row's vertex to its column's
    #[arg(long, value_name = "MATRIX", long_help = long_help(), value_parser = load::source())]
    matrix: MatrixSource,

    /// The probability that a visitor follows a link
    #[arg(long, value_name = "PART", default_value_t = 0.85, value_parser = part)]
    damping: f64,

    /// Steps from equal ranks
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = integer(1..=u32::MAX))]
    steps: u32,

    /// Floating-point type
    #[arg(long, value_enum, default_value_t)]
    precision: PrecisionArg,

    /// Neither use nor keep a binary copy beside a matrix's file
    #[arg(long)]
    no_cache: bool,
}

fn long_help() -> String {
    format!(
        "The links: an entry of the matrix is a link from its row's vertex to its column's, \
         whatever its value is. {}",
        load::SOURCES
    )
}

fn part(text: &str) -> Result<f64, String> {
    (text.parse().ok())
        .filter(|part| (0.0..1.0).contains(part))
        .ok_or_else(|| "this is a probability from 0 to less than 1, such as 0.85".to_owned())
}

/// Parses a sum of changes.
///
/// # Errors
/// When the text is no finite number of at least 0.
pub fn tolerance(text: &str) -> Result<f64, String> {
    (text.parse().ok())
        .filter(|sum: &f64| sum.is_finite() && *sum >= 0.0)
        .ok_or_else(|| "this is a sum of changes of ranks, at least 0, such as 1e-6".to_owned())
}

impl Ranking {
    /// The path of the graph's file, if it comes from a file.
    pub fn path(&self) -> Option<&Path> {
        match &self.matrix.origin {
            Origin::File(path) => Some(path),
            _ => None,
        }
    }

    /// The ranks as a product on one machine.
    pub fn product(&self, tolerance: Option<f64>, seed: u64) -> Product {
        let ranks = Ranks {
            damping: self.damping,
            tolerance,
        };
        let matrix = (self.matrix.clone(), self.no_cache);
        Product::of_ranks(ranks, matrix, (self.steps, self.precision), seed)
    }
}

/// The form of output that decides about a bar: only the first node shows one.
fn shown(format: Format) -> Format {
    match is_first() {
        true => format,
        false => Format::Json,
    }
}
