//! Writes any units of a sparse matrix, and its first vector, in the form that the
//! codelet uses.

use std::ops::Range;

use super::{Form, Spmv};
use crate::codelet::Precision;
use crate::codelet::spmv::MARK;

impl Spmv {
    /// Writes the columns of the entries of `units`, as places of the vector.
    pub fn write_columns(&self, units: Range<u64>, columns: &mut [u32]) {
        self.parts(units, |at, row, part| {
            let from = &self.matrix.row(row).0[part];
            let to = &mut columns[at..at + from.len()];
            match &self.place_of {
                None => to.copy_from_slice(from),
                Some(place_of) => {
                    for (to, column) in to.iter_mut().zip(from) {
                        *to = place_of[*column as usize];
                    }
                }
            }
        });
    }

    /// Writes the values of the entries of `units`.
    pub fn write_values(&self, units: Range<u64>, values: &mut [u8]) {
        self.parts(units, |at, row, part| {
            self.numbers(&self.matrix.row(row).1[part], at, values);
        });
    }

    /// Calls `take` with each row's part in `units`: the number of entries before it,
    /// the row, and the range of the row's entries.
    fn parts(&self, units: Range<u64>, mut take: impl FnMut(usize, u32, Range<usize>)) {
        let pieces = u64::from(self.arrangement.pieces());
        let mut at = 0;
        for unit in units {
            let rows = self.arrangement.rows(&(unit..unit + 1));
            if unit < pieces {
                let part = self.piece(unit, rows.start);
                let length = part.len();
                take(at, self.row_at(rows.start), part);
                at += length;
                continue;
            }
            for row in rows.map(|place| self.row_at(place)) {
                let length = self.matrix.row_length(row) as usize;
                take(at, row, 0..length);
                at += length;
            }
        }
    }

    /// The range of its row's entries that a piece has.
    fn piece(&self, unit: u64, row: u32) -> Range<usize> {
        let starts = self.arrangement.unit_rows();
        let first = starts[..unit as usize].partition_point(|start| *start < row);
        let begin = self.arrangement.unit_entries()[first];
        let entries = self.arrangement.entries(&(unit..unit + 1));
        (entries.start - begin) as usize..(entries.end - begin) as usize
    }

    /// Writes numbers from the `at`-th on.
    fn numbers(&self, from: &[f64], at: usize, to: &mut [u8]) {
        if from.is_empty() {
            // An empty slice may be unaligned, and the cast would panic.
            return;
        }
        match self.options.precision {
            Precision::F64 => {
                bytemuck::cast_slice_mut::<u8, f64>(to)[at..at + from.len()].copy_from_slice(from);
            }
            Precision::F32 => {
                let to = &mut bytemuck::cast_slice_mut::<u8, f32>(to)[at..at + from.len()];
                for (to, from) in to.iter_mut().zip(from) {
                    *to = *from as f32;
                }
            }
        }
    }

    /// Writes the positions at which the rows of `units` end; 0 for the rows of pieces. The
    /// rows of vertices without links are marked.
    pub fn write_ends(&self, units: Range<u64>, ends: &mut [u16]) {
        let first = self.arrangement.rows(&units).start;
        for unit in units {
            let rows = self.arrangement.rows(&(unit..unit + 1));
            let own = &mut ends[(rows.start - first) as usize..(rows.end - first) as usize];
            if unit < u64::from(self.arrangement.pieces()) {
                own.fill(0);
                continue;
            }
            let mut end = 0;
            for (place, target) in rows.zip(own) {
                let row = self.row_at(place);
                end += self.matrix.row_length(row);
                // It fits 15 bits: a unit's weight bounds it.
                *target = end as u16;
                if self.is_dangling(row) {
                    *target |= MARK;
                }
            }
        }
    }

    /// Writes numbers of a vector at these places: `of` has one for each column.
    pub fn write_vector(&self, of: &[f64], places: Range<u64>, bytes: &mut [u8]) {
        let values = places.map(|place| of[self.column_at(place) as usize]);
        match self.options.precision {
            Precision::F64 => {
                let numbers = bytemuck::cast_slice_mut::<u8, f64>(bytes);
                (numbers.iter_mut().zip(values)).for_each(|(number, value)| *number = value);
            }
            Precision::F32 => {
                let numbers = bytemuck::cast_slice_mut::<u8, f32>(bytes);
                (numbers.iter_mut().zip(values)).for_each(|(number, value)| *number = value as f32);
            }
        }
    }

    /// Writes the first vector's numbers at these places.
    pub fn write_first(&self, places: Range<u64>, bytes: &mut [u8]) {
        let equal = 1.0 / f64::from(self.matrix.columns());
        let value = |place: u64| match self.options.form {
            Form::Product | Form::Iteration => self.first(self.column_at(place)),
            Form::Ranks => equal,
        };
        match self.options.precision {
            Precision::F64 => {
                let numbers = bytemuck::cast_slice_mut::<u8, f64>(bytes);
                for (number, place) in numbers.iter_mut().zip(places) {
                    *number = value(place);
                }
            }
            Precision::F32 => {
                let numbers = bytemuck::cast_slice_mut::<u8, f32>(bytes);
                for (number, place) in numbers.iter_mut().zip(places) {
                    *number = value(place) as f32;
                }
            }
        }
    }
}
