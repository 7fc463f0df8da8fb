//! Draws the text around the bars: heading, names, the axis with its ticks, steps, and the marks of
//! bounds.

use std::io::{self, Write};

use serde::Serialize;

use super::layout::{
    BEFORE_PLOT, LINE, MARGIN, Names, PLOT, Pixels, RIGHT, ROW, STEP_LINE, Tops, Window, shortened,
};
use super::rows::Row;
use super::svg::{Frame, Strips};
use super::{Bound, Chart, Escaped, Happened};
use crate::quantity::Seconds;
use crate::time::Nanos;
use crate::trace::{Trace, device_name};

/// Pixels that the number of a step takes.
const STEP_LABEL: f64 = 40.0;
const TICKS: u64 = 10;
/// The title's font size.
const TITLE: f64 = 15.0;

/// The line under a title: how much there is, and how a run compares with the first one.
pub fn subtitle(frame: &Frame, all: &[Frame]) -> String {
    let length = |frame: &Frame| frame.window.run.end - frame.window.run.start;
    let own = length(frame);
    let of_first = match all.first() {
        Some(first) if !std::ptr::eq(first, frame) && length(first) > 0 => {
            let times = own as f64 / length(first) as f64;
            format!(", {times:.2} of the first run's")
        }
        _ => String::new(),
    };
    let commands = match frame.chart.trace.spans.len() {
        0 => "no commands: the run was not traced".to_owned(),
        commands => format!("{commands} commands"),
    };
    let own = Seconds::from_nanos(own);
    format!("{commands}, makespan {own}{of_first}")
}

/// The title, and the line under it.
pub fn heading(chart: &Chart, subtitle: &str, width: u64, out: &mut impl Write) -> io::Result<()> {
    let title = shortened(&chart.about.title(), TITLE, (width - 2 * MARGIN) as f64);
    writeln!(
        out,
        "<text x=\"{MARGIN}\" y=\"26\" font-size=\"{TITLE}\" font-weight=\"600\">{}</text>\n\
         <text x=\"{MARGIN}\" y=\"46\" fill=\"#57606a\">{}</text>",
        Escaped(&title),
        Escaped(subtitle)
    )
}

/// The names of devices and queues, on the left of a plot whose upper edge is at `plot`.
pub fn names(
    trace: &Trace,
    names: &Names,
    (rows, strips): (&[Row], &Strips),
    tops: &Tops,
    plot: u64,
    out: &mut impl Write,
) -> io::Result<()> {
    let baseline = |top: u64| plot + top + ROW * 2 / 3;
    let right = names.left - BEFORE_PLOT;
    for (device, top) in &tops.strips {
        let y = baseline(*top);
        let (label, meaning) = strips.label(*device);
        writeln!(
            out,
            "<text x=\"{MARGIN}\" y=\"{y}\" font-weight=\"600\">{}<title>{}</title></text>\n\
             <text x=\"{right}\" y=\"{y}\" text-anchor=\"end\">{label}<title>{label} \
             {meaning}</title></text>",
            Escaped(names.devices.get(*device).map_or("?", String::as_str)),
            Escaped(device_name(trace, *device))
        )?;
    }
    for (row, top) in rows.iter().zip(&tops.rows) {
        writeln!(
            out,
            "<text x=\"{right}\" y=\"{}\" text-anchor=\"end\" fill=\"#57606a\">{}</text>",
            baseline(*top),
            row.label()
        )?;
    }
    Ok(())
}

/// The time axis, below a plot whose lower edge is at `y`. Times count from the run's begin.
pub fn axis(window: &Window, left: u64, y: u64, out: &mut impl Write) -> io::Result<()> {
    let axis = Axis::new(window.span, TICKS);
    writeln!(out, "<g fill=\"#57606a\" stroke=\"none\">")?;
    let mut tick = |at: Nanos, sign: &str| {
        let signed = if sign.is_empty() {
            at as f64
        } else {
            -(at as f64)
        };
        let x = Pixels(left as f64 + window.after(signed).0);
        writeln!(
            out,
            "<path d=\"M{x} {y}v5\" stroke=\"#57606a\"/>\
             <text x=\"{x}\" y=\"{}\" text-anchor=\"middle\">{sign}{}</text>",
            y + 18,
            axis.label(at)
        )
    };
    for i in (1..=window.lead / axis.tick).rev() {
        tick(i * axis.tick, "-")?;
    }
    for i in 0..=(window.span - window.lead) / axis.tick {
        tick(i * axis.tick, "")?;
    }
    writeln!(out, "</g>")?;
    writeln!(
        out,
        "<text x=\"{}\" y=\"{}\" text-anchor=\"end\" fill=\"#57606a\">time [{}]</text>",
        left + PLOT,
        y + 36,
        axis.unit
    )
}

