//! Draws charts as SVG.

use std::io::{self, Write};

use super::labels::{axis, heading, names, step_lines, step_numbers, subtitle};
use super::layout::{
    BOTTOM, FONT, LINE, MARGIN, Names, PLOT, RIGHT, STEP_LINE, Tops, Window, tops,
};
use super::legend::Legend;
use super::marks::{self, Mark};
use super::palette::Palette;
use super::rows::{Row, rows};
use super::strips::Strips;
use super::table::Table;
use super::text::shortened;
use super::{Chart, bar, flows};
use crate::time::Nanos;
use crate::trace::escape::Escaped;

/// Fonts and their colour.
const STYLE: &str =
    "font-family=\"system-ui, 'DejaVu Sans', sans-serif\" font-size=\"12\" fill=\"#24292f\"";
/// The height of title and extent.
const HEADING: u64 = 56;

/// Writes the charts as an SVG file, one below the other on one time axis. Commands
/// shorter than a pixel are merged.
///
/// # Errors
/// Those of the writer.
pub fn write(charts: &[Chart], out: impl Write) -> io::Result<()> {
    let mut out = out;
    let palette = Palette::of(charts.iter().map(|chart| chart.trace));
    let frames = Frame::all(charts, &palette, 1.0);
    let width = frames.iter().map(Frame::width).max().unwrap_or(0);
    let heights = frames.iter().map(|frame| frame.height(width));
    let whole: u64 = heights.sum();
    let titles: Vec<String> = charts.iter().map(|chart| chart.about.title()).collect();
    writeln!(
        out,
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{whole}\" \
         viewBox=\"0 0 {width} {whole}\">\n<title>{}</title>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>",
        Escaped(&titles.join("; "))
    )?;
    let mut y = 0;
    for frame in &frames {
        let height = frame.height(width);
        writeln!(
            out,
            "<svg class=\"chart\" y=\"{y}\" width=\"{width}\" height=\"{height}\" {STYLE}>"
        )?;
        frame.whole(&frames, width, &mut out)?;
        writeln!(out, "</svg>")?;
        y += height;
    }
    writeln!(out, "</svg>")?;
    out.flush()
}

/// A chart with the positions of everything in it.
pub(super) struct Frame<'a> {
    pub chart: &'a Chart<'a>,
    pub legend: Legend,
    pub window: Window,
    palette: &'a Palette,
    rows: Vec<Row<'a>>,
    tops: Tops,
    names: Names,
    strips: Strips,
    marks: Vec<Mark>,
    /// Pixels of the shortest command that is drawn by itself.
    thinnest: f64,
}

