//! Draws the text around the bars: heading, names, axis and steps.

use std::io::{self, Write};

use super::Chart;
use super::axis::Axis;
use super::layout::{
    BEFORE_PLOT, MARGIN, Names, PLOT, Pixels, RIGHT, ROW, STEP_LINE, Tops, Window,
};
use super::rows::Row;
use super::strips::Strips;
use super::svg::Frame;
use super::text::shortened;
use crate::quantity::Seconds;
use crate::time::Nanos;
use crate::trace::escape::Escaped;
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
    format!(
        "{} commands, makespan {}{of_first}",
        frame.chart.trace.spans.len(),
        Seconds::from_nanos(own)
    )
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
    writeln!(out, "<g class=\"axis\" fill=\"#57606a\" stroke=\"none\">")?;
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
        "<text class=\"unit\" x=\"{}\" y=\"{}\" text-anchor=\"end\" fill=\"#57606a\">time [{}]</text>",
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
        "<g class=\"steps\" fill=\"#57606a\" font-size=\"11\" stroke=\"#ffffff\" \
         stroke-width=\"4\" stroke-linejoin=\"round\" paint-order=\"stroke\" \
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
