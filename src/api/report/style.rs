//! Styles, lines and notes that all text reports share.

use std::fmt::{self, Write};

use anstyle::{AnsiColor, Style};

/// For headings.
pub const STRONG: Style = Style::new().bold();
/// For the main figure.
pub const MAIN: Style = AnsiColor::Green.on_default().bold();
/// For less important text.
pub const FAINT: Style = Style::new().dimmed();
/// For warnings.
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

/// The heading of a column, which says whether its figures are simulated.
pub fn column(name: &str, simulated: bool) -> String {
    match simulated {
        true => format!("{name} (simulated)"),
        false => name.to_owned(),
    }
}

/// Writes a name and its value; values are aligned.
pub fn line(out: &mut String, name: &str, value: impl fmt::Display) -> fmt::Result {
    writeln!(out, "  {name:<12}{value}")
}

/// Writes each note on a line of its own.
pub fn notes(out: &mut String, notes: &[String]) -> fmt::Result {
    notes.iter().try_for_each(|text| note(out, text))
}

/// Writes a note.
pub fn note(out: &mut String, text: impl fmt::Display) -> fmt::Result {
    writeln!(out, "{} {text}", styled(STRONG, "Note:"))
}

/// Writes whether a command was interrupted, and notes.
pub fn ending(out: &mut String, interrupted: bool, texts: &[String]) -> fmt::Result {
    if interrupted {
        writeln!(out, "{} on request", styled(ALARM, "Interrupted"))?;
    }
    notes(out, texts)
}

/// A figure as the cell of a table; `-` where there is none.
pub fn cell<T, D: fmt::Display>(value: Option<T>, shown: impl FnOnce(T) -> D) -> String {
    value.map_or_else(|| "-".to_owned(), |value| shown(value).to_string())
}

/// The text that `write` writes.
pub fn written(write: impl FnOnce(&mut String) -> fmt::Result) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = write(&mut text);
    text
}
