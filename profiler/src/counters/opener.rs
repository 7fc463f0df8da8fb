//! Opening the counters of several threads.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::budget;
use super::event::Event;
use super::session::Counters;
use super::sets::{Set, sets};
use super::thread_counters::{self, ThreadCounters};
use super::threads::this_thread;

/// Opens counters of some threads: those that [join](Opener::join) count in
/// groups, and the others' counters are single.
///
/// # Example
///
/// ```
/// use std::sync::mpsc::channel;
/// use pdawl_profiler::counters::{Opener, threads_of_this_process};
///
/// let (sender, receiver) = channel();
/// let (go, goes) = channel::<()>();
/// let opener = Opener::of(&threads_of_this_process());
/// std::thread::scope(|scope| {
///     let opener = &opener;
///     scope.spawn(move || {
///         opener.join();
///         sender.send(()).unwrap();
///         goes.recv().unwrap();
///     });
///     receiver.recv().unwrap();
///     let mut counters = opener.open();
///     go.send(()).unwrap();
///     println!("{:?}", counters.stop().values);
/// });
/// ```
pub struct Opener {
    sets: Vec<Set>,
    threads: BTreeSet<i32>,
    joined: Mutex<BTreeMap<i32, Result<Vec<ThreadCounters>, String>>>,
    notes: Vec<String>,
}

impl Opener {
    /// For these threads, by the system's ids, as from
    /// [`super::threads_of_this_process`]. Those that will join should be among
    /// them: every event that this machine counts will be, as far as the limit
    /// of open files allows that for so many threads.
    pub fn of(threads: &[i32]) -> Self {
        let mut events: Vec<Event> = Event::ALL.to_vec();
        events.retain(|event| event.probe().is_ok());
        let threads: BTreeSet<i32> = threads.iter().copied().collect();
        let sets = sets(&events, threads.len(), budget::free_files());
        let counted: usize = sets.iter().map(|set| set.events.len()).sum();
        let mut notes = Vec::new();
        if counted < events.len() {
            notes.push(too_many(&events[counted..], threads.len()));
        }
        Self {
            sets,
            threads,
            joined: Mutex::default(),
            notes,
        }
    }

    /// Opens the counters of the calling thread, if it has not joined before.
    pub fn join(&self) {
        let Some(here) = this_thread() else {
            return;
        };
        if !self.joined().contains_key(&here) {
            let watches = thread_counters::on_this_thread(&self.sets).map_err(reason);
            self.joined().insert(here, watches);
        }
    }

    /// The counters of those that joined, of the calling thread if it is among
    /// the threads, and of all others. A thread on which not all of the events
    /// open, say since it has ended, is left out. Counting begins.
    pub fn open(&self) -> Counters {
        if this_thread().is_some_and(|here| self.threads.contains(&here)) {
            self.join();
        }
        let mut opened = std::mem::take(&mut *self.joined());
        for thread in &self.threads {
            let others = || other(*thread, &self.sets);
            opened.entry(*thread).or_insert_with(others);
        }
        let mut notes = self.notes.clone();
        let mut watches = Vec::new();
        let mut skipped: BTreeMap<String, Vec<i32>> = BTreeMap::new();
        for (thread, opened) in opened {
            match opened {
                Ok(opened) => watches.push(opened),
                Err(why) => skipped.entry(why).or_default().push(thread),
            }
        }
        notes.extend(skipped.iter().map(|(why, threads)| left_out(threads, why)));
        Counters::over(watches, notes)
    }

    fn joined(&self) -> MutexGuard<'_, BTreeMap<i32, Result<Vec<ThreadCounters>, String>>> {
        self.joined.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The counters of a thread that has not joined.
fn other(thread: i32, sets: &[Set]) -> Result<Vec<ThreadCounters>, String> {
    // To the system 0 is the caller, and -1 everyone.
    if thread <= 0 {
        return Err("this is no thread id".into());
    }
    thread_counters::on_thread(thread, sets).map_err(reason)
}

/// `ESRCH` on every Linux.
const NO_SUCH_PROCESS: i32 = 3;

fn reason(error: io::Error) -> String {
    match error.raw_os_error() {
        Some(NO_SUCH_PROCESS) => "there is no such thread, or it has ended".into(),
        _ => error.to_string(),
    }
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
        (threads + 1) * 2 * Event::ALL.len() + 1024
    )
}
