//! The positions in the chart: sizes, the time shown, and the edges of rows.

use std::fmt::{self, Display};

use super::rows::Row;
use crate::time::Nanos;
use crate::trace::Trace;

/// Sizes in pixels.
pub const LEFT: u64 = 190;
pub const PLOT: u64 = 1000;
pub const RIGHT: u64 = 30;
pub const TOP: u64 = 86;
pub const ROW: u64 = 22;
pub const BAR: u64 = 18;
pub const GAP: u64 = 12;
pub const BOTTOM: u64 = 48;
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
