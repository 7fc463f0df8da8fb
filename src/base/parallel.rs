//! Maps items to results on all cores that the process may use.

use std::num::NonZero;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;

use crossbeam_channel::unbounded;
use rayon::iter::{IndexedParallelIterator, ParallelIterator};
use rayon::slice::ParallelSliceMut;
use rayon::{ThreadPool, ThreadPoolBuilder};

/// Bytes that one thread copies at a time: some 25 us.
const COPIED: usize = 256 << 10;

/// The number of threads: the cores that this process may use.
pub fn threads() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get)
}

/// Calls `work` with each item and returns the results in the order of the items.
pub fn map<T: Send, R: Send>(items: Vec<T>, work: impl Fn(T) -> R + Sync) -> Vec<R> {
    map_while(items, work, |_| true).unwrap_or_default()
}

/// Calls `work` with the index and the items of each piece of so many items, at least 1,
/// and returns the results in the order of the pieces. A single piece takes no thread. The
/// threads stay from one call to the next: many pieces are copies, which take less time than
/// threads take to start.
pub fn pieces<T: Send, R: Send>(
    items: &mut [T],
    length: usize,
    work: impl Fn(usize, &mut [T]) -> R + Sync,
) -> Vec<R> {
    if items.len() <= length {
        return vec![work(0, items)];
    }
    let mut all = || {
        let pieces = items.par_chunks_mut(length).enumerate();
        pieces.map(|(index, piece)| work(index, piece)).collect()
    };
    // A worker of a pool has others beside it.
    match rayon::current_thread_index() {
        Some(_) => all(),
        None => match pool() {
            Some(pool) => pool.install(all),
            None => {
                let pieces = items.chunks_mut(length).enumerate();
                pieces.map(|(index, piece)| work(index, piece)).collect()
            }
        },
    }
}

/// Threads on all cores that the process may use; `None` if the system refuses them. Not those
/// of `rayon` itself: a forked process has them no more, and would wait for them.
fn pool() -> Option<Arc<ThreadPool>> {
    static POOL: Mutex<Option<(u32, Arc<ThreadPool>)>> = Mutex::new(None);
    let process = std::process::id();
    let mut kept = POOL.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((of, pool)) = &*kept
        && *of == process
    {
        return Some(Arc::clone(pool));
    }
    let named = ThreadPoolBuilder::new().thread_name(|_| "pdawl-pieces".to_owned());
    let pool = Arc::new(named.num_threads(threads()).build().ok()?);
    // What another process left is not dropped, as nothing of it runs here.
    std::mem::forget(kept.replace((process, Arc::clone(&pool))));
    Some(pool)
}

/// Copies and fills bytes in memory that others than the cores reach sooner, and says whether it
/// did: a GPU's own memory, which is mapped here.
#[derive(Clone, Copy, Debug)]
pub struct Mover {
    pub copy: fn(&mut [u8], &[u8]) -> bool,
    pub fill: fn(&mut [u8], u8) -> bool,
}

static MOVER: OnceLock<Mover> = OnceLock::new();

/// From now on [`copy`] and [`fill`] ask this first. The first one of the process stays.
pub fn move_by(mover: Mover) {
    let _ = MOVER.set(mover);
}

/// Copies bytes, by several threads if they are many.
///
/// # Panics
/// When there are more or fewer in the one than in the other.
pub fn copy(to: &mut [u8], from: &[u8]) {
    assert_eq!(to.len(), from.len(), "as many bytes");
    if MOVER.get().is_some_and(|mover| (mover.copy)(to, from)) {
        return;
    }
    pieces(to, COPIED, |piece, to| {
        to.copy_from_slice(&from[piece * COPIED..][..to.len()]);
    });
}

/// Sets all bytes to a value, by several threads if they are many.
pub fn fill(bytes: &mut [u8], value: u8) {
    if !MOVER.get().is_some_and(|mover| (mover.fill)(bytes, value)) {
        pieces(bytes, COPIED, |_, piece| piece.fill(value));
    }
}

/// As [`map`]. After each item, `go_on` gets the number of finished items, on the calling
/// thread. If it returns false, the other items are skipped, and the result is `None`.
pub fn map_while<T: Send, R: Send>(
    items: Vec<T>,
    work: impl Fn(T) -> R + Sync,
    mut go_on: impl FnMut(usize) -> bool,
) -> Option<Vec<R>> {
    let count = items.len();
    let (todo, items_left) = unbounded();
    for numbered in items.into_iter().enumerate() {
        // The channel is unbounded and its receiver alive, so this cannot fail.
        let _ = todo.send(numbered);
    }
    drop(todo);
    let stopped = AtomicBool::new(false);
    let mut results: Vec<Option<R>> = (0..count).map(|_| None).collect();
    thread::scope(|scope| {
        let (done, results_come) = unbounded();
        for _ in 0..threads().min(count) {
            let (items_left, done) = (items_left.clone(), done.clone());
            let (work, stopped) = (&work, &stopped);
            scope.spawn(move || {
                for (number, item) in items_left {
                    if stopped.load(Ordering::Relaxed) || done.send((number, work(item))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(done);
        for (before, (number, result)) in results_come.into_iter().enumerate() {
            results[number] = Some(result);
            if !go_on(before + 1) {
                stopped.store(true, Ordering::Relaxed);
                return None;
            }
        }
        Some(())
    })?;
    Some(results.into_iter().flatten().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_keep_their_order() {
        for length in [1, 7, 100, 1000] {
            let mut items: Vec<usize> = (0..100).collect();
            let firsts = pieces(&mut items, length, |index, piece| {
                piece.iter_mut().for_each(|item| *item += 1);
                (index, piece[0])
            });
            let right = (0..100usize.div_ceil(length)).map(|index| (index, index * length + 1));
            assert_eq!(firsts, right.collect::<Vec<_>>());
            assert_eq!(items, (1..101).collect::<Vec<_>>());
        }
    }
}
