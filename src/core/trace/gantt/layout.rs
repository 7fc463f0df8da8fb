//! The positions in the chart: sizes, the time shown, the edges of rows, and room for texts.

use std::fmt::{self, Display};
use std::ops::Range;

use super::rows::Row;
use super::svg;
use crate::time::Nanos;
use crate::trace::Trace;

/// Sizes in pixels.
pub const PLOT: u64 = 1000;
pub const RIGHT: u64 = 30;
pub const ROW: u64 = 22;
pub const BAR: u64 = 18;
/// The height of a copy's bar.
pub const COPY: u64 = 8;
pub const GAP: u64 = 12;
pub const BOTTOM: u64 = 48;
/// The height of a line of text.
pub const LINE: u64 = 18;
/// Between a row's label and the plot.
pub const BEFORE_PLOT: u64 = 10;
/// The edge of texts on the left, and their font size.
pub const MARGIN: u64 = 16;
pub const FONT: f64 = 12.0;
/// Most pixels of a device's name.
const NAME: f64 = 400.0;
/// Least distance between the lines of two steps.
pub const STEP_LINE: f64 = 12.0;

/// The time that a chart shows.
#[derive(Clone, Debug, PartialEq)]
pub struct Window {
    /// Begin and end of the run: of its steps, or of its commands if it has none.
    pub run: Range<Nanos>,
    /// Begin and end of all that there is.
    pub whole: Range<Nanos>,
    /// What is shown before the run's begin, and in all.
    pub lead: Nanos,
    pub span: Nanos,
}

impl Window {
    /// Windows of runs whose begins lie at one place, with one scale.
    pub fn of<'a>(traces: impl IntoIterator<Item = &'a Trace>) -> Vec<Self> {
        let mut all: Vec<Self> = traces.into_iter().map(Self::alone).collect();
        let lead = all.iter().map(|one| one.lead).max().unwrap_or(0);
        let after = |one: &Self| one.whole.end.saturating_sub(one.run.start);
        let after = all.iter().map(after).max().unwrap_or(0);
        for one in &mut all {
            one.lead = lead;
            one.span = lead.saturating_add(after).max(1);
        }
        all
    }

    fn alone(trace: &Trace) -> Self {
        let spans = || trace.spans.iter().map(|span| (span.started, span.ended));
        let steps = || trace.steps.iter().copied();
        let range = |times: &mut dyn Iterator<Item = (Nanos, Nanos)>| {
            times
                .map(|(began, ended)| began..ended.max(began))
                .reduce(|all, one| all.start.min(one.start)..all.end.max(one.end))
                .unwrap_or(0..0)
        };
        let whole = range(&mut spans().chain(steps()));
        let run = match trace.steps.is_empty() {
            true => whole.clone(),
            false => range(&mut steps()),
        };
        Self {
            lead: run.start - whole.start,
            span: (whole.end - whole.start).max(1),
            run,
            whole,
        }
    }

    /// Pixels from the plot's left.
    pub fn x(&self, at: Nanos) -> Pixels {
        let since = at as f64 - self.run.start as f64;
        self.after(since)
    }

    /// Pixels from the plot's left to so many nanoseconds after the run's begin.
    pub fn after(&self, nanos: f64) -> Pixels {
        Pixels(((nanos + self.lead as f64) / self.span as f64) * PLOT as f64)
    }
}

/// A length with at most three decimals.
pub struct Pixels(pub f64);

impl Display for Pixels {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}", (self.0 * 1e3).round() / 1e3)
    }
}

/// The names on the left, as they fit.
pub struct Names {
    /// By device.
    pub devices: Vec<String>,
    /// The left edge of the plot.
    pub left: u64,
}

impl Names {
    pub fn of(trace: &Trace, rows: &[Row]) -> Self {
        let short = |name: &String| shortened(name, FONT, NAME);
        let devices: Vec<String> = trace.devices.iter().map(short).collect();
        let widest = |texts: &mut dyn Iterator<Item = String>| {
            texts.map(|text| width(&text, FONT)).fold(0.0, f64::max)
        };
        let names = widest(&mut devices.iter().cloned());
        // The steps above have a label there, too, and the devices' strips.
        let others = ["step".to_owned(), svg::WIDEST.to_owned()];
        let rows = widest(&mut rows.iter().map(Row::label).chain(others));
        let left = MARGIN + names.ceil() as u64 + GAP + rows.ceil() as u64 + BEFORE_PLOT;
        Self { devices, left }
    }
}

