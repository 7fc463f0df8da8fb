//! Products of matrices with numbers that are infinite or none (NaN), or whose products may
//! overflow: the places of such numbers in C = A B, and samples of the others.
//!
//! IEEE 754 decides by the terms that are not finite alone what a number of C is: none, if
//! one of its terms is none or two are opposite infinities, and otherwise their infinity.
//! Each number of C whose row of A or column of B has such numbers is compared with that.
//! In rows and columns whose products may overflow, samples are compared with sums in double
//! precision.

use super::accuracy::Samples;
use super::product::{Matrix, MatrixPart, Product, Source, Verification, norm};
use super::{Rounding, Sum};
use crate::random::uniform;

/// Numbers that are compared one by one where products may overflow.
const SAMPLES: u64 = 256;

/// What is known of a row of A or a column of B.
#[derive(Clone, Debug, Default)]
struct Line {
    has_none: bool,
    /// The places of its infinite numbers, and whether they are negative.
    infinite: Vec<(u64, bool)>,
    /// The norm of its finite numbers.
    norm: f64,
}

impl Line {
    fn add(&mut self, place: u64, number: f64) {
        if number.is_nan() {
            self.has_none = true;
        } else if number.is_infinite() {
            self.infinite.push((place, number < 0.0));
        } else {
            self.norm = self.norm.hypot(number);
        }
    }

    fn is_finite(&self) -> bool {
        !self.has_none && self.infinite.is_empty()
    }
}

/// Terms of a number of C that are not finite: a set of these.
type Terms = u8;
const PLUS: Terms = 1;
const MINUS: Terms = 2;
const NONE: Terms = 4;

/// What is left out of the sums with random vectors.
pub(super) struct Places {
    of: Product,
    rows: Vec<Line>,
    columns: Vec<Line>,
    /// By row of C, if any number of A or B is not finite.
    terms: Vec<Terms>,
    pub rows_left_out: Vec<bool>,
    pub columns_left_out: Vec<bool>,
}

impl Places {
    /// Looks at all numbers of A and B. `None` if it was interrupted.
    pub fn of<E>(of: Product, source: &mut Source<'_, E>) -> Result<Option<Self>, E> {
        let mut rows = vec![Line::default(); of.rows as usize];
        let mut columns = vec![Line::default(); of.columns as usize];
        let complete = source(Matrix::A, &mut |part| {
            let first = part.columns.start;
            let added = part.each_row(&mut rows, |_, numbers, line| {
                let finite: Vec<f64> = numbers.iter().copied().filter(|n| n.is_finite()).collect();
                line.norm = line.norm.hypot(norm(&finite));
                let others = (first..).zip(numbers).filter(|(_, n)| !n.is_finite());
                others.for_each(|(place, number)| line.add(place, *number));
            });
            added.for_each(drop);
        })? && source(Matrix::B, &mut |part| {
            for (row, number, column) in each(&part) {
                columns[column as usize].add(row, number);
            }
        })?;
        if !complete {
            return Ok(None);
        }
        // The products of two lines within this norm do not overflow.
        let most = of.rounding.most.sqrt() / 2.0;
        let is_left_out = |line: &Line| !line.is_finite() || line.norm > most;
        let mut places = Self {
            of,
            rows_left_out: rows.iter().map(is_left_out).collect(),
            columns_left_out: columns.iter().map(is_left_out).collect(),
            terms: Vec::new(),
            rows,
            columns,
        };
        let complete = places.find(source)?;
        Ok(complete.then_some(places))
    }

    /// Finds the terms that are not finite.
    fn find<E>(&mut self, source: &mut Source<'_, E>) -> Result<bool, E> {
        if self.rows.iter().chain(&self.columns).all(Line::is_finite) {
            return Ok(true);
        }
        let width = self.of.columns as usize;
        let mut terms = vec![0; self.of.rows as usize * width];
        // By column of A: the rows where it is infinite; by row of B: the columns.
        let mut of_a = vec![Vec::new(); self.of.depth as usize];
        let mut of_b = of_a.clone();
        for (row, line) in self.rows.iter().enumerate() {
            for (place, is_negative) in &line.infinite {
                of_a[*place as usize].push((row, *is_negative));
            }
            if line.has_none {
                terms[row * width..(row + 1) * width].fill(NONE);
            }
        }
        for (column, line) in self.columns.iter().enumerate() {
            for (place, is_negative) in &line.infinite {
                of_b[*place as usize].push((column, *is_negative));
            }
            if line.has_none {
                let of_column = terms.iter_mut().skip(column).step_by(width);
                of_column.for_each(|terms| *terms = NONE);
            }
        }
        let complete = source(Matrix::B, &mut |part| {
            for (place, number, column) in each(&part) {
                for (row, is_negative) in &of_a[place as usize] {
                    terms[row * width + column as usize] |= term(*is_negative, number);
                }
            }
        })? && source(Matrix::A, &mut |part| {
            for (row, number, place) in each(&part) {
                for (column, is_negative) in &of_b[place as usize] {
                    terms[row as usize * width + column] |= term(*is_negative, number);
                }
            }
        })?;
        self.terms = terms;
        Ok(complete)
    }

