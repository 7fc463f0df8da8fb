//! The result of a run in host memory: checked, and written to a file.

use std::io::{self, Write};
use std::sync::atomic::AtomicBool;

use pdawl::codelet::Element;
use pdawl::engine::graph::PreparedGraph;
use pdawl::graph::DatumId;
use pdawl::matrix::npy::write_header;
use pdawl::runtime::{Runtime, RuntimeError};
use pdawl::verify::numbers;
use pdawl::verify::product::Verification;
use pdawl::workload::dense::{DenseTask, Operation, pivot};
use pdawl::workload::task_set::{Matrix, Tile, TiledGraph};

use crate::cli::failure::{Failure, refused};
use crate::cli::output::Output;

/// The matrices after a run.
pub struct Finished<'a> {
    pub task: &'a DenseTask,
    pub tiled: &'a TiledGraph,
    pub prepared: &'a PreparedGraph,
    pub runtime: &'a mut dyn Runtime,
}

impl Finished<'_> {
    /// Checks that a factored matrix was positive definite.
    ///
    /// # Errors
    /// The first row whose pivot was not positive.
    pub fn check_pivots(&mut self) -> Result<(), Failure> {
        let precision = self.task.precision.sums();
        let read = |datum| self.prepared.bytes(self.runtime, datum).map(<[u8]>::to_vec);
        let bad = pivot::first_bad(self.tiled, precision, read).map_err(refused)?;
        let Some(row) = bad else { return Ok(()) };
        let tile = row / u64::from(self.task.tile);
        Err(Failure::failed(
            format!(
                "the matrix is not positive definite: the pivot of row {row} (counted from 0; \
                 tile {tile}, {tile}) is not positive"
            ),
            "a positive definite matrix, or more on its diagonal; in --precision f64 a matrix \
             may be definite that is not so in f32",
        ))
    }

    /// Checks the result. `None` if the flag was set meanwhile.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn verify(&mut self, stop: &AtomicBool) -> Result<Option<Verification>, Failure> {
        let read = |datum, element: Element| {
            let bytes = self.prepared.bytes(self.runtime, datum);
            bytes.map(|bytes| numbers(bytes, element))
        };
        let verified = self.task.verify(self.tiled, read, stop);
        verified.map_err(refused)
    }

    /// Writes the result.
    ///
    /// # Errors
    /// When it cannot be read or written.
    pub fn write(&mut self, output: Output) -> Result<(), Failure> {
        let (rows, columns) = self.task.operation.result_size();
        output.write(|out| {
            write_header(
                out,
                (rows.into(), columns.into()),
                self.task.precision.sums(),
            )?;
            self.write_rows(out)
        })
    }

    fn write_rows(&mut self, out: &mut dyn Write) -> io::Result<()> {
        let matrix = match self.task.operation {
            Operation::Product { .. } => Matrix::C,
            Operation::Factorisation { .. } => Matrix::L,
        };
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

    fn bytes(&mut self, datum: DatumId) -> io::Result<&[u8]> {
        let bytes: Result<&[u8], RuntimeError> = self.prepared.bytes(self.runtime, datum);
        bytes.map_err(io::Error::other)
    }
}
