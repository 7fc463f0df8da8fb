//! Finding threads.

use std::fs;
use std::path::Path;

/// Readings of `/proc` after which the last one is believed.
const READINGS: u32 = 16;

/// The ids of all threads that this process has now, in rising order; empty
/// where there is no `/proc`.
pub fn threads_of_this_process() -> Vec<i32> {
    // A thread that ends while the folder is read can hide another one: two
    // readings must agree.
    let mut threads = read();
    for _ in 1..READINGS {
        let again = read();
        if again == threads {
            break;
        }
        threads = again;
    }
    threads
}

fn read() -> Vec<i32> {
    let Ok(tasks) = fs::read_dir("/proc/self/task") else {
        return Vec::new();
    };
    let mut threads: Vec<i32> = tasks
        .flatten()
        .filter_map(|task| id(task.path().as_path()))
        .collect();
    threads.sort_unstable();
    threads
}

/// The id of the calling thread.
#[cfg(test)]
pub(super) fn this_thread() -> Option<i32> {
    // It points to PROCESS/task/THREAD.
    id(&fs::read_link("/proc/thread-self").ok()?)
}

fn id(path: &Path) -> Option<i32> {
    path.file_name()?.to_str()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_that_end_meanwhile_hide_none() {
        let here = this_thread().unwrap();
        for _ in 0..200 {
            let passing: Vec<_> = (0..4).map(|_| std::thread::spawn(|| {})).collect();
            assert!(threads_of_this_process().contains(&here));
            passing
                .into_iter()
                .for_each(|thread| thread.join().unwrap());
        }
    }

    #[test]
    fn the_calling_thread_and_others_are_found() {
        let here = this_thread().unwrap();
        std::thread::spawn(move || {
            let there = this_thread().unwrap();
            assert_ne!(here, there);
            let all = threads_of_this_process();
            assert!(all.contains(&here) && all.contains(&there), "{all:?}");
            assert!(all.is_sorted());
        })
        .join()
        .unwrap();
    }
}
