//! The transposed matrix.

use super::csr::Csr;

impl Csr {
    /// The transposed matrix, with `value(row, value)` of each entry, where `row` is that of
    /// this matrix.
    pub fn transposed(&self, value: impl Fn(u32, f64) -> f64) -> Self {
        let mut starts = vec![0u64; self.columns() as usize + 1];
        for column in self.column_of() {
            starts[*column as usize + 1] += 1;
        }
        for column in 1..starts.len() {
            starts[column] += starts[column - 1];
        }
        let count = self.nonzeros() as usize;
        let (mut row_of, mut values) = (vec![0u32; count], vec![0.0; count]);
        let mut next = starts.clone();
        for row in 0..self.rows() {
            let (columns, of_row) = self.row(row);
            for (column, number) in columns.iter().zip(of_row) {
                let place = &mut next[*column as usize];
                // Rows ascend, so the columns of the transposed rows do, too.
                row_of[*place as usize] = row;
                values[*place as usize] = value(row, *number);
                *place += 1;
            }
        }
        Self::of_checked(self.columns(), self.rows(), starts, row_of, values)
    }
}

#[cfg(test)]
mod tests {
    use crate::matrices::awkward;

    #[test]
    fn entries_change_places() {
        for (name, matrix) in awkward() {
            let transposed = matrix.transposed(|_, value| value);
            let entries = |of: &super::Csr| {
                let rows = (0..of.rows()).flat_map(|row| {
                    let (columns, values) = of.row(row);
                    let entries = columns.iter().zip(values);
                    let entries = entries.map(move |(column, value)| (row, *column, *value));
                    entries.collect::<Vec<_>>()
                });
                rows.collect::<Vec<_>>()
            };
            let mut found: Vec<_> = entries(&transposed)
                .into_iter()
                .map(|(row, column, value)| (column, row, value.to_bits()))
                .collect();
            found.sort_unstable();
            let right: Vec<_> = entries(&matrix)
                .into_iter()
                .map(|(row, column, value)| (row, column, value.to_bits()))
                .collect();
            assert_eq!(found, right, "{name}");
            let rows = matrix.transposed(|row, _| row.into());
            assert!(
                entries(&rows)
                    .iter()
                    .all(|(_, column, row)| f64::from(*column) == *row)
            );
        }
    }
}
