//! The arguments that describe a product with a sparse matrix, and the product that
//! they give.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::Args;
use pdawl_api::codelet::Precision;
use pdawl_api::matrix::npy::NpyMatrix;
use pdawl_api::matrix::{Csr, MatrixSource, Origin};
use pdawl_api::quantity::Bytes;
use pdawl_api::report::Workload;
use pdawl_api::workload::Divisible;
use pdawl_api::workload::spmv::{DAMPING, Form, Options, Spmv, SpmvError, arrange};

use super::args::Format;
use super::failure::Failure;
use super::grid::{MemoryBudget, PrecisionArg};
use super::matrix;
use super::saves::KeptArray;
use super::size::integer;

/// A matrix and steps.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Workload")]
pub struct Product {
    /// The matrix: a Matrix Market file, a look-alike such as
    /// like:circuit5M@0.1, or a generator such as rmat:20,16
    #[arg(long, value_name = "MATRIX", help = "The matrix", long_help = matrix::SOURCES,
          value_parser = matrix::source())]
    matrix: MatrixSource,

    /// Iterate x = A x / |A x| and estimate the largest eigenvalue, instead of
    /// the same y = A x in each step
    #[arg(long)]
    iterate: bool,

    /// Steps, with a barrier after each
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = integer(1..=u32::MAX))]
    pub steps: u32,

    /// Floating-point type
    #[arg(long, value_enum, default_value_t)]
    precision: PrecisionArg,

    /// The fraction of rows, the longest, that may be ordered for the CPU first
    /// [default: 0.3, or what a cost model predicts to be faster]
    #[arg(long, value_name = "FRACTION", value_parser = fraction)]
    pub irregular: Option<f64>,

    /// Seed of the first vector, of a generated matrix, and of a simulation's noise
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = integer(0..=u64::MAX))]
    pub seed: u64,

    /// Neither use nor keep a binary copy beside a matrix's file
    #[arg(long)]
    no_cache: bool,

    /// The ranks of the graph, instead of a product.
    #[arg(skip)]
    ranks: Option<Ranks>,

    /// The file of the first vector, if it is given.
    #[arg(skip)]
    vector: Option<PathBuf>,

    /// Takes the result, if it is wanted.
    #[arg(skip)]
    pub result: Option<KeptArray>,
}

/// How the vertices of a graph are ranked.
#[derive(Clone, Debug)]
pub struct Ranks {
    pub damping: f64,
    /// The sum of all changes in a step that ends the run.
    pub tolerance: Option<f64>,
}

/// A loaded matrix.
pub struct Matrix {
    name: String,
    csr: Csr,
    /// Notes for the report.
    pub notes: Vec<String>,
}

/// Parses a fraction of the rows.
///
/// # Errors
/// When the text is no number from 0 to 1.
pub fn fraction(text: &str) -> Result<f64, String> {
    (text.parse().ok())
        .filter(|part| (0.0..=1.0).contains(part))
        .ok_or_else(|| "this is a fraction of the rows, from 0 to 1, such as 0.3".to_owned())
}

impl Product {
    /// The ranks of a graph, as a product.
    pub fn of_ranks(
        ranks: Ranks,
        (matrix, no_cache): (MatrixSource, bool),
        (steps, precision): (u32, PrecisionArg),
        seed: u64,
    ) -> Self {
        Self {
            matrix,
            iterate: false,
            steps,
            precision,
            irregular: None,
            seed,
            no_cache,
            ranks: Some(ranks),
            vector: None,
            result: None,
        }
    }

    /// The same with the first vector of a file, if one is named.
    pub fn with_vector(self, vector: Option<PathBuf>) -> Self {
        Self { vector, ..self }
    }

    /// The same, whose result is kept if it is `wanted`.
    pub fn keeping(&self, wanted: bool) -> Self {
        Self {
            result: wanted.then(KeptArray::default),
            ..self.clone()
        }
    }

    /// How vertices are ranked, if they are.
    pub fn ranks(&self) -> Option<&Ranks> {
        self.ranks.as_ref()
    }

    /// The path of the matrix's file, if it comes from a file.
    pub fn path(&self) -> Option<&Path> {
        match &self.matrix.origin {
            Origin::File(path) => Some(path),
            _ => None,
        }
    }

    /// Loads the matrix and shows the progress on a terminal. `memory` is the limit in
    /// bytes, if the user gave one.
    ///
    /// # Errors
    /// When there is no such matrix, or it does not fit.
    pub fn load(
        &self,
        memory: Option<u64>,
        format: Format,
        stop: &AtomicBool,
    ) -> Result<Matrix, Failure> {
        let source = MatrixSource {
            seed: self.seed,
            cache: !self.no_cache,
            memory,
            ..self.matrix.clone()
        };
        let loaded = matrix::load(&source, format, stop)?;
        Ok(Matrix {
            name: loaded.name,
            csr: loaded.csr,
            notes: loaded.notes,
        })
    }

