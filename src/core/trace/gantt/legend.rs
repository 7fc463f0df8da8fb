//! The legend of colours.

use std::io::{self, Write};

use super::layout::{FONT, GAP, LINE, MARGIN, Pixels};
use super::palette::Palette;
use super::rows::Row;
use super::strips;
use super::text::{self, shortened};
use crate::trace::Trace;
use crate::trace::escape::Escaped;

/// Most pixels of an entry's words.
const WORDS: f64 = 300.0;
/// From a swatch's left to its words.
const BEFORE_WORDS: f64 = 18.0;

/// An entry: what it looks like, and what that means.
struct Item {
    swatch: Swatch,
    words: String,
}

enum Swatch {
    Bar(&'static str),
    Thin(&'static str),
    Dashed,
}

impl Swatch {
    /// In 12 x 12 pixels.
    fn draw(&self, x: f64, y: u64, out: &mut impl Write) -> io::Result<()> {
        let x = Pixels(x);
        match self {
            Self::Bar(colour) => write!(
                out,
                "<rect x=\"{x}\" y=\"{y}\" width=\"12\" height=\"12\" rx=\"2\" fill=\"{colour}\"/>"
            ),
            Self::Thin(colour) => write!(
                out,
                "<rect x=\"{x}\" y=\"{}\" width=\"12\" height=\"6\" rx=\"1\" fill=\"{colour}\"/>",
                y + 3
            ),
            Self::Dashed => write!(
                out,
                "<path d=\"M{} {y}v12\" stroke=\"#8c959f\" \
                 stroke-width=\"2\" stroke-dasharray=\"3 1.5\"/>",
                Pixels(x.0 + 6.0)
            ),
        }
    }
}

/// The legend of a chart.
pub struct Legend(Vec<Item>);

impl Legend {
    /// What these rows have: kernels, copies, then the strips and the lines of steps.
    pub fn of(trace: &Trace, palette: &Palette, rows: &[Row]) -> Self {
        let mut used = vec![false; palette.entries.len()];
        let parts = rows.iter().flat_map(|row| &row.bars);
        for (entry, _) in parts.flat_map(|bar| &bar.parts) {
            if let Some(used) = used.get_mut(*entry) {
                *used = true;
            }
        }
        let entries = palette.entries.iter().zip(used);
        let shown: Vec<_> = entries.filter(|(_, used)| *used).map(|(e, _)| e).collect();
        let item = |swatch, words: &str| Item {
            swatch,
            words: shortened(words, FONT, WORDS),
        };
        let kernels = shown.iter().filter(|entry| entry.kernels);
        let kernels = kernels.map(|entry| item(Swatch::Bar(entry.colour), &entry.name));
        let copies = shown.iter().filter(|entry| !entry.kernels);
        let copies = copies.map(|entry| item(Swatch::Thin(entry.colour), &entry.name));
        let mut items: Vec<Item> = kernels.chain(copies).collect();
        if !items.is_empty() {
            let busy = strips::COLOURS.into_iter();
            items.extend(busy.map(|(colour, words)| item(Swatch::Bar(colour), words)));
        }
        if trace.steps.len() > 1 {
            // Tasks of a cluster may begin before earlier ones end.
            let barriers = trace.steps.windows(2).all(|two| two[0].1 <= two[1].0);
            let words = match barriers {
                true => "barrier: a step begins",
                false => "a step begins",
            };
            items.push(item(Swatch::Dashed, words));
        }
        Self(items)
    }

    /// Each item with its place, in lines of this width.
    fn placed(&self, width: u64) -> Vec<(&Item, f64, u64)> {
        let (mut x, mut line) = (MARGIN as f64, 0);
        let mut placed = Vec::new();
        for item in &self.0 {
            let wide = BEFORE_WORDS + text::width(&item.words, FONT);
            if x > MARGIN as f64 && x + wide > (width - MARGIN) as f64 {
                (x, line) = (MARGIN as f64, line + 1);
            }
            placed.push((item, x, line));
            x += wide + GAP as f64;
        }
        placed
    }

    /// The height that it takes in a drawing of this width.
    pub fn height(&self, width: u64) -> u64 {
        let last = self.placed(width).last().map(|(.., line)| line + 1);
        last.unwrap_or(0) * LINE
    }

    /// Draws it below `top`.
    pub fn draw(&self, width: u64, top: u64, out: &mut impl Write) -> io::Result<()> {
        for (item, x, line) in self.placed(width) {
            let y = top + line * LINE;
            item.swatch.draw(x, y, out)?;
            writeln!(
                out,
                "<text x=\"{}\" y=\"{}\">{}</text>",
                Pixels(x + BEFORE_WORDS),
                y + 10,
                Escaped(&item.words)
            )?;
        }
        Ok(())
    }

    /// Writes it as a list of a page.
    pub fn list(&self, out: &mut impl Write) -> io::Result<()> {
        write!(out, "<ul>")?;
        for item in &self.0 {
            write!(out, "<li><svg width=\"12\" height=\"12\">")?;
            item.swatch.draw(0.0, 0, out)?;
            write!(out, "</svg>{}</li>", Escaped(&item.words))?;
        }
        writeln!(out, "</ul>")
    }
}