/// The upper edges within the plot.
#[derive(Debug, PartialEq)]
pub struct Tops {
    /// Of each row.
    pub rows: Vec<u64>,
    /// Of each device's strip, with the device.
    pub strips: Vec<(usize, u64)>,
    /// The plot's height.
    pub height: u64,
}

/// Where rows and strips are: a strip over the rows of each device. A gap separates
/// devices.
pub fn tops(rows: &[Row]) -> Tops {
    let mut top = GAP / 2;
    let mut tops = Tops {
        rows: Vec::with_capacity(rows.len()),
        strips: Vec::new(),
        height: 0,
    };
    for (i, row) in rows.iter().enumerate() {
        if i == 0 || rows[i - 1].device != row.device {
            top += if i == 0 { 0 } else { GAP };
            tops.strips.push((row.device, top));
            top += ROW;
        }
        tops.rows.push(top);
        top += ROW;
    }
    tops.height = top + GAP / 2;
    tops
}

// How wide texts are at most, so that none is cut off or lies over another one.
// Which font a viewer has is not known here: the widths are those of DejaVu Sans Bold,
// which is wider than the fonts that it stands in for.

/// Pixels that a text takes at most at this font size.
pub fn width(text: &str, size: f64) -> f64 {
    text.chars().map(em).sum::<f64>() * size
}

/// A character's width, relative to the font size.
fn em(character: char) -> f64 {
    match character {
        ' ' | '.' | ',' | ':' | ';' | '\'' | '|' | '!' | '/' | 'I' | 'J' | 'i' | 'j' | 'l' => 0.46,
        'f' | 't' | 'r' | '-' | '(' | ')' | '[' | ']' | '_' => 0.5,
        'a'..='l' | 'n'..='v' | 'x'..='z' | '0'..='9' => 0.72,
        'm' | 'w' | 'M' | 'W' | '@' | '%' | '…' => 1.11,
        character if character.is_ascii() => 0.88,
        _ => 1.11,
    }
}

/// The text, or if it is wider than `most` pixels its begin and its end.
pub fn shortened(text: &str, size: f64, most: f64) -> String {
    if width(text, size) <= most {
        return text.to_owned();
    }
    let characters: Vec<char> = text.chars().collect();
    let parts = |kept: usize| {
        let (begin, end) = (kept.div_ceil(2), kept / 2);
        let begin = characters[..begin].iter();
        let end = characters[characters.len() - end..].iter();
        begin.chain(&['…']).chain(end).collect::<String>()
    };
    let shorter = (0..characters.len()).rev().map(parts);
    let mut fitting = shorter.filter(|text| width(text, size) <= most);
    fitting.next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::CommandKind;
    use crate::trace::fixtures::{span, two_devices};

    #[test]
    fn runs_begin_at_one_place_and_have_one_scale() {
        // It begins 40 ns before its steps, and lasts 910 ns from there.
        let mut early = two_devices();
        (early.spans).push(span(0, 0, CommandKind::Launch, 50, 80));
        let mut late = two_devices();
        late.steps.clear();
        for span in &mut late.spans {
            span.started += 5_000;
            span.ended += 7_000;
        }
        let [first, second] = &Window::of([&early, &late])[..] else {
            panic!();
        };
        assert_eq!(
            (first.run.clone(), first.whole.clone()),
            (90..1000, 50..1000)
        );
        assert_eq!(second.run, second.whole);
        assert_eq!((first.lead, second.lead), (40, 40));
        assert_eq!((first.span, second.span), (40 + 2900, 40 + 2900));
        assert_eq!(first.x(90).0, second.x(5_100).0);
        assert_eq!(first.x(50).0, 0.0);
        assert_eq!(second.x(8_000).0, PLOT as f64);
    }

    #[test]
    fn a_trace_without_times_has_a_window() {
        let [window] = &Window::of([&Trace::default()])[..] else {
            panic!();
        };
        assert_eq!((window.span, window.x(0).0), (1, 0.0));
    }

    #[test]
    fn a_long_text_keeps_its_begin_and_its_end() {
        assert_eq!(shortened("node 0, gpu0", 12.0, 200.0), "node 0, gpu0");
        let long = "node 0, a.very.long.host.name.example.org, opencl0.0";
        let short = shortened(long, 12.0, 200.0);
        assert!(
            short.starts_with("node 0, ") && short.ends_with("opencl0.0"),
            "{short}"
        );
        assert!(width(&short, 12.0) <= 200.0);
        assert_eq!(shortened("gpu", 12.0, 1.0), "");
    }
}
