//! Checks products without computing them again.
//!
//! A product C = A B is checked with random vectors x, as `C x = A (B x)` takes as many
//! operations as the matrices have numbers (R. Freivalds, "Probabilistic machines can use
//! less running time", 1977). The numbers of x are random and real
//! (`weights`), and only those of a group of C's columns are not 0: two
//! vectors a group. All sums are in double precision.
//!
//! # Tolerance
//!
//! Rounding changes each number of C by at most `g u sqrt(k) |A| |B|` with high probability,
//! where u is the unit roundoff and k the depth (N. Higham and T. Mary, "A new approach to
//! probabilistic rounding error analysis", SIAM J. Sci. Comput. 2019, section 3; its factor
//! lambda is 1, which suffices in their experiments). The law is that of independent
//! roundings, and those of equal terms are not: g is how much plain sums of some rows and
//! columns exceed it, at least 1. For the factor of `A = L L^T` it is the same with
//! `|L| |L^T|`. By Hoeffding's inequality, the sum of the errors e of a row with random
//! weights of at most 1 exceeds `8 |e|` with a probability of `2 exp(-32)`, and
//! `|e| <= g u sqrt(k) |row of A| |columns of B|` in the Euclidean norms. So
//!
//! `|C x - A (B x)| / (|row of A| |columns of B|) <= 8 (g u sqrt(k) + p + 2 v sqrt(k + w))`
//!
//! for each row and group of columns. A device that rounds the factors of each product before
//! (TF32) changes it by at most p of its magnitude, and a number of C by at most `p |A| |B|`,
//! which the Cauchy-Schwarz inequality bounds by the norms; elsewhere p is 0. The last term is
//! for the check's own sums, where v is the unit roundoff of double precision and w the columns
//! of a group. Each of the k products of a number may in addition lose the smallest normal
//! number.
//!
//! That bound holds for any order of the additions, and most lose far less. Whether singles
//! have the accuracy of singles is seen by samples: `accuracy`.
//!
//! Rows of A and columns of B with numbers that are not finite, or whose products may
//! overflow, have no such sums: see [`super::places`].
//!
//! All cores divide the rows of a part. Each sum has the same order on any number of cores.

use std::ops::Range;

use super::accuracy::{Accuracy, Samples};
use super::places::Places;
use super::{Checked, PIECE, Rounding};
use crate::parallel;
use crate::random::bits;

/// Most groups of C's columns.
pub const GROUPS: usize = 8;

/// Standard deviations that are allowed.
const DEVIATIONS: f64 = 8.0;

/// Sums of a row: those of the first vector of each group, then those of the next.
type Sums = [f64; GROUPS * VECTORS];

/// A matrix of a product C = A B.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Matrix {
    A,
    B,
    C,
}

/// A product of matrices without empty sides.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Product {
    pub rows: u64,
    pub columns: u64,
    pub depth: u64,
    /// Columns of a group; at most [`GROUPS`] groups. No part of B or C has columns of two.
    pub group: u64,
    pub rounding: Rounding,
    /// Of the random vectors.
    pub seed: u64,
}

/// The result of a check.
#[derive(Clone, Debug, PartialEq)]
pub struct Verification {
    /// The greatest difference of a row and a group of columns, relative to their norms;
    /// infinite if a number is finite that should not be, or the reverse.
    pub error: f64,
    /// The greatest error that is allowed.
    pub tolerance: f64,
    /// Numbers of all rows and groups in which the error is greater.
    pub wrong: u64,
    /// Where the error is greatest.
    pub row: u64,
    pub columns: Range<u64>,
}

impl Verification {
    /// Whether the result is right.
    pub fn right(&self) -> bool {
        self.error <= self.tolerance
    }

    /// As a comparison of so many numbers.
    pub fn checked(&self, numbers: u64) -> Checked {
        let mut checked = Checked::default();
        checked.error(self.error / self.tolerance);
        Checked {
            numbers,
            wrong: self.wrong,
            at: (self.wrong > 0).then_some([self.row, self.columns.start, self.columns.end]),
            ..checked
        }
    }
}

/// Calls an action with all parts of a matrix of a product; false if that was interrupted.
pub type Source<'a, E> = dyn FnMut(Matrix, &mut dyn FnMut(MatrixPart)) -> Result<bool, E> + 'a;

