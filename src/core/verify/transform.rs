//! The check of the Fourier transform of a matrix along rows and columns, without computing it
//! again.
//!
//! The result is R = F A G, where F and G are the matrices of the transforms along columns and
//! rows. For a random vector v of complex numbers, `R v = F (A (G v))` takes two transforms of
//! vectors and as many operations as A has numbers. Each row of a block of the result is
//! compared with its number of that, in double precision.
//!
//! # Tolerance
//!
//! The error of a fast transform grows with the logarithm of its length (Higham, "Accuracy
//! and Stability of Numerical Algorithms", section 24.1): in the Euclidean norm it is at most
//! some `u log2(n)` of the norm of the result. It is spread over all numbers, but for that of
//! numbers that are greater than others, such as the mean of positive numbers, it stays in
//! their rows and columns. So the sum of a row of w columns may differ by
//! `16 u log2(n) (|row| + |block| / sqrt(rows) + sqrt(w) |A|)`; the last term is the norm of w
//! numbers of the root mean square of all. The numbers of v are `weights`
//! in both parts.
//!
//! Each number of the result depends on all given ones: if one of these is infinite or none,
//! no number of the result has two finite parts. Which part is infinite and which is none
//! depends on the order of the operations, so it is not compared.

use std::ops::Range;

use super::fourier::{fourier, times};
use super::weights::weights;
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
    fn add(&mut self, number: Complex) {
        let [re, im] = number;
        self.squares += square(number);
        self.magnitude += re.abs() + im.abs();
        self.has_other |= !is_finite(number);
    }
}

fn is_finite(number: Complex) -> bool {
    number.iter().all(|part| part.is_finite())
}

fn square([re, im]: Complex) -> f64 {
    re * re + im * im
}

impl Transform {
    fn size(&self) -> f64 {
        (self.rows * self.columns) as f64
    }

    /// The error of a number that rounding may cause, relative to its magnitude.
    fn relative(&self) -> f64 {
        16.0 * self.rounding.unit * self.size().log2().max(1.0)
    }

    /// Whether the method may overflow. Numbers in between are at most twice as large in each
    /// part; those of the convolutions that transform other lengths are sums of them.
    fn may_overflow(&self, given: &Given) -> bool {
        let are_powers = self.rows.is_power_of_two() && self.columns.is_power_of_two();
        let growth = if are_powers { 1.0 } else { self.size() };
        4.0 * growth * given.magnitude >= self.rounding.most
    }

    /// Compares a block of the result, given by rows.
    pub fn compare(
        &self,
        (rows, columns): (&Range<u64>, &Range<u64>),
        seed: u64,
        given_row: Row,
        found: &[Complex],
    ) -> Checked {
        let [re, im] = weights(seed, columns.clone());
        let chosen: Vec<Complex> = re.into_iter().zip(im).map(|(re, im)| [re, im]).collect();
        let mut of_rows = vec![[0.0; 2]; self.columns as usize];
        of_rows[columns.start as usize..columns.end as usize].copy_from_slice(&chosen);
        let of_rows = fourier(&of_rows);
        let mut given = Given::default();
        let mut line = vec![[0.0; 2]; self.columns as usize];
        let sums: Vec<Complex> = (0..self.rows)
            .map(|row| {
                given_row(row, &mut line);
                line.iter().for_each(|number| given.add(*number));
                sum(&line, &of_rows)
            })
            .collect();
        let right = match given.has_other {
            true => Vec::new(),
            false => fourier(&sums),
        };
        let mut checked = Checked::default();
        let (width, relative) = (chosen.len() as f64, self.relative());
        let squares = |of: &[Complex]| -> f64 {
            let finite = of.iter().filter(|number| is_finite(**number));
            finite.map(|number| square(*number)).sum()
        };
        let of_all = (squares(found) / (rows.end - rows.start).max(1) as f64).sqrt()
            + width.sqrt() * given.squares.sqrt();
        let near_zero = width.sqrt() * self.size() * self.rounding.least;
        for (row, found) in rows.clone().zip(found.chunks_exact(chosen.len().max(1))) {
            let others = found.iter().filter(|number| !is_finite(**number)).count() as u64;
            if given.has_other {
                checked.all_exactly(others, true);
                checked.all_exactly(found.len() as u64 - others, false);
            } else if others == 0 {
                let (found_sum, right) = (sum(found, &chosen), right[row as usize]);
                let difference = (found_sum[0] - right[0]).hypot(found_sum[1] - right[1]);
                let allowed = relative * (squares(found).sqrt() + of_all) + near_zero;
                checked.together(found.len() as u64, difference / allowed);
            } else if self.may_overflow(&given) {
                checked.overflowed += others;
            } else {
                checked.all_exactly(others, false);
            }
        }
        checked
    }
}

/// The sum of products.
fn sum(numbers: &[Complex], by: &[Complex]) -> Complex {
    let products = numbers.iter().zip(by);
    products.fold([0.0; 2], |sum, (number, by)| {
        let [re, im] = times(*number, *by);
        [sum[0] + re, sum[1] + im]
    })
}
