//! A sparse matrix in bands of rows with about equal numbers of entries, and what each band
//! reads of the vector.

use std::ops::Range;
use std::sync::Arc;

use bytemuck::Pod;

use super::super::{Contents, Fill, Layout, NewSpace};
use crate::cluster::space::{Block, Extent};
use crate::codelet::Precision;
use crate::matrix::Csr;
use crate::parallel;

/// Numbers of a page: a band reads whole pages of the vector.
pub(super) const PAGE: u64 = 256;

/// The longest gap between pages, in numbers, that is read with them: a network carries it
/// in about the time that the words of one more part take.
const GAP: u64 = 4096;

/// Most bands: enough that each of some dozens of nodes gets a part that suits it.
const MOST: u64 = 256;

/// Entries and rows of a band that is worth a subtask: it takes about as long as the
/// messages of one.
const LIGHT: u64 = 1 << 18;

/// Where bands read more than this part of the vector on average, all read all of it: one
/// copy serves all bands of a node.
const MUCH: f64 = 0.25;

/// Bands of a small matrix, so that several nodes have some.
const LEAST: u64 = 16;

/// Entries and rows of bands on average, at most: 32 bits count a band's entries, of which
/// one row may have half as many.
const HEAVIEST: u64 = 1 << 30;

/// Bytes that a thread makes at once.
const PIECE: usize = 1 << 20;

/// A matrix in bands.
#[derive(Debug)]
pub struct Bands {
    matrix: Arc<Csr>,
    precision: Precision,
    /// The first row of each band, and one more at the end.
    rows: Arc<[u64]>,
    /// What each band reads of the vector; at least one number.
    reads: Vec<Vec<Range<u64>>>,
}

impl Bands {
    /// Cuts a matrix, which has rows and columns.
    pub fn of(matrix: Arc<Csr>, precision: Precision) -> Arc<Self> {
        let starts = matrix.row_starts();
        let rows = u64::from(matrix.rows());
        let all = matrix.nonzeros() + rows;
        let count = (all / LIGHT).clamp(LEAST, MOST).max(all / HEAVIEST);
        Self::cut(&matrix, precision, cuts(starts, count.min(rows)))
    }

    fn cut(matrix: &Arc<Csr>, precision: Precision, rows: Vec<u64>) -> Arc<Self> {
        let bands = rows.windows(2).map(|cut| cut[0]..cut[1]).collect();
        let mut reads = parallel::map(bands, |band| read_by(matrix, band));
        let columns = u64::from(matrix.columns());
        let read: u64 = reads
            .iter()
            .flatten()
            .map(|read| read.end - read.start)
            .sum();
        if read as f64 > MUCH * columns as f64 * reads.len() as f64 {
            let whole: Vec<_> = std::iter::once(0..columns).collect();
            reads.fill(whole);
        }
        Arc::new(Self {
            matrix: Arc::clone(matrix),
            precision,
            rows: rows.into(),
            reads,
        })
    }

    pub fn matrix(&self) -> &Csr {
        &self.matrix
    }

    pub fn precision(&self) -> Precision {
        self.precision
    }

    /// The number of bands.
    pub fn count(&self) -> u64 {
        self.reads.len() as u64
    }

    /// The rows of a band.
    pub fn rows(&self, band: u64) -> Range<u64> {
        self.rows[band as usize]..self.rows[band as usize + 1]
    }

    /// What a band reads of the vector.
    pub fn reads(&self, band: u64) -> &[Range<u64>] {
        &self.reads[band as usize]
    }

    /// The entries of a band. One without entries has one that it does not use, as nothing
    /// cannot be copied.
    pub fn entries(&self, band: u64) -> Range<u64> {
        let rows = self.rows(band);
        let starts = self.matrix.row_starts();
        let (begin, end) = (starts[rows.start as usize], starts[rows.end as usize]);
        begin..end.max(begin + 1)
    }

    /// The columns where vectors of so many numbers are cut, so that each band's node has
    /// a part: its own rows of a vector with as many numbers as there are rows.
    pub fn vector_layout(&self, numbers: u64) -> Layout {
        let (bands, rows) = (self.count(), u64::from(self.matrix.rows()));
        match numbers == rows {
            true => Layout::Columns(Arc::clone(&self.rows)),
            false => Layout::Columns((0..=bands).map(|band| numbers * band / bands).collect()),
        }
    }

