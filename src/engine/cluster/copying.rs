//! Threads that copy blocks in host memory beside the driver thread, which has a core of
//! its own: one core copies a few gigabytes a second.

use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::graph::OpenGraph;
use crate::parallel;
use crate::runtime::{Runtime, RuntimeError};
use pdawl_core::cluster::space::{Block, Spaces};
use pdawl_core::cluster::task::chain::Source;
use pdawl_core::graph::{Datum, DatumId};

/// Bytes that a thread copies at once. A block of fewer is copied where it is asked for:
/// to wake threads would take as long.
const PIECE: usize = 2 << 20;

/// Most threads: so many use the bandwidth of a host's memory.
const MOST_THREADS: usize = 8;

/// The threads, if there is more than one core for them.
pub(super) struct Copying {
    pool: Option<ThreadPool>,
}

impl Copying {
    /// Starts the threads. They may use the cores of the calling thread.
    pub fn start() -> Self {
        let threads = parallel::threads().min(MOST_THREADS);
        let pool = ThreadPoolBuilder::new()
            .num_threads(threads)
            .thread_name(|number| format!("copy:{number}"));
        // Without threads, the driver copies.
        let pool = (threads > 1).then(|| pool.build().ok()).flatten();
        Self { pool }
    }

    /// Copies bytes to others of the same length.
    pub fn copy(&self, from: &[u8], to: &mut [u8]) {
        match self.pool.as_ref().filter(|_| to.len() > PIECE) {
            Some(pool) => pool.install(|| {
                let pairs = to.par_chunks_mut(PIECE).zip(from.par_chunks(PIECE));
                pairs.for_each(|(to, from)| to.copy_from_slice(from));
            }),
            None => to.copy_from_slice(from),
        }
    }

    /// Copies the elements that two blocks have in common from the bytes of one to those of
    /// the other. Both are by rows without gaps.
    pub fn rows(
        &self,
        element: usize,
        common: &Block,
        (from, source): (&Block, &[u8]),
        (to, target): (&Block, &mut [u8]),
    ) {
        let width = common.width() as usize * element;
        let row = to.width() as usize * element;
        let first = (common.rows.start - to.rows.start) as usize * row;
        let target = &mut target[first..first + common.height() as usize * row];
        let read = |row: u64| {
            let row = Block::new(row..row + 1, common.columns.clone());
            let at = from.offset_of(&row) as usize * element;
            &source[at..at + width]
        };
        let column = (common.columns.start - to.columns.start) as usize * element;
        let is_whole = from.columns == common.columns && to.columns == common.columns;
        if is_whole {
            let at = from.offset_of(common) as usize * element;
            self.copy(&source[at..at + target.len()], target);
            return;
        }
        let each = (PIECE / width.max(1)).max(1);
        let band = |(number, band): (usize, &mut [u8])| {
            let rows = common.rows.start + (number * each) as u64..;
            for (row, to) in rows.zip(band.chunks_mut(row)) {
                to[column..column + width].copy_from_slice(read(row));
            }
        };
        let bytes = common.height() as usize * width;
        match self.pool.as_ref().filter(|_| bytes > PIECE) {
            Some(pool) => pool.install(|| {
                let bands = target.par_chunks_mut(each * row).enumerate();
                bands.for_each(band);
            }),
            None => target.chunks_mut(each * row).enumerate().for_each(band),
        }
    }
}

/// How much of an answer is here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cluster) enum Received {
    All,
    Some,
    /// More than was asked for.
    TooMuch,
}

/// An answer of which some bytes are here, the first ones.
pub(super) struct Arriving {
    /// By part: where it is to be, and its bytes.
    parts: Vec<(DatumId, u64)>,
    received: u64,
    bytes: u64,
}

impl Arriving {
    /// Nothing has come of these parts.
    pub fn new(graph: &mut OpenGraph, spaces: &Spaces, sources: &[Source]) -> Self {
        let datum = |source: &Source| {
            let (part, bytes) = (&source.part, spaces.bytes(&source.part));
            let row = part.block.width() * spaces.extent(part.space).element;
            (graph.datum(Datum::new("block", bytes).by_rows(row)), bytes)
        };
        let parts: Vec<_> = sources.iter().map(datum).collect();
        Self {
            bytes: parts.iter().map(|(_, bytes)| bytes).sum(),
            parts,
            received: 0,
        }
    }

    /// Where the parts are to be.
    pub fn data(&self) -> impl Iterator<Item = DatumId> {
        self.parts.iter().map(|(datum, _)| *datum)
    }

    /// Takes the bytes from `first` on, if they are the next ones or the first ones.
    ///
    /// # Errors
    /// What the runtime refuses.
    pub fn take(
        &mut self,
        graph: &mut OpenGraph,
        runtime: &mut dyn Runtime,
        copying: &Copying,
        (first, data): (u64, &[u8]),
    ) -> Result<Received, RuntimeError> {
        let end = first.saturating_add(data.len() as u64);
        if end > self.bytes {
            return Ok(Received::TooMuch);
        }
        if first != 0 && first != self.received {
            // Of a node that has answered before another one did.
            return Ok(Received::Some);
        }
        let mut begin = 0;
        for (datum, bytes) in &self.parts {
            let (from, to) = (first.max(begin), end.min(begin + bytes));
            if from < to {
                let memory = graph.host_memory(runtime, *datum)?;
                let place = runtime.host_range(memory, from - begin..to - begin)?;
                copying.copy(&data[(from - first) as usize..(to - first) as usize], place);
            }
            begin += bytes;
        }
        self.received = end;
        Ok(match end == self.bytes {
            true => Received::All,
            false => Received::Some,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes of a block of numbers that say where they are.
    fn numbers(block: &Block) -> Vec<u8> {
        let places = block.rows.clone().flat_map(|row| {
            let columns = block.columns.clone();
            columns.map(move |column| (row * 10_000 + column) as u32)
        });
        places.flat_map(u32::to_ne_bytes).collect()
    }

    #[test]
    fn what_blocks_have_in_common_is_copied_and_nothing_else() {
        let copying = Copying::start();
        for (from, to) in [
            (Block::new(0..3000, 0..1000), Block::new(7..2901, 3..990)),
            (Block::new(7..2901, 3..990), Block::new(0..3000, 0..1000)),
            (Block::new(5..9, 0..700), Block::new(0..8, 0..700)),
            (Block::new(0..4, 5..9), Block::new(3..8, 0..6)),
        ] {
            let common = from.common(&to).expect("elements");
            let mut found = vec![0xEE; 4 * to.elements() as usize];
            copying.rows(4, &common, (&from, &numbers(&from)), (&to, &mut found));
            let right = numbers(&to);
            for (at, (found, right)) in found.chunks(4).zip(right.chunks(4)).enumerate() {
                let row = to.rows.start + at as u64 / to.width();
                let column = to.columns.start + at as u64 % to.width();
                let is_common = common.rows.contains(&row) && common.columns.contains(&column);
                let right = if is_common { right } else { &[0xEE; 4] };
                assert_eq!(found, right, "row {row}, column {column} of {to:?}");
            }
        }
    }
}