/// The numbers of steps, above a plot whose upper edge is at `top`, as many as fit.
pub fn step_numbers(
    trace: &Trace,
    window: &Window,
    left: u64,
    top: u64,
    out: &mut impl Write,
) -> io::Result<()> {
    writeln!(
        out,
        "<g fill=\"#57606a\" font-size=\"11\" stroke=\"#ffffff\" \
         stroke-width=\"4\" stroke-linejoin=\"round\" paint-order=\"stroke\">"
    )?;
    let mut free = 0.0;
    for (step, (began, _)) in trace.steps.iter().enumerate() {
        let x = window.x(*began);
        if x.0 < free || x.0 + STEP_LABEL > (PLOT + RIGHT) as f64 {
            continue;
        }
        free = x.0 + STEP_LABEL;
        writeln!(
            out,
            "<text x=\"{}\" y=\"{}\">{step}</text>",
            Pixels(left as f64 + x.0),
            top - 6
        )?;
    }
    writeln!(out, "</g>")?;
    writeln!(
        out,
        "<text x=\"{}\" y=\"{}\" text-anchor=\"end\" font-size=\"11\" fill=\"#57606a\">step</text>",
        left - BEFORE_PLOT,
        top - 6
    )
}

/// A line at the begin of each step, but none too close to another.
pub fn step_lines(
    trace: &Trace,
    window: &Window,
    height: u64,
    out: &mut impl Write,
) -> io::Result<()> {
    let mut free = 0.0;
    for (step, (began, ended)) in trace.steps.iter().enumerate() {
        let x = window.x(*began);
        if x.0 < free {
            continue;
        }
        free = x.0 + STEP_LINE;
        writeln!(
            out,
            "<path d=\"M{x} 0V{height}\" stroke=\"{STEP}\" stroke-dasharray=\"3 3\">\
             <title>step {step}: {}</title></path>",
            Seconds::from_nanos(ended.saturating_sub(*began))
        )?;
    }
    Ok(())
}

/// A time axis over `0..span`.
#[derive(Debug, PartialEq)]
struct Axis {
    /// `s`, `ms`, `us` or `ns`.
    pub unit: &'static str,
    /// Nanoseconds of the unit.
    pub scale: f64,
    /// Nanoseconds between ticks: 1, 2 or 5 times a power of ten.
    pub tick: Nanos,
}

impl Axis {
    /// An axis of at most `ticks` + 1 ticks; `ticks` is at least 1.
    pub fn new(span: Nanos, ticks: u64) -> Self {
        let least = (span / ticks).max(1);
        let decade = 10u64.pow(least.ilog10());
        let tick = [1, 2, 5, 10]
            .into_iter()
            .filter_map(|factor| decade.checked_mul(factor))
            .find(|tick| *tick >= least)
            .unwrap_or(decade);
        let (unit, scale) = match span {
            0..10_000 => ("ns", 1.0),
            10_000..10_000_000 => ("us", 1e3),
            10_000_000..10_000_000_000 => ("ms", 1e6),
            _ => ("s", 1e9),
        };
        Self { unit, scale, tick }
    }

    /// The tick's text, without unit and trailing zeros.
    pub fn label(&self, at: Nanos) -> String {
        format!("{}", at as f64 / self.scale)
    }
}

/// The colours of the run's end, and of the bounds in their order.
const COLOURS: [&str; 4] = ["#24292f", "#0550ae", "#a40e26", "#116329"];

/// A line.
#[derive(Clone, Serialize)]
pub struct Mark {
    /// Nanoseconds after the run's begin.
    at: f64,
    words: String,
    meaning: String,
    colour: &'static str,
}

/// The colour of losses, and of plans.
const LOST: &str = "#a40e26";
pub const PLAN: &str = "#9a6700";
/// The colour of the begins of steps.
pub const STEP: &str = "#8c959f";

