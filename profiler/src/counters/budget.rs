//! How many counters a process can afford: each is an open file.

use std::fs;

use super::event::Event;

/// Files left to the rest of the program.
const RESERVE: usize = 128;

/// The limit where the system does not tell it, and the usual one.
const USUAL: usize = 1024;

/// Files that may still be opened for counters.
pub fn free_files() -> usize {
    let limit = fs::read_to_string("/proc/self/limits")
        .ok()
        .and_then(|text| limit_in(&text))
        .unwrap_or(USUAL);
    let open = fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
    limit.saturating_sub(open + RESERVE)
}

/// The soft limit of open files in `/proc/self/limits`.
fn limit_in(text: &str) -> Option<usize> {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"))?;
    match line.split_whitespace().next()? {
        "unlimited" => Some(usize::MAX),
        soft => soft.parse().ok(),
    }
}

/// How many of the events, from the first, can be counted on so many threads;
/// groups are not torn apart.
pub fn affordable(events: &[Event], threads: usize, free: usize) -> usize {
    // One thread, the calling one, has a further file for each group.
    let groups = events.chunk_by(|a, b| a.group() == b.group());
    let mut files: usize = 0;
    let mut taken = 0;
    for group in groups {
        let more = group.len().saturating_mul(threads).saturating_add(1);
        files = files.saturating_add(more);
        if files > free {
            break;
        }
        taken += group.len();
    }
    taken
}

#[cfg(test)]
mod tests {
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

    #[test]
    fn many_threads_get_the_first_groups_whole() {
        let all = &Event::ALL;
        assert_eq!(affordable(all, 2, 896), all.len());
        assert_eq!(affordable(all, 64, 896), all.len());
        // 4 software events, then pairs.
        assert_eq!(affordable(all, 128, 896), 6);
        assert_eq!(affordable(all, 128, 512), 0);
        assert_eq!(affordable(all, 128, 513), 4);
        assert_eq!(affordable(all, usize::MAX, 896), 0);
        assert_eq!(affordable(&[], 1, 0), 0);
    }
}