impl<'a> Frame<'a> {
    /// Frames of charts, whose plots lie one below the other.
    pub fn all(charts: &'a [Chart<'a>], palette: &'a Palette, thinnest: f64) -> Vec<Self> {
        let windows = Window::of(charts.iter().map(|chart| chart.trace));
        let of = |(chart, window): (&'a Chart<'a>, Window)| {
            let thin = window.span as f64 * thinnest / PLOT as f64;
            let rows = rows(chart.trace, palette, thin as Nanos);
            Self {
                legend: Legend::of(chart.trace, palette, &rows),
                palette,
                tops: tops(&rows),
                names: Names::of(chart.trace, &rows),
                strips: Strips::of(chart.trace, &window),
                marks: marks::of(&chart.sheet, &window),
                chart,
                window,
                rows,
                thinnest,
            }
        };
        let mut frames: Vec<Self> = charts.iter().zip(windows).map(of).collect();
        let left = frames.iter().map(|frame| frame.names.left).max();
        for frame in &mut frames {
            frame.names.left = left.unwrap_or(0);
        }
        frames
    }

    /// The width of the plot with its names.
    fn plot_width(&self) -> u64 {
        self.names.left + PLOT + RIGHT
    }

    /// The width of everything.
    fn width(&self) -> u64 {
        let table = self.chart.sheet.table.as_ref();
        let table = table.map_or(0, |table| table.size()[0]);
        self.plot_width().max(table)
    }

    /// The height of what is above the plot, but for the heading.
    fn above(&self) -> u64 {
        LINE * (self.marks.len() as u64 + 1) + 6
    }

    /// Where the plot of a drawing with its heading begins.
    fn top(&self, width: u64) -> u64 {
        HEADING + self.legend.height(width) + self.above()
    }

    /// The height of everything in a drawing of this width.
    fn height(&self, width: u64) -> u64 {
        let sheet = &self.chart.sheet;
        let table = sheet.table.as_ref().map_or(0, |table| table.size()[1]);
        let notes = sheet.notes.len() as u64 * LINE;
        self.top(width) + self.tops.height + BOTTOM + table + notes + LINE
    }

    /// Draws it with heading, legend and table.
    fn whole(&self, all: &[Self], width: u64, out: &mut impl Write) -> io::Result<()> {
        heading(self.chart, &subtitle(self, all), width, out)?;
        self.legend.draw(width, HEADING, out)?;
        let top = self.top(width);
        self.plot(top, out)?;
        let mut y = top + self.tops.height + BOTTOM;
        if let Some(table) = &self.chart.sheet.table {
            table.draw(y, out)?;
            y += Table::size(table)[1];
        }
        for (line, note) in (0u64..).zip(&self.chart.sheet.notes) {
            let note = shortened(note, FONT, (width - 2 * MARGIN) as f64);
            writeln!(
                out,
                "<text x=\"{MARGIN}\" y=\"{}\" fill=\"#57606a\">{}</text>",
                y + line * LINE + 12,
                Escaped(&note)
            )?;
        }
        Ok(())
    }

    /// Draws the plot with its names and axis as an `svg` element of a page.
    pub fn alone(&self, out: &mut impl Write) -> io::Result<()> {
        let (width, top) = (self.plot_width(), self.above());
        let height = top + self.tops.height + BOTTOM;
        writeln!(
            out,
            "<svg class=\"chart\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" {STYLE}>"
        )?;
        self.plot(top, out)?;
        writeln!(out, "</svg>")
    }

    /// Draws the plot, whose upper edge is at `top`, and the texts around it.
    fn plot(&self, top: u64, out: &mut impl Write) -> io::Result<()> {
        let Self { window, tops, .. } = self;
        let (trace, left, height) = (self.chart.trace, self.names.left, tops.height);
        marks::labels(&self.marks, left, [top - self.above(), top], out)?;
        names(
            trace,
            &self.names,
            (&self.rows, &self.strips),
            tops,
            top,
            out,
        )?;
        step_numbers(trace, window, left, top, out)?;
        axis(window, left, top + height, out)?;
        // The plot is an `svg` element of its own, so that a page can stretch it
        // without stretching text.
        writeln!(
            out,
            "<svg class=\"plot\" x=\"{left}\" y=\"{top}\" width=\"{PLOT}\" height=\"{height}\" \
             viewBox=\"0 0 {PLOT} {height}\" preserveAspectRatio=\"none\" \
             data-span=\"{}\" data-lead=\"{}\">\n\
             <rect width=\"{PLOT}\" height=\"{height}\" fill=\"#f6f8fa\"/>",
            window.span, window.lead
        )?;
        for (device, strip) in &tops.strips {
            self.strips.draw(*device, window, *strip, out)?;
        }
        for (row, top) in self.rows.iter().zip(&tops.rows) {
            for one in &row.bars {
                bar::draw(one, self.palette, window, *top, out)?;
            }
        }
        flows::draw(trace, &self.rows, &tops.rows, window, out)?;
        step_lines(trace, window, height, STEP_LINE * self.thinnest, out)?;
        marks::lines(&self.marks, height, out)?;
        writeln!(out, "</svg>")
    }
}

#[cfg(test)]
mod tests {
    use super::super::layout::{GAP, Pixels, ROW};
    use super::super::{Bound, Sheet};
    use super::*;
    use crate::runtime::CommandKind;
    use crate::trace::Trace;
    use crate::trace::fixtures::{about, span, two_devices};

