//! Jobs on several threads, with progress reported on the caller's thread.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;

use rayon::ThreadPoolBuilder;

use super::TrainError;

/// Runs jobs 0 to `count` - 1 and returns their results in this order. A job
/// answers `None` if it was interrupted, as all are once `stop` is set.
///
/// The pool is its own: a caller that waits in a pool of several such calls
/// takes no thread from the jobs.
pub fn run<T: Send>(
    threads: usize,
    count: usize,
    job: impl Fn(usize) -> Option<T> + Sync,
    progress: &mut dyn FnMut(usize, usize),
    stop: &AtomicBool,
) -> Result<Vec<T>, TrainError> {
    let pool = ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .map_err(|error| TrainError::Threads {
            reason: error.to_string(),
        })?;
    let (sender, results) = mpsc::channel();
    let mut done: Vec<Option<T>> = (0..count).map(|_| None).collect();
    pool.in_place_scope(|scope| {
        let job = &job;
        for number in 0..count {
            let sender = sender.clone();
            scope.spawn(move |_| {
                let result = if stop.load(Ordering::Relaxed) {
                    None
                } else {
                    job(number)
                };
                // The receiver outlives the scope.
                let _ = sender.send((number, result));
            });
        }
        drop(sender);
        progress(0, count);
        for (finished, (number, result)) in results.iter().enumerate() {
            done[number] = result;
            progress(finished + 1, count);
        }
    });
    done.into_iter()
        .collect::<Option<Vec<T>>>()
        .ok_or(TrainError::Interrupted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_order_and_progress_is_whole() {
        let mut seen = Vec::new();
        let stop = AtomicBool::new(false);
        let squares = run(2, 20, |n| Some(n * n), &mut |a, b| seen.push((a, b)), &stop);
        assert_eq!(squares.unwrap(), (0..20).map(|n| n * n).collect::<Vec<_>>());
        assert_eq!(seen, (0..=20).map(|n| (n, 20)).collect::<Vec<_>>());
    }

    #[test]
    fn what_stops_a_job_stops_all() {
        let stop = AtomicBool::new(false);
        let started = std::sync::atomic::AtomicUsize::new(0);
        let job = |n| {
            started.fetch_add(1, Ordering::Relaxed);
            if n == 3 {
                stop.store(true, Ordering::Relaxed);
                return None;
            }
            Some(n)
        };
        let result = run(1, 100, job, &mut |_, _| {}, &stop);
        assert_eq!(result, Err(TrainError::Interrupted));
        assert!(started.load(Ordering::Relaxed) < 100);
    }
}
