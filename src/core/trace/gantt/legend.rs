//! The colours of a chart, and their legend.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::io::{self, Write};

use serde::Serialize;

use super::labels::{PLAN, STEP};
use super::layout::{self, FONT, GAP, LINE, MARGIN, Pixels, shortened};
use super::rows::Row;
use super::{Chart, Escaped, svg};
use crate::runtime::CommandKind;
use crate::time::Nanos;
use crate::trace::{Span, Trace};

/// Most pixels of an entry's words.
const WORDS: f64 = 300.0;
/// From a swatch's left to its words.
const BEFORE_WORDS: f64 = 18.0;

/// An entry: what it looks like, and what that means.
#[derive(Serialize)]
struct Item {
    swatch: Swatch,
    colour: &'static str,
    words: String,
}

#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "lowercase")]
enum Swatch {
    Bar,
    Thin,
    Dashed,
}

impl Item {
    /// Draws its swatch in 12 x 12 pixels.
    fn draw(&self, x: f64, y: u64, out: &mut impl Write) -> io::Result<()> {
        let (left, colour) = (Pixels(x), self.colour);
        match self.swatch {
            Swatch::Bar => write!(
                out,
                "<rect x=\"{left}\" y=\"{y}\" width=\"12\" height=\"12\" rx=\"2\" fill=\"{colour}\"/>"
            ),
            Swatch::Thin => write!(
                out,
                "<rect x=\"{left}\" y=\"{}\" width=\"12\" height=\"6\" rx=\"1\" fill=\"{colour}\"/>",
                y + 3
            ),
            Swatch::Dashed => write!(
                out,
                "<path d=\"M{} {y}v12\" stroke=\"{colour}\" \
                 stroke-width=\"2\" stroke-dasharray=\"3 1.5\"/>",
                Pixels(x + 6.0)
            ),
        }
    }
}

/// The legend of a chart.
#[derive(Serialize)]
pub struct Legend(Vec<Item>);

impl Legend {
    /// What these rows have: kernels, copies, then the strips and the lines of steps.
    pub fn of(chart: &Chart, palette: &Palette, rows: &[Row]) -> Self {
        let trace = chart.trace;
        let mut used = vec![false; palette.entries.len()];
        let parts = rows.iter().flat_map(|row| &row.bars);
        for (entry, _) in parts.flat_map(|bar| &bar.parts) {
            if let Some(used) = used.get_mut(*entry) {
                *used = true;
            }
        }
        let entries = palette.entries.iter().zip(used);
        let shown: Vec<_> = entries.filter(|(_, used)| *used).map(|(e, _)| e).collect();
        let item = |swatch, colour, words: &str| Item {
            swatch,
            colour,
            words: shortened(words, FONT, WORDS),
        };
        let kernels = shown.iter().filter(|entry| entry.kernels);
        let kernels = kernels.map(|entry| item(Swatch::Bar, entry.colour, &entry.name));
        let copies = shown.iter().filter(|entry| !entry.kernels);
        let copies = copies.map(|entry| item(Swatch::Thin, entry.colour, &entry.name));
        let mut items: Vec<Item> = kernels.chain(copies).collect();
        if !items.is_empty() {
            let busy = svg::COLOURS.into_iter();
            items.extend(busy.map(|(colour, words)| item(Swatch::Bar, colour, words)));
        }
        if trace.steps.len() > 1 {
            // Tasks of a cluster may begin before earlier ones end.
            let barriers = trace.steps.windows(2).all(|two| two[0].1 <= two[1].0);
            let words = match barriers {
                true => "barrier: a step begins",
                false => "a step begins",
            };
            items.push(item(Swatch::Dashed, STEP, words));
        }
        if !chart.sheet.plans.is_empty() {
            items.push(item(Swatch::Bar, PLAN, "another plan: units move"));
        }
        Self(items)
    }

