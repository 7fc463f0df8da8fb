//! Vertical lines at the end of the run and at what bounds it from below, with labels.

use std::io::{self, Write};

use super::layout::{LINE, PLOT, Pixels, Window};
use super::{Bound, Sheet};
use crate::quantity::Seconds;
use crate::trace::escape::Escaped;

/// The colours of the run's end, and of the bounds in their order.
const COLOURS: [&str; 4] = ["#24292f", "#0550ae", "#a40e26", "#116329"];

/// A line.
pub struct Mark {
    /// Pixels from the plot's left.
    x: f64,
    words: String,
    meaning: String,
    colour: &'static str,
}

/// The marks of a chart: the end of the run, and its bounds.
pub fn of(sheet: &Sheet, window: &Window) -> Vec<Mark> {
    let length = (window.run.end - window.run.start) as f64 / 1e9;
    if length == 0.0 {
        return Vec::new();
    }
    let end = Mark {
        x: window.x(window.run.end).0,
        words: format!("makespan {}", Seconds(length)),
        meaning: "from the run's begin to its end".to_owned(),
        colour: COLOURS[0],
    };
    let bound = |(bound, colour): (&Bound, &'static str)| Mark {
        x: window.after(bound.seconds * 1e9).0,
        words: format!("{} {}", bound.name, Seconds(bound.seconds)),
        meaning: format!(
            "{:.0} % of the makespan. {}",
            bound.seconds / length * 100.0,
            bound.meaning
        ),
        colour,
    };
    let colours = COLOURS.into_iter().skip(1).cycle();
    let bounds = sheet.bounds.iter().zip(colours).map(bound);
    let is_shown = |mark: &Mark| (0.0..=PLOT as f64 + 0.01).contains(&mark.x);
    [end].into_iter().chain(bounds).filter(is_shown).collect()
}

/// Pixels between a line and its label.
const BESIDE: f64 = 4.0;

/// Draws the labels, a line of text for each, below `top` and above `bottom`, where the plot
/// begins.
pub fn labels(
    marks: &[Mark],
    left: u64,
    [top, bottom]: [u64; 2],
    out: &mut impl Write,
) -> io::Result<()> {
    for (line, mark) in (0u64..).zip(marks) {
        let x = left as f64 + mark.x;
        // A label lies on the side where it has room.
        let (beside, anchor) = match mark.x > PLOT as f64 / 2.0 {
            true => (x - BESIDE, "end"),
            false => (x + BESIDE, "start"),
        };
        let y = top + line * LINE;
        writeln!(
            out,
            "<g class=\"mark\" data-x=\"{}\" fill=\"{}\">\
             <line x1=\"{}\" x2=\"{}\" y1=\"{y}\" y2=\"{bottom}\" stroke=\"{}\"/>\
             <text x=\"{}\" y=\"{}\" text-anchor=\"{anchor}\" stroke=\"#ffffff\" \
             stroke-width=\"4\" stroke-linejoin=\"round\" paint-order=\"stroke\">{}\
             <title>{}</title></text></g>",
            Pixels(mark.x),
            mark.colour,
            Pixels(x),
            Pixels(x),
            mark.colour,
            Pixels(beside),
            y + 11,
            Escaped(&mark.words),
            Escaped(&mark.meaning)
        )?;
    }
    Ok(())
}

/// Draws the lines in the plot.
pub fn lines(marks: &[Mark], height: u64, out: &mut impl Write) -> io::Result<()> {
    for mark in marks {
        writeln!(
            out,
            "<path d=\"M{} 0V{height}\" stroke=\"{}\" stroke-width=\"1.5\" \
             vector-effect=\"non-scaling-stroke\"><title>{}: {}</title></path>",
            Pixels(mark.x),
            mark.colour,
            Escaped(&mark.words),
            Escaped(&mark.meaning)
        )?;
    }
    Ok(())
}