    /// The spaces of the matrix: places of columns, values and ends of rows. Every node
    /// has the matrix, so no node sends any of it.
    pub fn spaces(self: &Arc<Self>) -> [NewSpace; 3] {
        let starts = self.matrix.row_starts();
        let cuts = self.rows.iter().map(|row| starts[*row as usize]);
        let entries = Layout::Columns(cuts.collect());
        let space = |columns, element, layout: Layout, fill: Fill| NewSpace {
            extent: Extent {
                rows: 1,
                columns,
                element,
            },
            contents: Some(Contents::made(layout, fill)),
        };
        let this = || Arc::clone(self);
        // One more, for bands without entries at the end.
        let (count, number) = (self.matrix.nonzeros() + 1, self.precision.bytes());
        let (columns, values, ends) = (this(), this(), this());
        [
            space(
                count,
                4,
                entries.clone(),
                Arc::new(move |block, to| {
                    columns.write_columns(block, to);
                    Ok(())
                }),
            ),
            space(
                count,
                number,
                entries,
                Arc::new(move |block, to| {
                    values.write_values(block, to);
                    Ok(())
                }),
            ),
            space(
                self.matrix.rows().into(),
                4,
                Layout::Columns(Arc::clone(&self.rows)),
                Arc::new(move |block, to| {
                    ends.write_ends(block, to);
                    Ok(())
                }),
            ),
        ]
    }

    /// Calls `write` with the part of a block that each band has. `cut` is where a band
    /// begins.
    fn by_bands(
        &self,
        block: &Block,
        to: &mut [u8],
        cut: impl Fn(u64) -> u64,
        write: impl Fn(u64, &Block, &mut [u8]),
    ) {
        let each = to.len() / (block.width().max(1) as usize);
        let (mut rest, mut begin) = (to, block.columns.start);
        for band in 0..self.count() {
            let end = match band + 1 < self.count() {
                true => cut(band + 1).min(block.columns.end),
                false => block.columns.end,
            };
            if begin < end {
                let (own, behind) = rest.split_at_mut((end - begin) as usize * each);
                write(band, &Block::new(0..1, begin..end), own);
                (rest, begin) = (behind, end);
            }
        }
    }

    /// The first entry of a band.
    fn first_entry(&self, band: u64) -> u64 {
        self.matrix.row_starts()[self.rows[band as usize] as usize]
    }

    /// Writes where the numbers of entries are in what their band reads.
    fn write_columns(&self, block: &Block, to: &mut [u8]) {
        let first = |band| self.first_entry(band);
        self.by_bands(block, to, first, |band, block, to| {
            self.write_band(band, block, to);
        });
    }

    fn write_band(&self, band: u64, block: &Block, to: &mut [u8]) {
        let reads = self.reads(band);
        let pages = u64::from(self.matrix.columns()).div_ceil(PAGE);
        // For each page, by how many its numbers have moved to the front.
        let mut moved = vec![0; pages as usize];
        let mut before = 0;
        for range in reads {
            for page in range.start / PAGE..range.end.div_ceil(PAGE) {
                moved[page as usize] = range.start - before;
            }
            before += range.end - range.start;
        }
        let columns = self.matrix.column_of();
        write(block, to, |entry| {
            let column = columns.get(entry as usize).copied().map(u64::from);
            let place = column.map_or(0, |column| column - moved[(column / PAGE) as usize]);
            // Columns have 32 bits, and places are not greater.
            place as u32
        });
    }

    fn write_values(&self, block: &Block, to: &mut [u8]) {
        let values = self.matrix.values();
        let value = |entry: u64| values.get(entry as usize).copied().unwrap_or(0.0);
        match self.precision {
            Precision::F64 => write(block, to, value),
            Precision::F32 => write(block, to, |entry| value(entry) as f32),
        }
    }

    /// Writes where rows end, from the first entry of their band.
    fn write_ends(&self, block: &Block, to: &mut [u8]) {
        let starts = self.matrix.row_starts();
        let cut = |band: u64| self.rows[band as usize];
        self.by_bands(block, to, cut, |band, block, to| {
            let first = self.first_entry(band);
            // `HEAVIEST` bounds them.
            write(block, to, |row| (starts[row as usize + 1] - first) as u32);
        });
    }
}

/// Writes a number for each column of a block with one row, on all cores.
pub(super) fn write<T: Pod>(block: &Block, to: &mut [u8], number: impl Fn(u64) -> T + Sync) {
    let length = size_of::<T>();
    let each = PIECE / length;
    parallel::pieces(to, each * length, |piece, to| {
        let first = block.columns.start + (piece * each) as u64;
        for (at, to) in (first..).zip(to.chunks_exact_mut(length)) {
            to.copy_from_slice(bytemuck::bytes_of(&number(at)));
        }
    });
}

/// Cuts rows into bands of about equal weight, the sum of their entries and rows. No band
/// is empty.
fn cuts(starts: &[u64], count: u64) -> Vec<u64> {
    let rows = starts.len() as u64 - 1;
    let weight = |row: u64| starts[row as usize] + row;
    let all: Vec<u64> = (0..=rows).map(weight).collect();
    let cut = |band| {
        let begin = u128::from(weight(rows)) * u128::from(band) / u128::from(count);
        all.partition_point(|weight| u128::from(*weight) < begin) as u64
    };
    let mut cuts: Vec<u64> = (0..=count).map(cut).collect();
    cuts.dedup();
    cuts
}

