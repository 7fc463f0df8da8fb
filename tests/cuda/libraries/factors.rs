//! Cholesky factors and LU factors by cuSOLVER, and what follows from the latter by cuBLAS.

use std::sync::Arc;

use pdawl_api::codelet::lu::{LuPanel, LuRow, NO_PIVOT, NOT_FINITE};
use pdawl_api::codelet::tile::PotrfTile;
use pdawl_api::codelet::{Codelet, Precision, Value};

use super::{
    At, BLAS, BOTH, SOLVER, by_library, bytes, numbers, places, random, sizes, tolerance,
    with_fake_kernels,
};
use crate::library::fake;

/// A symmetric matrix whose diagonal is large, and poison above it.
fn positive_definite(n: usize, at: At) -> Vec<f64> {
    let mut a = random(1, at.room(n));
    for row in 0..n {
        a[at.index(row, row)] += n as f64;
        for column in row + 1..n {
            a[at.index(row, column)] = f64::NAN;
        }
    }
    a
}

fn potrf(precision: Precision, n: usize, at: At, a: &[f64]) -> Vec<f64> {
    let tile = PotrfTile {
        precision,
        rows: n as u32,
    };
    let codelet = with_fake_kernels(tile.codelet(), precision);
    let values: Vec<Value> = [&sizes([n, at.stride])[..], &places([at.first])].concat();
    let contents = [bytes(precision, a)];
    let got = by_library(&codelet, (&[n as u64], SOLVER), 0..1, &contents, &values);
    numbers(precision, &got[0])
}

#[test]
fn a_factor_times_its_transpose_is_the_matrix() {
    let _fake = fake();
    for precision in BOTH {
        for n in [1, 2, 13, 40] {
            let at = At {
                first: 3,
                stride: n + 2,
            };
            let a = positive_definite(n, at);
            let l = potrf(precision, n, at, &a);
            for row in 0..n {
                for column in 0..=row {
                    let product: f64 = (0..=column)
                        .map(|k| l[at.index(row, k)] * l[at.index(column, k)])
                        .sum();
                    let right = a[at.index(row, column)];
                    let most = tolerance(precision) * n as f64;
                    assert!(
                        (product - right).abs() <= most,
                        "{n} ({row}, {column}): {product} {right}"
                    );
                }
            }
            assert_eq!(
                l[..at.first],
                numbers(precision, &bytes(precision, &a))[..at.first]
            );
        }
    }
}

#[test]
fn what_is_not_positive_definite_has_numbers_that_are_not_finite() {
    let _fake = fake();
    for precision in BOTH {
        for wrong in [-1.0, 0.0, f64::NAN] {
            let (n, bad) = (9, 4);
            let at = At {
                first: 1,
                stride: n,
            };
            let mut a = positive_definite(n, at);
            a[at.index(bad, bad)] = wrong;
            let l = potrf(precision, n, at, &a);
            for row in 0..n {
                for column in 0..=row {
                    let is_finite = l[at.index(row, column)].is_finite();
                    assert_eq!(is_finite, column < bad, "({row}, {column}) with {wrong}");
                }
            }
        }
    }
}

/// A panel at row `first` of a matrix, and the place of its pivots.
struct Panel {
    precision: Precision,
    rows: usize,
    columns: usize,
    first: usize,
    at: At,
    pivots_first: usize,
}

impl Panel {
    fn new(precision: Precision, rows: usize, columns: usize) -> Self {
        Self {
            precision,
            rows,
            columns,
            first: 11,
            at: At {
                first: 5,
                stride: columns + 3,
            },
            pivots_first: 2,
        }
    }

    /// The factors and the pivots.
    fn factors(&self, a: &[f64]) -> (Vec<f64>, Vec<u32>) {
        let codelet = with_fake_kernels(LuPanel::codelet(self.precision), self.precision);
        let values = [
            &sizes([self.rows, self.columns, self.first])[..],
            &places([self.at.first]),
            &sizes([self.at.stride]),
            &places([self.pivots_first]),
        ]
        .concat();
        let pivots = vec![0xee; 4 * (self.pivots_first + self.columns)];
        let contents = [bytes(self.precision, a), pivots];
        let of_library = [self.rows as u64, self.columns as u64];
        let got = by_library(&codelet, (&of_library, SOLVER), 0..1, &contents, &values);
        let pivots = got[1]
            .chunks_exact(4)
            .map(|four| u32::from_ne_bytes(four.try_into().unwrap()));
        let pivots: Vec<u32> = pivots.collect();
        assert!(
            pivots[..self.pivots_first]
                .iter()
                .all(|pivot| *pivot == 0xeeee_eeee)
        );
        (
            numbers(self.precision, &got[0]),
            pivots[self.pivots_first..].to_vec(),
        )
    }

