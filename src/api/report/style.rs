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

/// Most characters of a row.
const WIDTH: usize = 60;

const BLOCKS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The fractions, 0 to 1, as bars. If the series is longer than the row, a bar is the
/// mean of a part of the series.
pub fn bars(values: &[f64]) -> String {
    let width = values.len().min(WIDTH);
    (0..width)
        .map(|i| {
            let part = &values[i * values.len() / width..(i + 1) * values.len() / width];
            block(part.iter().sum::<f64>() / part.len() as f64)
        })
        .collect()
}

/// The character of a fraction. A fraction above 0 is always visible.
fn block(value: f64) -> char {
    let top = BLOCKS.len() - 1;
    let least = usize::from(value > 0.0);
    let level = (value * top as f64).round().clamp(0.0, top as f64) as usize;
    BLOCKS[level.max(least)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heights_follow_the_values() {
        assert_eq!(bars(&[0.0, 0.001, 0.5, 1.0]), " ▁▄█");
        assert_eq!(bars(&[]), "");
        assert_eq!(bars(&[f64::NAN, 7.0]), " █");
    }

    #[test]
    fn a_long_series_is_averaged() {
        let long: Vec<f64> = (0..6000)
            .map(|i| if i < 3000 { 0.0 } else { 1.0 })
            .collect();
        let row = bars(&long);
        assert_eq!(row.chars().count(), WIDTH);
        assert!(row.starts_with(' ') && row.ends_with('█'));
    }
}
