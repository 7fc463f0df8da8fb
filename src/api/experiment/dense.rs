//! The result of a product or a factorisation on open devices: its check, and its rows.

use std::io::{self, Write};
use std::ops::Range;
use std::sync::atomic::AtomicBool;

use crate::codelet::Element;
use crate::engine::graph::PreparedGraph;
use crate::parallel;
use crate::runtime::{Runtime, RuntimeError};
use crate::verify::numbers;
use crate::verify::product::Verification;
use crate::workload::dense::pivot::{self, NoFactor};
use crate::workload::dense::{DenseTask, Operation};
use crate::workload::task_set::{Matrix, TiledGraph};

/// Bytes of the result that one thread copies at a time, and that are written at once.
const PIECE: usize = 1 << 20;
const STRIPE: u64 = 64 << 20;

/// The matrices after a run.
pub struct Finished<'a> {
    pub task: &'a DenseTask,
    pub tiled: &'a TiledGraph,
    pub prepared: &'a PreparedGraph,
    pub runtime: &'a mut dyn Runtime,
}

impl Finished<'_> {
    /// Why a matrix that was to be factored has no factor; none if it has, and of a product.
    ///
    /// # Errors
    /// When the diagonal cannot be read.
    pub fn no_factor(&mut self) -> Result<Option<NoFactor>, RuntimeError> {
        let precision = self.task.precision.sums();
        let read = |datum| self.prepared.bytes(self.runtime, datum).map(<[u8]>::to_vec);
        pivot::no_factor(self.tiled, precision, read)
    }

    /// Checks the result. `None` if the flag was set meanwhile.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn verify(&mut self, stop: &AtomicBool) -> Result<Option<Verification>, RuntimeError> {
        let read = |datum, element: Element| {
            let bytes = self.prepared.bytes(self.runtime, datum);
            bytes.map(|bytes| numbers(bytes, element))
        };
        self.task.verify(self.tiled, read, stop)
    }

    /// Writes the result row after row; a factor has zeros above its diagonal.
    ///
    /// # Errors
    /// When it cannot be read or written.
    pub fn write_rows(&mut self, out: &mut dyn Write) -> io::Result<()> {
        let row_bytes = self.row_bytes();
        for band in self.bands() {
            let lines = STRIPE.div_ceil(row_bytes as u64).max(1);
            let mut first = band.start;
            while first < band.end {
                let rows = first..band.end.min(first + lines);
                first = rows.end;
                let mut stripe = vec![0; (rows.end - rows.start) as usize * row_bytes];
                self.fill(&rows, &mut stripe).map_err(io::Error::other)?;
                out.write_all(&stripe)?;
            }
        }
        Ok(())
    }

    /// Copies the result row after row; a factor has zeros above its diagonal if `to` has.
    ///
    /// # Errors
    /// When it cannot be read.
    ///
    /// # Panics
    /// When `to` has other bytes than the result.
    pub fn copy_rows(&mut self, to: &mut [u8]) -> Result<(), RuntimeError> {
        let (rows, _) = self.task.operation.result_size();
        let row_bytes = self.row_bytes();
        assert_eq!(to.len(), rows as usize * row_bytes, "room for the result");
        for band in self.bands() {
            let bytes = band.start as usize * row_bytes..band.end as usize * row_bytes;
            self.fill(&band, &mut to[bytes])?;
        }
        Ok(())
    }

    fn row_bytes(&self) -> usize {
        let (_, columns) = self.task.operation.result_size();
        columns as usize * self.task.precision.sums().bytes() as usize
    }

    /// The rows of each row of tiles.
    fn bands(&self) -> Vec<Range<u64>> {
        let tiles = self.tiled.of(self.result());
        let mut bands: Vec<Range<u64>> = tiles.map(|(tile, _)| tile.rows.clone()).collect();
        bands.sort_by_key(|rows| rows.start);
        bands.dedup();
        bands
    }

    /// Copies rows of one row of tiles, by all cores.
    fn fill(&mut self, rows: &Range<u64>, to: &mut [u8]) -> Result<(), RuntimeError> {
        let (matrix, row_bytes) = (self.result(), self.row_bytes());
        let is_factor = matrix == Matrix::L;
        let number = self.task.precision.sums().bytes() as usize;
        let lines = PIECE.div_ceil(row_bytes);
        let tiles = self.tiled.of(matrix);
        for (tile, datum) in tiles.filter(|(tile, _)| tile.rows.contains(&rows.start)) {
            let from = self.prepared.bytes(self.runtime, *datum)?;
            let width = (tile.columns.end - tile.columns.start) as usize * number;
            let begin = tile.columns.start as usize * number;
            parallel::pieces(to, lines * row_bytes, |piece, to| {
                let first = rows.start as usize + piece * lines;
                for (row, to) in (first..).zip(to.chunks_exact_mut(row_bytes)) {
                    // A factor's tiles on the diagonal have no meaning above it.
                    let used = match is_factor {
                        true => width.min((row + 1) * number - begin),
                        false => width,
                    };
                    let at = (row - tile.rows.start as usize) * width;
                    to[begin..begin + used].copy_from_slice(&from[at..at + used]);
                }
            });
        }
        Ok(())
    }

    /// The matrix that the result is.
    fn result(&self) -> Matrix {
        match self.task.operation {
            Operation::Product { .. } => Matrix::C,
            Operation::Factorisation { .. } => Matrix::L,
        }
    }
}
