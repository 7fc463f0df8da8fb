//! This call of the program, for what it leaves behind: its words and its time.

use std::time::{SystemTime, UNIX_EPOCH};

/// What the user typed, such as `pdawl train --machine k40`.
pub fn words() -> String {
    let words = std::env::args_os().skip(1);
    let words: Vec<String> = words.map(|w| w.to_string_lossy().into_owned()).collect();
    format!("pdawl {}", words.join(" "))
}

/// Seconds since 1970 in UTC.
pub fn now() -> u64 {
    // A clock before 1970 is wrong, and no reason to fail.
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}
