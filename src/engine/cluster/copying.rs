//! Threads that copy blocks in host memory beside the driver thread, which has a core of
//! its own: one core copies a few gigabytes a second, and fresh memory even less.

use std::io;

use memmap2::{Advice, MmapMut};
use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::cluster::space::{Block, Extent, pieces};
use crate::parallel;

/// Bytes that a thread copies at once. A block of fewer is copied where it is asked for:
/// to wake threads would take as long.
pub(super) const PIECE: usize = 2 << 20;

/// Bytes of the smallest pages.
const PAGE: usize = 4096;

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

    /// Copies a block to `to`, which has its bytes: `copy` is called with pieces of the block,
    /// by several threads if it is large.
    ///
    /// # Errors
    /// One that `copy` returned.
    pub fn block<E: Send>(
        &self,
        extent: Extent,
        block: &Block,
        to: &mut [u8],
        copy: impl Fn(&Block, &mut [u8]) -> Result<(), E> + Sync,
    ) -> Result<(), E> {
        let Some(pool) = self.pool.as_ref().filter(|_| to.len() > PIECE) else {
            return copy(block, to);
        };
        let mut rest = to;
        let mut jobs = Vec::new();
        for piece in pieces(extent, block, PIECE as u64) {
            let (bytes, behind) = rest.split_at_mut(extent.bytes(&piece) as usize);
            jobs.push((piece, bytes));
            rest = behind;
        }
        pool.install(|| {
            let jobs = jobs.into_par_iter();
            jobs.try_for_each(|(piece, bytes)| copy(&piece, bytes))
        })
    }

    /// Fresh memory of so many bytes, whose pages are there. Where the driver of a device
    /// allocates pinned memory, one thread makes its pages, which takes longer than pinning
    /// pages that are there.
    ///
    /// # Errors
    /// When there is no such memory.
    pub fn memory(&self, bytes: usize) -> io::Result<MmapMut> {
        let mut memory = MmapMut::map_anon(bytes)?;
        // Small pages serve as well, where the system has no large ones.
        let _ = memory.advise(Advice::HugePage);
        let touch = |piece: &mut [u8]| piece.chunks_mut(PAGE).for_each(|page| page[0] = 0);
        match &self.pool {
            Some(pool) => pool.install(|| memory.par_chunks_mut(PIECE).for_each(touch)),
            None => touch(&mut memory),
        }
        Ok(memory)
    }

    /// The same bytes in memory of their own.
    pub fn bytes(&self, from: &[u8]) -> Vec<u8> {
        let Some(pool) = self.pool.as_ref().filter(|_| from.len() > PIECE) else {
            return from.to_vec();
        };
        // The system zeroes this memory when a thread first writes to it.
        let mut to = vec![0; from.len()];
        pool.install(|| {
            let pairs = to.par_chunks_mut(PIECE).zip(from.par_chunks(PIECE));
            pairs.for_each(|(to, from)| to.copy_from_slice(from));
        });
        to
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_blocks_are_copied_whole() {
        let copying = Copying::start();
        let extent = Extent {
            rows: 3000,
            columns: 1000,
            element: 4,
        };
        let block = Block::new(7..2901, 3..990);
        let number = |row: u64, column: u64| (row * extent.columns + column) as u32;
        let mut to = vec![0; extent.bytes(&block) as usize];
        let copied = copying.block(extent, &block, &mut to, |piece, bytes| {
            let rows = piece.rows.clone();
            let places =
                rows.flat_map(|row| piece.columns.clone().map(move |column| (row, column)));
            for (to, (row, column)) in bytes.chunks_exact_mut(4).zip(places) {
                to.copy_from_slice(&number(row, column).to_ne_bytes());
            }
            Ok::<(), ()>(())
        });
        assert_eq!(copied, Ok(()));
        let places = (7..2901).flat_map(|row| (3..990).map(move |column| number(row, column)));
        let right: Vec<u8> = places.flat_map(u32::to_ne_bytes).collect();
        assert!(to == right);
        assert!(copying.bytes(&to) == right);
    }

    #[test]
    fn an_error_of_a_piece_is_told() {
        let extent = Extent {
            rows: 4000,
            columns: 1000,
            element: 4,
        };
        let whole = extent.whole();
        let mut to = vec![0; extent.bytes(&whole) as usize];
        let copied = Copying::start().block(extent, &whole, &mut to, |piece, _| {
            match piece.rows.contains(&3999) {
                true => Err("the last row"),
                false => Ok(()),
            }
        });
        assert_eq!(copied, Err("the last row"));
    }
}
