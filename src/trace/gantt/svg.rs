//! Drawing the chart.

use std::fmt::{self, Display};
use std::io::Write;

use super::axis::Axis;
use super::rows::{Bar, KINDS, Row, rows};
use crate::quantity::{Bytes, Seconds};
use crate::runtime::CommandKind;
use crate::time::Nanos;
use crate::trace::escape::Escaped;
use crate::trace::{About, Trace, device_name};

/// Sizes in pixels.
const LEFT: u64 = 190;
const PLOT: u64 = 1000;
const RIGHT: u64 = 30;
const TOP: u64 = 86;
const ROW: u64 = 22;
const BAR: u64 = 18;
const GAP: u64 = 12;
const BOTTOM: u64 = 48;
/// Least room that the number of a step needs.
const STEP_LABEL: f64 = 40.0;
/// Least room between the lines of two steps.
const STEP_LINE: f64 = 12.0;
const TICKS: u64 = 10;
/// Characters of a device's name that fit on the left.
const NAME: usize = 18;

/// Writes the chart as an SVG file. Commands thinner than a pixel are merged.
///
/// # Errors
/// Those of the writer.
pub fn write(trace: &Trace, about: &About, out: impl Write) -> std::io::Result<()> {
    let mut out = out;
    out.write_all(b"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n")?;
    draw(trace, about, 1.0, &mut out)?;
    out.flush()
}

/// Draws the `svg` element; bars thinner than `thinnest` pixels are merged.
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
    let (width, whole) = (LEFT + PLOT + RIGHT, TOP + height + BOTTOM);
    writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{whole}\" \
         viewBox=\"0 0 {width} {whole}\" font-family=\"system-ui, 'DejaVu Sans', sans-serif\" \
         font-size=\"12\" fill=\"#24292f\">\n\
         <title>{}</title>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>",
        Escaped(&about.title())
    )?;
    heading(trace, about, &window, out)?;
    names(trace, &rows, &tops, out)?;
    step_numbers(trace, &window, out)?;
    axis(&window, height, out)?;
    // A view of its own, so that a page can zoom it without stretching text.
    writeln!(
        out,
        "<svg id=\"plot\" x=\"{LEFT}\" y=\"{TOP}\" width=\"{PLOT}\" height=\"{height}\" \
         viewBox=\"0 0 {PLOT} {height}\" preserveAspectRatio=\"none\" \
         data-span=\"{}\">\n<rect width=\"{PLOT}\" height=\"{height}\" fill=\"#f6f8fa\"/>",
        window.span()
    )?;
    for (row, top) in rows.iter().zip(&tops) {
        for bar in &row.bars {
            draw_bar(bar, &window, *top, out)?;
        }
    }
    step_lines(trace, &window, height, STEP_LINE * thinnest, out)?;
    writeln!(out, "</svg>\n</svg>")
}

/// The time that the chart shows.
struct Window {
    began: Nanos,
    ended: Nanos,
}

impl Window {
    fn of(trace: &Trace) -> Self {
        let times = || {
            let spans = trace.spans.iter().map(|s| (s.started, s.ended));
            spans.chain(trace.steps.iter().copied())
        };
        let began = times().map(|t| t.0).min().unwrap_or(0);
        let ended = times().map(|t| t.1).max().unwrap_or(0);
        Self {
            began,
            ended: ended.max(began.saturating_add(1)),
        }
    }

    fn span(&self) -> Nanos {
        (self.ended - self.began).max(1)
    }

    /// Pixels from the plot's left.
    fn x(&self, at: Nanos) -> Pixels {
        Pixels(at.saturating_sub(self.began) as f64 / self.span() as f64 * PLOT as f64)
    }
}

/// A length with at most three decimals.
struct Pixels(f64);

impl Display for Pixels {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}", (self.0 * 1e3).round() / 1e3)
    }
}

/// The rows' upper edges within the plot, and the plot's height: rows of one
/// device are close, devices apart.
fn tops(rows: &[Row]) -> (Vec<u64>, u64) {
    let mut top = GAP / 2;
    let mut tops = Vec::with_capacity(rows.len());
    for (i, row) in rows.iter().enumerate() {
        if i > 0 && rows[i - 1].device != row.device {
            top += GAP;
        }
        tops.push(top);
        top += ROW;
    }
    (tops, top + GAP / 2)
}

/// A colour that colour-blind readers tell apart, too (Okabe and Ito).
fn colour(kind: CommandKind) -> &'static str {
    match kind {
        CommandKind::Write => "#56b4e9",
        CommandKind::Launch => "#009e73",
        CommandKind::Read => "#e69f00",
    }
}

fn meaning(kind: CommandKind) -> &'static str {
    match kind {
        CommandKind::Write => "write (H2D)",
        CommandKind::Launch => "ndrange",
        CommandKind::Read => "read (D2H)",
    }
}

fn heading(
    trace: &Trace,
    about: &About,
    window: &Window,
    out: &mut impl Write,
) -> std::io::Result<()> {
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
    Ok(())
}

fn names(trace: &Trace, rows: &[Row], tops: &[u64], out: &mut impl Write) -> std::io::Result<()> {
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

fn axis(window: &Window, height: u64, out: &mut impl Write) -> std::io::Result<()> {
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

/// The numbers of the steps above the plot, as many as there is room for.
fn step_numbers(trace: &Trace, window: &Window, out: &mut impl Write) -> std::io::Result<()> {
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

/// A line where a step begins, for as many as are `room` pixels apart.
fn step_lines(
    trace: &Trace,
    window: &Window,
    height: u64,
    room: f64,
    out: &mut impl Write,
) -> std::io::Result<()> {
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

fn draw_bar(bar: &Bar, window: &Window, top: u64, out: &mut impl Write) -> std::io::Result<()> {
    let x = window.x(bar.began);
    // A bar is visible however short it is.
    let width = Pixels((window.x(bar.ended).0 - x.0).max(0.05));
    write!(
        out,
        "<rect x=\"{x}\" y=\"{}\" width=\"{width}\" height=\"{BAR}\" fill=\"{}\"",
        top + (ROW - BAR) / 2,
        colour(bar.kind())
    )?;
    if bar.span.is_none() {
        // Several commands with gaps between them are as pale as they are rare.
        write!(out, " fill-opacity=\"{:.2}\"", bar.density().max(0.2))?;
    }
    write!(out, "><title>")?;
    match bar.span {
        Some(span) => {
            writeln!(out, "{} ({})", Escaped(span.label), meaning(span.kind))?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::samples::{about, span, two_devices};

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
