//! Excerpts of texts, for messages.

/// Characters that are quoted before and after a position.
const AROUND: usize = 40;

/// The text, or of a long one the part around the character `at`. Control characters
/// are escaped.
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
