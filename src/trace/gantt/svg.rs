//! Draws the chart as SVG.

use std::io::Write;

use super::bar;
use super::flows;
use super::labels::{axis, heading, names, step_lines, step_numbers};
use super::layout::{BOTTOM, FONT, Names, PLOT, RIGHT, STEP_LINE, TOP, Window, tops};
use super::rows::rows;
use crate::time::Nanos;
use crate::trace::escape::Escaped;
use crate::trace::{About, Trace};

/// Writes the chart as an SVG file. Commands shorter than a pixel are merged.
///
/// # Errors
/// Those of the writer.
pub fn write(trace: &Trace, about: &About, out: impl Write) -> std::io::Result<()> {
    let mut out = out;
    out.write_all(b"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n")?;
    draw(trace, about, 1.0, &mut out)?;
    out.flush()
}

/// Draws the `svg` element. Commands shorter than `thinnest` pixels are merged.
pub(super) fn draw(
    trace: &Trace,
    about: &About,
    thinnest: f64,
    out: &mut impl Write,
) -> std::io::Result<()> {
    let window = Window::of(trace);
    let rows = rows(
        trace,
        (window.span() as f64 * thinnest / PLOT as f64) as Nanos,
    );
    let (tops, height) = tops(&rows);
    let named = Names::of(trace, &rows);
    let left = named.left;
    let (width, whole) = (left + PLOT + RIGHT, TOP + height + BOTTOM);
    writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{whole}\" \
         viewBox=\"0 0 {width} {whole}\" font-family=\"system-ui, 'DejaVu Sans', sans-serif\" \
         font-size=\"{FONT}\" fill=\"#24292f\">\n\
         <title>{}</title>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>",
        Escaped(&about.title())
    )?;
    heading(trace, about, &window, width, out)?;
    names(trace, &named, &rows, &tops, out)?;
    step_numbers(trace, &window, left, out)?;
    axis(&window, left, height, out)?;
    // The plot is an `svg` element of its own, so that a page can stretch it
    // without stretching text.
    writeln!(
        out,
        "<svg id=\"plot\" x=\"{left}\" y=\"{TOP}\" width=\"{PLOT}\" height=\"{height}\" \
         viewBox=\"0 0 {PLOT} {height}\" preserveAspectRatio=\"none\" \
         data-span=\"{}\">\n<rect width=\"{PLOT}\" height=\"{height}\" fill=\"#f6f8fa\"/>",
        window.span()
    )?;
    for (row, top) in rows.iter().zip(&tops) {
        for one in &row.bars {
            bar::draw(one, &window, *top, out)?;
        }
    }
    flows::draw(trace, &rows, &tops, &window, out)?;
    step_lines(trace, &window, height, STEP_LINE * thinnest, out)?;
    writeln!(out, "</svg>\n</svg>")
}

#[cfg(test)]
mod tests {
    use super::super::layout::{GAP, Pixels, ROW};
    use super::*;
    use crate::runtime::CommandKind;
    use crate::trace::fixtures::{about, span, two_devices};

    fn drawn(trace: &Trace) -> String {
        let mut out = Vec::new();
        write(trace, &about(), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn says_what_it_shows_and_that_it_is_simulated() {
        let svg = drawn(&two_devices());
        assert!(svg.contains("stencil 8 x 8 f64, dawl on k40 (simulated)"));
        for part in [
            "time [ns]",
            "write (H2D)",
            "read (D2H)",
            "queue 1",
            "step 0: 910 ns",
        ] {
            assert!(svg.contains(part), "{part}");
        }
    }

    #[test]
    fn names_cannot_break_out() {
        let svg = drawn(&two_devices());
        assert!(!svg.contains("gpu <0>"));
        assert!(svg.contains("gpu &lt;0&gt; &amp; &quot;co&quot;"));
    }

    #[test]
    fn a_bar_is_where_its_command_ran() {
        let svg = drawn(&two_devices());
        // The window is 90..1000; the read ran 600..1000.
        let x = 510.0 / 910.0 * 1000.0;
        let bar = format!("<rect x=\"{}\" ", Pixels(x));
        let at = svg.find(&bar).expect("the read's bar");
        assert!(svg[at..].starts_with(&format!(
            "{bar}y=\"{}\" width=\"{}\"",
            6 + ROW * 2 + GAP + 2,
            Pixels(1000.0 - x)
        )));
    }

    #[test]
    fn very_many_commands_give_a_small_file() {
        let trace = Trace {
            devices: vec!["gpu".into()],
            spans: (0..100_000)
                .map(|i| span(0, 0, CommandKind::Launch, i * 50, i * 50 + 40))
                .collect(),
            steps: (0..1_000).map(|i| (i * 5_000, i * 5_000 + 4_990)).collect(),
            flows: vec![],
        };
        let svg = drawn(&trace);
        assert!(svg.len() < 600_000, "{}", svg.len());
        assert!(svg.contains("100000 commands"));
    }

    #[test]
    fn an_empty_trace_is_still_a_chart() {
        let svg = drawn(&Trace::default());
        assert!(svg.contains("0 commands"));
        assert!(svg.trim_end().ends_with("</svg>"));
    }
}
