//! Whether sums of products have the accuracy of single precision, by samples.
//!
//! The bound for each number must hold for any data and order of the additions, and is then far
//! above what singles lose: devices that round the factors or the results to fewer bits (TF32,
//! half precision) stay below it. The root mean square of the errors of some numbers is
//! therefore compared with that of plain sums in single precision of the same terms, in three
//! orders: forwards, backwards and in eight partial sums. Sums in other orders lose about as
//! much, or less.

use std::collections::BTreeMap;

use super::Rounding;
use super::product::{MatrixPart, Product, dot, norm};
use crate::random::uniform;

/// How often the error of a plain sum is allowed.
const PLAIN: f64 = 4.0;

/// How many roundings of the root of the sum of the terms' squares are allowed beside it:
/// factors that are rounded to 11 bits cost some 4600, a sum that is so some 3000.
const TERMS: f64 = 256.0;

/// What was found of samples.
#[derive(Clone, Debug)]
pub(crate) struct Accuracy {
    rounding: Rounding,
    /// The sums of the squares of errors.
    found: f64,
    allowed: f64,
    /// The greatest error of a plain sum, relative to `u sqrt(k) |a| |b|`.
    growth: f64,
}

impl Accuracy {
    /// Of singles whose factors are not rounded; `None` for others. The bound of doubles is too
    /// low for anything less accurate.
    pub fn of(rounding: Rounding) -> Option<Self> {
        let singles = Rounding::from(crate::codelet::Precision::F32);
        (rounding == singles).then_some(Self {
            rounding,
            found: 0.0,
            allowed: 0.0,
            growth: 0.0,
        })
    }

    /// Adds a number that is the sum of these products, of which each factor is a single. Terms
    /// and sums that are not finite are left out.
    pub fn add(&mut self, a: &[f64], b: &[f64], found: f64) {
        let plain = [forwards(a, b), backwards(a, b), in_parts(a, b)];
        let right = dot(a, b);
        if !(found.is_finite() && plain.iter().all(|sum| sum.is_finite())) {
            return;
        }
        let squares: f64 = a.iter().zip(b).map(|(a, b)| (a * b) * (a * b)).sum();
        let (terms, unit) = (a.len() as f64, self.rounding.unit);
        let near_zero = terms * self.rounding.least;
        let of_plain = plain.map(|sum| (f64::from(sum) - right).abs());
        let of_plain = of_plain.into_iter().fold(0.0, f64::max);
        self.found += (found - right) * (found - right);
        self.allowed +=
            (PLAIN * of_plain).powi(2) + (TERMS * unit).powi(2) * squares + near_zero * near_zero;
        let law = unit * terms.sqrt() * norm(a) * norm(b) + near_zero;
        self.growth = self.growth.max(of_plain / law);
    }

    /// The root mean square error, as a multiple of what is allowed.
    pub fn error(&self) -> f64 {
        match self.found > 0.0 {
            true => (self.found / self.allowed).sqrt(),
            false => 0.0,
        }
    }

    /// How much plain sums of these numbers exceed the law for roundings that are independent
    /// of one another, at least 1. Those of equal terms are not.
    pub fn growth(&self) -> f64 {
        self.growth.max(1.0)
    }
}

/// The products, as singles.
fn singles<'a>(a: &'a [f64], b: &'a [f64]) -> impl DoubleEndedIterator<Item = f32> + 'a {
    a.iter().zip(b).map(|(a, b)| *a as f32 * *b as f32)
}

fn forwards(a: &[f64], b: &[f64]) -> f32 {
    singles(a, b).sum()
}

fn backwards(a: &[f64], b: &[f64]) -> f32 {
    singles(a, b).rev().sum()
}

fn in_parts(a: &[f64], b: &[f64]) -> f32 {
    let mut sums = [0.0; 8];
    for (at, term) in singles(a, b).enumerate() {
        sums[at % 8] += term;
    }
    sums.iter().sum()
}

/// Rows and columns whose crossings are sampled.
const SIDE: u64 = 8;

/// The samples, of which a pass over each matrix brings the numbers.
pub(super) struct Samples {
    /// Row, column, and the number that was found.
    pub places: Vec<(u64, u64, f64)>,
    of_a: BTreeMap<u64, Vec<f64>>,
    of_b: BTreeMap<u64, Vec<f64>>,
}

impl Samples {
    /// Samples at these places.
    pub fn at(places: Vec<(u64, u64, f64)>, depth: u64) -> Self {
        let empty = |place: u64| (place, vec![0.0; depth as usize]);
        Self {
            of_a: places.iter().map(|(row, ..)| empty(*row)).collect(),
            of_b: places.iter().map(|(_, column, _)| empty(*column)).collect(),
            places,
        }
    }

    /// The crossings of some rows and columns, one of each eighth.
    pub fn of(of: &Product) -> Self {
        let lines = |length: u64, seed: u64| {
            let count = SIDE.min(length);
            let begin = move |number: u64| number * length / count;
            let line = move |number| {
                let (begin, end) = (begin(number), begin(number + 1));
                begin + (uniform(seed, number) * (end - begin) as f64) as u64
            };
            (0..count).map(line)
        };
        let rows = lines(of.rows, of.seed.wrapping_add(2));
        let columns = lines(of.columns, of.seed.wrapping_add(3));
        let crossings = rows.flat_map(|row| columns.clone().map(move |column| (row, column, 0.0)));
        Self::at(crossings.collect(), of.depth)
    }

    pub fn add_a(&mut self, part: &MatrixPart) {
        let first = part.columns.start as usize;
        for (row, to) in self.of_a.range_mut(part.rows.clone()) {
            if let Some(numbers) = part.row(*row) {
                to[first..][..numbers.len()].copy_from_slice(numbers);
            }
        }
    }

    pub fn add_b(&mut self, part: &MatrixPart) {
        let first = part.rows.start as usize;
        for (column, to) in self.of_b.range_mut(part.columns.clone()) {
            for (row, to) in part.rows.clone().zip(&mut to[first..]) {
                if let Some(number) = part.number(row, *column) {
                    *to = number;
                }
            }
        }
    }

    pub fn add_c(&mut self, part: &MatrixPart) {
        for (row, column, found) in &mut self.places {
            if let Some(number) = part.number(*row, *column) {
                *found = number;
            }
        }
    }

    /// Each number's row, column, row of A and column of B, and what was found.
    pub fn each(&self) -> impl Iterator<Item = ([u64; 2], [&[f64]; 2], f64)> {
        self.places.iter().map(|(row, column, found)| {
            let terms = [&*self.of_a[row], &*self.of_b[column]];
            ([*row, *column], terms, *found)
        })
    }
}