    fn terms(&self, row: u64, column: u64) -> Terms {
        let at = (row * self.of.columns + column) as usize;
        self.terms.get(at).copied().unwrap_or(0)
    }

    /// Whether a sum of finite products may overflow.
    fn may_overflow(&self, row: u64, column: u64) -> bool {
        let norms = self.rows[row as usize].norm * self.columns[column as usize].norm;
        2.0 * norms >= self.of.rounding.most
    }

    /// Compares what was left out of the sums. `None` if it was interrupted.
    pub fn compare<E>(
        &self,
        source: &mut Source<'_, E>,
        tolerance: f64,
    ) -> Result<Option<Verification>, E> {
        let (mut wrong, mut first, mut wide) = (0, None, 0);
        let complete = source(Matrix::C, &mut |part| {
            for (row, found, column) in each(&part) {
                let terms = self.terms(row, column);
                let overflows = || self.may_overflow(row, column);
                let is_right = match terms {
                    0 => found.is_finite() || overflows(),
                    PLUS | MINUS => {
                        let right = if terms == PLUS {
                            f64::INFINITY
                        } else {
                            f64::NEG_INFINITY
                        };
                        found == right || (found.is_nan() && overflows())
                    }
                    _ => found.is_nan(),
                };
                if !is_right {
                    wrong += 1;
                    first.get_or_insert((row, column));
                }
                wide += u64::from(terms == 0 && self.is_left_out(row, column));
            }
        })?;
        let mut worst = Verification {
            error: 0.0,
            tolerance,
            wrong,
            row: 0,
            columns: 0..1,
        };
        let mut note = |error: f64, row: u64, column: u64| {
            worst.wrong += u64::from(error > tolerance && error.is_finite());
            if error > worst.error {
                (worst.error, worst.row, worst.columns) = (error, row, column..column + 1);
            }
        };
        if let Some((row, column)) = first {
            note(f64::INFINITY, row, column);
        } else if complete && wide > 0 {
            let Some(samples) = self.sample(source, wide)? else {
                return Ok(None);
            };
            let rounding: Rounding = self.of.rounding;
            for ([row, column], [of_a, of_b], found) in samples.each() {
                let mut sum = Sum::default();
                of_a.iter().zip(of_b).for_each(|(a, b)| sum.add(*a, *b));
                note(sum.error(found, rounding) * tolerance, row, column);
            }
        }
        Ok(complete.then_some(worst))
    }

    fn is_left_out(&self, row: u64, column: u64) -> bool {
        self.rows_left_out[row as usize] || self.columns_left_out[column as usize]
    }

    /// Reads samples of what may overflow, of which there are `wide` numbers. `None` if it was
    /// interrupted.
    fn sample<E>(&self, source: &mut Source<'_, E>, wide: u64) -> Result<Option<Samples>, E> {
        let chance = SAMPLES as f64 / wide as f64;
        let mut chosen = Vec::new();
        let complete = source(Matrix::C, &mut |part| {
            for (row, found, column) in each(&part) {
                let number = row * self.of.columns + column;
                let is_wide = self.terms(row, column) == 0 && self.is_left_out(row, column);
                if is_wide && uniform(self.of.seed.wrapping_add(1), number) < chance {
                    chosen.push((row, column, found));
                }
            }
        })?;
        let mut samples = Samples::at(chosen, self.of.depth);
        let complete = complete
            && source(Matrix::A, &mut |part| samples.add_a(&part))?
            && source(Matrix::B, &mut |part| samples.add_b(&part))?;
        Ok(complete.then_some(samples))
    }
}

/// What the product of an infinite number and another one adds.
fn term(is_negative: bool, other: f64) -> Terms {
    if other == 0.0 || other.is_nan() {
        return NONE;
    }
    match is_negative == (other < 0.0) {
        true => PLUS,
        false => MINUS,
    }
}

/// The numbers of a part: row, number and column.
fn each(part: &MatrixPart) -> impl Iterator<Item = (u64, f64, u64)> {
    let columns = part.columns.clone();
    let places = part
        .rows
        .clone()
        .flat_map(move |row| columns.clone().map(move |c| (row, c)));
    places
        .zip(&part.numbers)
        .map(|((row, column), number)| (row, *number, column))
}
