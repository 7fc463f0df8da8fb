//! The result of a product or a factorisation on open devices: its check, and its rows.

use std::io::{self, Write};
use std::sync::atomic::AtomicBool;

use crate::codelet::Element;
use crate::engine::graph::PreparedGraph;
use crate::graph::DatumId;
use crate::parallel;
use crate::runtime::{Runtime, RuntimeError};
use crate::verify::numbers;
use crate::verify::product::Verification;
use crate::workload::dense::{DenseTask, Operation, pivot};
use crate::workload::task_set::{Matrix, Tile, TiledGraph};

/// Bytes of the result that one thread copies at a time.
const PIECE: usize = 1 << 20;

/// The matrices after a run.
pub struct Finished<'a> {
    pub task: &'a DenseTask,
    pub tiled: &'a TiledGraph,
    pub prepared: &'a PreparedGraph,
    pub runtime: &'a mut dyn Runtime,
}

impl Finished<'_> {
    /// The first row of a factored matrix whose pivot was not positive, so that the matrix was
    /// not positive definite; none of a product.
    ///
    /// # Errors
    /// When the diagonal cannot be read.
    pub fn bad_pivot(&mut self) -> Result<Option<u64>, RuntimeError> {
        let precision = self.task.precision.sums();
        let read = |datum| self.prepared.bytes(self.runtime, datum).map(<[u8]>::to_vec);
        pivot::first_bad(self.tiled, precision, read)
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
        let matrix = self.result();
        let mut tiles: Vec<&(Tile, DatumId)> = self.tiled.of(matrix).collect();
        tiles.sort_by_key(|(tile, _)| tile.place);
        let number = self.task.precision.sums().bytes() as usize;
        let (_, columns) = self.task.operation.result_size();
        let zeros = vec![0; columns as usize * number];
        for across in tiles.chunk_by(|(one, _), (other, _)| one.rows == other.rows) {
            let Some((first, _)) = across.first() else {
                continue;
            };
            for row in first.rows.clone() {
                let mut written = 0;
                for (tile, datum) in across {
                    let width = (tile.columns.end - tile.columns.start) as usize * number;
                    let begin = (row - tile.rows.start) as usize * width;
                    // A factor's tiles on the diagonal have no meaning above it.
                    let used = match matrix {
                        Matrix::L => (row + 1 - tile.columns.start) as usize * number,
                        _ => width,
                    };
                    let used = used.min(width);
                    out.write_all(&self.bytes(*datum)?[begin..begin + used])?;
                    written += used;
                }
                out.write_all(&zeros[written..])?;
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
        let is_factor = matches!(self.task.operation, Operation::Factorisation { .. });
        let number = self.task.precision.sums().bytes() as usize;
        let (rows, columns) = self.task.operation.result_size();
        let row_bytes = columns as usize * number;
        assert_eq!(to.len(), rows as usize * row_bytes, "room for the result");
        let lines = PIECE.div_ceil(row_bytes.max(1));
        for (tile, datum) in self.tiled.of(self.result()) {
            let from = self.prepared.bytes(self.runtime, *datum)?;
            let width = (tile.columns.end - tile.columns.start) as usize * number;
            let begin = tile.columns.start as usize * number;
            let band = tile.rows.start as usize * row_bytes..tile.rows.end as usize * row_bytes;
            parallel::pieces(&mut to[band], lines * row_bytes, |piece, to| {
                let first = piece * lines;
                for (row, to) in (first..).zip(to.chunks_exact_mut(row_bytes)) {
                    let below = (tile.rows.start as usize + row + 1) * number;
                    // A factor's tiles on the diagonal have no meaning above it.
                    let used = match is_factor {
                        true => width.min(below - begin),
                        false => width,
                    };
                    to[begin..begin + used].copy_from_slice(&from[row * width..][..used]);
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

    fn bytes(&mut self, datum: DatumId) -> io::Result<&[u8]> {
        let bytes: Result<&[u8], RuntimeError> = self.prepared.bytes(self.runtime, datum);
        bytes.map_err(io::Error::other)
    }
}
