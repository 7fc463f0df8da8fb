//! Draws how busy each device is over time: a strip over the rows of its queues.

use std::io::{self, Write};

use super::layout::{BAR, Pixels, ROW, Window};
use crate::quantity::Percent;
use crate::trace::Trace;
use crate::trace::utilisation::{Busy, by_device};

/// The colours and meanings of the time in which kernels ran, and only copies.
pub const COLOURS: [(&str, &str); 2] = [
    ("#6e7781", "busy with kernels"),
    ("#c3c9d0", "busy with copies alone"),
];
/// The widest label of a strip.
pub const WIDEST: &str = "busy 100 %";
/// Pixels of a bucket.
const BUCKET: f64 = 4.0;

/// How busy the devices are, over the whole time and in its parts.
pub struct Strips {
    /// From the run's begin to its end, by device.
    all: Vec<Busy>,
    /// By device and bucket.
    buckets: Vec<Vec<Busy>>,
}

impl Strips {
    pub fn of(trace: &Trace, window: &Window) -> Self {
        let shown = window.x(window.whole.end).0 - window.x(window.whole.start).0;
        let buckets = ((shown / BUCKET).ceil() as usize).max(1);
        let all = by_device(trace, &window.run, 1).into_iter().flatten();
        Self {
            all: all.collect(),
            buckets: by_device(trace, &window.whole, buckets),
        }
    }

    /// The text before a device's strip, and what it means.
    pub fn label(&self, device: usize) -> (String, String) {
        let busy = self.all.get(device).copied().unwrap_or_default();
        (
            format!("busy {:.0} %", busy.any() * 100.0),
            format!(
                "of the run: kernels {}, copies without kernels {}",
                Percent(busy.kernels),
                Percent(busy.copies)
            ),
        )
    }

    /// Draws a device's strip, whose upper edge is at `top`.
    pub fn draw(
        &self,
        device: usize,
        window: &Window,
        top: u64,
        out: &mut impl Write,
    ) -> io::Result<()> {
        let Some(buckets) = self.buckets.get(device) else {
            return Ok(());
        };
        let (left, right) = (window.x(window.whole.start), window.x(window.whole.end));
        let (upper, floor) = (top + (ROW - BAR) / 2, top + (ROW + BAR) / 2);
        let (all, meaning) = self.label(device);
        writeln!(
            out,
            "<g><title>{all} {meaning}</title>\
             <rect x=\"{left}\" y=\"{upper}\" width=\"{}\" height=\"{BAR}\" fill=\"#ffffff\"/>",
            Pixels(right.0 - left.0)
        )?;
        // What all commands fill lies behind what kernels fill.
        let heights: [fn(&Busy) -> f64; 2] = [Busy::any, |busy| busy.kernels];
        for (height, (colour, _)) in heights.into_iter().zip(COLOURS.into_iter().rev()) {
            let wide = (right.0 - left.0) / buckets.len() as f64;
            write!(out, "<path fill=\"{colour}\" d=\"M{left} {floor}")?;
            let mut before = None;
            for (index, busy) in buckets.iter().enumerate() {
                let y = Pixels(floor as f64 - height(busy) * BAR as f64).to_string();
                if before.as_ref() != Some(&y) {
                    write!(out, "H{}V{y}", Pixels(left.0 + index as f64 * wide))?;
                }
                before = Some(y);
            }
            write!(out, "H{right}V{floor}Z\"/>")?;
        }
        writeln!(out, "</g>")
    }
}
