//! Draws the text around the bars: heading, names, axis and steps.

use std::io::{self, Write};

use super::axis::Axis;
use super::bar::{colour, meaning};
use super::layout::{
    BEFORE_PLOT, FONT, GAP, MARGIN, Names, PLOT, Pixels, RIGHT, ROW, STEP_LINE, TOP, Window,
};
use super::rows::{KINDS, Row};
use super::text::{self, shortened};
use crate::quantity::Seconds;
use crate::trace::escape::Escaped;
use crate::trace::{About, Trace, device_name};

/// Pixels that the number of a step takes.
const STEP_LABEL: f64 = 40.0;
const TICKS: u64 = 10;
/// The title's font size.
const TITLE: f64 = 15.0;

/// The title, the extent of the trace, and the legend of colours.
pub fn heading(
    trace: &Trace,
    about: &About,
    window: &Window,
    width: u64,
    out: &mut impl Write,
) -> io::Result<()> {
    let title = shortened(&about.title(), TITLE, (width - 2 * MARGIN) as f64);
    writeln!(
        out,
        "<text x=\"{MARGIN}\" y=\"26\" font-size=\"{TITLE}\" font-weight=\"600\">{}</text>",
        Escaped(&title)
    )?;
    writeln!(
        out,
        "<text x=\"{MARGIN}\" y=\"48\" fill=\"#57606a\">{} commands in {}</text>",
        trace.spans.len(),
        Seconds::from_nanos(window.span())
    )?;
    let mut x = MARGIN as f64;
    for kind in KINDS {
        let words = meaning(kind);
        writeln!(
            out,
            "<rect x=\"{}\" y=\"58\" width=\"12\" height=\"12\" rx=\"2\" fill=\"{}\"/>\
             <text x=\"{}\" y=\"68\">{words}</text>",
            Pixels(x),
            colour(kind),
            Pixels(x + 18.0)
        )?;
        x += 18.0 + text::width(words, FONT) + GAP as f64;
    }
    Ok(())
}

/// The names of devices and queues, on the left.
pub fn names(
    trace: &Trace,
    names: &Names,
    rows: &[Row],
    tops: &[u64],
    out: &mut impl Write,
) -> io::Result<()> {
    let mut before = None;
    for (row, top) in rows.iter().zip(tops) {
        let y = TOP + top + ROW * 2 / 3;
        if before != Some(row.device) {
            writeln!(
                out,
                "<text x=\"{MARGIN}\" y=\"{y}\" font-weight=\"600\">{}<title>{}</title></text>",
                Escaped(names.devices.get(row.device).map_or("?", String::as_str)),
                Escaped(device_name(trace, row.device))
            )?;
        }
        before = Some(row.device);
        writeln!(
            out,
            "<text x=\"{}\" y=\"{y}\" text-anchor=\"end\" fill=\"#57606a\">{}</text>",
            names.left - BEFORE_PLOT,
            row.label()
        )?;
    }
    Ok(())
}

/// The time axis, below the plot.
pub fn axis(window: &Window, left: u64, height: u64, out: &mut impl Write) -> io::Result<()> {
    let axis = Axis::new(window.span(), TICKS);
    let y = TOP + height;
    writeln!(out, "<g id=\"axis\" fill=\"#57606a\" stroke=\"none\">")?;
    for i in 0..=window.span() / axis.tick {
        let at = i * axis.tick;
        let x = Pixels(left as f64 + at as f64 / window.span() as f64 * PLOT as f64);
        writeln!(
            out,
            "<path d=\"M{x} {y}v5\" stroke=\"#57606a\"/>\
             <text x=\"{x}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
            y + 18,
            axis.label(at)
        )?;
    }
    writeln!(out, "</g>")?;
    writeln!(
        out,
        "<text id=\"unit\" x=\"{}\" y=\"{}\" text-anchor=\"end\" fill=\"#57606a\">time [{}]</text>",
        left + PLOT,
        y + 36,
        axis.unit
    )
}

/// The numbers of steps, above the plot, as many as fit.
pub fn step_numbers(
    trace: &Trace,
    window: &Window,
    left: u64,
    out: &mut impl Write,
) -> io::Result<()> {
    writeln!(
        out,
        "<g id=\"steps\" fill=\"#57606a\" font-size=\"11\" \
         data-room=\"{STEP_LABEL}\" data-line-room=\"{STEP_LINE}\">"
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
            TOP - 6
        )?;
    }
    writeln!(out, "</g>")?;
    writeln!(
        out,
        "<text x=\"{}\" y=\"{}\" text-anchor=\"end\" font-size=\"11\" fill=\"#57606a\">step</text>",
        left - BEFORE_PLOT,
        TOP - 6
    )
}

/// A line at the begin of each step, but none closer than `room` pixels to another.
pub fn step_lines(
    trace: &Trace,
    window: &Window,
    height: u64,
    room: f64,
    out: &mut impl Write,
) -> io::Result<()> {
    let mut free = 0.0;
    for (step, (began, ended)) in trace.steps.iter().enumerate() {
        let x = window.x(*began);
        if x.0 < free {
            continue;
        }
        free = x.0 + room;
        writeln!(
            out,
            "<path class=\"step\" data-step=\"{step}\" data-x=\"{x}\" d=\"M{x} 0V{height}\" \
             stroke=\"#8c959f\" stroke-dasharray=\"3 3\" vector-effect=\"non-scaling-stroke\">\
             <title>step {step}: {}</title></path>",
            Seconds::from_nanos(ended.saturating_sub(*began))
        )?;
    }
    Ok(())
}
