//! The counters of one thread.
//!
//! The crate's groups (events that are scheduled and read together) watch
//! none but the thread that opens them: a `Group` takes no thread id. So a
//! thread that can be made to opens its own, which then may be read from any
//! thread. Other threads' counters are opened one by one, each scaled by its
//! own times. Over more than some milliseconds the two agree.
//!
//! Reading a group panics after a counter failed to join it, even if others
//! joined since. So such a group is thrown away unread.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

use perf_event::{Counter, Group};

use super::event::Event;
use super::scale::Tick;
use super::sets::Set;

/// Counters that are read together; they count since they were opened.
pub enum ThreadCounters {
    Group {
        group: Group,
        members: Vec<(Event, Counter)>,
    },
    Single {
        event: Event,
        counter: Counter,
    },
}

/// Counts these events on the calling thread, in groups where that is wanted and
/// works.
///
/// # Errors
/// The system's, when a counter does not open even outside of a group.
pub fn on_this_thread(sets: &[Set]) -> io::Result<Vec<ThreadCounters>> {
    let mut watches = Vec::new();
    for Set { events, grouped } in sets {
        match grouped.then(|| group(events)) {
            Some(Ok(group)) => watches.push(group),
            Some(Err(_)) | None => watches.extend(singles(events, None)?),
        }
    }
    Ok(watches)
}

/// Counts these events on another thread.
///
/// # Errors
/// The system's, for the first counter that does not open.
pub fn on_thread(thread: i32, sets: &[Set]) -> io::Result<Vec<ThreadCounters>> {
    let mut watches = Vec::new();
    for set in sets {
        watches.extend(singles(&set.events, Some(thread))?);
    }
    Ok(watches)
}

fn group(events: &[Event]) -> io::Result<ThreadCounters> {
    let mut group = Group::new()?;
    let mut members = Vec::new();
    for event in events {
        members.push((*event, event.builder().group(&mut group).build()?));
    }
    group.enable()?;
    Ok(ThreadCounters::Group { group, members })
}

fn singles(events: &[Event], thread: Option<i32>) -> io::Result<Vec<ThreadCounters>> {
    let single = |event: &Event| {
        let mut builder = match thread {
            Some(thread) => event.builder().observe_pid(thread),
            None => event.builder(),
        };
        builder.enabled(true);
        let counter = builder.build()?;
        Ok(ThreadCounters::Single {
            event: *event,
            counter,
        })
    };
    events.iter().map(single).collect()
}

impl ThreadCounters {
    pub fn is_group(&self) -> bool {
        matches!(self, ThreadCounters::Group { .. })
    }

    /// Adds what every counter has seen so far; `None` for one that cannot be
    /// read.
    pub fn read(&mut self, ticks: &mut Vec<(Event, Option<Tick>)>) {
        match self {
            ThreadCounters::Group { group, members } => {
                let counts = guarded(|| group.read());
                ticks.extend(members.iter().map(|(event, counter)| {
                    let tick = counts.as_ref().and_then(|counts| {
                        Some(Tick {
                            count: *counts.get(counter)?,
                            enabled: counts.time_enabled(),
                            running: counts.time_running(),
                        })
                    });
                    (*event, tick)
                }));
            }
            ThreadCounters::Single { event, counter } => {
                let tick = guarded(|| counter.read_count_and_time()).map(|seen| Tick {
                    count: seen.count,
                    enabled: seen.time_enabled,
                    running: seen.time_running,
                });
                ticks.push((*event, tick));
            }
        }
    }
}

/// Reads, although the crate panics when the kernel answers with fewer bytes
/// than it should or with a counter that ran for longer than it was enabled.
fn guarded<T>(read: impl FnOnce() -> io::Result<T>) -> Option<T> {
    catch_unwind(AssertUnwindSafe(read)).ok()?.ok()
}
