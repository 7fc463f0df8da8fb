//! Text on a chart. SVG has no measure of text, so its width is estimated, on
//! the wide side.

use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, FontStyle, IntoFont, RGBColor, TextStyle};

/// Heights of text, in pixels.
pub(super) const TITLE: i32 = 16;
pub(super) const TEXT: i32 = 13;

/// Widths of characters of the usual sans-serif fonts, in heights; most are
/// narrower.
const WIDTH: f64 = 0.62;
const BOLD_WIDTH: f64 = 0.7;

/// The estimated width of text of this height.
pub(super) fn width(text: &str, height: i32) -> i32 {
    estimate(text, height, WIDTH)
}

/// The same of bold text.
pub(super) fn bold_width(text: &str, height: i32) -> i32 {
    estimate(text, height, BOLD_WIDTH)
}

fn estimate(text: &str, height: i32, each: f64) -> i32 {
    (text.chars().count() as f64 * each * f64::from(height)).ceil() as i32
}

/// The widest of some texts.
pub(super) fn widest<'a>(texts: impl Iterator<Item = &'a str>, height: i32) -> i32 {
    texts.map(|text| width(text, height)).max().unwrap_or(0)
}

/// Bold text in lines that are no wider than `most`, if its words allow it.
pub(super) fn wrapped(text: &str, height: i32, most: i32) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if bold_width(&format!("{line} {word}"), height) <= most => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// The text without control characters, which XML forbids. Markup is escaped
/// by plotters.
pub(super) fn plain(text: &str) -> String {
    let forbidden = |c: char| c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}');
    text.replace(forbidden, "\u{fffd}")
}

/// A style for text whose anchor is at the left, middle or right, and in the
/// middle of its height.
pub(super) fn style(height: i32, bold: bool, colour: RGBColor, at: HPos) -> TextStyle<'static> {
    // plotters divides sizes by this before it writes them into SVG.
    let size = f64::from(height) * 1.24;
    let weight = if bold {
        FontStyle::Bold
    } else {
        FontStyle::Normal
    };
    TextStyle {
        font: ("sans-serif", size, weight).into_font(),
        color: colour.to_backend_color(),
        pos: Pos::new(at, VPos::Center),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_titles_become_lines() {
        let title = "predicted against measured, stencil5-f64 on gpu0 of k40 (simulated)";
        let lines = wrapped(title, 16, 400);
        assert_eq!(lines.join(" "), title);
        assert!(lines.len() > 1);
        assert!(lines.iter().all(|line| bold_width(line, 16) <= 400));
        assert_eq!(wrapped("Unbreakable", 16, 10), ["Unbreakable"]);
        assert!(wrapped("", 16, 10).is_empty());
    }

    #[test]
    fn control_characters_are_gone() {
        assert_eq!(plain("a\u{1b}[b\nc"), "a\u{fffd}[b\u{fffd}c");
    }
}