    /// The rows of a matrix of so many columns after the exchanges.
    fn exchanged(&self, at: At, columns: usize, pivots: &[u32], a: &[f64]) -> Vec<f64> {
        let mut a = a.to_vec();
        for (row, pivot) in pivots.iter().enumerate() {
            let other = *pivot as usize - self.first;
            for column in 0..columns {
                a.swap(at.index(row, column), at.index(other, column));
            }
        }
        a
    }
}

#[test]
fn the_factors_of_a_panel_are_those_of_its_exchanged_rows() {
    let _fake = fake();
    for precision in BOTH {
        for (rows, columns) in [(1, 1), (7, 7), (40, 9), (65, 33)] {
            let panel = Panel::new(precision, rows, columns);
            let a = random(1, panel.at.room(rows));
            let (lu, pivots) = panel.factors(&a);
            for (row, pivot) in pivots.iter().enumerate() {
                assert!((panel.first + row..panel.first + rows).contains(&(*pivot as usize)));
            }
            let right = panel.exchanged(panel.at, columns, &pivots, &a);
            for row in 0..rows {
                for column in 0..columns {
                    let known = row.min(column);
                    let l = |k: usize| match k == row {
                        true => 1.0,
                        false => lu[panel.at.index(row, k)],
                    };
                    let sum: f64 = (0..=known)
                        .map(|k| l(k) * lu[panel.at.index(k, column)])
                        .sum();
                    let right = right[panel.at.index(row, column)];
                    let most = 4.0 * tolerance(precision);
                    assert!(
                        (sum - right).abs() <= most,
                        "({row}, {column}): {sum} for {right}"
                    );
                    assert!(
                        row <= column || l(column).abs() <= 1.0,
                        "the greatest is the pivot"
                    );
                }
            }
            // What is between the rows stays.
            let gap = panel.at.index(0, columns);
            assert_eq!(
                lu[gap..gap + 3],
                numbers(precision, &bytes(precision, &a))[gap..gap + 3]
            );
        }
    }
}

#[test]
fn a_column_without_a_pivot_is_reported() {
    let _fake = fake();
    for precision in BOTH {
        let panel = Panel::new(precision, 9, 5);
        let given = random(1, panel.at.room(9));
        // A column of zeros.
        let mut a = given.clone();
        (0..9).for_each(|row| a[panel.at.index(row, 2)] = 0.0);
        let (_, pivots) = panel.factors(&a);
        assert!(
            pivots[..2].iter().all(|pivot| *pivot < NOT_FINITE),
            "{pivots:?}"
        );
        assert_eq!(pivots[2], NO_PIVOT, "{pivots:?}");
        // Numbers that are not finite, in the last row, which is no pivot's alone.
        for wrong in [f64::NAN, f64::INFINITY] {
            let mut a = given.clone();
            a[panel.at.index(8, 3)] = wrong;
            let (_, pivots) = panel.factors(&a);
            assert!(
                pivots[..3].iter().all(|pivot| *pivot < NOT_FINITE),
                "{pivots:?}"
            );
            assert_eq!(pivots[3], NOT_FINITE, "{wrong}: {pivots:?}");
        }
    }
}

#[test]
fn the_rows_beside_a_panel_are_exchanged_and_solved() {
    let _fake = fake();
    for precision in BOTH {
        for (rows, columns, width) in [(12, 5, 7), (5, 5, 1), (33, 16, 70)] {
            let panel = Panel::new(precision, rows, columns);
            let a = random(1, panel.at.room(rows));
            let (lu, pivots) = panel.factors(&a);
            let at = At {
                first: 2,
                stride: width + 4,
            };
            let b = random(2, at.room(rows));
            let codelet: Arc<Codelet> = with_fake_kernels(LuRow::codelet(precision), precision);
            let values = [
                &sizes([rows, width, columns, panel.first])[..],
                &places([panel.at.first]),
                &sizes([panel.at.stride]),
                &places([1, at.first]),
                &sizes([at.stride]),
            ]
            .concat();
            let of_pivots = std::iter::once(&7)
                .chain(&pivots)
                .flat_map(|pivot: &u32| pivot.to_ne_bytes());
            let contents = [
                bytes(precision, &lu),
                of_pivots.collect(),
                bytes(precision, &b),
            ];
            let units = (width as u64).div_ceil(64);
            let of_library = [rows, width, columns].map(|size| size as u64);
            let got = by_library(&codelet, (&of_library, BLAS), 0..units, &contents, &values);
            let got = numbers(precision, &got[2]);
            let mut right = panel.exchanged(at, width, &pivots, &b);
            for row in 0..columns {
                for column in 0..width {
                    let known: f64 = (0..row)
                        .map(|k| lu[panel.at.index(row, k)] * right[at.index(k, column)])
                        .sum();
                    right[at.index(row, column)] -= known;
                }
            }
            for (index, (got, right)) in got.iter().zip(&right).enumerate() {
                let most = 8.0 * tolerance(precision) * right.abs().max(1.0);
                assert!((got - right).abs() <= most, "{index}: {got} for {right}");
            }
        }
    }
}
