//! The sparse matrix-vector product: `y = A x`, the power iteration `x = A x / |A x|`, or
//! the page ranks of a graph.
//!
//! [`arrange`] determines the order of the rows and divides them into units.
//! [`readers`] records the units that read each part of the vector. `write` converts
//! the matrix and the first vector to the codelet's form. [`factors`] connects the steps of
//! an iteration. `reference` is the sequential product, and has the sequential
//! page rank of a graph's [`links`].
//!
//! A row's new number is its place in the order. The columns of a square matrix get
//! the same numbers, so that a result is the next step's vector without conversion,
//! and neighbouring units use neighbouring memory.

pub mod arrange;
pub mod factors;
#[cfg(test)]
mod fixtures;
#[cfg(test)]
mod kernel_tests;
pub mod links;
pub mod readers;
pub(crate) mod reference;
mod write;

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use thiserror::Error;

use super::kernel::Sink;
use super::{Data, Divisible};
use crate::codelet::spmv::UNIT_WEIGHT;
use crate::codelet::{Codelet, Cost, Memory, Precision, Value, spmv};
use crate::matrix::Csr;
use crate::random::uniform;
use crate::verify::{Checked, Compared, compensated};
use arrange::Arrangement;
use factors::Factors;
use links::Links;
use readers::Readers;
use reference::Expected;

/// The computation of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Form {
    /// `y = A x`, the same in every step.
    #[default]
    Product,
    /// `x = A x / |A x|`, from one step to the next.
    Iteration,
    /// The part of its time that a visitor spends at each vertex of a graph who follows a
    /// link with the probability `damping`, and goes anywhere otherwise and where there is
    /// no link. Ranks are equal at first, and sum to 1.
    ///
    /// Source: Brin and Page, "The anatomy of a large-scale hypertextual Web search engine",
    /// WWW 1998, section 2.1.1; vertices without links as in Langville and Meyer, "Deeper
    /// inside PageRank", Internet Mathematics 2004, section 3.
    Ranks,
}

/// The options of a product.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    pub form: Form,
    pub precision: Precision,
    /// Of page ranks; from 0 to less than 1.
    pub damping: f64,
    /// The seed of the first vector.
    pub seed: u64,
    /// The part of the rows that may count as irregular; see [`arrange`].
    pub irregular: f64,
    /// Weight of a unit, the sum of its entries and rows; `None` derives it from the
    /// matrix.
    pub unit_weight: Option<u64>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            form: Form::Product,
            precision: Precision::F64,
            damping: DAMPING,
            seed: 1,
            irregular: arrange::IRREGULAR,
            unit_weight: None,
        }
    }
}

/// The usual damping of page ranks.
pub const DAMPING: f64 = 0.85;

/// Why a product is not possible.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum SpmvError {
    #[error(
        "the matrix has {rows} rows and {columns} columns; only a square one can be iterated, or has links"
    )]
    NotSquare { rows: u32, columns: u32 },
    #[error(
        "the matrix has {rows} rows and {columns} columns; without either there is nothing to compute"
    )]
    Empty { rows: u32, columns: u32 },
}

/// A matrix with its arrangement, and the vector that it is multiplied with.
///
/// The numbers of the first vector are given, or uniform in [0, 1), by a hash of the seed and
/// the column. Of page ranks, the matrix is that of the graph's links.
#[derive(Clone, Debug)]
pub struct Spmv {
    matrix_name: String,
    matrix: Arc<Csr>,
    arrangement: Arrangement,
    /// The place of each row and column, if the matrix is square.
    place_of: Option<Vec<u32>>,
    options: Options,
    /// Of page ranks only.
    links: Option<Links>,
    codelet: Arc<Codelet>,
    readers: OnceLock<Readers>,
    /// The first vector, by column, if it is given.
    first: Option<Arc<[f64]>>,
    sink: Option<Sink>,
}

