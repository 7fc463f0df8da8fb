//! Counting over several threads.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::{fs, io};

use perf_event::Counter;

use super::{Event, Reading, Tick};

/// Files left to the rest of the program.
const RESERVE: usize = 128;

/// The usual limit of open files, which is assumed where the system does not report one.
const USUAL: usize = 1024;

/// `ESRCH` on every Linux.
const NO_SUCH_PROCESS: i32 = 3;

/// The counters of some threads. Never fails: what cannot be counted is
/// absent from the readings, and [`Counters::notes`] says why.
pub struct Counters {
    counters: Vec<(Event, Counter)>,
    threads: usize,
    /// What they had seen at the start.
    start: Vec<Option<Tick>>,
    notes: Vec<String>,
}

impl Counters {
    /// Opens every event that this machine counts on each of these threads, by the system's
    /// ids as from [`super::threads_of_this_process`], as far as the limit of open files
    /// allows that. A thread on which not all of them open, say since it has ended, is left
    /// out. Threads that these start later are not counted. Counting begins.
    pub fn open(threads: &[i32]) -> Self {
        let threads: BTreeSet<i32> = threads.iter().copied().collect();
        let mut events = Event::ALL.to_vec();
        events.retain(|event| event.probe().is_ok());
        let mut notes = Vec::new();
        // A file a thread and event.
        let most = free_files() / threads.len().max(1);
        if most < events.len() {
            notes.push(too_many(&events.split_off(most), threads.len()));
        }
        let mut opened = Self {
            counters: Vec::new(),
            threads: 0,
            start: Vec::new(),
            notes,
        };
        let mut skipped: BTreeMap<String, Vec<i32>> = BTreeMap::new();
        for thread in threads {
            match on_thread(thread, &events) {
                Ok(counters) => {
                    opened.counters.extend(counters);
                    opened.threads += 1;
                }
                Err(why) => skipped.entry(why).or_default().push(thread),
            }
        }
        let skipped = skipped.iter().map(|(why, threads)| left_out(threads, why));
        opened.notes.extend(skipped);
        opened.start();
        opened
    }

    /// How many threads are counted.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Which threads and events are left out, and why: sentences for people.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Counts from now on.
    pub fn start(&mut self) {
        self.start = self.read();
    }

    /// What was counted since the last start, or since opening. Counting goes
    /// on, and can be started again.
    pub fn stop(&mut self) -> Reading {
        let now = self.read();
        let spans = now.into_iter().zip(&self.start);
        let spans = spans.map(|(now, start)| now.zip(*start).map(|(now, start)| now.since(start)));
        let events = self.counters.iter().map(|(event, _)| *event);
        super::reading(events.zip(spans))
    }

    /// What every counter has seen so far; `None` for one that cannot be read.
    fn read(&mut self) -> Vec<Option<Tick>> {
        let counters = self.counters.iter_mut();
        let read = |(_, counter): &mut (Event, Counter)| {
            // The crate panics when the kernel answers with fewer bytes than it should, or
            // with a counter that ran for longer than it was enabled.
            let seen = catch_unwind(AssertUnwindSafe(|| counter.read_count_and_time()));
            let seen = seen.ok()?.ok()?;
            Some(Tick {
                count: seen.count,
                enabled: seen.time_enabled,
                running: seen.time_running,
            })
        };
        counters.map(read).collect()
    }
}

/// Counts these events on a thread; the error says why not.
fn on_thread(thread: i32, events: &[Event]) -> Result<Vec<(Event, Counter)>, String> {
    // 0 is the calling thread, and -1 all of them, for the system.
    if thread <= 0 {
        return Err("this is no thread id".into());
    }
    let open = |event: &Event| {
        let mut builder = event.builder().observe_pid(thread);
        builder.enabled(true);
        Ok((*event, builder.build()?))
    };
    let opened: io::Result<_> = events.iter().map(open).collect();
    opened.map_err(|error| match error.raw_os_error() {
        Some(NO_SUCH_PROCESS) => "there is no such thread, or it has ended".into(),
        _ => error.to_string(),
    })
}

fn left_out(threads: &[i32], why: &str) -> String {
    let ids: Vec<String> = threads.iter().map(i32::to_string).collect();
    match ids.as_slice() {
        [id] => format!("thread {id} is not counted: {why}"),
        _ => format!("threads {} are not counted: {why}", ids.join(", ")),
    }
}

fn too_many(events: &[Event], threads: usize) -> String {
    let names: Vec<&str> = events.iter().map(|event| event.name()).collect();
    format!(
        "{} are not counted: with {threads} threads their counters exceed the limit of open files; \
         raise it with `ulimit -n {}`",
        names.join(", "),
        (threads + 1) * Event::ALL.len() + 1024
    )
}

/// Files that may still be opened for counters.
fn free_files() -> usize {
    let limits = fs::read_to_string("/proc/self/limits").ok();
    let limit = limits.and_then(|text| limit_in(&text)).unwrap_or(USUAL);
    let open = fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
    limit.saturating_sub(open + RESERVE)
}

/// The soft limit of open files in `/proc/self/limits`.
fn limit_in(text: &str) -> Option<usize> {
    let mut lines = text.lines();
    let line = lines.find_map(|line| line.strip_prefix("Max open files"))?;
    match line.split_whitespace().next()? {
        "unlimited" => Some(usize::MAX),
        soft => soft.parse().ok(),
    }
}

#[cfg(test)]
mod limits {
    use super::*;

    #[test]
    fn the_soft_limit_is_read() {
        let text = "Limit   Soft Limit   Hard Limit   Units\n\
                    Max processes             128          128     processes\n\
                    Max open files            1024         524288  files\n";
        assert_eq!(limit_in(text), Some(1024));
        let text = "Max open files            unlimited    unlimited  files\n";
        assert_eq!(limit_in(text), Some(usize::MAX));
        assert_eq!(limit_in("Max open files\n"), None);
        assert_eq!(limit_in(""), None);
    }

    #[test]
    fn some_files_are_free_here() {
        assert!(free_files() > 0);
    }
}

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
