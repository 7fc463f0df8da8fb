//! Draws a bar and the text that it shows under the pointer.

use std::io::{self, Write};

use super::layout::{BAR, Pixels, ROW, Window};
use super::rows::{Bar, KINDS};
use crate::quantity::{Bytes, Seconds};
use crate::runtime::CommandKind;
use crate::trace::escape::Escaped;

/// The colour of a kind of command, from Okabe and Ito's palette, which is safe for
/// colour-blind readers.
pub fn colour(kind: CommandKind) -> &'static str {
    match kind {
        CommandKind::Write => "#56b4e9",
        CommandKind::Launch => "#009e73",
        CommandKind::Read => "#e69f00",
        CommandKind::Copy => "#cc79a7",
    }
}

/// The name of a kind of command.
pub fn meaning(kind: CommandKind) -> &'static str {
    match kind {
        CommandKind::Write => "write (H2D)",
        CommandKind::Launch => "ndrange",
        CommandKind::Read => "read (D2H)",
        CommandKind::Copy => "copy (between devices)",
    }
}

/// Draws a bar in the row whose upper edge is at `top`.
pub fn draw(bar: &Bar, window: &Window, top: u64, out: &mut impl Write) -> io::Result<()> {
    let x = window.x(bar.began);
    // Even the shortest bar stays visible.
    let width = Pixels((window.x(bar.ended).0 - x.0).max(0.05));
    write!(
        out,
        "<rect x=\"{x}\" y=\"{}\" width=\"{width}\" height=\"{BAR}\" fill=\"{}\"",
        top + (ROW - BAR) / 2,
        colour(bar.kind())
    )?;
    if bar.span.is_none() {
        // The more of its time is idle, the paler is a bar of several commands.
        write!(out, " fill-opacity=\"{:.2}\"", bar.density().max(0.2))?;
    }
    write!(out, "><title>")?;
    match bar.span {
        Some(span) => {
            writeln!(out, "{} ({})", Escaped(&span.label), meaning(span.kind))?;
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
            )?;
        }
        None => {
            write!(out, "several commands")?;
            for (kind, part) in KINDS.into_iter().zip(bar.parts) {
                if part.commands > 0 {
                    write!(
                        out,
                        "\n{} x {}: {}",
                        part.commands,
                        meaning(kind),
                        Seconds::from_nanos(part.busy)
                    )?;
                }
            }
        }
    }
    writeln!(out, "</title></rect>")
}