/// The memory of a device's part of a product; see [`crate::codelet::spmv`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed {
    pub x: Memory,
    pub y: Memory,
    pub columns: Memory,
    pub values: Memory,
    pub ends: Memory,
    pub unit_entries: Memory,
    pub unit_rows: Memory,
    pub sums: Memory,
    /// Entries and rows of the rings.
    pub entries: u64,
    pub rows: u32,
}

impl Spmv {
    /// Arranges a matrix, called `name` in reports.
    ///
    /// # Errors
    /// When the iteration of a matrix, or the page ranks of a graph are requested and it is
    /// not square.
    pub fn new(
        name: impl Into<String>,
        matrix: Arc<Csr>,
        options: Options,
    ) -> Result<Self, SpmvError> {
        let (rows, columns) = (matrix.rows(), matrix.columns());
        if options.form != Form::Product && rows != columns {
            return Err(SpmvError::NotSquare { rows, columns });
        }
        let links = (options.form == Form::Ranks).then(|| Links::of(&matrix));
        let matrix = (links.as_ref()).map_or(matrix, |links| Arc::clone(&links.matrix));
        Ok(Self::arranged(name.into(), (matrix, links), options))
    }

    fn arranged(
        matrix_name: String,
        (matrix, links): (Arc<Csr>, Option<Links>),
        options: Options,
    ) -> Self {
        let (rows, columns) = (matrix.rows(), matrix.columns());
        let arrangement =
            Arrangement::of(matrix.row_starts(), options.irregular, options.unit_weight);
        let place_of = (rows == columns).then(|| {
            let mut place_of = vec![0; rows as usize];
            for (place, row) in arrangement.row_of().iter().enumerate() {
                place_of[*row as usize] = place as u32;
            }
            place_of
        });
        Self {
            matrix_name,
            matrix,
            arrangement,
            place_of,
            options,
            links,
            codelet: Arc::new(spmv::codelet(options.precision)),
            readers: OnceLock::new(),
            first: None,
            sink: None,
        }
    }

    /// The same product with another part of irregular rows.
    pub fn with_irregular(&self, irregular: f64) -> Self {
        let options = Options {
            irregular,
            ..self.options
        };
        let data = (Arc::clone(&self.matrix), self.links.clone());
        Self {
            first: self.first.clone(),
            sink: self.sink.clone(),
            ..Self::arranged(self.matrix_name.clone(), data, options)
        }
    }

    /// The same product, which passes its result to `sink`.
    pub fn with_sink(self, sink: Sink) -> Self {
        Self {
            sink: Some(sink),
            ..self
        }
    }

    /// The same product of this vector, which has a number a column. Page ranks begin with equal
    /// ranks whatever it is.
    ///
    /// # Panics
    /// When it has more or fewer numbers.
    pub fn with_first(self, vector: Vec<f64>) -> Self {
        assert_eq!(vector.len(), self.matrix.columns() as usize);
        Self {
            first: Some(vector.into()),
            ..self
        }
    }

    /// The first vector's number of a column.
    pub(super) fn first(&self, column: u64) -> f64 {
        match &self.first {
            Some(vector) => vector[column as usize],
            None => uniform(self.options.seed, column),
        }
    }

    /// Passes the result, a number a row in the order of places, to the sink in the matrix's
    /// order.
    pub fn deliver(&self, bytes: &[u8]) {
        let Some(sink) = &self.sink else {
            return;
        };
        sink.take(0, &self.in_rows(bytes));
    }

    /// A result in the matrix's order, from one in the order of places.
    pub fn in_rows(&self, bytes: &[u8]) -> Vec<u8> {
        let number = self.number() as usize;
        let mut result = vec![0; bytes.len()];
        for (row, from) in (self.arrangement.row_of().iter()).zip(bytes.chunks_exact(number)) {
            let at = *row as usize * number;
            result[at..at + number].copy_from_slice(from);
        }
        result
    }

    /// A result in the order of places, from one in the matrix's order.
    pub fn in_places(&self, bytes: &[u8]) -> Vec<u8> {
        let number = self.number() as usize;
        let mut result = vec![0; bytes.len()];
        for (row, to) in (self.arrangement.row_of().iter()).zip(result.chunks_exact_mut(number)) {
            let at = *row as usize * number;
            to.copy_from_slice(&bytes[at..at + number]);
        }
        result
    }

