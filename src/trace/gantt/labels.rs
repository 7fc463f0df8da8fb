//! Draws the text around the bars: heading, names, axis and steps.

use std::io::{self, Write};

use super::axis::Axis;
use super::bar::{colour, meaning};
use super::layout::{LEFT, PLOT, Pixels, ROW, STEP_LINE, TOP, Window};
use super::rows::{KINDS, Row};
use crate::quantity::Seconds;
use crate::trace::escape::Escaped;
use crate::trace::{About, Trace, device_name};

/// Pixels that the number of a step takes.
const STEP_LABEL: f64 = 40.0;
const TICKS: u64 = 10;
/// Characters of a device's name that fit on the left.
const NAME: usize = 18;

/// The title, the extent of the trace, and the legend of colours.
pub fn heading(
    trace: &Trace,
    about: &About,
    window: &Window,
    out: &mut impl Write,
) -> io::Result<()> {
    writeln!(
        out,
        "<text x=\"16\" y=\"26\" font-size=\"15\" font-weight=\"600\">{}</text>",
        Escaped(&about.title())
    )?;
    writeln!(
        out,
        "<text x=\"16\" y=\"48\" fill=\"#57606a\">{} commands in {}</text>",
        trace.spans.len(),
        Seconds::from_nanos(window.span())
    )?;
    writeln!(out, "<g id=\"legend\">")?;
    for (i, kind) in KINDS.into_iter().enumerate() {
        let x = LEFT + PLOT - 330 + 115 * i as u64;
        writeln!(
            out,
            "<rect x=\"{x}\" y=\"38\" width=\"12\" height=\"12\" rx=\"2\" fill=\"{}\"/>\
             <text x=\"{}\" y=\"48\">{}</text>",
            colour(kind),
            x + 18,
            meaning(kind)
        )?;
    }
    writeln!(out, "</g>")
}

/// The names of devices and queues, on the left.
pub fn names(trace: &Trace, rows: &[Row], tops: &[u64], out: &mut impl Write) -> io::Result<()> {
    let mut before = None;
    for (row, top) in rows.iter().zip(tops) {
        let y = TOP + top + ROW * 2 / 3;
        if before != Some(row.device) {
            let name = device_name(trace, row.device);
            let short: String = if name.chars().count() > NAME {
                name.chars().take(NAME - 1).chain(['…']).collect()
            } else {
                name.into()
            };
            writeln!(
                out,
                "<text x=\"16\" y=\"{y}\" font-weight=\"600\">{}<title>{}</title></text>",
                Escaped(&short),
                Escaped(name)
            )?;
        }
        before = Some(row.device);
        let what = match row.bars.is_empty() {
            true => "idle".into(),
            false => format!("queue {}", row.queue),
        };
        writeln!(
            out,
            "<text x=\"{}\" y=\"{y}\" text-anchor=\"end\" fill=\"#57606a\">{what}</text>",
            LEFT - 10
        )?;
    }
    Ok(())
}

/// The time axis, below the plot.
pub fn axis(window: &Window, height: u64, out: &mut impl Write) -> io::Result<()> {
    let axis = Axis::new(window.span(), TICKS);
    let y = TOP + height;
    writeln!(out, "<g id=\"axis\" fill=\"#57606a\" stroke=\"none\">")?;
    for i in 0..=window.span() / axis.tick {
        let at = i * axis.tick;
        let x = Pixels(LEFT as f64 + at as f64 / window.span() as f64 * PLOT as f64);
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
        LEFT + PLOT,
        y + 36,
        axis.unit
    )
}

/// The numbers of steps, above the plot, as many as fit.
pub fn step_numbers(trace: &Trace, window: &Window, out: &mut impl Write) -> io::Result<()> {
    writeln!(
        out,
        "<g id=\"steps\" fill=\"#57606a\" font-size=\"11\" \
         data-room=\"{STEP_LABEL}\" data-line-room=\"{STEP_LINE}\">"
    )?;
    let mut free = 0.0;
    for (step, (began, _)) in trace.steps.iter().enumerate() {
        let x = window.x(*began);
        if x.0 < free {
            continue;
        }
        free = x.0 + STEP_LABEL;
        writeln!(
            out,
            "<text x=\"{}\" y=\"{}\">{step}</text>",
            Pixels(LEFT as f64 + x.0),
            TOP - 6
        )?;
    }
    writeln!(out, "</g>")?;
    writeln!(
        out,
        "<text x=\"{}\" y=\"{}\" text-anchor=\"end\" font-size=\"11\" fill=\"#57606a\">step</text>",
        LEFT - 10,
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
