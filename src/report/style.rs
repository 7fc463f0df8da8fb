//! What the texts for people share: styles, and how a line is set.

use std::fmt::{self, Write};

use anstyle::{AnsiColor, Style};

/// For headings.
pub const STRONG: Style = Style::new().bold();
/// For the main figure.
pub const MAIN: Style = AnsiColor::Green.on_default().bold();
/// For what is less important.
pub const FAINT: Style = Style::new().dimmed();
/// For what should not be missed.
pub const ALARM: Style = AnsiColor::Yellow.on_default().bold();

/// `word` in a style.
pub fn styled(style: Style, word: impl fmt::Display) -> String {
    format!("{style}{word}{style:#}")
}

/// ` simulated` in a style, or nothing.
pub fn origin(simulated: bool) -> String {
    match simulated {
        true => format!(" {}", styled(ALARM, "simulated")),
        false => String::new(),
    }
}

/// A name and its value, values below each other.
pub fn line(out: &mut String, name: &str, value: impl fmt::Display) -> fmt::Result {
    writeln!(out, "  {name:<12}{value}")
}
