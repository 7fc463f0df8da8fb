//! Matrices in double precision, with what rounding to a format may change.
//!
//! A device rounds each result when it stores it, and with [`NumberFormat::Tf32`] the factors of each
//! product. The errors are about independent and without a bias, so their variances are those
//! of a first-order expansion: each result adds that of its own rounding to those of its inputs,
//! times the squares of the derivatives. Rounding a number x to the nearest of a format with
//! the unit roundoff u has an error between -u|x| and u|x|, of which the variance is `(u x)^2 /
//! 3`. For factors of TF32 `(u x)^2` counts, as devices may round them otherwise.
//!
//! Source: propagation of uncertainty, as in N. Higham and T. Mary, "A new approach to
//! probabilistic rounding error analysis", SIAM J. Sci. Comput. 2019, for sums alone.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::codelet::add_norm::LEAST;
use crate::codelet::{Element, NumberFormat};

/// A square matrix by rows.
pub(super) type Square = Vec<f64>;

/// A matrix, and the variance of each of its numbers.
#[derive(Clone)]
pub(super) struct Uncertain {
    pub numbers: Square,
    /// `None`: they are exact, up to the rounding of sums of singles.
    pub variances: Option<Square>,
}

/// How results are rounded.
#[derive(Clone, Copy)]
pub(super) struct Rounds<'a> {
    pub format: NumberFormat,
    pub beta: usize,
    /// Ends products early, with wrong results.
    pub stop: &'a AtomicBool,
}

impl Uncertain {
    pub(super) fn exact(numbers: Square) -> Self {
        Self {
            numbers,
            variances: None,
        }
    }

    /// With rows and columns exchanged.
    pub(super) fn transposed(&self, beta: usize) -> Self {
        let turn = |of: &Square| {
            let mut turned = vec![0.0; of.len()];
            for (at, number) in of.iter().enumerate() {
                turned[at % beta * beta + at / beta] = *number;
            }
            turned
        };
        Self {
            numbers: turn(&self.numbers),
            variances: self.variances.as_ref().map(turn),
        }
    }
}

impl Rounds<'_> {
    /// A result with these variances before it is stored.
    fn stored(&self, numbers: Square, mut variances: Option<Square>) -> Uncertain {
        if !matches!(self.format.element(), Element::F32) {
            let element = self.format.element();
            let variances = variances.get_or_insert_with(|| vec![0.0; numbers.len()]);
            for (variance, number) in variances.iter_mut().zip(&numbers) {
                // Below the smallest normal number, the distance of numbers stays the same.
                let error = element.unit() * number.abs().max(element.least());
                *variance += error * error / 3.0;
            }
        }
        Uncertain { numbers, variances }
    }

    /// The variances of a factor as it is multiplied.
    fn of_factor(&self, factor: &Uncertain) -> Option<Square> {
        let error = self.format.factor_error();
        if error == 0.0 {
            return factor.variances.clone();
        }
        let rounding = factor.numbers.iter().map(|number| (error * number).powi(2));
        Some(match &factor.variances {
            Some(variances) => rounding.zip(variances).map(|(r, v)| r + v).collect(),
            None => rounding.collect(),
        })
    }

    /// `A B`
    pub(super) fn product(&self, a: &Uncertain, b: &Uncertain) -> Uncertain {
        let multiply = |a: &Square, b: &Square| product(self.beta, a, b, self.stop);
        let of_a = self.of_factor(a).map(|a| multiply(&a, &squares(b)));
        let of_b = self.of_factor(b).map(|b| multiply(&squares(a), &b));
        let variances = match (of_a, of_b) {
            (Some(one), Some(other)) => Some(sums(one, &other)),
            (one, other) => one.or(other),
        };
        self.stored(multiply(&a.numbers, &b.numbers), variances)
    }

    /// The softmax of rows.
    pub(super) fn softmax(&self, of: &Uncertain, factor: f64) -> Uncertain {
        let mut weights = of.numbers.clone();
        let rows = weights.chunks_exact_mut(self.beta);
        rows.for_each(|row| softmax(row, factor));
        let variances = of.variances.clone().map(|mut variances| {
            let rows = variances.chunks_exact_mut(self.beta);
            for (variances, weights) in rows.zip(weights.chunks_exact(self.beta)) {
                // The derivative of weight i by score j is factor w_i (1 if i = j else 0 - w_j).
                let of_all = variances.iter().zip(weights);
                let of_all: f64 = of_all.map(|(variance, w)| w * w * variance).sum();
                for (variance, w) in variances.iter_mut().zip(weights) {
                    let of_scores = (1.0 - 2.0 * w) * *variance + of_all;
                    *variance = (factor * w).powi(2) * of_scores.max(0.0);
                }
            }
            variances
        });
        self.stored(weights, variances)
    }

    /// The normalised sum.
    pub(super) fn sum<'a>(
        &self,
        x: &Uncertain,
        others: impl Iterator<Item = &'a Uncertain>,
    ) -> Uncertain {
        let mut sum = x.clone();
        for other in others {
            sum.numbers = sums(sum.numbers, &other.numbers);
            sum.variances = match (sum.variances, &other.variances) {
                (Some(one), Some(other)) => Some(sums(one, other)),
                (one, other) => one.or_else(|| other.clone()),
            };
        }
        let Uncertain {
            mut numbers,
            mut variances,
        } = sum;
        for (index, row) in numbers.chunks_exact_mut(self.beta).enumerate() {
            let deviation = normalise(row);
            let Some(variances) = &mut variances else {
                continue;
            };
            let variances = &mut variances[index * self.beta..][..self.beta];
            // The errors of the mean and of the deviation are those of sums over the row.
            let of_row = variances.iter().sum::<f64>() / (self.beta * self.beta) as f64;
            for (variance, number) in variances.iter_mut().zip(row) {
                let of_sums = of_row * (1.0 + *number * *number);
                *variance = (*variance + of_sums) / (deviation * deviation);
            }
        }
        self.stored(numbers, variances)
    }
}

