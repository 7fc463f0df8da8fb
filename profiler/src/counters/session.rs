//! Counting over several threads.

use super::event::Event;
use super::opener::Opener;
use super::reading::Reading;
use super::scale::{self, Tick};
use super::thread_counters::ThreadCounters;

/// The counters of some threads. Never fails: what cannot be counted is
/// absent from the readings, and [`Counters::notes`] says why.
pub struct Counters {
    /// A list a thread.
    watches: Vec<Vec<ThreadCounters>>,
    /// What they had seen at the start.
    start: Vec<(Event, Option<Tick>)>,
    notes: Vec<String>,
}

impl Counters {
    /// Opens every event that this machine counts on each of these threads.
    /// Threads that these start later are not counted. The calling thread
    /// counts in groups; see [`Opener`] for others that should.
    pub fn open(threads: &[i32]) -> Self {
        Opener::of(threads).open()
    }

    /// Counts with these, a list a thread, from now on.
    pub(super) fn over(watches: Vec<Vec<ThreadCounters>>, notes: Vec<String>) -> Self {
        let mut counters = Self {
            watches,
            start: Vec::new(),
            notes,
        };
        counters.start();
        counters
    }

    /// How many threads are counted.
    pub fn threads(&self) -> usize {
        self.watches.len()
    }

    /// On how many of them events are scheduled and read in groups.
    pub fn grouped_threads(&self) -> usize {
        let grouped = |watches: &&Vec<ThreadCounters>| watches.iter().any(ThreadCounters::is_group);
        self.watches.iter().filter(grouped).count()
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
        for watch in self.watches.iter_mut().flatten() {
            watch.read(&mut ticks);
        }
        ticks
    }
}
