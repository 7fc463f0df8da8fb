//! Page ranks of a graph, as users describe them.

use std::path::Path;

use pdawl::matrix::{MatrixSource, Origin};

use super::grid::PrecisionArg;
use super::integer::integer;
use super::matrix::load;
use super::product::{Product, Ranks};

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