impl Product {
    /// Checks the product. `None` if it was interrupted.
    ///
    /// # Errors
    /// Those of the source.
    pub fn verify<E>(&self, source: &mut Source<'_, E>) -> Result<Option<Verification>, E> {
        let Some(sums) = ProductSums::of(*self, source, None)? else {
            return Ok(None);
        };
        if sums.are_finite() {
            return Ok(Some(sums.result(None)));
        }
        let Some(places) = Places::of(*self, source)? else {
            return Ok(None);
        };
        let Some(sums) = ProductSums::of(*self, source, Some(&places))? else {
            return Ok(None);
        };
        let of_rest = sums.result(Some(&places));
        let of_places = places.compare(source, of_rest.tolerance)?;
        Ok(of_places.map(|of_places| {
            let wrong = of_places.wrong + of_rest.wrong;
            let worst = match of_places.error > of_rest.error {
                true => of_places,
                false => of_rest,
            };
            Verification { wrong, ..worst }
        }))
    }

    /// `growth`: how much sums exceed the law of independent roundings.
    fn tolerance(&self, growth: f64) -> f64 {
        let double = f64::EPSILON / 2.0;
        let depth = self.depth as f64;
        let width = self.group.min(self.columns) as f64;
        let of_sums = growth * self.rounding.unit * depth.sqrt() + self.rounding.product;
        DEVIATIONS * (of_sums + 2.0 * double * (depth + width).sqrt())
    }
}

/// A part of a matrix.
pub struct MatrixPart {
    pub rows: Range<u64>,
    pub columns: Range<u64>,
    /// By rows.
    pub numbers: Vec<f64>,
}

impl MatrixPart {
    fn width(&self) -> usize {
        (self.columns.end - self.columns.start) as usize
    }

    /// Whether its rows and columns are the same.
    pub fn on_diagonal(&self) -> bool {
        self.rows == self.columns
    }

    /// Calls `act` with the number of each row, its numbers, and what `of` has for it, one
    /// item a row of the matrix. The results are in the order of the rows.
    pub(super) fn each_row<T: Send, R: Send>(
        &self,
        of: &mut [T],
        act: impl Fn(u64, &[f64], &mut T) -> R + Sync,
    ) -> impl Iterator<Item = R> {
        let width = self.width().max(1);
        let length = PIECE.div_ceil(width);
        let of = &mut of[self.rows.start as usize..self.rows.end as usize];
        let results = parallel::pieces(of, length, |piece, of| {
            let first = self.rows.start + (piece * length) as u64;
            let rows = self.numbers[piece * length * width..].chunks_exact(width);
            let results = (first..).zip(rows).zip(of);
            let results = results.map(|((row, numbers), of)| act(row, numbers, of));
            results.collect::<Vec<R>>()
        });
        results.into_iter().flatten()
    }

    /// The numbers of a row, if the part has it.
    pub(super) fn row(&self, row: u64) -> Option<&[f64]> {
        let row = row.checked_sub(self.rows.start)? as usize;
        self.numbers.chunks_exact(self.width().max(1)).nth(row)
    }

    /// A number, if the part has it.
    pub(super) fn number(&self, row: u64, column: u64) -> Option<f64> {
        let column = column.checked_sub(self.columns.start)? as usize;
        self.row(row)?.get(column).copied()
    }

    /// With rows and columns exchanged.
    pub fn transposed(&self) -> Self {
        let width = self.width();
        let column = |column: usize| self.numbers.iter().skip(column).step_by(width).copied();
        Self {
            rows: self.columns.clone(),
            columns: self.rows.clone(),
            numbers: (0..width).flat_map(column).collect(),
        }
    }

    /// With what is below the diagonal also above it.
    pub fn mirrored(mut self) -> Self {
        let width = self.width();
        for row in 0..width {
            for column in row + 1..width {
                self.numbers[row * width + column] = self.numbers[column * width + row];
            }
        }
        self
    }

    /// With zeros in some columns.
    fn without(mut self, is_left_out: &[bool]) -> Self {
        let width = self.width().max(1);
        let of = &is_left_out[self.columns.start as usize..self.columns.end as usize];
        if of.contains(&true) {
            for numbers in self.numbers.chunks_exact_mut(width) {
                for (number, is_left_out) in numbers.iter_mut().zip(of) {
                    if *is_left_out {
                        *number = 0.0;
                    }
                }
            }
        }
        self
    }
}