    /// What each step computes.
    pub fn form(&self) -> Form {
        match (&self.ranks, self.iterate) {
            (Some(_), _) => Form::Ranks,
            (None, true) => Form::Iteration,
            (None, false) => Form::Product,
        }
    }

    pub fn precision(&self) -> Precision {
        self.precision.into()
    }

    /// The product. A budget for two grids is a budget for one matrix and its
    /// vectors.
    ///
    /// # Errors
    /// When the matrix cannot be iterated, or does not fit.
    pub fn spmv(&self, matrix: Matrix, budget: MemoryBudget) -> Result<Spmv, Failure> {
        let options = Options {
            form: self.form(),
            precision: self.precision(),
            damping: self.ranks.as_ref().map_or(DAMPING, |ranks| ranks.damping),
            seed: self.seed,
            irregular: self.irregular.unwrap_or(arrange::IRREGULAR),
            unit_weight: None,
        };
        let (rows, columns) = (matrix.csr.rows(), matrix.csr.columns());
        if self.ranks.is_some() && rows == 0 {
            return Err(unsuitable(SpmvError::Empty { rows, columns }));
        }
        let spmv = Spmv::new(matrix.name, Arc::new(matrix.csr), options);
        let mut spmv = spmv.map_err(unsuitable)?;
        if let Some(result) = &self.result {
            spmv = spmv.with_sink(result.sink());
        }
        if let Some(path) = &self.vector {
            spmv = spmv.with_first(vector(path, columns, self.precision())?);
        }
        let copies = budget.grids.div_ceil(2);
        let needed = needed(&spmv).saturating_mul(copies);
        if needed > budget.memory.0 {
            return Err(Failure::failed(
                format!(
                    "{} needs {} of host memory beside the matrix as it was read, and {} may be \
                     used",
                    Workload::of_product(&spmv, self.steps, None, self.seed).title,
                    Bytes(needed),
                    Bytes(budget.memory.0)
                ),
                "a smaller matrix, --precision f32, or a larger --host-memory where there is one",
            ));
        }
        Ok(spmv)
    }
}

/// The numbers of a file, one for each column, none of which the precision would round.
fn vector(path: &Path, columns: u32, precision: Precision) -> Result<Vec<f64>, Failure> {
    let file = NpyMatrix::open_vector(path).map_err(Failure::of)?;
    let shown = path.display();
    if file.columns() != u64::from(columns) {
        return Err(Failure::failed(
            format!(
                "{shown} has {} numbers, and the matrix has {columns} columns",
                file.columns()
            ),
            "a vector with a number for each column",
        ));
    }
    if file.precision() == Precision::F64 && precision == Precision::F32 {
        return Err(Failure::usage(
            format!("--precision f32: {shown} has float64"),
            "--precision f64, or vector.astype(\"float32\"), which rounds to 7 digits",
        ));
    }
    let mut bytes = vec![0; (file.columns() * file.precision().bytes()) as usize];
    file.read(0..1, 0..file.columns(), &mut bytes)
        .map_err(Failure::of)?;
    Ok(match file.precision() {
        Precision::F64 => bytemuck::pod_collect_to_vec(&bytes),
        Precision::F32 => {
            let numbers = bytes.chunks_exact(4);
            let numbers = numbers.map(bytemuck::pod_read_unaligned::<f32>);
            numbers.map(f64::from).collect()
        }
    })
}

/// The failure of a matrix that does not suit.
pub fn unsuitable(error: SpmvError) -> Failure {
    let remedy = match error {
        SpmvError::NotSquare { .. } => "`pdawl run spmv` without --iterate, which computes y = A x",
        SpmvError::Empty { .. } => "a matrix with rows and columns",
    };
    Failure::usage(error, remedy)
}

/// Bytes of the matrix in the form that devices compute, and of its vectors.
fn needed(spmv: &Spmv) -> u64 {
    let matrix = spmv.matrix();
    let vectors = u64::from(matrix.rows()) + u64::from(matrix.columns());
    (spmv.units().saturating_mul(spmv.unit_bytes()))
        .saturating_add(vectors.saturating_mul(spmv.number()))
}

/// A graph, and how its vertices are ranked.
#[derive(Debug, clap::Args)]
pub struct Ranking {
    /// The links: an entry of the matrix is a link from its row's vertex to its column's
    #[arg(long, value_name = "MATRIX", long_help = long_help(), value_parser = matrix::source())]
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
        matrix::SOURCES
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