    /// Whether devices can read the matrix's own arrays: the rows have their order, and the
    /// numbers are double.
    pub fn has_own_arrays(&self) -> bool {
        self.arrangement.is_natural() && self.options.precision == Precision::F64
    }

    /// The matrix's name.
    pub fn matrix_name(&self) -> &str {
        &self.matrix_name
    }

    pub fn matrix(&self) -> &Arc<Csr> {
        &self.matrix
    }

    pub fn arrangement(&self) -> &Arrangement {
        &self.arrangement
    }

    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Bytes of a number.
    pub fn number(&self) -> u64 {
        self.options.precision.bytes()
    }

    /// The units that read each part of the vector; computed at the first call.
    pub fn readers(&self) -> &Readers {
        self.readers.get_or_init(|| Readers::of(self))
    }

    /// Whether a step's result is the next one's vector.
    pub fn iterates(&self) -> bool {
        self.options.form != Form::Product
    }

    /// Bytes of an entry: its column and its value.
    pub fn entry_bytes(&self) -> u64 {
        4 + self.number()
    }

    /// The codelet's arguments for computing `units`.
    pub fn args(&self, units: &Range<u64>, placed: &Placed, factors: Factors) -> Vec<Value> {
        let memories = [
            placed.x,
            placed.y,
            placed.columns,
            placed.values,
            placed.ends,
            placed.unit_entries,
            placed.unit_rows,
            placed.sums,
        ];
        let mut args: Vec<Value> = memories.map(Value::Memory).into();
        let precision = self.options.precision;
        args.extend([
            Value::U64(placed.entries),
            Value::U32(placed.rows),
            Value::U32(self.arrangement.pieces()),
            Value::U32(units.start as u32),
            precision.value(factors.scale),
            precision.value(factors.shift),
            Value::U32(self.unit_sums() as u32),
        ]);
        args
    }

    /// The links of the graph, if its page ranks are computed.
    pub fn links(&self) -> Option<&Links> {
        self.links.as_ref()
    }

    /// Whether a row is that of a vertex without links; false unless ranks are computed.
    pub fn is_dangling(&self, row: u32) -> bool {
        let links = self.links.as_ref();
        links.is_some_and(|links| links.is_dangling[row as usize])
    }

    /// The row at a place.
    pub fn row_at(&self, place: u32) -> u32 {
        self.arrangement.row_of()[place as usize]
    }

    /// The matrix's column at a place of the vector.
    fn column_at(&self, place: u64) -> u64 {
        match self.place_of {
            Some(_) => self.arrangement.row_of()[place as usize].into(),
            None => place,
        }
    }

    /// Compares a result, the vector of the last step in the order of places, with the
    /// sequential reference. An iteration's result is first scaled to the length 1.
    /// Each row's difference must be allowed: 1e-12 of the sum of its products' magnitudes in
    /// double precision, and the propagated error in an iteration. Page ranks must sum to 1,
    /// too.
    pub fn verify(&self, steps: u32, result: &[u8]) -> Compared {
        let (found, expected) = self.found_and_expected(steps, result);
        let sum = compensated(found.iter().copied());
        let may: f64 = expected.errors.iter().sum();
        let compared = reference::compare(found.into_iter(), &expected);
        let sums_to_one = !self.has_ranks() || (sum - 1.0).abs() <= may;
        Compared {
            right: compared.right && sums_to_one,
            ..compared
        }
    }

    /// The same comparison, number by number.
    pub fn check(&self, steps: u32, result: &[u8]) -> Checked {
        let (found, expected) = self.found_and_expected(steps, result);
        let mut checked = Checked::default();
        let right = expected.values.iter().zip(&expected.errors);
        for (found, (value, error)) in found.iter().zip(right) {
            match error.is_finite() {
                true => checked.number(*found, *value, *error),
                false => checked.overflowed += 1,
            }
        }
        if self.has_ranks() {
            let sum = compensated(found);
            checked.number(sum, 1.0, expected.errors.iter().sum());
        }
        checked
    }

