//! Maps items to results on all cores, with progress and interruption.

use std::num::NonZero;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crossbeam_channel::unbounded;

use super::control::Control;
use super::error::MatrixError;

/// The number of threads: the cores that this process may use.
pub fn threads() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get)
}

/// Calls `work` with each item and returns the results in the order of the items.
/// Progress is reported, and an interruption noticed, after each item.
///
/// # Errors
/// [`MatrixError::Interrupted`].
pub fn map<T: Send, R: Send>(
    items: Vec<T>,
    what: &'static str,
    control: &mut Control,
    work: impl Fn(T) -> R + Sync,
) -> Result<Vec<R>, MatrixError> {
    let count = items.len();
    let (todo, items_left) = unbounded();
    for numbered in items.into_iter().enumerate() {
        // The channel is unbounded and its receiver alive, so this cannot fail.
        let _ = todo.send(numbered);
    }
    drop(todo);
    let enough = AtomicBool::new(false);
    let mut results: Vec<Option<R>> = (0..count).map(|_| None).collect();
    thread::scope(|scope| {
        let (done, results_come) = unbounded();
        for _ in 0..threads().min(count) {
            let (items_left, done) = (items_left.clone(), done.clone());
            let (work, enough) = (&work, &enough);
            scope.spawn(move || {
                for (number, item) in items_left {
                    if enough.load(Ordering::Relaxed) || done.send((number, work(item))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(done);
        for (so_far, (number, result)) in results_come.into_iter().enumerate() {
            results[number] = Some(result);
            if let Err(error) = control.report(what, so_far as u64 + 1, count as u64) {
                enough.store(true, Ordering::Relaxed);
                return Err(error);
            }
        }
        Ok(())
    })?;
    Ok(results.into_iter().flatten().collect())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::*;
    use crate::matrix::control::quietly;

    #[test]
    fn results_are_in_order() {
        let squares = quietly(|control| map((0..1000u64).collect(), "", control, |i| i * i));
        let expected: Vec<u64> = (0..1000).map(|i| i * i).collect();
        assert_eq!(squares.unwrap(), expected);
        let none = quietly(|control| map(Vec::<u64>::new(), "", control, |i| i));
        assert!(none.unwrap().is_empty());
    }

    #[test]
    fn an_interruption_leaves_work_undone() {
        let (stop, worked) = (AtomicBool::new(false), AtomicU64::new(0));
        let mut control = Control {
            stop: &stop,
            progress: &mut |_| stop.store(true, Ordering::Relaxed),
        };
        let result = map((0..100_000u64).collect(), "", &mut control, |_| {
            worked.fetch_add(1, Ordering::Relaxed);
            thread::yield_now();
        });
        assert!(matches!(result, Err(MatrixError::Interrupted)));
        assert!(worked.load(Ordering::Relaxed) < 100_000);
    }
}
