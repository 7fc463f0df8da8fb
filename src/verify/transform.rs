//! Checks of the Fourier transform of a matrix along rows and columns: columns of the result
//! by the definition, in double precision, and all of it by Parseval's equation.
//!
//! The error of a fast transform grows with the logarithm of its length (Higham, "Accuracy
//! and Stability of Numerical Algorithms", section 24.1).
//!
//! Each number of the result depends on all given ones: if one of these is infinite or none,
//! no number of the result has two finite parts. Which part is infinite and which is none
//! depends on the order of the operations, so it is not compared.

use std::ops::Range;

use super::{Checked, Rounding};

/// A complex number.
pub type Complex = [f64; 2];

/// A transform of complex numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Transform {
    pub rows: u64,
    pub columns: u64,
    pub rounding: Rounding,
}

/// Terms of sums that are computed for some columns.
const TERMS: u64 = 1 << 22;

/// Gives a row of the given numbers.
pub type Row<'a> = &'a mut dyn FnMut(u64, &mut [Complex]);

/// What is known of the given numbers.
#[derive(Clone, Copy, Debug, Default)]
struct Given {
    squares: f64,
    /// The sum of their magnitudes: no number of the result is greater.
    magnitude: f64,
    has_other: bool,
}

impl Given {
    fn add(&mut self, [re, im]: Complex) {
        self.squares += re * re + im * im;
        self.magnitude += re.abs() + im.abs();
        self.has_other |= !(re.is_finite() && im.is_finite());
    }
}

impl Transform {
    /// Columns of a block that are compared, if it has more.
    pub fn most_columns(&self) -> u64 {
        (TERMS / (self.rows * self.columns)).max(1)
    }

    fn size(&self) -> f64 {
        (self.rows * self.columns) as f64
    }

    /// The error of a number that rounding may cause, relative to its magnitude.
    fn relative(&self) -> f64 {
        16.0 * self.rounding.unit * self.size().log2().max(1.0)
    }

    /// The norm of the errors of the result that rounding may cause, for all numbers; that of
    /// one is as great at most, over the root of their count.
    fn error(&self, given: &Given) -> f64 {
        let (size, relative) = (self.size(), self.relative());
        size.sqrt() * (relative * given.squares.sqrt() + size * self.rounding.least)
    }

    /// Compares the numbers of some rows in some columns of the result, and the places of all
    /// numbers of a block that are not finite. `found` tells numbers by row and column.
    pub fn compare(
        &self,
        (rows, columns): (&Range<u64>, &Range<u64>),
        chosen: &[u64],
        given_row: Row,
        found: impl Fn(u64, u64) -> Complex,
    ) -> Checked {
        let turns_of_row = turns(self.columns);
        let mut given = Given::default();
        let mut line = vec![[0.0; 2]; self.columns as usize];
        // Column by column: the transforms of the rows.
        let mut parts = vec![Vec::with_capacity(self.rows as usize); chosen.len()];
        for row in 0..self.rows {
            given_row(row, &mut line);
            line.iter().for_each(|number| given.add(*number));
            for (parts, column) in parts.iter_mut().zip(chosen) {
                parts.push(frequency(&line, &turns_of_row, *column));
            }
        }
        let mut checked = Checked::default();
        let may_overflow = given.magnitude >= self.rounding.most;
        for row in rows.clone() {
            for column in columns.clone() {
                let is_finite = found(row, column).iter().all(|part| part.is_finite());
                match given.has_other {
                    true => checked.exactly(!is_finite),
                    false if is_finite || may_overflow => {}
                    false => checked.exactly(false),
                }
            }
        }
        if given.has_other {
            return checked;
        }
        let allowed = self.error(&given) / self.size().sqrt();
        let turns_of_column = turns(self.rows);
        // Few of a long column, evenly.
        let count = rows.end - rows.start;
        let step = (self.rows * count).div_ceil(4 * TERMS).max(1) as usize;
        for (parts, column) in parts.iter().zip(chosen) {
            // Where one column or frequency has nearly all of the norm, such as the mean of
            // positive numbers, it has nearly all of the error, too.
            let squares: f64 = parts.iter().flatten().map(|part| part * part).sum();
            let own = self.relative() * squares.sqrt();
            for row in rows.clone().step_by(step) {
                let right = frequency(parts, &turns_of_column, row);
                let allowed = allowed + own + self.relative() * right[0].hypot(right[1]);
                for (found, right) in found(row, *column).into_iter().zip(right) {
                    if found.is_finite() {
                        checked.number(found, right, allowed);
                    }
                }
            }
        }
        checked
    }

    /// Compares the sum of the squares of all numbers of the result with Parseval's equation.
    pub fn compare_squares(&self, found: f64, given_row: Row) -> Checked {
        let mut given = Given::default();
        let mut line = vec![[0.0; 2]; self.columns as usize];
        for row in 0..self.rows {
            given_row(row, &mut line);
            line.iter().for_each(|number| given.add(*number));
        }
        let mut checked = Checked::default();
        if !given.has_other && given.magnitude < self.rounding.most {
            let right = self.size() * given.squares;
            let error = self.error(&given);
            checked.number(found, right, 2.0 * right.sqrt() * error + error * error);
        }
        checked
    }
}

/// The roots of unity.
fn turns(length: u64) -> Vec<Complex> {
    let angle = |number: u64| -std::f64::consts::TAU * number as f64 / length as f64;
    (0..length)
        .map(|number| [angle(number).cos(), angle(number).sin()])
        .collect()
}

/// A frequency of numbers, by the definition.
fn frequency(of: &[Complex], turns: &[Complex], number: u64) -> Complex {
    let length = turns.len();
    let step = number as usize % length;
    let (mut sum, mut at) = ([0.0; 2], 0);
    for [re, im] in of {
        let [cos, sin] = turns[at];
        sum = [sum[0] + re * cos - im * sin, sum[1] + re * sin + im * cos];
        at += step;
        if at >= length {
            at -= length;
        }
    }
    sum
}
