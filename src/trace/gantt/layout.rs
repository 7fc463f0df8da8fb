//! The positions in the chart: sizes, the time shown, and the edges of rows.

use std::fmt::{self, Display};

use super::rows::Row;
use super::text::{shortened, width};
use crate::time::Nanos;
use crate::trace::Trace;

/// Sizes in pixels.
pub const PLOT: u64 = 1000;
pub const RIGHT: u64 = 30;
pub const TOP: u64 = 104;
pub const ROW: u64 = 22;
pub const BAR: u64 = 18;
pub const GAP: u64 = 12;
pub const BOTTOM: u64 = 48;
/// Between a row's label and the plot.
pub const BEFORE_PLOT: u64 = 10;
/// The edge of texts on the left, and their font size.
pub const MARGIN: u64 = 16;
pub const FONT: f64 = 12.0;
/// Most pixels of a device's name.
const NAME: f64 = 400.0;
/// Least distance between the lines of two steps.
pub const STEP_LINE: f64 = 12.0;

/// The time that the chart shows, from begin to end.
pub struct Window {
    pub began: Nanos,
    pub ended: Nanos,
}

impl Window {
    pub fn of(trace: &Trace) -> Self {
        let times = || {
            let spans = trace.spans.iter().map(|s| (s.started, s.ended));
            spans.chain(trace.steps.iter().copied())
        };
        let began = times().map(|t| t.0).min().unwrap_or(0);
        let ended = times().map(|t| t.1).max().unwrap_or(0);
        Self {
            began,
            ended: ended.max(began.saturating_add(1)),
        }
    }

    pub fn span(&self) -> Nanos {
        (self.ended - self.began).max(1)
    }

    /// Pixels from the plot's left.
    pub fn x(&self, at: Nanos) -> Pixels {
        Pixels(at.saturating_sub(self.began) as f64 / self.span() as f64 * PLOT as f64)
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
        // The steps above have a label there, too.
        let rows = rows.iter().map(Row::label).chain(["step".to_owned()]);
        let rows = widest(&mut rows.into_iter());
        let left = MARGIN + names.ceil() as u64 + GAP + rows.ceil() as u64 + BEFORE_PLOT;
        Self { devices, left }
    }
}

/// The upper edges of rows within the plot, and the plot's height. A gap separates
/// devices.
pub fn tops(rows: &[Row]) -> (Vec<u64>, u64) {
    let mut top = GAP / 2;
    let mut tops = Vec::with_capacity(rows.len());
    for (i, row) in rows.iter().enumerate() {
        if i > 0 && rows[i - 1].device != row.device {
            top += GAP;
        }
        tops.push(top);
        top += ROW;
    }
    (tops, top + GAP / 2)
}
