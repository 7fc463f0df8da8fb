//! Counting over several threads.

use std::collections::BTreeMap;

use super::budget;
use super::event::Event;
use super::reading::Reading;
use super::scale::{self, Tick};
use super::threads::this_thread;
use super::watch::{self, Watch};

/// The counters of some threads. Never fails: what cannot be counted is
/// absent from the readings, and [`Counters::notes`] says why.
pub struct Counters {
    watches: Vec<Watch>,
    /// What they had seen at the start.
    start: Vec<(Event, Option<Tick>)>,
    threads: usize,
    notes: Vec<String>,
}

impl Counters {
    /// Opens every event that this machine counts on each of these threads.
    /// The ids are those of the system, as from
    /// [`super::threads_of_this_process`]. Threads that these start later are
    /// not counted.
    ///
    /// A thread on which not all of the events open, say since it has ended,
    /// is left out.
    pub fn open(threads: &[i32]) -> Self {
        let mut events: Vec<Event> = Event::ALL.to_vec();
        events.retain(|event| event.probe().is_ok());
        let mut threads = threads.to_vec();
        threads.sort_unstable();
        threads.dedup();

        let mut notes = Vec::new();
        let affordable = budget::affordable(&events, threads.len(), budget::free_files());
        if affordable < events.len() {
            notes.push(too_many(&events[affordable..], threads.len()));
            events.truncate(affordable);
        }

        let mut counters = Self {
            watches: Vec::new(),
            start: Vec::new(),
            threads: 0,
            notes,
        };
        let mut skipped: BTreeMap<String, Vec<i32>> = BTreeMap::new();
        let here = this_thread();
        for thread in threads {
            match open(thread, here, &events) {
                Ok(watches) => {
                    counters.watches.extend(watches);
                    counters.threads += 1;
                }
                Err(why) => skipped.entry(why).or_default().push(thread),
            }
        }
        for (why, threads) in skipped {
            counters.notes.push(left_out(&threads, &why));
        }
        counters.start();
        counters
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
        let spans = now.into_iter().zip(&self.start).map(|(now, start)| {
            let span = now.1.zip(start.1).map(|(now, start)| now.since(start));
            (now.0, span)
        });
        scale::reading(spans)
    }

    /// Every counter, in one order.
    fn read(&mut self) -> Vec<(Event, Option<Tick>)> {
        let mut ticks = Vec::with_capacity(self.start.len());
        for watch in &mut self.watches {
            watch.read(&mut ticks);
        }
        ticks
    }
}

fn open(thread: i32, here: Option<i32>, events: &[Event]) -> Result<Vec<Watch>, String> {
    // To the system 0 is the caller, and -1 everyone.
    if thread <= 0 {
        return Err("this is no thread id".into());
    }
    let watches = match here == Some(thread) {
        true => watch::on_this_thread(events),
        false => watch::on_thread(thread, events),
    };
    watches.map_err(|error| match error.raw_os_error() {
        Some(NO_SUCH_PROCESS) => "there is no such thread, or it has ended".into(),
        _ => error.to_string(),
    })
}

/// `ESRCH` on every Linux.
const NO_SUCH_PROCESS: i32 = 3;

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
