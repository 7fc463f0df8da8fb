//! Test fixtures: random matrices and helpers that the tests of several modules share.

use proptest::prelude::*;

use super::csr::Csr;

/// A strategy for any small matrix, with infinite, zero and other values.
pub fn matrices() -> impl Strategy<Value = Csr> {
    let value = prop_oneof![
        any::<f64>().prop_filter("nan is not equal to itself", |value| !value.is_nan()),
        Just(f64::INFINITY),
        Just(-0.0),
        (-5i32..5).prop_map(f64::from),
    ];
    (0u32..20, 0u32..20).prop_flat_map(move |(rows, columns)| {
        let row =
            prop::collection::btree_map(0..columns.max(1), value.clone(), 0..=columns as usize);
        prop::collection::vec(row, rows as usize).prop_map(move |all| {
            let (mut starts, mut column_of, mut values) = (vec![0], Vec::new(), Vec::new());
            for (column, value) in all.into_iter().flat_map(|row| {
                starts.push(starts[starts.len() - 1] + row.len() as u64);
                row
            }) {
                column_of.push(column);
                values.push(value);
            }
            Csr::new(rows, columns, starts, column_of, values).unwrap()
        })
    })
}

/// The bits of the values, to distinguish -0 from 0.
pub fn bits(matrix: &Csr) -> Vec<u64> {
    matrix
        .values()
        .iter()
        .map(|value| value.to_bits())
        .collect()
}
