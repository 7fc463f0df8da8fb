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
//! numbers of the root mean square of all. The numbers of v are those of `weight`
//! in both parts.
//!
//! Each number of the result depends on all given ones: if one of these is infinite or none,
//! no number of the result has two finite parts. Which part is infinite and which is none
//! depends on the order of the operations, so it is not compared.

use std::f64::consts::PI;
use std::ops::Range;

use super::product::weights;
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

// Fourier transforms of any length in double precision, of single vectors.
//
// Lengths that are powers of two have the usual algorithm of radix 2; others become a
// convolution with a chirp (L. Bluestein, "A linear filtering approach to the computation of
// discrete Fourier transform", IEEE Trans. Audio Electroacoust. 1970).

/// The product of two numbers.
fn times([a, b]: Complex, [c, d]: Complex) -> Complex {
    [a * c - b * d, a * d + b * c]
}

fn conjugate([re, im]: Complex) -> Complex {
    [re, -im]
}

/// `exp(-i pi part / whole)`.
fn turn(part: u64, whole: u64) -> Complex {
    let angle = -PI * part as f64 / whole as f64;
    [angle.cos(), angle.sin()]
}

/// The transform `y_k = sum over j of x_j exp(-2 pi i j k / n)`.
pub(super) fn fourier(numbers: &[Complex]) -> Vec<Complex> {
    let length = numbers.len() as u64;
    if length.is_power_of_two() || length == 0 {
        return of_power(numbers.to_vec());
    }
    // j k = (j^2 + k^2 - (k - j)^2) / 2.
    let chirp: Vec<Complex> = (0..u128::from(length))
        .map(|at| turn((at * at % (2 * u128::from(length))) as u64, length))
        .collect();
    let padded = (2 * length - 1).next_power_of_two() as usize;
    let (mut given, mut filter) = (vec![[0.0; 2]; padded], vec![[0.0; 2]; padded]);
    for (at, (number, turn)) in numbers.iter().zip(&chirp).enumerate() {
        given[at] = times(*number, *turn);
        filter[at] = conjugate(*turn);
        filter[(padded - at) % padded] = conjugate(*turn);
    }
    let both = of_power(given).into_iter().zip(of_power(filter));
    // The inverse transform, as that of conjugates.
    let products = both.map(|(one, other)| conjugate(times(one, other)));
    let inverse = of_power(products.collect());
    let scaled = |number: Complex| conjugate(number).map(|part| part / padded as f64);
    let both = inverse.into_iter().zip(&chirp);
    both.map(|(number, turn)| times(scaled(number), *turn))
        .collect()
}

fn of_power(mut numbers: Vec<Complex>) -> Vec<Complex> {
    let length = numbers.len();
    let bits = length.trailing_zeros();
    for at in 0..length {
        let other = match bits {
            0 => at,
            _ => at.reverse_bits() >> (usize::BITS - bits),
        };
        if at < other {
            numbers.swap(at, other);
        }
    }
    let turns: Vec<Complex> = (0..length / 2)
        .map(|at| turn(2 * at as u64, length as u64))
        .collect();
    let mut half = 1;
    while half < length {
        let step = length / (2 * half);
        for both in numbers.chunks_exact_mut(2 * half) {
            let (low, high) = both.split_at_mut(half);
            for (at, (low, high)) in low.iter_mut().zip(high).enumerate() {
                let turned = times(*high, turns[at * step]);
                *high = [low[0] - turned[0], low[1] - turned[1]];
                *low = [low[0] + turned[0], low[1] + turned[1]];
            }
        }
        half *= 2;
    }
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transforms_are_those_of_the_definition() {
        let mut random = fastrand::Rng::with_seed(1);
        for length in [1, 2, 3, 8, 15, 64, 97] {
            let numbers: Vec<Complex> = (0..length)
                .map(|_| [random.f64() - 0.5, random.f64() - 0.5])
                .collect();
            for (at, found) in (0..).zip(fourier(&numbers)) {
                let terms = (0..)
                    .zip(&numbers)
                    .map(|(of, number)| times(*number, turn(2 * (at * of % length), length)));
                let right = terms.fold([0.0; 2], |sum, [re, im]| [sum[0] + re, sum[1] + im]);
                let error = (found[0] - right[0]).hypot(found[1] - right[1]);
                assert!(
                    error < 1e-13 * length as f64,
                    "{length}: {found:?} {right:?}"
                );
            }
        }
    }
}