fn squares(of: &Uncertain) -> Square {
    of.numbers.iter().map(|number| number * number).collect()
}

fn sums(mut one: Square, other: &Square) -> Square {
    one.iter_mut()
        .zip(other)
        .for_each(|(one, other)| *one += other);
    one
}

/// The product of `a` and `b`. It adds four rows of `b` at a time, so that a row of sums
/// is loaded a quarter as often. Once `stop` is set, the other rows stay zero.
fn product(beta: usize, a: &Square, b: &Square, stop: &AtomicBool) -> Square {
    let mut c = vec![0.0; beta * beta];
    let rows = c
        .chunks_exact_mut(beta)
        .zip(a.chunks_exact(beta))
        .take_while(|_| !stop.load(Ordering::Relaxed));
    for (row, a) in rows {
        let (fours, rest) = a.as_chunks::<4>();
        let (above, below) = b.split_at(fours.len() * 4 * beta);
        for (a, b) in fours.iter().zip(above.chunks_exact(4 * beta)) {
            let (b0, b) = b.split_at(beta);
            let (b1, b) = b.split_at(beta);
            let (b2, b3) = b.split_at(beta);
            let others = b0.iter().zip(b1).zip(b2).zip(b3);
            for (c, (((b0, b1), b2), b3)) in row.iter_mut().zip(others) {
                // From left to right, so that the sum is the same as term by term.
                *c = *c + a[0] * b0 + a[1] * b1 + a[2] * b2 + a[3] * b3;
            }
        }
        for (a, b) in rest.iter().zip(below.chunks_exact(beta)) {
            for (c, b) in row.iter_mut().zip(b) {
                *c += a * b;
            }
        }
    }
    c
}

fn softmax(row: &mut [f64], factor: f64) {
    let greatest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    for number in &mut *row {
        *number = (factor * (*number - greatest)).exp();
    }
    let sum: f64 = row.iter().sum();
    for number in row {
        *number /= sum;
    }
}

/// Normalises a row, and returns its standard deviation.
fn normalise(row: &mut [f64]) -> f64 {
    let width = row.len() as f64;
    let mean = row.iter().sum::<f64>() / width;
    let variance = row.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / width;
    let deviation = (variance + f64::from(LEAST)).sqrt();
    for number in row {
        *number = (*number - mean) / deviation;
    }
    deviation
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_product_equals_its_sums_term_by_term() {
        let seed = fastrand::u64(..);
        println!("seed {seed}");
        let mut rng = fastrand::Rng::with_seed(seed);
        for beta in [1, 2, 3, 4, 5, 7, 8, 13] {
            let mut square = || -> Square { (0..beta * beta).map(|_| rng.f64() - 0.5).collect() };
            let (a, b) = (square(), square());
            for (at, got) in product(beta, &a, &b, &AtomicBool::new(false))
                .iter()
                .enumerate()
            {
                let (row, column) = (at / beta, at % beta);
                let terms = (0..beta).map(|k| a[row * beta + k] * b[k * beta + column]);
                let sum = terms.fold(0.0, |sum: f64, term| sum + term);
                assert_eq!(*got, sum, "{beta}: {row}, {column}");
            }
        }
    }
}
