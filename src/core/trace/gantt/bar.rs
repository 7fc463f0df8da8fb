//! Draws a bar and the text that it shows under the pointer.

use std::io::{self, Write};

use super::layout::{BAR, COPY, Pixels, ROW, Window};
use super::palette::Palette;
use super::rows::Bar;
use crate::quantity::{Bytes, Seconds};
use crate::trace::Span;
use crate::trace::escape::Escaped;

/// Draws a bar in the row whose upper edge is at `top`.
pub fn draw(
    bar: &Bar,
    palette: &Palette,
    window: &Window,
    top: u64,
    out: &mut impl Write,
) -> io::Result<()> {
    let x = window.x(bar.began);
    // Even the shortest bar stays visible.
    let width = Pixels((window.x(bar.ended).0 - x.0).max(0.05));
    let Some(entry) = palette.entries.get(bar.entry()) else {
        return Ok(());
    };
    // Copies are thin, so that they are distinct without their colours.
    let height = if entry.kernels { BAR } else { COPY };
    write!(
        out,
        "<rect x=\"{x}\" y=\"{}\" width=\"{width}\" height=\"{height}\" fill=\"{}\"",
        top + (ROW - height) / 2,
        entry.colour
    )?;
    if bar.span.is_none() {
        // The more of its time is idle, the paler is a bar of several commands.
        write!(out, " fill-opacity=\"{:.2}\"", bar.density().max(0.2))?;
    }
    write!(out, "><title>")?;
    match bar.span {
        Some(span) => single(span, &entry.name, entry.kernels, out)?,
        None => {
            write!(out, "several commands")?;
            for (entry, part) in &bar.parts {
                if let Some(entry) = palette.entries.get(*entry) {
                    write!(
                        out,
                        "\n{} x {}: {}",
                        part.commands,
                        Escaped(&entry.name),
                        Seconds::from_nanos(part.busy)
                    )?;
                }
            }
        }
    }
    writeln!(out, "</title></rect>")
}

fn single(span: &Span, name: &str, kernel: bool, out: &mut impl Write) -> io::Result<()> {
    let what = match (&span.codelet, kernel) {
        (Some(codelet), _) => codelet.as_str(),
        (None, true) => "kernel",
        (None, false) => name,
    };
    writeln!(out, "{} ({})", Escaped(&span.label), Escaped(what))?;
    writeln!(
        out,
        "step {}, units {}..{}",
        span.step, span.units.start, span.units.end
    )?;
    if span.bytes > 0 {
        writeln!(out, "{}", Bytes(span.bytes))?;
    }
    write!(
        out,
        "{} after a wait of {}",
        Seconds::from_nanos(span.ended.saturating_sub(span.started)),
        Seconds::from_nanos(span.started.saturating_sub(span.ready))
    )
}
