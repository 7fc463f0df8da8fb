//! The number of counters that a process can open: each counter and each group is an
//! open file.

use std::fs;

/// Files left to the rest of the program.
const RESERVE: usize = 128;

/// The usual limit, which is assumed where the system does not report one.
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
}