/// The marks of a chart: the end of the run, its losses, and its bounds.
pub fn of(chart: &Chart, window: &Window) -> Vec<Mark> {
    let (sheet, steps) = (&chart.sheet, &chart.trace.steps);
    let length = (window.run.end - window.run.start) as f64 / 1e9;
    if length == 0.0 {
        return Vec::new();
    }
    let end = Mark {
        at: length * 1e9,
        words: format!("makespan {}", Seconds(length)),
        meaning: "from the run's begin to its end".to_owned(),
        colour: COLOURS[0],
    };
    let bound = |(bound, colour): (&Bound, &'static str)| Mark {
        at: bound.seconds * 1e9,
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
    let lost = sheet.losses.iter().filter_map(|loss| {
        let (began, _) = steps.get(loss.step as usize)?;
        Some(Mark {
            at: *began as f64 - window.run.start as f64,
            words: format!("step {}: {}", loss.step, loss.what),
            meaning: "at the begin of the step".to_owned(),
            colour: LOST,
        })
    });
    let is_shown = |mark: &Mark| (0.0..=PLOT as f64 + 0.01).contains(&window.after(mark.at).0);
    [end]
        .into_iter()
        .chain(lost)
        .chain(bounds)
        .filter(is_shown)
        .collect()
}

/// Pixels between a line and its label.
const BESIDE: f64 = 4.0;

/// Draws the labels, a line of text for each, below `top` and above `bottom`, where the plot
/// begins.
pub fn labels(
    marks: &[Mark],
    window: &Window,
    left: u64,
    [top, bottom]: [u64; 2],
    out: &mut impl Write,
) -> io::Result<()> {
    for (line, mark) in (0u64..).zip(marks) {
        let within = window.after(mark.at).0;
        let x = left as f64 + within;
        // A label lies on the side where it has room.
        let (beside, anchor) = match within > PLOT as f64 / 2.0 {
            true => (x - BESIDE, "end"),
            false => (x + BESIDE, "start"),
        };
        let y = top + line * LINE;
        writeln!(
            out,
            "<g fill=\"{}\">\
             <line x1=\"{}\" x2=\"{}\" y1=\"{y}\" y2=\"{bottom}\" stroke=\"{}\"/>\
             <text x=\"{}\" y=\"{}\" text-anchor=\"{anchor}\" stroke=\"#ffffff\" \
             stroke-width=\"4\" stroke-linejoin=\"round\" paint-order=\"stroke\">{}\
             <title>{}</title></text></g>",
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

/// Draws where a step began with another plan, at the plot's upper edge.
pub fn plans(chart: &Chart, window: &Window, out: &mut impl Write) -> io::Result<()> {
    let steps = &chart.trace.steps;
    for Happened { step, what } in &chart.sheet.plans {
        if let Some((began, _)) = steps.get(*step as usize) {
            let x = window.x(*began);
            writeln!(
                out,
                "<path d=\"M{x} 0V8\" stroke=\"{PLAN}\" stroke-width=\"3\"><title>step {step}: {}</title></path>",
                Escaped(what)
            )?;
        }
    }
    Ok(())
}

/// Draws the lines in the plot.
pub fn lines(marks: &[Mark], window: &Window, height: u64, out: &mut impl Write) -> io::Result<()> {
    for mark in marks {
        writeln!(
            out,
            "<path d=\"M{} 0V{height}\" stroke=\"{}\" stroke-width=\"1.5\">\
             <title>{}: {}</title></path>",
            window.after(mark.at),
            mark.colour,
            Escaped(&mark.words),
            Escaped(&mark.meaning)
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_few() {
        for (span, tick, unit) in [
            (1, 1, "ns"),
            (9_999, 1_000, "ns"),
            (86_000_000, 10_000_000, "ms"),
            (2_100_000_000, 500_000_000, "ms"),
            (45_000_000_000, 5_000_000_000, "s"),
        ] {
            let axis = Axis::new(span, 10);
            assert_eq!((axis.tick, axis.unit), (tick, unit), "{span}");
            assert!(span / axis.tick <= 10);
        }
    }

    #[test]
    fn the_largest_span_has_an_axis() {
        assert!(Axis::new(Nanos::MAX, 10).tick > 0);
    }

    #[test]
    fn labels_have_no_trailing_zeros() {
        let axis = Axis::new(86_000_000, 10);
        assert_eq!(axis.label(10_000_000), "10");
        assert_eq!(Axis::new(25_000_000, 10).label(2_500_000), "2.5");
    }
}
