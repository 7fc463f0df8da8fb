//! The command line and the time of this run, for files that record their origin.

use std::time::{SystemTime, UNIX_EPOCH};

/// The command line, such as `pdawl train --machine k40`.
pub fn command_line() -> String {
    let words = crate::arguments().iter().skip(1);
    let words: Vec<String> = words.map(|w| w.to_string_lossy().into_owned()).collect();
    format!("pdawl {}", words.join(" "))
}

/// Seconds since 1970 in UTC.
pub fn now() -> u64 {
    // A clock that is set before 1970 gives 0.
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}