    fn chart(trace: &Trace) -> Chart<'_> {
        Chart {
            trace,
            about: about(),
            sheet: Sheet::default(),
        }
    }

    fn drawn(charts: &[Chart]) -> String {
        let mut out = Vec::new();
        write(charts, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn says_what_it_shows_and_that_it_is_simulated() {
        let svg = drawn(&[chart(&two_devices())]);
        assert!(svg.contains("stencil 8 x 8 f64, dawl on k40 (simulated)"));
        for part in [
            "time [ns]",
            "write (H2D)",
            "read (D2H)",
            "queue 1",
            "step 0: 910 ns",
            "makespan 910 ns",
            ">busy 88 %<",
            ">busy 99 %<",
        ] {
            assert!(svg.contains(part), "{part}");
        }
        // There is none.
        assert!(!svg.contains("copy (between devices)"));
    }

    #[test]
    fn names_cannot_break_out() {
        let mut trace = two_devices();
        trace.spans[0].label = "</svg><b>".into();
        let evil = Table {
            header: vec!["<i>".into()],
            rows: vec![vec!["</svg>".into()]],
        };
        let sheet = Sheet {
            table: Some(evil),
            notes: vec!["<script>".into()],
            ..Sheet::default()
        };
        let svg = drawn(&[Chart {
            sheet,
            ..chart(&trace)
        }]);
        for part in ["gpu <0>", "<b>", "<i>", "<script>"] {
            assert!(!svg.contains(part), "{part}");
        }
        assert!(svg.contains("gpu &lt;0&gt; &amp; &quot;co&quot;"));
        assert_eq!(svg.matches("<svg").count(), svg.matches("</svg>").count());
    }

    #[test]
    fn a_bar_is_where_its_command_ran() {
        let svg = drawn(&[chart(&two_devices())]);
        // The window is 90..1000; the kernel ran 300..700.
        let (x, end) = (210.0 / 910.0 * 1000.0, 610.0 / 910.0 * 1000.0);
        let bar = format!("<rect x=\"{}\" ", Pixels(x));
        let at = svg.find(&bar).expect("the kernel's bar");
        assert!(svg[at..].starts_with(&format!(
            "{bar}y=\"{}\" width=\"{}\"",
            // Below two strips and the other device's row.
            6 + ROW * 3 + GAP + 2,
            Pixels(end - x)
        )));
    }

    #[test]
    fn bounds_are_lines_where_they_are() {
        let trace = two_devices();
        let bound = |seconds| Bound {
            name: "area bound",
            meaning: "All at once.",
            seconds,
        };
        let bounds = vec![bound(455e-9), bound(1.0)];
        let sheet = Sheet {
            bounds,
            ..Sheet::default()
        };
        let svg = drawn(&[Chart {
            sheet,
            ..chart(&trace)
        }]);
        assert!(svg.contains("d=\"M500 0V"), "{svg}");
        assert!(svg.contains("area bound 455 ns"));
        assert!(svg.contains("50 % of the makespan. All at once."));
        // One that lies outside is not drawn.
        assert!(!svg.contains("area bound 1.00 s"));
    }

    #[test]
    fn two_runs_have_one_time_axis() {
        let (trace, mut other) = (two_devices(), two_devices());
        other.steps = vec![(90, 1910)];
        let svg = drawn(&[chart(&trace), chart(&other)]);
        assert_eq!(svg.matches("data-span=\"1820\"").count(), 2);
        assert!(svg.contains("2.00 of the first run&#39;s"));
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
        let svg = drawn(&[chart(&trace)]);
        assert!(svg.len() < 600_000, "{}", svg.len());
        assert!(svg.contains("100000 commands"));
    }

    #[test]
    fn an_empty_trace_is_still_a_chart() {
        let svg = drawn(&[chart(&Trace::default())]);
        assert!(svg.contains("0 commands"));
        assert!(svg.trim_end().ends_with("</svg>"));
        assert!(drawn(&[]).contains("</svg>"));
    }
}