    fn has_ranks(&self) -> bool {
        self.options.form == Form::Ranks && self.matrix.rows() > 0
    }

    /// A result in the matrix's order, an iteration's with the length 1, and what it is
    /// expected to be.
    fn found_and_expected(&self, steps: u32, result: &[u8]) -> (Vec<f64>, Expected) {
        let mut found = vec![0.0; self.matrix.rows() as usize];
        for (row, number) in self.arrangement.row_of().iter().zip(self.read(result)) {
            found[*row as usize] = number;
        }
        if self.options.form == Form::Iteration {
            reference::normalise(&mut found);
        }
        (found, self.expected(steps))
    }

    /// What a result is expected to be, in the matrix's order.
    pub(crate) fn expected(&self, steps: u32) -> Expected {
        let columns = 0..u64::from(self.matrix.columns());
        let x: Vec<f64> = columns.map(|column| self.first(column)).collect();
        let precision = self.options.precision;
        match self.options.form {
            Form::Product => reference::product(&self.matrix, &x, precision),
            Form::Iteration => reference::iterate(&self.matrix, &x, steps, precision).0,
            Form::Ranks => self.expected_ranks(steps),
        }
    }

    fn expected_ranks(&self, steps: u32) -> Expected {
        let is_dangling = (self.links.as_ref()).map_or(&[][..], |links| &links.is_dangling);
        // Additions one after the other: the rows of a unit, and the units in eight chains.
        let additions = (UNIT_WEIGHT + self.units() / 8 + 8) as f64;
        let (damping, precision) = (self.options.damping, self.options.precision);
        reference::ranks(
            &self.matrix,
            is_dangling,
            (damping, steps.into()),
            (precision, additions),
        )
    }

    /// Converts numbers of the product's precision to doubles.
    pub fn read<'a>(&self, bytes: &'a [u8]) -> Box<dyn Iterator<Item = f64> + 'a> {
        let numbers = bytes.chunks_exact(self.number() as usize);
        match self.options.precision {
            Precision::F64 => Box::new(numbers.map(bytemuck::pod_read_unaligned::<f64>)),
            Precision::F32 => {
                Box::new(numbers.map(|n| f64::from(bytemuck::pod_read_unaligned::<f32>(n))))
            }
        }
    }
}

impl Divisible for Spmv {
    fn name(&self) -> &'static str {
        match self.options.form {
            Form::Product | Form::Iteration => "spmv",
            Form::Ranks => "pagerank",
        }
    }

    fn units(&self) -> u64 {
        self.arrangement.units()
    }

    /// The average over all units, of entries and rows' ends.
    fn unit_bytes(&self) -> u64 {
        let entries = self.matrix.nonzeros() * self.entry_bytes();
        let ends = u64::from(self.matrix.rows()) * ENDS;
        ((entries + ends) / self.units()).max(1)
    }

    fn fp64(&self) -> bool {
        self.options.precision == Precision::F64
    }

    fn codelet(&self) -> Arc<Codelet> {
        Arc::clone(&self.codelet)
    }

    /// Each entry and row once, and a part of the vector in proportion to the entries.
    fn cost(&self, units: &Range<u64>) -> Cost {
        let count = |range: Range<u64>| (range.end - range.start) as f64;
        let entries = count(self.arrangement.entries(units));
        let rows = self.arrangement.rows(units);
        let all = self.matrix.nonzeros().max(1) as f64;
        let read = f64::from(self.matrix.columns()).min(all) * entries / all;
        let number = self.number() as f64;
        Cost {
            flops: 2.0 * entries,
            bytes: entries * self.entry_bytes() as f64
                + f64::from(rows.end - rows.start) * (ENDS as f64 + number)
                + read * number,
        }
    }

    fn data(&self) -> Data<'_> {
        Data::Product(self)
    }
}

/// Bytes of the position at which a row ends.
pub const ENDS: u64 = 2;

#[cfg(test)]
mod tests;
