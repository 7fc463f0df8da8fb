//! Sparse products and page ranks over several nodes.

use std::path::Path;
use std::sync::Arc;

use pdawl::codelet::Precision;
use pdawl::engine::cluster::simulate::Computing;
use pdawl::matrix::npy::ElementType;
use pdawl::matrix::{Csr, MatrixSource, Origin};
use pdawl::report::run::nodes::Tolerance;
use pdawl::workload::cluster::{ClusterWorkload, PagerankWorkload, SpmvWorkload};
use pdawl::workload::spmv::Form;

use super::files::{ResultArray, ResultFile};
use super::options::{SpreadOptions, is_first};
use super::prepared::PreparedWorkload;
use super::run::Prepared;
use crate::cli::args::Format;
use crate::cli::failure::Failure;
use crate::cli::grid::PrecisionArg;
use crate::cli::integer::integer;
use crate::cli::interrupt;
use crate::cli::matrix::load;
use crate::cli::paths::Paths;
use crate::cli::product::{Product, Ranks, unsuitable};

/// Blocks of spaces have no common height and width.
const NO_TILE: u64 = 1;

/// What has bands of rows whatever the placement of blocks is.
pub const PRODUCT: &str = "a sparse product, whose nodes have bands of rows";
pub const RANKS: &str = "a page rank, whose nodes have bands of vertices";

/// A product. Every node reads or generates the matrix.
///
/// # Errors
/// When there is no such matrix, or it cannot be iterated.
pub fn prepare_spmv(product: &Product, format: Format) -> Result<PreparedWorkload, Failure> {
    let stop = interrupt::listen()?;
    let matrix = product.load(None, shown(format), stop)?;
    let (name, csr, notes) = matrix.into_parts();
    let (form, precision) = (product.form(), product.precision());
    let what = match form {
        Form::Product => "y = A x",
        Form::Iteration => "x = A x / |A x|",
        Form::Ranks => "page ranks",
    };
    let size = format!(
        "{}, {what}, {} steps, {}, seed {}",
        sizes(&name, &csr),
        product.steps,
        precision.name(),
        product.seed
    );
    let steps = product.steps.into();
    let workload = SpmvWorkload::new(Arc::new(csr), form, precision, steps, product.seed);
    Ok(PreparedWorkload {
        computing: Computing::All,
        workload: Box::new(workload.map_err(unsuitable)?),
        size,
        tile: NO_TILE,
        tolerance: None,
        notes,
        fits: None,
        alone: None,
    })
}

/// A graph, and how its vertices are ranked.
#[derive(Debug, clap::Args)]
pub struct Ranking {
    /// The links: an entry of the matrix is a link from its row's vertex to its column's
    #[arg(long, value_name = "MATRIX", long_help = long_help())]
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
    pub fn product(&self, tolerance: Option<f64>, seed: u64, keeps: bool) -> Product {
        let ranks = Ranks {
            damping: self.damping,
            tolerance,
            result: keeps.then(Arc::default),
        };
        let matrix = (self.matrix.clone(), self.no_cache);
        Product::of_ranks(ranks, matrix, (self.steps, self.precision), seed)
    }

    /// The precision of a rank.
    pub fn precision(&self) -> Precision {
        self.precision.into()
    }
}

/// The page ranks of a graph over nodes, and the file of the result.
///
/// # Errors
/// A placement, and when there is no such matrix, or it is not square, or the file cannot be
/// written.
pub fn prepared_pagerank(
    ranking: &Ranking,
    (tolerance, seed): (Option<f64>, u64),
    spread: &SpreadOptions,
    output: Option<&Path>,
    format: Format,
) -> Result<Prepared, Failure> {
    let workload = prepare(ranking, tolerance, spread, seed, format)?;
    let space = workload.workload.result();
    let array = ResultArray {
        space,
        shape: &[workload.workload.spaces()[space].extent.columns],
        element: ElementType::Real(ranking.precision()),
    };
    let mut paths = Paths::reading(ranking.path());
    let result = ResultFile::prepare(output, &mut paths, &array)?;
    Ok(Prepared::new(workload, result, paths))
}

/// The page ranks of a graph after all steps. Every node reads or generates it.
///
/// # Errors
/// A placement, and when there is no such matrix, or it is not square.
pub fn prepare_pagerank(
    args: &Ranking,
    spread: &SpreadOptions,
    seed: u64,
    format: Format,
) -> Result<PreparedWorkload, Failure> {
    prepare(args, None, spread, seed, format)
}

fn prepare(
    args: &Ranking,
    tolerance: Option<f64>,
    spread: &SpreadOptions,
    seed: u64,
    format: Format,
) -> Result<PreparedWorkload, Failure> {
    spread.refuse_placement(RANKS)?;
    let stop = interrupt::listen()?;
    let source = MatrixSource {
        seed,
        cache: !args.no_cache,
        ..args.matrix.clone()
    };
    let loaded = load::load(&source, shown(format), stop)?;
    let precision: Precision = args.precision.into();
    let steps = match tolerance {
        None => format!("{} steps", args.steps),
        Some(sum) => format!("at most {} steps, tolerance {sum:e}", args.steps),
    };
    let size = format!(
        "{}, damping {}, {steps}, {}, seed {seed}",
        sizes(&loaded.name, &loaded.csr),
        args.damping,
        precision.name(),
    );
    let steps = args.steps.into();
    let workload = PagerankWorkload::new(&loaded.csr, args.damping, precision, steps);
    let mut workload = workload.map_err(|error| Failure::failed(error, "the matrix of a graph"))?;
    if let Some(tolerance) = tolerance {
        workload = workload.with_tolerance(tolerance);
    }
    Ok(PreparedWorkload {
        computing: Computing::All,
        tolerance: tolerance.map(|tolerance| Tolerance {
            tolerance,
            steps,
            tasks: workload.tasks(),
        }),
        workload: Box::new(workload),
        size,
        tile: NO_TILE,
        notes: loaded.notes,
        fits: None,
        alone: None,
    })
}

/// The form of output that decides about a bar: only the first node shows one.
fn shown(format: Format) -> Format {
    match is_first() {
        true => format,
        false => Format::Json,
    }
}

fn sizes(name: &str, csr: &Csr) -> String {
    format!(
        "{name}, {} x {} with {} entries",
        csr.rows(),
        csr.columns(),
        csr.nonzeros()
    )
}