    /// Each item with its place, in lines of this width.
    fn placed(&self, width: u64) -> Vec<(&Item, f64, u64)> {
        let (mut x, mut line) = (MARGIN as f64, 0);
        let mut placed = Vec::new();
        for item in &self.0 {
            let wide = BEFORE_WORDS + layout::width(&item.words, FONT);
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
            item.draw(x, y, out)?;
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
}

// Gives kernels and copies their colours: a kernel that of its codelet, or of its
// purpose in a co-run, the same in all charts of a file.

/// Colours of kernels, those of Okabe and Ito's palette, which is safe for colour-blind
/// readers.
const KERNELS: [&str; 7] = [
    "#009e73", "#0072b2", "#e69f00", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442",
];
/// The colour of all kernels that have none of their own.
const OTHERS: &str = "#8c959f";
/// Kinds of copies, with names and colours: darker than kernels.
const COPIES: [(CommandKind, &str, &str); 3] = [
    (CommandKind::Write, "write (H2D)", "#3d4f73"),
    (CommandKind::Read, "read (D2H)", "#8f4a1c"),
    (CommandKind::Copy, "copy (between devices)", "#7b2d6b"),
];

/// What has a colour.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct PaletteEntry {
    pub name: String,
    pub colour: &'static str,
    pub kernels: bool,
}

/// The colours of a file: first those of copies, then those of kernels.
#[derive(Debug)]
pub struct Palette {
    pub entries: Vec<PaletteEntry>,
    /// The entry of each class of kernels.
    classes: HashMap<String, usize>,
}

/// What a kernel's colour stands for.
fn class(span: &Span) -> &str {
    span.codelet.as_ref().unwrap_or(&span.label)
}

impl Palette {
    /// Colours for these traces. Kernels that took most of the time have their own.
    pub fn of<'a>(traces: impl IntoIterator<Item = &'a Trace>) -> Self {
        let mut times: HashMap<&str, Nanos> = HashMap::new();
        let spans = traces.into_iter().flat_map(|trace| &trace.spans);
        for span in spans.filter(|span| span.kind == CommandKind::Launch) {
            let time = times.entry(class(span)).or_default();
            *time = time.saturating_add(span.ended.saturating_sub(span.started));
        }
        let mut order: Vec<(&str, Nanos)> = times.into_iter().collect();
        order.sort_by_key(|(name, time)| (Reverse(*time), *name));
        let copies = COPIES.map(|(_, name, colour)| PaletteEntry {
            name: name.to_owned(),
            colour,
            kernels: false,
        });
        let mut entries = Vec::from(copies);
        let kernels = |name: String, colour| PaletteEntry {
            name,
            colour,
            kernels: true,
        };
        // A colour for the rest is not needed for a single one.
        let own = match order.len() {
            few if few <= KERNELS.len() + 1 => few,
            _ => KERNELS.len(),
        };
        let colours = KERNELS.into_iter().chain([OTHERS]);
        for ((name, _), colour) in order[..own].iter().zip(colours) {
            entries.push(kernels((*name).to_owned(), colour));
        }
        if order.len() > own {
            let rest = format!("{} other kernels", order.len() - own);
            entries.push(kernels(rest, OTHERS));
        }
        let places = COPIES.len()..;
        let last = entries.len() - 1;
        let classes = order.iter().zip(places);
        Self {
            classes: (classes.map(|((name, _), at)| ((*name).to_owned(), at.min(last)))).collect(),
            entries,
        }
    }

    /// The entry of a command.
    pub fn index(&self, span: &Span) -> usize {
        let copies = COPIES.iter().position(|(kind, ..)| *kind == span.kind);
        copies.unwrap_or_else(|| self.classes.get(class(span)).copied().unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::fixtures::{span, two_devices};

    /// A kernel of each of so many codelets, the longest first.
    fn kernels(number: u64) -> Trace {
        Trace {
            devices: vec!["gpu".into()],
            spans: (0..number)
                .map(|at| Span {
                    label: format!("kernel {at}").into(),
                    codelet: Some(format!("codelet {at}").into()),
                    ..span(0, 0, CommandKind::Launch, 0, 1000 - at)
                })
                .collect(),
            ..Trace::default()
        }
    }

    #[test]
    fn a_codelet_has_one_colour_in_all_traces() {
        let (mut long, other) = (kernels(4), two_devices());
        long.spans[3].codelet = long.spans[0].codelet.clone();
        let palette = Palette::of([&long, &other]);
        let names: Vec<&str> = palette.entries.iter().map(|e| &*e.name).collect();
        assert_eq!(names[3..], ["codelet 0", "chunk", "codelet 1", "codelet 2"]);
        assert_eq!(palette.index(&long.spans[0]), 3);
        assert_eq!(palette.index(&long.spans[3]), 3);
        assert_eq!(palette.index(&other.spans[0]), 4);
        assert_eq!(
            palette.entries[palette.index(&other.spans[3])].name,
            "read (D2H)"
        );
    }

    #[test]
    fn the_shortest_of_many_share_a_colour() {
        let eight = Palette::of([&kernels(8)]);
        assert_eq!(eight.entries.last().unwrap().name, "codelet 7");
        let trace = kernels(20);
        let palette = Palette::of([&trace]);
        assert_eq!(palette.entries.len(), 3 + 7 + 1);
        assert_eq!(palette.entries[10].name, "13 other kernels");
        assert_eq!(palette.index(&trace.spans[6]), 9);
        assert_eq!(palette.index(&trace.spans[7]), 10);
        assert_eq!(palette.index(&trace.spans[19]), 10);
        let colours: std::collections::BTreeSet<&str> =
            palette.entries.iter().map(|entry| entry.colour).collect();
        assert_eq!(colours.len(), palette.entries.len());
    }
}
