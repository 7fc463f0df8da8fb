//! Texts as messages quote them.

/// Characters that are quoted before and behind a place.
const AROUND: usize = 40;

/// The text, or of a long one what is around the character `at`. Characters
/// that control a terminal are escaped.
pub fn excerpt(text: &str, at: usize) -> String {
    let characters = text.chars().count();
    let begin = match characters > 2 * AROUND {
        true => at.saturating_sub(AROUND).min(characters - 2 * AROUND),
        false => 0,
    };
    let mut shown = String::new();
    if begin > 0 {
        shown.push_str("...");
    }
    for c in text.chars().skip(begin).take(2 * AROUND) {
        match c.is_control() {
            true => shown.extend(c.escape_default()),
            false => shown.push(c),
        }
    }
    if begin + 2 * AROUND < characters {
        shown.push_str("...");
    }
    shown
}
