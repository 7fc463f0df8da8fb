//! Which events are counted, and which of them in groups.

use super::event::{Event, Kind};

/// Events that belong together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Set {
    pub events: Vec<Event>,
    /// Whether they are scheduled and read together.
    pub grouped: bool,
}

/// The sets that so many threads can be counted with, out of `events` in the
/// order of their worth, if `free` files may be opened. No set is divided.
///
/// To count an event matters more than to group it. What is left of the files
/// goes into groups, each of which takes one a thread: for the processor's
/// events first, since only these take turns.
pub fn sets(events: &[Event], threads: usize, free: usize) -> Vec<Set> {
    let mut left = free;
    let mut sets = Vec::new();
    for events in events.chunk_by(|a, b| a.group() == b.group()) {
        let files = events.len().saturating_mul(threads);
        if files > left {
            break;
        }
        left -= files;
        sets.push(Set {
            events: events.to_vec(),
            grouped: false,
        });
    }
    let by_processor = |set: &Set| set.events.iter().any(|e| e.kind() == Kind::Hardware);
    for hardware in [true, false] {
        let some = |set: &&mut Set| by_processor(set) == hardware && set.events.len() > 1;
        for set in sets.iter_mut().filter(some) {
            set.grouped = threads <= left;
            left -= if set.grouped { threads } else { 0 };
        }
    }
    sets
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Events that are counted, sets, and which of these are grouped.
    fn chosen(threads: usize, free: usize) -> (usize, Vec<bool>) {
        let sets = sets(&Event::ALL, threads, free);
        let count = sets.iter().map(|set| set.events.len()).sum();
        (count, sets.iter().map(|set| set.grouped).collect())
    }

    #[test]
    fn a_few_threads_have_everything_in_groups() {
        assert_eq!(chosen(1, 896), (12, vec![true; 5]));
        assert_eq!(chosen(52, 896), (12, vec![true; 5]));
    }

    #[test]
    fn when_files_are_short_the_processors_events_are_grouped_first() {
        assert_eq!(chosen(53, 896).1, [false, true, true, true, true]);
        // 12 x 64 files for events leave 128 for two groups.
        assert_eq!(chosen(64, 896).1, [false, true, true, false, false]);
        assert_eq!(chosen(64, 12 * 64), (12, vec![false; 5]));
    }

    #[test]
    fn an_event_comes_before_any_group_and_no_set_is_divided() {
        // 4 of the kernel, then pairs.
        assert_eq!(chosen(128, 896), (6, vec![false, true]));
        assert_eq!(chosen(128, 512), (4, vec![false]));
        assert_eq!(chosen(128, 511), (0, vec![]));
        assert_eq!(chosen(usize::MAX, 896), (0, vec![]));
        assert_eq!(sets(&[], 1, 0), []);
    }

    #[test]
    fn an_event_whose_partner_is_missing_is_no_group() {
        let guest = [Event::TaskClock, Event::PageFaults, Event::Cycles];
        let grouped: Vec<bool> = (sets(&guest, 2, 100).iter())
            .map(|set| set.grouped)
            .collect();
        assert_eq!(grouped, [true, false]);
    }

    #[test]
    fn no_more_files_are_opened_than_are_free() {
        for threads in 1..200 {
            for free in (0..2000).step_by(7) {
                let files = |set: &Set| set.events.len() + usize::from(set.grouped);
                let all = sets(&Event::ALL, threads, free);
                let opened = threads * all.iter().map(files).sum::<usize>();
                assert!(opened <= free, "{threads} threads, {free} files: {all:?}");
            }
        }
    }
}
