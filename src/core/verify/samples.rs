//! Some numbers of a product, each with its row of A and its column of B.

use std::collections::BTreeMap;

use super::product::{MatrixPart, Product};
use crate::random::uniform;

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
