//! Draws dependencies as lines from one command to the command that waited for it.

use std::io::{self, Write};

use super::layout::{ROW, Window};
use super::rows::Row;
use crate::trace::{Span, Trace};

/// Most lines that are drawn; more could not be told apart.
const MOST: usize = 2_000;

/// Draws a line for each dependency between commands of different queues. Within a
/// queue the order is visible without.
pub fn draw(
    trace: &Trace,
    rows: &[Row],
    tops: &[u64],
    window: &Window,
    out: &mut impl Write,
) -> io::Result<()> {
    if trace.flows.is_empty() || trace.flows.len() > MOST {
        return Ok(());
    }
    let middle = |span: &Span| {
        let of = |row: &Row| (row.device, row.queue) == (span.device, span.queue);
        let row = rows.iter().position(of)?;
        Some(tops[row] + ROW / 2)
    };
    // The line's width does not scale with the view.
    writeln!(
        out,
        "<g stroke=\"#24292f\" stroke-opacity=\"0.35\" stroke-width=\"0.7\" pointer-events=\"none\">"
    )?;
    for (before, after) in &trace.flows {
        let (Some(before), Some(after)) = (trace.spans.get(*before), trace.spans.get(*after))
        else {
            continue;
        };
        let (Some(from), Some(to)) = (middle(before), middle(after)) else {
            continue;
        };
        if from == to {
            continue;
        }
        writeln!(
            out,
            "<line x1=\"{}\" y1=\"{from}\" x2=\"{}\" y2=\"{to}\" \
             vector-effect=\"non-scaling-stroke\"/>",
            window.x(before.ended),
            window.x(after.started)
        )?;
    }
    writeln!(out, "</g>")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::fixtures::two_devices;
    use crate::trace::gantt::layout::tops;
    use crate::trace::gantt::palette::Palette;
    use crate::trace::gantt::rows::rows;

    fn drawn(flows: Vec<(usize, usize)>) -> String {
        let mut trace = two_devices();
        trace.flows = flows;
        let rows = rows(&trace, &Palette::of([&trace]), 1);
        let tops = tops(&rows).rows;
        let windows = Window::of([&trace]);
        let mut out = Vec::new();
        draw(&trace, &rows, &tops, &windows[0], &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_line_leads_from_queue_to_queue() {
        assert_eq!(drawn(vec![]), "");
        let two = drawn(vec![(0, 1), (2, 3), (1, 2), (7, 0)]);
        // The third is within a queue, and the fourth comes from nowhere.
        assert_eq!(two.matches("<line").count(), 2, "{two}");
    }

    #[test]
    fn very_many_are_left_out() {
        assert_eq!(drawn(vec![(0, 1); MOST + 1]), "");
    }
}