/// The sums of a check.
pub(super) struct ProductSums {
    of: Product,
    /// B x, by row of B.
    bx: Vec<Sums>,
    /// The norms of B's columns, by group.
    b_norms: [f64; GROUPS],
    /// A (B x) and C x, by row.
    abx: Vec<Sums>,
    cx: Vec<Sums>,
    /// The norms of A's rows.
    a_norms: Vec<f64>,
    samples: Samples,
}

impl ProductSums {
    /// The sums of all but some rows of A and columns of B.
    pub fn of<E>(
        of: Product,
        source: &mut Source<'_, E>,
        without: Option<&Places>,
    ) -> Result<Option<Self>, E> {
        let zeros = |count: u64| vec![[0.0; GROUPS * VECTORS]; count as usize];
        let mut sums = Self {
            of,
            bx: zeros(of.depth),
            b_norms: [0.0; GROUPS],
            abx: zeros(of.rows),
            cx: zeros(of.rows),
            a_norms: vec![0.0; of.rows as usize],
            samples: Samples::of(&of),
        };
        let rest = |part: MatrixPart| match without {
            Some(places) => part.without(&places.columns_left_out),
            None => part,
        };
        // B comes before A.
        let complete = source(Matrix::B, &mut |part| sums.add_b(&rest(part)))?
            && source(Matrix::A, &mut |part| sums.add_a(&part))?
            && source(Matrix::C, &mut |part| sums.add_c(&rest(part)))?;
        Ok(complete.then_some(sums))
    }

    fn add_b(&mut self, part: &MatrixPart) {
        let (group, weights) = self.weights(&part.columns);
        self.samples.add_b(part);
        let norms = part.each_row(&mut self.bx, |_, numbers, bx| {
            add(numbers, group, &weights, bx);
            norm(numbers)
        });
        let of = &mut self.b_norms[group];
        norms.for_each(|norm| *of = of.hypot(norm));
    }

    fn add_a(&mut self, part: &MatrixPart) {
        self.samples.add_a(part);
        let bx = &self.bx[part.columns.start as usize..];
        let norms = part.each_row(&mut self.abx, |_, numbers, abx| {
            let mut sums = *abx;
            for (number, bx) in numbers.iter().zip(bx) {
                for (sum, bx) in sums.iter_mut().zip(bx) {
                    *sum += number * bx;
                }
            }
            *abx = sums;
            norm(numbers)
        });
        let rows = self.a_norms[part.rows.start as usize..].iter_mut();
        rows.zip(norms).for_each(|(of, norm)| *of = of.hypot(norm));
    }

    fn add_c(&mut self, part: &MatrixPart) {
        let (group, weights) = self.weights(&part.columns);
        self.samples.add_c(part);
        let added = part.each_row(&mut self.cx, |_, numbers, cx| {
            add(numbers, group, &weights, cx);
        });
        added.for_each(drop);
    }

    /// The group of a part's columns, and their numbers of each vector.
    fn weights(&self, columns: &Range<u64>) -> (usize, [Vec<f64>; VECTORS]) {
        let group = (columns.start / self.of.group) as usize;
        (group, weights(self.of.seed, columns.clone()))
    }

    /// Whether all sums and norms are finite, as those of finite numbers are.
    fn are_finite(&self) -> bool {
        let sums = self.abx.iter().chain(&self.cx).flatten();
        let norms = self.a_norms.iter().chain(&self.b_norms);
        sums.chain(norms).all(|number| number.is_finite())
    }

    /// The differences of each row: C x - A (B x), a number a vector and group.
    pub fn differences(&self) -> impl Iterator<Item = Sums> {
        let rows = self.abx.iter().zip(&self.cx);
        rows.map(|(abx, cx)| std::array::from_fn(|at| cx[at] - abx[at]))
    }

    /// The accuracy of the samples, if singles are computed.
    fn accuracy(&self) -> Option<Accuracy> {
        let mut accuracy = Accuracy::of(self.of.rounding)?;
        for (_, [of_a, of_b], found) in self.samples.each() {
            accuracy.add(of_a, of_b, found);
        }
        Some(accuracy)
    }

