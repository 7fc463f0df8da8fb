//! Maps items to results on all cores, with progress and interruption.

use super::control::Control;
use super::error::MatrixError;
use crate::parallel::map_while;

pub(super) use crate::parallel::threads;

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
    let total = items.len() as u64;
    let mut reported = Ok(());
    let results = map_while(items, work, |done| {
        reported = control.report(what, done as u64, total);
        reported.is_ok()
    });
    reported?;
    Ok(results.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
    use std::thread;

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