/// The pages of the vector that rows read, as ranges of numbers. Pages with a short gap
/// between them are one range.
fn read_by(matrix: &Csr, rows: Range<u64>) -> Vec<Range<u64>> {
    let columns = u64::from(matrix.columns());
    let starts = matrix.row_starts();
    let entries = starts[rows.start as usize] as usize..starts[rows.end as usize] as usize;
    let mut is_read = vec![false; columns.div_ceil(PAGE) as usize];
    for column in &matrix.column_of()[entries] {
        is_read[(u64::from(*column) / PAGE) as usize] = true;
    }
    let mut ranges: Vec<Range<u64>> = Vec::new();
    for page in (0..)
        .zip(is_read)
        .filter_map(|(page, is)| is.then_some(page))
    {
        let (begin, end) = (page * PAGE, ((page + 1) * PAGE).min(columns));
        match ranges.last_mut() {
            Some(last) if begin - last.end <= GAP => last.end = end,
            _ => ranges.push(begin..end),
        }
    }
    if ranges.is_empty() {
        ranges.push(0..1);
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrices::awkward;

    /// A product by bands, with the numbers that each band reads and nothing else, is that
    /// of the matrix.
    #[test]
    fn bands_have_all_entries_and_read_all_that_they_need() {
        for (name, matrix) in awkward() {
            if matrix.rows() == 0 || matrix.columns() == 0 {
                continue;
            }
            let matrix = Arc::new(matrix);
            let rows = u64::from(matrix.rows());
            let all: Vec<u64> = (0..=rows).collect();
            for cuts in [
                cuts(matrix.row_starts(), 1),
                cuts(matrix.row_starts(), 7.min(rows)),
                all,
            ] {
                assert_eq!((cuts[0], cuts[cuts.len() - 1]), (0, rows), "{name}");
                assert!(cuts.is_sorted_by(|a, b| a < b), "{name}: {cuts:?}");
                let bands = Bands::cut(&matrix, Precision::F64, cuts);
                for band in 0..bands.count() {
                    check(&bands, band, name);
                }
            }
        }
    }

    fn check(bands: &Arc<Bands>, band: u64, name: &str) {
        let x: Vec<u64> = (bands.reads(band).iter()).cloned().flatten().collect();
        assert!(!x.is_empty() && x.is_sorted_by(|a, b| a < b));
        let [columns, values, ends] = bands.spaces();
        let read = |space: &NewSpace, columns: Range<u64>| {
            let contents = space.contents.as_ref().expect("it has contents");
            let fill = |columns| {
                let block = Block::new(0..1, columns);
                assert!(space.extent.whole().contains(&block));
                let mut bytes = vec![0; space.extent.bytes(&block) as usize];
                (contents.fill)(&block, &mut bytes).expect("it is in memory");
                bytes
            };
            // Bytes are the same whatever blocks they are asked for in.
            let all = fill(0..space.extent.columns);
            let element = space.extent.element as usize;
            let own = &all[columns.start as usize * element..columns.end as usize * element];
            let bytes = fill(columns.clone());
            assert!(columns.end - columns.start == 1 || own == bytes);
            bytes
        };
        let columns: Vec<u32> = bytemuck::pod_collect_to_vec(&read(&columns, bands.entries(band)));
        let values: Vec<f64> = bytemuck::pod_collect_to_vec(&read(&values, bands.entries(band)));
        let ends: Vec<u32> = bytemuck::pod_collect_to_vec(&read(&ends, bands.rows(band)));
        let mut begin = 0;
        for (row, end) in bands.rows(band).zip(ends) {
            let entries = begin..end as usize;
            begin = end as usize;
            let (right_columns, right_values) = bands.matrix().row(row as u32);
            let found: Vec<u64> = columns[entries.clone()]
                .iter()
                .map(|place| x[*place as usize])
                .collect();
            let right: Vec<u64> = right_columns
                .iter()
                .map(|column| (*column).into())
                .collect();
            assert_eq!(found, right, "{name} row {row}");
            // One may be no number, which equals none.
            let bits = |values: &[f64]| values.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
            let found = bits(&values[entries]);
            assert_eq!(found, bits(right_values), "{name} row {row}");
        }
    }

    #[test]
    fn bands_are_of_about_equal_weight() {
        let starts: Vec<u64> = (0..=1000).map(|row| row * row / 10).collect();
        let cuts = cuts(&starts, 10);
        assert_eq!(cuts.len(), 11);
        let weight = |row: u64| starts[row as usize] + row;
        for cut in cuts.windows(2) {
            let weight = weight(cut[1]) - weight(cut[0]);
            assert!(weight.abs_diff(weight_of_all() / 10) <= 2 * 202, "{weight}");
        }
        fn weight_of_all() -> u64 {
            1000 * 1000 / 10 + 1000
        }
    }
}