    /// The worst row and group of those that are not left out. If none is wrong, but all
    /// samples together are less accurate than they should be, all numbers are.
    pub fn result(&self, without: Option<&Places>) -> Verification {
        let accuracy = self.accuracy();
        let tolerance = (self.of).tolerance(accuracy.as_ref().map_or(1.0, Accuracy::growth));
        let width = self.of.group.min(self.of.columns) as f64;
        // What the products of the numbers of a group may lose near zero.
        let least =
            DEVIATIONS * width.sqrt() * self.of.depth as f64 * self.of.rounding.least / tolerance;
        let (mut worst, mut at, mut wrong) = (0.0, (0, 0), 0);
        let columns = |group: u64| {
            let begin = group * self.of.group;
            begin..(begin + self.of.group).min(self.of.columns)
        };
        for (row, differences) in self.differences().enumerate() {
            if without.is_some_and(|places| places.rows_left_out[row]) {
                continue;
            }
            for (group, b_norm) in self.b_norms.iter().enumerate() {
                let norms = self.a_norms[row] * b_norm + least;
                let of_group = differences.iter().skip(group).step_by(GROUPS);
                let error = of_group.fold(0.0, |error, one| greatest(error, one.abs() / norms));
                let error = if error.is_nan() { f64::INFINITY } else { error };
                if error > worst {
                    (worst, at) = (error, (row as u64, group as u64));
                }
                if error > tolerance {
                    wrong += columns(group as u64).count() as u64;
                }
            }
        }
        let of_samples = accuracy.map_or(0.0, |of| of.error());
        if wrong == 0 && of_samples > 1.0 {
            worst = of_samples * tolerance;
            wrong = self.of.rows * self.of.columns;
        }
        Verification {
            error: worst,
            tolerance,
            wrong,
            row: at.0,
            columns: columns(at.1),
        }
    }
}

/// Adds the weighted sums of a group's numbers.
fn add(numbers: &[f64], group: usize, weights: &[Vec<f64>; VECTORS], to: &mut Sums) {
    for (to, weights) in to.iter_mut().skip(group).step_by(GROUPS).zip(weights) {
        *to += dot(numbers, weights);
    }
}

/// The greater number; one that is none is the greatest.
pub(crate) fn greatest(one: f64, other: f64) -> f64 {
    match other > one || other.is_nan() {
        true => other,
        false => one,
    }
}

/// The Euclidean norm, also where squares are too great or too small.
pub(crate) fn norm(numbers: &[f64]) -> f64 {
    let squares = dot(numbers, numbers);
    if (1e-200..1e200).contains(&squares) {
        return squares.sqrt();
    }
    let most = numbers
        .iter()
        .fold(0.0_f64, |most, number| most.max(number.abs()));
    if most == 0.0 || !squares.is_finite() && numbers.iter().any(|number| !number.is_finite()) {
        return squares;
    }
    let squares = numbers
        .iter()
        .map(|number| (number / most) * (number / most));
    most * squares.sum::<f64>().sqrt()
}

/// The sum of products. Eight partial sums let the compiler use vectors.
pub(crate) fn dot(one: &[f64], other: &[f64]) -> f64 {
    let (one, one_rest) = one.as_chunks::<8>();
    let (other, other_rest) = other.as_chunks::<8>();
    let mut sums = [0.0; 8];
    for (one, other) in one.iter().zip(other) {
        for lane in 0..8 {
            sums[lane] += one[lane] * other[lane];
        }
    }
    let rest = one_rest
        .iter()
        .zip(other_rest)
        .map(|(one, other)| one * other);
    sums.iter().sum::<f64>() + rest.sum::<f64>()
}

// Random weights of sums that stand for many numbers.
//
// A weight is a random real number of 52 bits, from 1/2 to 1 in magnitude. So a single wrong
// number is never hidden, and several, such as numbers that are exchanged, hide one another
// only by chance: whatever the other weights are, the sum of their errors, of which e is the
// greatest, is below b with a probability of at most 2 b / e. Sums with several independent
// vectors of weights hide it with the product of these.

/// Independent vectors of weights.
pub(super) const VECTORS: usize = 2;

/// The mean square of a weight.
pub(super) const MEAN_SQUARE: f64 = 7.0 / 12.0;

/// A weight of a vector.
pub(crate) fn weight(seed: u64, vector: usize, index: u64) -> f64 {
    let bits = bits(seed.wrapping_add((vector as u64) << 40), index);
    // The sign and the 52 bits of a fraction.
    let magnitude = 0.5 + (bits >> 12) as f64 * 0.5_f64.powi(53);
    if bits & 1 == 0 { magnitude } else { -magnitude }
}

/// The weights of a range, vector by vector.
pub(crate) fn weights(seed: u64, range: std::ops::Range<u64>) -> [Vec<f64>; VECTORS] {
    std::array::from_fn(|vector| range.clone().map(|at| weight(seed, vector, at)).collect())
}
